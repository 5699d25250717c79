"""Convolutions and their gradients in one graph agree on where channels lie in memory.

In: a graph of ATen operators that Inductor is about to generate code for, with gradients in it.
Out: the same graph, in which what convolutions take is laid out channels last, and what follows
from that as well. Inductor lays out what convolutions take so, but what their gradients take as
the graph says: in a graph with both, each activation and each weight would be there twice. Used by
inductor_passes. Next: Inductor.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_arg

_Node = torch.fx.Node

aten = torch.ops.aten

#: Which arguments of a convolution, and of its gradient, are laid out.
_LAID_OUT = {
    aten.convolution.default: (0, 1),
    aten.convolution_backward.default: (0, 1, 2),
}
#: They mean places in memory.
_OF_MEMORY = frozenset(
    (
        aten.as_strided, aten.as_strided_, aten.as_strided_copy, aten.as_strided_scatter,
        aten.set_, aten.resize_, aten.stride, aten.sym_stride, aten.is_contiguous,
        aten.sym_is_contiguous, aten.storage_offset, aten.sym_storage_offset, aten.view,
        aten._unsafe_view,
    )
)  # fmt: skip


def spread_channels_last(graph: torch.fx.Graph) -> None:
    """Lay out what the convolutions of ``graph`` take, if Inductor does."""
    found = {target for target in _LAID_OUT if graph.find_nodes(op="call_function", target=target)}
    if found != set(_LAID_OUT) or not all(map(_can_change, graph.nodes)):
        return
    from torch._inductor import config  # slow optional dependencies
    from torch._inductor.graph import GraphLowering

    if config.fallback_random and any(map(_is_random, graph.nodes)):
        return  # eager's random numbers fill memory in its order
    module = graph.owning_module
    if module is not None and GraphLowering.decide_layout_opt(module, is_inference=True):
        _Spreading(graph).run()


def _can_change(node: _Node) -> bool:
    """Does this compute the same of tensors that lie otherwise in memory?"""
    if node.op != "call_function" or node.target is operator.getitem:
        return True
    target = node.target
    return (
        isinstance(target, torch._ops.OpOverload)
        and target.namespace in ("aten", "prims")
        and target.overloadpacket not in _OF_MEMORY
    )


def _is_random(node: _Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


class _Spreading:
    """``before``: values that lie otherwise now, as they were. ``copies``: of what is laid out."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.copies: dict[_Node, _Node] = {}
        self.before: dict[_Node, torch.Tensor] = {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.op == "output":
                for result in node.all_input_nodes:
                    if result in self.before:
                        self._restore(result, [node])
                return
            for position in _LAID_OUT.get(node.target, ()):
                argument = node.args[position]
                if _is_other_picture(argument):
                    if argument not in self.copies:
                        self.copies[argument] = self._laid_out(argument, node)
                    node.update_arg(position, self.copies[argument])
            if node.op == "call_function" and any(n in self.before for n in node.all_input_nodes):
                self._infer(node)

    def _laid_out(self, node: _Node, user: _Node) -> _Node:
        value = node.meta["val"]
        strides = value.clone(memory_format=torch.channels_last).stride()
        with self.graph.inserting_before(user):
            made = _ordered(self.graph, node, strides)
        self.before[made] = value
        return made

    def _infer(self, node: _Node) -> None:
        """Find out whether a result lies otherwise, as arguments do."""
        before = node.meta["val"]
        value = _computed(node)
        if _strides(value) == _strides(before):
            return
        node.meta["val"], self.before[node] = value, before
        if _is_gradient_of_weight(node):  # what it is combined with lies as before
            self._restore(node, list(node.users))

    def _restore(self, node: _Node, users: list[_Node]) -> None:
        """Let ``users`` find the value of ``node`` as it was."""
        value, strides = node.meta["val"], self.before[node].stride()
        made = node
        with self.graph.inserting_before(node.next):
            if not _same_but_for_ones(value, strides):
                made = _ordered(self.graph, made, strides)
            if 1 in value.shape:  # their strides mean nothing, but can be seen
                made = _call(self.graph, aten.as_strided.default, made, value.shape, strides)
        for user in users:
            user.replace_input_with(node, made)


def _is_other_picture(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, _Node) else None
    if not isinstance(value, torch.Tensor) or value.dim() != 4:
        return False
    if not all(isinstance(size, int) for size in value.shape):
        return False
    lies_so: bool = value.is_contiguous(memory_format=torch.channels_last)
    return not lies_so


def _is_gradient_of_weight(node: _Node) -> bool:
    if node.target is not operator.getitem or node.args[1] != 1:
        return False
    (results,) = node.all_input_nodes
    return results.target is aten.convolution_backward.default


def _ordered(graph: torch.fx.Graph, node: _Node, strides: Any) -> _Node:
    from torch._inductor.inductor_prims import force_stride_order  # slow optional dependency

    return _call(graph, force_stride_order, node, strides)


def _call(graph: torch.fx.Graph, target: Any, *args: Any) -> _Node:
    made = graph.call_function(target, args)
    made.meta["val"] = _computed(made)
    return made


def _computed(node: _Node) -> Any:
    """The fake value of a node, from those of its arguments."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda used: used.meta["val"])
    with torch.no_grad():
        return node.target(*args, **kwargs)  # type: ignore[operator]


def _same_but_for_ones(value: torch.Tensor, strides: Sequence[int]) -> bool:
    each = zip(value.shape, value.stride(), strides, strict=True)
    return all(size == 1 or one == other for size, one, other in each)


def _strides(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_strides(part) for part in value]
    return value.stride() if isinstance(value, torch.Tensor) else None
