"""Dicts: dict, OrderedDict, defaultdict, and the ``__dict__`` of objects.

In: existing dicts with their sources, or entries put together by the captured program. Out: their
operations and methods, in CPython's key order. An existing dict is known piece by piece: reading a
key guards that key's presence or absence, writing one guards nothing; whatever needs all keys
guards them, once (`DictValue.complete`). Next: mapping_views, codegen.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.iterators import DictIterator
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.amounts import check_count
from framejit.values.core.base import Value, element_as_python
from framejit.values.core.constants import ConstantValue
from framejit.values.core.keys import (
    ObjectKey,
    find,
    is_plain,
    key_at,
    key_of,
    key_of_real,
    may_be_held,
    pin,
    real_key,
    separate,
    settled,
    user_keys,
    value_of_key,
)
from framejit.values.core.methods import ContainerValue, container_of, count_error, listed, method
from framejit.values.core.namespaces import own_attribute, store_own
from framejit.values.core.registry import Result, makes, wraps
from framejit.values.core.space import Space
from framejit.values.core.symbolic import fix_length, wrap_length

Pair = tuple[Value, Value]
_LONGEST_HISTORY = 100


class DictValue(ContainerValue):
    """A dict. For codegen, when ``mutated``: if ``rewritten``, clear the real one and store all
    ``items`` in order; else delete the keys that have ``moved``, and apply ``written`` in order
    (None: delete the key)."""

    __slots__ = (
        "blind", "cls", "complete", "default_factory", "delta", "history", "moved", "namespace",
        "obj", "pairs", "removed", "rewritten", "space", "version", "written",
    )  # fmt: skip

    def __init__(
        self,
        items: dict[Any, Pair],
        source: Source | None = None,
        obj: Any = None,
        cls: type = dict,
    ) -> None:
        #: Key -> (key, value): everything when ``complete``, else what is known to be there.
        self.pairs = items
        self.source = source
        self.obj = obj
        self.cls = cls
        self.complete = True
        self.default_factory: Value | None = None
        self.mutated = False
        self.rewritten = False
        self.written: dict[Any, tuple[Value, Value | None]] = {}
        #: Keys that were deleted and stored again, which moves them to the end.
        self.moved: dict[Any, tuple[Value, None]] = {}
        #: Key, its value, whether it was stored (or deleted): with keys that have methods of their
        #: own, from the first deletion on. It leaves a gap, which decides whom later keys meet.
        self.history: list[tuple[Any, Value, bool]] = []
        #: An OrderedDict's own attributes.
        self.namespace: Any = None
        #: Counts changes of the set of keys, for iterators.
        self.version = 0
        #: While incomplete: keys stored without looking, keys known to be gone, change in size.
        self.blind: set[Any] = set()
        self.removed: set[Any] = set()
        self.delta = 0
        self.space: Space | None = None

    def python_type(self) -> type:
        return self.cls

    def as_python(self) -> Any:
        pairs = self.items.values()
        plain = {element_as_python(k): element_as_python(v) for k, v in pairs}
        if self.cls is defaultdict:
            raise GraphBreak("FJ0136", "a defaultdict is not a constant")
        return plain if self.cls is dict else self.cls(plain)

    @property
    def items(self) -> dict[Any, Pair]:
        """All entries in order: key -> (key value, value)."""
        if not self.complete:
            assert self.space is not None
            self.look_at_all(self.space)
        return self.pairs

    # -- knowledge ---------------------------------------------------------------------------------

    def look_at_all(self, space: Space) -> None:
        """Know every key, in order; guards them. Afterwards the dict is complete."""
        if self.complete:
            return
        source, obj = self.source, self.obj
        assert source is not None
        check_count(dict.__len__(obj))
        if issubclass(type(obj), OrderedDict):
            for real in dict.__iter__(obj):  # its own iterator hashes the keys
                key_of_real(real)
        reals = tuple(_iterate(obj))
        keys = [key_of_real(real) for real in reals]
        separate(self.pairs, reals)
        plain = all(map(is_plain, reals))
        if plain:
            space.guard(source, "DICT_KEYS", reals)
        else:  # nothing of a guard may keep them alive: they are found by where they are
            space.guard(source, "LEN_MATCH", len(reals))
        fix_length(space, source, dict)
        out: dict[Any, Pair] = {}
        for position, (real, key) in enumerate(zip(reals, keys, strict=True)):
            shown = (value_of_key if plain else key_at)(
                space, real, source.child("key_at", position)
            )
            if key in self.removed:
                continue
            known = self.pairs.get(key)
            if known is None:
                where = ("item", real) if plain else ("value_at", position)
                content = space.load(source.child(*where), _read(obj, real))
            else:
                content = known[1]
            out[key] = (shown, content)
        for key, pair in self.pairs.items():
            out.setdefault(key, pair)
        self.pairs = out
        self.complete = True
        self.blind.clear()
        self.removed.clear()

    def key(self, space: Space, item: Value) -> Any:
        """The key under which ``item`` is, or would be, in this dict."""
        return self._held(space, key_of(space, item))

    def _held(self, space: Space, key: Any) -> Any:
        if not space.user_keys:
            return key
        if any(user_keys(key)):
            self.look_at_all(space)
        if self.cls is OrderedDict and any(
            hash(other) == hash(key) and (any(user_keys(other)) or any(user_keys(key)))
            for other in self.pairs
        ):
            raise GraphBreak("FJ0157", "an OrderedDict compares keys more often than it needs to")
        return find(space, self.pairs, key)

    def lookup(self, space: Space, key: Any) -> Pair | None:
        """The entry for ``key``; in an incomplete dict its presence or absence is guarded."""
        pair = self.known(space, key) if space.user_keys else self.pairs.get(key)
        if pair is not None:
            return pair
        by_text = type(key) is str
        if not by_text:
            separate((key,), self.pairs)
        if self.complete or key in self.removed:
            return None
        if by_text:
            return self._look_for(space, key, key, ConstantValue(key))
        known, real = real_key(key)
        if not known or not may_be_held(key):
            if type(key) is not ObjectKey or known:
                self.look_at_all(space)
                separate((key,), self.pairs)
                return self.pairs.get(key)
            return None  # an object made while capturing cannot be a key of an existing dict
        by_address = type(key) is ObjectKey
        value = key.value if by_address else value_of_key(space, real)
        pin(space, value)
        return self._look_for(space, key, real, value)

    def _look_for(self, space: Space, key: Any, real: Any, value: Value) -> Pair | None:
        """The entry of the existing dict for ``real``; its presence or absence is guarded."""
        assert self.source is not None
        child = self.source.child("item", real)
        if not _has(self.obj, real):
            space.guard(child, "ABSENT")
            return None
        pair = self.pairs[key] = (value, space.load(child, _read(self.obj, real)))
        return pair

    def known(self, space: Space, key: Any) -> Pair | None:
        """The entry of a key that was looked for (`key`)."""
        if not space.user_keys:
            return self.pairs.get(key)
        with settled(space):
            return self.pairs.get(key)

    def store(self, space: Space, key: Any, key_value: Value, value: Value) -> None:
        """``self[key] = value``; an equal key that is there already stays."""
        if not space.user_keys:
            self._store(space, key, key_value, value)
            return
        with settled(space):
            self._store(space, key, key_value, value)

    def _store(self, space: Space, key: Any, key_value: Value, value: Value) -> None:
        before = self.written.get(key)
        if before is not None and before[1] is None:  # deleted before: it moves to the end
            del self.written[key]
            self.moved[key] = before[0], None
        old = self.pairs.get(key)
        if old is not None:
            self.pairs[key] = (old[0], value)
        else:
            separate((key,), self.pairs)
            if not self.complete:
                if key in self.removed:
                    self.delta += 1
                else:
                    self.blind.add(key)
            self.pairs[key] = (key_value, value)
            self.version += 1
            if self.history:
                self.history.append((key, key_value, True))
        if self.source is not None:
            self.written[key] = self.pairs[key]
        self.changed(space)

    def remove(self, space: Space, key: Any) -> None:
        """Delete an entry that is there."""
        if not space.user_keys:
            self._remove(space, key)
            return
        with settled(space):
            if not self.history:
                new = self.source is None or self.rewritten
                before: Any = self.pairs if new else self.written
                self.history = [(k, p[0], True) for k, p in before.items() if p[1] is not None]
            if len(self.history) >= _LONGEST_HISTORY:
                raise GraphBreak("FJ0157", "keys with their own __eq__ come and go very often")
            self.history.append((key, self.pairs[key][0], False))
            self._remove(space, key)

    def _remove(self, space: Space, key: Any) -> None:
        if self.source is not None:
            known, real = real_key(key)
            was_there = known and self.obj is not None and _has(self.obj, real)
            if not self.complete:
                if key in self.blind:  # stored without looking; now it matters
                    kind = "PRESENT" if was_there else "ABSENT"
                    space.guard(self.source.child("item", real) if known else None, kind)
                    self.blind.discard(key)
                    self.delta += 0 if was_there else 1
                self.delta -= 1
                self.removed.add(key)
            if was_there:
                self.written.pop(key, None)
                self.written[key] = self.pairs[key][0], None
            else:
                self.written.pop(key, None)
        del self.pairs[key]
        self.version += 1
        self.changed(space)

    def replace(self, space: Space, pairs: dict[Any, Pair]) -> None:
        """Take over a new content, whatever was there."""
        self.pairs = pairs
        self.complete = True
        self.blind.clear()
        self.removed.clear()
        self.written.clear()
        self.moved.clear()
        self.history = []
        self.rewritten = self.source is not None
        self.version += 1
        self.changed(space)

    def keys_in_order(self, space: Space) -> list[Any]:
        """All keys."""
        self.look_at_all(space)
        return list(self.pairs)

    def size(self, space: Space) -> int:
        """The number of entries; guards the size of an existing dict only."""
        if self.complete:
            return len(self.pairs)
        if self.blind:
            self.look_at_all(space)
            return len(self.pairs)
        length = _size(self.obj)
        space.guard(self.source, "LEN_MATCH", length)
        return length + self.delta

    def entry(self, space: Space, key: Any, what: str) -> Value:
        """What a view shows of an entry: ``what`` is "keys", "values" or "items"."""
        pair = self.lookup(space, key)
        assert pair is not None
        if what == "keys":
            return pair[0]
        return pair[1] if what == "values" else TupleValue(list(pair))

    # -- operations --------------------------------------------------------------------------------

    def truth(self, space: Space) -> bool:
        if self.complete:
            return bool(self.pairs)
        if self.blind:
            return True
        if self.delta:
            return self.size(space) > 0
        answer = _size(self.obj) > 0
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
        return [self.entry(space, key, "keys") for key in self.keys_in_order(space)]

    def contains(self, space: Space, item: Value) -> Value:
        return space.constant(self.lookup(space, self.key(space, item)) is not None)

    def getitem(self, space: Space, key: Value) -> Result:
        pair = self.lookup(space, self.key(space, key))
        if pair is not None:
            return pair[1]
        if self.cls is defaultdict:
            return self.do___missing__(space, key)
        return self._missing(space, key)

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        self.store(space, self.key(space, key), key, value)

    def delitem(self, space: Space, key: Value) -> None:
        made = self.key(space, key)
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
                self.default_factory = space.load(
                    self.source.child("attr", "default_factory"), self.obj.default_factory
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
            made = self.key(space, key)
            pair = self.lookup(space, made)
        if pair is None:
            return self._missing(space, key) if default is None else default
        self.remove(space, made)
        return pair[1]

    @method(0, 1, "last")
    def do_popitem(self, space: Space, last: Value | None = None) -> Value:
        keys = self.keys_in_order(space)
        if not keys:
            prefix = "" if self.cls is OrderedDict else "popitem(): "
            space.raise_error(KeyError, f"{prefix}dictionary is empty")
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
            if len(pair) > 2:
                space.raise_error(ValueError, "too many values to unpack (expected 2)")
            if len(pair) < 2:
                plural = "s" if not pair else ""
                space.raise_error(ValueError, f"need more than {len(pair)} value{plural} to unpack")
            return pair
        place = f"dictionary update sequence element #{position}"
        pair = listed(space, element, f"cannot convert {place} to a sequence")
        if len(pair) != 2:
            space.raise_error(ValueError, f"{place} has length {len(pair)}; 2 is required")
        return pair

    @method(0, -1, "**")
    def do___init__(
        self, space: Space, *args: Value, kwargs: dict[str, Value] | None = None
    ) -> None:
        if self.cls is defaultdict and args:
            self.default_factory, args = args[0].realize(), args[1:]
            known = space.class_attribute(self.default_factory.python_type(), "__call__")
            if known is None and not self.default_factory.is_none():
                space.raise_error(TypeError, "first argument must be callable or None")
        if len(args) > 1:
            name = self.cls.__name__
            space.raise_error(TypeError, f"{name} expected at most 1 argument, got {len(args)}")
        self.do_update(space, args[0] if args else None, kwargs)

    @method()
    def do_clear(self, space: Space) -> None:
        self.replace(space, {})

    @method()
    def do_copy(self, space: Space) -> Value:
        return self.fresh_copy(space)

    do___copy__ = do_copy

    @method()
    def do_keys(self, space: Space) -> Value:
        return space.new_view(self, "keys")

    @method()
    def do_values(self, space: Space) -> Value:
        return space.new_view(self, "values")

    @method()
    def do_items(self, space: Space) -> Value:
        return space.new_view(self, "items")

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


# -- existing dicts, read without running user code ------------------------------------------------


def _iterate(obj: Any) -> Any:
    if issubclass(type(obj), OrderedDict):
        return OrderedDict.__iter__(obj)
    return dict.__iter__(obj) if issubclass(type(obj), dict) else iter(obj)


def _read(obj: Any, key: Any) -> Any:
    return dict.__getitem__(obj, key) if isinstance(obj, dict) else obj[key]


def _has(obj: Any, key: Any) -> bool:
    return dict.__contains__(obj, key) if isinstance(obj, dict) else key in obj


def _size(obj: Any) -> int:
    return dict.__len__(obj) if isinstance(obj, dict) else len(obj)


def known_pairs(space: Space, value: Value) -> DictValue | None:
    """The dict whose entries ``dict.update(value)`` takes, with the hashes it knows; not of an
    object of a subclass with its own ``__iter__``: that is asked."""
    plain = container_of(value, DictValue)
    if plain is not None and plain is not value:
        found = space.class_attribute(value.python_type(), "__iter__")
        if found is not None and isinstance(found.raw, types.FunctionType):
            return None
    return plain


@wraps(OrderedDict, defaultdict)
def wrap_dict(space: Space, source: Source, obj: Any) -> Value:
    """An existing dict: nothing but its class is guarded yet."""
    space.guard(source, "TYPE_MATCH", type(obj))
    return space.remember(obj, existing_dict(space, source, obj, type(obj)))


def existing_dict(space: Space, source: Source, obj: Any, cls: type = dict) -> DictValue:
    """The content of an existing dict (or of an object of a subclass)."""
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
