"""Distributed tensors: what makes and redistributes them is a node of the graph.

In: calls of the functions of `torch.distributed.tensor`. Out: nodes that hold meshes and
placements; backends trace the collectives in them. Next room: graph.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.values.core.base import Args, Kwargs
from framejit.values.core.registry import LOOKASIDE_RULES, Handler, Result
from framejit.values.core.space import Space
from framejit.values.torch.opaque import holding_call

#: Where the class is; slow to import.
_HOME = "torch.distributed.tensor._api"
#: They are functions of autograd with collective operations in them.
_NODES = frozenset(
    f"DTensor.{name}" for name in ("from_local", "to_local", "redistribute", "full_tensor")
)


def _is_node(function: Any) -> bool:
    is_function = type(function) is types.FunctionType
    return is_function and function.__module__ == _HOME and function.__qualname__ in _NODES


def _node(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return holding_call(space, function, args, kwargs)

    return handler


LOOKASIDE_RULES.append((_is_node, _node))
