"""Classes as values: attribute lookup on a class, making instances, ``super()``.

In: class objects (pinned by identity). Out: instances whose ``__init__`` is inlined as a frame of
its own, so that a graph break inside a constructor can be continued. Next room: interpreter.
"""

from __future__ import annotations

import contextlib
import enum
import operator
import types
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.subclasses import class_method, new_container
from framejit.values.core import complaints
from framejit.values.core.base import (
    Args,
    CallRequest,
    Declared,
    Kwargs,
    Value,
    hides_own_attribute,
    is_heap_class,
    is_user_class,
    type_name,
)
from framejit.values.core.constants import (
    ConstantValue,
    constant_value,
    fold,
    member_value,
)
from framejit.values.core.ends import has_own_end
from framejit.values.core.knowledge import Asked, Way, handler_of, known
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import LOOKASIDES, Result, lookaside, wraps, wraps_classes
from framejit.values.core.space import Space
from framejit.values.objects.descriptors import (
    C_DATA,
    ObjectMethodValue,
    bind,
    bind_none,
    bind_to_class,
    is_data_descriptor,
)
from framejit.values.objects.functions import BoundBuiltin, MethodValue
from framejit.values.objects.instances import (
    SCALARS,
    ObjectValue,
    PropertyValue,
    Special,
    solid_base,
)

IS_ABSTRACT = 0x100000  # Py_TPFLAGS_IS_ABSTRACT
_CONTAINERS = (dict, list, tuple, set, frozenset, *SCALARS)
_TYPE_CONSTANTS = frozenset([
    "__name__", "__qualname__", "__module__", "__doc__", "__bases__", "__base__", "__mro__",
    "__basicsize__", "__dictoffset__", "__flags__", "__abstractmethods__", "__text_signature__",
])  # fmt: skip
#: Those of them that can be assigned.
_TYPE_FIELDS = frozenset(
    ["__name__", "__qualname__", "__module__", "__doc__", "__bases__", "__mro__"]
)

#: Of more subclasses, a list is made by Python.
_MOST_SUBCLASSES = 256
#: What torch takes classes of Python for that are given as a ``dtype``.
PYTHON_DTYPES: dict[Any, torch.dtype] = {
    cls: torch.empty(0, dtype=cls).dtype  # type: ignore[call-overload]
    for cls in (bool, int, float, complex)
}


def _is_class_method(cls: type, name: str) -> bool:
    """Is this C method the class's own, called on it as a class or static method?"""
    spaces = [type.__getattribute__(base, "__dict__") for base in cls.__mro__]
    own = next((space[name] for space in spaces if name in space), None)
    return isinstance(own, (types.ClassMethodDescriptorType, classmethod, staticmethod))


def _asks_missing(cls: type[enum.Enum], args: list[Value]) -> bool:
    """Would the call run a ``_missing_`` of the user's?"""
    if len(args) != 1 or getattr(cls._missing_, "__module__", "enum") == "enum":
        return False
    value = args[0].realize()
    if not value.is_constant:
        return True
    known = value.as_python()
    return not isinstance(known, cls) and all(member.value != known for member in cls)


