"""Iterators that run the program's own code: most of itertools', and those over objects that have
no ``__iter__`` but ``__getitem__``.

In: functions, objects and iterators. Out: one element per ``next``, asked for in CPython's order,
so that effects come when they do there. A break in what is called breaks the ``next``.
Next: codegen.emit_iterators.
"""

from __future__ import annotations

import itertools
from typing import Any

from framejit.values.containers.composed import Composed, Made, Taken, chained
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Raised, Unmaterialisable, Value
from framejit.values.core.methods import index_of
from framejit.values.core.registry import Result
from framejit.values.core.space import Space

# -- itertools -------------------------------------------------------------------------------------


class AccumulateIterator(Composed):
    """``itertools.accumulate``; ``total`` is None at the start, ``initial`` once it was given."""

    __slots__ = ("function", "initial", "iterator", "total")
    kind = itertools.accumulate

    def __init__(self, iterator: Value, function: Value | None, initial: Value | None) -> None:
        self.iterator = iterator
        self.function = function
        self.initial = initial
        self.total: Value | None = None
        self.source = None

    def made(self) -> Made:
        if self.total is None:
            parts = [Taken(self.iterator), self.function]
            return Made(itertools.accumulate, parts, {"initial": self.initial})
        before = chained([self.total], self.iterator)  # it comes first, and has been given
        return Made(itertools.accumulate, [before, self.function], taken=1)

    def next(self, space: Space) -> Value | None:
        if self.initial is not None:
            self.total, self.initial = self.initial, None
            return self.total
        item = space.next(self.iterator)
        if item is None:
            return None
        if self.total is None:
            self.total = item
        elif self.function is None:
            self.total = space.now(space.binary("+", self.total, item))
        else:
            self.total = space.call_now(self.function, [self.total, item])
        return self.total


class CompressIterator(Composed):
    """``itertools.compress``."""

    __slots__ = ("data", "selectors")
    kind = itertools.compress

    def __init__(self, data: Value, selectors: Value) -> None:
        self.data = data
        self.selectors = selectors
        self.source = None

    def made(self) -> Made:
        return Made(itertools.compress, [Taken(self.data), Taken(self.selectors)])

    def next(self, space: Space) -> Value | None:
        while (item := space.next(self.data)) is not None:
            selector = space.next(self.selectors)
            if selector is None:
                return None
            if space.truth(selector):
                return item
        return None


class CycleIterator(Composed):
    """``itertools.cycle``; ``iterator`` is None after the first round."""

    __slots__ = ("index", "iterator", "saved")
    kind = itertools.cycle

    def __init__(self, iterator: Value) -> None:
        self.iterator: Value | None = iterator
        self.saved: list[Value] = []
        self.index = 0
        self.source = None

    def made(self) -> Made:
        saved = self.saved
        if self.iterator is None:
            rotated = saved[self.index :] + saved[: self.index]
            return Made(itertools.cycle, [tuple(rotated)])
        return Made(itertools.cycle, [chained(saved, self.iterator)], taken=len(saved))

    def next(self, space: Space) -> Value | None:
        if self.iterator is not None:
            item = space.next(self.iterator)
            if item is not None:
                self.saved.append(item)
                return item
            self.iterator = None
        if not self.saved:
            return None
        item = self.saved[self.index]
        self.index = (self.index + 1) % len(self.saved)
        return item


class WhileIterator(Composed):
    """``itertools.takewhile`` and ``dropwhile``; ``decided`` when the predicate has failed."""

    __slots__ = ("decided", "iterator", "kind", "predicate")

    def __init__(self, kind: type, predicate: Value, iterator: Value) -> None:
        self.kind = kind
        self.predicate = predicate
        self.iterator = iterator
        self.decided = False
        self.source = None

    def made(self) -> Made:
        if not self.decided:
            return Made(self.kind, [self.predicate, Taken(self.iterator)])
        return Made("decided", [self.kind, self.predicate, Taken(self.iterator)])

    def next(self, space: Space) -> Value | None:
        takes = self.kind is itertools.takewhile
        if takes and self.decided:
            return None
        while (item := space.next(self.iterator)) is not None:
            if self.decided:
                return item
            fits = space.truth(space.call_now(self.predicate, [item]))
            self.decided = not fits
            if fits is takes:
                return item
            if takes:
                return None
        return None


