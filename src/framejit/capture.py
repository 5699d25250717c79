"""One capture: from the slots of a call to a generated function, its guards and its graph.

In: a `Target` (which code, from which instruction on) and the real slots of a call. Out: a
`Capture` with the entry for the native dispatch. Captures that must start again (`Restart`) do so
here.
Next room: compiler.
"""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import torch

from framejit import native
from framejit.backends.saved_hooks import (
    UntraceableHook,
    active_hooks,
    as_modules,
    hooks_in_place,
    opened_hooks,
)
from framejit.bytecode.continuations import FramePoint
from framejit.bytecode.decode import decode
from framejit.bytecode.liveness import may_assign
from framejit.codegen.emit import Emitter, computed
from framejit.codegen.emit_generators import keeps_of_its_own
from framejit.codegen.function import Draft, Generated, Recovery
from framejit.codegen.runtime import located
from framejit.collection import imports_end, no_collection
from framejit.exc import BackendCompilerFailed, GraphBreak, InternalError
from framejit.graph.aliasing import Watch, aliases_to_watch, watch_aliases
from framejit.graph.builder import GraphBuilder
from framejit.graph.errors import failing_node, place_of
from framejit.graph.global_state import leave_transforms, unseen
from framejit.graph.gradients import Reached, exact_gradients, reached_inputs
from framejit.graph.nested import close_all_hooks, open_hooks
from framejit.graph.parts import PARTS, independent_parts
from framejit.graph.undo import undone
from framejit.guards.plan import Plan, build_plan
from framejit.guards.shapes import make_shape_plan
from framejit.interpreter import opcodes  # noqa: F401 - registers the handlers
from framejit.interpreter.dropped import Existing
from framejit.interpreter.frame import Frame, HandledValue
from framejit.interpreter.loop import Interpreter
from framejit.interpreter.outcomes import Broken, Restart, Returned
from framejit.interpreter.side_run import compute, is_pure_hook, is_pure_round_trip
from framejit.shapes.policy import Policy, Seen
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.core.base import NULL, Unmaterialisable, Value
from framejit.values.core.ends import layers_of_slots, search_what_is_seen
from framejit.values.core.space import Space
from framejit.values.object_space import ObjectSpace
from framejit.values.stdlib.cached_functions import Call, first_calls
from framejit.values.torch.hooks import Hooks, Surrounding, unsettled
from framejit.values.torch.tensors import TensorValue

_RESTART_LIMIT = 200


class Caller:
    """A frame that waits in a continuation for the result of the frame below it.

    ``point`` is at its call, the operands consumed. Without a point: the call below was that of
    a constructor, and its result is the new object, which comes as an argument of its own.
    """

    __slots__ = ("namespace", "point")

    def __init__(self, point: FramePoint | None, namespace: dict[str, Any]) -> None:
        self.point = point
        self.namespace = namespace

    @property
    def arity(self) -> int:
        """How many of the continuation's arguments are its state."""
        return 1 if self.point is None else self.point.arity

    @property
    def key(self) -> tuple[FramePoint | None, int]:
        """Equal for callers that wait at the same place."""
        return self.point, id(self.namespace)


class Target(NamedTuple):
    """What a compiled object captures: a function from its start, or a continuation."""

    code: types.CodeType
    namespace: dict[str, Any]
    point: FramePoint | None  # None: from the start
    #: Continuations: the inlined calls they are in, from the inside out.
    callers: tuple[Caller, ...] = ()
    #: What users call it, if that is not the code's name.
    label: str = ""

    def is_start_of(self, function: types.FunctionType) -> bool:
        """Is this where ``function`` starts? Its code may have been replaced."""
        return self.code is function.__code__ and self.namespace is function.__globals__

    @property
    def name(self) -> str:
        """For reports: the function, or the continuation in it."""
        if self.point is None:
            return self.label or self.code.co_qualname
        return f"{self.code.co_qualname}.__resume_at_{self.point.offset}"

    @property
    def place(self) -> str:
        """Which continuation it is: the same in every process."""
        if self.point is None:
            return ""
        points = [self.point, *[caller.point for caller in self.callers]]
        return "".join(
            "@new" if point is None else f"@{point.code.co_name}+{point.offset}" for point in points
        )

    @property
    def line(self) -> int:
        """The user's line where it starts."""
        if self.point is None:
            return self.code.co_firstlineno
        return decode(self.code).instructions[self.point.index].line

    @property
    def shown(self) -> dict[str, Any]:
        """What every event says of it: name, file and line."""
        return {"name": self.name, "filename": self.code.co_filename, "line": self.line}


