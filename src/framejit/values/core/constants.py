"""Constants: known immutable Python objects, and objects that are only ever compared by identity.

In: Python objects. Out: `ConstantValue` (operations on constants alone are folded by running them),
`OpaqueValue` (carried through, compared, never looked into) and `PythonModuleValue`.
Next room: interpreter.
"""

from __future__ import annotations

import collections.abc
import decimal
import enum
import fractions
import importlib
import operator
import threading
import types
import typing
from collections.abc import Iterable
from typing import Any

import torch

from framejit import native
from framejit.exc import GraphBreak
from framejit.graph import instalments
from framejit.source import Source
from framejit.values.core.amounts import check_count, check_size
from framejit.values.core.base import Value, hides_own_attribute, is_user_class, type_name
from framejit.values.core.methods import stand_in
from framejit.values.core.namespaces import instance_dict, own_attribute, store_own
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import (
    BINARY_METHODS,
    COMPARE_METHODS,
    MAKERS,
    METHODS,
    Rank,
    Result,
    wraps,
    wraps_classes,
)
from framejit.values.core.space import Space

#: Types whose instances are immutable through and through: folding any method of theirs is safe.
PURE_TYPES: set[type] = {
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented),
    range, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.finfo,
    torch._C._SDPBackend,
    torch.iinfo, types.CodeType, decimal.Decimal, fractions.Fraction,
}  # fmt: skip
#: Those of which a guard tells equal ones apart that are not the same (``Decimal("1.0")`` and
#: ``Decimal("1.00")`` are equal, and so are numpy's zeros of either sign).
_EXACT = PURE_TYPES - {decimal.Decimal}
#: Equal ones are one object.
BY_IDENTITY: frozenset[type] = frozenset(
    {
        type(None), bool, type(Ellipsis), type(NotImplemented), torch.dtype, torch.layout,
        torch.memory_format, types.CodeType,
    }
)  # fmt: skip


class ConstantValue(Value):
    """A known immutable object. ``source`` is set when a guard already pins its value."""

    __slots__ = ("value",)
    is_constant = True

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return type(self.value)

    def as_python(self) -> Any:
        return self.value

    def truth(self, space: Space) -> bool:
        if self.value is NotImplemented:  # an error or a warning
            raise GraphBreak("FJ0155", "NotImplemented is used as a truth value")
        if isinstance(self.value, enum.Enum):  # it may get methods
            for name in ("__bool__", "__len__"):
                space.class_attribute(type(self.value), name)
        return bool(self.value)

    def getattr(self, space: Space, name: str) -> Result:
        value = self.value
        if isinstance(value, enum.Enum):
            return _enum_getattr(space, self, value, name)
        cls = type(value)
        if cls.__module__ == "typing":
            return constant_value(space, space.run_real(getattr, value, name))
        if issubclass(cls, types.GenericAlias) and name not in _OWN_OF_ALIASES:
            return space.getattr(constant_value(space, value.__origin__), name)
        found = space.class_attribute(cls, name)
        if found is None:
            return space.generic_getattr(self, name)
        if isinstance(
            found.raw, (types.GetSetDescriptorType, types.MemberDescriptorType, property)
        ):
            return constant_value(space, getattr(value, name))
        return space.bind_class_attribute(found, self, cls, name)

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """A C-level method of an immutable type: folded when the arguments are constants."""
        handler = METHODS.get((type(self.value), name))
        if handler is not None:
            return handler(space, self.value, args, kwargs)
        return fold(space, getattr(self.value, name), args, kwargs, f"str.{name}", self)

    def getitem(self, space: Space, key: Value) -> Result:
        return fold(space, operator.getitem, [self, key], {}, "indexing")

    def contains(self, space: Space, item: Value) -> Value:
        item = item.realize()
        cls, own = item.python_type(), type(self.value)
        if item.is_constant and (own not in (str, bytes) or type(item.as_python()) is cls):
            return ConstantValue(space.run_real(operator.contains, self.value, item.as_python()))
        if own is frozenset:  # it is found by its hash
            plain = space.as_set(self)
            assert plain is not None
            return plain.contains(space, item)
        if own in (str, bytes) or self.items_now(space) is None:
            takes = (str,) if own is str else (bytes, int) if own is bytes else ()
            iterable = any(hasattr(own, name) for name in ("__contains__", "__iter__"))
            if (iterable and own not in (str, bytes)) or (
                own is bytes and hasattr(cls, "__index__")
            ):
                raise GraphBreak("FJ0155", f"`in` of a {type_name(cls)} and a {type_name(own)}")
            if not issubclass(cls, takes):
                space.run_real(operator.contains, self.value, stand_in(item))  # raises
        return ConstantValue(any(space.equal(element, item) for element in space.items(self)))

    def len(self, space: Space) -> Value:
        return ConstantValue(space.run_real(len, self.value))

    def iter(self, space: Space) -> Value:
        return space.iter_constant(self)

    def items_now(self, space: Space) -> list[Value] | None:
        if type(self.value) in (str, bytes, range, frozenset, tuple):
            check_count(len(self.value))
            return [constant_value(space, item) for item in self.value]
        return None

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        if callable(self.value):
            raise GraphBreak("FJ0133", f"calling a {type_name(type(self.value))}")
        text = f"{type_name(type(self.value))!r} object is not callable"
        return space.raise_error(TypeError, text)

    def __repr__(self) -> str:
        return f"<constant {self.value!r}>"


