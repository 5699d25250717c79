"""The module ``itertools``.

In: calls of its classes and functions. Out: iterators. Next: interpreter.
"""

from __future__ import annotations

import inspect
import itertools
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.containers.calling_iterators import (
    AccumulateIterator,
    BatchedIterator,
    CompressIterator,
    CycleIterator,
    GroupbyIterator,
    PairwiseIterator,
    StarmapIterator,
    WhileIterator,
    ZipLongestIterator,
)
from framejit.values.containers.iterators import (
    ChainIterator,
    CombinationIterator,
    CountIterator,
    FilterIterator,
    IsliceIterator,
    RepeatIterator,
    TeeIterator,
)
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Kwargs, Raised, Value, is_user_class
from framejit.values.core.methods import builtin, elements_for_tuple, index_of
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space

builtin(itertools.chain, 0, -1)(
    lambda space, *iterables: ChainIterator(space.iter(TupleValue(list(iterables))))
)
builtin(itertools.chain.from_iterable, 1)(lambda space, parts: ChainIterator(space.iter(parts)))


@builtin(itertools.islice, 2, 4)
def _islice(space: Space, iterable: Value, *bounds: Value) -> Value:
    numbers = [_slice_number(space, bound.realize()) for bound in bounds]
    space.run_real(itertools.islice, (), *numbers)  # the checks and messages are CPython's own
    return IsliceIterator(space.iter(iterable), *numbers)


def _slice_number(space: Space, bound: Value) -> Any:
    if bound.is_constant:
        return bound.as_python()
    try:
        return index_of(space, bound)
    except Raised:
        return ""  # whatever was wrong: islice() has one complaint


@builtin(itertools.count, 0, 2, "start", "step")
def _count(space: Space, start: Value | None = None, step: Value | None = None) -> Value:
    for number in (start, step):
        if number is not None and not _is_number(space, number.realize()):
            space.raise_error(TypeError, "a number is required")
    return CountIterator(start or space.constant(0), step or space.constant(1))


def _is_number(space: Space, value: Value) -> bool:
    methods = ("__index__", "__int__", "__float__")
    cls = value.python_type()
    return issubclass(cls, complex) or any(
        space.class_attribute(cls, name) is not None for name in methods
    )


@builtin(itertools.repeat, 1, 2, "object", "times")
def _repeat(space: Space, object: Value, times: Value | None = None) -> Value:
    return RepeatIterator(object, None if times is None else max(0, index_of(space, times)))


@builtin(itertools.filterfalse, 2)
def _filterfalse(space: Space, function: Value, iterable: Value) -> Value:
    verdict = None if function.is_none() else function
    return FilterIterator(itertools.filterfalse, verdict, space.iter(iterable))


@builtin(itertools.tee, 1, 2)
def _tee(space: Space, iterable: Value, times: Value | None = None) -> Value:
    count = 2 if times is None else index_of(space, times)
    space.run_real(itertools.tee, (), min(count, 0))
    iterator, buffer = space.iter(iterable), []  # type: ignore[var-annotated]
    if is_user_class(iterator.python_type()):
        if space.class_attribute(iterator.python_type(), "__copy__") is not None:
            raise GraphBreak("FJ0155", "itertools.tee() copies an iterator of the program's")
        iterator = space.iter(iterator)
    return TupleValue([TeeIterator(iterator, buffer) for _ in range(count)])


@lookaside(itertools.product)
def _product(space: Space, args: Args, kwargs: Kwargs) -> Result:
    numbers = {k: index_of(space, v) if k == "repeat" else 0 for k, v in kwargs.items()}
    space.run_real(itertools.product, **numbers)  # the checks and messages are CPython's own
    pools = [list(elements_for_tuple(space, arg)) for arg in args]
    native = itertools.product(*pools, **numbers)
    arguments: list[Value] = [TupleValue(pool) for pool in pools]
    return CombinationIterator(itertools.product, arguments, kwargs, native)


def _combinatoric(function: Any, low: int) -> None:
    @builtin(function, low, 2, "r")
    def handler(space: Space, iterable: Value, r: Value | None = None) -> Value:
        bounds = [index_of(space, r)] if r is not None and low == 2 else []
        pool = list(elements_for_tuple(space, iterable))
        if r is not None and low == 1 and not r.is_none():
            if not issubclass(r.python_type(), int):
                space.raise_error(TypeError, "Expected int as r")
            bounds = [index_of(space, r)]
        arguments: list[Value] = [TupleValue(pool), *map(space.constant, bounds)]
        native = space.run_real(function, pool, *bounds)
        return CombinationIterator(function, arguments, {}, native)


_combinatoric(itertools.permutations, 1)
_combinatoric(itertools.combinations, 2)
_combinatoric(itertools.combinations_with_replacement, 2)


@builtin(itertools.accumulate, 1, 2, "iterable", "func", "initial")
def _accumulate(
    space: Space, iterable: Value, func: Value | None = None, *, initial: Value | None = None
) -> Value:
    function, first = [None if v is None or v.is_none() else v for v in (func, initial)]
    return AccumulateIterator(space.iter(iterable), function, first)


@builtin(itertools.compress, 2, 2, "data", "selectors")
def _compress(space: Space, data: Value, selectors: Value) -> Value:
    return CompressIterator(space.iter(data), space.iter(selectors))


builtin(itertools.cycle, 1)(lambda space, iterable: CycleIterator(space.iter(iterable)))
builtin(itertools.pairwise, 1)(lambda space, iterable: PairwiseIterator(space.iter(iterable)))
builtin(itertools.starmap, 2)(
    lambda space, function, iterable: StarmapIterator(function, space.iter(iterable))
)
for _while in (itertools.dropwhile, itertools.takewhile):
    builtin(_while, 2)(
        lambda space, test, iterable, _while=_while: WhileIterator(
            _while, test, space.iter(iterable)
        )
    )


def _batched(space: Space, iterable: Value, n: Value, *, strict: Value | None = None) -> Value:
    size, strictly = index_of(space, n), strict is not None and space.truth(strict)
    space.run_real(BatchedIterator.kind, (), size)  # the check and its message are CPython's own
    return BatchedIterator(space.iter(iterable), size, strictly)


if hasattr(itertools, "batched"):
    _names = list(inspect.signature(itertools.batched).parameters)
    builtin(itertools.batched, 2, 2, *_names)(_batched)


@builtin(itertools.zip_longest, 0, -1, "fillvalue")
def _zip_longest(space: Space, *iterables: Value, fillvalue: Value | None = None) -> Value:
    iterators = [space.iter(iterable) for iterable in iterables]
    return ZipLongestIterator(iterators, fillvalue or space.constant(None))


@builtin(itertools.groupby, 1, 2, "iterable", "key")
def _groupby(space: Space, iterable: Value, key: Value | None = None) -> Value:
    function = None if key is None or key.is_none() else key
    return GroupbyIterator(space.iter(iterable), function)
