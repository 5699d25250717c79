"""Folding: values that consist of constants, as Python objects and back.

In: values and a pure function. Out: what the function gives, run now on real objects; an exception
that it raises is raised in the program. Next: builtin_functions, stdlib_functions.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.base import Value
from framejit.values.mappings import DictValue, InstanceDictValue
from framejit.values.sequences import ListValue, SliceValue, TupleValue
from framejit.values.sets import SetValue
from framejit.values.space import Space


class NotConstantError(Exception):
    """A value does not consist of constants only."""


def python_of(value: Value) -> Any:
    """The Python object of constants and containers of constants; else `NotConstantError`."""
    value = value.realize()
    if value.is_constant or value.is_symbolic:
        return value.as_python()
    if isinstance(value, InstanceDictValue):
        raise NotConstantError
    if isinstance(value, (ListValue, TupleValue)):
        items = [python_of(item) for item in value.items]
        return items if isinstance(value, ListValue) else value.cls(items)
    if isinstance(value, DictValue):
        if value.cls is defaultdict:
            raise NotConstantError
        pairs = {python_of(k): python_of(v) for k, v in value.items.values()}
        return pairs if value.cls is dict else value.cls(pairs)
    if isinstance(value, SetValue):
        return value.cls([python_of(item) for item in value.items])
    if isinstance(value, SliceValue):
        return slice(*[python_of(part) for part in value.parts()])
    raise NotConstantError


def from_python(space: Space, obj: Any) -> Value:
    """The value of a Python object that folding made: containers get their own values."""
    kind = type(obj)
    if kind is list:
        return ListValue([from_python(space, item) for item in obj])
    if kind is tuple:
        return TupleValue([from_python(space, item) for item in obj])
    if kind is dict or kind is OrderedDict:
        pairs = {k: (from_python(space, k), from_python(space, v)) for k, v in obj.items()}
        return DictValue(pairs, None, None, kind)
    if kind is set:
        return SetValue([(item, from_python(space, item)) for item in obj])
    return space.constant(obj)


def fold_if_constant(
    space: Space, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """Run a pure function now when all arguments are constants; None when they are not."""
    try:
        real_args = [python_of(arg) for arg in args]
        real_kwargs = {name: python_of(value) for name, value in kwargs.items()}
    except NotConstantError:
        return None
    return from_python(space, space.run_real(function, *real_args, **real_kwargs))


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
