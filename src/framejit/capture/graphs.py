"""The second and third stage of a capture: the finished graph, and its compiled form.

In: a `Trace`. Out: a `Graph`, with what it is called with; a `CompiledGraph`, which is what the
backend returned, made safe where it has to be (`Care`). Next: planning.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from framejit import native
from framejit.backends.saved_hooks import (
    UntraceableHook,
    active_hooks,
    hooks_in_place,
    opened_hooks,
)
from framejit.capture.tracing import Trace
from framejit.exc import BackendCompilerFailed
from framejit.graph.aliasing import Watch, aliases_to_watch, watch_aliases
from framejit.graph.buckets import bucketed_parts
from framejit.graph.builder import GraphBuilder
from framejit.graph.checkpoints import operands_of_checkpoints, with_checked_operands
from framejit.graph.differentiation import UsedUp, with_spent
from framejit.graph.gradients import (
    Reached,
    differentiable_reach,
    exact_gradients,
    reached_inputs,
    unreached_inputs,
    with_detached,
)
from framejit.graph.inner_results import NO_INNER, Inner, inner_results, with_inner_results
from framejit.graph.lazy import is_as_recorded, operation_count, outer_graph, targets_in
from framejit.graph.nested import checkpointed, close_all_hooks, open_hooks
from framejit.graph.parts import PARTS, Part, independent_parts
from framejit.graph.plain_inputs import as_plain, is_of_program, with_plain
from framejit.graph.repeats import REGIONS, find_regions
from framejit.graph.result_hooks import results_with_hooks, with_quiet_hooks
from framejit.graph.running_again import is_user_code, runs_again
from framejit.graph.splits import DIVIDE, divide_around
from framejit.graph.undo import undone
from framejit.graph.uneven import UNEVEN, divided_when_uneven, runs_twice, uneven_parts
from framejit.graph.write_counts import uncounted_inputs, with_counts
from framejit.interpreter.outcomes import Again, Broken
from framejit.interpreter.side_run import is_pure_round_trip
from framejit.source import Source
from framejit.values.torch.tensors import TensorValue

#: Compiles a graph for what it is called with now.
Backend = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]


@dataclasses.dataclass(slots=True, frozen=True)
class Graph:
    """A finished graph. Without a module nothing was recorded."""

    module: torch.fx.GraphModule | None = None
    #: What it is called with now, and the tensors among them as values.
    examples: list[Any] = dataclasses.field(default_factory=list)
    inputs: list[TensorValue] = dataclasses.field(default_factory=list)
    operations: int = 0
    #: See `Care`.
    watch: Watch | None = None
    reached: Reached | None = None
    saved: tuple[int, ...] = ()
    #: Are truth values taken for granted in it? Then it must be able to run twice.
    expects: bool = False
    plain: tuple[int, ...] | None = None
    spent: UsedUp = ()
    unreached: tuple[int, ...] = ()
    hooked: tuple[int, ...] = ()
    uncounted: tuple[int, ...] = ()
    inner: Inner = NO_INNER


@dataclasses.dataclass(slots=True, frozen=True)
class Care:
    """What is done around a compiled graph so that it does what the recorded one does."""

    #: Which inputs may alias each other otherwise than now, where that matters.
    watch: Watch | None
    #: Must the frame hook see nothing of what it runs?
    unseen: bool
    #: Which inputs get a gradient from which output.
    reached: Reached | None
    #: Positions of the inputs that are put back when the graph raises.
    saved: tuple[int, ...]
    #: Does AOTAutograd get it in parts?
    in_parts: bool
    #: If there are arguments of classes of the program's: the positions of those for which the
    #: graph gets plain ones.
    plain: tuple[int, ...] | None = None
    #: Positions of the results that cannot be differentiated any more, each with the arguments that
    #: its gradient would come to.
    spent: UsedUp = ()
    #: Positions of the arguments that autograd must not come to through this graph.
    unreached: tuple[int, ...] = ()
    #: For each group of operations that has to be apart from the rest once backward comes for some
    #: results only: the positions of the results that it reaches.
    uneven: tuple[tuple[int, ...], ...] = ()
    #: Positions of the results whose hooks must not be called with None.
    hooked: tuple[int, ...] = ()
    #: Positions of the arguments that checkpoints use, where a compiler has decided about these.
    checkpointed: tuple[int, ...] = ()
    #: Does it clear autocast's cache of casts before its last operations?
    clears_casts: bool = False
    #: Positions of the arguments that it writes to, but in no way that autograd counts.
    uncounted: tuple[int, ...] = ()
    #: Which results are computed from others.
    inner: Inner = NO_INNER

    def around(
        self, compiled: Callable[..., Any], recorded: Callable[..., Any],
        module: Callable[[], torch.fx.GraphModule] | None = None,
    ) -> Callable[..., Any]:  # fmt: skip
        """What the generated function calls. ``module``: the recorded graph, where ``recorded``
        only calls it."""
        reached, graph, met = self.reached, compiled, list[bool]()
        other = not is_as_recorded(compiled, recorded)
        linked = bool(self.inner.links) and other
        if linked or (self.uneven and other):
            graph = divided_when_uneven(graph, recorded, self.uneven, _divide(recorded), met)
        if self.unreached:
            graph = with_detached(graph, self.unreached)
        if reached is not None:
            graph = exact_gradients(graph, reached, self.in_parts or bool(self.uneven) or linked)
        if linked:
            graph = with_inner_results(graph, module or (lambda: recorded), self.inner, met)
        if self.hooked and other:
            graph = with_quiet_hooks(graph, self.hooked)
        if self.checkpointed:
            graph = with_checked_operands(graph, recorded, self.checkpointed)
        if self.clears_casts and other:
            graph = _with_cleared_casts(graph)
        if self.uncounted and other:
            graph = with_counts(graph, self.uncounted)
        graph = undone(watch_aliases(graph, recorded, self.watch), self.saved)
        graph = with_spent(graph, self.spent) if self.spent else graph
        graph = graph if self.plain is None else with_plain(graph, self.plain)
        return _unseen(graph) if self.unseen else graph


@dataclasses.dataclass(slots=True, frozen=True)
class GraphCall:
    """The graph of an entry and how its function calls it; all that a package needs of it."""

    compiled: Callable[..., Any]  # what the backend returned
    module: torch.fx.GraphModule
    inputs: list[Source]
    care: Care


@dataclasses.dataclass(slots=True, frozen=True)
class CompiledGraph:
    """What the generated function calls, if it calls a graph."""

    run: Callable[..., Any] | None = None
    call: GraphCall | None = None
    #: What active saved-tensor hooks depend on.
    hook_roots: list[Source] = dataclasses.field(default_factory=list)
    seconds: float = 0.0


def finish_graph(trace: Trace) -> Graph:
    """The recorded operations, with all that must not be lost, as a module."""
    builder, draft = trace.space.builder, trace.draft
    kept_alive = builder.unused_effects(draft.output_nodes())
    for node in kept_alive:
        draft.out.output(TensorValue(node, builder.example(node)))
    if not builder.op_count:
        return Graph()
    builder.set_aside_idle_settings(trace.space.effects.state)
    if trace.around is not None or not builder.only_computes:
        builder.flatten()
    originals = draft.output_nodes()
    spent = [i for i, node in enumerate(originals) if node in trace.spent]
    module, examples = builder.finish(_outputs(trace, originals, spent))
    classes = [i for i, one in enumerate(examples) if is_of_program(one)]
    plain = tuple([i for i in classes if not is_traceable_wrapper_subclass(examples[i])])
    for i in plain:
        examples[i] = as_plain(examples[i])
    as_it_is = isinstance(trace.outcome, Broken) and trace.outcome.as_it_is
    as_it_is = as_it_is or _hands_out_bare_views(trace, originals)
    if opens_hooks(module) or trace.around is not None:  # they may save what is written
        as_it_is = as_it_is or builder.reads_what_it_writes()
    inner = NO_INNER if as_it_is else _note_parts(builder, module)
    if as_it_is:
        module.meta[PARTS] = []
    module.meta[DIVIDE] = functools.partial(divide_around, builder, module)
    recordings = trace.space.task.recordings
    if recordings is not None and module.meta[PARTS] is None and not opens_hooks(module):
        if repeats := recordings.repeats():
            module.meta[REGIONS] = functools.partial(find_regions, builder, module, repeats)
    inputs = [trace.space.graph_inputs[i] for i in builder.used_inputs]
    operations = operation_count(module)
    if not operations:
        return Graph(module, examples, inputs)
    return Graph(
        module, examples, inputs, operations, watch=_watch(examples, inputs, builder),
        reached=reached_inputs(builder), saved=builder.saved_inputs(),
        unreached=() if opens_hooks(module) else unreached_inputs(builder),
        plain=plain if classes else None,
        hooked=results_with_hooks(builder) if torch.is_grad_enabled() else (),
        uncounted=uncounted_inputs(builder),
        inner=inner,
        expects=bool(trace.space.effects.expected),
        spent=tuple(zip(spent, _reached(builder, [originals[i] for i in spent]), strict=True)),
    )  # fmt: skip


def _note_parts(builder: GraphBuilder, module: torch.fx.GraphModule) -> Inner:
    """Note on the graph in which parts AOTAutograd gets it. Returns which results of one that it
    gets whole are computed from others: parts know that of theirs."""
    parts, inner = independent_parts(builder, module), NO_INNER
    if parts is None and not builder.only_computes:
        nodes = [one.node for one in builder.recorded]
        inner = inner_results(builder, builder.outputs, nodes, runs_again(module))
    if parts is None or parts:
        parts = _even_parts(builder, module, parts, inner)
    module.meta[PARTS] = parts = bucketed_parts(builder, module) if parts is None else parts
    return inner if parts is None else NO_INNER


def _even_parts(
    builder: GraphBuilder, module: torch.fx.GraphModule, parts: list[Part] | None, inner: Inner
) -> list[Part] | None:
    """The parts of a graph whose backward may come for some results only, or may be asked for
    gradients between results; it is left whole until one is, where the gradients can then be
    computed in another way."""
    uneven = uneven_parts(builder, module)
    if uneven is not None and (parts is not None or not runs_twice(builder, module)):
        return uneven.parts
    if parts is None and inner.links:
        uneven = uneven_parts(builder, module, inner) or uneven
    if uneven is not None:
        module.meta[UNEVEN] = uneven
    return parts


def _hands_out_bare_views(trace: Trace, results: list[Any]) -> bool:
    """Is a view, made in inference mode, of what requires a gradient among them? It requires one
    without having a history, which no backend knows that makes views anew."""
    made, operation = trace.space.effects.made_leaves, trace.space.builder.operation
    return any(
        node.op != "placeholder" and node not in made and example.meta.requires_grad
        and example.meta.is_leaf
        for node in results for example in operation(node).examples
    )  # fmt: skip


def _reached(builder: GraphBuilder, nodes: list[Any]) -> list[tuple[int, ...]]:
    """The arguments of the finished graph that a gradient of each of these nodes would come to."""
    if not nodes:
        return []
    inputs = enumerate(builder.placeholders)
    starts = {one.node: {i} for i, one in inputs if one.differentiable}
    reach = differentiable_reach(builder, starts, [one.node for one in builder.recorded])
    return [tuple(builder.arguments_among(reach.get(node, set()))) for node in nodes]


def _outputs(trace: Trace, originals: list[Any], spent: list[int]) -> list[Any]:
    """What the graph returns: what is used up, and the leaves of its own, are detached."""
    nodes, builder = list(originals), trace.space.builder
    recorded = builder.recorded if spent else ()
    place = {one.node: number for number, one in enumerate(recorded)}
    for i in spent:  # as early as can be: what comes later may be another part
        after = max(builder.differentiated[-1], nodes[i], key=place.__getitem__)
        nodes[i], _ = builder.call_method("detach", (nodes[i],), {})
        after.append(nodes[i])
    for i, node in enumerate(originals):
        if node in trace.space.effects.made_leaves:
            nodes[i], _ = builder.call_method("detach", (node,), {})
    if builder.differentiated:
        for node in builder.graph.find_nodes(op="call_function", target=checkpointed):
            node.kwargs = {**node.kwargs, "differentiated": True}
    return nodes


def compile_graph(graph: Graph, backend: Backend) -> CompiledGraph | Again:
    """The graph as the backend compiles it, and all that surrounds it in calls."""
    module = graph.module
    if module is None or not graph.operations:
        return CompiledGraph()
    started = time.perf_counter()
    compiled, roots = _compile_under_hooks(backend, module, graph.examples)
    user_code = any(map(is_user_code, targets_in(module)))
    if user_code and graph.expects:
        return Again()
    in_parts = module.meta.get(PARTS) is not None
    # What runs operation by operation, or looks at its arguments, gets them as they are.
    as_they_are = user_code or is_as_recorded(compiled, module) or bool(roots) or active_hooks()
    unreached = () if as_they_are else graph.unreached
    operands = () if is_as_recorded(compiled, module) else operands_of_checkpoints(module)
    uneven = None if in_parts else module.meta.get(UNEVEN)
    care = Care(
        graph.watch, user_code, graph.reached, graph.saved, in_parts, graph.plain, graph.spent,
        unreached, uneven=tuple(map(tuple, uneven.groups)) if uneven else (), hooked=graph.hooked,
        checkpointed=operands, inner=graph.inner,
        clears_casts=torch.clear_autocast_cache in targets_in(module), uncounted=graph.uncounted,
    )  # fmt: skip
    sources = [value.source for value in graph.inputs if value.source is not None]
    call = GraphCall(compiled, module, sources, care)
    run = care.around(compiled, module)
    return CompiledGraph(run, call, roots, time.perf_counter() - started)


def _with_cleared_casts(graph: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled graph has the casts in it that it needs; those of the program's around it end."""

    def run(*arguments: Any) -> Any:
        torch.clear_autocast_cache()
        return graph(*arguments)

    return run


