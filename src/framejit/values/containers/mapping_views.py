"""The live views of dicts: ``keys()``, ``values()``, ``items()``.

In: a dict value. Out: iteration, membership, comparison, and for keys and items the operations of
sets. A view holds no content of its own: it asks the dict each time. Next: codegen.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.values.containers.iterators import DictIterator
from framejit.values.containers.live_dicts import ProxyValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.containers.set_operands import copy_as, set_of
from framejit.values.containers.sets import SetValue
from framejit.values.core.base import Value
from framejit.values.core.keys import asked, key_of, separate
from framejit.values.core.methods import ContainerValue, container_of, method
from framejit.values.core.registry import Result

if TYPE_CHECKING:
    from framejit.values.containers.mappings import DictValue
    from framejit.values.containers.sets import SetValue
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
        return [mapping.entry(space, key, self.what) for key in mapping.keys_in_order(space)]

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

    def as_set(self, space: Space) -> SetValue:
        """``set(view)``."""
        self._break_if_asked(space)
        return set_of(space, self.items_now(space) or [])

    def _break_if_asked(self, space: Space) -> None:
        """How often the methods of keys run in an operation of views is CPython's matter."""
        if asked(space, self.mapping.pairs):
            raise GraphBreak("FJ0157", "a view of a dict compares keys with their own __hash__")

    def sample(self) -> Any:
        return getattr({}, self.what)()

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if self.what == "values" or op not in ("&", "|", "-", "^"):
            return None
        self._break_if_asked(space)
        if op == "&":
            return self._intersection(space, other)
        left, right = (other, self) if reflected else (self, other)
        made = copy_as(space, left, set)
        made.apply(space, op, right)
        return made

    def _intersection(self, space: Space, other: Value) -> Value:
        """As ``_PyDictView_Intersect``: which side is walked decides the order of the result."""
        mine, plain = self.as_set(space).keys(space), container_of(other, SetValue)
        walked, looked_up = (space.items(other), mine) if plain is None else ([], mine)
        if plain is not None:
            theirs = plain.keys(space)
            if other.python_type() is set and len(mine) <= len(theirs):
                walked, looked_up = self.items_now(space) or [], theirs
            else:
                walked = plain.elements_in_order(space)
        elif isinstance(other, DictViewValue) and len(walked) > len(mine):
            theirs = other.as_set(space).keys(space)
            walked, looked_up = self.items_now(space) or [], theirs
        keyed = [(key_of(space, item), item) for item in walked]
        separate([key for key, _ in keyed], looked_up)
        return set_of(space, [item for key, item in keyed if key in looked_up])

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if self.what == "values":
            return None
        plain: Value | None = container_of(other, SetValue)
        if isinstance(other, DictViewValue) and other.what != "values":
            plain = other.as_set(space)
        return None if plain is None else self.as_set(space).compare_op(space, op, plain)

    @method(1)
    def do_isdisjoint(self, space: Space, other: Value) -> Value:
        return self.as_set(space).do_isdisjoint(space, other)

    @method()
    def do___reversed__(self, space: Space) -> Value:
        return DictIterator(space, self.mapping, self.what, reverse=True)
