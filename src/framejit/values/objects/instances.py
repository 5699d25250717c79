"""Instances of user-defined classes: attributes, special methods, containers with extra behaviour.

In: existing objects with their sources, or new ones made by the captured program. Out: attribute
reads and writes by Python's own rules; writes go to an overlay that is replayed later. Instances of
``list``/``dict``/``tuple``/``set`` subclasses carry their content as ``container``, which only the
base class's own methods touch. Next room: interpreter.
"""

from __future__ import annotations

import inspect
import re
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

from framejit import native
from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.calling_iterators import IndexIterator
from framejit.values.containers.folding import fold
from framejit.values.containers.live_dicts import namespace_of
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.containers.subclasses import existing_container
from framejit.values.core import complaints
from framejit.values.core.base import (
    Args,
    CallRequest,
    Declared,
    Kwargs,
    Raised,
    Value,
    hides_own_attribute,
    is_heap_class,
    is_user_class,
    type_name,
)
from framejit.values.core.constants import ConstantValue
from framejit.values.core.keys import key_of_object
from framejit.values.core.methods import (
    as_returned,
    check_own_iteration,
    gives_own_class,
    iterator_by,
    returns_self,
    scalar_of,
)
from framejit.values.core.namespaces import own_attribute, store_own
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import (
    BINARY_METHODS,
    COMPARE_METHODS,
    LOOKASIDES,
    Rank,
    Result,
    wraps_classes,
)
from framejit.values.core.space import Space
from framejit.values.objects.descriptors import C_DATA, is_data_descriptor, property_lacks
from framejit.values.objects.functions import MethodValue

_MISSING = object()
#: What modules have for attributes, unless a program replaces it.
MODULE_GETATTR, _MODULE_SETATTR = (
    vars(torch.nn.Module)[name] for name in ("__getattr__", "__setattr__")
)
_COMPARE_METHODS = frozenset(names[0] for names in COMPARE_METHODS.values())
#: What returns NotImplemented for an operand of another kind.
_OPERATOR_METHODS = _COMPARE_METHODS.union(
    ("__divmod__", "__rdivmod__"), *[names[:2] for names in BINARY_METHODS.values()]
)


#: What only computes, from known arguments.
_PURE_METHODS: dict[type, frozenset[str]] = {
    re.Pattern: frozenset(["findall", "split", "sub", "subn", "match", "search", "fullmatch"]),
    re.Match: frozenset(["group", "groups", "groupdict", "start", "end", "span", "expand"]),
}
#: Methods that iterate over an object of a subclass in the way that it says.
_ITERATE: dict[type, frozenset[str]] = {
    deque: _COMPARE_METHODS | {"__repr__", "__add__", "__mul__", "__rmul__", "copy", "__copy__"},
    set: frozenset(["__repr__"]),
    frozenset: frozenset(["__repr__"]),
    dict: frozenset(["__or__", "__ror__", "copy"]),
}
#: Containers whose texts begin with the name of the class, with some exceptions for their own.
_NAMED_IN_TEXTS = (set, frozenset, deque, OrderedDict, defaultdict)