def opens_hooks(module: torch.fx.GraphModule) -> bool:
    return bool(outer_graph(module).find_nodes(op="call_function", target=open_hooks))


def _compile_under_hooks(
    backend: Backend, module: torch.fx.GraphModule, examples: list[Any]
) -> tuple[Callable[..., Any], list[Source]]:
    """The compiled graph, and the sources of what active saved-tensor hooks depend on."""
    hooks = active_hooks()
    wanted = any(isinstance(x, torch.Tensor) and x.requires_grad for x in examples)
    training = wanted and torch.is_grad_enabled()
    pairs = opened_hooks(module, wanted)
    if pairs and not training:  # gradients are switched on in the graph
        return module.forward, []
    if not training or (hooks is None and not pairs):
        return backend(module, examples), []
    roots: list[Source] = []

    def judge(pack: Any, unpack: Any, like: torch.Tensor) -> bool:
        pure, found = is_pure_round_trip(pack, unpack, like)
        roots.extend(found)
        return pure

    try:
        with hooks_in_place(hooks, pairs, judge, examples):
            return backend(module, examples), roots
    except UntraceableHook:
        close_all_hooks(module)
        return module.forward, []
    except BackendCompilerFailed:  # of the graph, or of making hooks part of it?
        close_all_hooks(module)
        with torch.autograd.graph.saved_tensors_hooks(torch.detach, torch.detach):
            backend(module, examples)
        return module.forward, []