class OpaqueValue(Value):
    """An object that is carried through and compared by identity; its C-level, non-callable
    attributes can be read, everything else about it is a graph break."""

    __slots__ = ("namespace", "obj")

    def __init__(self, obj: Any, source: Source) -> None:
        self.obj = obj
        self.source: Source = source
        self.namespace: Any = None

    def python_type(self) -> type:
        return type(self.obj)

    def getattr(self, space: Space, name: str) -> Result:
        cls = type(self.obj)
        if cls in _TYPE_PARAMETERS and name in _LATE:
            raise GraphBreak("FJ0151", f"{name} of a {self.describe()}, which is computed then")
        for hook in ("__getattribute__", "__getattr__"):
            found = space.class_attribute(cls, hook)
            if found is not None and (
                isinstance(found.raw, types.FunctionType)
                or not (native.has_generic_getattr(cls) or found.owner is threading.local)
            ):
                raise GraphBreak("FJ0151", f"attribute {name!r} of a {self.describe()}")
        found = space.class_attribute(cls, name)
        data = found is not None and hides_own_attribute(found.raw)
        if self._is_of_thread() and name == "__dict__":
            return instance_dict(space, self)
        if (cls.__dictoffset__ or self._is_of_thread()) and not data:
            own = own_attribute(space, self, name)
            if own is not None:
                return own
        return space.generic_getattr(self, name)

    def _is_of_thread(self) -> bool:
        """Has it other attributes in each thread?"""
        if not issubclass(type(self.obj), threading.local):
            return False
        instalments.apart("the attributes of a threading.local object")
        return True

    def setattr(self, space: Space, name: str, value: Value) -> None:
        self._write(space, name, "__setattr__")
        store_own(space, self, name, value)

    def delattr(self, space: Space, name: str) -> None:
        self._write(space, name, "__delattr__")
        if own_attribute(space, self, name) is None:
            text = f"{type_name(type(self.obj))!r} object has no attribute {name!r}"
            space.raise_error(AttributeError, text)
        store_own(space, self, name, None)

    def _write(self, space: Space, name: str, method: str) -> None:
        """Only an attribute of the object's own ``__dict__`` can be written."""
        cls = type(self.obj)
        setter, found = space.class_attribute(cls, method), space.class_attribute(cls, name)
        data = found is not None and hasattr(type(found.raw), "__set__")
        usual = threading.local if self._is_of_thread() else object
        has_dict = cls.__dictoffset__ or usual is not object
        if not has_dict or data or setter is None or setter.owner is not usual:
            raise GraphBreak("FJ0152", f"assigning attribute {name!r} of a {self.describe()}")

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Value | None:
        name = BINARY_METHODS[op][1 if reflected else 2 if inplace else 0]
        if space.class_attribute(type(self.obj), name) is None:
            return None
        raise GraphBreak("FJ0155", f"`{op}` on a {self.describe()}")

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        found = space.class_attribute(type(self.obj), COMPARE_METHODS[op][0])
        if found is None or found.owner is object:
            return None
        raise GraphBreak("FJ0155", f"`{op}` on a {self.describe()}")

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        raise GraphBreak("FJ0133", f"calling {type(self.obj).__qualname__}.{name}()")