class StarmapIterator(Composed):
    """``itertools.starmap``."""

    __slots__ = ("function", "iterator")
    kind = itertools.starmap

    def __init__(self, function: Value, iterator: Value) -> None:
        self.function = function
        self.iterator = iterator
        self.source = None

    def made(self) -> Made:
        return Made(itertools.starmap, [self.function, Taken(self.iterator)])

    def next(self, space: Space) -> Value | None:
        arguments = space.next(self.iterator)
        if arguments is None:
            return None
        return space.call_now(self.function, space.items(arguments))


class PairwiseIterator(Composed):
    """``itertools.pairwise``; ``last`` is the element of the pair before."""

    __slots__ = ("iterator", "last")
    kind = itertools.pairwise

    def __init__(self, iterator: Value) -> None:
        self.iterator: Value | None = iterator
        self.last: Value | None = None
        self.source = None

    def made(self) -> Made:
        rest: Any = ()
        if self.iterator is not None:
            rest = Taken(self.iterator)
            if self.last is not None:
                rest = chained([self.last], self.iterator)
        return Made(itertools.pairwise, [rest])

    def next(self, space: Space) -> Value | None:
        iterator, previous = self.iterator, self.last
        self.iterator = self.last = None  # it has ended, unless there is a pair
        if iterator is None:
            return None
        if previous is None:
            previous = space.next(iterator)
            if previous is None:
                return None
        item = space.next(iterator)
        if item is not None:
            self.iterator, self.last = iterator, item
            return TupleValue([previous, item])
        return None


class BatchedIterator(Composed):
    """``itertools.batched``; ``iterator`` is None when it has ended."""

    __slots__ = ("iterator", "size", "strict")
    kind = getattr(itertools, "batched", object)  # CPython 3.11 has none and makes none

    def __init__(self, iterator: Value, size: int, strict: bool) -> None:
        self.iterator: Value | None = iterator
        self.size = size
        self.strict = strict
        self.source = None

    def made(self) -> Made:
        rest: Any = () if self.iterator is None else Taken(self.iterator)
        return Made(self.kind, [rest, self.size], {"strict": True} if self.strict else {})

    def next(self, space: Space) -> Value | None:
        iterator, self.iterator = self.iterator, None  # it has ended, unless there is a batch
        if iterator is None:
            return None
        items: list[Value] = []
        while len(items) < self.size and (item := space.next(iterator)) is not None:
            items.append(item)
        if not items:
            return None
        if self.strict and len(items) < self.size:
            space.raise_error(ValueError, "batched(): incomplete batch")
        self.iterator = iterator
        return TupleValue(items)


class ZipLongestIterator(Composed):
    """``itertools.zip_longest``; an iterator that has ended is None."""

    __slots__ = ("fill", "iterators")
    kind = itertools.zip_longest

    def __init__(self, iterators: list[Value], fill: Value) -> None:
        self.iterators: list[Value | None] = list(iterators)
        self.fill = fill
        self.source = None

    def made(self) -> Made:
        parts = [() if part is None else Taken(part) for part in self.iterators]
        return Made(itertools.zip_longest, parts, {"fillvalue": self.fill})

    def next(self, space: Space) -> Value | None:
        out = []
        if not any(self.iterators):
            return None
        for position, iterator in enumerate(self.iterators):
            try:
                item = None if iterator is None else space.next(iterator)
            except Raised:
                self.iterators = [None] * len(self.iterators)
                raise
            if item is None:
                self.iterators[position] = None
                if not any(self.iterators):
                    return None
            out.append(self.fill if item is None else item)
        return TupleValue(out)


