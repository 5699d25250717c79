"""Classes that the program makes or changes: class statements, assigned class attributes, classes
that are made anew on each call.

In: the body of a class statement, or a class that came in through a slot. Out: class values. While
capturing, a class made by the program is a *template*, a real class whose functions are stand-ins;
its attributes are the values in `Space.class_writes`; the generated function makes the class anew.
A class that reaches a continuation from outside is compared by its structure. Next: interpreter.
"""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import enum
import functools
import inspect
import sys
import types
import typing
from typing import Any

import torch

from framejit.classes import asked_once
from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, CallRequest, Declared, Kwargs, Value, is_user_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import container_of
from framejit.values.core.namespaces import codes, entries
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.cells import CellValue
from framejit.values.objects.classes import IS_ABSTRACT, ClassValue
from framejit.values.objects.functions import FunctionValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.objects.partials import PartialValue

# -- descriptors made by the program ---------------------------------------------------------------

_FIELDS: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset", "fdel", "doc"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
}


class DescriptorValue(Declared):
    """A new ``property``, ``cached_property``, ``staticmethod`` or ``classmethod``."""

    kind: Any
    parts: dict[str, Value]

    @property
    def fields(self) -> tuple[str, ...]:
        """The parameters of its class."""
        return _FIELDS[self.kind]

    def getattr(self, space: Space, name: str) -> Result:
        if name in self.parts:
            return self.parts[name]
        if name in ("fget", "fset", "fdel") and self.kind is property:
            return ConstantValue(None)
        if name in ("__wrapped__", "__isabstractmethod__", "__doc__", "__name__"):
            function = self.parts.get("__func__") or self.parts.get("fget")
            if function is not None and name == "__wrapped__" and self.kind is not property:
                return function
            raise GraphBreak("FJ0151", f"attribute {name!r} of a new {self.kind.__name__}")
        return space.generic_getattr(self, name)

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        if self.kind is staticmethod:
            return space.call(self.parts["__func__"], args, kwargs)
        name = self.kind.__name__
        return space.raise_error(TypeError, f"{name!r} object is not callable")

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        field = {"getter": "fget", "setter": "fset", "deleter": "fdel"}.get(name)
        if field is None or self.kind is not property or len(args) != 1 or kwargs:
            raise GraphBreak("FJ0151", f"{self.kind.__name__}.{name}()")
        return DescriptorValue(property, {**self.parts, field: args[0]})


def _descriptor_maker(kind: type) -> None:
    names = _FIELDS[kind]

    @lookaside(kind)
    def make(space: Space, args: Args, kwargs: Kwargs) -> Result:
        given = dict(zip(names, args, strict=False)) | kwargs
        wrong = len(given) < len(args) + len(kwargs) or not set(given) <= set(names)
        if kind is not property:
            wrong = wrong or len(given) != 1 or "__func__" in kwargs
        if wrong:
            raise GraphBreak("FJ0151", f"making a {kind.__name__} with these arguments")
        if kind is property:
            given = {n: v for n, v in given.items() if not v.is_none()}
        return DescriptorValue(kind, given)


for _kind in _FIELDS:
    _descriptor_maker(_kind)


# -- stand-ins -------------------------------------------------------------------------------------


class _StandIn:
    """Takes the place, in a template, of an object that exists at run time only."""


def stand_in(space: Space, value: Value, source: Source) -> Any:
    """A real object that the descriptor protocol treats like ``value``; what is reached from
    ``source`` through it is the value's."""
    value = value.realize()
    if value.is_constant:
        return value.as_python()
    real = value.obj
    if real is not None:
        return real
    if isinstance(value, FunctionValue):
        free = tuple(types.CellType() for _ in value.code.co_freevars)
        made = types.FunctionType(value.code, value.globals, value.code.co_name, None, free)
        made.__qualname__ = value.name
        own = {name: content for name, (_, content) in entries(value).items()}
        for name, content in (value.attributes | own).items():
            if content.realize().is_constant:
                setattr(made, name, content.realize().as_python())
        return made
    if isinstance(value, PartialValue):  # a descriptor since CPython 3.13
        return functools.partial(_StandIn)
    if isinstance(value, DescriptorValue):
        parts = {}
        for name, part in value.parts.items():
            child = source.child("attr", name)
            space.preload(child, part)
            parts[name] = stand_in(space, part, child)
        if value.kind is property:
            return property(*[parts.get(name) for name in _FIELDS[property]])
        return value.kind(*parts.values())
    if isinstance(value, ObjectValue) and value.container is None:
        if any(hasattr(value.cls, name) for name in ("__get__", "__set__", "__delete__")):
            return object.__new__(value.cls)
    try:
        return _StandIn() if value.is_symbolic else value.as_python()
    except GraphBreak:
        return _StandIn()


