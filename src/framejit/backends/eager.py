"""Backend 'eager': runs the captured graph operation by operation, as PyTorch would.

In: a graph. Out: its generated Python function. For tests and for finding out whether a problem
comes from the capture or from a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .registry import register_backend


@register_backend(tags=("debug",))
def eager(gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """Run the graph with PyTorch's own operators."""
    return gm.forward


def _run_module(
    parts: Mapping[str, memoryview], module: Callable[[], torch.fx.GraphModule]
) -> Callable[..., Any]:
    """From a package: the saved graph is all there is."""
    return module().forward


eager.serialize = lambda compiled, gm: {}  # type: ignore[attr-defined]
eager.deserialize = _run_module  # type: ignore[attr-defined]
