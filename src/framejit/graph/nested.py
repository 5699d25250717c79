"""Nested graphs: a stretch of a recording as a module of its own, for higher-order operators.

In: a builder, where the stretch begins, its inputs and outputs. Out: a `GraphModule`, and the nodes
from outside that it uses. The recorded nodes stay behind unused and are removed as dead code.
Used by the value layer. Next room: backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..exc import GraphBreak
from .builder import GraphBuilder
from .lazy import CapturedGraph, LazyGraphModule

_Node = torch.fx.Node


class Stretch:
    """What was recorded since this object was made."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.start = len(builder._nodes)
        self.nodes: list[_Node] = []

    def close(self, what: str) -> None:
        """The stretch ends here. GraphBreak if it does something that must happen exactly once."""
        self.nodes = self.builder._nodes[self.start :]
        if any(node in self.builder._effects for node in self.nodes):
            raise GraphBreak(f"{what} writes to a tensor, draws random numbers or sets state")

    def used_from_outside(self, outputs: list[_Node]) -> list[_Node]:
        """Nodes from before the stretch that its outputs depend on, in order of their first use."""
        inside = set(self.nodes)
        needed = self._needed(outputs)
        found: dict[_Node, None] = {}
        for node in self.nodes:
            if node in needed:
                for used in node.all_input_nodes:
                    if used not in inside:
                        found.setdefault(used)
        for node in outputs:
            if node not in inside:
                found.setdefault(node)
        return list(found)

    def _needed(self, outputs: list[_Node]) -> set[_Node]:
        inside = set(self.nodes)
        needed: set[_Node] = set()
        stack = [node for node in outputs if node in inside]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack.extend(used for used in node.all_input_nodes if used in inside)
        return needed

    def module(self, inputs: list[_Node], outputs: list[_Node]) -> torch.fx.GraphModule:
        """The stretch as a function of ``inputs``, which answers a tuple of ``outputs``."""
        graph = CapturedGraph()
        copies: dict[_Node, _Node] = {}
        for number, node in enumerate(inputs):
            copies[node] = graph.create_node("placeholder", f"arg{number}", (), {})
        needed = self._needed(outputs) - set(inputs)
        attributes: dict[str, Any] = {}
        for node in self.nodes:
            if node in needed:
                made = copies[node] = graph.node_copy(node, copies.__getitem__)
                trace = made.meta.get("stack_trace")
                if callable(trace):
                    made.meta["stack_trace"] = trace()
                if node.op == "get_attr":
                    attributes[str(node.target)] = self.builder._attributes[str(node.target)]
        graph.create_node("output", "output", (tuple(copies[node] for node in outputs),), {})
        return LazyGraphModule(attributes, graph, "GraphModule")


def batched(
    body: Callable[..., Any],
    in_dims: tuple[int | None, ...],
    out_dims: tuple[int, ...],
    randomness: str,
    *operands: torch.Tensor,
) -> Any:
    """``torch.vmap`` of a nested graph: the target of the nodes that stand for it."""
    return torch.vmap(body, in_dims, out_dims, randomness)(*operands)


def applied(cls: type[torch.autograd.Function]) -> Callable[..., Any]:
    """``cls.apply`` as a plain function, which generated code of graphs can name."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = cls.__name__
    apply.__qualname__ = cls.__qualname__
    return apply
