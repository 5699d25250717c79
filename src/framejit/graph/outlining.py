"""Graphs in which repeated calls are calls of one subgraph, for backends that compile it once.

In: a captured graph with its regions (`repeats`). Out: another graph module, which computes the
same: ``torch.ops.higher_order.invoke_subgraph`` in place of each call, with the items of its result
under the names of the nodes that they replace. Of what a call writes to, the subgraph is given a
copy, and returns what is to be copied back. The flat graph stays as it is. Next: backends.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from typing import Any

import torch
import torch.fx
from torch._higher_order_ops import invoke_subgraph

from .builder import WRITES
from .lazy import CapturedGraph, LazyGraphModule
from .node_meta import NodeMeta
from .repeats import Region

_Node = torch.fx.Node
_NOT_WORD = re.compile(r"\W+")


def has_regions(module: torch.fx.GraphModule) -> bool:
    """Is it what `outlined` makes, or a copy of that?"""
    return bool(module.graph.find_nodes(op="call_function", target=invoke_subgraph))


def calls_by_subgraph(module: torch.fx.GraphModule) -> dict[str, list[_Node]]:
    """The calls of each of its subgraphs, by the names that it has these under."""
    calls: dict[str, list[_Node]] = {}
    for node in module.graph.find_nodes(op="call_function", target=invoke_subgraph):
        subgraph: Any = node.args[0]
        calls.setdefault(subgraph.target, []).append(node)
    return calls


def outlined(module: torch.fx.GraphModule, regions: list[Region]) -> torch.fx.GraphModule:
    """``module`` with a call of a subgraph for each call of its regions."""
    nodes = list(module.graph.nodes)
    graph, copies = CapturedGraph(), dict[_Node, _Node]()
    starts = {call[0][0]: (region, i) for region in regions for i, call in enumerate(region.calls)}
    inner = {nodes[place] for region in regions for call in region.calls for place in call[0]}
    modules: dict[str, torch.nn.Module] = {}
    named = _names(regions)
    for place, node in enumerate(nodes):
        if place in starts:
            region, number = starts[place]
            call = region.calls[number]
            name = named[regions.index(region), region.kinds[number]]
            if name not in modules:
                modules[name] = _subgraph(module, nodes, region, call)
            inputs = [copies[nodes[i]] for i in call[1]]
            for i in region.written:  # backward may be given what forward is: a tensor of its own
                inputs[i] = graph.call_method("clone", (inputs[i],))
                inputs[i].meta = nodes[call[1][i]].meta.copy()
            attribute = graph.get_attr(name)
            made = graph.call_function(invoke_subgraph, (attribute, name, *inputs))
            results = [nodes[call[0][i]] for i in region.outputs]
            written = [nodes[call[1][i]] for i in region.written]
            made.meta = NodeMeta({"example_value": _values([*results, *written])})
            for number, old in enumerate(written, len(results)):
                item = graph.call_function(operator.getitem, (made, number))
                item.meta = old.meta.copy()
                graph.call_method("copy_", (copies[old], item))
            for number, result in enumerate(results):
                copy = graph.create_node(
                    "call_function", operator.getitem, (made, number), name=result.name
                )
                copy.meta = result.meta.copy()
                copies[result] = copy
            for view in [nodes[call[0][i]] for i in region.views]:
                copies[view] = graph.node_copy(view, copies.__getitem__)
                copies[view].meta = view.meta.copy()
        if node not in inner:
            copies[node] = graph.node_copy(node, copies.__getitem__)
            copies[node].meta = node.meta.copy()
    for node in nodes:
        if node.op == "get_attr":
            modules[str(node.target)] = getattr(module, str(node.target))
    made_module = LazyGraphModule(modules, graph, "GraphModule")
    made_module.meta.update(module.meta)
    _note_writes(module, made_module, copies)
    return made_module


def _note_writes(
    module: torch.fx.GraphModule, made: torch.fx.GraphModule, copies: dict[_Node, _Node]
) -> None:
    """Which nodes of ``made`` write to tensors whose elements do not lie in order."""
    if WRITES not in module.meta:
        return
    nodes = list(module.graph.nodes)
    position = {node: i for i, node in enumerate(made.graph.nodes)}
    found = [copies[nodes[i]] for i in module.meta[WRITES] if nodes[i] in copies]
    made.meta[WRITES] = [position[copy] for copy in found if copy in position]


def _names(regions: list[Region]) -> dict[tuple[int, int], str]:
    """The names of subgraphs, by the position of their region and the kind of their calls."""
    named: dict[tuple[int, int], str] = {}
    for position, region in enumerate(regions):
        for kind in sorted(set(region.kinds)):
            named[position, kind] = _unused_name(region.name, named.values())
    return named


def _unused_name(name: str, taken: Collection[str]) -> str:
    """An attribute's name. AOTAutograd knows identifiers that begin with "fw" and "bw" as its
    own."""
    name = unique = "region_" + _NOT_WORD.sub("_", name)
    number = 0
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


def _subgraph(
    module: torch.fx.GraphModule, nodes: list[_Node], region: Region, call: list[list[int]]
) -> torch.fx.GraphModule:
    """The operations of a region's call as a function of what it takes from outside."""
    places, inputs = call
    graph, copies = CapturedGraph(), dict[_Node, _Node]()
    for number, place in enumerate(inputs):
        copies[nodes[place]] = graph.create_node("placeholder", f"arg{number}", (), {})
        copies[nodes[place]].meta = nodes[place].meta.copy()
    written = [nodes[inputs[i]] for i in region.written]
    for node in written:
        copies[node] = graph.call_method("clone", (copies[node],))
        copies[node].meta = node.meta.copy()
    for place in places:
        copies[nodes[place]] = graph.node_copy(nodes[place], copies.__getitem__)
        copies[nodes[place]].meta = nodes[place].meta.copy()
    outputs = tuple([copies[node] for node in [nodes[places[i]] for i in region.outputs] + written])
    graph.create_node("output", "output", (outputs,), {})
    made = LazyGraphModule({}, graph, "GraphModule")
    _note_writes(module, made, copies)
    return made


def _values(nodes: list[_Node]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple([node.meta["example_value"] for node in nodes])
