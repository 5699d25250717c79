"""Sets and frozensets.

In: existing sets with their sources, or elements put together by the captured program. Out: their
operations and methods. A real set of keys is kept alongside and changed as CPython would, so that
constants come out in the order in which CPython would give them. Where that order is not known
(objects hashed by address; copies of existing sets) iterating is a graph break. Next: codegen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.iterators import SetIterator
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.amounts import check_count
from framejit.values.core.base import Unmaterialisable, Value, element_as_python, type_name
from framejit.values.core.complaints import SET_ELEMENT
from framejit.values.core.keys import (
    ObjectKey,
    asked,
    find,
    hash_known_here,
    is_plain,
    key_at,
    key_for,
    key_of_real,
    real_key,
    separate,
    settled,
    value_of_key,
)
from framejit.values.core.methods import ContainerValue, container_of, method
from framejit.values.core.registry import COMPARE, CONTENTS, Result, contents
from framejit.values.core.space import Space
from framejit.values.core.symbolic import fix_length, wrap_length

if TYPE_CHECKING:
    from framejit.values.containers.set_operands import Operand

#: The operators by the name of the method that makes another set.
OPERATIONS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}
_UNKNOWN_ORDER = "the order of a set depends on more than its elements"
#: So many changes of a set are replayed one by one, to give it the order that they gave it.
_LONGEST_LOG = 100


# -- existing sets, read without running the program's code ----------------------------------------


def has_address(key: Any) -> bool:
    if type(key) in (tuple, frozenset):
        return any(map(has_address, key))
    return type(key) is ObjectKey or not real_key(key)[0]


def content_of(obj: Any) -> frozenset[Any]:
    """The elements of an instance of a subclass, for guards."""
    return frozenset(iterate(obj))


def in_order(obj: Any) -> tuple[Any, ...]:
    """The same in order."""
    return tuple(iterate(obj))


def iterate(obj: Any) -> Any:
    return set.__iter__(obj) if isinstance(obj, set) else frozenset.__iter__(obj)


def size_of(obj: Any) -> int:
    return set.__len__(obj) if isinstance(obj, set) else frozenset.__len__(obj)


class SetValue(ContainerValue):
    """A set or frozenset (``cls``): ``keys`` in CPython's order, and the value of each key.

    ``ordered`` tells whether the order of ``keys`` is the one CPython would iterate in. For an
    existing set, ``log`` holds the method calls that changed it, to be replayed in order: with
    elements that were found by the program's ``__eq__`` in place of those that equal them.
    A new set to which elements were not only added one by one is made in the same way: by calling
    ``start`` (a function, its operands), and then the methods of ``log``.
    """

    __slots__ = ("_keys", "cls", "log", "obj", "ordered", "space", "start", "step", "values")

    def __init__(
        self,
        items: Iterable[tuple[Any, Value]] = (),
        source: Source | None = None,
        obj: Any = None,
        cls: type = set,
    ) -> None:
        #: Key -> value; keys are added to the real set one by one, as ``set(iterable)`` does.
        self.values: dict[Any, Value] = {}
        self._keys: set[Any] | None = set()
        for key, value in items:
            self._keys.add(key)
            self.values.setdefault(key, value)
        self.source = source
        self.obj = obj
        self.cls = cls
        self.mutated = False
        self.ordered = True
        self.start: tuple[Any, list[Value]] | None = None
        #: Where it was first changed otherwise than by adding an element.
        self.step = -1
        #: (method, argument, its keys): the argument is a snapshot.
        self.log: list[tuple[str, list[Value], list[Any]]] = []
        self.space: Space | None = None

    def python_type(self) -> type:
        return self.cls

    @property
    def is_constant(self) -> bool:  # type: ignore[override]
        if self.cls is not frozenset or self._keys is None or self._order_unknown():
            return False
        return all(value.realize().is_constant for value in self.values.values())

    def as_python(self) -> Any:
        """A set in CPython's order, which nobody may change."""
        if self._order_unknown():
            raise GraphBreak("FJ0164", _UNKNOWN_ORDER, "sort the set")
        keys = self.keys(self.space)
        real = self.cls([element_as_python(self.values[key]) for key in keys])
        if self.source is not None and self.space is not None and len(real) > 1:
            self._guard_order(self.space)
            return self.obj if type(self.obj) is self.cls else real
        return keys if self.cls is set and keys == real else real

    def hash_key(self, space: Space) -> Any:
        """The key that this frozenset is in another set or dict."""
        if self.cls is not frozenset:
            return space.raise_error(TypeError, f"unhashable type: {type_name(self.cls)!r}")
        return frozenset(self.keys(space))

    def keys(self, space: Space | None) -> set[Any]:
        """The keys of all elements; looking at an existing set guards its whole content."""
        keys = self._keys
        if keys is None:
            assert self.space is not None and self.source is not None
            check_count(size_of(self.obj))
            fix_length(self.space, self.source, self._kind)
            elements = list(iterate(self.obj))
            found = [key_of_real(element) for element in elements]
            plain = all(map(is_plain, elements))
            if plain:
                copy = (frozenset if self.cls is frozenset else set)(elements)
                exact = type(self.obj) in (set, frozenset)
                content = self.source if exact else self.source.child("call", content_of)
                self.space.guard(content, "EQUALS_MATCH", copy if exact else frozenset(copy))
            keys = self._keys = set()
            places = None
            if not plain or tuple in map(type, elements):  # they are found by where they are
                places = self._guard_order(self.space)
            for position, (key, element) in enumerate(zip(found, elements, strict=True)):
                keys.add(key)
                place = None if places is None else places.child("index", position)
                if plain:
                    self.values[key] = value_of_key(self.space, element, place)
                else:
                    assert place is not None
                    self.values[key] = key_at(self.space, element, place)
        return keys

    def _guard_order(self, space: Space) -> Source:
        """Guard the order of an existing set; where its elements are in this order."""
        assert self.source is not None
        asked = tuple if type(self.obj) in (set, frozenset) else in_order
        place, elements = self.source.child("call", asked), in_order(self.obj)
        if is_plain(elements):
            space.guard(place, "EQUALS_MATCH", elements)
        else:  # nothing of a guard may keep them alive
            space.guard(place, "LEN_MATCH", len(elements))
        return place

    def _order_unknown(self) -> bool:
        """Is the order neither that of ``keys`` nor that of an existing set?"""
        unchanged = self.source is not None and not self.mutated
        return not self.ordered and not unchanged and len(self.keys(self.space)) > 1

    def not_grown(self, space: Space, start: tuple[Any, list[Value]] | None = None) -> None:
        """The set is about to be changed otherwise than by adding an element, or (``start``) has
        been made otherwise."""
        if len(self.log) < _LONGEST_LOG:
            self.step = space.step
        if self.source is not None or asked(space, self.keys(space)):
            return
        if start is not None or self.start is None:
            self.start = start or (self.cls, [TupleValue(list(self.values.values()))])

    def snapshot(self, space: Space) -> Value:
        """The set as it is now, for calls that are made later."""
        made = SetValue((), None, None, self.cls)
        made._keys, made.values = self.keys(space).copy(), dict(self.values)
        made.ordered, made.step = self.order_known(), space.step
        if self.source is None:
            made.start, made.log = self.start, list(self.log)
        return made

    @property
    def is_replayed(self) -> bool:
        """Is it made by calling ``start`` and the methods of ``log``?"""
        return self.start is not None and self.ordered and len(self.log) <= _LONGEST_LOG

    @property
    def items(self) -> list[Value]:
        """The elements, in an order in which adding them one by one gives the order of ``keys``.
        Raises Unmaterialisable when that is not known."""
        order = list(self.keys(self.space))
        grown = self.start is None and (self.source is not None or self.step < 0)
        if self._order_unknown() or (not grown and any(map(has_address, order))):
            raise Unmaterialisable(self.step, _UNKNOWN_ORDER)
        candidates = [list(self.values), order, order[::-1]]
        if len(order) <= 5:
            candidates.extend(map(list, itertools.permutations(order)))
        for candidate in candidates:
            if list(set(candidate)) == order:
                return [self.values[key] for key in candidate]
        if not grown:
            raise Unmaterialisable(self.step, _UNKNOWN_ORDER)
        return [self.values[key] for key in order]

    def elements_in_order(self, space: Space) -> list[Value]:
        """The elements in CPython's order; a graph break when that is not known."""
        with settled(space):
            return self.in_order(space)

    def in_order(self, space: Space) -> list[Value]:
        keys = self.keys(space)
        if len(keys) > 1:
            if self.source is not None and not self.mutated:
                place, at = self._guard_order(space), enumerate(iterate(self.obj))
                return [
                    value_of_key(space, element, place.child("index", i))
                    if key_of_real(element) is element
                    else self.values[key_of_real(element)]
                    for i, element in at
                ]
            if self._order_unknown():
                raise GraphBreak("FJ0164", _UNKNOWN_ORDER, "sort the set")
            if any(has_address(key) for key in keys):
                raise GraphBreak(
                    "FJ0164",
                    "the order of a set of objects depends on their addresses",
                    "use a dict or a list instead of a set",
                )
            for key in keys:
                hash_known_here(space, key)
        return [self.values[key] for key in keys]

    def changed_by(self, space: Space, method: str, *args: Value, keys: Iterable[Any] = ()) -> None:
        """The set has been changed by calling ``method`` with ``args``, which have these keys."""
        self.changed(space)
        if self.source is not None:
            self.ordered = False
        elif self.start is None:
            return
        elif len(self.log) == _LONGEST_LOG:
            self.step = space.step
        self.log.append((method, list(args), list(keys)))

    @property
    def restored(self) -> bool:
        """Has an existing set lost again what was added to it, and nothing else?"""
        if any(method not in ("add", "discard") for method, *_ in self.log):
            return False
        if self.space is not None and self.space.user_keys:
            return False
        before = set(map(key_of_real, iterate(self.obj)))
        lost = any(
            method == "discard" and not before.isdisjoint(keys) for method, _, keys in self.log
        )
        return self._keys == before and not lost  # what comes back is found in another place

    def is_as_before(self) -> bool:
        return self.obj is not None and self.restored

    # -- operations --------------------------------------------------------------------------------

    def truth(self, space: Space) -> bool:
        if self._keys is not None:
            return bool(self._keys)
        answer = size_of(self.obj) > 0
        space.guard(self.source, "BOOL_MATCH", answer)
        return answer

    def len(self, space: Space) -> Value:
        if self._keys is not None:
            return space.constant(len(self._keys))
        assert self.source is not None
        return wrap_length(space, self.source, self._kind, self.obj)

    @property
    def _kind(self) -> type:
        return set if isinstance(self.obj, set) else frozenset

    def iter(self, space: Space) -> Value:
        return SetIterator(self, self.elements_in_order(space), space.step)

    def items_now(self, space: Space) -> list[Value] | None:
        return self.elements_in_order(space)

    def contains(self, space: Space, item: Value) -> Value:
        return space.constant(self.has(space, self._sought(space, item)))

    def has(self, space: Space, key: Any) -> bool:
        """Is a key that was looked for (`key`) there?"""
        with settled(space):
            return key in self.keys(space)

    def key(self, space: Space, item: Value, use: type | None = SET_ELEMENT) -> Any:
        """The key under which ``item`` is, or would be, in this set."""
        key = key_for(space, item, use)
        separate((key,), self.keys(space))
        return find(space, self.keys(space), key)

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        plain = space.as_set(other)
        if plain is None:
            return None
        left, right = self.keys(space), plain.keys(space)
        separate(left, right)
        return space.constant(COMPARE[op](left, right))

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        plain, name = space.as_set(other), OPERATIONS.get(op)
        if name is None or plain is None:
            return None
        if inplace and self.cls is set:
            self.apply(space, name, plain)
            return self
        if reflected:
            return plain.combine(space, name, self)
        return self.combine(space, name, plain)

    def combine(self, space: Space, name: str, *others: Value) -> SetValue:
        """What the method of this name makes of sets: CPython makes it from the sets of keys."""
        operands = [self._operand(space, other, name) for other in others]
        left = self.keys(space)
        result = SetValue((), None, None, frozenset if self.cls is frozenset else set)
        result._keys = getattr(left, name)(*[operand.keys for operand in operands])
        with settled(space):
            result._adopt(self.values, *[operand.values for operand in operands])
        result.ordered = self.order_known() and all(operand.ordered for operand in operands)
        if asked(space, left, *[operand.keys for operand in operands]):
            result.step = space.step
        else:
            snapshots = [operand.snapshot(space) for operand in operands]
            function = getattr(result.cls, name)
            result.not_grown(space, (function, [self.snapshot(space), *snapshots]))
        return result

    def order_known(self) -> bool:
        return self.ordered and self.source is None

    def _adopt(self, *values: dict[Any, Value]) -> None:
        """Find the value of each key: the earlier dicts win, as the elements kept by CPython."""
        self.values = {}
        assert self._keys is not None
        for known in values:
            for key in filter(self._keys.__contains__, known):
                self.values.setdefault(key, known[key])

    def apply(self, space: Space, name: str, other: Value) -> None:
        """Change the set as the operation of this name does, with any iterable."""
        other = other.realize()
        laid_out = other.python_type() in (dict, frozenset)  # their tables are walked, not they
        if name == "union" and not laid_out and container_of(other, SetValue) is None:
            self._add_all(space, space.items(other))
            return
        keys, operand = self.keys(space), self._operand(space, other, name)
        if asked(space, keys, operand.keys):
            self.apply_one_by_one(space, name, operand)
            return
        others = operand.snapshot(space)  # before the change: the other set may be this one
        self.not_grown(space)
        self.ordered = self.ordered and (name == "difference" or operand.ordered)
        update = "update" if name == "union" else f"{name}_update"
        getattr(keys, update)(operand.keys)
        self._adopt(self.values, operand.values)
        self.changed_by(space, update, others, keys=operand.keys)

    def _add_all(self, space: Space, items: list[Value]) -> None:
        """Add elements that are not in a set."""
        added = []
        for item in items:
            added.append((self.key(space, item), item))
            self._put(space, *added[-1])
        if not space.user_keys:
            keys = [key for key, _ in added]
            self.changed_by(space, "update", TupleValue(items), keys=keys)
        else:
            with settled(space):
                for key, item in added:
                    self.changed_by(space, "add", self.values.get(key, item), keys=[key])

    def _put(self, space: Space, key: Any, item: Value) -> Value:
        """Add an element that was looked for; the one that is there now."""
        with settled(space):
            self.keys(space).add(key)
            return self.values.setdefault(key, item)

    def apply_one_by_one(self, space: Space, name: str, operand: Operand) -> None:
        """The same where the program's own methods say what is equal. CPython adds other sets and
        dicts in a table that it makes larger at once: the order is not known then."""
        known = operand.ordered and type(operand.keys) is list
        ordered = self.ordered and (known or name == "difference")
        if not ordered:
            self.step = space.step
        if name == "intersection":
            kept = [find(space, self.keys(space), key) for key in operand.keys]
            with settled(space):
                gone = [key for key in self.keys(space) if key not in kept]
            for key in gone:
                self._discard(space, key, self.values[key])
        else:
            with settled(space):
                given = [(key, operand.values[key]) for key in operand.keys]
            for key, value in given:
                key = find(space, self.keys(space), key)
                back = name == "symmetric_difference" and self.has(space, key)
                if back or name == "difference":
                    self._discard(space, key, value)
                else:
                    self._add(space, key, value)
        self.ordered = ordered and self.source is None

    def _operand(self, space: Space, other: Value, name: str) -> Operand:
        """Any iterable as the argument of an operation."""
        hashed_before = name in ("intersection", "issubset")
        operand = space.operand_of(other, None if hashed_before else SET_ELEMENT)
        separate(self.keys(space), operand.keys)
        return operand

    # -- methods -----------------------------------------------------------------------------------

    @method(1)
    def do_add(self, space: Space, item: Value) -> None:
        self._add(space, self.key(space, item), item)

    def _add(self, space: Space, key: Any, item: Value) -> None:
        self.changed_by(space, "add", self._put(space, key, item), keys=[key])

    @method(1)
    def do_discard(self, space: Space, item: Value) -> None:
        self._discard(space, self._sought(space, item), item)

    def _sought(self, space: Space, item: Value) -> Any:
        """The key of what is looked for: of a set, the frozenset of its elements."""
        inner = container_of(item.realize(), SetValue)
        if inner is not None and inner.cls is set:
            return frozenset(inner.keys(space))
        return self.key(space, item)

    def _discard(self, space: Space, key: Any, item: Value) -> None:
        self.not_grown(space)
        with settled(space):
            self.keys(space).discard(key)
            item = self.values.pop(key, item)
        self.changed_by(space, "discard", item, keys=[key])

    @method(1)
    def do_remove(self, space: Space, item: Value) -> None:
        key = self._sought(space, item)
        if not self.has(space, key):
            space.raise_error(KeyError, item)
        self._discard(space, key, item)

    @method()
    def do_pop(self, space: Space) -> Value:
        keys = self.keys(space)
        if not keys:
            space.raise_error(KeyError, "pop from an empty set")
        if len(keys) > 1 and not self.order_known():
            raise GraphBreak("FJ0164", "set.pop() of a set whose order is not known")
        self.elements_in_order(space)
        self.not_grown(space)
        key = keys.pop()
        with settled(space):
            value = self.values.pop(key)
        self.changed_by(space, "pop")
        return value

    @method()
    def do_clear(self, space: Space) -> None:
        self._keys, self.values, self.ordered = set(), {}, True
        if self.source is None:
            self.start, self.log = None, []
        self.changed_by(space, "clear")

    @method()
    def do_copy(self, space: Space) -> Value:
        if self.cls is frozenset:
            return self
        return self.combine(space, "union")

    @method(0, -1)
    def do_union(self, space: Space, *others: Value) -> Value:
        if self.cls is frozenset:  # no method changes it
            return self.combine(space, "union", *others)
        result = self.combine(space, "union")
        for other in others:
            result.apply(space, "union", other)
        return result

    @method(0, -1)
    def do_update(self, space: Space, *others: Value) -> None:
        for other in others:
            plain = container_of(other.realize(), SetValue)
            if plain is None and other.realize().items_now(space) is None:
                for item in space.each(other):
                    self.do_add(space, item)
            else:
                self.apply(space, "union", other)

    @method(0, -1, names=("intersection", "difference"))
    def do_operations(self, space: Space, *others: Value, name: str) -> Value:
        return self.combine(space, name, *others)

    @method(0, -1, names=("intersection_update", "difference_update"))
    def do_updates(self, space: Space, *others: Value, name: str) -> None:
        if name == "intersection_update" and not others:
            others = (self,)  # CPython lays the table out again
        for other in others:
            self.apply(space, name.removesuffix("_update"), other)

    @method(1)
    def do_symmetric_difference(self, space: Space, other: Value) -> Value:
        return self.combine(space, "symmetric_difference", other)

    @method(1)
    def do_symmetric_difference_update(self, space: Space, other: Value) -> None:
        self.apply(space, "symmetric_difference", other)

    @method(1, names=("issubset", "issuperset", "isdisjoint"))
    def do_questions(self, space: Space, other: Value, name: str) -> Value:
        operand = self._operand(space, other, name)
        return space.constant(getattr(self.keys(space), name)(operand.keys))

    @method(0, 1)
    def do___init__(self, space: Space, iterable: Value | None = None) -> None:
        if self.cls is set:
            self.do_clear(space)
            if iterable is not None:
                self.do_update(space, iterable)


@contents(set)
def existing_set(space: Space, source: Source, obj: Any, cls: type) -> SetValue:
    value = SetValue((), source, obj, cls)
    value._keys = None
    value.space = space
    return value


CONTENTS[frozenset] = existing_set
