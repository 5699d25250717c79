"""What is known of a dict: its entries, and what the program changed in them.

In: an existing dict with its source, or entries put together by the captured program. Out: entries
by key, in CPython's order. An existing dict is known piece by piece: reading a key guards its
presence or absence, writing one guards nothing; whatever needs all keys guards them, once
(`DictContent.complete`). Next: mappings.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.amounts import check_count
from framejit.values.core.base import Value, element_as_python
from framejit.values.core.complaints import DICT_KEY
from framejit.values.core.constants import ConstantValue
from framejit.values.core.keys import (
    ObjectKey,
    find,
    is_plain,
    key_at,
    key_for,
    key_of_real,
    may_be_held,
    pin,
    real_key,
    separate,
    settled,
    user_keys,
    value_of_key,
)
from framejit.values.core.methods import ContainerValue
from framejit.values.core.space import Space
from framejit.values.core.symbolic import fix_length

Pair = tuple[Value, Value]
_LONGEST_HISTORY = 100


class DictContent(ContainerValue):
    """A dict. For codegen, when ``mutated``: if ``rewritten``, clear the real one and store all
    ``items`` in order; else delete the keys that have ``moved``, and apply ``written`` in order
    (None: delete the key)."""

    __slots__ = (
        "blind", "by_place", "cls", "complete", "default_factory", "delta", "history", "moved",
        "namespace", "obj", "pairs", "removed", "rewritten", "space", "version", "written",
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
        #: Complete, but which keys there are was not looked at yet: only how many.
        self.by_place = False
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
        if not self.complete or self.by_place:
            assert self.space is not None
            self.look_at_all(self.space)
        return self.pairs

    # -- knowledge ---------------------------------------------------------------------------------

    def look_at_all(self, space: Space) -> None:
        """Know every key, in order; guards them. Afterwards the dict is complete."""
        if self.by_place:
            self.by_place = False
            space.guard(self.source, "DICT_KEYS", tuple(self.pairs))
        if not self.complete:
            self._look(space)

    def places(self, space: Space) -> list[Any]:
        """All keys, for who walks through the entries (`entry`) and may not look at the keys. If
        they are numbers that were seen to be others, only how many there are is guarded."""
        obj = self.obj
        if self.complete or not _by_numbers(obj):
            return self.keys_in_order(space)
        known = self.pairs or self.removed or self.blind
        assert self.source is not None
        varies = space.policy.seen.keys_vary(self.source.name, frozenset(obj))
        if known or not varies:
            return self.keys_in_order(space)
        space.guard(self.source, "LEN_MATCH", dict.__len__(obj))
        for position, real in enumerate(_iterate(obj)):
            place = self.source.child("key_at", position)
            content = space.load(self.source.child("value_at", position), _read(obj, real))
            self.pairs[real] = space.load(place, real), content
        self.complete = self.by_place = True
        return list(self.pairs)

    def _look(self, space: Space) -> None:
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

    def key(self, space: Space, item: Value, writes: bool = False) -> Any:
        """The key under which ``item`` is, or would be, in this dict."""
        if self.by_place:
            self.look_at_all(space)
        hashed_before = writes and self.cls is OrderedDict
        return self._held(space, key_for(space, item, None if hashed_before else DICT_KEY))

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
        if self.by_place:
            self.look_at_all(space)
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
        with settled(space):
            return self.pairs.get(key)

    def store(self, space: Space, key: Any, key_value: Value, value: Value) -> None:
        """``self[key] = value``; an equal key that is there already stays."""
        if self.by_place:
            self.look_at_all(space)
        with settled(space):
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

    def is_as_before(self) -> bool:
        """Did every key that was written hold the very object that it holds now?"""
        if self.rewritten or self.moved or self.obj is None:
            return False
        for key, (_, value) in self.written.items():
            known, real = real_key(key)
            if value is None or not known or not _has(self.obj, real):
                return False
            now, before = value.realize(), self.obj[real]
            if now.is_constant:
                if type(now.as_python()) is not type(before) or now.as_python() != before:
                    return False
            elif now.obj is None or now.obj is not before:
                return False
        return True

    def remove(self, space: Space, key: Any) -> None:
        """Delete an entry that is there."""
        if self.by_place:
            self.look_at_all(space)
        with settled(space):
            if space.user_keys:
                self._leave_gap(key)
            self._remove(space, key)

    def _leave_gap(self, key: Any) -> None:
        if not self.history:
            new = self.source is None or self.rewritten
            before: Any = self.pairs if new else self.written
            self.history = [(k, p[0], True) for k, p in before.items() if p[1] is not None]
        if len(self.history) >= _LONGEST_HISTORY:
            raise GraphBreak("FJ0157", "keys with their own __eq__ come and go very often")
        self.history.append((key, self.pairs[key][0], False))

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
        self.by_place = False
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
        length = size_of(self.obj)
        space.guard(self.source, "LEN_MATCH", length)
        return length + self.delta

    def entry(self, space: Space, key: Any, what: str) -> Value:
        """What a view shows of an entry: ``what`` is "keys", "values" or "items"."""
        pair = self.pairs[key] if self.by_place else self.lookup(space, key)
        assert pair is not None
        if what == "keys":
            return pair[0]
        return pair[1] if what == "values" else TupleValue(list(pair))


# -- existing dicts, read without running user code ------------------------------------------------


def _iterate(obj: Any) -> Any:
    if issubclass(type(obj), OrderedDict):
        return OrderedDict.__iter__(obj)
    return dict.__iter__(obj) if issubclass(type(obj), dict) else iter(obj)


def _by_numbers(obj: Any) -> bool:
    """Are all keys ints?"""
    kind = type(obj)
    return (kind is dict or kind is OrderedDict) and all(type(key) is int for key in obj)


def _read(obj: Any, key: Any) -> Any:
    return dict.__getitem__(obj, key) if isinstance(obj, dict) else obj[key]


def _has(obj: Any, key: Any) -> bool:
    return dict.__contains__(obj, key) if isinstance(obj, dict) else key in obj


def size_of(obj: Any) -> int:
    return dict.__len__(obj) if isinstance(obj, dict) else len(obj)
