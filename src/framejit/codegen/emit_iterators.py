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
from framejit.values.containers import (
    calling_iterators,  # noqa: F401 - more kinds of `Composed`
    iterators,
)
from framejit.values.containers.composed import Composed, Made, Taken
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


def _kinds(cls: Any) -> list[Any]:
    return [cls, *[kind for below in cls.__subclasses__() for kind in _kinds(below)]]


@builds(*_kinds(Composed))
def _composed(out: Emitter, value: Composed) -> ast.expr:
    return out.keep(value, value.kind.__name__, _made(out, value.made()))


def _made(out: Emitter, part: Any) -> ast.expr:
    """An expression for what the real iterator is made of."""
    if isinstance(part, Made):
        function, state = part.function, part.state
        called = out.helper(function) if type(function) is str else out.constant(function)
        arguments = [_made(out, argument) for argument in part.arguments]
        keywords = [ast.keyword(name, _made(out, one)) for name, one in part.keywords.items()]
        made: ast.expr = ast.Call(called, arguments, keywords)
        if state is not None:
            made = call(out.helper("iterator_at"), made, ast.Constant(state))
        return _advanced(out, made, part.taken)
    if isinstance(part, Taken):
        return given(out, part.iterator)
    if isinstance(part, Value):
        return out.value(part)
    if type(part) is tuple:
        return ast.Tuple([_made(out, one) for one in part], ast.Load())
    return out.constant(part)


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
