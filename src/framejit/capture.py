"""One capture: from the slots of a call to a generated function, its guards and its graph.

In: a `Target` (which code, from which instruction on) and the real slots of a call. Out: a
`Capture`
with the entry for the native dispatch. Captures that must start again (`Restart`) do so here.
Next room: compiler.
"""

from __future__ import annotations

import contextlib
import gc
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from framejit import native
from framejit.bytecode.continuations import FramePoint
from framejit.bytecode.decode import decode
from framejit.codegen.emit import Emitter
from framejit.codegen.function import Draft
from framejit.exc import InternalError
from framejit.graph.builder import GraphBuilder
from framejit.guards.plan import Plan, build_plan
from framejit.interpreter import opcodes  # noqa: F401 - registers the handlers
from framejit.interpreter.frame import Frame, HandledValue
from framejit.interpreter.loop import Broken, Interpreter, Restart, Returned
from framejit.values.base import NULL, Unmaterialisable, Value
from framejit.values.space import Space
from framejit.values.tensors import TensorValue

_RESTART_LIMIT = 200


class Target(NamedTuple):
    """What a compiled object captures: a function from its start, or a continuation."""

    code: types.CodeType
    namespace: dict[str, Any]
    point: FramePoint | None  # None: from the start

    @property
    def name(self) -> str:
        """For reports: the function, or the continuation in it."""
        if self.point is None:
            return self.code.co_qualname
        return f"{self.code.co_qualname}.__resume_at_{self.point.offset}"

    @property
    def line(self) -> int:
        """The user's line where it starts."""
        if self.point is None:
            return self.code.co_firstlineno
        return decode(self.code).instructions[self.point.index].line


class Capture(NamedTuple):
    """The result of capturing one call."""

    outcome: Returned | Broken
    function: types.FunctionType
    text: str
    plan: Plan
    state: Any  # native.GlobalState at the start
    graph: torch.fx.GraphModule | None
    operations: int
    inputs: int
    steps: int
    backend_seconds: float


class _Link:
    """Makes the break functions of a break's frames; ``make`` is the compiler's."""

    tail = staticmethod(native.tail)

    def __init__(self, make: Callable[[Frame, bool], Any]) -> None:
        self._make = make

    def __call__(self, frame: Frame, innermost: bool) -> Any:
        return self._make(frame, innermost)