class GraphCall(NamedTuple):
    """The graph of an entry and how its function calls it; all that a package needs of it."""

    compiled: Callable[..., Any]  # what the backend returned
    module: torch.fx.GraphModule
    inputs: list[Source]
    watch: Watch | None
    unseen: bool
    reached: Reached | None
    #: Positions of the inputs that are put back when the graph raises.
    saved: tuple[int, ...]


class Capture(NamedTuple):
    """The result of capturing one call."""

    outcome: Returned | Broken
    generated: Generated
    plan: Plan
    state: Any  # native.GlobalState at the start
    graph: torch.fx.GraphModule | None
    operations: int
    inputs: int
    steps: int
    backend_seconds: float
    call: GraphCall | None
    #: Every code object that was executed, with the name of its module.
    executed: dict[types.CodeType, str]
    #: Per file: the lines that were executed, if somebody wanted to know.
    lines: dict[str, set[int]]
    #: Calls of cached functions that its guards expect.
    calls: list[Call]


class _Link:
    """Makes the break functions of a break's frames; ``make`` is the compiler's."""

    tail = staticmethod(native.tail)
    step = staticmethod(native.step)

    def __init__(self, make: Callable[[Frame, bool], Any], answer: Callable[..., Any]) -> None:
        self._make = make
        self.answer = answer

    def __call__(self, frame: Frame, innermost: bool) -> Any:
        return self._make(frame, innermost)


class Driver(NamedTuple):
    """What a capture asks of the compiler that it is made for."""

    compile_graph: Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]
    make_break: Callable[[Frame, bool], Any]
    #: A constructor's call of ``__init__``: run the thunk, return the new object.
    answer: Callable[..., Any]
    check_break: Callable[[Broken], None]
    #: Makes what is called when a graph raises: with the error, and with every slot where it can
    #: run again. Its argument: may the graph or a text raise?
    deoptimise: Callable[[bool], Callable[..., Any]]
    #: May truth values that depend on data be taken for granted?
    may_expect: bool
    #: May there be graph breaks for what only a profiler sees?
    shows_labels: bool


class _Written(Exception):
    """Truth values were taken for granted in a graph that cannot run twice."""


def capture(
    target: Target,
    slots: tuple[Any, ...],
    driver: Driver,
    policy: Policy | None = None,
) -> Capture:
    """Capture one call; starts again as often as a step must not be captured."""
    policy = policy or Policy(False, Seen())
    break_at: dict[int, GraphBreak] = {}
    try:
        with imports_end():
            return _capture(target, slots, driver, break_at, policy)
    finally:
        for cause in break_at.values():  # their frames hold them
            cause.__traceback__ = cause.__cause__ = cause.__context__ = None


def _capture(
    target: Target,
    slots: tuple[Any, ...],
    driver: Driver,
    break_at: dict[int, GraphBreak],
    policy: Policy,
) -> Capture:
    may_expect = driver.may_expect
    layers = () if target.point is None else layers_of_slots(slots) or ()
    while True:
        space = ObjectSpace(GraphBuilder(), policy)
        space.may_expect, space.shows_labels = may_expect, driver.shows_labels
        try:
            return _attempt(target, slots, driver, break_at, space, layers)
        except Restart as restart:
            step, cause = restart.step, restart.cause
        except _Written:
            may_expect, step, cause = False, -1, None
        except Unmaterialisable as problem:
            step, cause = problem.step, GraphBreak("FJ0161", problem.reason)
        finally:
            roots = [*space.slot_roots, *space.const_roots.values()]
            space.close()
        for root in roots:  # what the guards would have held must not outlive the attempt
            root.forget()
        if cause is None:
            continue
        if step in break_at or step <= 0 or len(break_at) >= _RESTART_LIMIT:
            raise InternalError(f"the capture cannot go on: {cause.reason}")
        break_at[step] = cause


