"""What a program asks about its process groups, and its collectives.

In: calls of `torch.distributed`. Most of what asks about ranks, sizes and meshes is Python that is
traced through; here is what its objects in C++ answer, with a guard on the answer.
Next room: graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from framejit import directives
from framejit.exc import GraphBreak
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import PURE_TYPES, ConstantValue, wrap_identity
from framejit.values.core.registry import LOOKASIDES, Result, lookaside, wraps
from framejit.values.core.space import Space


class Asked(NamedTuple):
    """The answer of a process group to one question, which stays the same as long as it lives."""

    name: str

    def __repr__(self) -> str:
        return f"{self.name} of "

    def __call__(self, group: Any) -> Any:
        answer = getattr(group, self.name)
        return answer() if callable(answer) else answer


def _answers(name: str, question: Callable[..., Any]) -> None:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        group = args[0].realize()
        if group.source is None or group.obj is None or len(args) > 1 or kwargs:
            raise GraphBreak("FJ0136", f"{name} of a {group.describe()}")
        return space.load(group.source.child("call", Asked(name)), Asked(name)(group.obj))

    LOOKASIDES[question] = handler


if dist.is_available():
    directives.mark(DeviceMesh.__getitem__, "disable")  # it makes a mesh
    for _name in ("rank", "size", "name", "_get_backend_name"):
        _answers(_name, getattr(dist.ProcessGroup, _name))
    for _name in ("group_name", "group_desc", "bound_device_id"):
        _answers(_name, getattr(dist.ProcessGroup, _name).fget)
    PURE_TYPES.add(dist.ReduceOp.RedOpType)
    wraps(dist.ReduceOp.RedOpType)(wrap_identity)


@lookaside(dist.is_available)
def _is_available(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(dist.is_available())
