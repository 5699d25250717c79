"""Distributed tensors: what makes and redistributes them is a node of the graph.

In: calls of the functions of `torch.distributed.tensor`. Out: nodes that hold meshes and
placements; backends trace the collectives in them. Next room: graph.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.core.base import Args, Kwargs
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDE_RULES, Handler, Result
from framejit.values.core.space import Space
from framejit.values.torch.opaque import holding_call

#: Where the class is; slow to import.
_HOME = "torch.distributed.tensor._api"
#: They are functions of autograd with collective operations in them.
_NODES = frozenset(
    f"DTensor.{name}" for name in ("from_local", "to_local", "redistribute", "full_tensor")
)
#: They fill the part of this process. What draws random numbers keeps those of all processes apart
#: by a state of torch's own.
_MAKING = frozenset(("zeros", "ones", "empty", "full"))
#: They send parts to the processes, by operations that work in place.
_SENDING = frozenset(("distribute_tensor", "distribute_module"))


def _is_of(function: Any, home: str, names: frozenset[str]) -> bool:
    is_function = type(function) is types.FunctionType
    return is_function and function.__module__ == home and function.__qualname__ in names


def _is_node(function: Any) -> bool:
    return _is_of(function, _HOME, _NODES)


def _is_making(function: Any) -> bool:
    return _is_of(function, "torch.distributed.tensor", _MAKING)


def _is_sending(function: Any) -> bool:
    return _is_of(function, "torch.distributed.tensor", _SENDING)


def _node(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return holding_call(space, function, args, kwargs)

    return handler


def _making(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        named = dict(kwargs)
        leaf = space.truth(named.pop("requires_grad", ConstantValue(False)))
        if leaf or named.get("device_mesh", ConstantValue(None)).realize().is_none():
            raise GraphBreak("FJ0131", f"{function.__name__}() of a leaf, or of the current mesh")
        return holding_call(space, function, args, named)

    return handler


def _sending(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        raise GraphBreak("FJ0131", f"{function.__name__}() sends parts to the processes")

    return handler


LOOKASIDE_RULES += [(_is_node, _node), (_is_making, _making), (_is_sending, _sending)]
