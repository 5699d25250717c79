"""What tensors made of tensors tell of themselves, as facts about what they are made of.

In: an existing tensor of a class with ``__tensor_flatten__``. Out: guards on all that this reads
and returns, found by tracing it, so that guards need not run it: they look at attributes. Where
that is not possible, it is run and its answer compared. Next: wrappers.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.global_state import ENABLED, WITHOUT_CLASSES
from framejit.graph.opaque import is_handle_class
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Value, is_user_class
from framejit.values.core.registry import LOOKASIDES
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue
from framejit.values.objects.instances import ObjectValue, solid_base
from framejit.values.torch.tensors import TensorValue

#: What is told may be nested so deep.
_MOST_NESTED = 8


def guard_told(space: Space, tensor: TensorValue, now: Any) -> list[Value]:
    """Guard what the tensor tells of itself; ``now``: its answer. Returns the containers and
    objects in it that the program may change."""
    over, effects = space.torch_function, space.effects
    state, before = over.state, (effects.writes, len(effects.changed), len(space.builder.sequence))
    over.state = WITHOUT_CLASSES if state == ENABLED else state
    try:
        told = space.running.attempt(lambda: _traced(space, tensor))
    finally:
        over.state = state
    if (effects.writes, len(effects.changed), len(space.builder.sequence)) != before:
        raise GraphBreak("FJ0113", f"__tensor_flatten__() of a {tensor.describe()} has effects")
    found: list[Value] = []
    if told is None or not _settle(space, told, found, 0):
        assert tensor.source is not None
        space.guard(tensor.source.child("call", flattened), "EQUALS_MATCH", now)
    return found


def _traced(space: Space, tensor: TensorValue) -> Value:
    cls = tensor.python_type()
    method = space.class_attribute(cls, "__tensor_flatten__")
    if method is None or method.raw in LOOKASIDES or space.task.alone:
        raise GraphBreak("FJ0113", "no such method, or it is not looked into")
    bound = space.now(space.bind_class_attribute(method, tensor, cls, "__tensor_flatten__"))
    return space.call_now(bound, [])


def _settle(space: Space, value: Value, found: list[Value], depth: int) -> bool:
    """Guard all of a value; False where its state cannot be looked at."""
    value = value.realize()
    if value.is_symbolic:  # a backend that takes the tensor apart builds it in
        value.as_python()
        return True
    if value.is_constant or isinstance(value, (TensorValue, ClassValue)):
        return True
    known = getattr(value, "obj", None)
    if value.source is not None and is_handle_class(value.python_type()):
        space.guard(value.source, "ID_MATCH", known)
        return True
    if value in found:
        return True
    if depth > _MOST_NESTED:
        return False
    found.append(value)
    if isinstance(value, FunctionValue):  # what it closes over is not looked at
        if value.source is not None:
            space.guard(value.source, "ID_MATCH", known)
        return value.source is not None
    parts = _parts(space, value)
    if (namespace := getattr(value, "namespace", None)) is not None:
        found.append(namespace)
    return parts is not None and all(_settle(space, part, found, depth + 1) for part in parts)


def _parts(space: Space, value: Value) -> list[Value] | None:
    """What a container or an object consists of; None if that is not known."""
    if type(value) in (ListValue, TupleValue):
        return list(value.items)  # type: ignore[attr-defined]
    if type(value) is DictValue and value.cls is dict:
        value.keys_in_order(space)
        return [pair[1] for pair in value.items.values()]
    if not isinstance(value, ObjectValue):
        return None
    if value.container is not None:
        own = space.namespace_of(value)
        plain = own is None or not own.keys_in_order(space)
        return [value.container] if plain else None
    usual = solid_base(value.cls) is object and not any(
        "__slots__" in vars(base) for base in value.cls.__mro__ if is_user_class(base)
    )
    namespace = space.namespace_of(value)
    if not usual or namespace is None:
        return None
    namespace.keys_in_order(space)
    return [pair[1] for pair in namespace.items.values()]


def flattened(tensor: Any) -> Any:
    """Which tensors one consists of, and what else it says of itself; later changes of it do not
    change this."""
    with torch._C.DisableTorchFunctionSubclass():
        names, context = tensor.__tensor_flatten__()
    return tuple(names), _kept(context)


def _kept(context: Any) -> Any:
    if isinstance(context, dict):
        return tuple([(key, _kept(value)) for key, value in context.items()])
    if isinstance(context, (list, tuple)):
        return type(context).__name__, tuple([_kept(value) for value in context])
    if type(context).__eq__ is object.__eq__:
        return context
    return copy.deepcopy(context)
