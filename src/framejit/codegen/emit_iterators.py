"""Iterators and small callables to expressions: how each one is built at the point it has reached.

In: iterator values. Out: AST expressions, registered with `codegen.emit`. Iterators that share
state (`itertools.tee`, a sub-iterator of two others) are built once and shared.
Next: codegen.function.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from framejit.codegen.emit import Emitter, builds, call, emits
from framejit.codegen.emit_containers import call_of_base
from framejit.values.containers import iterators
from framejit.values.containers.sequences import ListValue
from framejit.values.core.base import Unmaterialisable, Value, is_user_class
from framejit.values.stdlib.operator_functions import GetterValue


def given(out: Emitter, iterator: Value) -> ast.expr:
    """An iterator to be taken from, for a class in C, which would call ``__iter__`` again."""
    made = out.value(iterator)
    own = is_user_class(iterator.python_type())
    return call(out.helper("given"), made) if own else made


def _iter(out: Emitter, iterable: ast.expr) -> ast.expr:
    return call(out.constant(iter), iterable)


def _advanced(out: Emitter, iterator: ast.expr, count: int) -> ast.expr:
    """An iterator of which so many elements were taken."""
    return call(out.helper("advance"), iterator, ast.Constant(count)) if count else iterator


@emits(iterators.SequenceIterator)
def _sequence_iterator(out: Emitter, value: iterators.SequenceIterator) -> ast.expr:
    if value.sequence is None:
        return out.keep(value, "iterator", _iter(out, call(out.constant(value.kind))))
    made = out.keep(value, "iterator", call_of_base(out, value.sequence, "__iter__"))
    if value.index:
        _position(out, made, value.sequence, value.index)
    return made


@emits(iterators.ReversedIterator)
def _reversed_iterator(out: Emitter, value: iterators.ReversedIterator) -> ast.expr:
    if value.sequence is None:
        kind = ast.Tuple if value.kind is reversed else ast.List
        empty = call(out.constant(reversed), kind([], ast.Load()))
        return out.keep(value, "iterator", empty)
    made = out.keep(value, "iterator", call_of_base(out, value.sequence, "__reversed__"))
    _position(out, made, value.sequence, value.index)
    return made


def _position(out: Emitter, made: ast.expr, sequence: Value, index: int) -> None:
    """A list may still get its content, or be shorter now than what was taken from it."""
    position = ast.Constant(index)
    if isinstance(sequence, ListValue):
        helper, target = out.helper("set_position"), out.value(sequence)
        out.last(lambda: out.statement(call(helper, made, target, position)))
    else:
        out.statement(call(out.helper("iterator_at"), made, position))


@emits(iterators.ConstantIterator, iterators.RangeIterator)
def _constant_iterator(out: Emitter, value: iterators.ConstantIterator) -> ast.expr:
    made = _advanced(out, _iter(out, out.value(value.value)), value.index)
    return out.keep(value, "iterator", made)


def _prepare(out: Emitter, value: Any, container: Value, fits: bool) -> None:
    """The real iterator must find the container with its content; if that has changed since, the
    iterator would have noticed."""
    if not fits:
        raise Unmaterialisable(value.step, "what is iterated over changes while this goes on")
    out.value(container)
    out.complete(container)


@emits(iterators.DictIterator)
def _dict_iterator(out: Emitter, value: iterators.DictIterator) -> ast.expr:
    if value.dict is None:
        view: ast.expr = call(ast.Attribute(ast.Dict([], []), value.what, ast.Load()))
    else:
        _prepare(out, value, value.dict, value.dict.version == value.version)
        view = call_of_base(out, value.dict, value.what)
    made: ast.expr = call(out.constant(reversed if value.reverse else iter), view)
    if value.dict is not None:
        made = _advanced(out, made, value.index)
    return out.keep(value, "iterator", made)


@emits(iterators.SetIterator)
def _set_iterator(out: Emitter, value: iterators.SetIterator) -> ast.expr:
    if value.set is None:
        ended = call(out.constant(iter), call(out.constant(set)))
        return out.keep(value, "iterator", ended)
    _prepare(out, value, value.set, len(value.set.keys(out.space)) == value.size)
    made = _advanced(out, call_of_base(out, value.set, "__iter__"), value.index)
    return out.keep(value, "iterator", made)


@emits(iterators.DequeIterator)
def _deque_iterator(out: Emitter, value: iterators.DequeIterator) -> ast.expr:
    _prepare(out, value, value.sequence, value.sequence.version == value.version)
    method = "__reversed__" if value.reverse else "__iter__"
    made = _advanced(out, call_of_base(out, value.sequence, method), value.index)
    return out.keep(value, "iterator", made)


@emits(iterators.ZipIterator)
def _zip(out: Emitter, value: iterators.ZipIterator) -> ast.expr:
    keywords = [ast.keyword("strict", ast.Constant(True))] if value.strict else []
    parts = [given(out, iterator) for iterator in value.iterators]
    return out.keep(value, "zip", ast.Call(out.constant(zip), parts, keywords))


@emits(iterators.EnumerateIterator)
def _enumerate(out: Emitter, value: iterators.EnumerateIterator) -> ast.expr:
    made = call(out.constant(enumerate), given(out, value.iterator), ast.Constant(value.count))
    return out.keep(value, "enumerate", made)


@builds(iterators.MapIterator)
def _map(out: Emitter, value: iterators.MapIterator) -> ast.expr:
    parts = [out.value(value.function), *[given(out, part) for part in value.iterators]]
    return out.keep(value, "map", call(out.constant(map), *parts))


@builds(iterators.FilterIterator)
def _filter(out: Emitter, value: iterators.FilterIterator) -> ast.expr:
    factory = out.constant(filter if value.keep else itertools.filterfalse)
    function = ast.Constant(None) if value.function is None else out.value(value.function)
    return out.keep(value, "filter", call(factory, function, given(out, value.iterator)))


@emits(iterators.CallableIterator)
def _callable_iterator(out: Emitter, value: iterators.CallableIterator) -> ast.expr:
    if value.function is None:  # it has met its sentinel, and calls nothing of the program's
        made = call(out.constant(iter), out.constant(int), ast.Constant(0))
    else:
        made = call(out.constant(iter), out.value(value.function), out.value(value.sentinel))
    return out.keep(value, "iterator", made)


@emits(iterators.ChainIterator)
def _chain(out: Emitter, value: iterators.ChainIterator) -> ast.expr:
    rest: ast.expr = ast.Tuple([], ast.Load())
    if value.iterables is not None:
        rest = given(out, value.iterables)
    made = call(out.constant(itertools.chain.from_iterable), rest)
    if value.current is not None:
        made = call(out.constant(itertools.chain), given(out, value.current), made)
    return out.keep(value, "chain", made)


@emits(iterators.IsliceIterator)
def _islice(out: Emitter, value: iterators.IsliceIterator) -> ast.expr:
    islice = out.constant(itertools.islice)
    if value.iterator is None:
        return out.keep(value, "islice", call(islice, ast.Tuple([], ast.Load()), ast.Constant(0)))
    stop = None if value.stop is None else max(value.stop - value.position, 0)
    start = value.following - value.position
    if stop is not None:
        start = min(start, stop)
    bounds = [ast.Constant(bound) for bound in (start, stop, value.step)]
    made = call(islice, given(out, value.iterator), *bounds)
    return out.keep(value, "islice", made)


@emits(iterators.CountIterator)
def _count(out: Emitter, value: iterators.CountIterator) -> ast.expr:
    made = call(out.constant(itertools.count), out.value(value.current), out.value(value.step))
    return out.keep(value, "count", made)


@emits(iterators.RepeatIterator)
def _repeat(out: Emitter, value: iterators.RepeatIterator) -> ast.expr:
    times = [] if value.times is None else [ast.Constant(value.times)]
    made = call(out.constant(itertools.repeat), out.value(value.value), *times)
    return out.keep(value, "repeat", made)


@emits(iterators.CombinationIterator)
def _combination(out: Emitter, value: iterators.CombinationIterator) -> ast.expr:
    arguments, keywords = out.values(value.arguments), out.keywords(value.keywords)
    made = ast.Call(out.constant(value.function), arguments, keywords)
    return out.keep(value, "combination", _advanced(out, made, value.index))


@emits(iterators.TeeIterator)
def _tee(out: Emitter, value: iterators.TeeIterator) -> ast.expr:
    shared = out.shared.get(id(value.buffer))
    if shared is None:
        buffered = call(
            out.constant(itertools.chain),
            ast.Tuple(out.values(value.buffer), ast.Load()), given(out, value.iterator),
        )  # fmt: skip
        pair = call(out.constant(itertools.tee), buffered, ast.Constant(1))
        shared = out.assign("tee", ast.Subscript(pair, ast.Constant(0), ast.Load()))
        out.shared[id(value.buffer)] = shared
    copy = call(ast.Attribute(shared, "__copy__", ast.Load()))
    return out.keep(value, "tee", _advanced(out, copy, value.index))


@builds(GetterValue)
def _getter(out: Emitter, value: GetterValue) -> ast.expr:
    arguments, keywords = out.values(value.args), out.keywords(value.kwargs)
    return out.keep(value, "getter", ast.Call(out.constant(value.kind), arguments, keywords))
