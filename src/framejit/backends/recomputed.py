"""What backward computes from results of a region instead of having it saved.

In: the forward and backward graph that a partitioner has made of one region. A mask of a result
(`relu`) is smaller than the result, so partitioners save the mask; but the result exists anyway,
and the next layer saves it. Out: the same graphs, changed in place: backward is given the result
and computes the mask where it needs it. Used by inductor_regions: Inductor does not vectorize what
writes a mask beside a result (a training step of layers of width 256 takes 1.6 times as long).
"""

from __future__ import annotations

import torch
import torch.fx

_Node = torch.fx.Node


def recompute_from_results(
    forward: torch.fx.GraphModule, backward: torch.fx.GraphModule, results: int
) -> None:
    """Change both such that nothing is saved that one operation makes of the region's results: the
    first ``results`` outputs of ``forward``."""
    output = forward.graph.output_node()
    returned = list(output.args[0])  # type: ignore[arg-type]
    given = {node: None for node in returned[:results] if isinstance(node, _Node)}
    saved = returned[results:]
    inputs = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    chosen = [node for node in saved if _is_made_of(node, given) and node.name in inputs]
    for node in chosen:
        saved = _given_instead(node, saved, backward.graph, inputs)
    if chosen:
        output.args = ((*returned[:results], *saved),)
        forward.graph.eliminate_dead_code()
        for module in (forward, backward):
            module.graph.lint()
            module.recompile()


def _is_made_of(node: object, given: dict[_Node, None]) -> bool:
    """Does one operation make it, element by element, of these?"""
    return (
        isinstance(node, _Node)
        and isinstance(node.target, torch._ops.OpOverload)
        and torch.Tag.pointwise in node.target.tags
        and torch.Tag.nondeterministic_seeded not in node.target.tags
        and node not in given
        and bool(node.all_input_nodes)
        and all(one in given for one in node.all_input_nodes)
    )


def _given_instead(
    node: _Node, saved: list[_Node], graph: torch.fx.Graph, inputs: dict[str, _Node]
) -> list[_Node]:
    """What is saved when backward's ``graph`` computes ``node`` itself."""
    place = saved.index(node)
    before = inputs.pop(node.name)
    for one in node.all_input_nodes:
        if one.name not in inputs:
            with graph.inserting_before(before):
                inputs[one.name] = graph.placeholder(one.name)
            inputs[one.name].meta = dict(one.meta)
            saved = [*saved[:place], one, *saved[place:]]
            place += 1
    with graph.inserting_before(_first_operation(graph)):
        made = graph.node_copy(node, lambda one: inputs[one.name])
    before.replace_all_uses_with(made)
    graph.erase_node(before)
    return [*saved[:place], *saved[place + 1 :]]


def _first_operation(graph: torch.fx.Graph) -> _Node:
    return next(node for node in graph.nodes if node.op != "placeholder")
