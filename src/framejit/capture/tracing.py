"""The first stage of a capture: executes a call on values.

In: a `Call`, the steps that must not be captured, an empty space. Out: a `Trace`, where the call
ended with a draft of the function, which knows what it needs of the graph; or `Again`, if a step
must not be captured or a value cannot be built for real. Next: graphs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container
from typing import Any

import torch

from framejit import native
from framejit.backends.saved_hooks import active_hooks, as_modules
from framejit.bytecode.continuations import FramePoint
from framejit.bytecode.decode import decode
from framejit.bytecode.liveness import may_assign
from framejit.capture.target import Target
from framejit.codegen.emit import Emitter
from framejit.codegen.emit_generators import keeps_of_its_own
from framejit.codegen.function import Draft
from framejit.collection import no_collection
from framejit.exc import AROUND_MODULE, GraphBreak
from framejit.graph import instalments
from framejit.graph.differentiation import Spent, held_for_backward
from framejit.graph.global_state import asked_functions, unseen
from framejit.graph.gradients import differentiable_reach
from framejit.interpreter import opcodes  # noqa: F401 - registers the handlers
from framejit.interpreter.dropped import Existing
from framejit.interpreter.frame import Frame, HandledValue
from framejit.interpreter.loop import Interpreter
from framejit.interpreter.outcomes import Again, Broken, Returned
from framejit.interpreter.side_run import is_pure_hook, is_pure_round_trip
from framejit.source import Source
from framejit.strictness import is_strict, strictness
from framejit.values.core.base import NULL, Unmaterialisable, Value
from framejit.values.core.ends import search_what_is_seen
from framejit.values.core.space import Space
from framejit.values.stdlib.process import ContextVarValue
from framejit.values.torch.arrivals import unsettled as unsettled_results
from framejit.values.torch.hooks import Hooks, Surrounding, unsettled
from framejit.values.torch.leaves import replaced_in
from framejit.values.torch.outside import guard_seen

#: Torch's modules with what calls a module: its hooks, and the exchange between processes.
_CALLING_MODULES = frozenset({"torch.nn.modules.module", "torch.nn.parallel.distributed"})


@dataclasses.dataclass(slots=True, frozen=True)
class Driver:
    """What a capture asks of the compiler that it is made for."""

    compile_graph: Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]
    make_break: Callable[[Frame, bool], Any]
    #: A constructor's call of ``__init__``: run the thunk, return the new object.
    answer: Callable[..., Any]
    #: Also told: do blocks of the program around the break make it an error, or none?
    check_break: Callable[[Broken, bool], None]
    #: Makes what is called when a graph raises: with the error, and with every slot where it can
    #: run again. Its argument: may the graph or a text raise?
    deoptimise: Callable[[bool], Callable[..., Any]]
    #: May truth values that depend on data be taken for granted?
    may_expect: bool
    #: Is a graph break an error?
    whole: bool
    #: May the capture be left to the next call (`NotYet`)?
    may_wait: bool
    #: See `Task`.
    stand_in: Callable[[torch.Tensor], torch.Tensor] | None = None


@dataclasses.dataclass(slots=True, frozen=True)
class Call:
    """The call to be captured."""

    target: Target
    slots: tuple[Any, ...]
    #: What of the slots' objects is on the way to something whose end is seen.
    layers: Container[int] = ()


@dataclasses.dataclass(slots=True, frozen=True)
class Trace:
    """A call that was executed on values."""

    target: Target
    space: Space
    interpreter: Interpreter
    #: The outermost frame.
    frame: Frame
    outcome: Returned | Broken
    draft: Draft
    #: native.GlobalState at the start.
    state: Any
    #: The hooks on saved tensors around the call.
    around: Surrounding | None
    #: What the hooks that the graph puts in place depend on.
    hook_roots: list[Source] = dataclasses.field(default_factory=list)
    #: The results that cannot be differentiated any more.
    spent: set[Any] = dataclasses.field(default_factory=set)
    #: Those of them whose gradients call no hook of a result before that is found out.
    unseen: set[Any] = dataclasses.field(default_factory=set)


def trace(
    call: Call, driver: Driver, break_at: dict[int, GraphBreak], space: Space
) -> Trace | Again:
    """Execute the call; ``break_at`` are the steps that must not be captured."""
    target = call.target
    around = before_saving = None
    if (active := active_hooks()) is not None:
        around = Surrounding(space, active, lambda like: is_pure_round_trip(*active, like)[0])
        before_saving = around.before_saving
    interpreter = Interpreter(space, break_at, before_saving)
    interpreter.pauses = True
    state = native.GlobalState()
    space.torch_function.begin(asked_functions())
    try:
        with no_collection(), unseen():
            frame, innermost, slot_names = _frames(interpreter, call)
            if interpreter.suspended:
                instalments.apart("a continuation has objects whose end is seen")
            outcome = interpreter.capture(frame, innermost)
            if (level := space.effects.autocast_level) is not None:
                state.require_autocast_level(level)
            if isinstance(outcome, Again):
                return outcome
            guard_seen(space)
            if isinstance(outcome, Broken):
                find, raised_at = interpreter.roots.kept_frame, interpreter.raise_steps
                divided = find(outcome.frames, keeps_of_its_own, raised_at, interpreter.suspended)
                if divided is not None:
                    return Again(*divided)
                outcome.splits = _splits(space, outcome)
                driver.check_break(outcome, _is_strict(space))
            out = Emitter(space, slot_names)
            left = interpreter.roots.left_before
            draft = Draft(out, outcome, driver.make_break, driver.answer, left)
            made = Trace(target, space, interpreter, frame, outcome, draft, state, around)
            return _problem(made) or made
    except Unmaterialisable as problem:
        return Again(problem.step, GraphBreak("FJ0161", problem.reason))
    finally:
        interpreter.suspended.clear()  # it may be collected late
        space.effects.restore_state()


def _is_strict(space: Space) -> bool:
    """Do the blocks that are open where the capture ends make a break an error?"""
    variable = space.known_value(strictness)
    if not isinstance(variable, ContextVarValue) or not variable.pending:
        return is_strict(strictness.get())
    blocks = space.items(variable.pending[-1].value.realize())
    return is_strict(tuple([block.realize().as_python() for block in blocks]))


def _splits(space: Space, broken: Broken) -> bool:
    """Does a break divide what could be one graph? What torch does around a module does not where
    nothing comes before it, or only that module is compiled."""
    if broken.identifier != AROUND_MODULE:
        return True
    callers = {frame.globals.get("__name__") for frame in broken.frames}
    return bool(space.builder.sequence) and not callers <= _CALLING_MODULES


def _problem(trace: Trace) -> Again | None:
    """Why an entry cannot do what was traced, if it cannot."""
    space, draft = trace.space, trace.draft
    problem = trace.interpreter.lost(draft.out.made)
    if problem is None and space.effects.hooks:
        problem = _unsettled_hooks(trace)
    if problem is None and trace.around is not None:
        problem = trace.around.unsettled()
    if problem is not None:
        return Again(*problem)
    for node in draft.output_nodes():
        if (step := space.builder.operation(node).transform) is not None:
            reason = "a tensor leaves the transform of torch.func that it was made in"
            return Again(step, GraphBreak("FJ0123", reason))
    for node in draft.output_nodes():
        if (kept := space.effects.retaining.get(node)) is not None:
            why = "a result that keeps its gradient is handed out"
            return Again(kept.step, GraphBreak("FJ0111", why))
    if space.effects.let_go and (unsound := _half_let_go(trace)) is not None:
        return unsound
    for step in space.effects.unfinished.values():
        why = "a collective operation that the same graph does not wait for"
        return Again(step, GraphBreak("FJ0125", why))
    lost = _half_spent(trace) if space.effects.differentiations else None
    if lost is None and (space.effects.made_leaves or space.effects.replaced):
        lost = _leaf_is_lost(trace)
    if lost is None:
        hooked = unsettled_results(space, draft.output_nodes(), trace.unseen)
        lost = None if hooked is None else Again(*hooked)
    if lost is not None:
        return lost
    if space.effects.expected and (space.builder.mutated_inputs or space.builder.exchanges):
        return Again()
    return None


def _half_let_go(trace: Trace) -> Again | None:
    """A history cannot be let go of where autograd or the program knows the tensor with it."""
    space, outputs = trace.space, trace.draft.output_nodes()
    let_go = space.effects.let_go
    try:
        held = held_for_backward(space.builder, outputs, let_go)
    except GraphBreak as broken:
        return Again(min(let_go.values()), broken)
    held.update(node for node in outputs if node.op != "placeholder" and node in let_go)
    if not held:
        return None
    why = "Tensor.detach_() of a tensor that backward needs"
    return Again(min(let_go[node] for node in held), GraphBreak("FJ0111", why))


def _half_spent(trace: Trace) -> Again | None:
    """Notes which results the gradients in the graph have used up. One of which some could still be
    had cannot be handed out: then Python computes the last gradient."""
    builder = trace.space.builder
    nodes = [n for n in trace.draft.output_nodes() if builder.operation(n).differentiable]
    if not nodes:
        return None
    try:
        spent = Spent(builder, nodes, trace.space.effects.watched)
    except GraphBreak as broken:
        return Again(trace.space.effects.differentiations[-1], broken)
    for node in nodes:
        used = spent.of(node, nodes)
        if used is None:
            why = "a result shares a part of what a gradient has used up"
            return Again(trace.space.effects.differentiations[-1], GraphBreak("FJ0117", why))
        if used:
            trace.spent.add(node)
            if node in spent.unseen:
                trace.unseen.add(node)
    return None


def _leaf_is_lost(trace: Trace) -> Again | None:
    """What is differentiated with respect to a leaf of the graph's own is handed out, which the
    program does not get: the graph ends before it becomes one. (A leaf itself is made for it.)"""
    space, draft = trace.space, trace.draft
    leaves = space.effects.made_leaves
    nodes = [one.node for one in space.builder.recorded]
    reach = differentiable_reach(space.builder, {leaf: {leaf} for leaf in leaves}, nodes)
    handed_out = [node for node in draft.output_nodes() if node not in trace.spent]
    lost = set().union(*[reach.get(node, ()) for node in handed_out if node not in leaves])
    hooked = {hooks.tensor.node for hooks in space.effects.hooks if hooks.tensor is not None}
    lost |= hooked.intersection(handed_out)
    for node, leaf in leaves.items():
        if node in lost:
            why = "what a leaf made in the graph has led to is handed out"
            return Again(leaf.step, GraphBreak("FJ0111", why))
    step = replaced_in(space, handed_out)
    if step is not None:
        why = "a result is handed out of a tensor whose data was replaced"
        return Again(step, GraphBreak("FJ0112", why))
    return None


def _unsettled_hooks(trace: Trace) -> tuple[int, GraphBreak] | None:
    """Hooks that the graph puts in place must stay as they are; notes what they depend on."""
    space, outcome, built = trace.space, trace.outcome, trace.draft.out.made
    variables = [variable for hooks in space.effects.hooks for variable in hooks.cells]
    left = {v.cell for v in variables if v.cell in built or v.cell.source is not None}
    for frame in outcome.frames if isinstance(outcome, Broken) else ():
        for slot, value in enumerate(frame.slots):
            name = frame.info.slot_names[slot]
            if value in left and not may_assign(frame.info, name, frame.index):
                left.remove(value)
    left.update(v.cell for v in variables if may_assign(decode(v.code), v.name))

    def only_compute(hooks: Hooks, made: list[Any]) -> bool:
        if hooks.tensor is not None:  # AOTAutograd makes it part of the graph
            pure, found = is_pure_hook(made[0], hooks.tensor.fake(space))
            trace.hook_roots.extend(found)
            return pure
        like = next((t for t in space.builder.inputs if t.is_floating_point()), torch.empty(2))
        modules = as_modules((made[0], made[1]))
        return modules is not None or is_pure_round_trip(made[0], made[1], like)[0]

    return unsettled(space, left, only_compute)


def _frames(interpreter: Interpreter, call: Call) -> tuple[Frame, Frame, list[str]]:
    """The outermost and the innermost frame, and the parameter names of the generated function."""
    space, target, slots, layers = interpreter.space, call.target, call.slots, call.layers
    info = decode(target.code)
    count = len(info.slot_names)
    names: list[str] = []
    errors: dict[Value, BaseException] = {}

    def load(name: str) -> Value:
        unique, number = name, 1
        while unique in names:  # a caller's slot
            number += 1
            unique = f"{name} #{number}"
        names.append(unique)
        index = len(names) - 1
        source = space.slot_source(index, unique)
        source.layers = layers
        value = space.load(source, slots[index])
        if target.point is not None and search_what_is_seen(slots[index], layers):
            interpreter.suspended[Existing(slots[index])] = None
        if issubclass(type(slots[index]), BaseException):
            errors[value] = slots[index]
        return value

    if target.point is None:
        values: list[Value | None] = [None] * count
        for position in (*range(info.n_args), *range(info.free_start, count)):
            values[position] = load(info.slot_names[position])
        frame = interpreter.make_frame(target.code, values, target.namespace, None)
        return frame, frame, names
    states: list[tuple[FramePoint, dict[str, Any], list[Value]]] = []
    results: dict[int, Value] = {}
    for point, namespace in [
        (target.point, target.namespace), *[(c.point, c.namespace) for c in target.callers]
    ]:  # fmt: skip
        if point is None:
            results[len(states) - 1] = load("new object")
            continue
        labels = [*point.info.slot_names, *[f"stack {p}" for p in point.stack_positions]]
        states.append((point, namespace, [load(label) for label in labels]))
    interpreter.roots.owns_slots = True
    root = innermost = None
    for depth in range(len(states) - 1, -1, -1):
        point, namespace, state = states[depth]
        innermost = _frame_at(interpreter, point, namespace, state, innermost)
        innermost.result = results.get(depth)
        innermost.pc = point.index if depth == 0 else point.index + 1
        root = root or innermost
    assert root is not None and innermost is not None
    for value, real in errors.items():
        interpreter.roots.left_parts(value, real, innermost.chain())
    interpreter.depth = len(states) - 1
    return root, innermost, names


def _frame_at(
    interpreter: Interpreter,
    point: FramePoint,
    namespace: dict[str, Any],
    state: list[Value],
    parent: Frame | None,
) -> Frame:
    """The frame that is at ``point``; the exceptions that it handles are being handled."""
    count = len(point.info.slot_names)
    values = [state[i] if i in point.bound else None for i in range(count)]
    frame = interpreter.make_frame(point.code, values, namespace, parent)
    frame.index = point.index
    handled = interpreter.handled
    rest = iter(state[count:])
    for position in range(point.depth):
        if position in point.nulls:
            frame.stack.append(NULL)
            continue
        value = next(rest)
        if position in point.exc_slots:
            level = HandledValue(value.realize(), handled)
            handled = level.handled
            value = level
        elif position == point.depth - 1 and frame.instruction.op == "POP_EXCEPT":
            value = frame.stack[point.exc_slots[-1]]  # what it pops is a copy
        frame.stack.append(value)
    interpreter.handled = handled
    return frame
