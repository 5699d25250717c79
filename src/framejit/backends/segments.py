"""Cuts a graph into segments that can be replayed, and single operations that cannot.

In: a graph of ATen operations with fake values, and a rule for what can be replayed. Out: a graph
that calls the segments; each knows its inputs, its outputs and which inputs it writes to. The
order of everything that writes stays. `assemble` also serves the parts that AOTAutograd gets. Next:
cudagraphs, dividing.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence

import torch
import torch.fx

from ..graph.lazy import LazyGraphModule
from .memory import Memory

_Node = torch.fx.Node
#: Makes a callable of a segment's graph: ``wrap(module, positions of inputs that are written to)``.
Wrap = Callable[[torch.fx.GraphModule, list[int]], Callable[..., object]]


@dataclasses.dataclass
class Segment:
    """Nodes that run one after another; ``inputs`` come from before, ``outputs`` are used after."""

    nodes: list[_Node]
    inputs: list[_Node] = dataclasses.field(default_factory=list)
    outputs: list[_Node] = dataclasses.field(default_factory=list)
    mutated: list[int] = dataclasses.field(default_factory=list)


def cut(
    graph: torch.fx.Graph, memory: Memory, replayable: Callable[[_Node], bool]
) -> list[Segment | _Node]:
    """The graph's operations in an order in which they can run, as few segments as go in order."""
    refused: set[_Node] = set()
    while True:
        pieces = _in_order(graph, memory, lambda node: node not in refused and replayable(node))
        for piece in pieces:
            if isinstance(piece, Segment):
                _complete(piece, memory)
        clashes = [
            node for piece in pieces if isinstance(piece, Segment)
            for node in _clashes(piece, memory)
        ]  # fmt: skip
        if not clashes:
            return pieces
        refused.update(clashes)


def _in_order(
    graph: torch.fx.Graph, memory: Memory, replayable: Callable[[_Node], bool]
) -> list[Segment | _Node]:
    pieces: list[Segment | _Node] = []
    current: list[_Node] = []
    inside: set[_Node] = set()
    written: set[_Node] = set()

    def close() -> None:
        if any(not memory.is_view(node) and _computes(node) for node in current):
            pieces.append(Segment(list(current)))
        else:  # nothing worth a replay
            pieces.extend(current)
        current.clear()
        inside.clear()
        written.clear()

    for node in graph.nodes:
        if node.op != "call_function":
            continue
        of_several = node.target is operator.getitem  # stays with what it is a part of
        if node.args[0] in inside if of_several else replayable(node):
            current.append(node)
            inside.add(node)
            written |= memory.writes(node)
            continue
        touched = memory.roots(node).union(*[memory.roots(n) for n in node.all_input_nodes])
        if inside.intersection(node.all_input_nodes) or memory.writes(node) or touched & written:
            close()
        # Otherwise it can run before the segment that is being filled.
        pieces.append(node)
    close()
    return pieces


def _computes(node: _Node) -> bool:
    return node.target is not operator.getitem and isinstance(node.target, torch._ops.OpOverload)


def _complete(segment: Segment, memory: Memory) -> None:
    inside = set(segment.nodes)
    used = [n for node in segment.nodes for n in node.all_input_nodes]
    segment.inputs = list(dict.fromkeys(n for n in used if n not in inside))
    segment.outputs = [n for n in segment.nodes if any(user not in inside for user in n.users)]
    written = frozenset().union(*[memory.writes(node) for node in segment.nodes])
    segment.mutated = [i for i, n in enumerate(segment.inputs) if memory.roots(n) & written]


def _clashes(segment: Segment, memory: Memory) -> list[_Node]:
    """Nodes that write to memory which reaches the segment by more than one input: copies of the
    inputs would not share it any more."""
    shared: set[_Node] = set()
    seen: set[_Node] = set()
    for node in segment.inputs:
        roots = memory.roots(node)
        shared |= roots & seen
        seen |= roots
    return [node for node in segment.nodes if memory.writes(node) & shared]


def assemble(
    gm: torch.fx.GraphModule, pieces: Sequence[Segment | _Node], memory: Memory | None, wrap: Wrap
) -> torch.fx.GraphModule:
    """A graph that calls what ``wrap`` makes of each segment. With ``memory``, views of a segment's
    inputs are made again after it."""
    outer = torch.fx.Graph()
    values: dict[_Node, _Node] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = outer.node_copy(node, values.__getitem__)
    count = 0
    for piece in pieces:
        if isinstance(piece, _Node):
            values[piece] = outer.node_copy(piece, values.__getitem__)
            continue
        inside = set(piece.nodes)
        leaving = piece.outputs
        if memory is not None:
            leaving = [n for n in leaving if not _looks_outside(n, inside, memory)]
        run = wrap(_inner(gm, piece, leaving), piece.mutated)
        run.__name__ = run.__qualname__ = f"segment_{count}"
        run.__module__ = "framejit.segments"
        count += 1
        call = outer.call_function(run, tuple(values[n] for n in piece.inputs))
        for index, node in enumerate(leaving):
            values[node] = outer.call_function(operator.getitem, (call, index))
        for node in piece.outputs:  # views of the real inputs, not of what was copied in
            if node not in values and memory is not None:
                _again(node, inside, memory, outer, values)
    output = gm.graph.output_node()
    outer.output(torch.fx.node.map_arg(output.args[0], values.__getitem__))
    outer.lint()
    return LazyGraphModule(gm, outer)


def _looks_outside(node: _Node, inside: set[_Node], memory: Memory) -> bool:
    """Is its value memory of the segment's inputs?"""
    roots = memory.roots(node)
    return bool(roots) and not roots & inside


def _inner(
    gm: torch.fx.GraphModule, segment: Segment, leaving: list[_Node]
) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    values = {node: graph.placeholder(f"given_{i}") for i, node in enumerate(segment.inputs)}
    for node in segment.nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output(tuple(values[node] for node in leaving))
    return LazyGraphModule(gm, graph)


def _again(
    node: _Node, inside: set[_Node], memory: Memory, outer: torch.fx.Graph,
    values: dict[_Node, _Node],
) -> None:  # fmt: skip
    """Make a view once more, after the segment."""
    same = memory.same_as(node)
    if same is not node:
        if same not in values:
            _again(same, inside, memory, outer, values)
        values[node] = values[same]
        return
    for source in node.all_input_nodes:
        if source not in values:
            _again(source, inside, memory, outer, values)
    values[node] = outer.node_copy(node, values.__getitem__)
