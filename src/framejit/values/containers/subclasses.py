"""Containers inside objects of subclasses of list, tuple, dict and set.

In: an existing object with its source, or a class and the arguments of ``__new__``. Out: the value
that holds the object's elements, for ``ObjectValue.container``; named tuples. Next: objects.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.set_operands import copy_as
from framejit.values.containers.sets import SetValue
from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import container_of, count_error, elements_for_tuple
from framejit.values.core.registry import CONTENTS, Result, wraps
from framejit.values.core.space import Space

_Sample = namedtuple("_Sample", "field")


#: How to get at the number or text inside an instance of a subclass.
_CONTENT: dict[type, Any] = {
    int: int.__int__, float: float.__float__, complex: complex.__complex__, str: str.__str__,
}  # fmt: skip


def existing_container(space: Space, source: Source, obj: Any, base: type) -> Value:
    """The content of ``obj``, an instance of a subclass of the builtin class ``base``."""
    if base in _CONTENT:
        content = _CONTENT[base](obj)
        space.guard(source.child("call", _CONTENT[base]), "EQUALS_MATCH", content)
        return ConstantValue(content)
    if issubclass(base, dict):
        base = _dict_kind(type(obj))
    return CONTENTS[base](space, source, obj, base)


def new_container(
    space: Space, base: type, cls: type, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """The content of a new ``cls``, as ``base.__new__(cls, *args)`` leaves it."""
    if base in _CONTENT:
        made = space.call_now(space.constant(base), args, kwargs).realize()
        if not made.is_constant:
            raise GraphBreak("FJ0136", f"making a {cls.__qualname__} of a value that is not known")
        return made
    if issubclass(base, dict):
        return DictValue({}, None, None, _dict_kind(cls))
    if base is list:
        return ListValue([])
    if base is tuple:
        return TupleValue(list(elements_for_tuple(space, args[0])) if args else [])
    if base is frozenset:
        return copy_as(space, args[0] if args else None, frozenset)
    return SetValue()


class FieldValue(Value):
    """The descriptor of a named tuple's field."""

    __slots__ = ("index", "obj")

    def __init__(self, index: int, obj: Any, source: Source) -> None:
        self.index = index
        self.obj = obj
        self.source: Source = source

    def python_type(self) -> type:
        return type(self.obj)

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """``__get__``: the element of the tuple."""
        owner = None if not args else container_of(args[0].realize(), TupleValue)
        if name != "__get__" or owner is None:
            raise GraphBreak("FJ0133", f"{name}() of a named tuple's field")
        return owner.items[self.index]


@wraps(type(_Sample.field))
def _wrap_field(space: Space, source: Source, obj: Any) -> Value:
    """The descriptor of an existing named tuple class; found there, it is guarded already."""
    if not any(fact.kind == "ID_MATCH" for fact in source.facts):
        space.guard(source, "TYPE_MATCH", type(obj))
        space.guard(source.child("call", _index_of), "EQUALS_MATCH", _index_of(obj))
    return space.remember(obj, FieldValue(_index_of(obj), obj, source))


def _index_of(field: Any) -> int:
    return int(field.__reduce__()[1][0])


def _dict_kind(cls: type) -> type:
    return next((kind for kind in (OrderedDict, defaultdict) if issubclass(cls, kind)), dict)


def class_method(
    space: Space, cls: type, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Result | None:
    """C-level class methods that need more than folding (``dict.fromkeys``); None: not known."""
    if name == "fromkeys" and issubclass(cls, dict):
        names = ("iterable", "value") if issubclass(cls, OrderedDict) else ()
        if not 1 <= len(args) + len(kwargs) <= 2 or not kwargs.keys() <= {*names[len(args) :]}:
            count_error(space, lambda: cls.fromkeys, args, kwargs)
        if not args and "iterable" not in kwargs:
            space.run_real(cls.fromkeys, **dict.fromkeys(kwargs))
        given = [*args, *[kwargs[name] for name in names if name in kwargs], space.constant(None)]
        iterable, default = given[:2]
        made = DictValue({}, None, None, cls)
        for key in space.items(iterable):
            made.store(space, made.key(space, key, writes=True), key, default)
        return made
    return None
