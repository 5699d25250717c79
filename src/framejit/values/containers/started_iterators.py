"""Iterators that exist already: over sequences and dicts, ``zip``, ``map``, ... of them.

In: the program's iterators (arguments, the loops that a continuation is in). Out: their next
elements. Nothing is taken from the real iterator while capturing or checking guards: elements are
looked at ahead of it, by their distance, so that one entry serves every turn of a loop. What the
captured program took, the generated function takes. Next room: codegen.
"""

from __future__ import annotations

import collections
import copy
import gc
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.calling_iterators import CompressIterator, StarmapIterator
from framejit.values.containers.composed import IteratorValue
from framejit.values.containers.iterators import FilterIterator, MapIterator
from framejit.values.core.base import Value
from framejit.values.core.constants import wrap_opaque
from framejit.values.core.registry import wraps
from framejit.values.core.space import Space

#: Iterators with a copy at the same place; those over something that may change, and the others.
_EMPTY: dict[str, int] = {}
_OVER_MUTABLE: tuple[type, ...] = (
    type(iter([])), type(reversed([])),
    type(iter(_EMPTY)), type(iter(_EMPTY.values())), type(iter(_EMPTY.items())),
    type(reversed(_EMPTY)), type(reversed(_EMPTY.values())), type(reversed(_EMPTY.items())),
    type(iter(set())), type(iter(collections.OrderedDict())),
)  # fmt: skip
_OVER_FIXED: tuple[type, ...] = (
    type(iter(())), type(iter(range(0))), type(iter(range(1 << 70))), type(iter("")),
    type(iter("\u00e4")), type(iter(b"")), type(reversed(())),
)  # fmt: skip
OVER_SEQUENCES = (*_OVER_MUTABLE, *_OVER_FIXED)
_COMPOSED: tuple[type, ...] = (zip, enumerate, itertools.islice)


def _parts(iterator: Any) -> tuple[Any, ...]:
    """The iterators that a zip, enumerate or islice takes from."""
    arguments = iterator.__reduce__()[1]
    return tuple(arguments) if type(iterator) is zip else (arguments[0],)


def twin(iterator: Any, known: dict[int, Any] | None = None) -> Iterator[Any]:
    """An independent iterator at the same place. TypeError when it cannot be copied."""
    known = {} if known is None else known
    made = known.get(id(iterator))
    if made is None:
        kind = type(iterator)
        if kind in _COMPOSED:
            made, arguments, *state = iterator.__reduce__()
            parts = [twin(part, known) for part in _parts(iterator)]
            if kind is zip:
                made = zip(*parts, strict=bool(state and state[0]))
            elif kind is itertools.islice:
                made = itertools.islice(parts[0], *arguments[1:])
                made.__setstate__(state[0])  # type: ignore[attr-defined]  # how many were taken
            else:
                made = enumerate(parts[0], arguments[1])
        elif kind in _OVER_MUTABLE or kind in _OVER_FIXED:
            made = _copy(iterator)
        else:
            raise TypeError(f"a {kind.__name__} cannot be looked at ahead")
        known[id(iterator)] = made
    return made  # type: ignore[no-any-return]


def _copy(iterator: Any) -> Any:
    function, arguments, *state = iterator.__reduce__()
    sequence = arguments[0]
    if type(iterator) is reversed and type(sequence) not in (tuple, str, bytes):
        raise TypeError("a copy would call methods of the program")
    for base in (list, tuple):
        if isinstance(sequence, base) and type(sequence) is not base:  # not the subclass's iterator
            name = "__iter__" if function is iter else "__reversed__"
            made = getattr(base, name, function)(sequence)
            made.__setstate__(*state)
            return made
    return copy.copy(iterator)


class Ahead(NamedTuple):
    """Looks at so many elements after the first ``distance``; at fewer when the iterator ends."""

    distance: int
    length: int

    def __repr__(self) -> str:
        """For messages: ``upcoming[1:3](local 'it')[0]``."""
        return f"upcoming[{self.distance}:{self.distance + self.length}]"

    def __call__(self, iterator: Any) -> tuple[Any, ...]:
        return tuple(itertools.islice(twin(iterator), self.distance, self.distance + self.length))


class Part(NamedTuple):
    """One of the iterators that a zip or enumerate takes from."""

    number: int

    def __repr__(self) -> str:
        return f"part {self.number} of "

    def __call__(self, iterator: Any) -> Any:
        return _parts(iterator)[self.number]


_END = object()


def iterated(iterator: Any) -> Any:
    """The list, dict or set that an iterator goes over; None when it has ended."""
    for obj in gc.get_referents(iterator):
        if isinstance(obj, (list, dict, set, frozenset)):
            return obj
    return None