def written_attribute(space: Space, owner: type, name: str, value: Value) -> ClassAttribute:
    """What a lookup finds that the program has assigned."""
    source = Source(None, "const", None, f"{owner.__qualname__}.{name}")
    space.preload(source, value)
    raw = stand_in(space, value, source)
    if type(raw) is property:  # which its messages name
        raw.__set_name__(owner, name)  # type: ignore[attr-defined]
    return ClassAttribute(raw, source, owner)


# -- class statements ------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Making:
    """How the generated function makes a class: a call, then what was assigned to the class."""

    function: Any
    args: list[Value]
    kwargs: dict[str, Value]
    #: The namespace that a metaclass gets as its last argument.
    names: dict[str, Value] | None = None
    cell: CellValue | None = None
    #: Calls with the class that change it: (function, keyword arguments).
    behind: list[tuple[Any, dict[str, Any]]] = dataclasses.field(default_factory=list)
    #: Its ``__mro__`` and ``__bases__``, once read.
    orders: dict[str, Value] = dataclasses.field(default_factory=dict)


@lookaside(builtins.__build_class__)
def _build_class(space: Space, args: Args, kwargs: Kwargs) -> Result:
    body, title, *bases = [arg.realize() for arg in args]
    if kwargs.keys() - {"metaclass"} or not isinstance(body, FunctionValue):
        raise GraphBreak("FJ0154", "a class statement with keyword arguments")
    text = str(title.as_python())
    if any(base.obj is typing.NamedTuple for base in bases):
        if kwargs or len(bases) > 1:
            raise GraphBreak("FJ0154", "a named tuple with other bases")
        bases = [space.class_value(_NAMED_TUPLE).realize()]
        real_bases: tuple[type, ...] = (_NAMED_TUPLE,)
        meta: Any = typing.NamedTupleMeta  # type: ignore[attr-defined]
    else:
        real_bases = tuple(_plain_base(space, base) for base in bases)
        meta = _metaclass(space, kwargs.get("metaclass"), real_bases)
    request = body.inline(space, [], {})
    assert type(request) is CallRequest
    names: dict[str, Value] = {}
    request.names = names
    space.running.run_request(request)
    return make_class(space, text, meta, real_bases, bases, names)


#: What `typing.NamedTuple` puts in its place among the bases of a class statement.
_NAMED_TUPLE: type = typing._NamedTuple  # type: ignore[attr-defined]
#: What a metaclass may not define itself: it would run when a class or an instance is made.
_MAKING = (
    "__new__", "__init__", "__prepare__", "__call__", "__setattr__", "__getattribute__", "mro",
    "__instancecheck__", "__subclasscheck__", "__hash__", "__eq__",
)  # fmt: skip


def _metaclass(space: Space, given: Value | None, bases: tuple[type, ...]) -> Any:
    """The metaclass of a class statement."""
    meta: type = type
    if given is not None:
        given = given.realize()
        if not isinstance(given, ClassValue) or not issubclass(given.cls, type):
            raise GraphBreak("FJ0154", f"a {given.describe()} as a metaclass")
        _check_metaclass(space, given.cls)
        meta = given.cls
    for base in bases:
        if issubclass(type(base), meta):
            meta = type(base)
        elif not issubclass(meta, type(base)):
            raise GraphBreak("FJ0154", "a class statement with metaclasses that do not fit")
    return meta


#: Metaclasses of which it is known that making a class changes nothing that others see.
_HARMLESS = (type, abc.ABCMeta, torch.autograd.function.FunctionMeta)


def _check_metaclass(space: Space, meta: type) -> None:
    """GraphBreak unless a class of this metaclass is made as any other."""
    if meta in _HARMLESS:
        return
    known = space.known_value(meta)
    if is_anonymous(meta) or (isinstance(known, ClassValue) and known.making is not None):
        raise GraphBreak("FJ0154", f"the metaclass {meta.__qualname__} is made by the program")
    for name in _MAKING:
        found = space.class_attribute(meta, name)
        if found is not None and found.owner not in (type, object, abc.ABCMeta):
            raise GraphBreak("FJ0154", f"the metaclass {meta.__qualname__} has its own {name}")


def _plain_base(space: Space, base: Value) -> type:
    """The real class, if nothing of its runs when a subclass is made."""
    if isinstance(base, ClassValue):
        _check_metaclass(space, type(base.cls))
    else:
        raise GraphBreak(
            "FJ0154", f"a class statement with a base of another kind ({base.describe()})"
        )
    hook = space.class_attribute(base.cls, "__init_subclass__")
    if hook is not None and hook.owner is not object:
        raise GraphBreak("FJ0154", f"{base.cls.__qualname__} has an __init_subclass__")
    return base.cls


