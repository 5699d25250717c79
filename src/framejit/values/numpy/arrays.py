"""numpy's arrays, dtypes and functions beside tensors.

In: existing arrays (the tensor on their memory is guarded and is what graphs take), numpy's
functions, and conversions between tensors and arrays, which share memory as they do in eager mode.
Out: `ArrayValue`s on nodes of the graph. Random numbers, and all that numpy does and
``torch._numpy`` does not do alike, are graph breaks. Next room: graph.
"""

from __future__ import annotations

import types
from typing import Any

import numpy
import torch

from framejit.exc import GraphBreak
from framejit.graph.observer import extent
from framejit.source import Source
from framejit.values.containers.folding import NotConstantError, python_of
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.carried import LITERALS
from framejit.values.core.constants import PURE_TYPES, ConstantValue, fold, wrap_opaque
from framejit.values.core.registry import (
    LOOKASIDE_RULES,
    LOOKASIDES,
    Handler,
    Result,
    by_identity,
    lookaside,
    wraps,
)
from framejit.values.core.space import Space
from framejit.values.numpy.array_calls import ArrayValue, call_numpy, clone
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import BoundBuiltin, BuiltinValue
from framejit.values.torch.new_tensors import by_position
from framejit.values.torch.tensors import (
    TensorValue,
    check_scalar,
    tensor_call,
    to_fx,
    wrap_tensor,
)

#: numpy's classes of scalars that torch has dtypes for.
_SCALARS = tuple(
    numpy.dtype(name).type
    for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
                 "float16", "float32", "float64", "complex64", "complex128")
)  # fmt: skip
PURE_TYPES.update(_SCALARS)
LITERALS.update(_SCALARS)


def tensor_of(array: Any) -> torch.Tensor:
    """The tensor on an array's memory. Raises TypeError or ValueError if there is none."""
    if type(array) is not numpy.ndarray or not array.flags.writeable:
        raise TypeError("not an array that can be written to")
    return torch.from_numpy(array)


@wraps(numpy.ndarray)
def _wrap_array(space: Space, source: Source, obj: Any) -> Value:
    try:
        tensor = tensor_of(obj)
    except (TypeError, ValueError):
        return wrap_opaque(space, source, obj)
    space.guard(source, "TYPE_MATCH", numpy.ndarray)
    value = wrap_tensor(space, source.child("call", tensor_of), tensor)
    assert isinstance(value, TensorValue)
    return space.remember(obj, ArrayValue(value, numpy.ndarray, obj, source))


@wraps(*_SCALARS)
def _wrap_scalar(space: Space, source: Source, obj: Any) -> Value:
    space.guard(source, "TYPE_MATCH", type(obj))
    return ScalarValue(space, source, obj)


class ScalarValue(ConstantValue):
    """An existing scalar of numpy. Beside a tensor, and converted, it is the Python number that it
    holds, which may vary; asked for anything else, it is what it is now, as any constant."""

    __slots__ = ("is_open", "now", "space")
    source: Source

    def __init__(self, space: Space, source: Source, obj: Any) -> None:
        self.space, self.source, self.now, self.is_open = space, source, obj, True

    @property
    def value(self) -> Any:  # type: ignore[override]
        if self.is_open:
            self.is_open = False
            content = self.source.child("call", numpy.generic.tobytes)  # 0.0 is not -0.0
            self.space.guard(content, "EQUALS_MATCH", self.now.tobytes())
        return self.now

    def python_type(self) -> type:
        return type(self.now)

    def number(self) -> Value:
        """The Python number."""
        if not self.is_open or self.now.dtype.kind not in "iuf":
            return ConstantValue(self.value.item())
        return self.space.load(self.source.child("call", numpy.generic.item), self.now.item())

    def getattr(self, space: Space, name: str) -> Result:
        return BoundBuiltin(self, name) if name == "item" else super().getattr(space, name)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "item" and not args and not kwargs:
            return self.number()
        return super().call_method(space, name, args, kwargs)

    def to_fx(self, space: Space) -> Any:
        """A tensor's operand is a plain number."""
        check_scalar(self.now)
        return to_fx(space, self.number())


class DTypeValue(ConstantValue):
    """A dtype of numpy; it is equal to classes and names, too."""

    __slots__ = ()

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        known = other.cls if isinstance(other, ClassValue) else None
        if op not in ("==", "!=") or known is None:
            return None
        return ConstantValue((self.value == known) is (op == "=="))


_DTYPES = {type(numpy.dtype(cls)) for cls in (*_SCALARS, object, str, bytes)}
wraps(*_DTYPES)(by_identity(DTypeValue))


_DISPATCHED = (numpy.ufunc, type(numpy.sum))


wraps(*_DISPATCHED)(by_identity(BuiltinValue))


def _call(space: Space, function: Any, args: Args, kwargs: Kwargs) -> Result:
    if function in _CONVERSIONS and args and isinstance(args[0].realize(), TensorValue):
        args = [array_of(space, args[0].realize()), *args[1:]]  # type: ignore[arg-type]
    single = function in _CONVERSIONS and len(args) == 1 and not kwargs
    first = args[0].realize() if single else None
    if isinstance(first, (ListValue, TupleValue)) and first.items:
        if all(isinstance(item.realize(), ArrayValue) for item in first.items):
            function = numpy.stack
    return call_numpy(space, function, args, kwargs)


