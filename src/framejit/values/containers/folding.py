"""Folding: values that consist of constants, as Python objects and back.

In: values and a pure function. Out: what the function gives, run now on real objects; an exception
that it raises is raised in the program. Next: builtin_functions, stdlib_functions.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import builtin
from framejit.values.core.registry import LOOKASIDES, Result
from framejit.values.core.space import Space


class NotConstantError(Exception):
    """A value does not consist of constants only."""


#: The value of an object that folding was given, by the object's identity.
Given = dict[int, Value]


def python_of(value: Value, given: Given | None = None) -> Any:
    """The Python object of constants and containers of constants; else `NotConstantError`.
    ``given`` gets the values of the containers, by the identity of what stands for them."""
    value = value.realize()
    made = _python_of(value, given)
    if given is not None and isinstance(value, (ListValue, TupleValue, DictValue, SetValue)):
        given[id(made)] = value
    return made


def _python_of(value: Value, given: Given | None) -> Any:
    known = value.is_constant and (given is None or not isinstance(value, TupleValue))
    if known or value.is_symbolic:
        return value.as_python()
    if isinstance(value, (ListValue, TupleValue)):
        items = [python_of(item, given) for item in value.items]
        if isinstance(value, ListValue):
            return items if value.python_type() is list else value.as_python()
        return value.cls(items) if value.obj is None else value.obj
    if isinstance(value, DictValue):
        if value.cls is defaultdict:
            raise NotConstantError
        pairs = {python_of(k, given): python_of(v, given) for k, v in value.items.values()}
        return pairs if value.cls is dict else value.cls(pairs)
    if isinstance(value, SetValue):
        for key in value.keys(value.space):
            python_of(value.values[key], given)
        return value.as_python()
    if isinstance(value, SliceValue):
        return slice(*[python_of(part, given) for part in value.parts()])
    raise NotConstantError


def from_python(space: Space, obj: Any, given: Given) -> Value:
    """The value of a Python object that folding made: containers get their own values."""
    kind = type(obj)
    if id(obj) in given:
        return given[id(obj)]
    if kind is list:
        return ListValue([from_python(space, item, given) for item in obj])
    if kind is tuple:
        return TupleValue([from_python(space, item, given) for item in obj])
    if kind is dict or kind is OrderedDict:
        pairs = {
            k: (from_python(space, k, given), from_python(space, v, given)) for k, v in obj.items()
        }
        return DictValue(pairs, None, None, kind)
    if kind is set:
        return SetValue([(item, from_python(space, item, given)) for item in obj])
    return space.constant(obj)


def _collect(values: Iterable[Value], given: Given) -> Given:
    """The existing objects among constants and the elements of sequences."""
    for value in values:
        value = value.realize()
        if isinstance(value, TupleValue) and value.obj is not None:
            given[id(value.obj)] = value
        if isinstance(value, (ListValue, TupleValue)):
            _collect(value.items, given)
        elif type(value) is ConstantValue and value.source is not None:
            given[id(value.value)] = value
    return given


def fold_if_constant(
    space: Space, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Run a pure function now when all arguments are constants; None when they are not."""
    given: Given = {}
    try:
        real_args = [python_of(arg, given) for arg in args]
        real_kwargs = {name: python_of(value, given) for name, value in kwargs.items()}
    except NotConstantError:
        return None
    answer = space.run_real(function, *real_args, **real_kwargs)
    return from_python(space, answer, _collect(args, given))


def fold(space: Space, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`fold_if_constant`, or a graph break."""
    result = fold_if_constant(space, function, args, kwargs)
    if result is None:
        name = getattr(function, "__qualname__", repr(function))
        kinds = ", ".join(arg.realize().describe() for arg in [*args, *kwargs.values()])
        raise GraphBreak(
            "FJ0136", f"{name}() of values that are not known while capturing ({kinds})"
        )
    return result


def folded(function: Any, low: int, high: int | None = None, *keywords: str) -> Any:
    """Register the handler of a pure function of which the real one runs on known arguments."""

    def register(handler: Any) -> Any:
        builtin(function, low, high, *keywords)(handler)
        otherwise = LOOKASIDES[function]

        def first(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
            known = fold_if_constant(space, function, args, kwargs)
            return otherwise(space, args, kwargs) if known is None else known

        LOOKASIDES[function] = first
        return handler

    return register


def folds(function: Any) -> None:
    """A pure function: it runs now, on constants."""
    LOOKASIDES[function] = lambda space, args, kwargs: fold(space, function, args, kwargs)
