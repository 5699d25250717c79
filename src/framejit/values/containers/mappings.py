"""Dicts: dict, OrderedDict, defaultdict, and the ``__dict__`` of objects.

In: existing dicts with their sources, or entries put together by the captured program. Out: their
operations and methods, in CPython's key order. Next: mapping_views, codegen.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict
from typing import Any

from framejit.native import c_attribute
from framejit.source import Source
from framejit.values.containers.dict_contents import DictContent, size_of
from framejit.values.containers.iterators import DictIterator
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Value
from framejit.values.core.keys import (
    find,
    separate,
    settled,
)
from framejit.values.core.methods import container_of, count_error, listed, method
from framejit.values.core.namespaces import own_attribute, store_own
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import Result, contents, makes
from framejit.values.core.space import Space
from framejit.values.core.symbolic import wrap_length


class DictValue(DictContent):
    """A dict with its operations and methods."""

    __slots__ = ()

    # -- operations --------------------------------------------------------------------------------

    def truth(self, space: Space) -> bool:
        if self.complete:
            return bool(self.pairs)
        if self.blind:
            return True
        if self.delta:
            return self.size(space) > 0
        answer = size_of(self.obj) > 0
        space.guard(self.source, "BOOL_MATCH", answer)
        return answer

    def len(self, space: Space) -> Value:
        if self.complete or self.blind or not isinstance(self.obj, dict) or self.source is None:
            return space.constant(self.size(space))
        before = wrap_length(space, self.source, dict, self.obj)
        return space.now(space.binary("+", before, space.constant(self.delta)))

    def iter(self, space: Space) -> Value:
        return DictIterator(space, self, "keys")

    def items_now(self, space: Space) -> list[Value] | None:
        return [self.entry(space, key, "keys") for key in self.places(space)]

    def contains(self, space: Space, item: Value) -> Value:
        if isinstance(item, LazyValue) and item.is_unknown_key and not self.truth(space):
            return space.constant(False)  # whatever key of another dict it is
        return space.constant(self.lookup(space, self.key(space, item)) is not None)

    def getitem(self, space: Space, key: Value) -> Result:
        pair = self.lookup(space, self.key(space, key))
        if pair is not None:
            return pair[1]
        if self.cls is defaultdict:
            return self.do___missing__(space, key)
        return self._missing(space, key)

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        self.store(space, self.key(space, key, writes=True), key, value)

    def delitem(self, space: Space, key: Value) -> None:
        made = self.key(space, key, writes=True)
        if self.lookup(space, made) is None:
            self._missing(space, key)
        self.remove(space, made)

    def _missing(self, space: Space, key: Value) -> Value:
        return space.raise_error(KeyError, key)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "default_factory" and self.cls is defaultdict:
            return self.factory(space)
        own = own_attribute(space, self, name) if self.cls is OrderedDict else None
        return own or super().getattr(space, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        if name == "default_factory" and self.cls is defaultdict and self.source is None:
            self.default_factory = value
        elif self.cls is OrderedDict and name != "__dict__":  # the one that has a __dict__
            store_own(space, self, name, value)
        else:
            super().setattr(space, name, value)

    def delattr(self, space: Space, name: str) -> None:
        if self.cls is not OrderedDict or own_attribute(space, self, name) is None:
            super().delattr(space, name)
        store_own(space, self, name, None)

    def factory(self, space: Space) -> Value:
        """The defaultdict's ``default_factory``."""
        if self.default_factory is None:
            if self.source is not None and isinstance(self.obj, defaultdict):
                factory = c_attribute(self.obj, "default_factory")
                self.default_factory = space.load(
                    self.source.child("attr", "default_factory"), factory
                )
            else:
                self.default_factory = space.constant(None)
        return self.default_factory

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        plain = container_of(other, DictValue)
        if plain is None or op not in ("==", "!="):
            return None
        ordered = self.cls is OrderedDict and plain.cls is OrderedDict
        return space.constant(self._same(space, plain, ordered) is (op == "=="))

    def _same(self, space: Space, other: DictValue, ordered: bool) -> bool:
        if self is other:
            return True
        if self.size(space) != other.size(space):
            return False
        mine, theirs = self.items, other.items
        separate(mine, theirs)
        if ordered and list(mine) != list(theirs):
            return False
        for key, (_, value) in mine.items():
            found = find(space, theirs, key)
            with settled(space):
                pair = theirs.get(found)
            if pair is None or not space.equal(value, pair[1]):
                return False
        return True

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if op != "|":
            return None
        if inplace:
            self.do_update(space, other, kwargs={})
            return self
        plain = container_of(other, DictValue)
        if plain is None:
            return None
        left, right = (plain, self) if reflected else (self, plain)
        result = left.fresh_copy(space)
        if reflected:
            result.cls = self.cls
            result.default_factory = self.default_factory
        if known_pairs(space, other) is None and not reflected:
            result.do_update(space, other, kwargs={})
        else:
            result.merge(space, right)
        return result

    def fresh_copy(self, space: Space) -> DictValue:
        """A new dict of the same kind with the same entries."""
        pairs = self.items
        copy = DictValue(pairs.copy(), None, None, self.cls)
        if self.source is None and len(pairs) >= sum(s for *_, s in self.history) * 2 // 3:
            copy.history = self.history.copy()  # CPython copies gaps, too, unless there are many
        if self.cls is defaultdict:
            copy.default_factory = self.factory(space)
        return copy

    def with_values(self, values: list[Value]) -> DictValue:
        """A new dict of the same kind with the same keys."""
        entries = zip(self.items.items(), values, strict=True)
        pairs = {key: (old[0], new) for (key, old), new in entries}
        made = DictValue(pairs, None, None, self.cls)
        made.default_factory = self.default_factory
        if self.cls is defaultdict and self.space is not None:
            made.default_factory = self.factory(self.space)
        return made

    def merge(self, space: Space, other: DictValue) -> None:
        """Store all entries of ``other``."""
        for key in other.keys_in_order(space):
            pair = other.lookup(space, key)
            assert pair is not None
            self.store(space, self._held(space, key), *pair)

    # -- methods -----------------------------------------------------------------------------------

    @method(1, 2)
    def do_get(self, space: Space, key: Value, default: Value | None = None) -> Value | None:
        pair = self.lookup(space, self.key(space, key))
        return default if pair is None else pair[1]

    @method(1, 2)
    def do_setdefault(self, space: Space, key: Value, default: Value | None = None) -> Value:
        made = self.key(space, key)
        pair = self.lookup(space, made)
        if pair is not None:
            return pair[1]
        value = space.constant(None) if default is None else default
        self.store(space, made, key, value)
        return value

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        if self.cls is not OrderedDict and (kwargs or (args and name == "popitem")):
            if name in ("pop", "popitem"):  # only an OrderedDict's take these
                count_error(space, lambda: self._sample_method(name), args, kwargs)
        return super().call_method(space, name, args, kwargs)

    @method(1, 2, "default")
    def do_pop(self, space: Space, key: Value, default: Value | None = None) -> Value:
        plain = key.realize().is_constant or self.cls is OrderedDict
        pair = None
        if plain or self.size(space):  # an empty dict does not hash the key
            made = self.key(space, key, writes=True)
            pair = self.lookup(space, made)
        if pair is None:
            return self._missing(space, key) if default is None else default
        self.remove(space, made)
        return pair[1]

    @method(0, 1, "last")
    def do_popitem(self, space: Space, last: Value | None = None) -> Value:
        keys = self.keys_in_order(space)
        if not keys:
            space.run_real(self.sample().popitem)
        key = keys[-1 if last is None or space.truth(last) else 0]
        pair = self.lookup(space, key)
        assert pair is not None
        self.remove(space, key)
        return TupleValue(list(pair))

    @method(1, 2, "last")
    def do_move_to_end(self, space: Space, key: Value, last: Value | None = None) -> None:
        pairs, made = self.items, self.key(space, key)
        pair = self.known(space, made)
        if pair is None:
            self._missing(space, key)
            return
        to_end = last is None or space.truth(last)
        with settled(space):
            rest = {k: p for k, p in pairs.items() if k != made}
            self.replace(space, {**rest, made: pair} if to_end else {made: pair, **rest})

    @method(0, 1, "**")
    def do_update(
        self,
        space: Space,
        other: Value | None = None,
        kwargs: dict[str, Value] | None = None,
    ) -> None:
        if other is not None:
            self._update_from(space, other.realize())
        for name, value in (kwargs or {}).items():
            self._put(space, space.constant(name), value)

    def _put(self, space: Space, key: Value, value: Value) -> None:
        """Store an entry; OrderedDict asks for ``__setitem__``, which a subclass may have."""
        target = space.holders.get(self, self) if self.cls is OrderedDict else self
        space.setitem(target, key, value)

    def _update_from(self, space: Space, other: Value) -> None:
        plain = known_pairs(space, other)
        if self.cls is OrderedDict and other.python_type() is dict:
            other, plain = space.call_now(space.getattr_now(other, "items"), []), None
        if plain is not None and self.cls is not OrderedDict:
            self.merge(space, plain)
        elif space.class_attribute(other.python_type(), "keys") is not None:
            keys = space.call_now(space.getattr_now(other, "keys"), [])
            for key in listed(space, keys):
                self._put(space, key, space.now(space.getitem(other, key)))
        else:
            for position, element in enumerate(space.each(other)):
                self._put(space, *self._pair(space, element, position))

    def _pair(self, space: Space, element: Value, position: int) -> list[Value]:
        if self.cls is OrderedDict:  # has its own C code and messages
            pair = space.items(element)
            if len(pair) != 2:
                space.run_real(OrderedDict, [[None] * len(pair)])
            return pair
        place = f"dictionary update sequence element #{position}"
        pair = listed(space, element, lambda: dict([*[(0, 0)] * position, None]))  # type: ignore
        if len(pair) != 2:
            space.raise_error(ValueError, f"{place} has length {len(pair)}; 2 is required")
        return pair

    @method(0, -1, "**")
    def do___init__(
        self, space: Space, *args: Value, kwargs: dict[str, Value] | None = None
    ) -> None:
        count = len(args)
        if self.cls is defaultdict and args:
            self.default_factory, args = args[0].realize(), args[1:]
            known = space.class_attribute(self.default_factory.python_type(), "__call__")
            if known is None and not self.default_factory.is_none():
                space.raise_error(TypeError, "first argument must be callable or None")
        if len(args) > 1:
            space.run_real(self.cls, *[None] * count)
        self.do_update(space, args[0] if args else None, kwargs)

    @method()
    def do_clear(self, space: Space) -> None:
        self.replace(space, {})

    @method()
    def do_copy(self, space: Space) -> Value:
        return self.fresh_copy(space)

    do___copy__ = do_copy

    @method(names=("keys", "values", "items"))
    def do_views(self, space: Space, name: str) -> Value:
        return space.new_view(self, name)

    @method()
    def do___reversed__(self, space: Space) -> Value:
        return DictIterator(space, self, "keys", reverse=True)

    @method(1)
    def do___missing__(self, space: Space, key: Value) -> Value:
        factory = self.factory(space).realize()
        if self.cls is not defaultdict or factory.is_none():
            return self._missing(space, key)
        value = space.call_now(factory, [])
        self.store(space, self.key(space, key), key, value)
        return value


