"""Questions about functions: ``inspect.signature`` and its relatives.

In: function values. Out: real signature objects, held by the entry; everything that they are made
of is guarded. Next room: interpreter.
"""

from __future__ import annotations

import inspect
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.containers.mappings import DictValue
from framejit.values.core.base import Args, Kwargs, Value, is_user_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Handler, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, MethodValue
from framejit.values.objects.instances import ObjectValue

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _has(space: Space, value: Value, name: str) -> bool:
    asked = LOOKASIDES[hasattr](space, [value, ConstantValue(name)], {})
    return space.truth(space.now(asked))


def _described(space: Space, value: Value) -> Any:
    """The real object behind a value, with what its signature depends on guarded."""
    value = value.realize()
    if isinstance(value, ClassValue):
        told = space.class_attribute(value.cls, "__signature__")
        if told is not None and type(told.raw) is inspect.Signature:  # and the very same later on
            return value.cls
    existing = isinstance(value, ClassValue) or getattr(value, "function", None) is not None
    if not existing or _has(space, value, "__signature__"):
        raise GraphBreak("FJ0162", f"the signature of a {value.describe()}")
    if isinstance(value, FunctionValue):
        return _function(space, value)
    if isinstance(value, ClassValue) and not _has(space, value, "__wrapped__"):
        return _class(space, value)
    raise GraphBreak("FJ0162", f"the signature of a {value.describe()}")


def _function(space: Space, value: FunctionValue) -> Any:
    if value.attributes:
        raise GraphBreak("FJ0162", f"the program has changed the {value.describe()}")
    source = value.source
    assert source is not None
    space.guard(source.child("attr", "__defaults__"), "ID_MATCH", value.function.__defaults__)
    for name in ("__kwdefaults__", "__annotations__"):
        _entries(space, space.getattr_now(value, name).realize())
    if _has(space, value, "__wrapped__"):
        _described(space, space.getattr_now(value, "__wrapped__"))
    return value.function


def _entries(space: Space, held: Value) -> None:
    """A dict of a function, or None: it has these objects."""
    if held.is_none():
        return
    if not isinstance(held, DictValue) or held.source is None or held.mutated:
        raise GraphBreak("FJ0162", "the program has changed what a signature is made of")
    held.look_at_all(space)
    for name, content in held.obj.items():
        space.guard(held.source.child("item", name), "ID_MATCH", content)


def _class(space: Space, value: ClassValue) -> Any:
    """The methods that are called to make an instance."""
    cls, meta = value.cls, type(value.cls)
    called = space.class_attribute(meta, "__call__")
    if called is not None and is_user_class(called.owner):
        _described(space, space.load(called.source, called.raw))
    for name in ("__init__", "__new__"):
        found = space.class_attribute(cls, name)
        if found is not None and is_user_class(found.owner):
            _described(space, space.getattr_now(value, name))
    return cls


@lookaside(inspect.signature)
def _signature(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) != 1 or kwargs:
        raise GraphBreak("FJ0162", "inspect.signature() with options")
    value = args[0].realize()
    skip_first = False
    if isinstance(value, MethodValue):
        value, skip_first = value.function.realize(), True
    elif isinstance(value, ObjectValue):
        method = space.special_method(value, "__call__")
        told = _has(space, value, "__signature__") or _has(space, value, "__wrapped__")
        if told or not isinstance(method, MethodValue):
            raise GraphBreak("FJ0162", f"the signature of a {value.describe()}")
        value, skip_first = method.function.realize(), True
    signature = space.run_real(inspect.signature, _described(space, value))
    if skip_first:
        receiver, *others = signature.parameters.values() or [None]
        if receiver is None or receiver.kind not in _POSITIONAL:
            raise GraphBreak("FJ0162", "the signature of a method without a parameter for self")
        signature = signature.replace(parameters=others)
    return space.constant(signature)


def _stands_for(kind: type[Value]) -> Handler:
    return lambda space, args, kwargs: ConstantValue(isinstance(args[0].realize(), kind))


lookaside(inspect.isfunction)(_stands_for(FunctionValue))
lookaside(inspect.ismethod)(_stands_for(MethodValue))
lookaside(inspect.isclass)(_stands_for(ClassValue))
