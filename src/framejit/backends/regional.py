"""Graphs with regions for the backends that take them.

In: a flat graph, and a function that compiles graphs with a backend. Out: what the backend makes of
the graph in which repeated calls are calls of one subgraph; None if there are no such calls, or if
the backend refuses them: then it gets the flat graph. Used by compile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.fx
from torch._higher_order_ops import invoke_subgraph

from ..graph.builder import WRITES
from ..graph.nested import hooks_around
from ..graph.outlining import outlined
from ..graph.repeats import Region
from .strides import keep_strides

#: Told of a graph's regions when they are compiled; or what a backend raises for them.
Told = Callable[[list[Region], Exception | None], None]


def compile_with_regions(
    compile_graph: Callable[[torch.fx.GraphModule], Any],
    gm: torch.fx.GraphModule,
    find_regions: Callable[[], list[Region]],
    told: Told | None,
) -> Any:
    """``compile_graph`` of ``gm`` with its regions, or None.

    Hooks on saved tensors see what single operations save, in the order in which they do: under
    them there are no regions.
    """
    regions = [] if hooks_around() is not None else find_regions()
    if not regions:
        return None
    module = outlined(gm, regions)
    for part in module.children():
        if isinstance(part, torch.fx.GraphModule):
            keep_strides(part, part.meta.get(WRITES, ()))
    try:
        with _writing_nothing():
            compiled = compile_graph(module)
    except Exception as error:
        if told is not None:
            told(regions, error)
        return None
    # Run as it is, a graph with regions has no gradients.
    if compiled is module or getattr(compiled, "__self__", None) is module:
        return gm.forward
    if told is not None:
        told(regions, None)
    return compiled


@contextlib.contextmanager
def _writing_nothing() -> Iterator[None]:
    """Spare the operator to look, by tracing the subgraph again for each call of it in training,
    whether it writes to its arguments: a region does not."""
    before = invoke_subgraph._supports_training_input_mutation
    invoke_subgraph._supports_training_input_mutation = True
    try:
        yield
    finally:
        invoke_subgraph._supports_training_input_mutation = before
