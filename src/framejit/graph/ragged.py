"""Sizes of ragged dimensions (``torch.jagged``): they stand for the offsets that divide a tensor.

Two are equal if the offsets are one tensor, and nothing is computed with them but multiples. They
are no symbols: a fake tensor's offsets have one as real ones do. Next: static_mode, fakes.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

#: No real tensor has got as far.
_numbers = itertools.count(1 << 40)


@functools.cache
def _node_class() -> Any:
    from torch.nested._internal.nested_int import NestedIntNode  # imports sympy

    class Node(NestedIntNode):
        """One whose multiples may be by sizes that vary: those are strides."""

        def mul(self, other: Any) -> Any:
            factor: Any = other.constant_int() if other.is_constant() else torch.SymInt(other)
            return Node(self.t_id, self.coeff * factor)

    return Node


def ragged_size() -> torch.SymInt:
    """One that is equal to no other."""
    return torch.SymInt(_node_class()(next(_numbers), 1))


def is_ragged_size(number: Any) -> bool:
    """Is it such a size, or a multiple of one?"""
    return type(number) is torch.SymInt and number.node.is_nested_int()


def is_ragged_class(cls: type) -> bool:
    """Is it torch's class of tensors with such a size?"""
    return cls.__module__ == "torch.nested._internal.nested_tensor"


def sizes_stay_unwritten() -> None:
    """In a graph that is traced: from here on what is computed of sizes becomes no operation unless
    one needs it. For ragged sizes there is none: offsets are where they come from."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode: Any = get_proxy_mode()
    if mode is not None:
        mode.tracer.enable_thunkify = True


@contextlib.contextmanager
def traceable(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Iterator[None]:
    """A block in which a graph with ragged inputs may be traced."""
    if not any(isinstance(one, torch.Tensor) and one.is_nested for one in inputs):
        yield
        return
    first = next(node for node in module.graph.nodes if node.op != "placeholder")
    with module.graph.inserting_before(first):
        node = module.graph.call_function(sizes_stay_unwritten)
    try:
        yield
    finally:
        module.graph.erase_node(node)
