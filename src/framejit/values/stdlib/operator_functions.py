"""The module ``operator``: its functions are the interpreter's own operations.

In: calls of ``operator.add`` and the like, and of itemgetter, attrgetter, methodcaller objects.
Out: the results of the same operations written as expressions. Next: interpreter.
"""

from __future__ import annotations

import operator
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Value, type_name
from framejit.values.core.methods import builtin, count_error, index_of, length_hint
from framejit.values.core.registry import BINARY, COMPARE, INPLACE, UNARY, Result, lookaside, wraps
from framejit.values.core.space import Space
from framejit.values.objects.functions import call_polyfill


def _register_binary(op: str, function: Any, inplace: bool) -> None:
    @builtin(function, 2)
    def handler(space: Space, left: Value, right: Value) -> Result:
        return space.binary(op, left, right, inplace)


def _register_compare(op: str, function: Any) -> None:
    @builtin(function, 2)
    def handler(space: Space, left: Value, right: Value) -> Result:
        return space.compare(op, left, right)


def _register_unary(op: str, function: Any) -> None:
    @builtin(function, 1)
    def handler(space: Space, value: Value) -> Result:
        return space.unary(op, value)


for _op in BINARY:
    _register_binary(_op, BINARY[_op], False)
    _register_binary(_op, INPLACE[_op], True)
for _op in COMPARE:
    _register_compare(_op, COMPARE[_op])
for _op in UNARY:
    _register_unary(_op, UNARY[_op])
_register_unary("~", operator.inv)


def _register_concatenation(function: Any, inplace: bool) -> None:
    @builtin(function, 2)
    def handler(space: Space, left: Value, right: Value) -> Result:
        cls = left.python_type()
        if not issubclass(cls, (str, bytes, list, tuple)):
            raise GraphBreak("FJ0155", f"operator.{function.__name__}() of a {type_name(cls)}")
        return space.binary("+", left, right, inplace)


_register_concatenation(operator.concat, False)
_register_concatenation(operator.iconcat, True)


@builtin(operator.getitem, 2)
def _getitem(space: Space, value: Value, key: Value) -> Result:
    return space.getitem(value, key)


@builtin(operator.setitem, 3)
def _setitem(space: Space, value: Value, key: Value, new: Value) -> None:
    space.setitem(value, key, new)


@builtin(operator.delitem, 2)
def _delitem(space: Space, value: Value, key: Value) -> None:
    space.delitem(value, key)


@builtin(operator.contains, 2)
def _contains(space: Space, container: Value, item: Value) -> Value:
    return space.constant(space.contains(container, item))


@builtin(operator.countOf, 2)
def _count(space: Space, container: Value, item: Value) -> Value:
    return space.constant(sum(space.equal(element, item) for element in space.items(container)))


@builtin(operator.abs, 1)
def _abs(space: Space, value: Value) -> Result:
    return space.call(space.constant(abs), [value], {})


@builtin(operator.length_hint, 1, 2)
def _length_hint(space: Space, value: Value, default: Value | None = None) -> Result:
    otherwise = 0 if default is None else index_of(space, default)
    said = length_hint(space, value.realize())
    return space.constant(otherwise) if said is None else said


@builtin(operator.is_, 2)
def _is(space: Space, left: Value, right: Value) -> Value:
    return space.constant(space.is_(left, right))


@builtin(operator.is_not, 2)
def _is_not(space: Space, left: Value, right: Value) -> Value:
    return space.constant(not space.is_(left, right))


@builtin(operator.truth, 1)
def _truth(space: Space, value: Value) -> Value:
    return space.constant(space.truth(value))


@builtin(operator.not_, 1)
def _not(space: Space, value: Value) -> Value:
    return space.constant(not space.truth(value))


@builtin(operator.index, 1)
def _index(space: Space, value: Value) -> Value:
    return space.constant(int(index_of(space, value)))


@builtin(operator.call, 1, -1)
def _call(space: Space, function: Value, *args: Value) -> Result:
    return space.call(function, list(args), {})


class GetterValue(Value):
    """An itemgetter, attrgetter or methodcaller (``kind``) with its ``args`` and ``kwargs``."""

    __slots__ = ("args", "kind", "kwargs", "obj")

    def __init__(
        self,
        kind: type,
        args: list[Value],
        kwargs: dict[str, Value],
        source: Source | None = None,
        obj: Any = None,
    ) -> None:
        self.kind = kind
        self.args = args
        self.kwargs = kwargs
        self.source = source
        self.obj = obj

    def python_type(self) -> type:
        return self.kind

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        if len(args) != 1 or kwargs:
            count_error(space, lambda: self.kind("name"), args, kwargs)
        target = args[0]
        if self.kind is operator.itemgetter:
            if len(self.args) == 1:
                return space.getitem(target, self.args[0])
            return call_polyfill(space, polyfills.get_items, [target, TupleValue(self.args)])
        count = 1 if self.kind is operator.methodcaller else len(self.args)
        names = [str(arg.realize().as_python()) for arg in self.args[:count]]
        if self.kind is operator.attrgetter:
            found = [self._attribute(space, target, name) for name in names]
            return found[0] if len(found) == 1 else TupleValue(found)
        method = space.getattr_now(target, names[0])
        return space.call(method, self.args[1:], self.kwargs)

    @staticmethod
    def _attribute(space: Space, target: Value, path: str) -> Value:
        for name in path.split("."):
            target = space.getattr_now(target, name)
        return target


def _register_getter(kind: type) -> None:
    @builtin(kind, 1, -1)
    def make(space: Space, *args: Value) -> Value:
        if kind is operator.attrgetter and not all(issubclass(a.python_type(), str) for a in args):
            space.raise_error(TypeError, "attribute name must be a string")
        return GetterValue(kind, list(args), {})


_register_getter(operator.itemgetter)
_register_getter(operator.attrgetter)


@lookaside(operator.methodcaller)
def _make_caller(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    if not args:
        raise GraphBreak("FJ0137", "methodcaller() without a name")
    if not issubclass(args[0].python_type(), str):
        space.raise_error(TypeError, "method name must be a string")
    return GetterValue(operator.methodcaller, args, kwargs)


@wraps(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def _wrap_getter(space: Space, source: Source, obj: Any) -> Value:
    """An existing getter: immutable, so its identity is guarded."""
    space.guard(source, "ID_MATCH", obj)
    kind, args = obj.__reduce__()[:2]
    kwargs: dict[str, Any] = {}
    if kind is not type(obj):  # a methodcaller with keywords: partial(methodcaller, name, **kw)
        kwargs, args = kind.keywords, (*kind.args, *args)
    return space.remember(
        obj,
        GetterValue(
            type(obj),
            [space.constant(arg) for arg in args],
            {name: space.constant(value) for name, value in kwargs.items()},
            source,
            obj,
        ),
    )
