"""Graphs in which calls of subgraphs are replaced by their operations.

In: a graph of AOTAutograd's with regions, forward or backward. Out: the flat graph, for whoever
executes it as it is (the operator of such calls has no rule for some of PyTorch's modes and
transforms), and where a compiler does not get on with the regions. Used by aot and inductor.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
from torch._higher_order_ops import invoke_subgraph

from .dividing import owned_copy

_Node = torch.fx.Node


def inlined(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy of ``module`` without calls of subgraphs."""
    return _Inliner().copy(module)


def kept_copy(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A graph and the subgraphs that it calls as they are now, whatever is done to them later."""
    copy = owned_copy(module)
    copy.graph.output_node().meta = module.graph.output_node().meta.copy()
    copy.meta.update(module.meta)
    for call in module.graph.find_nodes(op="call_function", target=invoke_subgraph):
        name = call.args[0].target
        if getattr(copy, name) is getattr(module, name):
            setattr(copy, name, kept_copy(getattr(module, name)))
    return copy


class _Inliner:
    """Makes one graph. ``attributes`` is what it reads from its module."""

    def __init__(self) -> None:
        self.graph = torch.fx.Graph()
        self.attributes: dict[str, Any] = {}

    def copy(self, module: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """The whole of it."""
        placeholders = module.graph.find_nodes(op="placeholder")
        given = [self.graph.node_copy(node) for node in placeholders]
        outputs = self._inline(module, given)
        end = self.graph.output(outputs)
        end.meta = module.graph.output_node().meta.copy()
        made = torch.fx.GraphModule(self.attributes, self.graph)
        made.meta.update(module.meta)
        return made

    def _inline(self, module: torch.fx.GraphModule, given: Sequence[Any]) -> Any:
        """Copy the operations of a graph; what it returns."""
        placeholders = module.graph.find_nodes(op="placeholder")
        copies: dict[_Node, Any] = dict(zip(placeholders, given, strict=True))
        for node in module.graph.nodes:
            if node.op == "output":
                return torch.fx.node.map_arg(node.args[0], copies.__getitem__)
            if node.target is invoke_subgraph:
                subgraph = getattr(module, node.args[0].target)
                arguments: Any = torch.fx.node.map_arg(node.args[2:], copies.__getitem__)
                copies[node] = self._inline(subgraph, arguments)
            elif node.op == "get_attr":
                value = operator.attrgetter(str(node.target))(module)
                if not _is_called(node):
                    copies[node] = self._attribute(node, value)
            elif node.op != "placeholder":
                copies[node] = self._operation(node, copies)
        raise AssertionError("a graph has an output")

    def _operation(self, node: _Node, copies: dict[_Node, Any]) -> Any:
        of = copies.get(node.args[0]) if node.args and isinstance(node.args[0], _Node) else None
        if node.target is operator.getitem and isinstance(of, (tuple, list)):
            return of[node.args[1]]  # type: ignore[index]
        return self.graph.node_copy(node, copies.__getitem__)

    def _attribute(self, node: _Node, value: Any) -> _Node:
        name = f"{node.target}".replace(".", "_")
        while self.attributes.setdefault(name, value) is not value:
            name += "_"
        made = self.graph.get_attr(name)
        made.meta = node.meta.copy()
        return made


def _is_called(node: _Node) -> bool:
    """Is it a subgraph, and called by all that use it?"""
    return all(user.target is invoke_subgraph and user.args[0] is node for user in node.users)