#: Modules that torch imports when somebody asks for the attribute, which is there from then on.
_LATE_MODULES: frozenset[str] = frozenset(getattr(torch, "_lazy_modules", ()))


class PythonModuleValue(Value):
    """A module object: attribute reads are guarded entries of its ``__dict__``."""

    __slots__ = ("module",)

    def __init__(self, module: types.ModuleType, source: Source) -> None:
        self.module = module
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.module)

    def getattr(self, space: Space, name: str) -> Result:
        module = self.module
        namespace = module.__dict__
        if name == "__dict__":
            return space.globals_value(namespace)
        found = self._descriptor(space, name)
        if found is not None:
            if isinstance(found.raw, property):
                raise GraphBreak("FJ0151", f"the property {name!r} of module {module.__name__}")
            return space.bind_class_attribute(found, self, type(module), name)
        changed = space.effects.globals_value(namespace, name)
        if changed is not None and changed.value is not None:
            return changed.value
        if module is torch and name in _LATE_MODULES and name not in namespace:
            importlib.import_module(f"torch.{name}")  # what torch does when it is asked for it
        # The module object itself is pinned by identity, so its namespace is a constant root.
        root = space.globals_source(namespace)
        deleted = changed is not None and changed.deleted
        if name in namespace and not deleted:
            return space.load(root.child("item", name), namespace[name])
        if found := space.class_attribute(type(module), name):
            return space.bind_class_attribute(found, self, type(module), name)
        hook = space.class_attribute(type(module), "__getattr__")
        if hook is not None or "__getattr__" in namespace:  # lazily importing packages, torch.ops
            own = namespace.get("__getattr__")
            if deleted:
                raise GraphBreak("FJ0151", f"{name!r} of a module, which has been deleted")
            if type(own) is types.FunctionType and hook is None:
                space.guard(root.child("item", name), "ABSENT")
                function = space.load(root.child("item", "__getattr__"), own)
                return space.call(function, [ConstantValue(name)], {})
            asked = space.const_source(module, f"module {module.__name__}").child("attr", name)
            try:
                obj = getattr(module, name)
            except AttributeError as error:
                space.guard(asked, "ABSENT")
                return space.raise_real(error)
            if name in namespace:  # it has cached the attribute
                return space.load(root.child("item", name), obj)
            return space.load(asked, obj)
        for absent in ("__getattr__",) if deleted else ("__getattr__", name):
            space.guard(root.child("item", absent), "ABSENT")
        called = self._own_name(space)
        return space.raise_error(AttributeError, f"module{called} has no attribute {name!r}")

    def _own_name(self, space: Space) -> str:
        """What messages say after "module"."""
        namespace = self.module.__dict__
        changed = space.effects.globals_value(namespace, "__name__")
        if changed is None:
            own = namespace.get("__name__")
        else:
            own = None if changed.value is None else changed.value.realize().as_python()
        return f" {own!r}" if type(own) is str else ""

    def _descriptor(self, space: Space, name: str) -> ClassAttribute | None:
        """What a class of modules of the program's has before the module itself: the switches of
        ``torch.backends.cudnn`` are such."""
        cls = type(self.module)
        if cls is types.ModuleType:
            return None
        hook = space.class_attribute(cls, "__getattribute__")
        if hook is not None and type(hook.raw) is types.FunctionType:
            raise GraphBreak("FJ0151", f"attribute {name!r} of a {self.describe()}")
        found = space.class_attribute(cls, name)
        return found if found is not None and hides_own_attribute(found.raw) else None

    def _check_written(self, space: Space, name: str, method: str) -> None:
        """GraphBreak where the class of the module writes the attribute in its own way."""
        own = space.overriding(self, type(self.module), method) is not None
        if own or self._descriptor(space, name) is not None:
            raise GraphBreak("FJ0152", f"assigning attribute {name!r} of a {self.describe()}")

    def setattr(self, space: Space, name: str, value: Value) -> None:
        self._check_written(space, name, "__setattr__")
        space.store_global(self.module.__dict__, name, value)

    def delattr(self, space: Space, name: str) -> None:
        self._check_written(space, name, "__delattr__")
        if space.own_global(self.module.__dict__, name) is None:
            kind = type_name(type(self.module))
            space.raise_error(AttributeError, f"{kind!r} object has no attribute {name!r}")
        space.store_global(self.module.__dict__, name, None)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        return space.raise_error(TypeError, "'module' object is not callable")


