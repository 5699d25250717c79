"""Runs the same operations on real objects and on their values, and compares what happened."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import framejit.values.stdlib.builtin_classes
import framejit.values.stdlib.itertools_functions
import framejit.values.stdlib.operator_functions
import framejit.values.stdlib.stdlib_functions  # noqa: F401
from framejit.graph.builder import GraphBuilder
from framejit.values.containers.deques import DequeValue
from framejit.values.containers.mapping_views import DictViewValue
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, SliceValue, TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.core.base import Raised, Value
from framejit.values.core.registry import LOOKASIDES
from framejit.values.core.space import Space
from framejit.values.object_space import ObjectSpace


def new_space() -> Space:
    """A space without a graph: for programs without tensors."""
    return ObjectSpace(GraphBuilder())


def symbolic(space: Space, obj: Any) -> Value:
    """The value of an object as if the program had made it."""
    if type(obj) is list:
        return ListValue([symbolic(space, item) for item in obj])
    if type(obj) is tuple:
        return TupleValue([symbolic(space, item) for item in obj])
    if isinstance(obj, dict):
        made = DictValue({}, None, None, type(obj))
        for key, item in obj.items():
            made.setitem(space, symbolic(space, key), symbolic(space, item))
        if hasattr(obj, "default_factory"):
            made.default_factory = existing(space, obj.default_factory, "factory")
        return made
    if type(obj) is set:
        made = SetValue()
        for item in obj:
            made.do_add(space, symbolic(space, item))
        return made
    if type(obj).__name__ == "deque":
        return DequeValue([symbolic(space, item) for item in obj], obj.maxlen)
    if type(obj) is slice:
        return SliceValue(*[symbolic(space, p) for p in (obj.start, obj.stop, obj.step)])
    if callable(obj):
        return existing(space, obj, "function")
    return space.constant(obj)


def existing(space: Space, obj: Any, name: str = "x") -> Value:
    """The value of an object as if it had come in as an argument."""
    return space.load(space.slot_source(0, name), obj)


def plain(space: Space, value: Value | None) -> Any:
    """The Python object a value represents; containers with their exact types and order."""
    if value is None:
        return None
    value = value.realize()
    if isinstance(value, DequeValue):
        return ("deque", [plain(space, i) for i in value.items], value.maxlen)
    if isinstance(value, ListValue):
        return [plain(space, i) for i in value.items]
    if isinstance(value, TupleValue):
        return tuple(plain(space, i) for i in value.items)
    if isinstance(value, DictViewValue):
        return (value.what, [plain(space, i) for i in value.items_now(space)])
    if isinstance(value, DictValue):
        pairs = [(plain(space, k), plain(space, v)) for k, v in value.items.values()]
        return (value.cls.__name__, pairs)
    if isinstance(value, SetValue):
        return (value.cls.__name__, [plain(space, i) for i in value.elements_in_order(space)])
    if value.is_constant:
        return plain_real(value.as_python())
    if hasattr(value, "next"):
        return ("iterator", value.python_type(), [plain(space, i) for i in space.items(value)])
    return value


def plain_real(obj: Any) -> Any:
    """`plain` of a real object."""
    kind = type(obj)
    if kind.__name__ == "deque":
        return ("deque", [plain_real(i) for i in obj], obj.maxlen)
    if kind is list:
        return [plain_real(i) for i in obj]
    if kind is tuple:
        return tuple(plain_real(i) for i in obj)
    if kind.__name__ in (
        "dict_keys",
        "dict_values",
        "dict_items",
        "odict_keys",
        "odict_items",
        "odict_values",
    ):
        return (kind.__name__.partition("_")[2], [plain_real(i) for i in obj])
    if isinstance(obj, dict):
        return (kind.__name__, [(plain_real(k), plain_real(v)) for k, v in obj.items()])
    if kind in (set, frozenset):
        return (kind.__name__, [plain_real(i) for i in obj])
    if hasattr(obj, "__next__"):
        return ("iterator", kind, [plain_real(i) for i in obj])
    return obj


def outcome(run: Callable[[], Any], space: Space | None = None) -> Any:
    """What a real or symbolic operation gives: its result or its exception."""
    try:
        return ("result", run())
    except Raised as signal:
        error = signal.value
        args = [arg.realize().as_python() for arg in error.args(space or new_space())]
        return ("raised", error.python_type(), args)
    except Exception as error:  # noqa: BLE001 - the program's own
        if type(error).__name__ in ("GraphBreak", "AssertionError"):
            raise
        return ("raised", type(error), list(error.args))


def compare_method(receiver: Any, name: str, *args: Any, **kwargs: Any) -> None:
    """``receiver.name(*args)``: same result or exception, and the same receiver afterwards."""
    for make in (symbolic, existing):
        space = new_space()
        real = copy.copy(receiver)
        value = make(space, copy.copy(receiver)).realize()
        values = [symbolic(space, arg) for arg in args]
        named = {key: symbolic(space, arg) for key, arg in kwargs.items()}
        expected = outcome(lambda: plain_real(getattr(real, name)(*args, **kwargs)))
        got = outcome(
            lambda: plain(space, space.now(value.call_method(space, name, values, named)))
        )
        assert got == expected, (receiver, name, args, make.__name__)
        assert plain_types(got) == plain_types(expected)
        if not (isinstance(real, set) and make is existing):  # its order is not known any more
            assert plain(space, value) == plain_real(real), (receiver, name, args, make.__name__)


def compare_call(function: Any, *args: Any, **kwargs: Any) -> None:
    """``function(*args)``: same result or exception."""
    for make in (symbolic, existing):
        space = new_space()
        values = [make(space, copy.copy(arg)) for arg in args]
        named = {key: make(space, copy.copy(arg)) for key, arg in kwargs.items()}
        expected = outcome(lambda: plain_real(function(*map(copy.copy, args), **copy.copy(kwargs))))
        got = outcome(lambda: plain(space, space.now(LOOKASIDES[function](space, values, named))))
        assert got == expected, (function, args, make.__name__)
        assert plain_types(got) == plain_types(expected)


def plain_types(obj: Any) -> Any:
    """The nest of types of a result, so that True and 1 differ."""
    if isinstance(obj, (list, tuple)):
        return [type(obj), *map(plain_types, obj)]
    return type(obj)
