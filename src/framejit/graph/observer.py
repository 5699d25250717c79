"""Watches what an operation does while it runs on fake tensors.

In: the operators that a call dispatches to. Out: which memory was written (from operator schemas),
whether random numbers are drawn (from operator tags), and whether it may raise on data.
Next: propagation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch.utils._python_dispatch import TorchDispatchMode

from ..exc import GraphBreak

#: Batch normalisation writes to running statistics, its arguments 3 and 4, if 5 is true (it
#: trains), and its schema does not say so.
_BATCH_NORMS = frozenset(
    "aten::" + name for name in (
        "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_batch_norm_impl_index",
        "batch_norm",
    )
)  # fmt: skip
#: Arguments whose elements must lie within bounds, on the CPU (a GPU reports that later on).
_BOUNDED = frozenset({"index", "indices", "target", "targets", "offsets", "ind"})
#: Operators that raise for some values of their arguments.
_RAISING = frozenset(
    "aten::" + name for name in (
        "_linalg_check_errors", "_linalg_eigh", "_linalg_svd", "linalg_eig", "linalg_lstsq",
        "_assert_async", "_functional_assert_async", "binary_cross_entropy", "bincount", "one_hot",
        "multinomial", "poisson", "binomial", "_ctc_loss", "masked_scatter", "histc",
    )
)  # fmt: skip
#: Operators whose derivative for the last tensor has a size that depends on data, if they are
#: given a mask.
_SELECTING = frozenset(("aten::index_put", "aten::masked_scatter"))
#: Libraries of operators that exchange data with other processes.
_COLLECTIVE = frozenset(("_c10d_functional", "_c10d_functional_autograd", "c10d", "_dtensor"))
#: Operators that raise when an integer is divided by zero.
_DIVISIONS = frozenset(("aten::floor_divide", "aten::remainder", "aten::fmod"))
#: Random operators take parameters of the distribution as numbers or, in these forms, as tensors.
_DRAWS = {"aten::bernoulli": ("default", "out", "Tensor"),
          "aten::normal": ("Tensor_Tensor", "float_Tensor")}  # fmt: skip


def passed(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The arguments in an operator's schema, with what a call passes for them or the default."""
    for position, argument in enumerate(func._schema.arguments):
        if position < len(args):
            yield argument, args[position]
        else:
            yield argument, kwargs.get(argument.name, argument.default_value)


def written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """What is passed for the arguments that an operator writes to."""
    return [value for argument, value in passed(func, args, kwargs)
            if argument.alias_info is not None and argument.alias_info.is_write]  # fmt: skip


def tensors_in(*values: Any) -> Iterator[torch.Tensor]:
    """The tensors among values and in lists of them."""
    for value in values:
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, torch.Tensor):
                yield item


def raises_on_data(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """May the operator raise an exception that depends on what is in its arguments?

    Other libraries' operators may, but for those that take part of several processes.
    """
    schema = func._schema
    name = schema.name.removesuffix("_")
    if func.namespace in _COLLECTIVE:
        return False
    if name in _RAISING or func.namespace not in ("aten", "prims", "prim"):
        return True
    if name in _DRAWS:
        return func._overloadname in _DRAWS[name]
    if name in _DIVISIONS or (name == "aten::div" and kwargs.get("rounding_mode")):
        divisor = args[1] if len(args) > 1 else None
        exact = [t for t in args[:2] if isinstance(t, torch.Tensor) and t.is_floating_point()]
        return isinstance(divisor, torch.Tensor) and not exact
    for argument, value in passed(func, args, kwargs):
        if argument.name in _BOUNDED:
            for tensor in tensors_in(value):
                if tensor.device.type == "cpu":
                    return not (tensor.is_floating_point() or tensor.dtype is torch.bool)
        elif argument.name == "check_errors" and value:
            return True
    return False


@functools.cache
def answers_from_data(func: torch._ops.OpOverload) -> bool:
    """Does the operator compute numbers out of tensors? What it says of a fake tensor then comes
    from a kernel that reads zeros, or from somebody else's fake kernel."""
    schema = func._schema
    numbers = any("Tensor" not in str(result.type) for result in schema.returns)
    if not numbers or not any("Tensor" in str(argument.type) for argument in schema.arguments):
        return False
    if func.namespace not in ("aten", "prims", "prim"):
        return True
    if not torch._C._dispatch_has_kernel(func.name()):
        return False  # the interpreter of TorchScript has it, for sizes and strides
    return not any(map(func.has_kernel_for_dispatch_key, _WITHOUT_DATA))


#: A kernel for one of these keys asks for no data.
_WITHOUT_DATA = (
    DispatchKey.Meta, DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeImplicitAutograd,
    DispatchKey.CompositeExplicitAutogradNonFunctional,
)  # fmt: skip


class Unwrapped:
    """A dispatch mode without the wrapper that torch would add, which imports and enters
    torch._dynamo."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Observer(Unwrapped, TorchDispatchMode):
    """Notes which memory is written, whether random numbers are drawn, what may raise, and whether
    other processes take part."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.random = False
        self.raises = False
        self.exchanges = False
        #: Is content written, not only how a tensor looks at it (``t_()``)? Does autograd count
        #: that, as it does what schemas say?
        self.content = self.counted = False
        self.written: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.OpOverload):
            self.raises = self.raises or raises_on_data(func, args, kwargs)
            self.exchanges = self.exchanges or func.namespace in _COLLECTIVE
            schema = func._schema
            if schema.name.removesuffix("_") in _SELECTING:
                check_masks(args[1], args[2])
            if answers_from_data(func):
                raise GraphBreak("FJ0102", f"{func} needs the tensor's data")
            check_sparse(func, args, kwargs)
            if torch.Tag.nondeterministic_seeded in func.tags:
                self.random = self.random or _draws(func, args, kwargs)
            if schema.is_mutable:
                self.counted = True
                self.content = self.content or torch.Tag.inplace_view not in func.tags
                targets = written(func, args, kwargs)
                self.written.update(map(memory_of, tensors_in(*targets)))
                for value in targets:
                    if isinstance(value, torch.Tensor):
                        check_write(func, value, [*args, *kwargs.values()])
                    elif value is not None:
                        check_list(value, [*args, *kwargs.values()])
            elif schema.name in _BATCH_NORMS and args[5]:
                self.content = True
                self.written.update(map(memory_of, tensors_in(*args[3:5])))
        result = func(*args, **kwargs)
        for tensor in tensors_in(result):
            if tensor.layout not in (torch.strided, torch.jagged):
                raise GraphBreak("FJ0114", f"{func} returns a tensor of layout {tensor.layout}")
        return result