def constant_value(space: Space, obj: Any) -> Value:
    """A value for an object that is known at capture time and needs no guard of its own."""
    kind = type(obj)
    if kind in PURE_TYPES or kind is frozenset or computes_as_python(kind):
        if kind is decimal.Decimal:
            guard_decimal_context(space)
        return ConstantValue(obj)
    maker = MAKERS.get(kind)
    if maker is not None:
        return maker(space, obj)
    known = space.known_value(obj)
    if known is not None:
        return known
    if is_alias(kind) and any(space.makes_class(cls) for cls in classes_in(obj)):
        raise GraphBreak("FJ0153", f"making {obj} of a class that each call makes")
    # Anything else that code of this very process refers to: held by the entry itself.
    return space.load(space.const_source(obj, f"const {kind.__name__}"), obj)


def new_number(space: Space, number: Any) -> Value:
    """The value of a size: each read of one makes an int of its own, but for the small ones."""
    # Adding makes one, too: the metadata of a tensor has the same for all reads.
    return constant_value(space, number + 0 if type(number) is int else number)


def decimal_context() -> tuple[Any, ...]:
    """What the results of decimal arithmetic depend on."""
    now = decimal.getcontext()
    traps = tuple(sorted(kind.__name__ for kind, trapped in now.traps.items() if trapped))
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


def guard_decimal_context(space: Space) -> None:
    """The results of decimal arithmetic are used."""
    guard_state(space, "decimal context", decimal_context, decimal_context())


def guard_state(space: Space, name: str, function: Any, answer: Any) -> None:
    """What a function of ours says about the state of the thread is as it is now."""
    asked = space.const_source(function, name).child("call", operator.call)
    space.guard(asked, "EQUALS_MATCH", answer)


def answer_of(space: Space, answer: Any, operands: Iterable[Value]) -> Value:
    """The value of what folding gave: an operand's, if it is that very object."""
    for operand in operands:
        if type(operand) is ConstantValue and operand.value is answer:
            return operand
    return constant_value(space, answer)


def fold(
    space: Space, function: Any, args: list[Value], kwargs: dict[str, Value], what: str,
    *receiver: Value,
) -> Value:  # fmt: skip
    """Run a pure C function on constants now; its exception is raised in the program."""
    real_args = []
    for arg in args:
        arg = arg.realize()
        try:
            real_args.append(arg.as_python())
        except GraphBreak:
            raise GraphBreak("FJ0136", f"{what}() of a {arg.describe()}")
    real_kwargs = {name: value.realize().as_python() for name, value in kwargs.items()}
    answer = space.run_real(function, *real_args, **real_kwargs)
    return answer_of(space, answer, (*receiver, *[arg.realize() for arg in args]))


