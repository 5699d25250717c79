"""How values are hashed: the Python object that represents a value as a key of a dict or set.

In: values, or real keys of existing dicts and sets. Out: keys that are equal and hash equal exactly
when the objects they represent do. Constants are their own keys, tuples and frozensets are
made of keys, whatever hashes by its address is an `ObjectKey`; hashes written in Python are a graph
break. Next: mappings, sets.
"""

from __future__ import annotations

import contextlib
import enum
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from framejit import native
from framejit.classes import compiled_from
from framejit.exc import GraphBreak
from framejit.values.core import complaints
from framejit.values.core.base import Raised, Value, is_nan, type_name
from framejit.values.core.constants import ConstantValue

if TYPE_CHECKING:
    from framejit.source import Source
    from framejit.values.core.space import Space

#: Immutable, hashable, with an equality that runs no user code.
PLAIN_TYPES: frozenset[type] = frozenset({
    int, str, bool, float, complex, bytes, type(None), type(Ellipsis), type(NotImplemented), range,
    torch.dtype, torch.device, torch.layout, torch.memory_format,
})  # fmt: skip
_ENUM_MODULES = ("enum", "builtins")
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
_BY_ADDRESS = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)


class ObjectKey:
    """The key of an object that is hashed by its address: a real object, or a value made here."""

    __slots__ = ("target", "value")

    def __init__(self, target: Any, value: Value | None = None) -> None:
        self.target = target
        #: What the program holds, unless the key was found in an existing container.
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is UserKey:  # has the same hash, and says itself what it equals
            return NotImplemented
        if type(other) is not ObjectKey:
            return False
        here, there = self.target, other.target
        return here is there or (_is_one_of_several(here, there) and bool(here == there))

    def __hash__(self) -> int:
        """That of an existing object; nothing knows the address of another."""
        real = self.target
        if isinstance(real, Value) or issubclass(type(real), torch.Tensor):
            return id(real)
        return hash(real)


def _is_one_of_several(here: Any, there: Any) -> bool:
    """Can another object be the same thing? Each lookup of a method in C binds it anew, and a
    compiled module is the one that it was compiled from."""
    compiled = (compiled_from(type(one)) is not None for one in (here, there))
    return type(here) in _BOUND or any(compiled)


class UserKey:
    """The key of a value whose ``__hash__`` and ``__eq__`` are Python code: they are inlined.

    Looking for a key runs ``__eq__`` where CPython would, once (`find`). What is done after that,
    with keys that are known to be different, runs nothing (`settled`).
    """

    __slots__ = ("number", "space", "target")

    def __init__(self, space: Space, target: Value, number: int) -> None:
        self.space = space
        self.target = target
        #: What ``__hash__`` returned.
        self.number = number
        space.user_keys = True

    def __eq__(self, other: object) -> bool:
        if type(other) is UserKey and other.target is self.target:
            return True
        found = self.space.found_equal
        if self.space.settled:
            pair = {id(self), id(other)}
            return any(pair == {id(left), id(right)} for left, right in found or ())
        equal = self._equals(other)
        if equal and found is not None:
            found.append((self, other))
        return equal

    def _equals(self, other: object) -> bool:
        if type(other) is ObjectKey:
            if isinstance(other.target, Value):  # by chance the same number
                return False
            raise GraphBreak(
                "FJ0157", "a key with its own __eq__ is compared with an existing object"
            )
        if type(other) is UserKey:
            value: Value = other.target
        elif is_plain(other):
            value = self.space.constant(other)
        else:
            raise GraphBreak("FJ0157", "a key with its own __eq__ is compared with a container")
        return self.space.equal(self.target, value)

    def __hash__(self) -> int:
        return self.number


_NOTHING: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


def settled(space: Space) -> contextlib.AbstractContextManager[None]:
    """What is known about the equality of keys is all that counts; none is asked any more."""
    return _settled(space) if space.user_keys else _NOTHING


@contextlib.contextmanager
def _settled(space: Space) -> Iterator[None]:
    before, space.settled = space.settled, True
    try:
        yield
    finally:
        space.settled = before


def find(space: Space, keys: Collection[Any], key: Any) -> Any:
    """The one of ``keys`` that equals ``key``, or else ``key``: what the program's lookup finds."""
    if not space.user_keys:
        return key
    outer, space.found_equal = space.found_equal, []
    try:
        if key not in keys:
            return key
        with settled(space):
            return next(known for known in keys if known is key or known == key)
    finally:
        space.found_equal = outer


def user_keys(key: Any) -> Iterator[UserKey]:
    """Those that a key is made of."""
    if type(key) is UserKey:
        yield key
    elif type(key) in (tuple, frozenset):
        for part in key:
            yield from user_keys(part)


def asked(space: Space, *groups: Iterable[Any]) -> bool:
    """Does one of these keys compare itself in the program's own way?"""
    return space.user_keys and any(any(user_keys(key)) for keys in groups for key in keys)


