"""Iterators over what is known: over sequences, ranges, dicts, sets, and the lazy builtins.

In: the values to iterate over. Out: one element per `next`, None when exhausted. Each knows what
it iterates over and how far it has come, so that codegen can make the real iterator: build it from
its public attributes, then take ``index`` elements where there is an ``index``. ``python_type()``
is the real iterator's type. An exhausted iterator has dropped what it iterated over.
Next: codegen.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.values.containers.sequences import ListValue, SequenceValue, TupleValue
from framejit.values.core.base import Value, is_user_class, type_name
from framejit.values.core.registry import Result

if TYPE_CHECKING:
    from framejit.values.containers.deques import DequeValue
    from framejit.values.containers.mappings import DictValue
    from framejit.values.containers.sets import SetValue
    from framejit.values.core.space import Space

_ITERATOR_TYPES: dict[type, type] = {
    kind: type(iter(kind()))
    for kind in (list, tuple, str, bytes, frozenset, set)  # type: ignore[call-overload]
}


class IteratorValue(Value):
    """What all iterators share: they are their own iterators and always true."""

    __slots__ = ()

    def iter(self, space: Space) -> Value:
        return self

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """The methods of C-level iterators."""
        if name == "__iter__":
            return self
        if name == "__next__":
            item = space.next(self)
            if item is None:
                return space.raise_error(StopIteration)
            return item
        if name == "__length_hint__" and (rest := self.rest(space)) is not None:
            return space.constant(len(rest))
        raise GraphBreak("FJ0133", f"{self.python_type().__name__}.{name}()")

    def rest(self, space: Space) -> list[Value] | None:
        """The elements still to come, when that is known without running code."""
        return None

    def contains(self, space: Space, item: Value) -> Value:
        return space.constant(space.search(self, item))


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


class ConstantIterator(IteratorValue):
    """An iterator over an immutable constant (``value``: str, bytes, frozenset, tuple, range)."""

    __slots__ = ("elements", "index", "kind", "value")

    def __init__(self, value: Value, elements: Any, kind: type) -> None:
        self.value = value
        self.elements = elements
        self.index = 0
        self.kind = kind
        self.source = None

    def python_type(self) -> type:
        return self.kind

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
        self.keys = mapping.keys_in_order(space)
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
            if mapping.size(space) != len(self.keys):
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


class ZipIterator(IteratorValue):
    """``zip(*iterators, strict=strict)``."""

    __slots__ = ("iterators", "strict")

    def __init__(self, iterators: list[Value], strict: bool = False) -> None:
        self.iterators = iterators
        self.strict = strict
        self.source = None

    def python_type(self) -> type:
        return zip

    def next(self, space: Space) -> Value | None:
        if not self.iterators:
            return None
        out: list[Value] = []
        for position, iterator in enumerate(self.iterators):
            item = space.next(iterator)
            if item is None:
                if self.strict:
                    self._check_lengths(space, position)
                return None
            out.append(item)
        return TupleValue(out)

    def _check_lengths(self, space: Space, position: int) -> None:
        many = "argument 1" if position == 1 else f"arguments 1-{position}"
        if position:
            space.raise_error(ValueError, f"zip() argument {position + 1} is shorter than {many}")
        for later in range(1, len(self.iterators)):
            if space.next(self.iterators[later]) is not None:
                many = "argument 1" if later == 1 else f"arguments 1-{later}"
                space.raise_error(ValueError, f"zip() argument {later + 1} is longer than {many}")


class EnumerateIterator(IteratorValue):
    """``enumerate(iterator, count)``; ``count`` is the number of the next element."""

    __slots__ = ("count", "iterator")

    def __init__(self, iterator: Value, count: int = 0) -> None:
        self.iterator = iterator
        self.count = count
        self.source = None

    def python_type(self) -> type:
        return enumerate

    def next(self, space: Space) -> Value | None:
        item = space.next(self.iterator)
        if item is None:
            return None
        self.count += 1
        return TupleValue([space.constant(self.count - 1), item])


class MapIterator(IteratorValue):
    """``map(function, *iterators)``."""

    __slots__ = ("function", "iterators")

    def __init__(self, function: Value, iterators: list[Value]) -> None:
        self.function = function
        self.iterators = iterators
        self.source = None

    def python_type(self) -> type:
        return map

    def next(self, space: Space) -> Value | None:
        args: list[Value] = []
        for iterator in self.iterators:
            item = space.next(iterator)
            if item is None:
                return None
            args.append(item)
        return space.call_now(self.function, args)


class FilterIterator(IteratorValue):
    """``filter(function, iterator)``; ``function`` None keeps what is true.

    ``keep`` False makes it an ``itertools.filterfalse``.
    """

    __slots__ = ("function", "iterator", "keep")

    def __init__(self, function: Value | None, iterator: Value, keep: bool = True) -> None:
        self.function = function
        self.iterator = iterator
        self.keep = keep
        self.source = None

    def python_type(self) -> type:
        return filter if self.keep else itertools.filterfalse

    def next(self, space: Space) -> Value | None:
        while (item := space.next(self.iterator)) is not None:
            verdict = item if self.function is None else space.call_now(self.function, [item])
            if space.truth(verdict) is self.keep:
                return item
        return None


class CallableIterator(IteratorValue):
    """``iter(function, sentinel)``; ``function`` is None when exhausted."""

    __slots__ = ("function", "sentinel")

    def __init__(self, function: Value, sentinel: Value) -> None:
        self.function: Value | None = function
        self.sentinel = sentinel
        self.source = None

    def python_type(self) -> type:
        return type(iter(int, 1))

    def next(self, space: Space) -> Value | None:
        if self.function is None:
            return None
        item = space.call_now(self.function, [])
        if space.equal(item, self.sentinel):
            self.function = None
            return None
        return item


class ChainIterator(IteratorValue):
    """``itertools.chain``: ``current`` (an iterator or None), then what ``iterables`` yields."""

    __slots__ = ("current", "iterables")

    def __init__(self, iterables: Value) -> None:
        self.iterables: Value | None = iterables
        self.current: Value | None = None
        self.source = None

    def python_type(self) -> type:
        return itertools.chain

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


class IsliceIterator(IteratorValue):
    """``itertools.islice(iterator, ...)``: ``position`` elements of ``iterator`` are consumed, the
    next one to give is number ``following``. Real form: ``islice(iterator, following - position,
    stop - position, step)``; ``iterator`` is None when exhausted."""

    __slots__ = ("following", "iterator", "position", "step", "stop")

    def __init__(self, iterator: Value, *bounds: int | None) -> None:
        start, stop, step = (*bounds, None)[:3] if len(bounds) > 1 else (0, *bounds, 1)
        self.iterator: Value | None = iterator
        self.position = 0
        self.following = start or 0
        self.stop = stop
        self.step = step or 1
        self.source = None

    def python_type(self) -> type:
        return itertools.islice

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


class CountIterator(IteratorValue):
    """``itertools.count(current, step)``."""

    __slots__ = ("current", "step")

    def __init__(self, current: Value, step: Value) -> None:
        self.current = current
        self.step = step
        self.source = None

    def python_type(self) -> type:
        return itertools.count

    def next(self, space: Space) -> Value | None:
        item = self.current
        self.current = space.now(space.binary("+", item, self.step))
        return item


class RepeatIterator(IteratorValue):
    """``itertools.repeat(value, times)``; ``times`` is what is left, None means for ever."""

    __slots__ = ("times", "value")

    def __init__(self, value: Value, times: int | None) -> None:
        self.value = value
        self.times = times
        self.source = None

    def python_type(self) -> type:
        return itertools.repeat

    def next(self, space: Space) -> Value | None:
        if self.times is not None:
            if self.times <= 0:
                return None
            self.times -= 1
        return self.value


class CombinationIterator(IteratorValue):
    """``function(*arguments)`` of itertools' combinatoric functions, ``index`` elements consumed.

    ``arguments`` are tuples of the pooled elements and constants; ``native`` runs over the values.
    """

    __slots__ = ("arguments", "function", "index", "keywords", "native")

    def __init__(
        self,
        function: Any,
        arguments: list[Value],
        keywords: dict[str, Value],
        native: Iterator[tuple[Value, ...]],
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.native = native
        self.index = 0
        self.source = None

    def python_type(self) -> type:
        return self.function

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