class Special(Declared):
    """What does everything by special methods, which are looked up in its class."""

    __slots__ = ()

    def plain_setattr(self, space: Space, name: str, value: Value) -> None:
        """What ``object`` or ``type`` does to assign an attribute."""
        raise NotImplementedError

    def plain_delattr(self, space: Space, name: str) -> None:
        """What ``object`` or ``type`` does to delete an attribute."""
        raise NotImplementedError

    def setattr(self, space: Space, name: str, value: Value) -> None:
        method = space.overriding(self, self.python_type(), "__setattr__")
        if method is None:
            self.plain_setattr(space, name, value)
        else:
            space.call_now(method, [ConstantValue(name), value])

    def delattr(self, space: Space, name: str) -> None:
        method = space.overriding(self, self.python_type(), "__delattr__")
        if method is None:
            self.plain_delattr(space, name)
        else:
            space.call_now(method, [ConstantValue(name)])

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        method = space.special_method(self, "__call__")
        return (
            self._lacks(space, "is not callable")
            if method is None
            else space.call(method, args, kwargs)
        )

    def _lacks(self, space: Space, what: str) -> Any:
        return space.raise_error(TypeError, f"{type_name(self.python_type())!r} object {what}")

    def _is_none(self, space: Space, name: str) -> bool:
        """Has the class None in the place of this method?"""
        found = space.class_attribute(self.python_type(), name)
        return found is not None and found.raw is None

    def contains(self, space: Space, item: Value) -> Value:
        method = space.special_method(self, "__contains__")
        if method is not None:
            return ConstantValue(space.truth(space.call_now(method, [item])))
        if self._is_none(space, "__contains__"):
            return self._lacks(space, "is not a container")
        if all(space.special_method(self, m) is None for m in ("__iter__", "__getitem__")):
            space.raise_error(TypeError, complaints.no_container(self.python_type()))
        return ConstantValue(space.search(self, item))

    def iter(self, space: Space) -> Value:
        method = space.special_method(self, "__iter__")
        if method is not None:
            return iterator_by(space, method)
        if self._is_none(space, "__iter__") or space.special_method(self, "__getitem__") is None:
            return self._lacks(space, "is not iterable")
        return IndexIterator(space, self, 0)

    def next(self, space: Space) -> Value | None:
        method = space.special_method(self, "__next__")
        if method is None:
            return self._lacks(space, "is not an iterator")
        try:
            return space.call_now(method, [])
        except Raised as error:
            if error.is_a(StopIteration):
                return None
            raise

    def len(self, space: Space) -> Value:
        method = space.special_method(self, "__len__")
        if method is None:
            if self._is_none(space, "__len__"):
                return space.raise_error(TypeError, "'NoneType' object is not callable")
            text = f"object of type {type_name(self.python_type())!r} has no len()"
            return space.raise_error(TypeError, text)
        length = space.call_now(method, [])
        return ConstantValue(as_returned(space, self, "__len__", length, len))

    def truth(self, space: Space) -> bool:
        method = space.special_method(self, "__bool__")
        if method is not None:
            answer = space.call_now(method, [])
            if answer.python_type() is not bool:
                text = f"__bool__ should return bool, returned {type_name(answer.python_type())}"
                space.raise_error(TypeError, text)
            return space.truth(answer)
        if space.class_attribute(self.python_type(), "__len__") is not None:
            return space.truth(self.len(space))
        return True


