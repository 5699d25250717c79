"""Iterators over what is known: over sequences, ranges, dicts, sets, and the lazy builtins.

In: the values to iterate over. Out: one element per `next`, None when exhausted. Each knows what
it iterates over and how far it has come, so that codegen can make the real iterator: those that
take from others say how (`Composed`). An exhausted iterator has dropped what it iterated over.
Next: codegen.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.values.containers.composed import Composed, IteratorValue, Made, Taken
from framejit.values.containers.sequences import ListValue, SequenceValue, TupleValue
from framejit.values.core.base import Value, is_user_class, type_name

if TYPE_CHECKING:
    from framejit.values.containers.deques import DequeValue
    from framejit.values.containers.mappings import DictValue
    from framejit.values.containers.sets import SetValue
    from framejit.values.core.space import Space

_ITERATOR_TYPES: dict[type, type] = {
    kind: type(iter(kind()))
    for kind in (list, tuple, str, bytes, frozenset, set)  # type: ignore[call-overload]
}


class SequenceIterator(IteratorValue):
    """``iter(sequence)`` of a list or tuple: sees what is appended meanwhile.

    ``sequence`` is None when exhausted, and ``kind`` then still tells the type.
    """

    __slots__ = ("index", "kind", "sequence")

    def __init__(self, sequence: SequenceValue, index: int = 0) -> None:
        self.sequence: SequenceValue | None = sequence
        self.index = index
        self.kind: type = list if isinstance(sequence, ListValue) else tuple
        self.source = None

    def python_type(self) -> type:
        return _ITERATOR_TYPES[self.kind]

    def next(self, space: Space) -> Value | None:
        sequence = self.sequence
        if sequence is None:
            return None
        items, index = sequence.items, self.index
        if index < len(items):
            self.index = index + 1
            return items[index]
        self.sequence = None
        return None

    def rest(self, space: Space) -> list[Value] | None:
        return [] if self.sequence is None else self.sequence.items[self.index :]


class ReversedIterator(IteratorValue):
    """``reversed(sequence)``; ``index`` is the position of the next element, -1 at the end.

    To make it real: ``reversed(sequence)``, then ``__setstate__(index)``.
    """

    __slots__ = ("index", "kind", "sequence")

    def __init__(self, sequence: SequenceValue) -> None:
        self.sequence: SequenceValue | None = sequence
        self.index = len(sequence.items) - 1
        self.kind: type = (
            type(reversed([])) if isinstance(sequence, ListValue) else type(reversed(()))
        )
        self.source = None

    def python_type(self) -> type:
        return self.kind

    def next(self, space: Space) -> Value | None:
        sequence, index = self.sequence, self.index
        if sequence is not None and 0 <= index < len(sequence.items):
            self.index = index - 1
            return sequence.items[index]
        self.sequence, self.index = None, -1
        return None


class ConstantIterator(Composed):
    """An iterator over an immutable constant (``value``: str, bytes, frozenset, tuple, range)."""

    __slots__ = ("elements", "index", "kind", "value")

    def __init__(self, value: Value, elements: Any, kind: type) -> None:
        self.value = value
        self.elements = elements
        self.index = 0
        self.kind = kind
        self.source = None

    def made(self) -> Made:
        return Made(iter, [self.value], taken=self.index)

    def next(self, space: Space) -> Value | None:
        index = self.index
        if index < len(self.elements):
            self.index = index + 1
            return space.constant(self.elements[index])
        return None

    def rest(self, space: Space) -> list[Value] | None:
        return [space.constant(element) for element in self.elements[self.index :]]


class RangeIterator(ConstantIterator):
    """``iter(range(...))``; ``value`` is the constant range, ``index`` counts its elements."""

    __slots__ = ()

    def __init__(self, value: Value, elements: range) -> None:
        super().__init__(value, elements, type(iter(elements)))


def iter_constant(space: Space, value: Value) -> Value:
    """``iter(value)`` of a constant."""
    obj = value.as_python()
    kind = type(obj)
    if kind is range:
        return RangeIterator(value, obj)
    if kind is str or kind is bytes:
        return ConstantIterator(value, obj, type(iter(obj)))
    if isinstance(obj, (tuple, frozenset)):
        return ConstantIterator(value, list(obj), type(iter(obj)))
    if is_user_class(kind):  # a member of a Flag
        method = space.special_method(value, "__iter__")
        if method is not None:
            return space.call_now(method, [])
    if hasattr(kind, "__iter__") or hasattr(kind, "__getitem__"):
        raise GraphBreak("FJ0155", f"iterating over a {type_name(kind)}")
    return space.raise_error(TypeError, f"{type_name(kind)!r} object is not iterable")


class DictIterator(IteratorValue):
    """An iterator over a dict; ``what`` is "keys", "values" or "items"."""

    __slots__ = ("dict", "index", "keys", "kind", "reverse", "step", "version", "what")

    def __init__(self, space: Space, mapping: DictValue, what: str, reverse: bool = False) -> None:
        self.dict: DictValue | None = mapping
        self.kind: type = OrderedDict if mapping.cls is OrderedDict else dict
        self.what = what
        self.reverse = reverse
        self.keys = mapping.places(space)
        if reverse:
            self.keys.reverse()
        self.version = mapping.version
        self.step = space.step
        self.index = 0
        self.source = None

    def python_type(self) -> type:
        view = getattr(self.kind(), self.what)()
        return type(reversed(view) if self.reverse else iter(view))

    def next(self, space: Space) -> Value | None:
        mapping = self.dict
        if mapping is None:
            return None
        if self.kind is OrderedDict and self.index >= len(self.keys):  # it looks one key ahead
            self.dict = None
            return None
        if mapping.version != self.version:
            kind = "OrderedDict" if self.kind is OrderedDict else "dictionary"
            size = mapping.size(space)
            if self.kind is OrderedDict and size:
                space.raise_error(RuntimeError, f"{kind} mutated during iteration")
            if self.kind is not OrderedDict and size != len(self.keys):
                space.raise_error(RuntimeError, f"{kind} changed size during iteration")
            raise GraphBreak(
                "FJ0166", f"the keys of a {kind} were replaced while iterating over it"
            )
        if self.index >= len(self.keys):
            self.dict = None
            return None
        key = self.keys[self.index]
        self.index += 1
        return mapping.entry(space, key, self.what)

    def rest(self, space: Space) -> list[Value] | None:
        mapping = self.dict
        if mapping is None or mapping.version != self.version:
            return None
        return [mapping.entry(space, key, self.what) for key in self.keys[self.index :]]


class SetIterator(IteratorValue):
    """An iterator over a set."""

    __slots__ = ("elements", "index", "set", "size", "step")

    def __init__(self, container: SetValue, elements: list[Value], step: int) -> None:
        self.step = step
        self.set: SetValue | None = container
        self.elements = elements
        self.size = len(elements)
        self.index = 0
        self.source = None

    def python_type(self) -> type:
        return _ITERATOR_TYPES[set]

    def next(self, space: Space) -> Value | None:
        container = self.set
        if container is None:
            return None
        if len(container.keys(space)) != self.size:
            space.raise_error(RuntimeError, "Set changed size during iteration")
        if self.index >= self.size:
            self.set = None
            return None
        self.index += 1
        return self.elements[self.index - 1]


class DequeIterator(IteratorValue):
    """An iterator over a deque, perhaps backwards; ``index`` elements were taken."""

    __slots__ = ("index", "reverse", "sequence", "step", "version")

    def __init__(self, sequence: DequeValue, step: int, reverse: bool = False) -> None:
        self.step = step
        self.sequence = sequence
        self.reverse = reverse
        self.version = sequence.version
        self.index = 0
        self.source = None

    def python_type(self) -> type:
        return type(reversed(deque()) if self.reverse else iter(deque()))

    def next(self, space: Space) -> Value | None:
        items, index = self.sequence.items, self.index
        if self.sequence.version != self.version:
            self.index = len(items)
            space.raise_error(RuntimeError, "deque mutated during iteration")
        if index >= len(items):
            return None
        self.index = index + 1
        return items[-1 - index if self.reverse else index]

    def rest(self, space: Space) -> list[Value] | None:
        if self.sequence.version != self.version:
            return None
        items = self.sequence.items[:: -1 if self.reverse else 1]
        return items[self.index :]


class ZipIterator(Composed):
    """``zip(*iterators, strict=strict)``."""

    __slots__ = ("iterators", "strict")
    kind = zip

    def __init__(self, iterators: list[Value], strict: bool = False) -> None:
        self.iterators = iterators
        self.strict = strict
        self.source = None

    def made(self) -> Made:
        parts = [Taken(iterator) for iterator in self.iterators]
        return Made(zip, parts, {"strict": True} if self.strict else {})

    def next(self, space: Space) -> Value | None:
        if not self.iterators:
            return None
        out: list[Value] = []
        for position, iterator in enumerate(self.iterators):
            item = space.next(iterator)
            if item is None:
                if self.strict:
                    _check_lengths(space, "zip", self.iterators, position)
                return None
            out.append(item)
        return TupleValue(out)


def _check_lengths(space: Space, name: str, iterators: list[Value], position: int) -> None:
    """The iterator at ``position`` has ended: so must the others have."""
    many = "argument 1" if position == 1 else f"arguments 1-{position}"
    if position:
        space.raise_error(ValueError, f"{name}() argument {position + 1} is shorter than {many}")
    for later in range(1, len(iterators)):
        if space.next(iterators[later]) is not None:
            many = "argument 1" if later == 1 else f"arguments 1-{later}"
            space.raise_error(ValueError, f"{name}() argument {later + 1} is longer than {many}")


class EnumerateIterator(Composed):
    """``enumerate(iterator, count)``; ``count`` is the number of the next element."""

    __slots__ = ("count", "iterator")
    kind = enumerate

    def __init__(self, iterator: Value, count: int = 0) -> None:
        self.iterator = iterator
        self.count = count
        self.source = None

    def made(self) -> Made:
        return Made(enumerate, [Taken(self.iterator), self.count])

    def next(self, space: Space) -> Value | None:
        item = space.next(self.iterator)
        if item is None:
            return None
        self.count += 1
        return TupleValue([space.constant(self.count - 1), item])


class MapIterator(Composed):
    """``map(function, *iterators, strict=strict)``."""

    __slots__ = ("function", "iterators", "strict")
    kind = map

    def __init__(self, function: Value, iterators: list[Value], strict: bool = False) -> None:
        self.function = function
        self.iterators = iterators
        self.strict = strict
        self.source = None

    def made(self) -> Made:
        parts = [self.function, *map(Taken, self.iterators)]
        return Made(map, parts, {"strict": True} if self.strict else {})

    def next(self, space: Space) -> Value | None:
        args: list[Value] = []
        for position, iterator in enumerate(self.iterators):
            item = space.next(iterator)
            if item is None:
                if self.strict:
                    _check_lengths(space, "map", self.iterators, position)
                return None
            args.append(item)
        return space.call_now(self.function, args)


class FilterIterator(Composed):
    """``filter`` or ``itertools.filterfalse``; ``function`` None keeps what is true, or is not."""

    __slots__ = ("function", "iterator", "kind")

    def __init__(self, kind: type, function: Value | None, iterator: Value) -> None:
        self.kind = kind
        self.function = function
        self.iterator = iterator
        self.source = None

    def made(self) -> Made:
        return Made(self.kind, [self.function, Taken(self.iterator)])

    def next(self, space: Space) -> Value | None:
        while (item := space.next(self.iterator)) is not None:
            verdict = item if self.function is None else space.call_now(self.function, [item])
            if space.truth(verdict) is (self.kind is filter):
                return item
        return None


class CallableIterator(Composed):
    """``iter(function, sentinel)``; ``function`` is None when exhausted."""

    __slots__ = ("function", "sentinel")
    kind = type(iter(int, 1))

    def __init__(self, function: Value, sentinel: Value) -> None:
        self.function: Value | None = function
        self.sentinel = sentinel
        self.source = None

    def made(self) -> Made:
        if self.function is None:  # it has met its sentinel, and calls nothing of the program's
            return Made(iter, [int, 0])
        return Made(iter, [self.function, self.sentinel])

    def next(self, space: Space) -> Value | None:
        if self.function is None:
            return None
        item = space.call_now(self.function, [])
        if space.equal(item, self.sentinel):
            self.function = None
            return None
        return item


class ChainIterator(Composed):
    """``itertools.chain``: ``current`` (an iterator or None), then what ``iterables`` yields."""

    __slots__ = ("current", "iterables")
    kind = itertools.chain

    def __init__(self, iterables: Value) -> None:
        self.iterables: Value | None = iterables
        self.current: Value | None = None
        self.source = None

    def made(self) -> Made:
        rest = () if self.iterables is None else Taken(self.iterables)
        made = Made(itertools.chain.from_iterable, [rest])
        if self.current is None:
            return made
        return Made(itertools.chain, [Taken(self.current), made])

    def next(self, space: Space) -> Value | None:
        while True:
            if self.current is not None:
                item = space.next(self.current)
                if item is not None:
                    return item
                self.current = None
            if self.iterables is None:
                return None
            following = space.next(self.iterables)
            if following is None:
                self.iterables = None
                return None
            self.current = space.iter(following)


class IsliceIterator(Composed):
    """``itertools.islice(iterator, ...)``: ``position`` elements of ``iterator`` are consumed, the
    next one to give is number ``following``. ``iterator`` is None when exhausted."""

    __slots__ = ("following", "iterator", "position", "step", "stop")
    kind = itertools.islice

    def __init__(self, iterator: Value, *bounds: int | None) -> None:
        start, stop, step = (*bounds, None)[:3] if len(bounds) > 1 else (0, *bounds, 1)
        self.iterator: Value | None = iterator
        self.position = 0
        self.following = start or 0
        self.stop = stop
        self.step = step or 1
        self.source = None

    def made(self) -> Made:
        if self.iterator is None:
            return Made(itertools.islice, [(), 0])
        stop = None if self.stop is None else max(self.stop - self.position, 0)
        start = self.following - self.position
        start = start if stop is None else min(start, stop)
        return Made(itertools.islice, [Taken(self.iterator), start, stop, self.step])

    def next(self, space: Space) -> Value | None:
        if self.iterator is None:
            return None
        goal = self.following if self.stop is None else min(self.following, self.stop)
        while self.position < goal:
            if space.next(self.iterator) is None:
                self.iterator = None
                return None
            self.position += 1
        if self.stop is not None and self.position >= self.stop:
            self.iterator = None
            return None
        item = space.next(self.iterator)
        if item is None:
            self.iterator = None
            return None
        self.position += 1
        self.following += self.step
        return item


class CountIterator(Composed):
    """``itertools.count(current, step)``."""

    __slots__ = ("current", "step")
    kind = itertools.count

    def __init__(self, current: Value, step: Value) -> None:
        self.current = current
        self.step = step
        self.source = None

    def made(self) -> Made:
        return Made(itertools.count, [self.current, self.step])

    def next(self, space: Space) -> Value | None:
        item = self.current
        self.current = space.now(space.binary("+", item, self.step))
        return item


class RepeatIterator(Composed):
    """``itertools.repeat(value, times)``; ``times`` is what is left, None means for ever."""

    __slots__ = ("times", "value")
    kind = itertools.repeat

    def __init__(self, value: Value, times: int | None) -> None:
        self.value = value
        self.times = times
        self.source = None

    def made(self) -> Made:
        return Made(itertools.repeat, [self.value, *([] if self.times is None else [self.times])])

    def next(self, space: Space) -> Value | None:
        if self.times is not None:
            if self.times <= 0:
                return None
            self.times -= 1
        return self.value


class CombinationIterator(Composed):
    """One of itertools' combinatoric functions of ``arguments``, ``index`` elements consumed.

    ``arguments`` are tuples of the pooled elements and constants; ``native`` runs over the values.
    """

    __slots__ = ("arguments", "index", "keywords", "kind", "native")

    def __init__(
        self,
        kind: type,
        arguments: list[Value],
        keywords: dict[str, Value],
        native: Iterator[tuple[Value, ...]],
    ) -> None:
        self.kind = kind
        self.arguments = arguments
        self.keywords = keywords
        self.native = native
        self.index = 0
        self.source = None

    def made(self) -> Made:
        return Made(self.kind, self.arguments, self.keywords, self.index)

    def next(self, space: Space) -> Value | None:
        for combination in self.native:
            self.index += 1
            return TupleValue(list(combination))
        return None


class TeeIterator(IteratorValue):
    """One of the iterators of ``itertools.tee``; they share ``buffer`` and ``iterator``."""

    __slots__ = ("buffer", "index", "iterator")

    def __init__(self, iterator: Value, buffer: list[Value]) -> None:
        self.iterator = iterator
        self.buffer = buffer
        self.index = 0
        self.source = None

    def python_type(self) -> type:
        return type(itertools.tee(())[0])

    def next(self, space: Space) -> Value | None:
        if self.index == len(self.buffer):
            item = space.next(self.iterator)
            if item is None:
                return None
            self.buffer.append(item)
        self.index += 1
        return self.buffer[self.index - 1]