class ClassNames(Declared):
    """The dict of a class body. ``type`` puts that of the class into the cell that holds it, where
    type parameters and annotations look for names; what does so is not captured."""

    step: int
    kind = dict


#: What ``type`` wraps functions of a class body in, by their names.
_WRAPPED: dict[str, type] = {"__class_getitem__": classmethod, "__init_subclass__": classmethod}


def make_class(
    space: Space, title: str, meta: type, real_bases: tuple[type, ...], bases: list[Value],
    names: dict[str, Value],
) -> Value:  # fmt: skip
    """``meta(title, bases, names)``."""
    names.pop("__classdictcell__", None)
    cell = names.pop("__classcell__", None)
    if cell is not None:
        cell = cell.realize()
        if not isinstance(cell, CellValue):
            raise GraphBreak("FJ0154", "making a class whose __classcell__ is no cell")
    for name, wrapper in _WRAPPED.items():
        if name in names and names[name].realize().python_type() is types.FunctionType:
            names[name] = space.call_now(space.class_value(wrapper), [names[name]])
    later = {n: v for n, v in names.items() if _wants_its_name(space, v)}
    nothing = Source(None, "const", None, title)
    namespace = {
        name: stand_in(space, value, nothing.child("item", name))
        for name, value in names.items() if name not in later
    }  # fmt: skip
    for name in ("__eq__", "__hash__", "__slots__"):
        if type(namespace.get(name)) is _StandIn:
            raise GraphBreak("FJ0154", f"a class statement with a computed {name}")
    try:
        template = meta(title, real_bases, namespace)
    except Exception as error:
        raise GraphBreak("FJ0154", f"a class statement raises {type(error).__name__}: {error}")
    given = {name: v for name, v in names.items() if name not in later}
    making = Making(meta, [ConstantValue(title), TupleValue(bases)], {}, given, cell)
    value = _new_class(space, template, making)
    slots = {n for n, raw in vars(template).items() if isinstance(raw, types.MemberDescriptorType)}
    if _NAMED_TUPLE in real_bases:  # it makes something else of them
        slots.update(("__annotations__", *template._fields))  # type: ignore[attr-defined]
    space.class_writes[template] = {
        name: v for name, v in names.items()
        if name not in slots and name not in ("__slots__", "__qualname__")
    }  # fmt: skip
    if cell is not None:
        cell.store(space, value)
    for name, v in later.items():
        method = space.special_method(v.realize(), "__set_name__")
        assert method is not None
        space.call_now(method, [value, ConstantValue(name)])
    return value


def _new_class(space: Space, template: type, making: Making) -> ClassValue:
    value = ClassValue(template, None)
    value.making = making
    space.add_class(template, value)
    return value


@lookaside(collections.namedtuple)
def _namedtuple(space: Space, args: Args, kwargs: Kwargs) -> Result:
    kwargs.setdefault("module", ConstantValue(space.running.namespace.get("__name__")))
    real = [arg.realize().as_python() for arg in args]
    named = {name: arg.realize().as_python() for name, arg in kwargs.items()}
    make: Any = collections.namedtuple
    template = space.run_real(make, *real, **named)
    return _new_class(space, template, Making(make, args, kwargs))