class StartedIterator(IteratorValue):
    """An existing iterator: ``taken`` elements of it were taken in this capture."""

    __slots__ = ("ahead", "ended", "obj", "owner", "parts", "taken", "target")

    def __init__(self, space: Space, source: Source, obj: Any) -> None:
        self.source: Source = source
        self.obj = obj
        self.ahead = twin(obj)
        self.taken = 0
        self.ended = False
        #: What the iterator is that takes from this one.
        self.owner: list[str] | None = None
        self.parts: list[StartedIterator] | None = None
        #: What it iterates over, if that may change.
        self.target: Value | None = None

    def python_type(self) -> type:
        return type(self.obj)

    def next(self, space: Space) -> Value | None:
        if self.owner is not None:
            raise GraphBreak("FJ0155", f"next() of an iterator that a {self.owner[0]} takes from")
        if self.ended:
            return None
        self._check(space)
        try:
            item = next(self.ahead, _END)
        except RuntimeError as error:  # the dict has changed its size
            return space.raise_real(error)
        except ValueError as error:  # a strict zip
            raise GraphBreak("FJ0155", str(error))
        self._note(space)
        # Looked at in blocks of 1, 2, 4, ... elements, so that all of them cost what they are.
        block = (self.taken + 1).bit_length() - 1
        index = self.taken + 1 - (1 << block)
        source = self.source.child("call", Ahead((1 << block) - 1, 1 << block))
        self.taken += 1
        if item is _END:
            space.guard(source, "LEN_MATCH", index)
            self.ended = True
            return None
        source = source.child("index", index)
        space.guard(source, "PRESENT")
        return space.load(source, item)

    def _check(self, space: Space) -> None:
        """GraphBreak when what comes next is not known from the iterator alone."""
        kind = type(self.obj)
        if kind in _COMPOSED:
            for part in self._own_parts(space):
                part._check(space)
        elif kind in _OVER_MUTABLE:
            if self.target is None:
                content = iterated(self.obj)
                if content is not None:
                    source = self.source.child("call", iterated)
                    self.target = space.load(source, content).realize()
            changed = space.effects.changed
            target = self.target
            if target is not None and (target in changed or target.container in changed):
                what = "goes over what the program has changed"
                raise GraphBreak("FJ0155", f"a {self.describe()} {what}")
            if "dict" in kind.__name__ and (space.effects.globals or any(
                type(content := value.obj) is type or hasattr(content, "__dict__")
                for value in changed
            )):  # fmt: skip
                what = "may go over the attributes of an object"
                raise GraphBreak("FJ0155", f"a {self.describe()} {what}")

    def _own_parts(self, space: Space) -> list[StartedIterator]:
        if self.parts is None:
            found, owner = [], [self.describe()]
            for index, part in enumerate(_parts(self.obj)):
                value: Any = space.load(self.source.child("call", Part(index)), part).realize()
                started = isinstance(value, StartedIterator) and not value.taken
                if not started or not (value.owner is None or value.owner is owner):
                    what = "that takes from others"
                    raise GraphBreak("FJ0155", f"next() of a {self.describe()} {what}")
                value.owner = owner
                found.append(value)
            self.parts = found
        return self.parts

    def _note(self, space: Space) -> None:
        """It changes, and what it takes from; the guards on aliases need to know of both."""
        space.effects.note(self)
        for part in self.parts or ():
            part._note(space)


@wraps(*OVER_SEQUENCES, *_COMPOSED)
def _wrap_iterator(space: Space, source: Source, obj: Any) -> Value:
    try:
        made = StartedIterator(space, source, obj)
    except (TypeError, RuntimeError):  # it has no copy, or its dict has changed its size
        return wrap_opaque(space, source, obj)
    space.guard(source, "TYPE_MATCH", type(obj))
    return space.remember(obj, made)


def _arguments(iterator: Any) -> tuple[Any, ...]:
    """What a map, filter, ... was made of: mostly its function, then iterators."""
    kind = type(iterator)
    if kind is map or kind is filter:
        return tuple(iterator.__reduce__()[1])
    # Those of itertools do not say it: CPython 3.14 cannot copy them.
    first, second = gc.get_referents(iterator)[-2:]
    return (first, second) if kind is itertools.compress else (second, first)


class Argument(NamedTuple):
    """One of a map's, filter's, ... arguments; None after the last."""

    number: int

    def __repr__(self) -> str:
        return f"argument {self.number} of "

    def __call__(self, iterator: Any) -> Any:
        arguments = _arguments(iterator)
        return arguments[self.number] if self.number < len(arguments) else None


def _is_strict(iterator: Any) -> bool:
    """Must the iterators of this map end together? They may have to, from CPython 3.14 on."""
    return bool(iterator.__reduce__()[2:])


@wraps(map, filter, itertools.filterfalse, itertools.starmap, itertools.compress)
def _wrap_calling(space: Space, source: Source, obj: Any) -> Value:
    """It has no state of its own: what is taken, is taken from its iterators."""
    space.guard(source, "TYPE_MATCH", type(obj))
    arguments = _arguments(obj)
    function, *parts = [
        space.load(source.child("call", Argument(i)), argument)
        for i, argument in enumerate(arguments)
    ]
    if type(obj) is map:
        space.guard(source.child("call", Argument(len(arguments))), "EQUALS_MATCH", None)
        strict = _is_strict(obj)
        space.guard(source.child("call", _is_strict), "EQUALS_MATCH", strict)
        made: Value = MapIterator(function, parts, strict)
    elif type(obj) is itertools.starmap:
        made = StarmapIterator(function, parts[0])
    elif type(obj) is itertools.compress:
        made = CompressIterator(function, parts[0])
    else:
        keeps_true = function.realize().is_constant and arguments[0] is None
        made = FilterIterator(type(obj), None if keeps_true else function, parts[0])
    made.source = source
    return space.remember(obj, made)
