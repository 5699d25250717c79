"""Generators to expressions: new ones by a call, suspended ones by a continuation.

In: generators that the captured program made. Out: expressions. Next: codegen.effects.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Container, Iterator

from framejit.bytecode.continuations import build_generator
from framejit.bytecode.frame_point import FramePoint
from framejit.bytecode.instruction_set import Trait, having
from framejit.bytecode.liveness import assigned_later, live_slots
from framejit.codegen.emit import Emitter, call, emits
from framejit.interpreter.dropped import reached
from framejit.interpreter.frame import Frame
from framejit.values.core.base import NULL, Unmaterialisable, Value
from framejit.values.core.ends import end_is_seen, keeps_what_is_seen
from framejit.values.core.operations import LazyValue
from framejit.values.objects.exceptions import ExceptionValue
from framejit.values.objects.generators import GeneratorValue

#: What a slot holds after them is another thing.
_CHANGING = having(Trait.WRITES, Trait.UNBINDS)


def acts_at_its_end(value: Value) -> bool:
    """Is it an object whose end the program notices: a variable keeps it to its own end, even if
    nothing reads the variable any more."""
    source, value = value.source, _looked_at(value)
    if isinstance(value, GeneratorValue):
        return not value.finished  # whoever it is given to may start it
    if isinstance(value, ExceptionValue):
        return any(held for _, held, _ in kept_in_traceback(value))
    obj = value.obj
    layers = () if source is None else source.root.layers
    if source is not None and source.base is None:  # it may be a generator that has not finished
        return issubclass(type(obj), types.GeneratorType) or keeps_what_is_seen(obj, layers)
    return end_is_seen(obj, layers)


def _looked_at(value: Value) -> Value:
    return value.value if type(value) is LazyValue and value.value is not None else value


def keeps_what_acts(value: Value, errors: bool = True) -> bool:
    """The same of the object and all that it holds."""
    return any(
        acts_at_its_end(one) for one in reached([value])
        if isinstance(one, Value) and (errors or not isinstance(_looked_at(one), ExceptionValue))
    )  # fmt: skip


def kept_in_traceback(error: ExceptionValue) -> Iterator[tuple[int, list[Value], bool]]:
    """For the frames that it has passed, as positions in its traceback: what they, and those that
    have called them, keep whose end the program notices; and is the last of these the captured one,
    which has callers of its own?"""
    frames = [frame for _, frame in error.left]
    for passed, frame in error.left:
        kept, is_last = _kept_by(frame, frames)
        if kept or is_last:
            yield len(error.trace) - passed, kept, is_last


def kept_in_older_traceback(
    error: Value, position: int, frame: Frame
) -> Iterator[tuple[int, list[Value], bool]]:
    """The same where a part of ``frame`` that ran before is at this position in the traceback."""
    kept, _ = _kept_by(frame, (), goes_on=True)
    if kept:
        yield position + len(getattr(_looked_at(error), "trace", ())), kept, False


def _kept_by(
    frame: Frame, others: Container[Frame], goes_on: bool = False
) -> tuple[list[Value], bool]:
    kept, one = [], frame
    while True:
        if one.left:
            kept += held_by(one)
        elif goes_on:  # in other frames than that which is kept
            later = assigned_later(one.info, one.index)
            kept += held_by(one, later)
        if one.info.is_generator and one.parent is None:  # a suspended one has no caller
            return kept, False
        if one.parent is None:
            return kept, True
        one = one.parent
        if one in others:
            return kept, False


def held_by(frame: Frame, but: Container[int] = ()) -> list[Value]:
    """What is in a frame's variables, except these, whose end the program notices."""
    slots = [value for i, value in enumerate(frame.slots) if value is not None and i not in but]
    return [value for value in slots if keeps_what_acts(value, errors=False)]


def keeps_of_its_own(frame: Frame) -> bool:
    """Is there such a thing after this instruction, other than what errors keep?"""
    written = frame.instruction.arg if frame.instruction.op in _CHANGING else -1
    slots = [value for i, value in enumerate(frame.slots) if value is not None and i != written]
    return any(acts_at_its_end(one) for one in reached(slots, False) if isinstance(one, Value))


@emits(GeneratorValue)
def _generator(out: Emitter, value: GeneratorValue) -> ast.expr:
    if value.started and not value.finished:
        return _suspended(out, value)
    made = out.keep(value, "generator", _call(out, value))
    if value.finished:
        out.statement(call(ast.Attribute(made, "close", ast.Load())))
    return made


def _suspended(out: Emitter, value: GeneratorValue) -> ast.expr:
    """A generator that is suspended at a yield: its frame's state is handed to a continuation."""
    frame = value.frame
    if frame is None or frame.parent is not None:
        raise Unmaterialisable(value.step, "a running generator is needed for real")
    live = live_slots(frame.info, frame.pc)
    bound = frozenset(
        i for i, item in enumerate(frame.slots)
        if item is not None and (i in live or keeps_what_acts(item))
    )  # fmt: skip
    nulls = frozenset(i for i, item in enumerate(frame.stack) if item is NULL)
    point = FramePoint(frame.info.code, frame.pc, bound, nulls, len(frame.stack))
    slots: list[ast.expr] = [
        out.value(item) if i in bound and item is not None else ast.Constant(None)
        for i, item in enumerate(frame.slots)
    ]
    stack = [out.value(item) for item in frame.stack if item is not NULL]
    function = out.constant(build_generator(point, frame.globals), "generator")
    return out.keep(
        value, "generator", call(out.helper("started_generator"), function, *slots, *stack)
    )


def _call(out: Emitter, value: GeneratorValue) -> ast.expr:
    request = value.request
    function, code = request.function, request.function.code
    count = code.co_argcount
    slots = request.slots
    args: list[ast.expr] = [out.value(v) for v in slots[:count] if v is not None]
    keywords = [
        ast.keyword(code.co_varnames[i], out.value(slots[i]))  # type: ignore[arg-type]
        for i in range(count, count + code.co_kwonlyargcount)
    ]
    position = count + code.co_kwonlyargcount
    if code.co_flags & 4:
        args.append(ast.Starred(out.value(slots[position]), ast.Load()))  # type: ignore[arg-type]
        position += 1
    if code.co_flags & 8:
        keywords.append(ast.keyword(None, out.value(slots[position])))  # type: ignore[arg-type]
    return ast.Call(out.value(function), args, keywords)