def _draws(func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does an operator that may draw random numbers draw? Attention without dropout does not."""
    given = passed(func, args, kwargs)
    return all(value != 0.0 for argument, value in given if argument.name == "dropout_p")


def check_sparse(func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Any) -> None:
    """GraphBreak for an operator that is asked for sparse gradients: compilers take them for dense
    ones."""
    for argument, asked in passed(func, args, kwargs):
        if argument.name in ("sparse", "sparse_grad") and asked:
            if args[0].requires_grad and torch.is_grad_enabled():
                raise GraphBreak("FJ0114", f"the gradient of {func} is sparse")


def check_masks(indices: Any, values: torch.Tensor) -> None:
    """GraphBreak where compilers would have to find a size that depends on data equal to one that
    varies."""
    masks = [one for one in tensors_in(indices) if one.dtype in (torch.bool, torch.uint8)]
    sizes = [size for one in (*masks, values) for size in one.shape]
    varies = any(isinstance(size, torch.SymInt) for size in sizes)
    if masks and varies and values.requires_grad and torch.is_grad_enabled():
        raise GraphBreak("FJ0103", "a gradient of what is selected by a mask of varying size")


def check_write(func: torch._ops.OpOverload, written: torch.Tensor, arguments: list[Any]) -> None:
    """GraphBreak when eager mode may refuse to write, because memory overlaps or a result cannot be
    cast; on fakes every write succeeds."""
    kinds = [
        other.dtype if isinstance(other, torch.Tensor) else torch.float32
        for other in arguments
        if isinstance(other, (torch.Tensor, float))
    ]
    if torch.Tag.pointwise in func.tags and not all(
        torch.can_cast(kind, written.dtype) for kind in kinds
    ):
        raise GraphBreak(
            "FJ0116", f"{func} may not write its result to a tensor of {written.dtype}"
        )
    if any(n > 1 and step == 0 for n, step in zip(written.shape, written.stride(), strict=True)):
        raise GraphBreak("FJ0116", "an operation writes to a tensor whose elements share memory")
    memory = memory_of(written)
    for other in arguments:
        if not isinstance(other, torch.Tensor) or other is written or memory_of(other) != memory:
            continue
        first, second = extent(written), extent(other)
        same = first == second and written.stride() == other.stride()
        if first[0] < second[1] and second[0] < first[1] and not same and not apart(written, other):
            raise GraphBreak("FJ0116", "an operation reads a part of the memory that it writes")


def check_list(written: Any, arguments: list[Any]) -> None:
    """GraphBreak when a tensor of a list that is written to shares elements with what is used for
    another one: eager mode writes one after the other, AOTAutograd reads what was there before."""
    used: dict[int, list[tuple[int, tuple[Any, Any]]]] = {}
    for argument in arguments:
        several = isinstance(argument, (list, tuple))
        for position, tensor in enumerate(argument if several else [argument]):
            if isinstance(tensor, torch.Tensor) and tensor.numel():
                where = position if several else -1  # what is no list is used for all
                used.setdefault(memory_of(tensor), []).append((where, extent(tensor)))
    for position, tensor in enumerate(written):
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            start, end = extent(tensor)
            for where, (first, last) in used[memory_of(tensor)]:
                if where != position and start < last and first < end:
                    raise GraphBreak("FJ0116", "an operation writes to tensors that share memory")


def apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Do two tensors of equal sizes and strides have no element in common, such as two columns?"""
    if one.shape != other.shape or one.stride() != other.stride():
        return False
    distance: Any = other.storage_offset() - one.storage_offset()
    if not all(type(n) is int for n in (distance, *one.stride())):  # sizes may vary
        return False
    pairs: list[Any] = [(step, size) for step, size in zip(one.stride(), one.shape, strict=True)]
    return not _reaches(distance, sorted(pairs, key=lambda pair: -pair[0]))


def _reaches(distance: int, steps: list[tuple[int, int]]) -> bool:
    """Can the distance be walked in less than ``size`` steps of each kind, forth or back?"""
    if not steps:
        return distance == 0
    (step, size), *smaller = steps
    if sum(one * (count - 1) for one, count in smaller) >= step > 0:
        return True  # they lie across each other: perhaps
    nearest = (distance // step, distance // step + 1) if step else (0,)
    return any(
        abs(count) < size and _reaches(distance - count * step, smaller) for count in nearest
    )


def extent(tensor: torch.Tensor) -> tuple[Any, Any]:
    """The elements of the storage that a tensor lies in: the first one, one past the last."""
    start = tensor.storage_offset()
    if tensor.numel() == 0:
        return start, start
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + 1 + sum([(n - 1) * step for n, step in steps])


def memory_of(tensor: torch.Tensor) -> int:
    """Identifies the storage; tensors without one (sparse) have their own identity."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return id(tensor)
