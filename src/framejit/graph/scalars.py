"""What a tensor of one element holds, as a computation on the elements of inputs.

In: a node of a graph that is being recorded. Out: an expression in which inputs are loaded by the
names of their nodes, exact to the last bit; nothing where the operations round in a way of their
own, or others may have written to the tensor. So a decision on a step count, which optimizers keep
in tensors, can be made in front of the graph. Used by values. Next: symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .expressions import OPERATIONS, Tree
from .metadata import Example, memory_of_all
from .operation import Operation
from .recording import Recording

_Node = torch.fx.Node

#: Rounded correctly in each precision.
_EXACT: dict[Any, str] = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "truediv",
    operator.neg: "neg", operator.iadd: "add", operator.isub: "sub", operator.imul: "mul",
    operator.itruediv: "truediv", "add_": "add", "sub_": "sub", "mul_": "mul", "div_": "truediv",
    operator.lt: "lt", operator.le: "le", operator.eq: "eq", operator.ne: "ne", operator.gt: "gt",
    operator.ge: "ge",
}  # fmt: skip
#: Computed as Python does where nothing is rounded to single precision.
_DOUBLE: dict[Any, str] = {operator.pow: "pow", torch.pow: "pow", pow: "pow"}
_LISTS: dict[Any, str] = {torch._foreach_add_: "add", torch._foreach_mul_: "mul"}
_SAME = ("detach", "reshape", "to")
#: What whole numbers may be in.
_OF_INTS = ("load", "int", "add", "sub", "mul", "neg")
#: Expressions of more steps than this are not followed.
_MOST_STEPS = 400


class Unknown(Exception):
    """The tensor's number is not known in front of the graph."""


class _Reader:
    """Follows operations back. ``input_of``: what loads the number of an input."""

    def __init__(self, recording: Recording, input_of: Callable[[_Node], Tree | None]) -> None:
        self.recording = recording
        self.input_of = input_of
        self.places = {one.node: i for i, one in enumerate(recording.recorded)}
        self.left = _MOST_STEPS

    def after(self, node: _Node, place: int) -> Tree:
        """What the tensor holds when the operations before ``place`` have run."""
        self.left -= 1
        example = self.recording.example(node)
        if self.left < 0 or not isinstance(example, Example):
            raise Unknown
        for operation in reversed(self.recording.writers):
            at = self.places[operation.node]
            if at < place and operation.content and id(example) in operation.written:
                if at < self.places.get(node, -1):
                    break  # before it was made
                return self._written(operation, node, example, at)
        if node not in self.places:
            loaded = self.input_of(node)
            if loaded is None:
                raise Unknown
            return loaded
        return self._made(self.recording.operations[node], self.places[node])

    def _written(self, operation: Operation, node: _Node, example: Example, at: int) -> Tree:
        call = operation.node
        shares = len(memory_of_all([example])) > 1
        if shares or call.kwargs or not _is_one(example.meta.shape):
            raise Unknown
        target: Any = call.target
        args: tuple[Any, ...] = call.args
        if target in _LISTS or target is torch._foreach_copy_:
            position = self._among(args[0], example)
            other = args[1][position] if isinstance(args[1], (list, tuple)) else args[1]
        elif self.recording.example(args[0]) is example and len(args) == 2:
            other = args[1]
        else:
            raise Unknown
        given = self._operand(other, at, example.meta.dtype)
        if target in ("copy_", "fill_") or target is torch._foreach_copy_:
            return _rounded(given, example.meta.dtype)
        name = _LISTS.get(target) or _EXACT.get(target)
        if name is None:
            raise Unknown
        return _rounded((name, self.after(node, at), given), example.meta.dtype)

    def _among(self, items: Any, example: Example) -> int:
        found = [i for i, one in enumerate(items) if self.recording.example(one) is example]
        if len(found) != 1:
            raise Unknown
        return found[0]

    def _made(self, operation: Operation, place: int) -> Tree:
        node: Any = operation.node
        meta = operation.example.meta
        if node.target in _SAME:
            if not meta.dtype.is_floating_point and self._dtype(node.args[0]) is not meta.dtype:
                raise Unknown
            source: Any = node.args[0]
            return _rounded(self.after(source, place), meta.dtype)
        if node.target in (torch.tensor, torch.scalar_tensor) and _is_one(meta.shape):
            return _rounded(self._operand(node.args[0], place, meta.dtype), meta.dtype)
        if node.target in (torch.zeros, torch.ones) and _is_one(meta.shape):
            number = int(node.target is torch.ones)
            return self._operand(number, place, meta.dtype)
        name = _EXACT.get(node.target) if not node.kwargs else None
        if name is None and meta.dtype is torch.float64:
            name = _DOUBLE.get(node.target)
        if name is None or not _is_one(meta.shape):
            raise Unknown
        dtypes = {self._dtype(one) for one in node.args} - {None}
        if len(dtypes) != 1:
            raise Unknown
        dtype = dtypes.pop()
        operands = [self._operand(one, place, dtype) for one in node.args]
        compared = meta.dtype is torch.bool
        return (name, *operands) if compared else _rounded((name, *operands), meta.dtype)

    def _dtype(self, operand: Any) -> Any:
        if not isinstance(operand, _Node):
            return None
        example = self.recording.example(operand)
        if not isinstance(example, Example):  # a number that varies
            raise Unknown
        return example.meta.dtype

    def _operand(self, operand: Any, place: int, dtype: torch.dtype) -> Tree:
        if isinstance(operand, _Node):
            return self.after(operand, place)
        if dtype is torch.int64 and type(operand) is int:
            return ("int", operand)
        if type(operand) not in (int, float) or not dtype.is_floating_point:
            raise Unknown
        return _rounded(("float", float(operand)), dtype)


def _is_one(shape: Any) -> bool:
    """Is this the shape of one element?"""
    return all(type(size) is int and size == 1 for size in shape)


def _rounded(tree: Tree, dtype: torch.dtype) -> Tree:
    if dtype is torch.float64 or (dtype is torch.int64 and tree[0] in _OF_INTS):
        return tree
    if dtype is not torch.float32:
        raise Unknown
    if tree[0] == "float":
        return ("float", OPERATIONS["single"].compute(tree[1]))
    return ("single", tree)


def number_of(
    recording: Recording, node: _Node, input_of: Callable[[_Node], Tree | None]
) -> Tree | None:
    """The number in the tensor now; None if it is not known in front of the graph."""
    reader = _Reader(recording, input_of)
    try:
        return reader.after(node, len(recording.recorded))
    except Unknown:
        return None