class ClassValue(Special):
    """A class object."""

    cls: Any
    source: Source | None
    #: For a class made by the program (`local_classes.Making`); ``cls`` is its template.
    making: Any = None
    obj: Any = None

    def __post_init__(self) -> None:
        self.obj = self.cls

    def python_type(self) -> type:
        return type(self.cls)

    def describe(self) -> str:
        return f"class {self.cls.__qualname__}"

    def as_python(self) -> type:
        return self.cls

    def to_fx(self, space: Space) -> type | torch.dtype:
        """As an argument of an operation."""
        return PYTHON_DTYPES.get(self.cls, self.cls)

    # -- attributes --------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str) -> Result:
        cls, meta = self.cls, type(self.cls)
        if name == "__class__":
            return space.class_value(meta)
        if name in _TYPE_CONSTANTS:
            # Most classes have no __abstractmethods__.
            known = space.run_real(type.__getattribute__, cls, name)
            if self.making is not None and type(known) is tuple:  # of the template
                return self.making.orders.setdefault(name, constant_value(space, known))
            if name in _TYPE_FIELDS and is_user_class(cls):
                return space.load(space.class_source(cls).child("attr", name), known)
            return constant_value(space, known)
        if name == "__dict__":
            if self.making is not None:
                raise GraphBreak("FJ0156", "__dict__ of a class that the program has changed")
            return space.load(space.class_source(cls).child("attr", "__dict__"), cls.__dict__)
        if issubclass(cls, enum.Enum) and name in cls.__members__:
            space.class_attribute(cls, name)
            return member_value(space, cls.__members__[name])
        inherited = space.class_attribute(meta, name)
        if inherited is not None and (
            issubclass(type(inherited.raw), property)
            or (is_user_class(type(inherited.raw)) and hides_own_attribute(inherited.raw))
        ):
            return bind(space, inherited, self, meta, name)
        found = space.class_attribute(cls, name)
        if found is not None:
            kept = inherited is not None and type(inherited.raw) in C_DATA
            if kept and found.owner is not cls:  # `type` looks into no base: ``__annotations__``
                raise GraphBreak("FJ0151", f"{name} of {self.describe()}, which has none itself")
            return bind_none(space, found, self, name)
        if inherited is not None:
            return bind(space, inherited, self, meta, name)
        hook = space.class_attribute(meta, "__getattr__")
        if hook is not None and type(hook.raw) is types.FunctionType:
            method = MethodValue(space.load(hook.source, hook.raw), self)
            return space.call(method, [ConstantValue(name)], {})
        return space.raise_error(
            AttributeError, f"type object {type_name(cls)!r} has no attribute {name!r}"
        )

    def plain_setattr(self, space: Space, name: str, value: Value) -> None:
        self._write(space, name, value)

    def plain_delattr(self, space: Space, name: str) -> None:
        self._write(space, name, None)

    def _write(self, space: Space, name: str, value: Value | None) -> None:
        """``type.__setattr__`` and, without a value, ``type.__delattr__``."""
        cls = self.cls
        if not is_heap_class(cls):
            space.raise_error(
                TypeError, f"cannot set {name!r} attribute of immutable type {type_name(cls)!r}"
            )
        inherited = space.class_attribute(type(cls), name)
        if inherited is not None and is_data_descriptor(inherited.raw):
            raise GraphBreak("FJ0152", f"assigning {name} of {self.describe()}")
        special = name.startswith("__") and name.endswith("__")
        if special and self.making is None:  # the class's C-level slots depend on it
            raise GraphBreak("FJ0152", f"assigning {name} of {self.describe()}")
        if value is None:
            found = space.class_attribute(cls, name)
            if found is None or found.owner is not cls:
                space.raise_error(
                    AttributeError, f"type object {type_name(cls)!r} has no attribute {name!r}"
                )
        space.write_class_attribute(cls, name, value)
        space.effects.note(self)

    # -- operations --------------------------------------------------------------------------------

    def _is_enum(self, space: Space, name: str) -> bool:
        """Does `enum` itself do this operation of its metaclass, and not a method of the user's?"""
        if not issubclass(self.cls, enum.Enum):
            return False
        found = space.class_attribute(type(self.cls), name)
        return found is not None and found.owner is enum.EnumMeta

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        cls = self.cls
        handler = handler_of(cls)
        if handler is not None:
            return handler(space, args, kwargs)
        meta = type(cls)
        if meta is not type:
            if self._is_enum(space, "__call__"):
                if _asks_missing(cls, args):
                    raise GraphBreak("FJ0131", f"{cls.__qualname__}._missing_() is asked")
                return fold(space, cls, args, kwargs, f"{cls.__name__}")
            found = space.class_attribute(meta, "__call__")
            if found is not None and found.raw not in _TRANSPARENT_METACLASS_CALLS:
                custom = space.overriding(self, meta, "__call__")
                if custom is not None:
                    return space.call(custom, args, kwargs)
        return instantiate(space, self, args, kwargs)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "mro":
            return ListValue(space.items(space.getattr_now(self, "__mro__")))
        if name == "__call__":
            return instantiate(space, self, args, kwargs)
        if (name, len(args)) in (("__setattr__", 2), ("__delattr__", 1)):
            self._write(space, str(args[0].realize().as_python()), (*args, None)[1])
            return ConstantValue(None)
        if name in ("__subclasscheck__", "__instancecheck__"):  # type's own
            other = args[0].realize()
            if name == "__instancecheck__":
                return ConstantValue(self.cls in other.python_type().__mro__)
            if isinstance(other, ClassValue):
                return ConstantValue(self.cls in other.cls.__mro__)
            raise GraphBreak("FJ0133", f"calling type.{name}()")
        if name == "__subclasses__" and not args and not kwargs:
            return self._subclasses(space)
        owner = next((c for c in (type, object) if name in vars(c)), None)
        if owner is not None and not _is_class_method(self.cls, name):
            return self._method_of_metaclass(space, owner, name, args, kwargs)
        function = getattr(self.cls, name)
        handler = handler_of(function)
        if handler is not None:
            return handler(space, args, kwargs)
        special = class_method(space, self.cls, name, args, kwargs)
        if special is not None:
            return special
        return fold(space, function, args, kwargs, f"{self.cls.__qualname__}.{name}")

    def _subclasses(self, space: Space) -> Value:
        """A new list of the classes that exist; a capture knows nothing of those to come."""
        classes = type.__subclasses__(self.cls)
        made = space.local_classes or any("<locals>" in cls.__qualname__ for cls in classes)
        if made or self.making is not None or len(classes) > _MOST_SUBCLASSES:
            raise GraphBreak("FJ0156", "type.__subclasses__() beside classes that calls make")
        source = space.class_source(self.cls).child("call", type.__subclasses__)
        return ListValue(space.items(space.load(source, classes)))

    def _method_of_metaclass(
        self, space: Space, owner: type, name: str, args: Args, kwargs: Kwargs
    ) -> Result:
        """A C method of ``type`` or ``object``, called on a class as on an instance."""
        if owner is object:
            return space.object_method(name, [self, *args], kwargs)
        bound = vars(type)[name].__get__(self.cls, type(self.cls))
        if name == "__getattribute__" and len(args) == 1 and not kwargs:
            text = args[0].realize().as_python()
            return self.getattr(space, text) if isinstance(text, str) else space.run_real(bound, 0)
        if name in ("__repr__", "__or__", "__ror__"):
            return fold(space, bound, args, kwargs, f"type.{name}")
        raise GraphBreak("FJ0133", f"calling type.{name}()")

    def getitem(self, space: Space, key: Value) -> Result:
        name = "__class_getitem__"
        found = space.class_attribute(self.cls, name)
        meta_item = space.class_attribute(type(self.cls), "__getitem__")
        if self._is_enum(space, "__getitem__"):
            return fold(space, enum.EnumMeta.__getitem__, [self, key], {}, "indexing an enum")
        if meta_item is not None and type(meta_item.raw) is types.FunctionType:
            return super().getitem(space, key)
        if found is not None or self.cls is type:
            owner = found.owner if found is not None else type
            if is_user_class(owner) and owner.__module__ not in ("typing", "collections.abc"):
                return space.call(space.now(self.getattr(space, name)), [key], {})
            parameters = key.realize().as_python()
            return constant_value(space, space.run_real(operator.getitem, self.cls, parameters))
        if meta_item is None:
            text = f"type {type_name(self.cls)!r} is not subscriptable"
            return space.raise_error(TypeError, text)
        return super().getitem(space, key)

    def contains(self, space: Space, item: Value) -> Value:
        if self._is_enum(space, "__contains__"):
            return fold(space, enum.EnumMeta.__contains__, [self, item], {}, "`in` on an enum")
        return super().contains(space, item)

    def items_now(self, space: Space) -> list[Value] | None:
        if self._is_enum(space, "__iter__"):
            return [member_value(space, member) for member in self.cls]  # type: ignore[attr-defined]
        return None

    def iter(self, space: Space) -> Value:
        members = self.items_now(space)
        return super().iter(space) if members is None else space.iter(TupleValue(members))

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if isinstance(other, ClassValue) and op in ("==", "!="):
            return ConstantValue((self.cls is other.cls) is (op == "=="))
        return None

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if op == "|":  # a union type: int | None
            right = other.cls if isinstance(other, ClassValue) else other.as_python()
            if type(right) is not other.python_type():  # a message would name another class
                return None
            pair = (right, self.cls) if reflected else (self.cls, right)
            function = operator.ior if inplace else operator.or_
            with contextlib.suppress(TypeError):
                return constant_value(space, function(*pair))
        return None


