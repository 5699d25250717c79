"""Graphs that can be run again as plain Python although they write to inputs.

In: a graph and the inputs it writes to. Out: a callable that puts back what was written if the
graph raises: the program then runs again from the same state, with its own ``except`` and its own
side effects. Only graphs with an operation that may raise on data keep copies of what they write,
and only of small tensors (running statistics, counters); see docs/decisions. The first time that a
graph with gradients in it runs, larger ones are kept as well. Next: codegen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .metadata import is_leaf

Graph = Callable[..., Any]

#: Inputs that a graph writes to are copied before it runs up to this many bytes together.
LIMIT = 1 << 20


def can_be_saved(tensor: torch.Tensor) -> bool:
    """Is a copy of the content all that it takes to undo a write?

    Not with gradients: a write also changes the tensor's history. A tensor made of others has no
    content of its own.
    """
    if is_traceable_wrapper_subclass(tensor):
        return False
    overlaps = any(
        step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return not (tensor.requires_grad or overlaps)


#: The same the first time that a graph runs, when a backend's mistakes show.
FIRST_LIMIT = 1 << 28


def can_be_undone(tensors: Sequence[torch.Tensor]) -> bool:
    """May copies of all of these be kept the first time? Leaves that require gradients, too."""
    kept = [tensor.detach() if is_leaf(tensor) else tensor for tensor in tensors]
    return sum([tensor.nbytes for tensor in kept]) <= FIRST_LIMIT and all(map(can_be_saved, kept))


class Copies:
    """What is in tensors now."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors = tensors
        with torch._C._DisableTorchDispatch(), torch.no_grad():  # no mode of the user's sees it
            self._copies = [tensor.detach().clone() for tensor in tensors]
        counted = [tensor for tensor in tensors if not tensor.is_inference()]
        #: How often they were written to, as autograd counts.
        self._versions = {tensor: tensor._version for tensor in counted}

    def put_back(self) -> None:
        """Let it be in them again."""
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            for tensor, copy in zip(self._tensors, self._copies, strict=True):
                tensor.copy_(copy)
        counted = tuple(self._versions), tuple(self._versions.values())
        torch._C._autograd._unsafe_set_version_counter(*counted)  # type: ignore[attr-defined]


def undone(graph: Graph, saved: tuple[int, ...]) -> Graph:
    """``graph``, which leaves the inputs at these positions as they were should it raise."""
    if not saved:
        return graph

    def run(*tensors: Any) -> Any:
        copies = Copies([tensors[position] for position in saved])
        try:
            return graph(*tensors)
        except Exception:
            copies.put_back()
            raise

    return run
