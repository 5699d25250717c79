"""Graphs whose backward may come with gradients for some results only, and then be wrong.

In: a compiled graph in which operations with an unbounded derivative (`unbounded`) reach not all
results, and the recorded one. Out: a callable that is compiled as a whole, as long as each backward
comes to all of these operations. Once one does not, autograd computes its gradients through the
recorded graph, and from then on the graph is compiled in parts. Used by capture. Next: backends.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .builder import GraphBuilder
from .gradients import compiled_node
from .inner_results import NO_INNER, Inner, is_divided, levels_of_results
from .lazy import LazyGraphModule
from .metadata import memory_key
from .parts import PARTS, Part, calls_of, components, in_order, parted
from .running_again import runs_again, under_autocast
from .unbounded import divided_by_results

_Graph = Callable[..., Any]
#: Where a graph's `meta` has its `Uneven`.
UNEVEN = "uneven"


class Uneven(NamedTuple):
    """What becomes of a graph once a backward comes for some of its results only."""

    #: For each group of operations that has to be apart: the positions of the results it reaches.
    groups: list[list[int]]
    parts: list[Part]
    #: Compiles a graph as this one was: takes the graph and what it is called with.
    compiler: Callable[[torch.fx.GraphModule, list[Any]], _Graph] | None = None

    def divided(self, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """The graph, to be compiled in parts."""
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(module.graph, {}))
        copy = LazyGraphModule(module, graph)
        copy.meta = {**module.meta, PARTS: self.parts}
        del copy.meta[UNEVEN]
        return copy


def uneven_parts(
    builder: GraphBuilder, module: torch.fx.GraphModule, inner: Inner = NO_INNER
) -> Uneven | None:
    """What becomes of a finished graph then; None: no such backward would be wrong, or it cannot
    be divided. ``inner``: results at which it is divided in any case; no parts at all if some of
    these would still be computed from others in one that cannot run again."""
    if len(builder.outputs) < 2 or builder.only_computes or not torch.is_grad_enabled():
        return None
    whole = components(builder)[0]
    found = divided_by_results(builder, whole) or ((whole, []) if inner.links else None)
    if found is None:
        return None
    component, groups = found
    if inner.links:
        levels, above = levels_of_results(builder, inner), dict[Any, torch.fx.Node]()
        component = {
            node: above.setdefault((top, levels.get(node, 0)), node)
            for node, top in component.items()
        }
    # Another part would know nothing of what a gradient in the graph goes through.
    calls = None if builder.differentiated else calls_of(builder, module)
    parts = None if calls is None else parted(builder, module, in_order(builder, calls, component))
    if inner.links and not all(Inner.of_lists(one.inner).is_heard for one in parts or ()):
        parts = []
    return None if parts is None else Uneven(groups, parts)


def runs_twice(builder: GraphBuilder, module: torch.fx.GraphModule) -> bool:
    """Does the recorded graph compute the same when backward comes, and from results that the
    compiled graph has, too? (It may return a tensor instead of which several results are views.)"""
    if torch._C._is_any_autocast_enabled() or not runs_again(module):
        return False
    given = {id(one.example) for one in builder.placeholders}
    views: dict[int, list[bool]] = collections.defaultdict(list)
    for operation in {builder.operation(node) for node in builder.outputs}:
        for example in operation.examples if operation.differentiable else ():
            if given.isdisjoint(map(id, example.sharing)):
                views[memory_key(example)].append(example.fake._is_view())
    return all(len(found) == 1 or not all(found) for found in views.values())


def divided_when_uneven(
    compiled: _Graph, recorded: _Graph, groups: Sequence[Sequence[int]],
    divide: Callable[[list[Any]], _Graph] | None, met: list[bool],
) -> _Graph:  # fmt: skip
    """``compiled``, until it would give wrong gradients, which ``met`` is told; then what
    ``divide`` makes for arguments like those of a call. Without that, the recorded graph."""
    found = [frozenset(group) for group in groups]
    now: list[_Graph] = []

    def run(*arguments: Any) -> Any:
        if is_divided(met):
            if not now:
                now.append(recorded if divide is None else divide(list(arguments)))
            return now[0](*arguments)
        results = compiled(*arguments)
        if not found:
            return results
        node, places = None, dict[int, list[int]]()
        for i, result in enumerate(results):
            one, number = compiled_node(result)
            node = node or one
            if one is not None and one is node and result.grad_fn is node:
                places.setdefault(number, []).append(i)
        if node is not None:
            node.register_hook(_Again(recorded, arguments, places, found, met))
        return results

    return run


class _Again:
    """Called after the compiled backward."""

    def __init__(
        self, recorded: _Graph, arguments: Sequence[Any], places: dict[int, list[int]],
        groups: list[frozenset[int]], met: list[bool],
    ) -> None:  # fmt: skip
        self.recorded = recorded
        self.arguments = arguments
        self.versions = [one._version for one in _tensors(arguments) if not one.is_inference()]
        self.places = places
        self.groups = groups
        self.met = met

    def __call__(self, gradients: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
        wanted = {number: one for number, one in enumerate(given) if one is not None}
        results = {i for number in wanted for i in self.places.get(number, ())}
        found = None
        known = self.places.keys() >= wanted.keys()
        if known and any(group.isdisjoint(results) for group in self.groups):
            self.met.append(True)
            if not torch.is_grad_enabled():  # else they are computed by the recorded graph anyway
                found = self._computed(gradients, wanted)
        if not torch._C._autograd._get_current_graph_task_keep_graph():  # type: ignore[attr-defined]
            self.arguments = ()
        return found

    def _computed(self, gradients: tuple[Any, ...], wanted: dict[int, Any]) -> Any:
        """The gradients as eager mode has them."""
        tensors = _tensors(self.arguments)
        versions = [one._version for one in tensors if not one.is_inference()]
        if len(tensors) != len(gradients) or versions != self.versions:
            return None
        # Detached, so that nobody's hooks are called.
        copies = {id(one): one.detach().requires_grad_(one.requires_grad) for one in tensors}
        with torch.enable_grad(), under_autocast(None):
            results = self.recorded(*[copies.get(id(one), one) for one in self.arguments])
        outputs = [results[self.places[number][0]] for number in wanted]
        leaves = [one for one in copies.values() if one.requires_grad]
        grads = torch.autograd.grad(outputs, leaves, list(wanted.values()), allow_unused=True)
        computed = dict(zip(map(id, leaves), grads, strict=True))
        return tuple([computed.get(id(copies[id(one)])) for one in tensors])


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]
