"""Inputs of graphs whose class is the program's: the graph gets tensors that are nothing else.

In: a compiled graph, the positions of such arguments. Out: the same, called with plain tensors on
the same memory, so that no ``__torch_function__`` sees what the graph does. Next room: backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: The classes of tensors that operations treat alike.
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def is_of_program(example: Any) -> bool:
    """Is it a tensor of a class that torch does not know?"""
    return type(example) not in PLAIN and isinstance(example, torch.Tensor)


def as_plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor as an object of `torch.Tensor`; gradients reach the original."""
    return tensor.as_subclass(torch.Tensor)


def with_plain(graph: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """The graph, called with plain tensors at these positions; tensors made of others, of which
    operations ask what they do, are not among them."""

    def run(*args: Any) -> Any:
        if positions:
            given = list(args)
            for position in positions:
                given[position] = as_plain(given[position])
            args = tuple(given)
        with torch._C.DisableTorchFunctionSubclass():
            return graph(*args)

    return run
