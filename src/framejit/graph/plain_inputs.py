"""Inputs of graphs whose class is the program's: the graph gets tensors that are nothing else.

In: a compiled graph, the positions of such arguments. Out: the same, called with plain tensors on
the same memory, so that no ``__torch_function__`` sees what the graph does. Next room: backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

#: The classes of tensors that operations treat alike.
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def is_of_program(example: Any) -> bool:
    """Is it a tensor of a class that torch does not know?"""
    return type(example) not in PLAIN and isinstance(example, torch.Tensor)


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor as an object of `torch.Tensor`, if only Python code looks at its class;
    gradients reach the original."""
    wraps = is_traceable_wrapper_subclass(tensor)
    return tensor if wraps else tensor.as_subclass(torch.Tensor)


def with_plain(graph: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """The graph, called with plain tensors at these positions."""

    def run(*args: Any) -> Any:
        given = list(args)
        for position in positions:
            given[position] = as_plain(given[position])
        with torch._C.DisableTorchFunctionSubclass():
            return graph(*given)

    return run
