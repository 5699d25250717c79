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

Graph = Callable[..., Any]

#: Inputs that a graph writes to are copied before it runs up to this many bytes together.
LIMIT = 1 << 20


def can_be_saved(tensor: torch.Tensor) -> bool:
    """Is a copy of the content all that it takes to undo a write?

    Not with gradients: a write also changes the tensor's history.
    """
    overlaps = any(
        step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return not (tensor.requires_grad or overlaps)


#: The same the first time that a graph runs, when a backend's mistakes show.
FIRST_LIMIT = 1 << 28


class Undo:
    """Puts inputs back to what they are now, leaves that require gradients included."""

    def __init__(self, inputs: Sequence[Any], positions: Sequence[int]) -> None:
        self._tensors = [inputs[position] for position in positions]
        size = sum([tensor.nbytes for tensor in self._tensors])
        self.possible = size <= FIRST_LIMIT and all(map(self._can_be_saved, self._tensors))
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            self._copies = [t.detach().clone() for t in self._tensors] if self.possible else []

    @staticmethod
    def _can_be_saved(tensor: torch.Tensor) -> bool:
        return can_be_saved(tensor.detach() if tensor.is_leaf else tensor)

    def run(self) -> None:
        """Do it."""
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            for tensor, copy in zip(self._tensors, self._copies, strict=True):
                tensor.copy_(copy)


def undone(graph: Graph, saved: tuple[int, ...]) -> Graph:
    """``graph``, which leaves the inputs at these positions as they were should it raise."""
    if not saved:
        return graph

    def run(*tensors: Any) -> Any:
        with torch._C._DisableTorchDispatch(), torch.no_grad():  # no mode of the user's sees it
            copies = [tensors[position].clone() for position in saved]
        try:
            return graph(*tensors)
        except Exception:
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                for position, copy in zip(saved, copies, strict=True):
                    tensors[position].copy_(copy)
            raise

    return run
