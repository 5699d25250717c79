"""Graphs that compute the same on inputs of the same kind: they can share what was compiled.

In: a finished graph and what it is called with. Out: a description without names, equal for such
graphs; None for what is better compiled for itself: sizes that vary, constants, nested graphs,
inputs that share memory. Used by the compiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
import torch.fx

from . import global_state
from .metadata import is_leaf
from .nested import hooks_around
from .parts import PARTS
from .symbol_nodes import symbolic_inputs

_CONSTANTS = (
    int, float, bool, complex, str, type(None), type(Ellipsis), torch.dtype, torch.device,
    torch.layout, torch.memory_format,
)  # fmt: skip
_CONTAINERS = (tuple, list, dict, slice, torch.Size)
#: Kernels for aligned memory are chosen when a graph is compiled.
_ALIGNMENT = 64


class _Unlike(Exception):
    """Something of which equality is not known."""


def description(module: torch.fx.GraphModule, examples: Sequence[Any]) -> Hashable | None:
    """What the graph computes now, under the settings that torch has now; None: it is unlike all
    others."""
    state = global_state.current()
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True) or hooks_around()
    if not state.cacheable or hooks is not None or module.meta.get(PARTS) is not None:
        return None
    if symbolic_inputs(module) is not None:  # the backend may assume something of sizes
        return None
    try:
        return state, _settings(), _inputs(examples), _nodes(module.graph)
    except _Unlike:
        return None


def _settings() -> tuple[Hashable, ...]:
    """What kernels depend on besides the state that is guarded."""
    matmul = torch.backends.cuda.matmul
    return (
        torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.is_anomaly_enabled(),
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark,
        matmul.allow_fp16_reduced_precision_reduction,
        matmul.allow_bf16_reduced_precision_reduction,
    )  # fmt: skip


def _inputs(examples: Sequence[Any]) -> tuple[Hashable, ...]:
    known = tuple(map(_input, examples))
    memory = {value.untyped_storage()._cdata for value in examples}
    if len(memory) < len(known):
        raise _Unlike
    return known


def _input(value: Any) -> Hashable:
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided:
        raise _Unlike
    if value.device.type == "meta" or value.is_inference():
        raise _Unlike
    return (
        type(value), value.shape, value.stride(), value.storage_offset(), value.dtype,
        value.device, value.requires_grad, is_leaf(value), value._is_view(), value.is_conj(),
        value.is_neg(), value.untyped_storage().nbytes(), value.data_ptr() % _ALIGNMENT,
    )  # fmt: skip


def _nodes(graph: torch.fx.Graph) -> tuple[Hashable, ...]:
    places: dict[torch.fx.Node, int] = {}
    described = []
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            raise _Unlike
        target = None if node.op == "placeholder" else node.target
        described.append(
            (node.op, target, _spelled(node.args, places), _spelled(node.kwargs, places))
        )
        places[node] = len(places)
    return tuple(described)


def _spelled(value: Any, places: dict[torch.fx.Node, int]) -> Hashable:
    if isinstance(value, torch.fx.Node):
        return torch.fx.Node, places[value]
    kind = type(value)
    if kind is float or kind is complex:
        return kind, repr(value)  # -0.0 and nan
    if kind in _CONSTANTS:
        return kind, value
    if kind is slice:
        value = value.start, value.stop, value.step
    elif isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    elif not isinstance(value, _CONTAINERS) or not _is_plain(kind):
        raise _Unlike
    return kind, tuple([_spelled(part, places) for part in value])


def _is_plain(kind: type) -> bool:
    return kind in _CONTAINERS or kind.__module__.startswith("torch.fx")
