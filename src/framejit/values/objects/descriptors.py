"""The descriptor protocol: what an attribute found on a class gives for an instance.

In: the raw object from a class's ``__dict__`` and the value it was asked of. Out: a bound method, a
property's frame, a slot's content, or the object itself. Next room: interpreter.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.opaque import is_computed
from framejit.native import c_attribute
from framejit.source import Source
from framejit.values.core import complaints
from framejit.values.core.base import (
    Args,
    Declared,
    Kwargs,
    Value,
    is_heap_class,
    is_user_class,
)
from framejit.values.core.constants import is_alias, wrap_opaque
from framejit.values.core.namespaces import instance_dict
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import LOOKASIDES, Result, wraps
from framejit.values.core.space import Space
from framejit.values.objects.functions import BoundBuiltin, BuiltinValue, MethodValue

_C_METHODS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip
#: What makes C functions methods of classes in C++ (CPython has no name for it).
_INSTANCE_METHOD = type(torch._C.Graph.__dict__["alias_db"])
#: Descriptors of what is kept outside of ``__dict__``.
C_DATA = (types.GetSetDescriptorType, types.MemberDescriptorType)


class _Nobody:
    pass


def property_lacks(space: Space, raw: property, cls: type, access: Any, *args: Any) -> Any:
    """The error of a property without the function that ``access`` needs; only CPython knows the
    property's own name."""
    try:
        access(raw, _Nobody(), *args)
    except AttributeError as error:
        text = str(error).replace(repr(_Nobody.__qualname__), repr(cls.__qualname__))
        return space.raise_error(AttributeError, text)


def bind(space: Space, found: ClassAttribute, value: Value, cls: type, name: str) -> Result:
    """``type(value).__dict__[name].__get__(value, type(value))``."""
    raw, source = found.raw, found.source
    kind = type(raw)
    if kind is types.FunctionType or kind is functools._lru_cache_wrapper:
        return MethodValue(space.load(source, raw), value)
    if value.is_constant and is_computed(cls, name):
        return BoundBuiltin(value, name)
    if kind is _INSTANCE_METHOD:
        return MethodValue(space.load(source.child("attr", "__func__"), raw.__func__), value)
    if kind is property or (
        issubclass(kind, property) and kind.__get__ is property.__get__  # type: ignore[attr-defined]
    ):
        if raw.fget is None:
            return property_lacks(space, raw, cls, property.__get__)
        return space.call(space.load(source.child("attr", "fget"), raw.fget), [value], {})
    if kind is staticmethod:
        return space.load(source.child("attr", "__func__"), raw.__func__)
    if kind is classmethod:
        return bind_to_class(space, found, space.class_value(cls), name)
    if kind in _C_METHODS:
        if kind is not types.ClassMethodDescriptorType and raw.__objclass__ not in cls.__mro__:
            raise GraphBreak("FJ0151", f"{raw.__qualname__} of an object of another class")
        if raw.__name__ != name:  # under another name: `__getattr__ = dict.__getitem__`
            return MethodValue(space.load(source, raw), value)
        if kind is types.ClassMethodDescriptorType:
            return BoundBuiltin(space.class_value(cls), name, raw)
        if found.owner is object:
            return ObjectMethodValue(value, name)
        return BoundBuiltin(value, name)
    if kind in C_DATA:
        if name == "__dict__":
            return instance_dict(space, value)
        if name == "__class__":
            return space.class_value(cls)
        return _c_data(space, value, name, found.owner)
    if kind is functools.cached_property:
        return _cached_property(space, found, value, name)
    getter = type(raw).__dict__.get("__get__") if hasattr(type(raw), "__get__") else None
    if getter is None and not hasattr(type(raw), "__get__"):
        if is_user_class(kind):  # it can become a descriptor later
            space.class_attribute(kind, "__get__")
        return space.load(source, raw)
    if issubclass(kind, (types.BuiltinFunctionType, type)):
        return space.load(source, raw)
    if not is_user_class(kind) and _hashable(raw) and raw in LOOKASIDES:
        return MethodValue(space.load(source, raw), value)
    if kind is functools.partial and complaints.partials_bind():
        return MethodValue(space.load(source, raw), value)
    # A user-defined descriptor: its __get__ is ordinary Python.
    descriptor = space.load(source, raw)
    method = space.special_method(descriptor.realize(), "__get__")
    if method is None:
        raise GraphBreak("FJ0151", f"the descriptor {name!r} of {cls.__qualname__}")
    return space.call(method, [value, space.class_value(cls)], {})


def bind_none(space: Space, found: ClassAttribute, cls: Value, name: str) -> Result:
    """``cls.__dict__[name].__get__(None, cls)``."""
    raw, source, kind = found.raw, found.source, type(found.raw)
    if kind is staticmethod:
        return space.load(source.child("attr", "__func__"), raw.__func__)
    if kind is classmethod:
        return bind_to_class(space, found, cls, name)
    if kind is types.ClassMethodDescriptorType:
        return BoundBuiltin(cls, name, raw)
    if kind in _C_METHODS or kind is types.BuiltinMethodType:
        return BuiltinValue(raw, source)
    if kind is _INSTANCE_METHOD and not _gives_descriptors(getattr(cls, "cls", type)):
        return space.load(source.child("attr", "__func__"), raw.__func__)
    if kind is not functools.cached_property and not issubclass(kind, type):
        getter = space.class_attribute(kind, "__get__")
        if getter is not None and type(getter.raw) is types.FunctionType:
            method = space.special_method(space.load(source, raw).realize(), "__get__")
            assert method is not None
            return space.call(method, [space.constant(None), cls], {})
    return space.load(source, raw)


