"""What users say about the dimensions of a tensor before it is first seen to change.

In: `mark_dynamic` and its relatives. Out: attributes on the tensor, the same that PyTorch's own
marks leave, so that either kind works with either compiler. Read by policy.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import torch


class Range(NamedTuple):
    """Bounds of one marked dimension."""

    dim: int
    min: int | None
    max: int | None


def mark_dynamic(
    tensor: torch.Tensor,
    index: int | Collection[int],
    *,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Say that the size of ``tensor`` in dimension ``index`` varies: it is symbolic at once.

    ``min`` and ``max`` bound it (both included). Compiling code that allows one size only raises
    `exc.MarkContradicted`. Sizes 0 and 1 are compiled for on their own, as always. Raises TypeError
    for what is no tensor, IndexError for a dimension that it does not have, ValueError for bounds
    that its size is outside of.
    """
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and type(bound) is not int:
            raise TypeError(f"mark_dynamic: {name} must be an int or None, not {bound!r} [FJ0212]")
        if bound is not None and bound < 0:
            raise ValueError(f"mark_dynamic: {name} must be at least 0, not {bound} [FJ0212]")
    if min is not None and max is not None and min > max:
        raise ValueError(f"mark_dynamic: min={min} is greater than max={max} [FJ0212]")
    for dim in _dims(tensor, index, "mark_dynamic"):
        size = tensor.shape[dim]
        if (min is not None and size < min) or (max is not None and size > max):
            low, high = "" if min is None else f"{min} <= ", "" if max is None else f" <= {max}"
            raise ValueError(
                f"mark_dynamic: the size of dimension {dim} is {size}, outside of {low}size{high}"
                " [FJ0212]"
            )
        _add(tensor, "_dynamo_dynamic_indices", dim)
        _add(tensor, "_dynamo_dynamic_range", Range(dim, min, max))
        # PyTorch's own mark makes the three together, where the first is not there.
        tensor.__dict__.setdefault("_dynamo_hint_overrides", {})


def maybe_mark_dynamic(tensor: torch.Tensor, index: int | Collection[int]) -> None:
    """Like `mark_dynamic`, but code that allows one size only is compiled for that size."""
    for dim in _dims(tensor, index, "maybe_mark_dynamic"):
        _add(tensor, "_dynamo_weak_dynamic_indices", dim)


def mark_static(tensor: torch.Tensor, index: int | Collection[int] | None = None) -> None:
    """Say that each size of dimension ``index`` (None: of every dimension) gets its own code."""
    if index is None and isinstance(tensor, torch.Tensor):
        index = range(tensor.dim())
    for dim in _dims(tensor, index, "mark_static"):
        _add(tensor, "_dynamo_static_indices", dim)


def _dims(tensor: Any, index: Any, function: str) -> list[int]:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"{function}: the first argument must be a tensor, not {type(tensor)!r} [FJ0212]"
        )
    given = list(index) if isinstance(index, Collection) else [index]
    for dim in given:
        if type(dim) is not int:
            raise TypeError(
                f"{function}: index must be a dimension or several, not {index!r} [FJ0212]"
            )
        if not 0 <= dim < tensor.dim():
            raise IndexError(
                f"{function}: a tensor of {tensor.dim()} dimensions has no dimension {dim} [FJ0212]"
            )
    return given


def _add(tensor: torch.Tensor, name: str, item: Any) -> None:
    known = tensor.__dict__.get(name)
    if known is None:
        known = tensor.__dict__[name] = set()
    known.add(item)
    tensor.__dict__["_has_dynamo_dim_marking"] = True  # PyTorch looks at nothing without it