#: Metaclass ``__call__`` methods that only do what ``type.__call__`` does.
_TRANSPARENT_METACLASS_CALLS: set[Any] = set()


@wraps(type)
def _wrap_class(space: Space, source: Source, obj: type) -> Value:
    if source.accessor != "const":
        if space.adopt(source, obj):
            return space.remember(obj, ClassValue(obj, source))
        space.guard(source, "ID_MATCH", obj)
    if is_user_class(type(obj)):  # its metaclass can be replaced
        space.guard(space.class_source(obj), "TYPE_MATCH", type(obj))
    return space.remember(obj, ClassValue(obj, source))


wraps_classes(lambda cls: issubclass(cls, type))(_wrap_class)


def instantiate(space: Space, value: ClassValue, args: Args, kwargs: Kwargs) -> Result:
    """``type.__call__``: ``__new__``, then ``__init__``."""
    cls = value.cls
    if issubclass(cls, BaseException):
        return space.make_exception(cls, args, kwargs)
    way, detail = known(Asked(cls))
    if way is Way.REPLACED:
        return detail(space, args, kwargs)
    if way is Way.FOLDED:
        return fold(space, cls, args, kwargs, cls.__name__)
    if way is Way.REFUSED:
        raise GraphBreak("FJ0153", detail)
    if cls.__flags__ & IS_ABSTRACT:
        space.run_real(object.__new__, cls)
    found = space.class_attribute(cls, "__new__")
    assert found is not None
    if type(found.raw) is staticmethod or type(found.raw) is types.FunctionType:
        new = space.now(bind_none(space, found, value, "__new__"))
        made = space.call_now(new, [value, *args], kwargs).realize()
        if cls not in made.python_type().__mro__:
            return made
    elif type(found.raw) is types.BuiltinMethodType:
        made = new_instance(space, cls, args, kwargs)
    else:
        kind = type(found.raw).__name__
        raise GraphBreak("FJ0153", f"making a {cls.__qualname__}, whose __new__ is a {kind}")
    return initialise(space, made, cls, args, kwargs)


