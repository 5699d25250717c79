"""Backends 'ts' and 'ofi': the graph as TorchScript, and optimised for inference.

In: a captured graph. Out: a traced TorchScript function. Graphs that TorchScript would freeze
something of (symbolic sizes, changes of torch's global state) run as they are. 'ofi' folds and
fuses for inference; where gradients are needed it does what 'ts' does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from ..graph.nested import hook_gradient, open_hooks
from ..graph.silence import unwarned
from .registry import register_backend


@register_backend
def ts(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """TorchScript, made by tracing the graph; trains, too."""
    traced = _traced(gm, example_inputs)
    return gm.forward if traced is None else _as_tuple(traced)


@register_backend
def ofi(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """TorchScript after ``torch.jit.optimize_for_inference``."""
    if needs_gradients(example_inputs):
        return ts(gm, example_inputs)
    traced = _traced(gm.eval(), example_inputs)
    if traced is None:
        return gm.forward
    with unwarned():
        return _as_tuple(torch.jit.optimize_for_inference(traced))


def needs_gradients(inputs: Sequence[Any]) -> bool:
    """Will somebody differentiate what is computed from these inputs?"""
    return torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in inputs
    )


def is_fixed(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Does the graph do the same each time: only tensors come in, and no global state changes?"""
    if not all(isinstance(value, torch.Tensor) for value in inputs):
        return False
    return not any(
        node.op == "call_function" and not node.users and node.target in _SETTERS
        for node in gm.graph.nodes
    )


_SETTERS = frozenset(
    [torch._C._set_grad_enabled, torch.set_autocast_enabled, torch.set_autocast_dtype,
     open_hooks, hook_gradient]
)  # fmt: skip


def _traced(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    if not is_fixed(gm, inputs):
        return None
    copies = [value.detach().clone().requires_grad_(value.requires_grad) for value in inputs]
    with unwarned():  # TorchScript is deprecated, and Python values are frozen
        return torch.jit.trace(gm, tuple(copies), check_trace=False)


def _as_tuple(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        result = function(*arguments)
        return result if isinstance(result, (tuple, list)) else (result,)

    return run
