"""The module ``itertools``.

In: calls of its classes and functions. Out: iterators of our own where their state is simple and
known, else instances of the classes of the same names in `polyfills`, which are traced through.
Next: interpreter.
"""

from __future__ import annotations

import itertools
from typing import Any

from framejit.values import polyfills
from framejit.values.base import Value
from framejit.values.builtin_functions import builtin
from framejit.values.iterators import (
    ChainIterator,
    CombinationIterator,
    CountIterator,
    FilterIterator,
    RepeatIterator,
    TeeIterator,
    make_slice,
)
from framejit.values.methods import Result, index_of
from framejit.values.sequences import TupleValue
from framejit.values.space import LOOKASIDES, Space, lookaside


@builtin(itertools.chain, 0, -1)
def _chain(space: Space, *iterables: Value) -> Value:
    return ChainIterator(space.iter(TupleValue(list(iterables))))


@builtin(itertools.chain.from_iterable, 1)
def _chain_from(space: Space, iterables: Value) -> Value:
    return ChainIterator(space.iter(iterables))


@builtin(itertools.islice, 2, 4)
def _islice(space: Space, iterable: Value, *bounds: Value) -> Value:
    return make_slice(space, space.iter(iterable), list(bounds))


@builtin(itertools.count, 0, 2, "start", "step")
def _count(space: Space, start: Value | None = None, step: Value | None = None) -> Value:
    return CountIterator(start or space.constant(0), step or space.constant(1))


@builtin(itertools.repeat, 1, 2, "object", "times")
def _repeat(space: Space, object: Value, times: Value | None = None) -> Value:
    return RepeatIterator(object, None if times is None else max(0, index_of(space, times)))


@builtin(itertools.filterfalse, 2)
def _filterfalse(space: Space, function: Value, iterable: Value) -> Value:
    verdict = None if function.is_none() else function
    return FilterIterator(verdict, space.iter(iterable), keep=False)


@builtin(itertools.tee, 1, 2)
def _tee(space: Space, iterable: Value, times: Value | None = None) -> Value:
    iterator, buffer = space.iter(iterable), []  # type: ignore[var-annotated]
    count = 2 if times is None else index_of(space, times)
    return TupleValue([TeeIterator(iterator, buffer) for _ in range(count)])


@lookaside(itertools.product)
def _product(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    repeat = 1
    if "repeat" in kwargs:
        repeat = index_of(space, kwargs["repeat"])
    pools = [space.items(arg) for arg in args]
    native = itertools.product(*pools, repeat=repeat)
    arguments: list[Value] = [TupleValue(pool) for pool in pools]
    return CombinationIterator(itertools.product, arguments, kwargs, native)


def _combinatoric(function: Any, low: int) -> None:
    @builtin(function, low, 2, "r")
    def handler(space: Space, iterable: Value, r: Value | None = None) -> Value:
        pool = space.items(iterable)
        arguments: list[Value] = [TupleValue(pool)]
        bounds = []
        if r is not None and not r.is_none():
            bounds.append(index_of(space, r))
            arguments.append(space.constant(bounds[0]))
        native = space.run_real(function, pool, *bounds)
        return CombinationIterator(function, arguments, {}, native)


_combinatoric(itertools.permutations, 1)
_combinatoric(itertools.combinations, 1)
_combinatoric(itertools.combinations_with_replacement, 1)


def _polyfilled(function: Any, replacement: type) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        cls = space.class_value(replacement)
        return space.call(cls, args, kwargs)

    LOOKASIDES[function] = handler


for _name in (
    "accumulate", "compress", "cycle", "dropwhile", "takewhile", "starmap", "pairwise",
    "zip_longest", "groupby",
):  # fmt: skip
    _polyfilled(getattr(itertools, _name), getattr(polyfills, _name))
