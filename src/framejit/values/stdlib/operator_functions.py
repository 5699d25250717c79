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
from framejit.values.core.base import Args, Declared, Kwargs, Value, type_name
from framejit.values.core.constants import PURE_TYPES
from framejit.values.core.methods import builtin, count_error, index_of, length_hint
from framejit.values.core.registry import BINARY, COMPARE, INPLACE, UNARY, Result, lookaside, wraps
from framejit.values.core.space import Space
from framejit.values.objects.functions import call_polyfill


def _operation(name: str, op: str, *more: Any) -> Any:
    """The space's ``binary``, ``compare`` or ``unary`` with this operator."""
    return lambda space, *operands: getattr(space, name)(op, *operands, *more)


for _op in BINARY:
    builtin(BINARY[_op], 2)(_operation("binary", _op))
    builtin(INPLACE[_op], 2)(_operation("binary", _op, True))
for _op in COMPARE:
    builtin(COMPARE[_op], 2)(_operation("compare", _op))
for _op in UNARY:
    builtin(UNARY[_op], 1)(_operation("unary", _op))
builtin(operator.inv, 1)(_operation("unary", "~"))


def _register_concatenation(function: Any, inplace: bool) -> None:
    @builtin(function, 2)
    def handler(space: Space, left: Value, right: Value) -> Result:
        cls = left.python_type()
        if not issubclass(cls, (str, bytes, list, tuple)):
            raise GraphBreak("FJ0155", f"operator.{function.__name__}() of a {type_name(cls)}")
        return space.binary("+", left, right, inplace)


_register_concatenation(operator.concat, False)
_register_concatenation(operator.iconcat, True)


def _count(space: Space, container: Value, item: Value) -> Any:
    return sum(space.equal(element, item) for element in space.items(container))


_OPERATIONS: tuple[tuple[Any, int, Any], ...] = (
    (operator.getitem, 2, Space.getitem), (operator.setitem, 3, Space.setitem),
    (operator.delitem, 2, Space.delitem), (operator.contains, 2, Space.contains),
    (operator.countOf, 2, _count), (operator.truth, 1, Space.truth),
    (operator.is_, 2, lambda space, left, right: space.is_(left, right)),
    *[
        (one, 1, lambda space, value, wanted=wanted: value.is_none() is wanted)
        for name, wanted in (("is_none", True), ("is_not_none", False))
        if (one := getattr(operator, name, None)) is not None
    ],
    (operator.is_not, 2, lambda space, left, right: not space.is_(left, right)),
    (operator.not_, 1, lambda space, value: not space.truth(value)),
    (operator.index, 1, lambda space, value: int(index_of(space, value))),
    (operator.abs, 1, lambda space, value: space.call(space.constant(abs), [value], {})),
)  # fmt: skip
for _function, _operands, _handler in _OPERATIONS:
    builtin(_function, _operands)(_handler)


@builtin(operator.length_hint, 1, 2)
def _length_hint(space: Space, value: Value, default: Value | None = None) -> Result:
    otherwise = 0 if default is None else index_of(space, default)
    said = length_hint(space, value.realize())
    return space.constant(otherwise) if said is None else said


@lookaside(operator.call)
def _call(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if not args:
        count_error(space, lambda: operator.call, args, kwargs)
    return space.call(args[0], list(args[1:]), kwargs)


class GetterValue(Declared):
    """An itemgetter, attrgetter or methodcaller (``kind``) with its ``args`` and ``kwargs``."""

    kind: Any
    args: list[Value]
    kwargs: dict[str, Value]
    source: Source | None = None
    obj: Any = None

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
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
def _make_caller(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if not args:
        raise GraphBreak("FJ0137", "methodcaller() without a name")
    if not issubclass(args[0].python_type(), str):
        space.raise_error(TypeError, "method name must be a string")
    return GetterValue(operator.methodcaller, args, kwargs)


def _held(getter: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that a getter was made with."""
    kind, args = getter.__reduce__()[:2]
    if kind is type(getter):
        return args, {}
    return (*kind.args, *args), kind.keywords  # a methodcaller: partial(methodcaller, name, **kw)


@wraps(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def _wrap_getter(space: Space, source: Source, obj: Any) -> Value:
    """An existing getter, known by its identity. What it holds may change."""
    space.guard(source, "ID_MATCH", obj)
    args, kwargs = _held(obj)
    held = source.child("call", _held)
    places, names = held.child("index", 0), held.child("index", 1)

    def load(place: Source, arg: Any) -> Value:
        return space.constant(arg) if type(arg) in PURE_TYPES else space.load(place, arg)

    given = [load(places.child("index", i), arg) for i, arg in enumerate(args)]
    named = {name: load(names.child("item", name), arg) for name, arg in kwargs.items()}
    return space.remember(obj, GetterValue(type(obj), given, named, source, obj))