def _attempt(
    target: Target,
    slots: tuple[Any, ...],
    driver: Driver,
    break_at: dict[int, GraphBreak],
    space: Space,
    layers: Container[int],
) -> Capture:
    builder = space.builder
    space.home = target.namespace
    interpreter = Interpreter(space, break_at)
    space.compute = compute
    if (active := active_hooks()) is not None:
        around = Surrounding(space, active, lambda like: is_pure_round_trip(*active, like)[0])
        builder.before_saving = around.before_saving
    builder.stack_trace = interpreter.stack_trace
    builder.line = interpreter.user_line
    builder.in_try = interpreter.in_try
    state = native.GlobalState()
    try:
        with no_collection(), unseen():
            frame, innermost, slot_names = _frames(interpreter, target, slots, layers)
            outcome = interpreter.capture(frame, innermost)
            if isinstance(outcome, Broken):
                find, raised_at = interpreter.roots.kept_frame, interpreter.raise_steps
                divided = find(outcome.frames, keeps_of_its_own, raised_at, interpreter.suspended)
                if divided is not None:
                    raise Restart(*divided)
                driver.check_break(outcome)
            out = Emitter(space, slot_names)
            link = _Link(driver.make_break, driver.answer)
            draft = Draft(out, outcome, link, interpreter.roots.left_before)
            interpreter.check_suspended(out.made)
            own_roots = _check_hooks(space, outcome, out.made) if space.effects.hooks else []
            if active is not None and (problem := around.unsettled()) is not None:
                raise Restart(*problem)
            for node in draft.output_nodes():
                if (step := builder.operations[node].transform) is not None:
                    reason = "a tensor leaves the transform of torch.func that it was made in"
                    raise Restart(step, GraphBreak("FJ0123", reason))
            if space.effects.expected and builder.mutated_inputs:
                raise _Written
    finally:
        interpreter.suspended.clear()  # it may be collected late
        space.effects.restore_state()
    graph, module, seconds = None, None, 0.0
    hook_roots: list[Source] = []
    graph_call: GraphCall | None = None
    with unseen():
        kept_alive = builder.unused_effects(draft.output_nodes())
    for node in kept_alive:
        out.output(TensorValue(node, builder.example(node)))
    inputs: list[TensorValue] = []
    operations = builder.op_count
    if operations:
        module, examples = builder.finish(draft.output_nodes())
        as_it_is = isinstance(outcome, Broken) and outcome.as_it_is
        if _opens_hooks(module) or active is not None:  # they may save what is written
            as_it_is = as_it_is or builder.reads_what_it_writes()
        module.meta[PARTS] = [] if as_it_is else independent_parts(builder, module)
        inputs = [space.graph_inputs[i] for i in builder.used_inputs]
        operations = sum(n.op.startswith("call") for n in module.graph.nodes)
        if operations:
            started = time.perf_counter()
            graph, hook_roots = _compile_under_hooks(driver, module, examples)
            watch = _watch(examples, inputs, builder)
            user_code = any(map(_runs_user_code, module.graph.nodes))
            if user_code and space.effects.expected:
                raise _Written
            sources = [value.source for value in inputs if value.source is not None]
            reached = reached_inputs(builder)
            saved = builder.saved_inputs()
            graph_call = GraphCall(graph, module, sources, watch, user_code, reached, saved)
            in_parts = module.meta[PARTS] is not None
            graph = callable_graph(graph, module, watch, user_code, reached, saved, in_parts)
            seconds = time.perf_counter() - started
    used = {id(value) for value in inputs}
    for value in space.graph_inputs:
        if id(value) not in used and value not in out.made:
            _release(out, value)
    arguments = [computed(out, ("load", symbol)) for symbol in builder.used_symbols]
    arguments += [out.load(value.source) for value in inputs]  # type: ignore[arg-type]
    with no_collection():
        _guard_aliases(space)
        shapes = make_shape_plan(builder.world.symbols_if_any, list(out.symbols))
        roots = [*space.slot_roots, *space.const_roots.values(), *own_roots, *hook_roots]
        plan = build_plan(roots, shapes)
    captures = [out.capture_name(source) for source in plan.captures]
    captures += out.symbols.values()
    first = (target.line, target.line, 0, 0)
    last = _position(frame, outcome)
    expected = builder.may_raise() or bool(out.computations) or interpreter.covered
    deoptimise = driver.deoptimise(expected)
    first_effect = builder.first_effect()
    # What was only drawn can be drawn again (`Recovery.random`), small inputs are put back.
    kept = graph_call is not None and bool(graph_call.saved)
    again = kept or not builder.mutated_inputs
    if module is not None and first_effect is not None and not again:
        deoptimise = UnlessWritten(deoptimise, module, first_effect)
    restore = [(setter, selector, v) for (setter, selector), v in space.effects.state.items()]
    if space.transformed:
        restore.append((leave_transforms, (), 0))
    if module is not None and _opens_hooks(module):
        restore.append((close_all_hooks, (), module))
    recovery = Recovery(
        deoptimise,
        random=builder.draws_random and again,
        restore=restore,
    )
    generated = draft.function(target.code, graph, arguments, captures, first, last, recovery)
    return Capture(
        outcome, generated, plan, state, module if operations else None, operations,
        len(arguments), interpreter.steps, seconds, graph_call, interpreter.executed,
        interpreter.lines or {}, first_calls(space.effects),
    )  # fmt: skip


