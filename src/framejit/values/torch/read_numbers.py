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
from framejit.graph.expressions import Tree, evaluate
from framejit.graph.scalars import number_of
from framejit.source import Source
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Result
from framejit.values.core.space import Space
from framejit.values.core.symbolic import is_argument
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
#: Operations that weigh two tensors.
_WEIGHTED = frozenset(["lerp", "lerp_", "_foreach_lerp", "_foreach_lerp_"])
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
        answer = decided_before(space, self.tensor)
        return self.tensor.truth(space) if answer is None else answer

    def to_fx(self, space: Space) -> Any:
        raise GraphBreak("FJ0121", "a number out of a tensor is passed to a torch operation")


def element_of(tensor: torch.Tensor) -> int | float:
    """The number in a tensor of one element."""
    number = tensor.detach().item()
    return float(number) if tensor.dtype.is_floating_point else int(number)


def decided_before(space: Space, tensor: TensorValue, state: bool = False) -> bool | None:
    """Is the number in a tensor true? Decided in front of the graph, and guarded, if it is computed
    from numbers in inputs that Python can read as well, such as the step counts of optimizers. None
    if it is not, or if too much was decided on one of them: loops end after another number of turns
    each time. ``state``: only if no argument of the call holds them.
    """
    if space.transforms or space.task.alone or space.task.stand_in is not None:
        return None
    numbers: dict[Source, int | float] = {}

    def load(node: Any) -> Tree | None:
        value = next((value for value in space.graph_inputs if value.node is node), None)
        if value is None or not _is_readable(value) or (state and is_argument(value.source)):
            return None
        source = value.source.child("call", element_of)
        numbers[source] = element_of(value.obj)
        return ("load", source.name)

    tree = number_of(space.builder, tensor.proxy(space), load)
    if tree is None:
        return None
    if tensor.metadata().dtype is not torch.bool:
        tree = ("ne", tree, ("int", 0))
    try:
        answer = bool(evaluate(tree, {source.name: value for source, value in numbers.items()}))
    except (ArithmeticError, TypeError):  # Python may raise, or know no order
        return None
    if not numbers:
        return answer
    if not all(space.policy.seen.decides(source.name, (tree, answer)) for source in numbers):
        return None
    return space.builder.symbols.decide(tree, numbers)  # type: ignore[no-any-return]


def state_decides(space: Space, tensor: TensorValue) -> bool | None:
    """Is the number in a tensor true, if that follows from what objects hold, as modules count
    batches? What the program passes as data is another matter: Python decides on it."""
    known = tensor.metadata()
    single = all(type(size) is int and size == 1 for size in known.shape)
    if not single or known.device.type != "cpu" or known.requires_grad:
        return None
    return decided_before(space, tensor, state=True)


def _is_readable(value: TensorValue) -> bool:
    """Does an existing tensor hold one number, in the memory of this process?"""
    held = value.obj
    plain = type(held) in (torch.Tensor, torch.nn.Parameter) and value.source is not None
    usual = plain and not (value.replaced or value.switched)
    return (
        usual and held.device.type == "cpu" and held.layout is torch.strided and held.numel() == 1
        and held.dtype in (torch.float32, torch.float64, torch.int64)
    )  # fmt: skip


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


def number_for_optimizer(space: Space, tensor: TensorValue) -> Value | None:
    """``tensor.item()`` in an optimizer, which computes with the number; None elsewhere."""
    return read_number(space, tensor) if _in_optimizer(space) else None


def _in_optimizer(space: Space) -> bool:
    line = space.running.user_line()
    return line is not None and line[0].startswith(_OPTIMIZERS)


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


def choose_read(space: Space, condition: Value, then: Value, other: Value) -> Value:
    """``then if condition else other`` of floats; the condition is read."""
    assert isinstance(condition, ReadNumber)
    parts = [_as_tensor(space, one) for one in (then, other)]
    return ReadNumber(tensor_call(space, torch.where, condition.tensor, *parts))


def _as_tensor(space: Space, number: Value) -> TensorValue:
    """A float in double precision. Compilers build in what a factory function is given."""
    if isinstance(number, ReadNumber):
        return number.tensor
    ones = tensor_call(space, torch.ones, TupleValue([]), dtype=_DOUBLE)
    return tensor_call(space, operator.mul, ones, number)


def _is_defined(space: Space, function: Any, operands: list[Value]) -> bool:
    """Is the result a float, whatever the number? Torch's optimizers see to that themselves; in
    other code it may be complex, or an error."""
    if function not in _PARTIAL or _in_optimizer(space):
        return True
    known = operands[0 if function is operator.pow else 1]
    number = known.as_python() if known.is_constant else 0
    return 0 < number <= 1 if function is operator.pow else number != 0


def scaled(space: Space, name: str, operands: list[Value], factor: Value) -> Result:
    """``addcdiv``, ``add(alpha=)`` and their like with a number that is read, or that they read out
    of a tensor."""
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
    if name.rstrip("_") in ("add", "sub"):
        number = compute_read(space, operator.neg, [number]) if name.startswith("sub") else number
        assert isinstance(number, ReadNumber)
        return _added(space, operands, number.tensor, in_place=name.endswith("_"))
    return call_polyfill(space, getattr(polyfills, name), [*operands, number])


