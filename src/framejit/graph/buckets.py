"""Cuts the graph of a data-parallel model where the gradients for one exchange are complete.

In: a recorded graph, and how much the reducer exchanges at a time (its buckets). Out: parts that
follow each other in the program's order, or nothing. AOTAutograd makes one node of autograd's graph
of what it compiles, so all gradients of one graph come together; those of parts come part by part,
and are exchanged while backward goes on. Next: capture, which notes the parts on the graph.
"""

from __future__ import annotations

import collections
from typing import Any

import torch
import torch.distributed as dist
import torch.fx
from torch.nn.parallel import DistributedDataParallel

from .builder import GraphBuilder
from .metadata import Example, is_leaf, memory_key
from .parts import Part, calls_of, completed, views_late_between

_Node = torch.fx.Node


def bucket_limits(module: Any) -> tuple[int, ...]:
    """Bytes of gradients after which a `DistributedDataParallel` module exchanges them: the first
    times, and the last one for all others."""
    several = tuple(getattr(module, "bucket_bytes_cap_list", ()))
    if several:
        return several
    cap = module.bucket_bytes_cap
    return (dist._DEFAULT_FIRST_BUCKET_BYTES, cap) if module.bucket_bytes_cap_default else (cap,)


def bucketed_parts(builder: GraphBuilder, module: torch.fx.GraphModule) -> list[Part] | None:
    """The parts of a finished graph that AOTAutograd could have whole; None if the gradients are
    exchanged at once, or where it cannot be divided."""
    # A module that was compiled before it became data-parallel runs inside of one.
    around = DistributedDataParallel._active_ddp_module
    limits = builder.bucket_limits or (() if around is None else bucket_limits(around))
    if not limits or not torch.is_grad_enabled() or builder.differentiated:
        return None
    calls = calls_of(builder, module)
    bounds = _bounds(builder, calls, limits) if calls is not None else []
    if calls is None or not bounds:
        return None
    ends = zip([0, *bounds], [*bounds, len(calls)], strict=True)
    found = [calls[start:end] for start, end in ends]
    late = views_late_between(builder, module, found)
    return None if late else completed(builder, module, found)


def _bounds(builder: GraphBuilder, calls: list[_Node], limits: tuple[int, ...]) -> list[int]:
    """Where parts begin, but the first. Backward comes to the end of the program first, and to the
    gradient of a parameter last where it is used first."""
    with torch._C.DisableTorchFunctionSubclass():
        sizes = {
            one.node: tensor.nbytes
            for one, tensor in zip(builder.placeholders, builder.inputs, strict=True)
            if one.differentiable and is_leaf(tensor)
        }
    used: collections.Counter[int] = collections.Counter()
    for index, node in enumerate(calls):
        for parameter in [one for one in node.all_input_nodes if one in sizes]:
            used[index] += sizes.pop(parameter)
    before, size = used.total(), 0
    bounds: list[int] = []
    divisible = _Divisible(builder, calls)
    for index in reversed(range(1, len(calls))):
        size += used[index]
        before -= used[index]
        if size >= limits[min(len(bounds), len(limits) - 1)] and before and divisible.at(index):
            bounds.append(index)
            size = 0
    return bounds[::-1]


class _Divisible:
    """Where a part may begin."""

    def __init__(self, builder: GraphBuilder, calls: list[_Node]):
        self.builder = builder
        self.calls = calls
        place = {node: index for index, node in enumerate(calls)}
        self.last_use = [max([place.get(u, 0) for u in node.users], default=0) for node in calls]
        #: Where memory is written to last.
        self.last_write = {
            memory_key(written): index
            for index, node in enumerate(calls) for written in builder.operations[node].writes
        }  # fmt: skip

    def at(self, index: int) -> bool:
        """Is what goes over from the calls before to those after tensors that none of these write
        to?"""
        crossing = [node for i, node in enumerate(self.calls[:index]) if self.last_use[i] >= index]
        examples = [self.builder.example(node) for node in crossing]
        return all(
            isinstance(one, Example) and self.last_write.get(memory_key(one), -1) < index
            for one in examples
        )
