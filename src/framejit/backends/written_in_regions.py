"""Regions that write to what they are given, where Inductor compiles them.

In: a graph of AOTAutograd's: its calls of subgraphs return what the graph then writes to its inputs
(the statistics of batch norm, say), with an operation per call and input, which Inductor would
compile each. Out: the same graph, changed in place: the subgraph, compiled once, writes there
itself. Inductor is told of it. Used by inductor.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.fx

from ..graph.outlining import calls_by_subgraph

_Node = torch.fx.Node

#: What a call is given before what the subgraph gets.
_BEFORE_ARGUMENTS = 2


def write_in_regions(gm: torch.fx.GraphModule) -> None:
    """Let subgraphs write to inputs of ``gm``, where each call does the same with what it is given
    and nobody else looks at these inputs."""
    changed = False
    for name, nodes in calls_by_subgraph(gm).items():
        writes = [_writes(call) for call in nodes]
        common = set(writes[0].items()).intersection(*[one.items() for one in writes])
        if common:
            _write_inside(getattr(gm, name), sorted(common))
            for call in nodes:
                _return_less(call, {result for result, _ in common})
            changed = True
    if changed:
        _declare_writes()
        gm.recompile()


def _writes(call: _Node) -> dict[int, int]:
    """Which results of a call only serve to be written to an argument; which argument."""
    found: dict[int, int] = {}
    for item in call.users:
        for writer in item.users:
            if writer.target is torch.ops.aten.copy_.default and writer.args[1] is item:
                place: Any = writer.args[0]
                alone = len(item.users) == 1 and not writer.users
                unseen = place.op == "placeholder" and set(place.users) == {call, writer}
                if alone and unseen and call.args.count(place) == 1:
                    number: Any = item.args[1]
                    found[number] = call.args.index(place) - _BEFORE_ARGUMENTS
    return found


def _write_inside(subgraph: torch.fx.GraphModule, writes: list[tuple[int, int]]) -> None:
    """Write results to arguments at the end, instead of returning them."""
    output = subgraph.graph.output_node()
    results: Any = output.args[0]
    arguments = list(subgraph.graph.find_nodes(op="placeholder"))
    with subgraph.graph.inserting_before(output):
        for result, argument in writes:
            place = arguments[argument]
            node = subgraph.graph.call_function(
                torch.ops.aten.copy_.default, (place, results[result])
            )
            node.meta["val"] = place.meta["val"]
    gone = {result for result, _ in writes}
    output.args = (type(results)([one for i, one in enumerate(results) if i not in gone]),)
    subgraph.recompile()


def _return_less(call: _Node, gone: set[int]) -> None:
    """Leave out what a call no longer returns, and what wrote it."""
    graph = call.graph
    values: Any = call.meta["val"]
    kept = [i for i in range(len(values)) if i not in gone]
    call.meta["val"] = type(values)([values[i] for i in kept])
    for item in list(call.users):
        number: Any = item.args[1]
        if number in gone:
            for writer in list(item.users):
                graph.erase_node(writer)
            graph.erase_node(item)
        else:
            item.args = (call, kept.index(number))


@functools.cache
def _declare_writes() -> None:
    """Inductor takes it for granted that subgraphs write to nothing. What one writes to becomes
    written to by its call, so that the order of operations and CUDA graphs respect it."""
    from torch._inductor import ir  # slow optional dependency
    from torch._inductor.virtualized import V

    create = ir.InvokeSubgraph.create

    def create_writing(subgraph: Any, *operands: Any) -> Any:
        results = create(subgraph, *operands)
        graph = subgraph.graph
        written = [i for i, n in enumerate(graph.graph_input_names) if n in graph.mutated_buffers]
        if written:
            made = next(one for one in results if isinstance(one, ir.MultiOutput))
            call: Any = made.inputs[0]
            for position in written:
                place = call.inputs[position]
                if place.get_name() not in V.graph.graph_inputs:
                    raise RuntimeError("a region would write to a copy of what it is given")
                layout = ir.NoneLayout(device=place.get_device())
                call.mutation_outputs.append(ir.MutationOutput(layout, place, call))
        return results

    setattr(ir.InvokeSubgraph, "create", staticmethod(create_writing))  # noqa: B010