def capture(
    target: Target,
    slots: tuple[Any, ...],
    compile_graph: Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]],
    make_break: Callable[[Frame, bool], Any],
    check_break: Callable[[Broken], None],
) -> Capture:
    """Capture one call; starts again as often as a step must not be captured."""
    break_at: dict[int, tuple[str, str]] = {}
    while True:
        try:
            return _attempt(target, slots, compile_graph, make_break, check_break, break_at)
        except Restart as restart:
            step, reason, hint = restart.step, restart.reason, restart.hint
        except Unmaterialisable as problem:
            step, reason, hint = problem.step, problem.reason, ""
        if step in break_at or step <= 0 or len(break_at) >= _RESTART_LIMIT:
            raise InternalError(f"the capture cannot go on: {reason}")
        break_at[step] = (reason, hint)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """A capture makes many objects that all live to its end; collecting among them (and among all
    of torch's) would take longer than the capture itself."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _attempt(
    target: Target,
    slots: tuple[Any, ...],
    compile_graph: Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]],
    make_break: Callable[[Frame, bool], Any],
    check_break: Callable[[Broken], None],
    break_at: dict[int, tuple[str, str]],
) -> Capture:
    builder = GraphBuilder()
    space = Space(builder)
    interpreter = Interpreter(space, break_at)
    builder.stack_trace = interpreter.stack_trace
    state = native.GlobalState()
    try:
        with _no_collection():
            frame, slot_names = _root_frame(interpreter, target, slots)
            outcome = interpreter.capture(frame)
            if isinstance(outcome, Broken):
                check_break(outcome)
            out = Emitter(space, slot_names)
            draft = Draft(out, outcome, _Link(make_break))
    finally:
        _restore_state(space)
    graph, module, seconds = None, None, 0.0
    builder.outputs(draft.output_nodes())
    inputs: list[TensorValue] = []
    operations = builder.op_count
    if operations:
        module, examples = builder.finish()
        inputs = [space.graph_inputs[i] for i in builder.used_inputs]
        operations = sum(n.op.startswith("call") for n in module.graph.nodes)
        if operations:
            started = time.perf_counter()
            graph = compile_graph(module, examples)
            seconds = time.perf_counter() - started
    used = {id(value) for value in inputs}
    for value in space.graph_inputs:
        if id(value) not in used and value not in out.made:
            _release(out, value)
    for value in inputs:
        out.load(value.source)  # type: ignore[arg-type]
    with _no_collection():
        plan = build_plan([*space.slot_roots, *space.const_roots.values()])
    captures = [out.capture_name(source) for source in plan.captures]
    first = _position(frame, None)
    last = _position(frame, outcome)
    function, text = draft.function(target.code, graph, inputs, captures, first, last)
    return Capture(
        outcome, function, text, plan, state, module if operations else None, operations,
        len(inputs), interpreter.steps, seconds,
    )  # fmt: skip


def _release(out: Emitter, value: TensorValue) -> None:
    """An input that the finished graph does not need and the function does not load."""
    source = value.source
    if source is not None and not out.is_loaded(source):
        source.captured = False


def _root_frame(
    interpreter: Interpreter, target: Target, slots: tuple[Any, ...]
) -> tuple[Frame, list[str]]:
    """The frame to start with, and the parameter names of the generated function."""
    space = interpreter.space
    info = decode(target.code)
    count = len(info.slot_names)
    values: list[Value | None] = [None] * count
    names: list[str] = []

    def load(index: int, name: str) -> Value:
        names.append(name)
        return space.load(space.slot_source(index, name), slots[index])

    point = target.point
    if point is None:
        positions = [*range(info.n_args), *range(info.free_start, count)]
        for index, position in enumerate(positions):
            values[position] = load(index, info.slot_names[position])
        frame = interpreter.make_frame(target.code, values, target.namespace, None)
        return frame, names
    for position in range(count):
        value = load(position, info.slot_names[position])
        values[position] = value if position in point.bound else None
    frame = interpreter.make_frame(target.code, values, target.namespace, None)
    frame.pc = frame.index = point.index
    handled: Value | None = None
    arguments = {p: count + i for i, p in enumerate(point.stack_positions)}
    for position in range(point.depth):
        if position in point.nulls:
            frame.stack.append(NULL)
            continue
        value = load(arguments[position], f"stack {position}")
        if position in point.exc_slots:
            level = HandledValue(value.realize(), handled)
            handled = level.handled
            value = level
        frame.stack.append(value)
    interpreter.handled = handled
    return frame, names


def _restore_state(space: Space) -> None:
    """Put torch's global state back to what it was before the capture changed it."""
    for (setter, selector), before in reversed(list(space.effects.state.items())):
        setter(*selector, before)
    while space.effects.nesting > 0:
        torch.autocast_decrement_nesting()
        space.effects.nesting -= 1
    while space.effects.nesting < 0:
        torch.autocast_increment_nesting()
        space.effects.nesting += 1


def _position(frame: Frame, outcome: Returned | Broken | None) -> tuple[int, int, int, int]:
    if isinstance(outcome, Broken):
        frame = outcome.frames[0]
    if outcome is None:
        line = frame.info.instructions[0].line or frame.info.code.co_firstlineno
        return line, line, 0, 0
    at, end_line, column, end_column = frame.instruction.positions
    line = at or frame.instruction.line
    return line, end_line or line, column or 0, end_column or 0


