"""Calls of subgraphs whose results share memory with nothing, as compilers take for granted.

In: a joint graph of AOTAutograd's, in which regions have been divided into forward and backward.
What a forward subgraph saves may be an argument of it, a view of one, or a view of another result:
Inductor would write to that memory when it believes it free. Out: the same graph, changed in place:
such results are viewed outside, where everybody sees what they are views of. Nor is a call given a
copy of what it writes to where only the call would see it. Used by aot and
inductor. Next: the partitioner.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

from ..graph.outlining import calls_by_subgraph
from .memory import Memory

_Node = torch.fx.Node


class _Result(NamedTuple):
    """How a result is had outside: views of an argument, or of what the subgraph returns."""

    argument: int | None
    returned: int | None
    views: list[_Node]


def separate_results(gm: torch.fx.GraphModule) -> None:
    """Change ``gm`` such that no two results of a subgraph share memory, nor a result and an
    argument, and such that no call is given a copy without need. Raises RuntimeError where the
    former cannot be seen."""
    calls = calls_by_subgraph(gm)
    for name, nodes in calls.items():
        for node in nodes:
            _give_originals(node)
        results = _separated(getattr(gm, name))
        if results is not None:
            for node in nodes:
                _rewire(gm.graph, node, results, getattr(gm, name))
    if calls:
        gm.graph.eliminate_dead_code()
        gm.recompile()


def _give_originals(call: _Node) -> None:
    """What a call writes to it is given a copy of, as backward may need what forward was given.
    Where backward does not, there is no need for it: a subgraph that AOTAutograd has traced writes
    to nothing, and the graph writes after all calls."""
    for argument in call.all_input_nodes:
        if argument.target is torch.ops.aten.clone.default and list(argument.users) == [call]:
            original: Any = argument.args[0]
            if original.meta["val"].stride() == argument.meta["val"].stride():
                call.replace_input_with(argument, original)


def _separated(subgraph: torch.fx.GraphModule) -> list[_Result | None] | None:
    """Change what a subgraph returns; how its former results are had, or None if all is well."""
    output = subgraph.graph.output_node()
    answer: Any = output.args[0]
    memory = Memory(subgraph.graph)
    arguments = {node: i for i, node in enumerate(subgraph.graph.find_nodes(op="placeholder"))}
    traced = [_views(node, memory) if isinstance(node, _Node) else None for node in answer]
    roots = [None if one is None else one[0] for one in traced]
    if len({r for r in roots if r}) == sum(r is not None for r in roots):
        if arguments.keys().isdisjoint(roots):  # type: ignore[arg-type]
            return None
    returned: dict[Any, int] = {}
    kept: list[Any] = []
    results: list[_Result | None] = []
    for node, found in zip(answer, traced, strict=True):
        if found is None:
            results.append(None)
            continue
        root, views = found
        if root in arguments:
            results.append(_Result(arguments[root], None, views))
            continue
        if roots.count(root) == 1:
            root, views = node, []
        if root not in returned:
            returned[root] = len(kept)
            kept.append(root)
        results.append(_Result(None, returned[root], views))
    output.args = (type(answer)(kept),)
    subgraph.recompile()
    return results


def _views(node: _Node, memory: Memory) -> tuple[_Node, list[_Node]]:
    """The node of whose value this one is a view, and the operations on the way."""
    views: list[_Node] = []
    while memory.is_view(node):
        views.append(node)
        node = node.args[0]  # type: ignore[assignment]
    fresh = {node, node.args[0]} if node.target is operator.getitem else {node}
    if not memory.roots(node) <= fresh:  # a size is in nobody's memory
        raise RuntimeError(f"a result of a region may be a view of several tensors ({node.name})")
    return node, views[::-1]


def _rewire(
    graph: torch.fx.Graph, call: _Node, results: Sequence[_Result | None],
    subgraph: torch.fx.GraphModule,
) -> None:  # fmt: skip
    """Let the users of a call find its former results where they are now."""
    items = {user.args[1]: user for user in call.users}
    kept: Any = subgraph.graph.output_node().args[0]
    call.meta["val"] = type(kept)([node.meta["val"] for node in kept])
    outside = _Outside(graph, call, subgraph)
    returned: dict[int, _Node] = {}
    for position, result in enumerate(results):
        item = items.get(position)
        if result is None or item is None:
            continue
        if result.argument is not None:
            value: Any = call.args[2 + result.argument]
        else:
            number = result.returned
            assert number is not None
            if number not in returned:
                returned[number] = outside.item(call, number, item)
            value = returned[number]
        for view in result.views:
            value = outside.viewed(view, value)
        item.replace_all_uses_with(value)
        graph.erase_node(item)


class _Outside:
    """Makes, behind a call of a subgraph, what is in the subgraph."""

    def __init__(self, graph: torch.fx.Graph, call: _Node, subgraph: torch.fx.GraphModule) -> None:
        self.graph = graph
        self.last = call
        arguments = subgraph.graph.find_nodes(op="placeholder")
        #: Sizes, by their nodes in the subgraph.
        self.sizes: dict[_Node, Any] = dict(zip(arguments, call.args[2:], strict=True))

    def add(self, make: Callable[[], _Node]) -> _Node:
        with self.graph.inserting_after(self.last):
            self.last = make()
        return self.last

    def item(self, call: _Node, number: int, like: _Node) -> _Node:
        made = self.add(lambda: self.graph.call_function(operator.getitem, (call, number)))
        made.meta = {**like.meta, "val": call.meta["val"][number]}
        return made

    def viewed(self, view: _Node, of: _Node) -> _Node:
        """The same view of another node's value."""
        values = {
            node: self._size(node) for node in view.all_input_nodes if node is not view.args[0]
        }
        values[view.args[0]] = of  # type: ignore[index]
        return self._again(view, values)

    def _size(self, node: _Node) -> Any:
        if node not in self.sizes:
            values = {used: self._size(used) for used in node.all_input_nodes}
            self.sizes[node] = self._again(node, values)
        return self.sizes[node]

    def _again(self, node: _Node, values: dict[_Node, Any]) -> _Node:
        """A node of the subgraph with other arguments."""
        made = self.add(lambda: self.graph.node_copy(node, values.__getitem__))
        given: Any = torch.fx.node.map_arg((made.args, made.kwargs), lambda used: used.meta["val"])
        of: Any = next(iter(values.values())).meta["val"]
        for part in of if isinstance(of, (tuple, list)) else [of]:
            if isinstance(part, FakeTensor):
                with unset_fake_temporarily(), part.fake_mode:
                    made.meta["val"] = node.target(*given[0], **given[1])  # type: ignore[operator]
                break
        return made