@lookaside(dataclasses.field)
def _field(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """A real field: only the class that it is for looks into it."""
    real = {name: _real(value) for name, value in kwargs.items()}
    return space.constant(space.run_real(dataclasses.field, **real))


def _real(value: Value) -> Any:
    """The object itself, or one that is indistinguishable from it."""
    value = value.realize()
    real = value.obj
    if real is not None and (not isinstance(value, ObjectValue) or type(real) is dataclasses.Field):
        return real
    if isinstance(value, FunctionValue) and not value.code.co_freevars:
        own = value.attributes or entries(value)
        if value.defaults is None and value.kwdefaults is None and not own:
            return types.FunctionType(value.code, value.globals, value.code.co_name)
    return value.as_python()


@lookaside(dataclasses._process_class)  # type: ignore[attr-defined]
def _process_class(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """``@dataclass`` on a class that the program has made."""
    cls = args[0].realize()
    names = list(inspect.signature(dataclasses._process_class).parameters)[1:]  # type: ignore[attr-defined]
    named = dict(zip(names, args[1:], strict=False)) | kwargs
    options = {name: value.realize().as_python() for name, value in named.items()}
    if not isinstance(cls, ClassValue) or cls.making is None or options.get("slots"):
        raise GraphBreak("FJ0154", "@dataclass on a class that exists already, or with slots")
    template, written = cls.cls, space.class_writes[cls.cls]
    before = dict(vars(template))
    if type(before.get("__annotations__")) is _StandIn:
        raise GraphBreak("FJ0154", "@dataclass on a class with annotations that are not constants")
    for name in before.get("__annotations__", ()):
        default = written.get(name)
        if default is not None and before.get(name) is not _real(default):
            raise GraphBreak("FJ0154", f"the default of the field {name!r} is not a constant")
    space.run_real(dataclasses._process_class, template, **options)  # type: ignore[attr-defined]
    for name in [n for n in written if vars(template).get(n, cls) is not before.get(n, cls)]:
        del written[name]
    space.forget_class(template)
    cls.making.behind.append((dataclasses._process_class, options))  # type: ignore[attr-defined]
    return cls


def _wants_its_name(space: Space, value: Value) -> bool:
    value = value.realize()
    return (
        isinstance(value, ObjectValue)
        and value.cls is not dataclasses.Field
        and space.class_attribute(value.cls, "__set_name__") is not None
    )


def class_from_parts(space: Space, args: list[Value]) -> Value:
    """``type(name, bases, namespace)``."""
    title, bases, namespace = [arg.realize() for arg in args]
    mapping = container_of(namespace, DictValue)
    if mapping is None:
        raise GraphBreak("FJ0154", "making a class from something that is not a dict")
    names = {}
    for key in mapping.keys_in_order(space):
        pair = mapping.lookup(space, key)
        if not isinstance(key, str) or pair is None:
            raise GraphBreak("FJ0154", "making a class with names that are not strings")
        names[key] = pair[1]
    names.setdefault("__module__", ConstantValue(space.running.namespace.get("__name__")))
    parents = [base.realize() for base in space.items(bases)]
    real = tuple(_plain_base(space, base) for base in parents)
    meta = _metaclass(space, None, real)
    return make_class(space, str(title.as_python()), meta, real, parents, names)


# -- classes compared by their structure -----------------------------------------------------------


@asked_once
def is_anonymous(cls: type) -> bool:
    """A class that no module knows by its name: it may be made anew on each call."""
    if not is_user_class(cls) or issubclass(cls, (torch.nn.Module, torch.Tensor)):
        return False
    if issubclass(type(cls), enum.EnumMeta):
        return False
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not cls


def structure(cls: type) -> tuple[Any, ...]:
    """Equal for classes that the same code has made, special methods included; what else is looked
    up in the class is guarded one by one."""
    bases = tuple(map(_known_by, cls.__bases__))
    attributes = tuple(
        (name, _known_by(type(raw)), codes(raw)) for name, raw in cls.__dict__.items()
        if str(name).startswith("__") and name.endswith("__") and name not in _NOT_COMPARED
    )  # fmt: skip
    meta = _known_by(type(cls))
    size = cls.__basicsize__, cls.__dictoffset__, cls.__flags__ & IS_ABSTRACT
    return (meta, cls.__module__, cls.__qualname__, size, bases, attributes)


#: Special attributes that say nothing about behaviour, or that are guarded when they are read.
_NOT_COMPARED = ("__weakref__", "__dict__", "__doc__", "__annotations__", "__firstlineno__")


def _known_by(cls: type) -> Any:
    return structure(cls) if is_anonymous(cls) else cls


def adopt(space: Space, source: Source, cls: type) -> bool:
    """Know ``cls``, which is at ``source``, by its structure; False when identity has to do."""
    known = space.local_classes.get(cls)
    if known is not None:
        if known is not source:
            space.guard(source, "SAME_OBJECT", known)
        return True
    if not is_anonymous(cls) or space.is_pinned(cls) or source.root.accessor != "slot":
        return False
    space.guard(source.child("call", structure), "EQUALS_MATCH", structure(cls))
    order = source.child("attr", "__mro__")
    space.local_classes[cls] = source
    if is_anonymous(type(cls)):
        adopt(space, source.child("type"), type(cls))
    for i, base in enumerate(cls.__mro__[1:], 1):
        if is_anonymous(base) and base not in space.local_classes and not space.is_pinned(base):
            space.local_classes[base] = order.child("index", i)
    return True


def guard_class(space: Space, source: Source, cls: type) -> None:
    """The object at ``source`` is an instance of ``cls``."""
    if not is_anonymous(cls) or not adopt(space, source.child("type"), cls):
        space.guard(source, "TYPE_MATCH", cls)