_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_CONVERSIONS = (numpy.asarray, numpy.array)


def _handler(function: Any) -> Handler:
    return lambda space, args, kwargs: _call(space, function, args, kwargs)


LOOKASIDE_RULES.append((lambda function: type(function) in _DISPATCHED, _handler))
for _function in (*vars(numpy).values(), *_SCALARS):
    if type(_function) in _FUNCTIONS or _function in _SCALARS:
        LOOKASIDES.setdefault(_function, _handler(_function))


def _describes(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        given = args[0].realize() if len(args) == 1 and not kwargs else None
        if isinstance(given, ClassValue):
            return space.constant(function(given.cls))
        return fold(space, function, args, kwargs, function.__name__)

    return handler


for _function in (numpy.dtype, numpy.finfo, numpy.iinfo):
    LOOKASIDES[_function] = _describes(_function)


# -- between tensors and arrays --------------------------------------------------------------------


def array_of(space: Space, tensor: TensorValue, force: Value | None = None) -> Value:
    """``tensor.numpy()``; ``force``: of any tensor, a copy where it has to be one."""
    if force is not None and space.truth(force):
        for step in ("detach", "cpu", "resolve_conj", "resolve_neg"):
            tensor = tensor_call(space, step, tensor)
    fake = tensor.fake(space)
    plain = fake.device.type == "cpu" and not (fake.is_conj() or fake.is_neg())
    differentiable = fake.requires_grad and torch.is_grad_enabled()
    if not plain or differentiable or tensor.cls is not torch.Tensor or space.transforms:
        raise GraphBreak("FJ0102", "this tensor has no array on its memory")
    try:
        torch.empty(0, dtype=fake.dtype).numpy()
    except TypeError as error:
        raise GraphBreak("FJ0102", f"Tensor.numpy(): {error}")
    tensor.example.owns_storage = True
    return ArrayValue(_same_memory(space, tensor), numpy.ndarray)


def _same_memory(space: Space, tensor: TensorValue) -> TensorValue:
    return tensor_call(space, "detach", tensor)


@lookaside(torch.from_numpy)
def _from_numpy(space: Space, args: Args, kwargs: Kwargs) -> Result:
    array = args[0].realize() if len(args) == 1 and not kwargs else None
    if not isinstance(array, ArrayValue) or array.is_scalar:
        raise GraphBreak("FJ0132", "torch.from_numpy() of something that is no captured array")
    _check_elements(space, array)
    return _tensor_on(space, array)


def _check_elements(space: Space, array: ArrayValue) -> None:
    if any(size == 0 for size in array.tensor.fake(space).shape):
        raise GraphBreak("FJ0132", "a tensor of an array without elements, whose strides are 0")


def _tensor_on(space: Space, array: ArrayValue) -> TensorValue:
    """A tensor on the array's memory. Python gives it a storage of its own, of just that memory."""
    fake, example = array.tensor.fake(space), array.tensor.example
    end = fake.numel() if example.meta.symbolic else extent(fake)[1]
    size: Any = fake.untyped_storage().nbytes()
    if fake.storage_offset() or str(size) != str(end * fake.element_size()):
        raise GraphBreak("FJ0132", "a tensor of an array that is a part of another one")
    if any(other.owns_storage for other in example.sharing):
        raise GraphBreak("FJ0132", "a tensor of an array in whose memory another tensor lies")
    made = _same_memory(space, array.tensor)
    made.example.owns_storage = True
    return made


def _as_in_numpy(space: Space, data: Value, kwargs: dict[str, Value]) -> dict[str, Value]:
    """The arguments of ``torch.tensor``: scalars of numpy keep their dtype."""
    given = kwargs.get("dtype")
    if (given is None or given.is_none()) and _holds_scalar(data):
        try:
            real = data.now if isinstance(data, ScalarValue) else python_of(data)
        except NotConstantError:
            raise GraphBreak("FJ0132", "a tensor of numpy's scalars and of what is not known")
        return {**kwargs, "dtype": ConstantValue(space.run_real(torch.tensor, real).dtype)}
    return kwargs


def _holds_scalar(value: Value) -> bool:
    value = value.realize()
    if isinstance(value, (ListValue, TupleValue)):
        return any(map(_holds_scalar, value.items))
    return value.is_constant and issubclass(value.python_type(), numpy.generic)


def _convert(function: Any) -> None:
    before = LOOKASIDES[function]

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        args, kwargs = by_position(function, args, kwargs)
        array = args[0].realize() if len(args) == 1 else None
        if not isinstance(array, ArrayValue):
            if array is not None:
                kwargs = _as_in_numpy(space, array, kwargs)
            return before(space, args, kwargs)
        if not kwargs.keys() <= {"dtype", "device"}:
            raise GraphBreak("FJ0121", f"torch.{function.__name__}() of an array")
        _check_elements(space, array)
        wanted = {k: v for k, v in kwargs.items() if not v.is_none()}
        dtype = array.tensor.metadata().dtype
        if function is torch.tensor or array.is_scalar:
            made = clone(space, array.tensor)
        elif "dtype" in wanted and wanted["dtype"].realize().as_python() is not dtype:
            made = array.tensor  # which is copied below
        else:
            made = _tensor_on(space, array)
        return made.call_method(space, "to", [], wanted) if wanted else made

    LOOKASIDES[function] = handler


for _function in (torch.tensor, torch.as_tensor, torch.asarray):
    _convert(_function)
