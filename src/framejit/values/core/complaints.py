"""What CPython says where its messages depend on its release: it is asked for them by failing.

In: names of classes and attributes. Out: the text of the exception that the running CPython raises
for them. Next: the values that raise it in the captured program.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from framejit.graph.silence import unwarned
from framejit.values.core.base import type_name


def said(function: Callable[..., Any], *args: Any) -> str:
    """What CPython says when ``function`` fails for ``args``."""
    try:
        function(*args)
    except Exception as error:
        return str(error)
    raise AssertionError("it does not fail")


def too_many_values(cls: type, count: int, size: int) -> str:
    """An object of ``cls`` has ``size`` elements, for ``count`` variables."""
    elements: Any = range(size)
    if cls is dict:
        elements = dict.fromkeys(elements)
    elif cls is list or cls is tuple:
        elements = cls(elements)
    return said(_unpack, elements, count)


def _unpack(elements: Any, count: int) -> None:
    names = "one, " * count or "()"
    exec(f"{names} = elements", {"elements": elements})


def no_container(cls: type) -> str:
    """Objects of ``cls`` cannot be searched."""
    return said(operator.contains, _stand_in(cls)(), None)


def no_iterable_for_slice(step: int | None) -> str:
    """What is assigned to a slice of a list cannot be iterated over."""
    return said(operator.setitem, [], slice(None, None, step), None)


def wrong_object_for_super(cls: type, obj: type, is_class: bool) -> str:
    """``super(cls, obj)``, or with an object of that class."""
    other = _named(type_name(obj))
    return said(super, _named(type_name(cls)), other if is_class else other())


#: What hashes an object: CPython 3.14 says so where the object cannot be hashed.
DICT_KEY, SET_ELEMENT = dict, set


@functools.cache
def uses_are_named() -> bool:
    """Does an error of a key say what the key was to be used for?"""
    return said(operator.getitem, {}, []) != said(hash, [])


def useless_key(cls: type, use: type, reason: str) -> str:
    """An object of ``cls`` cannot be hashed, for ``reason``, and so not be used."""

    def fails(key: Any) -> int:
        raise TypeError(reason)

    return said(operator.contains, use(), _stand_in(cls, __hash__=fails)())


def empty_slot(cls: type, name: str) -> str:
    """A slot of an object of ``cls`` is read that has no content."""
    return said(getattr, _stand_in(cls, __slots__=(name,))(), name)


def nowhere_to_write(cls: type, name: str, found: bool, write: Any = object.__setattr__) -> str:
    """Objects of ``cls`` have no ``__dict__``; the class has ``name``, or has not. ``write`` is
    called with what it needs: `object.__setattr__` or `object.__delattr__`."""
    fields: dict[str, Any] = {"__slots__": ()}
    if found:
        fields.setdefault(name, _sets_attribute)
    of_object = object.__setattr__, object.__delattr__
    if (cls.__setattr__, cls.__delattr__) != of_object:  # object's is called by the class's own
        fields["__setattr__"] = _sets_attribute
    blank = object.__new__(_stand_in(cls, **fields))  # its __init__ may be the name
    return said(write, blank, name, *[None] * (write is object.__setattr__))


def no_context_manager(cls: type) -> str:
    """Objects of ``cls`` lack what `with` asks for."""
    names = ("__enter__", "__exit__", "__aenter__", "__aexit__")
    return said(_enter, _stand_in(cls, **{name: _named for name in names if hasattr(cls, name)})())


def _enter(manager: Any) -> None:
    with manager:
        pass


def _sets_attribute(*args: Any) -> None:
    """Of a class that has one of its own."""


def _named(name: str) -> Any:
    return type(name, (), {})


def _stand_in(cls: type, **fields: Any) -> Any:
    """A class with the names of ``cls``, as messages show them."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(type_name(cls), (), names | fields)


@functools.cache
def class_methods_chain() -> bool:
    """Does a ``classmethod`` ask what it wraps for ``__get__``?"""
    return classmethod(property(lambda cls: 1)).__get__(None, int) == 1  # type: ignore[arg-type]


@functools.cache
def partials_bind() -> bool:
    """Is a ``functools.partial`` in a class a method? CPython 3.13 warns that it will be one."""
    with unwarned():
        bound = getattr(functools.partial(type), "__get__", lambda *args: None)(0, int)
    return isinstance(bound, types.MethodType)


@functools.cache
def tuples_ask_for_length() -> bool:
    """Does ``tuple()`` ask an iterable how long it will be?"""
    asked = []

    def length_hint(self: Any) -> int:
        asked.append(self)
        return 0

    methods = {"__iter__": lambda self: iter(()), "__length_hint__": length_hint}
    tuple(type("Asked", (), methods)())
    return bool(asked)


@functools.cache
def sorting_takes_any_truth() -> bool:
    """May ``reverse`` be any object with a truth value? Else it has to be a number."""
    try:
        [].sort(reverse=None)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def method_of_another(method: Any, cls: type, bound: bool = False) -> str:
    """A method in C, called on (or bound to) an object of ``cls``, which does not have it."""
    theirs, its = type_name(method.__objclass__), type_name(cls)
    text = f"for {theirs!r} objects doesn't apply to a {its!r} object"
    if type(method) is types.WrapperDescriptorType and not bound:
        text = f"requires a {theirs!r} object but received a {its!r}"
    return f"descriptor {method.__name__!r} {text}"