class ObjectValue(Special):
    """An instance. ``attributes`` holds what the program assigned to slots and to other C-level
    attributes (None: deleted); all others are in ``namespace``, the value of ``__dict__``."""

    cls: type
    obj: Any = None
    source: Source | None = None
    step: int = 0
    attributes: dict[str, Value | None] = {}  # type: ignore[assignment]
    container: Any = None
    #: See `namespaces.namespace_of`; the program may assign another one.
    namespace: Any = None
    mutated: bool = False

    def python_type(self) -> type:
        return self.cls

    # -- attributes --------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str) -> Result:
        custom = space.class_attribute(self.cls, "__getattribute__")
        by_function = custom is not None and type(custom.raw) is types.FunctionType
        if custom is not None and not (by_function or self._finds_as_objects_do(custom.owner)):
            raise GraphBreak("FJ0151", f"attribute {name!r} of a {self.describe()}")
        try:
            if by_function and custom is not None and custom.raw not in LOOKASIDES:
                method = MethodValue(space.load(custom.source, custom.raw), self)
                result: Result | None = space.call(method, [ConstantValue(name)], {})
            else:
                result = self.find_attribute(space, name)
        except Raised as signal:
            instead = None
            if signal.is_a(AttributeError):
                instead = self.missing_attribute(space, name)
            if instead is None:
                raise
            return instead
        if result is None:
            result = self.missing_attribute(space, name) or self._no_attribute(space, name)
        elif type(result) is CallRequest:
            result.missing = self, name
        return result

    def _finds_as_objects_do(self, owner: type) -> bool:
        """Is ``object.__getattribute__`` what finds attributes? ``owner`` has what the class shows;
        a class in C may have a slot of the older kind instead, which it does not show."""
        cls = self.cls
        if native.has_generic_getattr(cls):
            return True
        namespaces = (type.__getattribute__(base, "__dict__") for base in cls.__mro__)
        hooked = any("__getattr__" in one for one in namespaces)
        return hooked and native.has_generic_getattr(owner)

    def plain_getattr(self, space: Space, name: str) -> Result:
        """``object.__getattribute__``."""
        return self.find_attribute(space, name) or self._no_attribute(space, name)

    def _no_attribute(self, space: Space, name: str) -> Any:
        return space.raise_error(
            AttributeError, f"{type_name(self.cls)!r} object has no attribute {name!r}"
        )

    def find_attribute(self, space: Space, name: str) -> Result | None:
        """What the class and the instance have under ``name``."""
        cls = self.cls
        found = space.class_attribute(cls, name)
        if found is not None and hides_own_attribute(found.raw):
            return space.bind_class_attribute(found, self, cls, name)
        own = self.instance_attribute(space, name)
        if own is None and found is not None:
            return space.bind_class_attribute(found, self, cls, name)
        if found is not None and is_user_class(type(found.raw)):
            for method in ("__get__", "__set__", "__delete__"):  # with these it would come first
                space.class_attribute(type(found.raw), method)
        return own

    def missing_attribute(self, space: Space, name: str) -> Result | None:
        """What ``__getattr__`` returns; None if the class has none."""
        hook = space.class_attribute(self.cls, "__getattr__")
        if hook is None:
            return None
        if hook.raw is MODULE_GETATTR:
            member = space.module_member(self, name)
            return member or self._no_attribute(space, name)
        method = space.now(space.bind_class_attribute(hook, self, self.cls, "__getattr__"))
        return space.call(method, [ConstantValue(name)], {})

    def asks_getattr(self) -> bool:
        """Is there a ``__getattr__``? (Not guarded: only a matter of where a break is.)"""
        return inspect.getattr_static(self.cls, "__getattr__", None) is not None

    def instance_attribute(self, space: Space, name: str) -> Value | None:
        """The entry ``name`` of the instance's ``__dict__``; absence is guarded."""
        return own_attribute(space, self, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        custom = space.class_attribute(self.cls, "__setattr__")
        if custom is not None and custom.raw is _MODULE_SETATTR:
            if space.module_setattr(self, name, value):
                return
        super().setattr(space, name, value)

    def plain_setattr(self, space: Space, name: str, value: Value) -> None:
        """``object.__setattr__``."""
        cls = self.cls
        found = space.class_attribute(cls, name)
        if found is not None and is_data_descriptor(found.raw):
            if self._by_descriptor(space, found, "__set__", [value]):
                return
            if name == "__dict__":
                self._replace_namespace(space, value.realize())
                return
            setter = type(found.raw) is types.GetSetDescriptorType
            if setter and not issubclass(cls, BaseException):  # what it takes is not known
                raise GraphBreak("FJ0152", f"assigning {name} of a {self.describe()}")
            if type(found.raw) in C_DATA:
                self.store(space, name, value)
                return
        elif cls.__dictoffset__ == 0:
            text = complaints.nowhere_to_write(cls, name, found is not None)
            space.raise_error(AttributeError, text)
        store_own(space, self, name, value)

    def _by_descriptor(
        self, space: Space, found: ClassAttribute, method: str, args: list[Value]
    ) -> bool:
        """Have the descriptor in the class set or delete the attribute; False: it is kept in C."""
        raw = found.raw
        if type(raw) is property:
            field = "fset" if args else "fdel"
            function = getattr(raw, field)
            if function is None:
                property_lacks(
                    space, raw, self.cls, getattr(property, method), *(None for _ in args)
                )
            space.call_now(space.load(found.source.child("attr", field), function), [self, *args])
            return True
        if type(raw) in C_DATA:
            return False
        bound = space.special_method(space.load(found.source, raw).realize(), method)
        if bound is None and not hasattr(type(raw), method):
            space.raise_error(AttributeError, method)
        if bound is not None:
            space.call_now(bound, [self, *args])
        return bound is not None

    def _replace_namespace(self, space: Space, value: Value) -> None:
        if not isinstance(value, DictValue) or value.cls is not dict:
            kind = value.python_type()
            if not issubclass(kind, dict):
                text = f"__dict__ must be set to a dictionary, not a {type_name(kind)!r}"
                space.raise_error(TypeError, text)
            raise GraphBreak("FJ0152", f"assigning a {value.describe()} to __dict__")
        namespace_of(space, self)
        self.namespace = value
        self.attributes["__dict__"] = value
        self.note(space)

    def store(self, space: Space, name: str, value: Value | None) -> None:
        """Write (or empty) a slot or another C-level attribute."""
        self.attributes[name] = value
        self.note(space)

    def note(self, space: Space) -> None:
        """The object has changed."""
        self.mutated = True
        space.changed(self)

    def plain_delattr(self, space: Space, name: str) -> None:
        """``object.__delattr__``."""
        found = space.class_attribute(self.cls, name)
        if found is not None and is_data_descriptor(found.raw):
            if self._by_descriptor(space, found, "__delete__", []):
                return
        if found is not None and type(found.raw) in C_DATA:
            if type(found.raw) is types.GetSetDescriptorType:
                raise GraphBreak("FJ0152", f"deleting {name} of a {self.describe()}")
            try:
                space.now(space.bind_class_attribute(found, self, self.cls, name)).realize()
            except Raised:  # an empty slot
                space.raise_error(AttributeError, name)
            self.store(space, name, None)
        elif self.cls.__dictoffset__ == 0:
            write = object.__delattr__
            text = complaints.nowhere_to_write(self.cls, name, found is not None, write)
            space.raise_error(AttributeError, text)
        elif self.instance_attribute(space, name) is None:
            self._no_attribute(space, name)
        else:
            store_own(space, self, name, None)

    # -- operations through special methods --------------------------------------------------------

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """A C-level method of the builtin base class."""
        if self.container is None:
            source = self.source
            known = source is not None and (self.cls is re.Pattern or source.accessor == "const")
            if known and name in _PURE_METHODS.get(self.cls, ()):
                space.guard(source, "ID_MATCH", self.obj)
                return fold(space, getattr(self.obj, name), args, kwargs)
            raise GraphBreak("FJ0133", f"calling {self.cls.__qualname__}.{name}()")
        if type(self.container) is ConstantValue:
            return self._scalar_method(space, name, args, kwargs)
        changes = space.changes.count
        if (
            name == "__getitem__"
            and issubclass(self.cls, dict)
            and space.class_attribute(self.cls, "__missing__")
        ):
            key = args[0]
            if not space.truth(self.container.contains(space, key)):
                missing = space.special_method(self, "__missing__")
                if missing is not None:
                    return space.call(missing, [key], {})
        asked = "__repr__" if name == "__str__" else name
        if asked in _ITERATE.get(solid_base(self.cls), ()):
            check_own_iteration(space, self)
        result = self.container.call_method(space, name, args, kwargs)
        if space.changes.count != changes and getattr(self.container, "mutated", False):
            self.note(space)
        if result is self.container:
            if returns_self(name):
                return self
            raise GraphBreak("FJ0133", f"calling {self.cls.__qualname__}.{name}()")
        if isinstance(result, type(self.container)) and gives_own_class(solid_base(self.cls), name):
            return self._made_like(space, result)
        if name in ("__repr__", "__str__") and issubclass(self.cls, _NAMED_IN_TEXTS):
            text = result.realize().as_python()  # type: ignore[union-attr]
            content = f"({text})" if text.startswith("{") else text[text.index("(") :]
            return ConstantValue(self.cls.__name__ + content)
        return result

    def _made_like(self, space: Space, content: Value) -> Value:
        """A new object of this class, which a C-level method makes by calling the class."""
        for name in ("__new__", "__init__", "__setitem__", "update", "extend"):
            found = space.class_attribute(self.cls, name)
            if found is not None and is_user_class(found.owner):
                reason = f"copying a {self.cls.__qualname__}, which calls {name}()"
                raise GraphBreak("FJ0133", reason)
        made = ObjectValue(self.cls, step=space.step)
        made.container = content
        return made

    def _scalar_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """A C-level method of the number or text inside."""
        if name == "__init__":
            return ConstantValue(None)
        if name == "__iter__":
            return space.iter(self.container)
        if name == "__format__" and len(args) == 1 and args[0].realize().as_python() == "":
            return space.text_of(self, "__str__")
        plain = [scalar_of(a.realize()) or a for a in args]
        other = plain[0].realize() if len(plain) == 1 else None
        if other is not None and not other.is_constant and name in _OPERATOR_METHODS:
            return ConstantValue(NotImplemented)
        return self.container.call_method(space, name, plain, kwargs)  # type: ignore[no-any-return]

    def as_python(self) -> Any:
        if type(self.container) is ConstantValue:
            return self.container.value
        return super().as_python()

    def hash_key(self, space: Space) -> Any:
        """Its key in dicts and sets."""
        if type(self.container) is ConstantValue:
            own = [space.class_attribute(self.cls, name) for name in ("__hash__", "__eq__")]
            if all(found is not None and not is_heap_class(found.owner) for found in own):
                return self.container.value
        return key_of_object(space, self)

    def contains(self, space: Space, item: Value) -> Value:
        container = type(item.realize().container)
        if type(self.container) is ConstantValue and container not in (type(None), ConstantValue):
            raise GraphBreak("FJ0155", f"`in` of a {self.describe()} and another container")
        return super().contains(space, item)

    def items_now(self, space: Space) -> list[Value] | None:
        if self.container is not None:
            # Who wants all may ask for the length first.
            asked = [space.class_attribute(self.cls, name) for name in ("__iter__", "__len__")]
            if not any(found is None or is_user_class(found.owner) for found in asked):
                return self.container.items_now(space)
        return None

    def len(self, space: Space) -> Value:
        found = space.class_attribute(self.cls, "__len__")
        if self.container is not None and found and not is_user_class(found.owner):
            return self.container.len(space)
        return super().len(space)

    def truth(self, space: Space) -> bool:
        if self.container is not None and space.class_attribute(self.cls, "__bool__") is None:
            found = space.class_attribute(self.cls, "__len__")
            if found is not None and not is_user_class(found.owner):
                return bool(self.container.truth(space))
        return super().truth(space)


class PropertyValue(ObjectValue):
    """A new instance of a subclass of ``property``: to be asked for its class, not to be kept."""

    __slots__ = ()

    def find_attribute(self, space: Space, name: str) -> Result | None:
        if name in ("fget", "fset", "fdel", "__doc__"):
            raise GraphBreak("FJ0151", f"attribute {name!r} of a {self.describe()}")
        return super().find_attribute(space, name)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "__init__":
            return ConstantValue(None)
        return super().call_method(space, name, args, kwargs)


# -- wrapping --------------------------------------------------------------------------------------


def _wrap_instance(space: Space, source: Source, obj: Any) -> Value:
    cls = type(obj)
    space.guard_class(source, cls)
    value = ObjectValue(cls, obj, source)
    space.remember(obj, value)
    for base in (dict, list, tuple, set, frozenset, deque, *SCALARS):
        if issubclass(cls, base):
            value.container = existing_container(space, source, obj, base)
            space.holders[value.container] = value
            break
    return value


def _has_instances(cls: type) -> bool:
    if cls in _PURE_METHODS:
        return True
    if not is_user_class(cls) or issubclass(cls, (torch.Tensor, type)):
        return False
    # Instances of C classes with state of their own (arrays, compiled objects) stay opaque.
    return solid_base(cls) in _SOLID


#: Immutable classes whose instances are numbers and texts.
SCALARS = (int, float, complex, str)
_SOLID = (object, dict, list, tuple, set, frozenset, OrderedDict, defaultdict, deque, *SCALARS)


def solid_base(cls: type) -> type:
    """The builtin class that determines the instance's memory layout."""
    for base in cls.__mro__:
        if not is_user_class(base):
            return base
    return object


wraps_classes(_has_instances, Rank.INSTANCE)(_wrap_instance)


def named_tuple(space: Space, cls: type, items: list[Value]) -> Value:
    """An instance of a named tuple's class."""
    made = ObjectValue(cls, step=space.step)
    made.container = TupleValue(items)
    return made
