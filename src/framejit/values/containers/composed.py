"""What iterators share, and how the real ones are made of others.

In: nothing. Out: the base classes of iterators, and recipes (`Made`) for codegen. Next: iterators.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from framejit.exc import GraphBreak
from framejit.values.core.base import Value
from framejit.values.core.registry import Result

if TYPE_CHECKING:
    from framejit.values.core.space import Space


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


class Taken(NamedTuple):
    """An iterator that a class in C takes from."""

    iterator: Value


class Made(NamedTuple):
    """How a real iterator is made where this one has come to."""

    #: What is called; a text: the function of `codegen.runtime` of this name.
    function: Any
    #: Values, `Taken`, tuples of these, constants, others that are made.
    arguments: Sequence[Any]
    keywords: dict[str, Any] = {}
    #: How many elements have been taken since.
    taken: int = 0
    #: What ``__setstate__`` gets.
    state: int | None = None


def chained(before: list[Value], iterator: Value) -> Made:
    """These elements, then those of the iterator."""
    return Made(itertools.chain, [tuple(before), Taken(iterator)])


class Composed(IteratorValue):
    """An iterator that takes from others or calls something, of a ``kind`` in C."""

    __slots__ = ()
    kind: type

    def python_type(self) -> type:
        return self.kind

    def made(self) -> Made:
        """How the real one is made; nothing of the program's runs then."""
        raise NotImplementedError
