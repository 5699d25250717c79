"""Generators to expressions: new ones by a call, suspended ones by a continuation.

In: generators that the captured program made. Out: expressions. Next: codegen.effects.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator

from framejit.bytecode.continuations import build_generator
from framejit.bytecode.frame_point import FramePoint
from framejit.bytecode.liveness import live_slots
from framejit.codegen.emit import Emitter, call, emits
from framejit.interpreter.dropped import reached
from framejit.interpreter.frame import Frame
from framejit.values.core.base import NULL, Unmaterialisable, Value
from framejit.values.core.ends import end_is_seen, keeps_what_is_seen
from framejit.values.core.space import LazyValue
from framejit.values.objects.exceptions import ExceptionValue
from framejit.values.objects.generators import GeneratorValue


def acts_at_its_end(value: Value) -> bool:
    """Is it an object whose end the program notices: a variable keeps it to its own end, even if
    nothing reads the variable any more."""
    source = value.source
    if type(value) is LazyValue and value.value is not None:
        value = value.value
    if isinstance(value, GeneratorValue):
        return not value.finished  # whoever it is given to may start it
    if isinstance(value, ExceptionValue):
        return next(kept_in_traceback(value), None) is not None
    obj = value.obj
    layers = () if source is None else source.root.layers
    if source is not None and source.base is None:  # it may be a generator that has not finished
        return issubclass(type(obj), types.GeneratorType) or keeps_what_is_seen(obj, layers)
    return end_is_seen(obj, layers)


def keeps_what_acts(value: Value, errors: bool = True) -> bool:
    """The same of the object and all that it holds."""
    return any(
        acts_at_its_end(one) for one in reached([value])
        if isinstance(one, Value) and (errors or not isinstance(one, ExceptionValue))
    )  # fmt: skip


def kept_in_traceback(error: ExceptionValue) -> Iterator[tuple[int, list[Value]]]:
    """For the frames that it has left, as positions in its traceback: what they keep whose end the
    program notices."""
    for passed, frame in error.left:
        held = held_by(frame) if frame.left else ()
        if held:
            yield len(error.trace) - passed, held


def held_by(frame: Frame) -> list[Value]:
    """What is in a frame's variables whose end the program notices."""
    slots = [value for value in frame.slots if value is not None]
    return [value for value in slots if keeps_what_acts(value, errors=False)]


def keeps_of_its_own(frame: Frame) -> bool:
    """Is there such a thing after this instruction, other than what errors keep?"""
    written = frame.instruction.arg if frame.instruction.op in ("STORE_FAST", "DELETE_FAST") else -1
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
