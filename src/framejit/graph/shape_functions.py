"""What an operator returns for tensors on the ``meta`` device, found by PyTorch's own C++ code.

In: an operator overload. Out: a function on meta tensors that returns meta tensors and
imports nothing, or `Unknown`. Three kinds need no table: views and operators with a C++ kernel for
meta tensors; *structured* operators, whose C++ shape function runs in a kernel that all backends
share and that computes by calling the ``out=`` form, which is left out here; and operators made of
others, which run in C++ while what they call is handled here. For a few more kernels there is a
rule below. Next: static_mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.utils._python_dispatch import TorchDispatchMode

from framejit.torchcompat import meta_kernels

from .observer import Unwrapped, tensors_in

_ops = torch.ops.aten
_Key = torch._C.DispatchKey
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
_Tensor = torch.Tensor
_Function = Callable[..., Any]


class Unknown(Exception):
    """No shape function is known for this operator, or not for these arguments."""


@functools.cache
def is_direct(func: Any) -> bool:
    """Does the operator itself, in C++, only change how a tensor looks at its memory?"""
    if func.is_view or func in (_ops._unsafe_view.default, _ops.empty_strided.default):
        return True
    return torch.Tag.inplace_view in func.tags and meta_kernels.is_left_to_cpp(func)


#: Operators whose kernels do not keep to their shape functions: they change the strides, or look
#: at whether gradients are required.
_UNUSUAL = frozenset(
    {_ops.replication_pad2d.default, _ops.replication_pad3d.default}
    | {_ops.reflection_pad2d.default, _ops.reflection_pad3d.default}
    | {_ops.as_strided_scatter.default}
)


@functools.cache
def shape_function(func: Any) -> _Function:
    """The shape function of an operator. Raises Unknown."""
    if type(func) is not torch._ops.OpOverload or func.namespace != "aten" or func in _UNUSUAL:
        raise Unknown
    if is_direct(func):
        return func  # type: ignore[no-any-return]
    if meta_kernels.has_cpp_kernel(func) and not func._schema.is_mutable:
        return functools.partial(_composite, func, _Key.Meta)
    rule = _RULES.get(func)
    if rule is not None:
        return rule
    name = func.name()
    if any(argument.is_out for argument in func._schema.arguments):
        raise Unknown
    if _has_kernel(name, "CompositeExplicitAutogradNonFunctional"):
        return functools.partial(_structured, func)
    if _writes_self(func):
        return functools.partial(_in_place, func)
    if _has_kernel(name, "CompositeExplicitAutograd") and not _has_kernel(name, "CPU"):
        return functools.partial(_composite, func, _Key.CompositeExplicitAutograd)
    if _has_kernel(name, "CompositeImplicitAutograd"):
        return functools.partial(_composite, func, _Key.CompositeImplicitAutograd)
    raise Unknown


class _Inside(Unwrapped, TorchDispatchMode):
    """Handles what a C++ kernel calls."""

    def __init__(self, structured: str = "") -> None:
        super().__init__()
        self.structured = structured
        self.left_out = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _on_meta(args, kwargs):
            return func(*args, **kwargs)  # a small tensor of the kernel's own
        if func._schema.name == self.structured:
            outs = [kwargs[argument.name] for argument in func._schema.arguments if argument.is_out]
            if outs:  # the computation, whose results have been allocated with the right shapes
                self.left_out = True
                return outs[0] if len(outs) == 1 else tuple(outs)
        return shape_function(func)(*args, **kwargs)


def _on_meta(args: Any, kwargs: Any) -> bool:
    device = kwargs.get("device")
    found = any(tensor.is_meta for tensor in tensors_in(*args, *kwargs.values()))
    return found or (device is not None and device.type == "meta")


def _structured(func: Any, *args: Any, **kwargs: Any) -> Any:
    with _Inside(func._schema.name.removesuffix("_")) as inside:
        result = func._op_dk(_Key.CompositeExplicitAutogradNonFunctional, *args, **kwargs)
    if not inside.left_out:  # some operators share a kernel without being structured
        raise Unknown
    return result


def _composite(func: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
    with _Inside():
        return func._op_dk(key, *args, **kwargs)


# -- in-place operators that are not structured: nothing changes, if the arguments fit

_WRITERS = frozenset({"copy_", "fill_", "zero_", "masked_fill_"})


def _writes_self(func: Any) -> bool:
    arguments = func._schema.arguments
    if not arguments or arguments[0].alias_info is None or not arguments[0].alias_info.is_write:
        return False
    if len(func._schema.returns) != 1:
        return False
    known = func._schema.name.removeprefix("aten::") in _WRITERS
    return known or torch.Tag.pointwise in func.tags or _draws(func)


def _draws(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


def _in_place(func: Any, self: _Tensor, *args: Any, **kwargs: Any) -> _Tensor:
    if not self.is_floating_point() and func._schema.name.removeprefix("aten::") not in _WRITERS:
        raise Unknown
    for other in (*args, *kwargs.values()):
        if isinstance(other, _Tensor):
            if other.is_complex() and not self.is_complex():
                raise Unknown
            other.expand(self.shape)  # raises if it does not fit
    return self


def _index_put_(
    self: _Tensor, indices: Any, values: _Tensor, accumulate: bool = False, *_: Any
) -> _Tensor:
    if values.dtype != self.dtype:
        raise Unknown
    values.expand(_call(_ops.index.Tensor, self, indices).shape)
    return self


# -- rules


def _call(func: Any, *args: Any, **kwargs: Any) -> Any:
    return shape_function(func)(*args, **kwargs)


def _new(like: _Tensor, shape: Any, dtype: Any = None) -> _Tensor:
    return torch.empty(shape, dtype=dtype or like.dtype, device="meta")


def _same_real(*tensors: _Tensor | None) -> torch.dtype:
    """The floating-point type of all of them."""
    kinds = {tensor.dtype for tensor in tensors if tensor is not None}
    if len(kinds) != 1 or not (kind := kinds.pop()).is_floating_point:
        raise Unknown
    return kind


def _dense(x: _Tensor) -> _Tensor:
    """An empty tensor like ``x``, which has one of the two usual memory formats."""
    if not x.is_contiguous() and not (
        x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    ):
        raise Unknown
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")


def _pointwise(x: _Tensor) -> _Tensor:
    if x.dtype is torch.bool or x.is_complex():
        raise Unknown
    return _call(_ops.sgn.default, x)  # type: ignore[no-any-return]


def _where(condition: _Tensor, x: _Tensor, y: _Tensor) -> _Tensor:
    if condition.dtype is not torch.bool or x.is_cpu or y.is_cpu:
        raise Unknown
    # The same iteration over three operands, of one type.
    three = [
        torch.empty_strided(t.shape, t.stride(), device="meta", dtype=torch.float32)
        for t in (condition, x, y)
    ]
    layout = _call(_ops.addcmul.default, *three)
    kind = torch.result_type(x, y)
    return torch.empty_strided(layout.shape, layout.stride(), dtype=kind, device="meta")


def _layer_norm(
    x: _Tensor, shape: Any, weight: _Tensor | None, bias: _Tensor | None, eps: float
) -> Any:
    kind = _same_real(x, weight, bias)
    if kind.itemsize < 4 or list(x.shape[x.dim() - len(shape) :]) != list(shape) or not shape:
        raise Unknown
    if any(t is not None and list(t.shape) != list(shape) for t in (weight, bias)):
        raise Unknown
    rows = [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]
    return _new(x, x.shape), _new(x, rows), _new(x, rows)


def _batch_norm(
    x: _Tensor, weight: _Tensor | None, bias: _Tensor | None, mean: _Tensor | None,
    variance: _Tensor | None, training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    _same_real(x, weight, bias, mean, variance)
    channels = x.shape[1]
    if any(t is not None and t.shape != (channels,) for t in (weight, bias, mean, variance)):
        raise Unknown
    if not training and (mean is None or variance is None):
        raise Unknown
    saved = [channels if training else 0]
    return _dense(x), _new(x, saved), _new(x, saved)


def _adaptive_avg_pool2d(x: _Tensor, size: list[int]) -> _Tensor:
    if x.dim() not in (3, 4) or not x.is_contiguous() or not x.numel() or min(size) < 1:
        raise Unknown
    return _new(x, [*x.shape[:-2], *size])


def _safe_softmax(x: _Tensor, dim: int, dtype: Any = None) -> _Tensor:
    if dtype not in (None, x.dtype):
        raise Unknown
    return _call(_ops._softmax.default, x, dim, False)  # type: ignore[no-any-return]


def _group_norm(
    x: _Tensor, weight: _Tensor | None, bias: _Tensor | None, n: int, c: int, hxw: int,
    groups: int, eps: float,
) -> Any:  # fmt: skip
    if _same_real(x, weight, bias).itemsize < 4 or not x.is_contiguous():
        raise Unknown
    return _dense(x), _new(x, [n, groups]), _new(x, [n, groups])


def _dropout(x: _Tensor, p: float, train: bool | None) -> Any:
    if not x.is_floating_point() or train is False or p in (0, 1):
        raise Unknown
    return _dense(x), torch.empty_strided(x.shape, x.stride(), dtype=torch.bool, device="meta")


def _attention(
    query: _Tensor, key: _Tensor, value: _Tensor, dropout_p: float = 0.0, is_causal: bool = False,
    *, attn_mask: _Tensor | None = None, scale: float | None = None,
) -> Any:  # fmt: skip
    kind = _same_real(query, key, value)
    batch, heads, length, _ = query.shape
    if kind.itemsize < 4:
        kind = torch.float32
    sums = _new(query, [batch, length, heads], kind).transpose(1, 2)
    return _call(_ops.empty_like.default, query), sums


def _index_select(x: _Tensor, dim: int, index: _Tensor) -> _Tensor:
    if index.dim() > 1 or index.dtype not in (torch.int64, torch.int32) or not x.dim():
        raise Unknown
    shape = list(x.shape)
    shape[dim] = index.numel()
    return _new(x, shape)


def _arange(start: Any, end: Any, step: Any = 1, *, out: _Tensor) -> _Tensor:
    whole = all(type(n) is int for n in (start, end, step))
    if not whole and not out.is_floating_point():
        raise Unknown
    if whole and not out.is_floating_point():
        size = -((start - end) // step)
    else:
        size = math.ceil((float(end) - float(start)) / float(step))
    return out.resize_([size])


def _extremum(x: _Tensor) -> _Tensor:
    if not x.numel() or x.is_complex():
        raise Unknown
    return _new(x, [])


def _variance(x: _Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    if not x.is_floating_point():
        raise Unknown
    return _call(_ops.sum.dim_IntList, x, dim, keepdim)


def _variance_and_mean(x: _Tensor, dim: Any = None, **options: Any) -> Any:
    return _variance(x, dim, **options), _variance(x, dim, **options)


def _nonzero(x: _Tensor) -> Any:
    raise DynamicOutputShapeException(_ops.nonzero.default)


#: The results of the CPU's kernels.
_RULES: dict[Any, _Function] = {
    _ops.relu.default: _pointwise,
    _ops.abs.default: _pointwise,
    _ops.logical_not.default: lambda x: _call(_ops.eq.Scalar, x, 0),
    _ops.isnan.default: lambda x: _call(_ops.eq.Scalar, x, 0),
    _ops.where.self: _where,
    _ops.native_layer_norm.default: _layer_norm,
    _ops.native_group_norm.default: _group_norm,
    _ops.native_batch_norm.default: _batch_norm,
    _ops._adaptive_avg_pool2d.default: _adaptive_avg_pool2d,
    _ops._safe_softmax.default: _safe_softmax,
    _ops.native_dropout.default: _dropout,
    _ops._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    _ops.index_select.default: _index_select,
    _ops.index_put_.default: _index_put_,
    _ops._index_put_impl_.default: _index_put_,
    _ops.arange.start_out: _arange,
    _ops.max.default: _extremum,
    _ops.min.default: _extremum,
    _ops.var.correction: _variance,
    _ops.std.correction: _variance,
    _ops.var_mean.correction: _variance_and_mean,
    _ops.std_mean.correction: _variance_and_mean,
    _ops.floor_divide.default: lambda x, y: _call(
        _ops.div.Tensor_mode, x, y, rounding_mode="floor"
    ),
    _ops.flip.default: lambda x, dims: _call(_ops.empty_like.default, x),
    _ops.nonzero.default: _nonzero,
}
