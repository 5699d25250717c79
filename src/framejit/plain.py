"""Plain Python in the place of a segment: what runs when nothing compiled does.

In: a `Target`. Out: a function of its slots that does the work of the original, or that raises an
error where the original goes on. Next room: the driver (compiler).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any

from framejit import native
from framejit.bytecode.continuations import FramePoint, build_raise, build_resume
from framejit.bytecode.decode import decode
from framejit.capture.target import Target
from framejit.codegen.runtime import answer
from framejit.graph.errors import Late
from framejit.peer import keep_out


def plain_function(
    target: Target, break_at: Callable[..., Any], error: BaseException | None
) -> Callable[..., Any]:
    """A function of the slots that does the work of ``target`` as plain Python.

    With ``error`` that is raised instead where ``target``, a continuation, goes on: its blocks
    meet it, and those of its callers. ``break_at(point, globals, variant="call")`` makes what goes
    on in a caller.
    """
    point = target.point
    if point is None:
        return _from_start(target, native.tail)
    if error is None:
        resume = build_resume(point, target.namespace)
    else:
        resume = build_raise(point, target.namespace, error)
    keep_out(resume.__code__)
    if not target.callers:
        return resume
    callers = [
        (caller.arity, None if caller.point is None
         else break_at(caller.point, caller.namespace, variant="call"))
        for caller in target.callers
    ]  # fmt: skip

    def fallback(*slots: Any) -> Any:
        position = point.arity
        thunk = native.tail(resume, *slots[:position])
        for arity, function in callers:
            state = slots[position : position + arity]
            position += arity
            if function is None:
                thunk = native.tail(answer, thunk, *state)
            else:
                thunk = native.tail(function, *state, thunk)
        return thunk

    return fallback


def _from_start(target: Target, run: Callable[..., Any]) -> Callable[..., Any]:
    """The fallback of a function: its slots are its arguments, then its closure cells. ``run``
    calls the first argument with the others."""
    info = decode(target.code)
    count = len(info.slot_names)
    positions = [*range(info.n_args), *range(info.free_start, count)]
    point = FramePoint(target.code, info.body_start, info.cell_slots.union(positions))
    resume = build_resume(point, target.namespace)

    def fallback(*slots: Any) -> Any:
        state: list[Any] = [None] * count
        for position, value in zip(positions, slots, strict=True):
            state[position] = value
        for position in info.cell_slots:
            if position < info.free_start:
                filled = position < info.n_args
                state[position] = CellType(state[position]) if filled else CellType()
        return run(resume, *state)

    return fallback


def unwatched(target: Target) -> Callable[..., Any]:
    """The fallback of a function such that nothing of what it calls is captured."""
    return _from_start(target, _unwatched)


def _unwatched(function: Callable[..., Any], *args: Any) -> Any:
    context = native.set_context(None)
    try:
        return function(*args)
    finally:
        native.set_context(context)


keep_out(_unwatched.__code__)


def meet(
    raising: Callable[..., Any] | None, error: Exception | Late, slots: tuple[Any, ...]
) -> Any:
    """Raise ``error`` with ``raising``, where a frame goes on, if a block of it has to meet it."""
    if raising is None:
        raise error.error if isinstance(error, Late) else error
    thunk = native.tail(raising, *slots)
    return native.tail(_passed, thunk, error.error) if isinstance(error, Late) else thunk


def _passed(thunk: Callable[[], Any], error: Exception) -> None:
    """The blocks have cleaned up; whatever they make of it, ``error`` goes on."""
    try:
        thunk()
    except Late:
        pass
    raise error


def has_blocks(target: Target) -> bool:
    """Has the frame, or one that waits for it, a ``try`` or ``with`` that an error has to meet?"""
    points = [caller.point for caller in target.callers]
    codes = [target.code, *[point.code for point in points if point is not None]]
    return any(i.op == "PUSH_EXC_INFO" for code in codes for i in decode(code).instructions)