def _enum_getattr(space: Space, value: ConstantValue, member: enum.Enum, name: str) -> Result:
    cls = type(member)
    hook = space.class_attribute(cls, "__getattribute__")
    if hook is not None and isinstance(hook.raw, types.FunctionType):
        raise GraphBreak("FJ0151", f"attribute {name!r} of a {value.describe()}")
    if name in ("value", "name", "_value_", "_name_"):
        # `value` may be overridden; the enum machinery's own descriptor is a DynamicClassAttribute.
        found = space.class_attribute(cls, name)
        if found is None or isinstance(found.raw, types.DynamicClassAttribute | enum.property):
            return _enum_part(space, member, f"_{name.strip('_')}_")
    found = space.class_attribute(cls, name)
    if found is not None:
        if isinstance(found.raw, enum.property):
            getter = found.raw.fget
            if type(getter) is types.FunctionType and getter.__module__ != "enum":
                function = space.load(found.source.child("attr", "fget"), getter)
                return space.call(function, [value], {})
            return constant_value(space, space.run_real(getattr, member, name))
    if name != "__class__" and (found is None or not hides_own_attribute(found.raw)):
        if name in member.__dict__:
            return _enum_part(space, member, name)
        space.guard(_enum_source(space, member, name), "ABSENT")
    if found is not None:
        return space.bind_class_attribute(found, value, cls, name)
    hook = space.class_attribute(cls, "__getattr__")
    if hook is None or name == "__class__":
        return space.generic_getattr(value, name)
    method = space.now(space.bind_class_attribute(hook, value, cls, "__getattr__"))
    return space.call(method, [space.constant(name)], {})


#: Methods that run while the class is made, for its members.
_MAKING = frozenset({"__new__", "__init__", "__init_subclass__"})


def computes_as_python(cls: type) -> bool:
    """An enum without special methods of the user's: its members are constants. Others are objects
    whose methods are captured."""
    return issubclass(cls, enum.Enum) and not any(
        type(method) is types.FunctionType and method.__module__ != "enum"
        for base in cls.__mro__ if is_user_class(base)
        for name, method in base.__dict__.items()
        if name.startswith("__") and name.endswith("__") and name not in _MAKING
    )  # fmt: skip


def member_value(space: Space, member: enum.Enum) -> Value:
    """A member that its class was asked for."""
    if computes_as_python(type(member)):
        return ConstantValue(member)
    return space.load(space.const_source(member, f"const {type(member).__name__}"), member)


def _enum_source(space: Space, member: enum.Enum, name: str) -> Source:
    """Where a member keeps an attribute of its own."""
    root = space.const_source(member, f"{type(member).__qualname__}.{member.__dict__['_name_']}")
    return root.child("dict").child("item", name)


def _enum_part(space: Space, member: enum.Enum, name: str) -> Value:
    """What a member keeps in its ``__dict__``."""
    part = member.__dict__[name]
    source = _enum_source(space, member, name)
    if name in ("_name_", "_value_") and type(part) in PURE_TYPES:
        space.guard(source, "EQUALS_MATCH", part)
        return ConstantValue(part, source)
    return space.load(source, part)


@wraps(complex, str, bytes, range, torch.device, torch.finfo, torch.iinfo)
def wrap_literal(space: Space, source: Source, obj: Any) -> Value:
    check_size(obj)
    space.guard(source, "EQUALS_MATCH", obj)
    return ConstantValue(obj, source)


#: What ``list[int]`` has itself; all else is asked of ``list``.
_OWN_OF_ALIASES = frozenset(
    (
        "__class__", "__bases__", "__origin__", "__args__", "__parameters__", "__unpacked__",
        "__typing_unpacked_tuple_args__", "__mro_entries__", "__reduce__", "__reduce_ex__",
        "__copy__", "__deepcopy__",
    )
)  # fmt: skip

#: Classes of ``list[int]``, ``int | None``, ``collections.abc.Callable[[int], str]``.
_ALIASES = (types.GenericAlias, types.UnionType, type(collections.abc.Callable[[], None]))


def is_alias(cls: type) -> bool:
    """Of ``list[int]``, ``int | None``, `typing.Any`, ...?"""
    return cls in _ALIASES or _is_typing_form(cls)


