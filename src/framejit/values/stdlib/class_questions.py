"""Questions about classes: ``isinstance()``, ``issubclass()`` and class patterns.

In: a value and classes. Out: what CPython answers, with everything guarded that can change it:
bases, registrations with abstract classes, a ``__class__`` of the object's own; metaclasses with
hooks of the program's are asked. Next room: interpreter.
"""

from __future__ import annotations

import builtins
import contextlib
import types
import typing
import weakref
from abc import ABCMeta
from typing import Any, NamedTuple

import torch

from framejit.exc import GraphBreak
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Value, is_user_class, real_class
from framejit.values.core.methods import builtin, stand_in
from framejit.values.core.registry import LOOKASIDES, Result
from framejit.values.core.space import Space
from framejit.values.torch.nn_modules import has_flag
from framejit.values.torch.tensors import TensorValue


@builtin(isinstance, 2)
def _isinstance(space: Space, value: Value, classes: Value) -> Result:
    value = value.realize()
    return _check_class(space, value, classes.realize(), value.python_type(), "isinstance")


@builtin(issubclass, 2)
def _issubclass(space: Space, value: Value, classes: Value) -> Result:
    cls = real_class(value)
    if cls is None:
        return space.raise_error(TypeError, "issubclass() arg 1 must be a class")
    return _check_class(space, value.realize(), classes.realize(), cls, "issubclass")


def _check_class(space: Space, value: Value, classes: Value, cls: type, function: str) -> Result:
    """``isinstance(value, classes)``, or ``issubclass``; ``cls`` is the class to be judged."""
    wanted = real_class(classes)
    if wanted is not None:
        meta = type(wanted)
        if cls is not wanted:
            space.guard_order(cls)
        if cls is wanted and function == "isinstance":  # the metaclass is not asked
            return space.constant(True)
        found = None if meta is type else space.class_attribute(meta, _HOOKS[function])
        if found is not None and found.owner not in (type, ABCMeta):
            return _ask_metaclass(space, value, classes, cls, function, found.raw)
        if found is not None and found.owner is ABCMeta and _has_python_hook(wanted):
            return _ask_hook(space, value, classes, function)
        fits = _is_subclass(space, cls, wanted)
        if not fits and function == "isinstance" and _answers_for_class(cls):
            claimed = real_class(space.getattr_now(value, "__class__"))
            fits = claimed is not None and _is_subclass(space, claimed, wanted)
        return space.constant(fits)
    if issubclass(classes.python_type(), tuple):
        for item in space.items(classes):
            answer = space.now(_check_class(space, value, item.realize(), cls, function))
            if space.truth(answer):
                return space.constant(True)
        return space.constant(False)
    real = classes.as_python() if classes.is_constant else classes.obj
    if isinstance(real, types.UnionType):
        parts = TupleValue([space.constant(part) for part in real.__args__])
        return _check_class(space, value, parts, cls, function)
    if isinstance(real, types.GenericAlias):
        raise GraphBreak("FJ0136", f"{function}() of {real}")
    if space.class_attribute(classes.python_type(), _HOOKS[function]) is not None:
        return _ask_hook(space, value, classes, function)
    space.run_real(getattr(builtins, function), int, stand_in(classes))
    raise GraphBreak("FJ0136", f"{function}() of {real}")


def _answers_for_class(cls: type) -> bool:
    """May its instances say something other than ``cls`` of their ``__class__``? (Not guarded.)"""
    return cls in weakref.ProxyTypes or (
        is_user_class(cls)
        and any(
            name in base.__dict__
            for base in cls.__mro__[:-1]
            if is_user_class(base)
            for name in ("__class__", "__getattribute__")
        )
    )


class _Subclass(NamedTuple):
    """Asks a class with a registry whether ``cls`` is a subclass."""

    cls: type

    def __call__(self, wanted: type) -> bool:
        return issubclass(self.cls, wanted)


def _is_subclass(space: Space, cls: type, wanted: type) -> bool:
    """``issubclass(cls, wanted)``; classes can be registered with abstract ones, or changed."""
    answer = issubclass(cls, wanted)
    known = not is_user_class(cls) and not is_user_class(wanted)
    if type(wanted) is not type and not known and wanted not in cls.__mro__:
        asked = space.class_source(wanted).child("call", _Subclass(cls))
        space.guard(asked, "ID_MATCH", answer)
    return answer


_HOOKS = {"isinstance": "__instancecheck__", "issubclass": "__subclasscheck__"}


def _ask_hook(space: Space, value: Value, classes: Value, function: str) -> Result:
    method = space.special_method(classes, _HOOKS[function])
    assert method is not None
    return space.constant(space.truth(space.call_now(method, [value])))


def _ask_metaclass(
    space: Space, value: Value, classes: Value, cls: type, function: str, raw: Any
) -> Result:
    """Classes whose metaclass may have its own idea of instances and subclasses."""
    wanted = real_class(classes)
    assert wanted is not None
    if issubclass(wanted, torch.nn.Parameter | torch.nn.Buffer) and function == "isinstance":
        if issubclass(cls, wanted):
            return space.constant(True)
        if wanted is not torch.nn.Parameter and wanted is not torch.nn.Buffer:
            return space.constant(False)
        flag = "_is_param" if wanted is torch.nn.Parameter else "_is_buffer"
        if isinstance(value, TensorValue):
            return space.constant(has_flag(space, value, flag))
        if not issubclass(cls, torch.Tensor):
            return space.constant(False)
        # A class of tensors of the program's: `Parameter(data)` marks an object of it.
        found = LOOKASIDES[getattr](space, [value, space.constant(flag), space.constant(False)], {})
        return space.constant(space.truth(space.now(found)))
    hooked = type(wanted).__module__ == "typing" and hasattr(wanted, "_is_protocol")
    if hooked and function == "isinstance":
        return space.constant(_fits_protocol(space, value, cls, wanted))
    if type(raw) is not types.FunctionType:
        if issubclass(cls, torch.Tensor):  # torch.FloatTensor and the like look at the dtype
            fake = getattr(value, "fake", None)
            if function == "isinstance":
                if fake is None:
                    raise GraphBreak(
                        "FJ0121", f"isinstance() of a {value.describe()} that is not traced"
                    )
                return space.constant(isinstance(fake(space), wanted))
        return space.constant(issubclass(cls, wanted))
    return _ask_hook(space, value, classes, function)


def _fits_protocol(space: Space, value: Value, cls: type, wanted: Any) -> bool:
    """Does the instance have all that a runtime-checkable protocol names?"""
    if wanted in cls.__mro__:
        return True
    answer = False
    with contextlib.suppress(TypeError):  # it has members that are not methods
        answer = issubclass(cls, wanted)
    if not wanted._is_protocol:
        return answer
    for name in sorted(typing._get_protocol_attrs(wanted)):  # type: ignore[attr-defined]
        found = LOOKASIDES[hasattr](space, [value, space.constant(name)], {})
        if not space.truth(space.now(found)):
            return answer
        if callable(getattr(wanted, name, None)):  # a method set to None is none
            if space.getattr_now(value, name).is_none():
                return answer
    return True


def _has_python_hook(wanted: type) -> bool:
    """A ``__subclasshook__`` that is neither object's nor one of the standard library's."""
    for base in wanted.__mro__:
        if "__subclasshook__" in base.__dict__ and base is not object:
            return base.__module__ not in ("collections.abc", "typing", "os", "contextlib")
    return False
