"""Dropout that drops nothing returns its very operand.

In: an operation and its arguments. Out: the operand, where that is what the operation returns.
Torch's Python form of the operator, which runs when sizes are symbols, and AOTAutograd make a copy
instead. Used by propagation, and by the backends.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

_DROPOUTS = (
    functional.dropout, functional.dropout2d, functional.dropout3d, functional.alpha_dropout,
    functional.feature_alpha_dropout, torch.dropout, torch.feature_dropout, torch.alpha_dropout,
    torch.feature_alpha_dropout,
)  # fmt: skip


def operand_of_idle(target: Any, args: Any, kwargs: Any) -> Any:
    """What an idle dropout returns; None: it is none."""
    if not any(target is dropout for dropout in _DROPOUTS) or not _is_idle(*args, **kwargs):
        return None
    return args[0] if args else kwargs["input"]


def _is_idle(
    input: Any, p: Any = 0.5, training: Any = None, inplace: bool = False, train: Any = True
) -> bool:
    known = type(p) in (int, float) and 0 <= p <= 1
    return known and ((train if training is None else training) is False or p == 0)
