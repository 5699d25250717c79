"""Results of a graph that other results are computed from, as autograd has them.

In: a compiled graph, which AOTAutograd makes one node of autograd's graph, and the recorded one.
Out: a callable whose results have nodes of their own that lead from result to result as in eager
mode. They pass gradients on. Once a program puts a hook on a result that others are computed from,
keeps its gradient or asks for it, autograd computes it through the recorded graph, and from then on
the graph is compiled in parts. Used by capture. Next: backends.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import GradientEdge

from ..report import messages
from .builder import GraphBuilder
from .errors import begins_at
from .gradients import changed_by, compiled_node, differentiable_reach, owners
from .lazy import LazyGraphModule
from .result_hooks import give_quiet_hooks
from .running_again import autocast_now, under_autocast
from .second_order import alias

_Graph = Callable[..., Any]
_Node = torch.fx.Node


class Inner(NamedTuple):
    """Which results are computed from others."""

    #: Positions of results, each after those that it is computed from, and of these the nearest.
    links: tuple[tuple[int, tuple[int, ...]], ...] = ()
    #: Does the recorded graph compute the same when backward comes?
    again: bool = False

    @property
    def above(self) -> tuple[int, ...]:
        """The positions of results that others are computed from."""
        return tuple(sorted({one for _, found in self.links for one in found}))

    def as_lists(self) -> list[Any]:
        """For a file."""
        return [[[place, list(near)] for place, near in self.links], self.again]

    @staticmethod
    def of_lists(saved: Sequence[Any]) -> Inner:
        """The same again."""
        links, again = saved or ((), False)
        return Inner(tuple([(place, tuple(near)) for place, near in links]), again)


#: None is.
NO_INNER = Inner()


def inner_results(
    builder: GraphBuilder, outputs: Sequence[_Node], nodes: Iterable[_Node], again: bool
) -> Inner:
    """Those of a finished graph, or of these nodes of it. ``again``: may they run once more?"""
    places = {
        node: place for place, node in enumerate(outputs)
        if node.op != "placeholder" and builder.operation(node).differentiable
    }  # fmt: skip
    if len(places) < 2 or not torch.is_grad_enabled():
        return NO_INNER
    starts: dict[_Node, set[int]] = {node: {place} for node, place in places.items()}
    own = [one for one in nodes if one in builder.operations]
    reach = differentiable_reach(builder, starts, own)
    owner = owners(builder)
    links, written = [], False
    for node in own:
        operation = builder.operations[node]
        written = written or any(one in places for one in changed_by(operation, owner))
        if node in places:
            found = set[int]().union(*[reach.get(used, ()) for used in node.all_input_nodes])
            if found:
                links.append((places[node], tuple(sorted(found))))
    return Inner(tuple(links), again and not written)


def levels_of_results(builder: GraphBuilder, inner: Inner) -> dict[_Node, int]:
    """For each operation, how many results stand between it and the inputs, one after the other."""
    above = {builder.outputs[place] for place in inner.above}
    levels: dict[_Node, int] = {}
    for operation in builder.recorded:
        found = [levels.get(u, 0) + (u in above) for u in operation.node.all_input_nodes]
        levels[operation.node] = max(found, default=0)
    return levels


def with_inner_results(
    graph: _Graph, recorded: Callable[[], Any], inner: Inner, met: list[bool] | None
) -> _Graph:
    """``graph``, with nodes between its results. ``met`` is told once these had to compute
    gradients: from then on the graph is divided. None: it stays as it is."""
    again = _Again(recorded, inner)
    of_node: list[_Layout] = []

    def run(*arguments: Any) -> Any:
        divided = bool(met)
        results = graph(*arguments)
        if divided:
            return results
        if not of_node:
            found = _layout(inner, arguments, results)
            if found is None:  # it has no gradients
                return results
            of_node.append(found)
        layout = of_node[0]
        above = [(place, results[place]) for place in layout.above]
        if not layout.links or above[0][1].grad_fn is None:
            return results
        call = _Call(again, layout, arguments, above[0][1].grad_fn, met)
        for place, near in layout.links:
            result = results[place]
            version = result._version
            _between(call, place, near, result, *[results[one] for one in near])
            _set_version((result,), (version,))
        for place, result in above:
            call.watch(place, result)
        return results

    return run


class _Layout(NamedTuple):
    """How the results of a compiled graph are those of its node."""

    #: Positions of those that others are computed from, and `Inner.links`, as far as the node has
    #: them: others are views of what it has.
    above: tuple[int, ...]
    links: tuple[tuple[int, tuple[int, ...]], ...]
    #: The position of a result for each that the node has.
    places: dict[int, int]
    #: Positions of the tensors among the arguments that count writes to them.
    counted: tuple[int, ...]
    #: Are its operands the tensors among the arguments?
    whole: bool


def _layout(inner: Inner, arguments: Sequence[Any], results: Sequence[Any]) -> _Layout | None:
    nodes = [compiled_node(results[place])[0] for place in inner.above]
    node = next((one for one in nodes if one is not None), None)
    if node is None:
        return None
    places = {
        one.output_nr: place for place, one in enumerate(results)
        if isinstance(one, torch.Tensor) and one.grad_fn is node
    }  # fmt: skip
    own = set(places.values())
    links = [
        (place, tuple(one for one in near if one in own))
        for place, near in inner.links if place in own
    ]  # fmt: skip
    tensors = [i for i, one in enumerate(arguments) if isinstance(one, torch.Tensor)]
    return _Layout(
        tuple(place for place in inner.above if place in own),
        tuple((place, near) for place, near in links if near), places,
        tuple(i for i in tensors if not arguments[i].is_inference()),
        len(tensors) == len(node.next_functions),
    )  # fmt: skip


class BetweenResults(torch.autograd.Function):
    """The node of a result that is computed from others."""

    @staticmethod
    def forward(
        ctx: Any, call: _Call, place: int, near: list[int], result: Any, *others: Any
    ) -> Any:
        ctx.call, ctx.place, ctx.near = call, place, near
        ctx.mark_dirty(result)
        ctx.set_materialize_grads(False)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
        passed = [None] * len(ctx.near)
        if gradient is not None and ctx.call.is_wanted(ctx):
            passed = ctx.call.passed_on(ctx.place, ctx.near, gradient)
        return (None, None, None, gradient, *passed)


#: Without asking for transforms of `torch.func`: what is compiled has a node outside of them only.
_between: Any = super(torch.autograd.Function, BetweenResults).apply
_set_version: Any = torch._C._autograd._unsafe_set_version_counter  # type: ignore[attr-defined]


class _Run(NamedTuple):
    """The graph once more, for one run of autograd."""

    task: int
    #: The tensors among the arguments as autograd differentiates with respect to them.
    inputs: list[torch.Tensor]
    results: Sequence[Any]
    #: By position: what is computed from a result is computed from this.
    cuts: dict[int, torch.Tensor]


class _Call:
    """One call of the compiled graph, as its backward needs it."""

    def __init__(
        self, again: _Again, layout: _Layout, arguments: Sequence[Any], node: Any,
        met: list[bool] | None,
    ) -> None:  # fmt: skip
        self.again = again
        self.layout = layout
        self.arguments = arguments
        self.versions = [arguments[i]._version for i in layout.counted]
        self.met = met
        self.autocast = autocast_now()
        self.results: dict[int, weakref.ref[torch.Tensor]] = {}
        self.hooks: list[dict[Any, Any]] = []
        self.task = -1
        self.run: _Run | None = None
        node.register_hook(self)

    def watch(self, position: int, result: torch.Tensor) -> None:
        """Others are computed from this result."""
        give_quiet_hooks(result)
        self.results[position] = weakref.ref(result)
        self.hooks.append(result._backward_hooks)  # type: ignore[arg-type]

    def is_wanted(self, node: Any) -> bool:
        """Does the program learn of a gradient between the results, in this run of autograd?"""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task, self.run = task, None
            looked_at = self._is_looked_at(node)
            if looked_at and self.met == []:
                self.met.append(True)
            # Derivatives of gradients come to the results as well.
            if looked_at or torch.is_grad_enabled():
                self.run = self._again(looked_at)
        return self.run is not None

    def _is_looked_at(self, node: Any) -> bool:
        for hooks in self.hooks:
            if hooks:
                return True
        alive = []
        for reference in self.results.values():
            result = reference()
            if result is not None:
                if result.retains_grad:
                    return True
                alive.append((result.grad_fn, result.output_nr))
        if torch._C._will_engine_execute_node(_nobodys()):  # type: ignore[attr-defined]
            return False  # it adds to the gradients of all leaves
        return not {*alive, *node.next_functions[1:]}.isdisjoint(_asked_for())

    def _again(self, looked_at: bool) -> _Run | None:
        counted = self.layout.counted if self.arguments else ()
        unchanged = [self.arguments[i]._version for i in counted] == self.versions
        if not (self.again.possible and self.layout.whole and unchanged):
            if looked_at:
                messages.warn_inner_gradient(self.again.begins_at)
            return None
        torch.autograd.Variable._execution_engine.queue_callback(self._forget)  # type: ignore[attr-defined]
        alive = {place: found() for place, found in self.results.items()}
        return self.again.run(self.task, self.arguments, alive, self.autocast)

    def _forget(self) -> None:
        self.run, self.task = None, -1

    def passed_on(self, place: int, near: list[int], gradient: Any) -> Sequence[Any]:
        """What the gradient of one result adds to those that it is computed from."""
        assert self.run is not None
        cuts = [self.run.cuts[one] for one in near]
        return _differentiated([self.run.results[place]], cuts, [gradient])

    def __call__(self, gradients: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
        """After the compiled backward, which has gone from each result all the way down."""
        run, found = self.run, None
        places = self.layout.places
        if run is not None and run.task == torch._C._current_graph_task_id():
            wanted = {number: one for number, one in enumerate(given) if one is not None}
            leaves = [one for one in run.inputs if one.requires_grad]
            if places.keys() >= wanted.keys() and len(gradients) == len(run.inputs):
                outputs = [run.results[places[number]] for number in wanted]
                new = _differentiated(outputs, leaves, list(wanted.values()))
                by_input = dict(zip(map(id, leaves), new, strict=True))
                found = tuple([by_input.get(id(one)) for one in run.inputs])
            else:
                messages.warn_inner_gradient(self.again.begins_at)
        if not torch._C._autograd._get_current_graph_task_keep_graph():  # type: ignore[attr-defined]
            self.arguments = ()
        return found


class _Again:
    """The recorded graph such that each part between results can be differentiated for itself."""

    def __init__(self, recorded: Callable[[], Any], inner: Inner) -> None:
        self.recorded = recorded
        self.above = inner.above
        self.possible = inner.again
        self.cut: LazyGraphModule | None = None

    @property
    def begins_at(self) -> str:
        return begins_at(self.recorded())

    def run(
        self, task: int, arguments: Sequence[Any], alive: dict[int, Any],
        autocast: Sequence[tuple[str, torch.dtype]],
    ) -> _Run:  # fmt: skip
        """Where derivatives of the gradients are wanted, all goes on from the real tensors: their
        histories are those of the values."""
        if self.cut is None:
            self.cut = self._cut()
        second = torch.is_grad_enabled()
        copies = {id(one): alias(one) if second else _leaf(one) for one in _tensors(arguments)}
        given: list[Any] = [None] * len(self.above)
        with torch.enable_grad(), under_autocast(autocast):
            if second:
                other = self.recorded()(*arguments)
                given = [_first(alive.get(place), other[place]) for place in self.above]
            found = self.cut(*[copies.get(id(one), one) for one in arguments], *given)
        count = len(found) - len(self.above)
        cuts = dict(zip(self.above, found[count:], strict=True))
        return _Run(task, [copies[id(one)] for one in _tensors(arguments)], found[:count], cuts)

    def _cut(self) -> LazyGraphModule:
        """The graph with more inputs, see `_as_cut`, and more results."""
        graph, recorded = torch.fx.Graph(), self.recorded()
        outputs: Any = graph.graph_copy(recorded.graph, {})
        last = [node for node in graph.nodes if node.op == "placeholder"][-1]
        more = []
        for number, place in enumerate(self.above):
            node = outputs[place]
            with graph.inserting_after(last):
                last = graph.placeholder(f"kept_{number}")
            last.target = last.name
            with graph.inserting_after(node):
                cut = graph.call_function(_as_cut, (node, last))
            node.replace_all_uses_with(cut, delete_user_cb=lambda user, cut=cut: user is not cut)
            more.append(cut)
        graph.output((*outputs, *more))
        return LazyGraphModule(recorded, graph)


def _as_cut(value: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
    """What is computed from a result goes on with: the same, from which autograd does not come to
    what the result was computed from."""
    return _leaf(value) if given is None else alias(given)


def _first(one: Any, other: Any) -> Any:
    return other if one is None else one


def _leaf(value: torch.Tensor) -> torch.Tensor:
    return value.detach().requires_grad_(value.requires_grad)


def _differentiated(outputs: list[Any], inputs: list[Any], gradients: list[Any]) -> Sequence[Any]:
    if not inputs or not outputs:
        return [None] * len(inputs)
    return torch.autograd.grad(
        outputs, inputs, gradients, retain_graph=True, create_graph=torch.is_grad_enabled(),
        allow_unused=True,
    )  # fmt: skip


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]


# -- what autograd was called for ------------------------------------------------------------------


def _asked_for() -> Iterator[tuple[Any, int]]:
    """The edges of the tensors for which this run of autograd returns or keeps gradients, as far as
    it was called from Python."""
    for one in _inputs_of_run():
        if isinstance(one, GradientEdge):
            yield one.node, one.output_nr
        elif isinstance(one, torch.Tensor) and one.grad_fn is not None:
            yield one.grad_fn, one.output_nr


_made: list[Any] = []


def _nobodys() -> Any:
    """A node that no backward comes to."""
    if not _made:
        with torch.enable_grad():
            _made.append(torch.zeros((), requires_grad=True).view(()).grad_fn)
    return _made[0]


def _inputs_of_run() -> Sequence[Any]:
    """Autograd keeps them to itself; nodes on other devices run in other threads."""
    code = torch.autograd.graph._engine_run_backward.__code__
    found: list[Any] = []
    for frame in (sys._getframe(), *sys._current_frames().values()):
        one: Any = frame
        while one is not None and one.f_code is not code:
            one = one.f_back
        if one is not None:
            args = one.f_locals["args"]
            found += args[3] if len(args) > 3 else ()
    return found
