"""Dropout that drops nothing returns its very operand.

In: an operation and its arguments. Out: the operand, where that is what the operation returns, or
a view of it.
Torch's Python form of the operator, which runs when sizes are symbols, and AOTAutograd make a copy
instead. Used by propagation, and by the backends.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx
from torch.nn import functional

_DROPOUTS = (
    functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d,
    functional.alpha_dropout, functional.feature_alpha_dropout, torch.dropout,
    torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout,
)  # fmt: skip
#: Those that add a dimension for the batch where there is none, and how many they want.
_OF_BATCHES = {functional.dropout1d: 3, functional.dropout3d: 5}


def operand_of_idle(target: Any, args: Any, kwargs: Any) -> Any:
    """What an idle dropout is given, and returns (`returned`); None: it is none."""
    if not any(target is dropout for dropout in _DROPOUTS) or not _is_idle(*args, **kwargs):
        return None
    operand = args[0] if args else kwargs["input"]
    if target is functional.dropout1d and _known(operand).dim() not in (2, 3):
        return None  # which it refuses
    return operand


def returned(target: Any, operand: Any, args: Any, kwargs: Any) -> Any:
    """What an idle dropout returns: its operand, or a view of it where it has added a dimension for
    the batch and taken it away again, not in place. A node of such a view for a node."""
    in_place = kwargs.get("inplace", len(args) > 3 and args[3])
    batched = target not in _OF_BATCHES or _known(operand).dim() == _OF_BATCHES[target]
    if batched or in_place:
        return operand
    if not isinstance(operand, torch.fx.Node):
        return operand.unsqueeze(0).squeeze(0)
    graph = operand.graph
    batch = graph.call_method("unsqueeze", (operand, 0))
    return graph.call_method("squeeze", (batch, 0))


def _is_idle(
    input: Any, p: Any = 0.5, training: Any = None, inplace: bool = False, train: Any = True
) -> bool:
    drops = train if training is None else training
    p = _known(p)
    if type(drops) is not bool or type(p) not in (int, float, torch.SymInt, torch.SymFloat):
        return False
    if not drops:
        return bool(0 <= p <= 1)
    return type(p) in (int, float) and p == 0


def _known(value: Any) -> Any:
    """The example of a node."""
    return value.meta["example_value"] if isinstance(value, torch.fx.Node) else value