def _watch(examples: list[Any], inputs: list[TensorValue], builder: GraphBuilder) -> Watch | None:
    """Which inputs may alias each other otherwise than now, where that matters."""
    mutated = set(builder.mutated_inputs)
    written = [i for i, position in enumerate(builder.used_inputs) if position in mutated]
    fixed = [is_member(value) for value in inputs]
    return aliases_to_watch(examples, written, fixed, builder.varying_inputs())


def is_member(tensor: TensorValue) -> bool:
    """Is it a parameter or buffer of a module?"""
    owner = tensor.source.base if tensor.source is not None else None
    return owner is not None and owner.key in ("_parameters", "_buffers")


def _divide(recorded: Callable[..., Any]) -> Callable[[list[Any]], Callable[..., Any]] | None:
    """Compiles a recorded graph in parts, for arguments; None: its compiler is not here."""
    uneven = recorded.meta.get(UNEVEN) if isinstance(recorded, torch.fx.GraphModule) else None
    if uneven is None or uneven.compiler is None:
        return None
    return _unseen(lambda arguments: uneven.compiler(uneven.divided(recorded), arguments))


def _unseen(graph: Callable[..., Any]) -> Callable[..., Any]:
    """``graph`` such that the frame hook sees nothing of what it runs."""

    def run(*tensors: Any) -> Any:
        context = native.set_context(None)
        try:
            return graph(*tensors)
        finally:
            native.set_context(context)

    return run