def _check_hooks(space: Space, outcome: Returned | Broken, made: Container[Any]) -> list[Source]:
    """Hooks that the graph puts in place must stay as they are; returns what they depend on."""
    variables = [variable for hooks in space.effects.hooks for variable in hooks.cells]
    left = {v.cell for v in variables if v.cell in made or v.cell.source is not None}
    for frame in outcome.frames if isinstance(outcome, Broken) else ():
        for slot, value in enumerate(frame.slots):
            name = frame.info.slot_names[slot]
            if value in left and not may_assign(frame.info, name, frame.index):
                left.remove(value)
    left.update(v.cell for v in variables if may_assign(decode(v.code), v.name))

    roots: list[Source] = []

    def only_compute(hooks: Hooks, made: list[Any]) -> bool:
        if hooks.tensor is not None:  # AOTAutograd makes it part of the graph
            pure, found = is_pure_hook(made[0], hooks.tensor.fake(space))
            roots.extend(found)
            return pure
        like = next((t for t in space.builder.inputs if t.is_floating_point()), torch.empty(2))
        modules = as_modules((made[0], made[1]))
        return modules is not None or is_pure_round_trip(made[0], made[1], like)[0]

    problem = unsettled(space, left, only_compute)
    if problem is not None:
        raise Restart(*problem)
    return roots


def _opens_hooks(module: torch.fx.GraphModule) -> bool:
    return bool(module.graph.find_nodes(op="call_function", target=open_hooks))


def _compile_under_hooks(
    driver: Driver, module: torch.fx.GraphModule, examples: list[torch.Tensor]
) -> tuple[Callable[..., Any], list[Source]]:
    """The compiled graph, and the sources of what active saved-tensor hooks depend on."""
    hooks = active_hooks()
    wanted = any(isinstance(x, torch.Tensor) and x.requires_grad for x in examples)
    training = wanted and torch.is_grad_enabled()
    pairs = opened_hooks(module, wanted)
    if pairs and not training:  # gradients are switched on in the graph
        return module.forward, []
    if not training or (hooks is None and not pairs):
        return driver.compile_graph(module, examples), []
    roots: list[Source] = []

    def judge(pack: Any, unpack: Any, like: torch.Tensor) -> bool:
        pure, found = is_pure_round_trip(pack, unpack, like)
        roots.extend(found)
        return pure

    try:
        with hooks_in_place(hooks, pairs, judge, examples):
            return driver.compile_graph(module, examples), roots
    except UntraceableHook:
        close_all_hooks(module)
        return module.forward, []
    except BackendCompilerFailed:  # of the graph, or of making hooks part of it?
        close_all_hooks(module)
        with torch.autograd.graph.saved_tensors_hooks(torch.detach, torch.detach):
            driver.compile_graph(module, examples)
        return module.forward, []


def _watch(examples: list[Any], inputs: list[TensorValue], builder: GraphBuilder) -> Watch | None:
    """Which inputs may alias each other otherwise than now, where that matters."""
    mutated = set(builder.mutated_inputs)
    written = [i for i, position in enumerate(builder.used_inputs) if position in mutated]
    members = ("_parameters", "_buffers")
    owners = [value.source.base if value.source is not None else None for value in inputs]
    fixed = [owner is not None and owner.key in members for owner in owners]
    return aliases_to_watch(examples, written, fixed, builder.varying_inputs())


def callable_graph(
    compiled: Callable[..., Any], recorded: Callable[..., Any], watch: Watch | None, unseen: bool,
    reached: Reached | None, saved: tuple[int, ...], in_parts: bool,
) -> Callable[..., Any]:  # fmt: skip
    """What the generated function calls: the compiled graph, made safe where it has to be."""
    graph = compiled if reached is None else exact_gradients(compiled, reached, in_parts)
    graph = undone(watch_aliases(graph, recorded, watch), saved)
    return _unseen(graph) if unseen else graph


#: A note on the error of a graph that could not run again as plain Python.
LATE = (
    "framejit: the graph had already written to a tensor or drawn random numbers when this was "
    "raised, so the code around it could not run again as plain Python: handlers were left out."
)


