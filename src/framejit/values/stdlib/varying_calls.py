"""Calls of cached functions whose arguments vary from call to call: sizes, and tuples of them.

In: the arguments and what the function has computed. Out: whether such a call can be captured: its
result is computed like that of any inlined call, the real call is made after the graph, and before
it the cache is asked whether it holds something else. Next: cached_functions, codegen.cached_calls.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch

from framejit.values.containers.deques import DequeValue
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.core.base import Declared, Value, is_nan
from framejit.values.core.keys import hashed_by_address, is_plain, pin, real_object
from framejit.values.core.space import Space
from framejit.values.objects.instances import ObjectValue
from framejit.values.torch.tensors import TensorValue


class CacheHit(Declared):
    """A call of an existing cached function, to be made for real after the graph."""

    function: Value
    args: list[Value]
    kwargs: dict[str, Value]
    kind = object


class VaryingCall(CacheHit):
    """One whose arguments vary. The parts of its result are those of the object that the real call
    returns."""

    result: Value
    typed: bool


def varies(value: Value) -> bool:
    """Is it a number that varies, or a tuple with one?"""
    value = value.realize()
    return value.is_symbolic or (type(value) is TupleValue and any(map(varies, value.items)))


def may_be_key(value: Value) -> bool:
    """Can the generated function ask a cache for it, before the graph? Equal ones are alike then,
    but for the classes of numbers and tuples (`described`)."""
    value = value.realize()
    if type(value) is TupleValue:
        return value.cls in (tuple, torch.Size) and all(map(may_be_key, value.items))
    if value.is_symbolic:
        return value.now() is not None  # type: ignore[attr-defined]
    if value.is_constant:
        return not value.is_open and is_plain(value.as_python()) and not is_nan(value)
    is_known = real_object(value) is not None and not isinstance(value, TensorValue)
    return is_known and hashed_by_address(value.python_type())


def pin_objects(space: Space, value: Value) -> None:
    """Guard which objects the arguments are."""
    value = value.realize()
    if type(value) is TupleValue:
        for item in value.items:
            pin_objects(space, item)
    elif not (value.is_constant or value.is_symbolic):
        pin(space, value)


def now(value: Value) -> Any:
    """The argument as it is in this call."""
    value = value.realize()
    if type(value) is TupleValue:
        return value.cls([now(item) for item in value.items])
    if value.is_symbolic:
        return value.now()  # type: ignore[attr-defined]
    return value.as_python() if value.is_constant else real_object(value)


def numbers_in(value: Value) -> Iterator[Value]:
    """The numbers in an argument that vary so far."""
    value = value.realize()
    if value.is_symbolic:
        if not is_fixed(value):
            yield value
    elif type(value) is TupleValue:
        for item in value.items:
            yield from numbers_in(item)


def is_fixed(value: Any) -> bool:
    """Has a number that varied come to be known by its value?"""
    return bool(value.sym.node.expr.is_number)


def key_within(space: Space, value: Value) -> Any:
    """The same for two arguments that are the same whatever the numbers are."""
    value = value.realize()
    if type(value) is TupleValue:
        return value.cls, *[key_within(space, item) for item in value.items]
    if value.is_symbolic:
        return value.python_type(), value.tree(space)  # type: ignore[attr-defined]
    if value.is_constant:
        return value.python_type(), value.as_python()
    return object, id(real_object(value))


def described(value: Value) -> tuple[Any, Any]:
    """What arguments have in common that may be equal, and the classes in which they may differ
    all the same."""
    value = value.realize()
    if type(value) is TupleValue:
        parts = [described(item) for item in value.items]
        classes = value.cls, *[classes for _, classes in parts]
        return (tuple, *[form for form, _ in parts]), classes
    kind = value.python_type()
    return (float if issubclass(kind, (int, float, complex)) else kind), kind


#: Constants of these classes are known by what they are.
_BY_CONTENT = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device, torch.layout)


def containers_in(value: Value) -> Iterator[Value]:
    """The tuples, lists and dicts that a result consists of and that were made for it."""
    value = value.realize()
    if is_container(value):
        yield value
        for item in parts_of(value):
            yield from containers_in(item)


def is_container(value: Value) -> bool:
    """Is it one, and does not exist yet?"""
    kind = type(value)
    if value.source is not None or value.obj is not None:
        return False
    if kind is TupleValue:
        return value.python_type() in (tuple, torch.Size)
    return kind is ListValue or (kind is DictValue and value.python_type() is dict)


def parts_of(value: Any) -> list[Value]:
    """The elements, or the keys with their values in turn."""
    if type(value) is DictValue:
        return [part for pair in value.items.values() for part in pair]
    return list(value.items)


def is_known_by_content(value: Value) -> bool:
    """A part of a result that another one as good as it is equal to; else it is known by its
    identity."""
    value = value.realize()
    return value.is_symbolic or (value.is_constant and value.python_type() in _BY_CONTENT)


def can_be_checked(value: Value) -> bool:
    """Can a result that a cache holds be compared with what was computed?"""
    value = value.realize()
    if is_container(value):
        keys = value.items if type(value) is DictValue else ()  # type: ignore[attr-defined]
        known = all(type(key) in (int, str) for key in keys)
        return known and all(map(can_be_checked, parts_of(value)))
    if value.is_symbolic:
        return value.now() is not None  # type: ignore[attr-defined]
    if is_known_by_content(value):
        return not (value.is_open or is_nan(value))
    real = real_object(value)
    exists = value.source is not None or isinstance(real, (type, types.FunctionType))
    made = value.making is not None or isinstance(value, TensorValue)
    return real is not None and exists and not made


# -- has the program changed what such a function has read? ----------------------------------------

_WITH_CONTENT = (ListValue, DequeValue, DictValue, InstanceDictValue, SetValue, ObjectValue)


def has_changed(space: Space, read: Space) -> bool:
    """Has the program perhaps changed something that a function has met, which ran in the space
    ``read`` as if the program had done nothing yet?"""
    effects, builder = space.effects, space.builder
    if space.class_writes or (effects.globals and read.has_met(effects.globals)):
        return True
    changed = [value for value in effects.changed if not isinstance(value, CacheHit)]
    objects = list(read.objects_met())
    met = set(map(id, objects))
    for value in changed:
        owner = getattr(value, "owner", None)
        known = [obj for obj in (value.obj, getattr(owner, "obj", None)) if obj is not None]
        if type(value) not in _WITH_CONTENT or not known or not met.isdisjoint(map(id, known)):
            return True
    tensors = builder.mutated_inputs or effects.given_gradient or effects.switched
    if tensors or effects.replaced or effects.hooks or effects.hook_dicts:
        if any(isinstance(obj, torch.Tensor) for obj in objects):
            return True
    over = space.torch_function
    is_set = effects.changed_state or effects.nesting or over.modes or over.blocks
    return bool(is_set) and any(map(_is_of_torch, objects))


def _is_of_torch(obj: Any) -> bool:
    """May what it says depend on torch's global state?"""
    if isinstance(obj, torch.Tensor):
        return True
    kinds = types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type
    if not issubclass(type(obj), kinds):
        return False
    name = obj.__name__ if type(obj) is types.ModuleType else obj.__module__
    return str(name).partition(".")[0] == "torch"
