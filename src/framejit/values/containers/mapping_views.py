"""The live views of dicts: ``keys()``, ``values()``, ``items()``.

In: a dict value, or a view that exists already. Out: iteration, membership, comparison, and for
keys and items the operations of sets. A view holds no content of its own: it asks the dict each
time. Next: codegen.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeGuard

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.dict_contents import DictContent
from framejit.values.containers.iterators import DictIterator
from framejit.values.containers.live_dicts import ProxyValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.containers.set_operands import copy_as, set_of
from framejit.values.containers.sets import OPERATIONS, SetValue
from framejit.values.core.base import Value
from framejit.values.core.constants import wrap_opaque
from framejit.values.core.keys import asked
from framejit.values.core.methods import ContainerValue, container_of, method
from framejit.values.core.registry import Result, wraps

if TYPE_CHECKING:
    from framejit.values.containers.mappings import DictValue
    from framejit.values.core.space import Space


class DictViewValue(ContainerValue):
    """``mapping.keys()``, ``.values()`` or ``.items()``; ``what`` is the method's name."""

    __slots__ = ("mapping", "what")

    def __init__(self, mapping: DictValue, what: str) -> None:
        self.mapping = mapping
        self.what = what
        self.source = None

    def python_type(self) -> type:
        sample: dict[None, None] = OrderedDict() if self.mapping.cls is OrderedDict else {}
        return type(getattr(sample, self.what)())

    def truth(self, space: Space) -> bool:
        return self.mapping.truth(space)

    def len(self, space: Space) -> Value:
        return self.mapping.len(space)

    def iter(self, space: Space) -> Value:
        return DictIterator(space, self.mapping, self.what)

    def items_now(self, space: Space) -> list[Value] | None:
        mapping = self.mapping
        return [mapping.entry(space, key, self.what) for key in mapping.places(space)]

    def contains(self, space: Space, item: Value) -> Value:
        mapping, item = self.mapping, item.realize()
        if self.what == "keys":
            return mapping.contains(space, item)
        if self.what == "values":
            values = self.items_now(space) or []
            return space.constant(any(space.equal(value, item) for value in values))
        plain = container_of(item, TupleValue)
        if plain is None or len(plain.items) != 2:
            return space.constant(False)
        pair = mapping.lookup(space, mapping.key(space, plain.items[0]))
        return space.constant(pair is not None and space.equal(pair[1], plain.items[1]))

    def getattr(self, space: Space, name: str) -> Result:
        if name == "mapping":
            return ProxyValue(space, self.mapping)
        return super().getattr(space, name)

    def _break_if_asked(self, space: Space) -> None:
        """How often the methods of keys run in an operation of views is CPython's matter."""
        if asked(space, self.mapping.pairs):
            raise GraphBreak("FJ0157", "a view of a dict compares keys with their own __hash__")

    def sample(self) -> Any:
        return getattr({}, self.what)()

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if self.what == "values" or op not in OPERATIONS:
            return None
        self._break_if_asked(space)
        if op == "&":
            return self._intersection(space, other)
        left, right = (other, self) if reflected else (self, other)
        if op == "^" and _is_view(other) and self.what == other.what == "items":
            return set_of(space, [*_missing(space, right, left), *_missing(space, left, right)])
        made = copy_as(space, left, set)
        made.apply(space, OPERATIONS[op], right)
        return made

    def _intersection(self, space: Space, other: Value) -> Value:
        """As ``_PyDictView_Intersect``: which side is walked decides the order of the result."""
        walked, where, kind = other, self, other.python_type()  # type: tuple[Value, Value, type]
        if kind is set or _is_view(other):
            larger = len(_elements(space, other)) - len(_elements(space, self))
            if larger > 0 or (kind is set and larger == 0):
                walked, where = self, other
        plain = container_of(where, SetValue)
        if plain is None:
            return set_of(space, [i for i in space.items(walked) if space.contains(where, i)])
        # Errors say nothing of elements of a set: they are looked for by their hash.
        items = space.items(walked)
        return set_of(space, [i for i in items if plain.has(space, plain.key(space, i, None))])

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        operand = other if _is_view(other) else space.as_set(other)
        if self.what == "values" or operand is None:
            return None
        self._break_if_asked(space)
        few, many = (operand, self) if op in (">", ">=") else (self, operand)
        size, most = len(_elements(space, few)), len(_elements(space, many))
        fits = size == most if op in ("==", "!=") else size <= most - (len(op) == 1)
        holds = fits and all(space.contains(many, item) for item in _elements(space, few))
        return space.constant(holds is not (op == "!="))

    @method(1)
    def do_isdisjoint(self, space: Space, other: Value) -> Value:
        self._break_if_asked(space)
        walked, where = other.realize(), self  # type: tuple[Value, Value]
        if walked.python_type() in (set, frozenset) or _is_view(walked):
            if len(_elements(space, walked)) > len(_elements(space, self)):
                walked, where = self, walked
        return space.constant(not any(space.contains(where, i) for i in space.each(walked)))

    @method()
    def do___reversed__(self, space: Space) -> Value:
        return DictIterator(space, self.mapping, self.what, reverse=True)


_DICTS: tuple[dict[None, None], ...] = ({}, OrderedDict())
#: The method that makes views of a class.
_MADE_BY = {
    type(getattr(made, what)()): what for made in _DICTS for what in ("keys", "values", "items")
}


def viewed(view: Any) -> Any:
    """The dict that a view shows."""
    return gc.get_referents(view)[0]


@wraps(*_MADE_BY)
def _wrap_view(space: Space, source: Source, obj: Any) -> Value:
    mapping = space.load(source.child("call", viewed), viewed(obj)).realize()
    plain = container_of(mapping, DictContent)
    if plain is None or (plain.cls is OrderedDict) is not type(obj).__name__.startswith("odict"):
        return wrap_opaque(space, source, obj)
    space.guard(source, "TYPE_MATCH", type(obj))
    made = DictViewValue(plain, _MADE_BY[type(obj)])  # type: ignore[arg-type]
    made.source = source
    return space.remember(obj, made)


def _is_view(value: Value) -> TypeGuard[DictViewValue]:
    """Is it a view that operations with sets know?"""
    return isinstance(value, DictViewValue) and value.what != "values"


def _elements(space: Space, value: Value) -> list[Value]:
    """The elements of a set or view, in any order."""
    plain = space.as_set(value)
    if plain is None:
        return space.items(value)
    return [plain.values[key] for key in plain.keys(space)]


def _missing(space: Space, few: Value, many: Value) -> list[Value]:
    """The elements that are not in ``many``: they are looked for, which hashes no values."""
    return [item for item in _elements(space, few) if not space.contains(many, item)]
