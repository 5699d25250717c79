"""`torch.nn.Module` instances: where their members live, and which assignments are plain.

In: a module's `ObjectValue` and an attribute name. Out: the member's value, read from the module's
own
``_parameters`` / ``_buffers`` / ``_modules``, guarded like any dictionary entry. Calls of modules
need nothing here: ``Module.__call__`` and its hooks are ordinary Python that is traced through.
Next room: interpreter.
"""

from __future__ import annotations

import torch

from framejit.values.base import Value
from framejit.values.carried import with_known_class
from framejit.values.objects import ObjectValue, instance_namespace
from framejit.values.space import Space
from framejit.values.tensors import TensorValue, has_flag

_MEMBERS = ("_parameters", "_buffers", "_modules")


def module_member(space: Space, module: ObjectValue, name: str) -> Value | None:
    """What ``Module.__getattr__`` finds; None if it is overridden or finds nothing."""
    hook = space.class_attribute(module.cls, "__getattr__")
    if hook is None or hook.raw is not torch.nn.Module.__getattr__:
        return None
    namespace = instance_namespace(module.obj)
    if namespace is None or module.source is None:
        return None
    for kind in _MEMBERS:
        if kind in module.attributes:  # the dictionary itself was replaced
            replaced = module.attributes[kind]
            if replaced is not None and space.contains(replaced, space.constant(name)):
                return space.now(space.getitem(replaced, space.constant(name)))
            continue
        members = namespace.get(kind)
        if members is None:
            continue
        known = space.known_value(members)
        if known is not None and getattr(known, "mutated", False):
            if space.contains(known, space.constant(name)):
                return space.now(space.getitem(known, space.constant(name)))
            continue
        source = module.source.child("dict").child("item", kind).child("item", name)
        if name in members:
            return space.load(source, members[name])
        space.guard(source, "ABSENT")
    return None


def module_setattr(space: Space, module: ObjectValue, name: str, value: Value) -> bool:
    """``Module.__setattr__`` for plain values and existing buffers; False: trace it."""
    value = with_known_class(space, value)
    if isinstance(value, ObjectValue) and issubclass(value.cls, torch.nn.Module):
        return False
    if isinstance(value, TensorValue) and (
        issubclass(value.cls, torch.nn.Parameter) or has_flag(space, value, "_is_buffer")
    ):
        return False
    if module.obj is None or any(kind in module.attributes for kind in _MEMBERS):
        return False
    namespace = instance_namespace(module.obj)
    if namespace is None or module.source is None:
        return False
    owner = None
    for kind in _MEMBERS:
        members = namespace.get(kind)
        if members is not None and module_has(space, module, kind, name):
            owner = kind
            break
    if owner is None:
        module.plain_setattr(space, name, value)
        return True
    if owner == "_buffers" and isinstance(value, TensorValue):
        source = module.source.child("dict").child("item", owner)
        space.setitem(space.load(source, namespace[owner]), space.constant(name), value)
        return True
    return False


def module_has(space: Space, module: ObjectValue, kind: str, name: str) -> bool:
    """Is ``name`` one of the module's members of this kind?"""
    assert module.source is not None
    source = module.source.child("dict").child("item", kind)
    members = space.load(source, instance_namespace(module.obj)[kind])  # type: ignore[index]
    return space.contains(members, space.constant(name))