class GroupbyIterator(Composed):
    """``itertools.groupby``: ``value`` is the element read ahead, if a group has not given it yet,
    ``key`` its key, ``target`` the key of the current ``group``."""

    __slots__ = ("function", "group", "iterator", "key", "step", "target", "value")
    kind = itertools.groupby

    def __init__(self, iterator: Value, function: Value | None) -> None:
        self.iterator = iterator
        self.function = function
        self.key: Value | None = None
        self.value: Value | None = None
        self.target: Value | None = None
        #: It must not be read before where it cannot be made in the middle.
        self.step = 0
        self.group: GroupIterator | None = None
        self.source = None

    def made(self) -> Made:
        parts = [Taken(self.iterator), self.function]
        if self.key is None:
            return Made(itertools.groupby, parts)
        if not hasattr(itertools.groupby, "__setstate__"):
            raise Unmaterialisable(self.step, "a groupby has read an element ahead")
        ahead = [] if self.value is None else [self.value]
        return Made("started_groupby", [*parts, self.key, self.target, *ahead])

    def advance(self, space: Space) -> bool:
        """Read one more element; False when there is none."""
        item = space.next(self.iterator)
        if item is None:
            return False
        if self.key is None:
            self.step = space.step
        self.key = item if self.function is None else space.call_now(self.function, [item])
        self.value = item
        return True

    def next(self, space: Space) -> Value | None:
        self.group = None
        while self.key is None or (self.target is not None and space.equal(self.target, self.key)):
            if not self.advance(space):
                return None
        self.target = self.key
        self.group = GroupIterator(self, self.target)
        return TupleValue([self.key, self.group])


class GroupIterator(Composed):
    """The elements of one group; none once its parent has gone on."""

    __slots__ = ("parent", "target")
    kind = itertools._grouper  # type: ignore[attr-defined]

    def __init__(self, parent: GroupbyIterator, target: Value) -> None:
        self.parent = parent
        self.target = target
        self.source = None

    def made(self) -> Made:
        parent = self.parent if self.parent.group is self else Made(itertools.groupby, [()])
        return Made(self.kind, [parent, self.target])

    def next(self, space: Space) -> Value | None:
        parent = self.parent
        if parent.group is not self or (parent.value is None and not parent.advance(space)):
            return None
        assert parent.key is not None
        if not space.equal(self.target, parent.key):
            return None
        item, parent.value = parent.value, None
        return item


# -- by __getitem__ --------------------------------------------------------------------------------


class _HasItems:
    def __getitem__(self, index: int) -> Any:
        raise IndexError


class ByIndex(Composed):
    """Asks ``target[index]`` for one index after the other; ``target`` is None at the end."""

    __slots__ = ("index", "step", "target")
    is_by_index = True

    def __init__(self, space: Space, target: Value, index: int) -> None:
        self.target: Value | None = target
        self.index = index
        self.step = space.step
        self.source = None

    def ask(self, space: Space) -> Value | None:
        """The element at ``index``; None when there is none."""
        assert self.target is not None
        try:
            return space.now(space.getitem(self.target, space.constant(self.index)))
        except Raised as error:
            if not error.is_a(IndexError, StopIteration):
                raise
        self.target = None
        return None

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        if name != "__length_hint__":
            return super().call_method(space, name, args, kwargs)
        if self.target is None:
            return space.constant(0)
        if space.class_attribute(self.target.python_type(), "__len__") is None:
            return space.constant(NotImplemented)
        return space.constant(self.rest_of(index_of(space, space.len(self.target))))

    def rest_of(self, size: int) -> int:
        """How many elements are still to come, if there are ``size``."""
        return max(0, size - self.index)


class IndexIterator(ByIndex):
    """``iter(object)`` of an object that has only ``__getitem__``."""

    __slots__ = ()
    kind = type(iter(_HasItems()))  # type: ignore[call-overload]

    def made(self) -> Made:
        if self.target is None:
            return Made("ended_by_index", [])
        return Made(iter, [self.target], state=self.index)

    def next(self, space: Space) -> Value | None:
        item = None if self.target is None else self.ask(space)
        if item is not None:
            self.index += 1
        return item


class ReversedIndexIterator(ByIndex):
    """``reversed(object)`` of an object that has only ``__len__`` and ``__getitem__``."""

    __slots__ = ()
    kind = reversed

    def made(self) -> Made:
        if self.target is not None:
            raise Unmaterialisable(self.step, "making a reversed object would call __len__")
        return Made(reversed, [()])

    def next(self, space: Space) -> Value | None:
        target, index = self.target, self.index
        if target is None or index < 0:
            self.target = None
            return None
        try:
            item = self.ask(space)
        except Raised:
            self.target = None
            raise
        self.index = index - 1
        return item

    def rest_of(self, size: int) -> int:
        return self.index + 1 if size > self.index else 0
