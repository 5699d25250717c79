"""The last stage of a capture: the generated function, and what it does when the graph raises.

In: a `Trace`, its compiled graph and its plan. Out: a `Generated` function. Next: the package
itself, where the stages follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from framejit.capture.graphs import CompiledGraph, opens_hooks
from framejit.capture.planning import EntryPlan
from framejit.capture.tracing import Trace
from framejit.codegen.function import GRAPH, Generated, Position, Recovery
from framejit.codegen.runtime import Unexpected, located
from framejit.graph.errors import Late, WrongResult, failing_node, place_of
from framejit.graph.global_state import leave_transforms, refused_hooks
from framejit.graph.lazy import is_as_recorded, outer_graph
from framejit.graph.nested import close_all_hooks
from framejit.graph.undo import Copies, can_be_undone
from framejit.interpreter.frame import Frame
from framejit.interpreter.outcomes import Broken, Returned

#: Makes what is called when the graph raises (`Driver.deoptimise`).
Deoptimise = Callable[[bool], Callable[..., Any]]


def generate(
    trace: Trace, compiled: CompiledGraph, entry: EntryPlan, deoptimise: Deoptimise
) -> Generated:
    """The function that does what the call did."""
    line, run, first = trace.target.line, compiled.run, None
    if run is not None and compiled.call is not None:
        namespace = trace.draft.out.namespace
        run = first = FirstResult(run, compiled.call.module, namespace, _to_be_undone(trace))
    places = (line, line, 0, 0), _position(trace.frame, trace.outcome)
    recovery = _recovery(trace, compiled, deoptimise, first)
    return trace.draft.function(
        trace.target.code, run, entry.arguments, entry.captures, places, recovery
    )


def _to_be_undone(trace: Trace) -> list[int]:
    """The positions of the arguments of the graph that it writes to, if that is all it does."""
    builder = trace.space.builder
    if builder.draws_random or not builder.differentiated:
        return []
    return builder.arguments_among(set(builder.mutated_inputs))


def _recovery(
    trace: Trace, compiled: CompiledGraph, make: Deoptimise, first: FirstResult | None
) -> Recovery:
    """What to do when the graph raises."""
    builder, effects, call = trace.space.builder, trace.space.effects, compiled.call
    computes, covered = bool(trace.draft.out.computations), trace.interpreter.covered
    raises = builder.may_raise() or computes
    deoptimise = make(raises or covered)
    raises = raises or bool(effects.expected or effects.expected_in_caches)
    restore = [(setter, selector, v) for (setter, selector), v in effects.state.items()]
    if trace.space.transformed:
        restore.append((leave_transforms, (0,), refused_hooks()))
    if call is None:
        return Recovery(deoptimise, True, random=False, restore=restore)
    # What was only drawn can be drawn again (`Recovery.random`), small inputs are put back.
    again = bool(call.care.saved) or not (builder.mutated_inputs or builder.exchanges)
    first_effect = builder.first_effect()
    settled = None
    if first_effect is not None and not again:
        deoptimise = UnlessWritten(deoptimise, call.module, first_effect, first)
        if first is not None and not is_as_recorded(call.compiled, call.module):
            settled = first.is_settled
    if opens_hooks(call.module):
        restore.append((close_all_hooks, (), call.module))
    random = builder.draws_random and again
    return Recovery(deoptimise, raises, random, restore, settled)


def _position(frame: Frame, outcome: Returned | Broken) -> Position:
    if isinstance(outcome, Broken):
        frame = outcome.frames[0]
    line, end_line, column, end_column = frame.instruction.positions
    line = line or frame.instruction.line
    return line, end_line or line, column or 0, end_column or 0


class FirstResult:
    """Calls a compiled graph and looks at what it returns; once that was right, the generated
    function calls the graph itself. Raises WrongResult."""

    def __init__(
        self, run: Callable[..., Any], module: torch.fx.GraphModule, namespace: dict[str, Any],
        written: Sequence[int],
    ) -> None:  # fmt: skip
        self.run = run
        #: Positions of the inputs that the graph writes to, and whether it has raised and they are
        #: as they were before.
        self.written = written
        self.undone = False
        self.settled = False
        self.count = len(outer_graph(module).output_node().args[0])  # type: ignore[arg-type]
        self.namespace = namespace

    def is_settled(self) -> bool:
        """Has it been right once? From then on a compiled graph that raises cannot run again."""
        return self.settled

    def __call__(self, *inputs: Any) -> Any:
        written = [inputs[position] for position in self.written]
        copies = Copies(written) if written and can_be_undone(written) else None
        try:
            results = self.run(*inputs)
        except Exception:
            if copies is not None:
                copies.put_back()
                self.undone = True
            raise
        given = type(results).__name__
        if isinstance(results, (tuple, list)):
            given = f"{given} of {len(results)}" if len(results) != self.count else ""
        if given and self.count:
            wanted = f"a tuple or list of {self.count}, the outputs of the graph"
            raise WrongResult(f"what it compiled returned a {given}, not {wanted}")
        self.settled = True
        if self.namespace.get(GRAPH) is self:  # what was compiled meanwhile may be there
            self.namespace[GRAPH] = self.run
        return results


#: A note on the error of a graph that could not run again as plain Python.
LATE = (
    "framejit: the graph had already written to a tensor, drawn random numbers or exchanged data "
    "with other processes when this was raised, so the code around it could not run again as plain "
    "Python: handlers were left out."
)


class UnlessWritten:
    """What a graph calls when it raises that writes to inputs, draws random numbers or exchanges
    data with other processes: it is deoptimised only if it had not done so. Otherwise its error
    goes on, with the user's line, and blocks that the program had entered before clean up."""

    def __init__(
        self, deoptimise: Callable[..., Any], module: torch.fx.GraphModule,
        first_effect: torch.fx.Node, first: FirstResult | None,
    ) -> None:  # fmt: skip
        self.deoptimise = deoptimise
        self.first = first
        self.module = module
        self.first_effect = first_effect

    def __call__(self, error: Exception, *slots: Any) -> Any:
        if isinstance(error, Unexpected):  # before the graph
            return self.deoptimise(error, *slots)
        if self.first is not None and self.first.undone:
            self.first.undone = False
            return self.deoptimise(error, *slots)
        node, trace = failing_node(self.module, error)
        if node is not None and node <= self.first_effect:
            return self.deoptimise(error, *slots)
        at = place_of(self.first_effect)
        begun = "" if at is None else f" The first of these is at {at[0]}:{at[2][0]}, in {at[1]}."
        error.add_note(LATE + begun)
        place = None if node is None else place_of(node)
        if place is not None:
            located(error.with_traceback(trace), place)
        return self.deoptimise(Late(error), *slots)


def when_written(deoptimise: Callable[..., Any]) -> Callable[..., Any]:
    """What a graph that writes calls when nothing tells how far it has come."""

    def either(error: Exception, *slots: Any) -> Any:
        return deoptimise(error if isinstance(error, Unexpected) else Late(error), *slots)

    return either