def _added(space: Space, operands: list[Value], factor: TensorValue, in_place: bool) -> Value:
    """The sum of two tensors, the second one scaled: in single precision for shorter dtypes."""
    first, second = [operand.realize() for operand in operands]
    if not isinstance(first, TensorValue) or not isinstance(second, TensorValue):
        raise GraphBreak("FJ0102", "a number out of a tensor scales another number")
    own = first.metadata()
    if own.device.type != "cpu":  # a product may have a factor on the CPU
        scaled_one = tensor_call(space, operator.mul, second, factor)
        return tensor_call(space, "add_" if in_place else "add", first, scaled_one)

    def cast(tensor: TensorValue, dtype: torch.dtype) -> TensorValue:
        return tensor_call(space, "to", tensor, ConstantValue(dtype))

    if own.dtype.itemsize > 2:
        narrow = cast(factor, own.dtype)
        made = tensor_call(space, "addcmul_" if in_place else "addcmul", first, second, narrow)
        return first if in_place else made
    single = [cast(one, torch.float32) for one in (first, second, factor)]
    made = cast(tensor_call(space, "addcmul", *single), own.dtype)
    return tensor_call(space, "copy_", first, made) if in_place else made


def _scaled_lists(function: Any, method: str) -> None:
    """``torch._foreach_addcdiv`` and its like: compilers take a list of numbers, but no tensors."""
    polyfill = polyfills.scale_lists if method.endswith("_") else polyfills.scaled_lists

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        named = {
            **dict(zip(("self", "tensor1", "tensor2", "scalars"), args, strict=False)),
            **kwargs,
        }
        numbers = named.get("scalars", ConstantValue(None)).realize()
        if len(named) != 4 or not _read_among(numbers) or numbers.is_read:
            made = graph_call(space, function, args, kwargs)
            return named["self"] if method.endswith("_") else made
        return call_polyfill(space, polyfill, [*named.values(), ConstantValue(method)])

    LOOKASIDES[function] = handler


for _method in ("addcdiv", "addcdiv_", "addcmul", "addcmul_"):
    _scaled_lists(getattr(torch, f"_foreach_{_method}"), _method)


def beside_tensors(space: Space, target: Any, args: list[Value]) -> list[Value]:
    """The operands of an operation on tensors, with tensors for the numbers that are read."""
    made = list(args)
    for position, value in enumerate(args):
        numbers = _read_among(value)
        if not numbers:
            continue
        kinds = _kinds(target, position)
        others = [_tensors(other) for other in args if other is not value]
        if position == 2 and _name_of(target) in _WEIGHTED:
            made[position] = _weights(space, value, numbers, args[0])
        elif value.is_read and {"number", "Tensor"} <= kinds:
            made[position] = _operand(space, value, [one for other in others for one in other])
        elif {"List[number]", "List[Tensor]"} <= kinds:
            parts = [_operand(space, number, [other[i] for other in others if i < len(other)])
                     for i, number in enumerate(numbers)]  # fmt: skip
            made[position] = ListValue(parts)
        elif {"List[number]", "Tensor"} <= kinds:
            parts = [_operand(space, number, []) for number in numbers]
            made[position] = graph_call(space, torch.stack, [ListValue(parts)], {})
    return made


def named_tensors(space: Space, target: Any, named: dict[str, Value]) -> dict[str, Value]:
    """Arguments by name, with tensors for numbers that vary where the operation takes them as well
    and would have compilers build in the number: the learning rate of fused optimizers."""
    made = dict(named)
    for name, value in named.items():
        varies = value.is_read or (value.is_symbolic and value.python_type() is float)
        if varies and _types(target, name) == {"float", "Tensor"}:
            made[name] = _as_tensor(space, value)
    return made


def _types(target: Any, name: str) -> set[str]:
    """What the operation takes as the argument of this name."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{_name_of(target)}")
    return {str(one.type) for schema in schemas for one in schema.arguments if one.name == name}


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
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{_name_of(target)}")
    given = [schema.arguments for schema in schemas]
    kinds = {str(arguments[position].type) for arguments in given if len(arguments) > position}
    # Only that a second operand may be either means the same for both.
    return kinds if position == 1 else kinds - {"number"}


def _name_of(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def _weights(space: Space, value: Value, numbers: list[Value], begin: Value) -> Value:
    """The weight of ``lerp``, or several, with the dtype of what is weighed, as torch demands."""
    dtypes = [tensor.metadata().dtype for tensor in _tensors(begin)]
    if len(dtypes) != len(numbers) or not {torch.float32, torch.float64}.issuperset(dtypes):
        raise GraphBreak("FJ0121", "a number out of a tensor as the weight of other dtypes")
    made = [
        tensor_call(space, "to", number.tensor, ConstantValue(dtype))
        if isinstance(number, ReadNumber)
        else graph_call(space, torch.scalar_tensor, [number], {"dtype": ConstantValue(dtype)})
        for number, dtype in zip(numbers, dtypes, strict=True)
    ]
    return made[0] if value.is_read else ListValue(list(made))


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
