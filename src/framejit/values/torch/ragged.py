"""Sizes of ragged dimensions, as the program sees them: ``x.shape[1]`` of a jagged tensor.

In: what a tensor's metadata has in the place of a number. Out: a value that graphs and generated
code ask the tensor for, and that is compared at capture: which offsets are one tensor is guarded.
Next: wrappers.
"""

from __future__ import annotations

from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.ragged import is_ragged_class, is_ragged_size
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import ConstantValue, new_number
from framejit.values.core.registry import COMPARE, Result
from framejit.values.core.space import Space


class RaggedSize(Declared):
    """The size of ``tensor`` in dimension ``dim``; ``number``: what it is for fakes."""

    tensor: Any
    dim: int
    number: Any
    kind = torch.SymInt
    own_operators = True

    def describe(self) -> str:
        return "ragged size"

    def to_fx(self, space: Space) -> Any:
        """The graph node that asks the tensor."""
        target = torch.ops.aten.sym_size.int
        node = self.tensor.proxy(space)
        return space.builder.record(target, (node, self.dim), self.number)

    def getattr(self, space: Space, name: str) -> Result:
        raise GraphBreak("FJ0104", f"attribute {name!r} of a {self.describe()}")

    def hash_key(self, space: Space) -> Any:
        raise GraphBreak("FJ0104", f"a {self.describe()} is a key")

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result:
        raise GraphBreak("FJ0104", f"`{op}` of a {self.describe()}")

    def is_known(self, space: Space) -> bool:
        """Has an existing tensor such a size? Then it is guarded which offsets are one tensor."""
        return any(
            size.node.nested_int() == self.number.node.nested_int()
            for one in _existing(space) for size in one.example.meta.shape if is_ragged_size(size)
        )  # fmt: skip

    def compare_op(self, space: Space, op: str, other: Value) -> Value:
        number = other.number if isinstance(other, RaggedSize) else None
        if other.is_constant:
            number = other.as_python()
        if type(number) not in (int, torch.SymInt):
            raise GraphBreak("FJ0104", f"`{op}` of a {self.describe()} and a {other.describe()}")
        if isinstance(other, RaggedSize) and not (self.is_known(space) and other.is_known(space)):
            if not self.number == other.number:  # some time it may be
                raise GraphBreak("FJ0104", f"`{op}` of sizes for offsets that are made here")
        try:
            return ConstantValue(bool(COMPARE[op](self.number, number)))
        except ValueError as error:  # which is larger depends on the offsets
            raise GraphBreak("FJ0104", f"`{op}` of a {self.describe()}: {error}") from error


def sizes_of(space: Space, tensor: Any) -> TupleValue:
    """What ``tensor.shape`` is."""
    sizes = [size_of(space, tensor, dim) for dim in range(len(tensor.metadata().shape))]
    return TupleValue(sizes, None, torch.Size)


def size_of(space: Space, tensor: Any, dim: int) -> Value:
    """What ``tensor.size(dim)`` is."""
    size = tensor.metadata().shape[dim]
    return RaggedSize(tensor, dim, size) if is_ragged_size(size) else new_number(space, size)


def check_offsets(space: Space, parts: dict[str, Any]) -> None:
    """Guard whether the offsets of an existing tensor are those of another one."""
    divides = parts.get("_lengths", parts["_offsets"])
    for other in _existing(space):
        for name in ("_lengths", "_offsets"):
            if getattr(other.obj, name, None) is not None:
                space.is_(other.part(space, name), divides)


def _existing(space: Space) -> list[Any]:
    """The existing tensors with such a size that were looked at."""
    known = space.where_known().values()
    return [one for one in known if one is not None and is_ragged_class(one.python_type())]


def ragged_form(function: Any, args: Args, kwargs: Kwargs) -> Any:
    """What the class of such tensors does in the place of a function; else the function itself."""
    if function is not torch._C._nn.scaled_dot_product_attention:
        return function
    if not any(is_ragged_class(arg.python_type()) for arg in (*args, *kwargs.values())):
        return function
    from torch.nested._internal import sdpa  # slow; loaded by then

    return sdpa.jagged_scaled_dot_product_attention


def ragged_parts(tensor: Any) -> dict[int, frozenset[int]]:
    """By identity: the parts of an existing tensor whose size in these dimensions is another one in
    each batch."""
    limits = tensor._min_seqlen_tensor, tensor._max_seqlen_tensor
    lengths = {id(one): frozenset((0,)) for one in limits if one is not None}
    return {id(tensor._values): frozenset((tensor._ragged_idx - 1,)), **lengths}