def _is_typing_form(cls: type) -> bool:
    return cls.__module__ == "typing" and not issubclass(
        cls, (type, types.FunctionType, typing.ForwardRef)
    )


_TYPE_PARAMETERS = frozenset(
    getattr(typing, name)
    for name in ("TypeVar", "ParamSpec", "TypeVarTuple", "TypeAliasType")
    if hasattr(typing, name)
)
#: What these compute when somebody asks for it, with code of the program's.
_LATE = frozenset({"__bound__", "__constraints__", "__default__", "__value__"})


@wraps(
    type(None), bool, type(Ellipsis), type(NotImplemented), torch.dtype, torch.layout,
    torch.memory_format, torch._C._SDPBackend, types.CodeType,
)  # fmt: skip
def wrap_identity(space: Space, source: Source, obj: Any) -> Value:
    """A constant that is the only one equal to it."""
    space.guard(source, "ID_MATCH", obj)
    return ConstantValue(obj, source)


@wraps(frozenset)
def _wrap_frozenset(space: Space, source: Source, obj: Any) -> Value:
    check_count(len(obj))
    if all(type(item) in _EXACT or isinstance(item, (enum.Enum, type)) for item in obj):
        space.guard(source, "EQUALS_MATCH", obj)
        if len(obj) > 1:  # equal ones may list their elements in another order
            space.guard(source.child("call", tuple), "EQUALS_MATCH", tuple(obj))
    elif any(is_user_class(type(item)) for item in obj):
        space.guard(source, "TYPE_MATCH", frozenset)
        return space.remember(obj, space.existing_set(source, obj, frozenset))
    else:
        space.guard(source, "ID_MATCH", obj)
    return ConstantValue(obj, source)


@wraps(types.ModuleType)
def _wrap_module(space: Space, source: Source, obj: Any) -> Value:
    space.guard(source, "ID_MATCH", obj)
    if type(obj) is not types.ModuleType:  # it may get another class
        space.guard(source, "TYPE_MATCH", type(obj))
    return PythonModuleValue(obj, source)


def wrap_opaque(space: Space, source: Source, obj: Any) -> Value:
    """Anything framejit does not look into: its class is guarded, nothing else."""
    space.guard(source, "TYPE_MATCH", type(obj))
    return space.remember(obj, OpaqueValue(obj, source))


def classes_in(alias: Any) -> list[type]:
    """The classes that ``list[A] | B`` and the like are made of, those of the origins included."""
    if isinstance(alias, type) and not isinstance(alias, types.GenericAlias):
        return [alias]
    if isinstance(alias, (list, tuple)):
        parts = alias
    elif is_alias(type(alias)):
        parts = (getattr(alias, "__origin__", None), *getattr(alias, "__args__", ()))
    else:
        parts = ()
    return [cls for part in parts for cls in classes_in(part)]


def _is_made_by_calls(space: Space, source: Source, obj: Any) -> bool:
    """May the next call have another one in its place? Those of modules stay."""
    if source.root.accessor == "const" and not space.in_local_class(source):
        return False
    if type(obj) in _TYPE_PARAMETERS or getattr(obj, "__parameters__", ()) not in ((), []):
        return True
    return any("<locals>" in cls.__qualname__ for cls in classes_in(obj))


@wraps(*_ALIASES)
def _wrap_typing_form(space: Space, source: Source, obj: Any) -> Value:
    made = _is_made_by_calls(space, source, obj)
    return wrap_opaque(space, source, obj) if made else wrap_identity(space, source, obj)


wraps_classes(computes_as_python, Rank.CONSTANT)(wrap_identity)
wraps_classes(_is_typing_form, Rank.CONSTANT)(_wrap_typing_form)
wraps_classes(lambda cls: issubclass(cls, types.ModuleType), Rank.CONSTANT)(_wrap_module)
wraps_classes(lambda cls: True, Rank.ANYTHING)(wrap_opaque)