class IdentityKey(ObjectKey):
    """The key of ``id(target)``: equal to other identities, never to a number (`separate`)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is IdentityKey and other.target is self.target

    def __hash__(self) -> int:
        return hash(("id", id(self.target)))


class ReferenceKey:
    """The key of a weak reference: equal when what is referred to is."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target

    def __eq__(self, other: object) -> bool:
        return type(other) is ReferenceKey and bool(other.target == self.target)

    def __hash__(self) -> int:
        return hash(self.target)


def separate(keys: Iterable[Any], others: Iterable[Any]) -> None:
    """A graph break when one of ``keys`` and one of ``others`` could be an address and the same
    number."""
    for key in keys:
        if type(key) is str:
            continue
        for one, other in ((_is_address, _is_large), (_is_large, _is_address)):
            if mentions(key, one) and any(mentions(held, other) for held in others):
                raise GraphBreak("FJ0159", "an address is compared with a number")


def mentions(key: Any, test: Callable[[Any], bool]) -> bool:
    """Does the test hold for the key or one of its parts?"""
    if type(key) is tuple or type(key) is frozenset:
        return any(mentions(part, test) for part in key)
    return test(key)


def _is_address(key: Any) -> bool:
    return type(key) is IdentityKey


def _is_large(key: Any) -> bool:
    return isinstance(key, (int, float)) and abs(key) > 1 << 16


_A_TEXT = "a text"


def hash_known_here(space: Space, obj: Any) -> None:
    """Guard that ``hash(obj)`` is what it is in this process: texts are hashed with a seed."""
    if isinstance(obj, (tuple, frozenset)):
        for part in obj:
            hash_known_here(space, part)
    elif isinstance(obj, (str, bytes)) or _is_enum_of_plain(type(obj)):
        asked = space.const_source(_A_TEXT, "a text").child("call", hash)
        space.guard(asked, "EQUALS_MATCH", hash(_A_TEXT))
    elif type(obj) in PLAIN_TYPES and not isinstance(obj, (int, float, complex)):
        asked = space.const_source(obj, str(obj)).child("call", hash)
        space.guard(asked, "EQUALS_MATCH", hash(obj))
    elif not isinstance(obj, (int, float, complex, list, dict, set)):
        raise GraphBreak("FJ0159", "hash() depends on the address of an object")


def hashed_by_address(cls: type) -> bool:
    """Whether objects of this class are equal only to themselves. (A class may get methods later:
    see `stays_so`.)"""
    if issubclass(cls, torch.Tensor):
        known = cls.__hash__ is torch.Tensor.__hash__
    else:
        known = cls.__hash__ is object.__hash__ and cls.__eq__ is object.__eq__
    return known or issubclass(cls, _BY_ADDRESS) or _is_compiled_module(cls)


def _is_compiled_module(cls: type) -> bool:
    """Is its ``__hash__`` that of the module which it was compiled from?"""
    return compiled_from(cls) is not None and type(cls.__hash__) is types.MethodWrapperType


def _is_enum_of_plain(cls: type) -> bool:
    """Enum classes whose members hash and compare by C code, or by Enum's own."""
    if not issubclass(cls, enum.Enum):
        return False
    own = [base.__dict__ for base in cls.__mro__ if base.__module__ not in _ENUM_MODULES]
    return not any("__eq__" in names or "__hash__" in names for names in own)


def stays_so(space: Space, cls: type) -> None:
    """Guard how objects of the class hash and compare."""
    for name in ("__hash__", "__eq__"):
        space.class_attribute(cls, name)


def is_plain(obj: Any) -> bool:
    """A constant, or tuples and frozensets of constants."""
    kind = type(obj)
    if kind in PLAIN_TYPES:
        return True
    if kind is tuple or kind is frozenset or kind is torch.Size:
        return all(map(is_plain, obj))
    return _is_enum_of_plain(kind)


def key_of(space: Space, value: Value) -> Any:
    """The key for ``value``; TypeError in the program when it is not hashable."""
    value = value.realize()
    hash_key = value.hash_key  # tuples, frozensets: made of keys
    if hash_key is not None:
        return hash_key(space)
    if value.is_constant or value.is_symbolic:
        key = value.as_python()
        if type(key) is str:
            return key
        space.run_real(hash, key)
        if isinstance(key, enum.Enum):
            stays_so(space, type(key))
        if is_nan(value):  # hashed by its address
            space.guard(value.source, "ID_MATCH", key)
        return key_of_real(key) if type(key) is frozenset else key
    return key_of_object(space, value)


def key_for(space: Space, value: Value, use: type | None) -> Any:
    """`key_of` for a dict or set (`complaints.DICT_KEY`, ``SET_ELEMENT``): errors may name it."""
    try:
        return key_of(space, value)
    except Raised as error:
        exact = error.value.python_type() is TypeError
        if use is None or not exact or not complaints.uses_are_named():
            raise
        reason = space.exception_text(error.value).as_python()
        cls = value.realize().python_type()
    return space.raise_error(TypeError, complaints.useless_key(cls, use, reason))


