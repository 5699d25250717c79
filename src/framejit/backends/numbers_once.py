"""Numbers that are computed once, not again for each element that they are combined with.

In: a graph of ATen operators that Inductor is about to generate code for. Out: the same graph, in
which tensors of one element that took some computing are kept in memory before larger tensors are
computed from them. Inductor computes them inside the loop over the larger one otherwise: AdamW
takes two powers of its step count for each few elements of a parameter. Used by inductor_passes.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.fx

_Node = torch.fx.Node

aten, prims = torch.ops.aten, torch.ops.prims

#: Operators live as long as this.
_library = torch.library.Library("framejit", "FRAGMENT")

#: What costs no more than to load the result.
_CHEAP = frozenset(
    (
        aten.add, aten.sub, aten.rsub, aten.mul, aten.neg, aten._to_copy, aten.clone, aten.full,
        prims.convert_element_type, aten.view, aten.reshape, aten.unsqueeze, aten.squeeze,
        aten.expand, aten.permute, aten.scalar_tensor, aten.lift_fresh_copy,
    )
)  # fmt: skip


def compute_numbers_once(graph: torch.fx.Graph) -> None:
    """Mark the numbers of ``graph`` that are worth to be kept."""
    costly: set[_Node] = set()
    for node in list(graph.nodes):
        if not _is_number(node):
            continue
        if node.target.overloadpacket not in _CHEAP or not costly.isdisjoint(node.all_input_nodes):
            costly.add(node)
        if node in costly and any(_is_larger(user) for user in node.users):
            _keep(graph, node)
            costly.discard(node)


def _is_number(node: _Node) -> bool:
    """Is this a tensor of one element on a CPU that elementwise operations compute? A GPU would
    have to run a kernel for it alone."""
    value = node.meta.get("val")
    return (
        isinstance(node.target, torch._ops.OpOverload)
        and isinstance(value, torch.Tensor)
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and all(isinstance(size, int) and size == 1 for size in value.shape)
        and (torch.Tag.pointwise in node.target.tags or node.target.overloadpacket in _CHEAP)
    )


def _is_larger(user: _Node) -> bool:
    value = user.meta.get("val")
    return (
        isinstance(user.target, torch._ops.OpOverload)
        and torch.Tag.pointwise in user.target.tags
        and isinstance(value, torch.Tensor)
        and not all(isinstance(size, int) and size == 1 for size in value.shape)
    )


def _keep(graph: torch.fx.Graph, node: _Node) -> None:
    """Let all users take the number from memory."""
    users = list(node.users)
    with graph.inserting_after(node):
        kept = graph.call_function(_operator(), (node,))
    kept.meta = dict(node.meta)
    for user in users:
        user.replace_input_with(node, kept)


@functools.cache
def _operator() -> Any:
    """An operator that returns its argument; Inductor computes the argument for it."""
    from torch._inductor.lowering import register_lowering  # slow optional dependency

    _library.define("computed_once(Tensor number) -> Tensor")
    _library.impl("computed_once", torch.clone, "CompositeExplicitAutograd")
    operator = torch.ops.framejit.computed_once.default

    def lower(number: Any) -> Any:
        number.realize()
        return number

    register_lowering(operator, type_promotion_kind=None)(lower)
    return operator