def initialise(space: Space, made: Value, cls: type, args: Args, kwargs: Kwargs) -> Result:
    """Call ``__init__`` on a new instance and return the instance."""
    found = space.class_attribute(cls, "__init__")
    assert found is not None
    if type(found.raw) is types.WrapperDescriptorType:
        if found.owner is not object:
            container = made.call_method
            if container is None:
                raise GraphBreak("FJ0153", f"making a {cls.__qualname__}")
            space.now(container(space, "__init__", args, kwargs))
        elif (args or kwargs) and space.class_attribute(cls, "__new__").owner is object:  # type: ignore[union-attr]
            space.raise_error(TypeError, f"{cls.__name__}() takes no arguments")
        return made
    result = space.call(bind_found(space, found, made, cls, "__init__"), args, kwargs)
    if type(result) is CallRequest:
        result.result = made
        return result
    if not (returned := result.realize()).is_none():  # type: ignore[union-attr]
        kind = type_name(returned.python_type())
        space.raise_error(TypeError, f"__init__() should return None, not {kind!r}")
    return made


def bind_found(space: Space, found: ClassAttribute, value: Value, cls: type, name: str) -> Value:
    """`bind`, with the result at once."""
    return space.now(bind(space, found, value, cls, name))


def new_instance(space: Space, cls: type, args: Args, kwargs: Kwargs) -> Value:
    """``object.__new__`` or the ``__new__`` of the builtin container base."""
    if has_own_end(cls):  # it runs when the last reference goes
        raise GraphBreak(
            "FJ0153", f"an object of class {cls.__qualname__} is made, which has a __del__()"
        )
    if issubclass(cls, property):
        return PropertyValue(cls, step=space.step)
    if issubclass(cls, torch.Tensor):
        return space.new_tensor(cls, args, kwargs)
    made = ObjectValue(cls, step=space.step)
    for base in _CONTAINERS:
        if issubclass(cls, base):
            made.container = new_container(space, base, cls, args, kwargs)
            space.holders[made.container] = made
            return made
    solid = solid_base(cls)
    if solid is not object and not issubclass(solid, BaseException):
        raise GraphBreak(
            "FJ0153", f"making a {cls.__qualname__}, a subclass of {solid.__qualname__}"
        )
    return made


def refuse_surplus(space: Space, cls: type, name: str) -> None:
    """``object.__new__`` and ``object.__init__`` take further arguments only where the class has
    the other one of its own, and not this one."""
    own = {
        method: getattr(space.class_attribute(cls, method), "raw", None) is not raw
        for method, raw in (("__new__", object.__new__), ("__init__", object.__init__))
    }
    what = "type to instantiate" if name == "__new__" else "instance to initialize"
    if own[name]:
        space.raise_error(TypeError, f"object.{name}() takes exactly one argument (the {what})")
    if not any(own.values()):
        text = "() takes no arguments"
        if name == "__init__":
            text = f".__init__() takes exactly one argument (the {what})"
        space.raise_error(TypeError, cls.__name__ + text)


