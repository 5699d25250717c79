"""Results of a graph that other results are computed from, as autograd has them.

In: a compiled graph, which AOTAutograd makes one node of autograd's graph, and the recorded one.
Out: a callable whose results have nodes that lead from result to result as in eager mode
(`native.link_results`). Once a program puts a hook on a result that others are computed from, keeps
its gradient or asks for it, autograd computes it through the recorded graph, and from then on the
graph is compiled in parts. Used by capture. Next: backends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from .. import native
from ..report import messages
from .builder import GraphBuilder
from .errors import begins_at
from .global_state import Autocast, under_hooks
from .gradients import changed_by, compiled_node, owners
from .lazy import LazyGraphModule
from .metadata import memory_key
from .running_again import autocast_now, under_autocast
from .second_order import alias

_Graph = Callable[..., Any]
_Node = torch.fx.Node
#: The position of a result; those of the nearest ones that it is computed from; is it a view of it?
Link = tuple[int, tuple[int, ...], bool]


class Inner(NamedTuple):
    """Which results are computed from others."""

    #: Each after those that it is computed from.
    links: tuple[Link, ...] = ()
    #: Does the recorded graph compute the same when backward comes?
    again: bool = False

    @property
    def above(self) -> tuple[int, ...]:
        """The positions of results that others are computed from."""
        return tuple(sorted({one for _, found, _ in self.links for one in found}))

    @property
    def is_heard(self) -> bool:
        """Can all gradients between results be told?"""
        return self.again or not self.links

    def as_lists(self) -> list[Any]:
        """For a file."""
        return [[[place, list(near), view] for place, near, view in self.links], self.again]

    @staticmethod
    def of_lists(saved: Sequence[Any]) -> Inner:
        """The same again."""
        links, again = saved or ((), False)
        return Inner(tuple([(place, tuple(near), view) for place, near, view in links]), again)


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
    owner = owners(builder)
    own = [builder.operations[node] for node in nodes if node in builder.operations]
    writes = {one.node: changed_by(one, owner) for one in own if one.writes}
    # A result is what has been written to it last.
    made = {place: node for node, place in places.items()}
    for node, changed in writes.items():
        made.update((places[one], node) for one in changed if one in places)
    reach: dict[_Node, set[int]] = {}
    links: list[Link] = []
    for operation in own:
        node, found = operation.node, set[int]()
        changed = writes.get(node, [])  # also by what returns nothing, as `z[0] = y` does
        if changed or (operation.differentiable and node not in builder.new_leaves):
            used = (*node.all_input_nodes, *changed)
            found = found.union(*[reach.get(one, ()) for one in used])
        here = {place for place, maker in made.items() if maker is node}
        near = tuple(sorted(found - here))
        links += [(place, near, _is_view(builder, outputs, place, near)) for place in here if near]
        for one in (node, *changed):
            reach[one] = here or (found if one is node else found | reach.get(one, set()))
    written = {one for changed in writes.values() for one in changed if one in places}
    # Between these the graph itself differentiates; what is cut there has no derivative.
    within = builder.differentiated or any(one.transform is not None for one in own)
    return Inner(tuple(links), again and not written and not within)


def _is_view(
    builder: GraphBuilder, outputs: Sequence[_Node], place: int, near: tuple[int, ...]
) -> bool:
    if len(near) != 1:
        return False
    keys = [{*map(memory_key, builder.operations[outputs[i]].examples)} for i in (place, *near)]
    return not keys[0].isdisjoint(keys[1])


def levels_of_results(builder: GraphBuilder, inner: Inner) -> dict[_Node, int]:
    """For each operation, how many results stand between it and the inputs, one after the other."""
    above = {builder.outputs[place] for place in inner.above}
    levels: dict[_Node, int] = {}
    owner = owners(builder)
    for operation in builder.recorded:
        changed = changed_by(operation, owner) if operation.writes else []
        given = above.difference(changed)  # what is written to is not complete yet
        found = [levels.get(u, 0) + (u in given) for u in operation.node.all_input_nodes]
        levels[operation.node] = level = max(found, default=0)
        levels.update((one, max(level, levels.get(one, 0))) for one in changed)
    return levels


def is_divided(met: list[bool] | None) -> bool:
    """Is a call, now, one of the graph in parts? Not under saved-tensor hooks: what checkpoints
    compute again must be what they have computed, though backward has met something since."""
    return bool(met) and not under_hooks()


def with_inner_results(
    graph: _Graph, recorded: Callable[[], Any], inner: Inner, met: list[bool] | None
) -> _Graph:
    """``graph``, with nodes between its results. ``met`` is told once these had to compute
    gradients: from then on the graph is divided. None: it stays as it is."""
    again = _Again(recorded, inner, met)
    layouts: list[Any] = []
    link = native.link_results

    def run(*arguments: Any) -> Any:
        divided = is_divided(met)
        results = graph(*arguments)
        if divided:
            return results
        if not layouts:
            again.layout = _layout(inner, arguments, results)
            layouts.append(again.native_layout())
        if layouts[0] is not None:
            link(layouts[0], arguments, results)
        return results

    return run


class _Layout(NamedTuple):
    """How the results of a compiled graph are those of its node."""

    #: The position of a result of the node, those of results that others are computed from, and
    #: what has to be linked.
    first: int = 0
    above: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    #: For each result of the node: the position of one that it is, or (true) of a view of it.
    places: dict[int, tuple[int, bool]] = {}
    #: Are its operands the tensors among the arguments?
    whole: bool = False


def _layout(inner: Inner, arguments: Sequence[Any], results: Sequence[Any]) -> _Layout:
    nodes: list[Any] = [compiled_node(result)[0] for result in results]
    first = next((place for place, one in enumerate(nodes) if one is not None), None)
    if first is None:  # it has no gradients, or is no graph of AOTAutograd's
        return _Layout()
    node = nodes[first]
    places: dict[int, tuple[int, bool]] = {}
    for place, one in enumerate(results):
        base = one._base if isinstance(one, torch.Tensor) else None
        if base is not None and base.grad_fn is node:
            places.setdefault(base.output_nr, (place, True))
    own = {place for place, one in enumerate(results) if _has_node(one)}
    for place in own:
        if results[place].grad_fn is node:
            places[results[place].output_nr] = (place, False)
    links: dict[int, Link] = {}
    for place, found, view in inner.links:
        near = tuple([one for one in found if one in own])
        if place in own and near:
            # A view of what has no node of ours leads there.
            base = results[place]._base if view else None
            leads = base is not None and base is results[near[0]] and near[0] not in links
            if not leads:
                links[place] = (place, near, view)
    tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
    above = tuple([one for one in inner.above if one in own])
    whole = len(tensors) == len(node.next_functions)
    return _Layout(first, above, tuple(links.values()), places, whole)


def _has_node(result: Any) -> bool:
    return isinstance(result, torch.Tensor) and result.grad_fn is not None


class _Again:
    """The recorded graph such that each part between results can be differentiated for itself."""

    def __init__(self, recorded: Callable[[], Any], inner: Inner, met: list[bool] | None) -> None:
        self.recorded = recorded
        self.above = inner.above
        self.possible = inner.again
        self.met = met
        self.layout = _Layout()
        self._cut: LazyGraphModule | None = None

    def native_layout(self) -> Any:
        """What `native.link_results` takes; None: there is nothing to link."""
        layout = self.layout
        if not layout.links:
            return None
        return native.result_layout(self, layout.first, layout.above, layout.links)

    #: The autocast of a call, for `native.link_results`.
    autocast_now = staticmethod(autocast_now)

    def begin(
        self, arguments: tuple[Any, ...], unchanged: bool, autocast: Autocast | None,
        looked_at: bool, alive: tuple[Any, ...],
    ) -> _Run | None:  # fmt: skip
        """For one run of autograd, whose gradients may be differentiated again if it was not
        ``looked_at``. ``unchanged``: are the arguments? ``alive``: results that others are computed
        from, as the graph returned them, or None."""
        if looked_at and self.met == []:
            self.met.append(True)
        if not (self.possible and self.layout.whole and unchanged):
            if looked_at:
                self.warn()
            return None
        # Derivatives of gradients go on from the real tensors: their histories are the values'.
        second = torch.is_grad_enabled()
        copies = {id(one): alias(one) if second else _leaf(one) for one in _tensors(arguments)}
        given: list[Any] = [None] * len(self.above)
        with torch.enable_grad(), under_autocast(autocast):
            if second:
                known = dict(zip(self.layout.above, alive, strict=True))
                given = [known.get(place) for place in self.above]
                if any(one is None for one in given):
                    other = self.recorded()(*arguments)
                    pairs = zip(self.above, given, strict=True)
                    given = [other[place] if one is None else one for place, one in pairs]
            found = self.cut(*[copies.get(id(one), one) for one in arguments], *given)
        count = len(found) - len(self.above)
        cuts = dict(zip(self.above, found[count:], strict=True))
        inputs = [copies[id(one)] for one in _tensors(arguments)]
        return _Run(self, inputs, found[:count], cuts)

    def warn(self) -> None:
        messages.warn_inner_gradient(begins_at(self.recorded()))

    @property
    def cut(self) -> LazyGraphModule:
        """The graph with more inputs, see `_as_cut`, and more results."""
        if self._cut is not None:
            return self._cut
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
        self._cut = LazyGraphModule(recorded, graph)
        return self._cut


class _Run:
    """The graph once more, for one run of autograd."""

    def __init__(
        self, again: _Again, inputs: list[Any], results: Sequence[Any], cuts: dict[int, Any]
    ) -> None:
        self.again = again
        #: The tensors among the arguments as autograd differentiates with respect to them.
        self.inputs = inputs
        self.results = results
        #: By position: what is computed from a result is computed from this.
        self.cuts = cuts

    def passed_on(self, place: int, near: tuple[int, ...], gradients: tuple[Any]) -> Sequence[Any]:
        """What the gradient of one result adds to those that it is computed from."""
        cuts = [self.cuts[one] for one in near]
        return _differentiated([self.results[place]], cuts, gradients)

    def at_arguments(self, given: tuple[Any, ...]) -> Sequence[Any] | None:
        """What the gradients that arrive at the results of AOTAutograd's node add to those of the
        arguments, without what goes from result to result."""
        wanted = {number: one for number, one in enumerate(given) if one is not None}
        places = self.again.layout.places
        if not places.keys() >= wanted.keys():
            self.again.warn()
            return None
        outputs = []
        for place, is_base in [places[number] for number in wanted]:
            result = self.results[place]
            outputs.append(result._base if is_base else result)
        leaves = [one for one in self.inputs if one.requires_grad]
        new = _differentiated(outputs, leaves, [*wanted.values()])
        found = dict(zip(map(id, leaves), new, strict=True))
        return [found.get(id(one)) for one in self.inputs]


def _as_cut(value: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
    """What is computed from a result goes on with: the same, from which autograd does not come to
    what the result was computed from."""
    return _leaf(value) if given is None else alias(given)


def _leaf(value: torch.Tensor) -> torch.Tensor:
    return value.detach().requires_grad_(value.requires_grad)


def _differentiated(outputs: list[Any], inputs: list[Any], gradients: Sequence[Any]) -> Any:
    if not inputs or not outputs:
        return [None] * len(inputs)
    return torch.autograd.grad(
        outputs, inputs, gradients, retain_graph=True, create_graph=torch.is_grad_enabled(),
        allow_unused=True,
    )  # fmt: skip


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]
