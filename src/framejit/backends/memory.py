"""Which memory the operations of a graph read, write and share, from their schemas.

In: a graph of ATen operations, as AOTAutograd makes it. Out: for every node the *roots* whose
memory its value may share (placeholders, constants, nodes that allocate) and the roots that it
writes to. What has no schema may share and write everything it is given. Next: segments.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx
from torch._higher_order_ops import invoke_subgraph
from torch._ops import OpOverload

from ..graph.observer import passed, tensors_in

_Node = torch.fx.Node
_Roots = frozenset[_Node]
_NONE: _Roots = frozenset()

#: They return their argument's memory although their schemas do not say so.
_HIDDEN_VIEWS = frozenset([torch.ops.aten._unsafe_view.default, torch.ops.aten.lift_fresh.default])


class Memory:
    """The analysis of one graph."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self._parts: dict[_Node, list[_Roots]] = {}
        self._written: dict[_Node, _Roots] = {}
        for node in graph.nodes:
            self._parts[node], self._written[node] = self._look(node)

    def roots(self, node: _Node) -> _Roots:
        """Whose memory the node's value may be in; itself, if it allocates."""
        return frozenset().union(*self._parts[node])

    def writes(self, node: _Node) -> _Roots:
        """The roots that running the node may change."""
        return self._written[node]

    def is_view(self, node: _Node) -> bool:
        """Does it only look at memory of its arguments in another way?"""
        if node.op != "call_function" or self._written[node]:
            return False
        if node.target is operator.getitem:
            return self.is_view(node.args[0])  # type: ignore[arg-type]
        return isinstance(node.target, OpOverload) and node not in self.roots(node)

    def same_as(self, node: _Node) -> _Node:
        """The argument that the node returns after it has written to it, or the node."""
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            return node
        returns = node.target._schema.returns
        if len(returns) != 1 or returns[0].alias_info is None:
            return node
        alias = returns[0].alias_info
        for argument, value in passed(node.target, node.args, node.kwargs):
            info = argument.alias_info
            if alias.is_write and info is not None and info.before_set == alias.before_set:
                return value if isinstance(value, _Node) else node
        return node

    def _look(self, node: _Node) -> tuple[list[_Roots], _Roots]:
        if node.op in ("placeholder", "get_attr"):
            return [frozenset([node])], _NONE
        given = _NONE.union(*[self.roots(one) for one in node.all_input_nodes])
        if node.op == "output":
            return [given], _NONE
        if node.target is operator.getitem:
            source, index = node.args
            parts = self._parts[source]  # type: ignore[index]
            several = len(parts) > 1 and isinstance(index, int)
            return [parts[index] if several else _NONE.union(*parts)], _NONE  # type: ignore[index]
        if node.target is invoke_subgraph:
            return [frozenset([node])], _NONE  # see `separate`
        if not isinstance(node.target, OpOverload):
            if not given or not _holds_tensors(node):  # arithmetic on sizes
                return [_NONE], _NONE
            return [given | {node}], given
        return self._by_schema(node, given)

    def _by_schema(self, node: _Node, given: _Roots) -> tuple[list[_Roots], _Roots]:
        sets: dict[str, _Roots] = {}
        written = _NONE
        for argument, value in passed(node.target, node.args, node.kwargs):
            info = argument.alias_info
            if info is None:
                continue
            roots = _NONE.union(*[self.roots(one) for one in nodes_in(value)])
            for name in info.before_set:
                sets[name] = sets.get(name, _NONE) | roots
            if info.is_write:
                written |= roots
        if node.target in _HIDDEN_VIEWS:
            return [given], written
        parts = []
        for returned in node.target._schema.returns:  # type: ignore[union-attr]
            info = returned.alias_info
            if info is None:
                parts.append(frozenset([node]))
                continue
            names = info.before_set or {"*"}  # of lists the names are not told
            parts.append(_NONE.union(*[sets.get(name, given) for name in names]))
        return parts or [_NONE], written


def nodes_in(value: Any) -> list[_Node]:
    """The nodes inside an argument."""
    found: list[_Node] = []
    torch.fx.node.map_arg(value, found.append)  # type: ignore[arg-type]
    return found


def tensors_of(node: _Node) -> list[torch.Tensor]:
    """The (fake) tensors of a node's value."""
    return list(tensors_in(node.meta.get("val")))


def _holds_tensors(node: _Node) -> bool:
    return any(tensors_of(one) for one in [node, *node.all_input_nodes]) or "val" not in node.meta


def hide_views(gm: torch.fx.GraphModule, metadata: Any) -> None:
    """Let AOTAutograd's node hide that results are views which have memory of their own in the
    program. They are where it was written to through a view: the graph views what was written.

    ``metadata``: what AOTAutograd found out about the program.
    """
    answer: Any = gm.graph.output_node().args[0]
    results = answer[metadata.num_mutated_inp_runtime_indices : metadata.num_forward_returns]
    kinds = [info.output_type.name if info.requires_grad else "" for info in metadata.output_info]
    for index, node in enumerate(results):  # after the program's results come bases of some
        own = index >= len(kinds) or kinds[index] == "non_alias"
        if own and isinstance(node, _Node) and getattr(node.target, "is_view", False):
            metadata.unsafe_view_out_indices.append(index)
    metadata.num_unsafe_view_outputs = len(metadata.unsafe_view_out_indices)


# -- what is saved for backward --------------------------------------------------------------------

#: In the message of the error for a graph that AOTAutograd would save the wrong content of.
UNSAVABLE = "what is saved of a written input has gaps"


def save_old_content(gm: torch.fx.GraphModule, metadata: Any, returned: int) -> None:
    """Let a forward graph save copies of what it writes to later on. AOTAutograd saves such inputs
    themselves, and its backward graph computes from their new content.

    ``metadata``: what AOTAutograd found out about the graph; what comes after so many results that
    are ``returned`` is saved.
    """
    changes = [info.mutates_data for info in metadata.input_info]
    if not any(changes):
        return
    inputs, output = gm.graph.find_nodes(op="placeholder"), gm.graph.output_node()
    memory = Memory(gm.graph)
    written = _NONE.union(*[memory.writes(node) for node in gm.graph.nodes])
    if len(inputs) == len(changes):
        written |= {node for node, changed in zip(inputs, changes, strict=True) if changed}
    answer: Any = output.args[0]
    results = list(answer)
    for index in range(returned, len(results)):
        node = results[index]
        if isinstance(node, _Node) and not written.isdisjoint(memory.roots(node)):
            with gm.graph.inserting_after(inputs[-1] if node in inputs else node):
                copy = gm.graph.call_function(torch.ops.aten.clone.default, (node,))
            copy.meta["val"] = node.meta["val"].clone()
            if str(copy.meta["val"].stride()) != str(node.meta["val"].stride()):
                raise RuntimeError(UNSAVABLE)
            results[index] = copy
    output.args = (type(answer)(results),)
    gm.recompile()
