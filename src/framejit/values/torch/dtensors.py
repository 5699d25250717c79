"""Distributed tensors: what makes and redistributes them is a node of the graph.

In: calls of the functions of `torch.distributed.tensor`. Out: nodes that hold meshes and
placements; backends trace the collectives in them. Next room: graph.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.exc import GraphBreak
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
#: They send parts to the processes, by operations that work in place.
_SENDING = frozenset(("distribute_tensor", "distribute_module"))


def _is_of(function: Any, home: str, names: frozenset[str]) -> bool:
    is_function = type(function) is types.FunctionType
    return is_function and function.__module__ == home and function.__qualname__ in names


def _is_node(function: Any) -> bool:
    return _is_of(function, _HOME, _NODES)


def _is_sending(function: Any) -> bool:
    return _is_of(function, "torch.distributed.tensor", _SENDING)


def _node(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return holding_call(space, function, args, kwargs)

    return handler


def _sending(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        raise GraphBreak("FJ0131", f"{function.__name__}() sends parts to the processes")

    return handler


LOOKASIDE_RULES += [(_is_node, _node), (_is_sending, _sending)]
