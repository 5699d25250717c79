"""Regions that differ in what backward needs of them, where their forward computes the same.

In: a forward graph of AOTAutograd's. A region's calls that need gradients of different tensors are
calls of different subgraphs, as their backward differs (that of a first layer computes no gradient
of the user's data). Out: the same graph, changed in place: where a subgraph that is called rarely
returns some of what another one returns, computed in the same way, the other one is called instead.
Used by inductor, which compiles one subgraph less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from ..graph.outlining import calls_by_subgraph
from ..graph.repeats import LEAST_CALLS, in_words

_Node = torch.fx.Node


class _Computation:
    """What a subgraph computes: numbers of values, equal across subgraphs where values are.

    ``in_order``: of what must not be done more or less often, or in another order.
    """

    def __init__(self, subgraph: torch.fx.GraphModule, known: dict[Any, int]) -> None:
        numbers: dict[_Node, int] = {}
        self.known, self.in_order = known, list[int]()
        arguments = subgraph.graph.find_nodes(op="placeholder")
        for position, node in enumerate(arguments):
            numbers[node] = self._number(("argument", position, _look(node.meta.get("val"))))
        for node in subgraph.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            given = in_words((node.args, node.kwargs), numbers)
            target = getattr(subgraph, node.target) if node.op == "get_attr" else node.target
            once = len(self.in_order) if _is_done_once(node) else None
            numbers[node] = self._number((node.op, target, given, once))
            if once is not None:
                self.in_order.append(numbers[node])
        self.arguments = [numbers[node] for node in arguments]
        results: Any = subgraph.graph.output_node().args[0]
        self.results = [self._number(in_words(one, numbers)) for one in results]

    def _number(self, key: Any) -> int:
        return self.known.setdefault(key, len(self.known))

    def is_in(self, other: _Computation) -> bool:
        """Does the other one return all that this one returns, and do what this one does?"""
        same = (self.arguments, self.in_order) == (other.arguments, other.in_order)
        return same and set(self.results) <= set(other.results)


def share_forwards(gm: torch.fx.GraphModule) -> None:
    """Let calls of a subgraph be calls of another one that returns the same, and perhaps more. What
    that computes for nothing counts where calls are many: then the subgraph stays."""
    calls = calls_by_subgraph(gm)
    rare = [name for name, nodes in calls.items() if len(nodes) < LEAST_CALLS]
    if not rare or len(calls) < 2:
        return
    known: dict[Any, int] = {}
    left = {name: _Computation(getattr(gm, name), known) for name in calls}
    for name in rare:
        one = left.pop(name)
        more = next((other for other in left if one.is_in(left[other])), None)
        if more is None:
            left[name] = one
            continue
        like, results = calls[more][0], left[more].results
        calls[more] += [_call_instead(gm, c, like, one.results, results) for c in calls[name]]
    if len(left) < len(calls):
        gm.graph.eliminate_dead_code()
        gm.recompile()


def _call_instead(
    gm: torch.fx.GraphModule, call: _Node, like: _Node, results: Sequence[Any], more: Sequence[Any]
) -> _Node:
    """Replace a call by one of what ``like`` calls, and find its ``results`` among ``more``."""
    values: Any = call.meta["val"]
    own = dict(zip(results, values, strict=True))
    with gm.graph.inserting_before(call):
        attribute: Any = like.args[0]
        subgraph = gm.graph.node_copy(attribute)
        made = gm.graph.node_copy(call)
    made.args = (subgraph, like.args[1], *call.args[2:])
    theirs: Any = like.meta["val"]
    made.meta["val"] = type(theirs)(
        [own.get(number, value) for number, value in zip(more, theirs, strict=True)]
    )
    for item in list(call.users):
        position: Any = item.args[1]
        item.args = (made, more.index(results[position]))
    gm.graph.erase_node(call)
    return made


def _is_done_once(node: _Node) -> bool:
    """Does it draw random numbers, or change something?"""
    random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    unknown = isinstance(node.target, torch._ops.HigherOrderOperator)
    return random or unknown or node.is_impure()


def _look(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str((value.shape, value.stride(), value.dtype, value.device))
    return type(value), str(value)