class UnlessWritten:
    """What a graph calls when it raises that writes to its inputs or draws random numbers: it is
    deoptimised only if it had not done so. Otherwise its error goes on, with the user's line."""

    def __init__(
        self, deoptimise: Callable[..., Any], module: torch.fx.GraphModule,
        first_effect: torch.fx.Node,
    ) -> None:  # fmt: skip
        self.deoptimise = deoptimise
        self.module = module
        self.first_effect = first_effect

    def __call__(self, error: Exception, *slots: Any) -> Any:
        node, trace = failing_node(self.module, error)
        if node is not None and node <= self.first_effect:
            return self.deoptimise(error, *slots)
        error.add_note(LATE)
        place = None if node is None else place_of(node)
        raise error if place is None else located(error.with_traceback(trace), place)


def _guard_aliases(space: Space) -> None:
    """What the program changed must stay another object than everything else it looked at."""
    by_kind: dict[type, list[Value]] = {}
    for obj, value in space.known_objects():
        if value.source is not None:
            by_kind.setdefault(type(obj), []).append(value)
    named: dict[type, list[DictValue]] = {}
    for changed in space.effects.changed:
        kind, obj = changed.python_type(), changed.obj
        if obj is None or changed.source is None or isinstance(changed, TensorValue):
            continue  # gradients are only ever set to None, which may be done twice
        if isinstance(changed, DictValue) and not changed.rewritten and _is_named(changed.written):
            named.setdefault(kind, []).append(changed)
            continue
        for other in by_kind.get(kind, ()):
            if other is not changed:
                space.guard(other.source, "DISTINCT", (changed.source,))
    for kind, dicts in named.items():
        _guard_named(space, dicts, by_kind.get(kind, ()))


def _guard_named(space: Space, dicts: list[DictValue], others: Iterable[Value]) -> None:
    """The same for dicts of which some keys, all texts, were written. Two dicts of which the
    program uses different keys, such as the attributes of objects, may be one."""
    users: dict[str, list[Value]] = {key: [] for changed in dicts for key in changed.written}
    whole = []
    for value in others:
        assert value.source is not None
        children = value.source.children
        keys = [key for accessor, key in children if accessor == "item" and type(key) is str]
        if (
            len(keys) < len(children)
            or not isinstance(value, DictValue)
            or value.complete
            or not _is_named(value.written)
            or any(fact.kind in _WHOLE for fact in value.source.facts)
        ):
            whole.append(value)
            continue
        for key in (*keys, *value.written):
            if key in users:
                users[key].append(value)
    for changed in dicts:
        found = list(whole)
        for key in changed.written:
            there = _is_there(changed, key)
            for value in users[key]:
                if None in (there, _is_there(value, key)) or _is_there(value, key) is there:
                    found.append(value)
        for other in dict.fromkeys(found):
            if other is not changed:
                space.guard(other.source, "DISTINCT", (changed.source,))


def _is_there(value: Value, key: str) -> bool | None:
    """Is it guarded that the dict has the key, or that it has not?"""
    assert value.source is not None
    child = value.source.children.get(("item", key))
    if child is None or child.read:
        return None if child is None else True
    return False if any(fact.kind == "ABSENT" for fact in child.facts) else None


def _is_named(keys: Iterable[Any]) -> bool:
    return all(type(key) is str for key in keys)


#: Facts about a whole dict.
_WHOLE = ("LEN_MATCH", "BOOL_MATCH", "DICT_KEYS", "EQUALS_MATCH")


def _runs_user_code(node: torch.fx.Node) -> bool:
    """Is the target Python code of the user's (allowed in the graph, or an autograd.Function)?"""
    function = node.target
    return type(function) is types.FunctionType and not (
        (function.__module__ or "").startswith("torch")
    )


def _unseen(graph: Callable[..., Any]) -> Callable[..., Any]:
    """``graph`` such that the frame hook sees nothing of what it runs."""

    def run(*tensors: Any) -> Any:
        context = native.set_context(None)
        try:
            return graph(*tensors)
        finally:
            native.set_context(context)

    return run


def _release(out: Emitter, value: TensorValue) -> None:
    """An input that the finished graph does not need and the function does not load."""
    source = value.source
    if source is not None and not out.is_loaded(source):
        source.captured = False


def _frames(
    interpreter: Interpreter, target: Target, slots: tuple[Any, ...], layers: Container[int]
) -> tuple[Frame, Frame, list[str]]:
    """The outermost and the innermost frame, and the parameter names of the generated function."""
    space = interpreter.space
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


def _position(frame: Frame, outcome: Returned | Broken) -> tuple[int, int, int, int]:
    if isinstance(outcome, Broken):
        frame = outcome.frames[0]
    line, end_line, column, end_column = frame.instruction.positions
    line = line or frame.instruction.line
    return line, end_line or line, column or 0, end_column or 0