class SuperValue(Declared):
    """``super(cls, receiver)``."""

    cls: type
    receiver: Value
    kind = super

    def getattr(self, space: Space, name: str) -> Result:
        receiver = self.receiver
        if name == "__class__":
            return space.class_value(super)
        on_class = isinstance(receiver, ClassValue) and self.cls in receiver.cls.__mro__
        start = receiver.cls if on_class else receiver.python_type()  # type: ignore[attr-defined]
        found = space.super_attribute(start, self.cls, name)
        if found is not None:
            raw, _, owner = found
            if on_class and type(raw) is not classmethod:
                if name == "__new__" and type(raw) is types.BuiltinMethodType:
                    return NewMethodValue(raw)
                if owner is object and type(raw) is types.ClassMethodDescriptorType:
                    return ObjectMethodValue(receiver, name)
                if not _finds(space, receiver.cls, name, raw):  # type: ignore[attr-defined]
                    raise GraphBreak("FJ0143", f"super().{name} of a class in C")
                return bind_none(space, found, receiver, name)
            if on_class:
                return bind_to_class(space, found, receiver, name)
            if owner is object and type(raw) is types.WrapperDescriptorType:
                return ObjectMethodValue(receiver, name)
            if type(raw) in (types.WrapperDescriptorType, types.MethodDescriptorType):
                return BoundBuiltin(receiver, name, raw)
            return bind(space, found, receiver, receiver.python_type(), name)
        return space.raise_error(AttributeError, f"'super' object has no attribute {name!r}")


def _finds(space: Space, cls: type, name: str, raw: Any) -> bool:
    """Is it, in C, what a lookup in ``cls`` itself finds, or else bound as what it is?"""
    if type(raw) is not types.ClassMethodDescriptorType or raw in LOOKASIDES:
        return True
    found = space.class_attribute(cls, name)
    return found is not None and found.raw is raw


class NewMethodValue(Declared):
    """``object.__new__``, ``dict.__new__``, ...: called with the class."""

    raw: Any
    kind = types.BuiltinMethodType

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        value = args[0].realize() if args else None
        cls = value.cls if isinstance(value, ClassValue) else None
        if value is None or cls is None or _c_new(cls) is not self.raw:
            if value is not None and cls is None and not value.is_constant:
                raise GraphBreak("FJ0153", "__new__ of something that is not a class")
            # It is refused without a look at the other arguments.
            space.run_real(self.raw, *[cls or one.realize().as_python() for one in args[:1]])
            raise GraphBreak("FJ0153", f"{self.raw.__qualname__}() of a {value}")
        if is_user_class(cls):
            if self.raw is object.__new__ and (args[1:] or kwargs):
                refuse_surplus(space, cls, "__new__")
            return new_instance(space, cls, args[1:], kwargs)
        return space.call(value, [] if cls in (list, dict, set) else args[1:], kwargs)


def _c_new(cls: type) -> Any:
    """The C-level ``__new__`` that makes the instances of the class."""
    for base in cls.__mro__:
        new = None if is_user_class(base) else base.__dict__.get("__new__")
        if new is not None:
            return new
    return None


for _base in (object, *_CONTAINERS):
    LOOKASIDES[_base.__new__] = NewMethodValue(_base.__new__).call


def make_super(space: Space, args: list[Value]) -> Value:
    """``super(cls, obj)`` with both arguments given."""
    if len(args) != 2 or args[1].is_none():
        raise GraphBreak("FJ0143", "super() with one argument")
    cls = args[0].realize()
    if not isinstance(cls, ClassValue):
        raise GraphBreak("FJ0143", "super() of something that is not a class")
    receiver = args[1].realize()
    on_class = isinstance(receiver, ClassValue) and cls.cls in receiver.cls.__mro__
    if not on_class and cls.cls not in receiver.python_type().__mro__:
        is_class = isinstance(receiver, ClassValue)
        given = receiver.cls if isinstance(receiver, ClassValue) else receiver.python_type()
        text = complaints.wrong_object_for_super(cls.cls, given, is_class)
        space.raise_error(TypeError, text)
    return SuperValue(cls.cls, receiver)


@lookaside(super)
def _super(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if kwargs:
        space.raise_error(TypeError, "super() takes no keyword arguments")
    return make_super(space, args)