class InstanceDictValue(DictValue):
    """The ``__dict__`` of an object; a new one knows its ``owner``. See `namespaces`."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any, source: Source | None = None, obj: Any = None) -> None:
        super().__init__({}, source, obj)
        self.owner = owner
        self.complete = obj is None

    def is_current(self) -> bool:
        """Is it still what the ``__dict__`` of a new owner is?"""
        return self.owner is not None and self.owner.namespace is self


def known_pairs(space: Space, value: Value) -> DictValue | None:
    """The dict whose entries ``dict.update(value)`` takes, with the hashes it knows; not of an
    object of a subclass with its own ``__iter__``: that is asked."""
    plain = container_of(value, DictValue)
    if plain is not None and plain is not value:
        found = space.class_attribute(value.python_type(), "__iter__")
        if found is not None and isinstance(found.raw, types.FunctionType):
            return None
    return plain


@contents(dict, OrderedDict, defaultdict)
def existing_dict(space: Space, source: Source, obj: Any, cls: type = dict) -> DictValue:
    value = DictValue({}, source, obj, cls)
    value.complete = False
    value.space = space
    return value


def new_dict(space: Space, entries: dict[str, Value]) -> DictValue:
    """A dict with string keys, as made for ``**kwargs``."""
    return DictValue({name: (space.constant(name), value) for name, value in entries.items()})


@makes(dict)
def _constant_dict(space: Space, obj: dict[Any, Any]) -> Value:
    return DictValue({k: (space.constant(k), space.constant(v)) for k, v in obj.items()})
