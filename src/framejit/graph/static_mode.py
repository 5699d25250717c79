"""A `FakeTensorMode` for sizes that do not vary: without sympy, without torch._dynamo, and faster.

In: an operator with fake tensors. Out: what `FakeTensorMode` returns. That mode runs Python
functions of torch (torch 2.13 registers them over its own in C++), and these import sympy. Here
`shape_functions` does it, with the C++ code that the real kernels use. Where that does not know,
and for all that is unusual, the mode becomes a whole `FakeTensorMode`. Next: fakes.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    in_kernel_invocation_manager,
)

from framejit.torchcompat import fake_modes

from . import slow_imports
from .observer import Unwrapped, tensors_in
from .ragged import ragged_size
from .shape_functions import Unknown, is_direct, shape_function

_ops = torch.ops.aten
_Overload = torch._ops.OpOverload
_META = torch.device("meta")
_CPU = torch.device("cpu")
#: What has a size that depends on data, if some operator in it has.
_OF_DATA = frozenset({_ops.nonzero.default, _ops.index.Tensor})


class _Kind(NamedTuple):
    """What is looked up about an operator once."""

    #: It changes sizes or strides of an argument.
    changes: bool
    #: It has an argument ``device``.
    device: bool
    #: It has no argument that is a tensor.
    makes: bool


class StaticMode(Unwrapped, FakeTensorMode):
    """As ``FakeTensorMode(allow_non_fake_inputs=False)``, which it becomes when it must."""

    #: They look for the rule of a mode by its exact class.
    supports_higher_order_operators = True

    #: Is it the mode of a backend that traces the graph, and wants symbols for ragged sizes?
    traced_again = False

    def __init__(self) -> None:
        if fake_modes.begin(self):
            self.cache_enabled  # noqa: B018 - a whole one, see __getattr__

    @property
    def whole(self) -> bool:
        return "propagate_real_tensors" in self.__dict__

    def __getattr__(self, name: str) -> Any:
        """The first of the late attributes that is asked for makes the mode a whole one."""
        if name not in fake_modes.LATE or self.whole:
            raise AttributeError(name)
        slow_imports.about_to_import("torch._dynamo")
        known = dict(self.__dict__)
        FakeTensorMode.__init__(self, allow_non_fake_inputs=False)
        self.__dict__.update(known)
        return getattr(self, name)

    def create_symbolic_nested_int(self, *, nt_tensor_id: int | None = None) -> Any:
        """The size of what new offsets divide: of its own kind, as it is for real."""
        if self.traced_again:
            return super().create_symbolic_nested_int(nt_tensor_id=nt_tensor_id)
        return ragged_size()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return _META if args[0].fake_mode.in_kernel_invocation else args[0].fake_device
        if isinstance(func, torch._ops.HigherOrderOperator):
            slow_imports.about_to_import("torch._dynamo")
            from torch._higher_order_ops.utils import registered_hop_fake_fns  # loads much

            rule = func.python_key_table.get(FakeTensorMode)
            if func not in registered_hop_fake_fns:
                if rule is None:
                    raise NotImplementedError(f"{func} has no rule for FakeTensorMode")
                return rule(self, *args, **kwargs)
        if self.shape_env is None and type(func) is _Overload and func.namespace == "aten":
            try:
                return self._answer(func, args, kwargs)
            except Exception as error:  # those of the program, too, are for torch to word
                if isinstance(error, DataDependentOutputException):
                    raise
                if isinstance(error, DynamicOutputShapeException) and func in _OF_DATA:
                    raise
        slow_imports.about_to_import("torch._dynamo")
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _answer(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result, without what a whole mode needs; raises something if there is none."""
        kind = _kind_of(func)
        if func is _ops.lift_fresh.default and type(args[0]) is torch.Tensor:
            return self._lift(args[0])
        fakes = self._fakes_in(args, kwargs)
        device = fakes[0].fake_device if fakes else _CPU
        if not fakes and not kind.makes:
            raise Unknown
        constant = [fake for fake in fakes if fake.constant is not None]
        if constant and (len(constant) == len(fakes) or func._schema.is_mutable):
            raise Unknown  # it computes with their data, or changes that
        if func is _ops._local_scalar_dense.default:
            raise DataDependentOutputException(func)
        if kind.device:
            if kwargs.get("pin_memory") or kwargs.get("layout") not in (None, torch.strided):
                raise Unknown
            device = torch.device(kwargs.get("device") or device)
            kwargs = {**kwargs, "device": _META}
        if device != _CPU:  # no test says that the kernels of other devices behave the same
            raise Unknown
        if func is _ops.convolution.default:
            return self._wrap(self._convolution(*args), device)
        with in_kernel_invocation_manager(self):
            if kind.changes:
                return self._wrap(func(*args, **kwargs), device)
            plain: dict[int, FakeTensor] = {}
            metas, meta_kwargs = _unwrap(args, plain), _unwrap(kwargs, plain)
        found = shape_function(func)
        return self._wrap(found(*metas, **meta_kwargs), device, plain)

    def _fakes_in(self, args: Any, kwargs: Any) -> list[FakeTensor]:
        """The tensors of a call: plain ones of this mode, all on one device."""
        fakes: list[FakeTensor] = []
        for item in tensors_in(*args, *kwargs.values()):
            if type(item) is not FakeTensor or item.fake_mode is not self:
                raise Unknown
            if item.layout is not torch.strided or item.is_conj() or item.is_neg():
                raise Unknown
            if item.is_quantized or item.is_nested:
                raise Unknown
            fakes.append(item)
        if any(fake.fake_device != fakes[0].fake_device for fake in fakes[1:]):
            raise Unknown
        return fakes

    def _wrap(self, raw: Any, device: torch.device, plain: Any = ()) -> Any:
        if isinstance(raw, FakeTensor):
            return raw
        if isinstance(raw, torch.Tensor):
            if id(raw) in plain:
                return plain[id(raw)][1]
            if type(raw) is not torch.Tensor or not raw.is_meta:
                raise Unknown
            return FakeTensor(self, raw, device)
        if isinstance(raw, (list, tuple)):
            return type(raw)([self._wrap(item, device, plain) for item in raw])
        return raw

    def _lift(self, real: torch.Tensor) -> FakeTensor:
        """``torch.tensor(...)`` with Python numbers: the data of small ones is known."""
        if real.layout is not torch.strided or real.requires_grad or real.device != _CPU:
            raise Unknown
        with torch._C._DisableTorchDispatch():
            constant = real.clone() if self.may_turn_const(real) else None
            meta = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=_META)
        fake = FakeTensor(self, meta, _CPU, constant=constant)
        if constant is not None:
            self.fake_tensor_converter.add_constant_storage_mapping(fake)
        return fake

    def _convolution(
        self, x: FakeTensor, weight: FakeTensor, bias: FakeTensor | None, *settings: Any
    ) -> torch.Tensor:
        """The memory format depends on the backend that is chosen for real tensors."""
        stride, padding, dilation, transposed, output_padding, groups = settings
        dims = x.dim() - 2
        channels, inner = weight.shape[:2]
        if dims < 1 or weight.dim() != x.dim() or x.dtype != weight.dtype:
            raise Unknown
        if x.shape[1] != (channels if transposed else inner * groups) or channels % groups:
            raise Unknown
        if not x.numel() or any(len(n) != dims for n in (stride, padding, dilation)):
            raise Unknown
        if bias is not None and (bias.shape != ((inner * groups if transposed else channels),)
                                 or bias.dtype != x.dtype):  # fmt: skip
            raise Unknown
        shape = [x.shape[0], inner * groups if transposed else channels]
        for i in range(dims):
            reach = dilation[i] * (weight.shape[i + 2] - 1)
            if transposed:
                size = (x.shape[i + 2] - 1) * stride[i] - 2 * padding[i] + reach
                shape.append(size + output_padding[i] + 1)
            else:
                shape.append((x.shape[i + 2] + 2 * padding[i] - reach - 1) // stride[i] + 1)
        if min(shape) < 1:
            raise Unknown
        with self:  # the choice asks for the devices
            backend = torch._C._select_conv_backend(
                x, weight, bias=bias, stride=stride, padding=padding, dilation=dilation,
                transposed=transposed, output_padding=output_padding, groups=groups,
                **({"bias_sizes": None} if bias is None else {}),
            )  # fmt: skip
            one = dims == 1
            chosen = torch._C._conv_determine_backend_memory_format(
                x.contiguous().unsqueeze(2) if one else x,
                weight.unsqueeze(2) if one else weight,
                backend,
            )
        with torch._C._DisableTorchDispatch():
            if one:
                shape.insert(2, 1)
            result = torch.empty(shape, dtype=x.dtype, device=_META, memory_format=chosen)
            if chosen is not torch.contiguous_format and result.is_contiguous():
                raise Unknown  # of both formats: the strides are a matter of taste
            return result.squeeze(2) if one else result


@functools.cache
def _kind_of(func: Any) -> _Kind:
    arguments = func._schema.arguments
    tensors = [a for a in arguments if "Tensor" in str(a.type)]
    changes = torch.Tag.inplace_view in func.tags
    if changes and not is_direct(func):
        raise Unknown
    return _Kind(changes, any(a.name == "device" for a in arguments), not tensors)


def _unwrap(value: Any, plain: dict[int, Any]) -> Any:
    """The arguments with plain meta tensors that share the memory of the fakes."""
    if isinstance(value, FakeTensor):
        meta = _ops.alias.default(value)
        plain[id(meta)] = (meta, value)
        return meta
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)([_unwrap(item, plain) for item in value])
    if isinstance(value, dict):
        return {name: _unwrap(item, plain) for name, item in value.items()}
    return value