def key_of_object(space: Space, value: Value) -> Any:
    """The key of a value that hashes by its address, or by Python code."""
    cls = value.python_type()
    if cls.__hash__ is None:
        space.raise_error(TypeError, f"unhashable type: {type_name(cls)!r}")
    if _is_enum_of_plain(cls) and real_object(value) is not None:
        return real_object(value)
    if not hashed_by_address(cls):
        found = space.class_attribute(cls, "__hash__")
        if found is not None and type(found.raw) is types.FunctionType:
            method = space.special_method(value, "__hash__")
            assert method is not None
            number = space.call_now(method, []).realize().as_python()
            if not isinstance(number, int):
                space.raise_error(TypeError, "__hash__ method should return an integer")
            return UserKey(space, value, number)
        raise GraphBreak(
            "FJ0157",
            f"a {value.describe()} with its own __hash__ is used as a key of a dict or set",
        )
    stays_so(space, cls)
    real = real_object(value)
    if real is None:
        return ObjectKey(value)
    tell_apart(space, value)
    return ObjectKey(real, value)


#: So many objects used as keys are compared pairwise; more are known by their identity.
_PAIRWISE = 8


def tell_apart(space: Space, value: Value) -> None:
    """Guard which of the other objects that the program uses as keys an existing one is, if any."""
    if value.source is None or value.source.accessor == "const" or value in space.keys:
        return
    others, real = space.keys, real_object(value)
    for one in others:
        if real_object(one) is real:  # a tuple, which has a value for each of its sources
            space.guard(value.source, "SAME_OBJECT", one.source)
            return
    others[value] = None
    if space.pin_keys:
        pin(space, value)
    elif len(others) > _PAIRWISE or compiled_from(type(real)) is not None:
        space.pin_keys = True
        for one in others:
            pin(space, one)
    elif len(others) > 1:
        sources = tuple([one.source for one in others if one is not value])
        space.guard(value.source, "DISTINCT", sources)


def pin(space: Space, value: Value | None) -> None:
    """Guard the identity of an existing object: an existing container is asked for it."""
    if value is None or value.source is None or value.source.accessor == "const":
        return
    real = real_object(value)
    if space.policy.seen.changes(value.source.name, real):
        raise GraphBreak("FJ0157", "a key of a dict or set is another object in each call")
    space.guard(value.source, "ID_MATCH", real)


def may_be_held(key: Any) -> bool:
    """Can a guard look for it without keeping any object of the program's alive?"""
    if type(key) is ObjectKey:
        held = type(key.target) is object or native.supports_weakrefs(key.target)
        return key.value is not None and held
    return is_plain(key)


def real_object(value: Value) -> Any:
    """The existing object behind a value (a class, a module, a sourced object), or None."""
    real = value.obj
    return getattr(value, "module", None) if real is None else real


def key_of_real(obj: Any) -> Any:
    """The key for a key found in an existing dict or set."""
    if is_plain(obj):
        return obj
    kind = type(obj)
    if kind is tuple or kind is frozenset:
        return kind(map(key_of_real, obj))
    if hashed_by_address(kind):
        return ObjectKey(obj)
    if issubclass(kind, weakref.ReferenceType) and obj() is not None:
        return ReferenceKey(key_of_real(obj()))
    raise GraphBreak(
        "FJ0157", f"a dict or set has a key of type {kind.__qualname__} with its own __hash__"
    )


def real_key(key: Any) -> tuple[bool, Any]:
    """The real object of a key: (True, object); (False, None) when it was made while capturing."""
    if type(key) is UserKey or type(key) is IdentityKey:
        return False, None
    if type(key) is ReferenceKey:
        known, target = real_key(key.target)
        return known, native.GuardReference(target) if known else None
    if type(key) is ObjectKey:
        return not isinstance(key.target, Value), key.target
    if type(key) in (tuple, frozenset):
        parts = [real_key(part) for part in key]
        return all(known for known, _ in parts), type(key)(part for _, part in parts)
    return True, key


#: Equal ones need not be one object.
_EQUAL_ONES = (str, int, bytes, float, complex)


def value_of_key(space: Space, obj: Any, place: Source | None = None) -> Value:
    """The value for a constant that is a key of an existing dict or set whose keys are guarded; it
    is found at ``place``, if that is known."""
    if type(obj) is tuple and place is not None:
        return space.constant_tuple(obj, place)
    if place is not None and type(obj) in _EQUAL_ONES:
        if space.preloaded(place) is None:
            space.preload(place, ConstantValue(obj, place))
        return space.preloaded(place)  # type: ignore[return-value]
    if not isinstance(obj, enum.Enum):
        return space.constant(obj)
    return space.known_value(obj) or space.load(space.const_source(obj, f"key {obj}"), obj)


def key_at(space: Space, obj: Any, place: Source) -> Value:
    """The value for any key, which is guarded where it is: no guard keeps an object alive."""
    value = space.load(place, obj).realize()
    if key_of(space, value) != key_of_real(obj):
        raise GraphBreak("FJ0157", f"a {value.describe()} is a key of an existing container")
    return value
