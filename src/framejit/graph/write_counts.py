"""How often autograd counts that the inputs of a graph are written to, where eager mode does not.

In: a recorded graph. Out: a callable that leaves the count as it was. Batch normalisation in
training writes to its running statistics uncounted; what compiles it puts a copy there, which
counts, and the backward of an earlier call in eager mode would raise: it has saved them.
Used by capture. Next: backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .recording import Recording

_Graph = Callable[..., Any]


def uncounted_inputs(recording: Recording) -> tuple[int, ...]:
    """Positions, among what the finished graph is called with, of the inputs that are written to,
    but by nothing that counts."""
    written = set[int]().union(*[one.written for one in recording.writers if one.uncounted])
    if not written:
        return ()
    written -= set[int]().union(*[one.written for one in recording.writers if not one.uncounted])
    inputs = enumerate(recording.placeholders)
    return tuple(recording.arguments_among({i for i, one in inputs if id(one.example) in written}))


def with_counts(graph: _Graph, uncounted: tuple[int, ...]) -> _Graph:
    """``graph``, which counts no writes to the arguments at these positions."""

    def run(*arguments: Any) -> Any:
        tensors = tuple([arguments[i] for i in uncounted if not arguments[i].is_inference()])
        versions = tuple([tensor._version for tensor in tensors])
        try:
            return graph(*arguments)
        finally:
            torch._C._autograd._unsafe_set_version_counter(tensors, versions)  # type: ignore[attr-defined]

    return run
