"""The same for iterators that run the program's own code.

In: iterator values. Out: AST expressions that make the real ones in place; nothing of the
program runs while they are made. Next: codegen.function.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from framejit.codegen.emit import Emitter, builds, call, emits
from framejit.codegen.emit_iterators import given
from framejit.values.containers import calling_iterators as calling
from framejit.values.core.base import Unmaterialisable, Value

_NOTHING = ast.Tuple([], ast.Load())


def _optional(out: Emitter, value: Value | None) -> ast.expr:
    return ast.Constant(None) if value is None else out.value(value)


def _chained(out: Emitter, before: list[Value], iterator: Value) -> ast.expr:
    """The elements, then those of the iterator."""
    elements = ast.Tuple(out.values(before), ast.Load())
    return call(out.constant(itertools.chain), elements, given(out, iterator))


@emits(calling.AccumulateIterator)
def _accumulate(out: Emitter, value: calling.AccumulateIterator) -> ast.expr:
    kind, function = out.constant(itertools.accumulate), _optional(out, value.function)
    if value.total is not None:  # it comes first, and has been given
        made = call(kind, _chained(out, [value.total], value.iterator), function)
        return out.keep(value, "accumulate", call(out.helper("advance"), made, ast.Constant(1)))
    initial = ast.keyword("initial", _optional(out, value.initial))
    made = ast.Call(kind, [given(out, value.iterator), function], [initial])
    return out.keep(value, "accumulate", made)


@builds(calling.CompressIterator)
def _compress(out: Emitter, value: calling.CompressIterator) -> ast.expr:
    parts = [given(out, value.data), given(out, value.selectors)]
    return out.keep(value, "compress", call(out.constant(itertools.compress), *parts))


@emits(calling.CycleIterator)
def _cycle(out: Emitter, value: calling.CycleIterator) -> ast.expr:
    kind, saved, index = out.constant(itertools.cycle), value.saved, value.index
    if value.iterator is None:
        rotated = ast.Tuple(out.values(saved[index:] + saved[:index]), ast.Load())
        return out.keep(value, "cycle", call(kind, rotated))
    made: ast.expr = call(kind, _chained(out, saved, value.iterator))
    if saved:
        made = call(out.helper("advance"), made, ast.Constant(len(saved)))
    return out.keep(value, "cycle", made)


@emits(calling.WhileIterator)
def _while(out: Emitter, value: calling.WhileIterator) -> ast.expr:
    parts = [out.value(value.predicate), given(out, value.iterator)]
    made = call(out.constant(value.kind), *parts)
    if value.decided:
        made = call(out.helper("iterator_at"), made, ast.Constant(1))
    return out.keep(value, value.kind.__name__, made)


@builds(calling.StarmapIterator)
def _starmap(out: Emitter, value: calling.StarmapIterator) -> ast.expr:
    parts = [out.value(value.function), given(out, value.iterator)]
    return out.keep(value, "starmap", call(out.constant(itertools.starmap), *parts))


@emits(calling.PairwiseIterator)
def _pairwise(out: Emitter, value: calling.PairwiseIterator) -> ast.expr:
    rest: ast.expr = _NOTHING
    if value.iterator is not None and value.last is not None:
        rest = _chained(out, [value.last], value.iterator)
    elif value.iterator is not None:
        rest = given(out, value.iterator)
    return out.keep(value, "pairwise", call(out.constant(itertools.pairwise), rest))


@emits(calling.ZipLongestIterator)
def _zip_longest(out: Emitter, value: calling.ZipLongestIterator) -> ast.expr:
    parts = [_NOTHING if part is None else given(out, part) for part in value.iterators]
    fill = ast.keyword("fillvalue", out.value(value.fill))
    made = ast.Call(out.constant(itertools.zip_longest), parts, [fill])
    return out.keep(value, "zip_longest", made)


@emits(calling.GroupbyIterator)
def _groupby(out: Emitter, value: calling.GroupbyIterator) -> ast.expr:
    parts = [given(out, value.iterator), _optional(out, value.function)]
    if value.key is None:
        return out.keep(value, "groupby", call(out.constant(itertools.groupby), *parts))
    assert value.target is not None
    parts += [out.value(value.key), out.value(value.target)]
    if value.value is not None:
        parts.append(out.value(value.value))
    return out.keep(value, "groupby", call(out.helper("started_groupby"), *parts))


@emits(calling.GroupIterator)
def _group(out: Emitter, value: calling.GroupIterator) -> ast.expr:
    current = value.parent.group is value
    parent = call(out.constant(itertools.groupby), _NOTHING)
    parts = [out.value(value.parent) if current else parent, out.value(value.target)]
    return out.keep(value, "group", call(out.constant(value.python_type()), *parts))


@emits(calling.IndexIterator, calling.ReversedIndexIterator)
def _by_index(out: Emitter, value: Any) -> ast.expr:
    backwards = type(value) is calling.ReversedIndexIterator
    if value.target is not None and backwards:
        raise Unmaterialisable(value.step, "making a reversed object would call __len__")
    if value.target is not None:
        made = call(out.constant(iter), out.value(value.target))
        made = call(out.helper("iterator_at"), made, ast.Constant(value.index))
    elif backwards:
        made = call(out.constant(reversed), _NOTHING)
    else:
        made = call(out.helper("ended_by_index"))
    return out.keep(value, "iterator", made)
