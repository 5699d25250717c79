"""One capture: from the slots of a call to a generated function, its guards and its graph, in
stages: trace, finish the graph, compile it, plan the guards, generate (`_attempt`).

In: a `Target` (which code, from which instruction on) and the real slots of a call. Out: a
`Capture` with the entry for the native dispatch. A capture that must start again (`Again`) does so
here.
Next room: compiler.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

from framejit import config
from framejit.capture import verifying
from framejit.capture.generating import generate
from framejit.capture.graphs import GraphCall, compile_graph, finish_graph
from framejit.capture.planning import plan_guards
from framejit.capture.target import Target
from framejit.capture.tracing import Call, Driver, trace
from framejit.codegen.function import Generated
from framejit.collection import imports_end, no_collection
from framejit.exc import BackendCompilerFailed, GraphBreak, InternalError
from framejit.graph import instalments
from framejit.graph.builder import GraphBuilder
from framejit.graph.errors import first_line
from framejit.graph.global_state import unseen
from framejit.guards.plan import Plan
from framejit.interpreter.call_recordings import Recordings
from framejit.interpreter.outcomes import Again, Broken, Returned
from framejit.interpreter.side_run import compute, is_pure_hook
from framejit.shapes.policy import Policy, Seen
from framejit.values.core.effects import Change
from framejit.values.core.ends import layers_of_slots
from framejit.values.core.space import Space, Task
from framejit.values.object_space import ObjectSpace
from framejit.values.stdlib import cached_functions

_RESTART_LIMIT = 200


@dataclasses.dataclass(slots=True, frozen=True)
class Capture:
    """The result of capturing one call."""

    outcome: Returned | Broken
    generated: Generated
    plan: Plan
    state: Any  # native.GlobalState at the start
    operations: int
    steps: int
    #: Of which class or function how many calls were repeated instead of executed.
    repeated: tuple[tuple[str, int], ...]
    backend_seconds: float
    call: GraphCall | None
    #: Every code object that was executed, with the name of its module.
    executed: dict[types.CodeType, str]
    #: Per file: the lines that were executed, if somebody wanted to know.
    lines: dict[str, set[int]]
    #: Calls of cached functions that its guards expect.
    calls: cached_functions.FirstCalls
    #: What was recorded, if captures are compared.
    described: list[str]
    #: What else the program does than to compute.
    changes: tuple[Change, ...] = ()


def capture(
    target: Target,
    slots: tuple[Any, ...],
    driver: Driver,
    policy: Policy | None = None,
) -> Capture:
    """Capture one call; starts again as often as a step must not be captured."""
    break_at: dict[int, GraphBreak] = {}
    try:
        with imports_end():
            layers = () if target.point is None else layers_of_slots(slots) or ()
            call = Call(target, slots, layers)
            return _capture(call, driver, break_at, policy or Policy(False, Seen()))
    finally:
        for cause in break_at.values():  # their frames hold them
            cause.__traceback__ = cause.__cause__ = cause.__context__ = None


def _capture(
    call: Call, driver: Driver, break_at: dict[int, GraphBreak], policy: Policy
) -> Capture:
    may_expect, made = driver.may_expect, None
    # A repeated call relies on how the tensors of the first one look when it is repeated.
    repeats = config.recordings and instalments.going_on() is None
    seen = policy.seen
    while True:
        recordings, before = Recordings() if repeats else None, made
        if repeats and config.verify_recordings:
            seen = policy.seen.copy()
        task = Task(
            call.target.namespace,
            may_expect,
            driver.whole,
            recordings,
            may_wait=driver.may_wait,
            compute=compute,
            is_pure_hook=is_pure_hook,
            stand_in=driver.stand_in,
        )
        space = ObjectSpace(GraphBuilder(), policy, task)
        try:
            made = _attempt(call, driver, break_at, space)
        finally:
            roots = [*space.slot_roots, *space.const_roots.values()]
            space.close()
            if recordings is not None:
                recordings.close()
        if isinstance(made, Capture):
            if isinstance(before, Capture):
                verifying.compare(before, made)
                return before
            if not (config.verify_recordings and recordings is not None and recordings.used):
                return made
            repeats, driver = False, dataclasses.replace(driver, compile_graph=_as_it_is)
            policy = Policy(policy.dynamic, seen)
            continue
        for root in roots:  # what the guards would have held must not outlive the attempt
            root.forget()
        if recordings is not None and recordings.used:  # steps are numbered otherwise without them
            repeats = False
            break_at.clear()
            continue
        step, cause = made
        if cause is None:
            may_expect = False
            continue
        if step in break_at or step <= 0 or len(break_at) >= _RESTART_LIMIT:
            raise InternalError(f"the capture cannot go on: {cause.reason}")
        break_at[step] = cause


def _pause(as_met: Callable[[], bool]) -> None:
    """Let the program go on. Raises Abandoned if tensors do not look as they did when they were
    met: what follows, up to the next pause, looks at them again."""
    instalments.pause()
    if instalments.paused() and not as_met():
        raise instalments.Abandoned


def _as_it_is(module: Any, examples: list[Any]) -> Any:
    """In place of a backend, for a capture that is only compared."""
    return module.forward


def _attempt(
    call: Call, driver: Driver, break_at: dict[int, GraphBreak], space: Space
) -> Capture | Again:
    """The stages of a capture."""
    traced = trace(call, driver, break_at, space)
    if isinstance(traced, Again):
        return traced
    as_met = space.builder.world.as_met()
    _pause(as_met)  # the graph's inputs are looked at again
    described = verifying.described_nodes(space.builder) if config.verify_recordings else []
    with no_collection(), unseen():
        graph = finish_graph(traced)
    try:
        compiled = compile_graph(graph, driver.compile_graph)
    except BackendCompilerFailed as error:
        steps = traced.space.effects.differentiations
        if not steps:
            raise
        reason = f"the backend refuses: {first_line(error.__cause__ or error)}"
        compiled = Again(steps[-1], GraphBreak("FJ0117", reason))
    if isinstance(compiled, Again):
        return compiled
    _pause(as_met)  # so are tensors by the guards, with which the entry is added
    with unseen():
        entry = plan_guards(traced, graph, compiled.hook_roots)
    interpreter, recordings = traced.interpreter, space.task.recordings
    repeated = recordings.repeated() if recordings is not None else ()
    return Capture(
        outcome=traced.outcome,
        generated=generate(traced, compiled, entry, driver.deoptimise),
        plan=entry.plan,
        state=traced.state,
        operations=graph.operations,
        steps=interpreter.steps,
        repeated=repeated,
        backend_seconds=compiled.seconds,
        call=compiled.call,
        executed=interpreter.executed,
        lines=interpreter.lines or {},
        calls=cached_functions.first_calls(space.effects),
        described=described,
        changes=space.effects.described(),
    )
