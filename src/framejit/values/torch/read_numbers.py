"""Python numbers that are read out of tensors in the graph, as optimizers do with step counts.

In: a tensor of one element, and arithmetic on the numbers. Out: `ReadNumber`s, which the graph
computes in double precision, as Python does; beside tensors, operands with the dtype that a Python
number has there. Generated code makes the real number. Next room: graph.
"""

from __future__ import annotations

import operator
import os
import types
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Declared, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result
from framejit.values.core.space import Space
from framejit.values.objects.functions import call_polyfill
from framejit.values.torch.tensors import TensorValue, graph_call, graph_call_method, tensor_call

_DOUBLE = ConstantValue(torch.float64)
#: What double precision computes as Python does with floats.
_ARITHMETIC = frozenset([
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos,
])  # fmt: skip
_COMPARISONS = frozenset([
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
])  # fmt: skip
_PARTIAL = frozenset([operator.pow, operator.truediv, operator.floordiv, operator.mod])
#: Where torch's optimizers are.
_OPTIMIZERS = os.path.join(os.path.dirname(torch.optim.__file__), "")
#: Greater ints need not be numbers of double precision.
_EXACT = 1 << 53


class ReadNumber(Declared):
    """A float, or the outcome of a comparison of some; ``tensor`` has it in the graph."""

    tensor: TensorValue
    is_read = True

    @property
    def step(self) -> int:
        """The step in which the graph made it."""
        return self.tensor.step

    def python_type(self) -> type:
        return bool if self.tensor.metadata().dtype is torch.bool else float

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__class__":
            return space.class_value(self.python_type())
        raise GraphBreak("FJ0102", f"{name!r} of a number that is read out of a tensor")

    def expect(self, space: Space, truth: bool) -> bool:
        return self.tensor.expect(space, truth)

    def truth(self, space: Space) -> bool:
        return self.tensor.truth(space)

    def to_fx(self, space: Space) -> Any:
        raise GraphBreak("FJ0121", "a number out of a tensor is passed to a torch operation")


def read_number(space: Space, tensor: TensorValue) -> Value | None:
    """``tensor.item()``; None if Python has to do that."""
    known = tensor.metadata()
    if not known.dtype.is_floating_point or space.transforms or any(s != 1 for s in known.shape):
        return None
    if known.requires_grad:
        tensor = tensor_call(space, "detach", tensor)
    # The tensor may change afterwards, the number does not.
    made = tensor_call(space, "to", tensor, _DOUBLE, copy=ConstantValue(True))
    return ReadNumber(tensor_call(space, "reshape", made, TupleValue([])) if known.shape else made)


def compute_read(space: Space, function: Any, operands: list[Value]) -> Value | None:
    """``function`` of numbers some of which are read; None if the graph cannot compute it."""
    if function not in _ARITHMETIC and function not in _COMPARISONS:
        return None
    for operand in operands:
        kind = operand.python_type()
        if kind is int and operand.is_constant and abs(operand.as_python()) > _EXACT:
            return None
        if kind not in (float, int):
            return None
    if not _is_defined(space, function, operands):
        return None
    tensors = [one.tensor if isinstance(one, ReadNumber) else one for one in operands]
    return ReadNumber(tensor_call(space, function, *tensors))


def _is_defined(space: Space, function: Any, operands: list[Value]) -> bool:
    """Is the result a float, whatever the number? Torch's optimizers see to that themselves; in
    other code it may be complex, or an error."""
    line = space.running.user_line()
    if function not in _PARTIAL or (line is not None and line[0].startswith(_OPTIMIZERS)):
        return True
    known = operands[0 if function is operator.pow else 1]
    number = known.as_python() if known.is_constant else 0
    return 0 < number <= 1 if function is operator.pow else number != 0


def scaled(space: Space, name: str, operands: list[Value], factor: Value) -> Result:
    """``addcdiv`` and its like with a number that is read, or that they read out of a tensor."""
    if isinstance(factor, TensorValue):
        known = factor.metadata()
        number = None if known.requires_grad or known.shape else read_number(space, factor)
    else:
        number = factor
    tensors = [one for operand in operands for one in _tensors(operand)]
    dtypes = {tensor.metadata().dtype for tensor in tensors}
    differentiated = torch.is_grad_enabled() and any(t.metadata().requires_grad for t in tensors)
    if number is None or differentiated or len(dtypes) > 1 or not dtypes.pop().is_floating_point:
        raise GraphBreak("FJ0102", f"Tensor.{name}() reads a number out of a tensor")
    return call_polyfill(space, getattr(polyfills, name), [*operands, number])


def beside_tensors(space: Space, target: Any, args: list[Value]) -> list[Value]:
    """The operands of an operation on tensors, with tensors for the numbers that are read."""
    made = list(args)
    for position, value in enumerate(args):
        numbers = _read_among(value)
        if not numbers:
            continue
        kinds = _kinds(target, position)
        others = [_tensors(other) for other in args if other is not value]
        if value.is_read and {"number", "Tensor"} <= kinds:
            made[position] = _operand(space, value, [one for other in others for one in other])
        elif {"List[number]", "List[Tensor]"} <= kinds:
            parts = [_operand(space, number, [other[i] for other in others if i < len(other)])
                     for i, number in enumerate(numbers)]  # fmt: skip
            made[position] = ListValue(parts)
        elif {"List[number]", "Tensor"} <= kinds:
            parts = [_operand(space, number, []) for number in numbers]
            made[position] = graph_call(space, torch.stack, [ListValue(parts)], {})
    return made


def _read_among(value: Value) -> list[Value]:
    """A read number, or numbers in a list of which some are."""
    if value.is_read:
        return [value]
    numbers = [item.realize() for item in value.items] if isinstance(value, ListValue) else []
    return numbers if any(number.is_read for number in numbers) else []


def _tensors(value: Value) -> list[TensorValue]:
    """An operand that is a tensor, or the tensors of a list."""
    value = value.realize()
    items = value.items if isinstance(value, (ListValue, TupleValue)) else [value]
    realized = [item.realize() for item in items]
    return [item for item in realized if isinstance(item, TensorValue)]


def _kinds(target: Any, position: int) -> set[str]:
    """What the operation takes as this argument."""
    if isinstance(target, types.BuiltinFunctionType) and target.__module__ == "_operator":
        return {"number", "Tensor"}
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    given = [schema.arguments for schema in schemas]
    kinds = {str(arguments[position].type) for arguments in given if len(arguments) > position}
    # Only that a second operand may be either means the same for both.
    return kinds if position == 1 else kinds - {"number"}


def _operand(space: Space, number: Value, others: list[TensorValue]) -> Value:
    """The tensor for a number beside ``others``."""
    dtypes = {_dtype_beside(other.metadata()) for other in others} or {torch.float64}
    dtype = dtypes.pop()
    if dtypes or dtype not in (torch.float32, torch.float64):
        raise GraphBreak("FJ0121", "a number out of a tensor beside scalars of other dtypes")
    if not isinstance(number, ReadNumber):
        return graph_call(space, torch.scalar_tensor, [number], {"dtype": ConstantValue(dtype)})
    if dtype is torch.float64:
        return number.tensor
    return graph_call_method(space, "to", [number.tensor, ConstantValue(dtype)], {})


def _dtype_beside(known: Any) -> torch.dtype:
    """Which tensor without dimensions computes, beside such a tensor, as a Python float does."""
    if known.shape and (known.dtype.is_floating_point or known.dtype.is_complex):
        return torch.float64  # the dtype of its elements is the result's
    return torch.result_type(torch.empty((), dtype=known.dtype, device="meta"), 1.0)
