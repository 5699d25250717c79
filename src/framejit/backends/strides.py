"""Writes that leave the strides of what they write to, also where AOTAutograd traces them.

In: a graph and the positions of nodes that write to tensors whose elements do not lie in order.
Out: the graph with these nodes run in a mode. AOTAutograd puts the result of the operation without
a write (`masked_fill`) in place of what was written to (`masked_fill_`), whatever strides that
has. Here a copy is written to, and copied back: that leaves strides alone. Next: dividing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from ..graph.metadata import in_order
from ..graph.observer import Unwrapped, tensors_in, written
from ..graph.propagation import invoke


class _Copied(Unwrapped, TorchDispatchMode):
    """Operators write to copies."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        turned = {id(tensor): tensor for tensor in _turned(func, args, kwargs)}
        if not turned:
            return func(*args, **kwargs)
        orders = {key: _order(func, tensor) for key, tensor in turned.items()}
        copies = {key: _permuted(tensor.clone(), orders[key]) for key, tensor in turned.items()}
        given, named = tree_map(lambda value: copies.get(id(value), value), (args, kwargs))
        result = func(*given, **named)
        for key, tensor in turned.items():
            order = orders[key]
            back = [order.index(dim) for dim in range(len(order))]
            tensor.copy_(_permuted(copies[key], back))
        originals = {id(copies[key]): tensor for key, tensor in turned.items()}
        return tree_map(lambda value: originals.get(id(value), value), result)


def _turned(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that the operator writes content to and whose elements do not lie in order."""
    if not isinstance(func, torch._ops.OpOverload) or not func._schema.is_mutable:
        return []
    if torch.Tag.inplace_view in func.tags or func is torch.ops.aten.copy_.default:
        return []
    found = tensors_in(*written(func, args, kwargs))
    return [one for one in found if not in_order(one.shape, one.stride())]


def _order(func: torch._ops.OpOverload, tensor: torch.Tensor) -> list[int]:
    """The dimensions as the operator meets them: random numbers alone fill memory in its order."""
    dims = list(range(tensor.dim()))
    fills = sum("Tensor" in str(argument.type) for argument in func._schema.arguments) == 1
    if torch.Tag.nondeterministic_seeded not in func.tags or not fills:
        return dims
    steps = tensor.stride()
    if any(isinstance(step, torch.SymInt) for step in steps):
        return dims
    return sorted(dims, key=lambda dim: -steps[dim])


def _permuted(tensor: torch.Tensor, order: list[int]) -> torch.Tensor:
    return tensor if order == sorted(order) else tensor.permute(order)


def _keeping(target: Any) -> Callable[..., Any]:
    """The call of a node, in the mode."""

    @functools.wraps(getattr(torch.Tensor, target) if isinstance(target, str) else target)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _Copied():
            return invoke(target, args, kwargs)

    return run


def keep_strides(gm: torch.fx.GraphModule, positions: Iterable[int]) -> None:
    """Let these nodes of a graph leave strides alone."""
    nodes = list(gm.graph.nodes)
    writing = [node for node in map(nodes.__getitem__, positions) if node.op.startswith("call")]
    for node in writing:
        node.target, node.op = _keeping(node.target), "call_function"
    if writing:
        gm.recompile()