def _gives_descriptors(cls: type) -> bool:
    """Has it pybind11's metaclass, which gives what makes methods as it is?"""
    return type(cls).__getattribute__ is not type.__getattribute__


def bind_to_class(space: Space, found: ClassAttribute, cls: Value, name: str) -> Result:
    """What a ``classmethod`` gives: what it wraps may be a descriptor itself."""
    inner, source = found.raw.__func__, found.source.child("attr", "__func__")
    if complaints.class_methods_chain() and hasattr(type(inner), "__get__"):
        wrapped = ClassAttribute(inner, source, found.owner)
        return bind(space, wrapped, cls, cls.python_type(), name)
    return MethodValue(space.load(source, inner), cls)


def _hashable(obj: Any) -> bool:
    return type(obj).__hash__ is not None


def _c_data(space: Space, value: Value, name: str, owner: type) -> Result:
    """A slot or a C-level attribute: read from the object itself, no user code runs."""
    slots = value.attributes
    stored = None if slots is None else slots.get(name)
    if stored is not None:
        return stored
    obj = value.obj
    if value.source is None or obj is None or (slots is not None and name in slots):
        if slots is not None and is_heap_class(owner):  # C classes have more than is modelled
            return space.raise_error(
                AttributeError, complaints.empty_slot(value.python_type(), name)
            )
        raise GraphBreak("FJ0151", f"attribute {name!r} of a {value.describe()}")
    if issubclass(type(obj), torch.Tensor) and not is_heap_class(owner):  # no slot
        raise GraphBreak("FJ0111", f"attribute {name!r} of a tensor")
    try:
        content = c_attribute(obj, name)
    except AttributeError as error:
        space.guard(value.source.child("attr", name), "ABSENT")
        return space.raise_real(error)
    except Exception as error:  # as of what autograd has let go of
        kind = type(error).__name__
        raise GraphBreak("FJ0151", f"attribute {name!r} raises {kind}") from error
    child = value.source.child("attr", name)
    if is_alias(type(content)) and c_attribute(obj, name) is not content:  # each read makes one
        return wrap_opaque(space, child, content)
    return space.load(child, content)


def _cached_property(space: Space, found: ClassAttribute, value: Value, name: str) -> Result:
    function = space.load(found.source.child("attr", "func"), found.raw.func)
    result = space.call_now(function, [value])
    space.setattr(value, name, result)
    return result


def is_data_descriptor(raw: Any) -> bool:
    """Is the class attribute written, and not the instance's ``__dict__``?"""
    kind = type(raw)
    if kind is types.FunctionType or kind in _C_METHODS:
        return False
    if kind is property or kind in C_DATA:
        return True
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")


@wraps(
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip
def _wrap_builtin(space: Space, source: Source, obj: Any) -> Value:
    receiver = getattr(obj, "__self__", None)
    raw = None if receiver is None else _descriptor_of(obj, receiver)
    by_itself = types.ModuleType, types.GetSetDescriptorType
    if receiver is None or isinstance(receiver, by_itself) or (
        isinstance(receiver, type) and type(raw) is not types.ClassMethodDescriptorType
    ) or getattr(type(receiver), "__module__", "").startswith("pybind11"):  # fmt: skip
        space.guard(source, "ID_MATCH", obj)
        return space.remember(obj, BuiltinValue(obj, source))
    # A method of an existing object: [].append kept in a variable.
    name = obj.__name__
    space.guard(source, "TYPE_MATCH", type(obj))
    space.guard(source.child("attr", "__name__"), "EQUALS_MATCH", name)
    if type(obj) is types.MethodWrapperType:
        space.guard(source.child("attr", "__objclass__"), "ID_MATCH", obj.__objclass__)
    elif sum(name in base.__dict__ for base in _where(receiver).__mro__) > 1:  # which one is it?
        space.guard(source.child("call", _made_from), "ID_MATCH", raw)
    bound = space.load(source.child("attr", "__self__"), receiver)
    if object.__dict__.get(name) is raw is not None:
        return space.remember(obj, ObjectMethodValue(bound, name, source))
    found = None if isinstance(receiver, type) else space.class_attribute(type(receiver), name)
    if found is not None and found.raw is raw:
        raw = None
    return space.remember(obj, BoundBuiltin(bound, name, raw, source))


def _descriptor_of(method: Any, receiver: Any) -> Any:
    """What a bound method in C was made from; ``super()`` finds others than the receiver does."""
    if type(method) is types.MethodWrapperType:
        return method.__objclass__.__dict__[method.__name__]
    cls = _where(receiver)
    for base in cls.__mro__:
        raw: Any = base.__dict__.get(method.__name__)
        if type(raw) in _C_METHODS:
            if raw.__get__(None if cls is receiver else receiver, cls) == method:
                return raw
    return None


def _where(receiver: Any) -> type:
    """The class whose bases are searched for methods of the receiver."""
    return receiver if isinstance(receiver, type) else type(receiver)


def _made_from(method: Any) -> Any:
    return _descriptor_of(method, method.__self__)


class ObjectMethodValue(Declared):
    """A method of ``object`` bound to a value: ``obj.__setattr__`` when nothing overrides it."""

    receiver: Value
    name: str
    source: Source | None = None
    kind = types.MethodWrapperType

    @property
    def raw(self) -> Any:
        """The C descriptor itself."""
        return object.__dict__[self.name]

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        return space.object_method(self.name, [self.receiver, *args], kwargs)
