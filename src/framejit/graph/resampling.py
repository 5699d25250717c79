"""Resizing of images of which AOTAutograd traces something else than eager mode does.

In: what has been recorded. Out: whether there is such an operation, for the sizes of this call.
Next: parts, which has the graph run as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
from torch.nn import functional

from .metadata import Example

if TYPE_CHECKING:
    from .recording import Recording

#: Where each has the factors by which it resizes.
_RESIZING: dict[Any, int] = {
    functional.interpolate: 2, functional.upsample: 2, functional.upsample_nearest: 2,
    functional.upsample_bilinear: 2,
}  # fmt: skip


def is_traced_otherwise(builder: Recording) -> bool:
    """Does an operation resize to nothing, which is an error that only kernels find, or by a factor
    that leaves sizes as they are? Kernels copy then, backward or both ways; what AOTAutograd traces
    instead goes by the factor. (Repeated calls that are one operation have none.)"""
    nodes = [one.node for one in builder.sequence if one.node.target in _RESIZING]
    return any(_is_odd(node, builder.example) for node in nodes)


def _is_odd(node: torch.fx.Node, example: Callable[[torch.fx.Node], Any]) -> bool:
    given = example(node.args[0] if node.args else node.kwargs["input"])  # type: ignore[arg-type]
    made = example(node)
    if not (isinstance(given, Example) and isinstance(made, Example)):
        return False
    if any(size == 0 for size in made.meta.shape[2:]):
        return True
    place = _RESIZING[node.target]
    factor = node.args[place] if len(node.args) > place else node.kwargs.get("scale_factor")
    if factor is None or made.meta.shape != given.meta.shape:
        return False
    factors = factor if isinstance(factor, (list, tuple)) else [factor]
    numbers = [example(one) if isinstance(one, torch.fx.Node) else one for one in factors]
    return any(number != 1 for number in numbers)
