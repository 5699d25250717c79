"""`torch.nn.Module` instances: where their members live, and which assignments are plain.

In: a module's `ObjectValue` and an attribute name. Out: the member's value, read from the module's
own
``_parameters`` / ``_buffers`` / ``_modules``, guarded like any dictionary entry. Calls of modules
need nothing here: ``Module.__call__`` and its hooks are ordinary Python that is traced through.
Next room: interpreter.
"""

from __future__ import annotations

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from framejit.classes import is_compiled_from
from framejit.exc import GraphBreak, NotYet
from framejit.values.containers.mappings import DictValue, existing_dict
from framejit.values.core.base import Args, Kwargs, Raised, Value
from framejit.values.core.carried import with_known_class
from framejit.values.core.constants import ConstantValue, OpaqueValue
from framejit.values.core.keys import pin, real_object
from framejit.values.core.namespaces import own_attribute
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.instances import MODULE_GETATTR, ObjectValue
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.torch_library import as_written

_MEMBERS = ("_parameters", "_buffers", "_modules")


def module_member(space: Space, module: ObjectValue, name: str) -> Value | None:
    """What ``Module.__getattr__`` finds; None if it is overridden or finds nothing."""
    hook = space.class_attribute(module.cls, "__getattr__")
    if hook is None or hook.raw is not MODULE_GETATTR:
        return None
    for kind in _MEMBERS:
        members = _members(space, module, kind)
        pair = None if members is None else members.lookup(space, name)
        if pair is not None:
            return pair[1]
    return None


@lookaside(LazyModuleMixin._infer_parameters)
def _infer_parameters(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """The module becomes an ordinary one at its first call, which runs as plain Python. One that
    the program makes in each call never is."""
    module = args[0].realize()
    if space.task.may_wait and module.source is not None:
        raise NotYet(f"a {module.describe()} gets its parameters")
    return as_written(space, LazyModuleMixin._infer_parameters, args, kwargs)


@lookaside(is_compiled_from)
def _is_compiled_from(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """A compiled module is compared."""
    module, other = (one.realize() for one in args)
    if real_object(other) is None:  # made while capturing
        return ConstantValue(NotImplemented)
    pin(space, other)
    return ConstantValue(is_compiled_from(real_object(module), real_object(other)))


def _members(space: Space, module: ObjectValue, kind: str) -> DictValue | None:
    """The module's own dict of members of this kind."""
    value = module.instance_attribute(space, kind)
    if value is None:
        return None
    if type(value) is LazyValue and value.value is None and type(value.obj) is dict:
        known = space.known_value(value.obj)  # its class needs no guard: it is read as a dict
        if known is None:
            known = space.remember(value.obj, existing_dict(space, value.source, value.obj))
            value.value = known
    members = value.realize()
    if not isinstance(members, DictValue):
        raise GraphBreak("FJ0151", f"{kind} of a {module.describe()} is no dict")
    return members


def module_setattr(space: Space, module: ObjectValue, name: str, value: Value) -> bool:
    """``Module.__setattr__`` for plain values and existing buffers; False: trace it."""
    value = with_known_class(space, value)
    if isinstance(value, ObjectValue) and issubclass(value.cls, torch.nn.Module):
        return False
    if type(value) is OpaqueValue and isinstance(value.obj, torch.Tensor):
        return False  # of a class of tensors of the program's: it may be a parameter
    if isinstance(value, TensorValue) and (
        value.cls is not torch.Tensor
        or has_flag(space, value, "_is_buffer")
        or has_flag(space, value, "_is_param")
    ):
        return False
    for kind in _MEMBERS:
        members = _members(space, module, kind)
        if members is None or members.lookup(space, name) is None:
            continue
        if kind == "_buffers" and isinstance(value, TensorValue):
            members.store(space, name, space.constant(name), value)
            return True
        return False
    module.plain_setattr(space, name, value)
    return True


def has_flag(space: Space, value: TensorValue, name: str) -> bool:
    """Is the attribute ``name`` of a tensor true?"""
    if value.obj is None and not value.metadata().wraps:
        own = own_attribute(space, value, name)
        return own is not None and space.truth(own)
    if value.obj is not None and name not in value.obj.__dict__ and hasattr(value.cls, name):
        return bool(getattr(value.obj, name))  # of the subclass
    try:
        return space.truth(space.now(value.getattr(space, name)))
    except Raised:
        return False
