"""New tensors of data and of sizes: ``torch.tensor``, ``torch.full``, ``Tensor.new``, old classes.

In: numbers, nested lists, tensors, sizes. Out: nodes that make tensors, where numbers vary or
tensors are among the data, of several operations. Next room: graph.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.global_state import default_devices
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Handler, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue, plain
from framejit.values.objects.classes import PYTHON_DTYPES
from framejit.values.torch.read_numbers import ReadNumber
from framejit.values.torch.tensors import (
    TensorValue,
    graph_call,
    graph_call_method,
    tensor_call,
)


def by_position(function: Any, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """The arguments of ``torch.tensor`` and the like with the data first, if it has a name."""
    name = "obj" if function is torch.asarray else "data"
    if args or name not in kwargs:
        return args, kwargs
    return [kwargs[name]], {k: v for k, v in kwargs.items() if k != name}


def _from_data(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        if not args:
            raise GraphBreak("FJ0121", f"torch.{function.__name__}() without data")
        if isinstance(args[0].realize(), TensorValue):
            if function is torch.asarray and "requires_grad" in kwargs:
                raise GraphBreak("FJ0121", "torch.asarray() of a tensor with requires_grad=")
            return graph_call(space, function, args, kwargs)
        return _of_numbers(space, args, kwargs)

    return handler


LOOKASIDES.update({f: _from_data(f) for f in (torch.tensor, torch.as_tensor, torch.asarray)})


def _of_numbers(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """``torch.tensor`` of numbers and tensors without dimensions."""
    data = args[0].realize()
    if hasattr(data, "number"):  # a scalar of numpy
        args = [data.number(), *args[1:]]
        data = args[0].realize()
    if _constant_data(space, data):
        return graph_call(space, torch.tensor, args, kwargs)
    numbers, shape = _numbers(space, data)
    wanted = {name: value for name, value in kwargs.items() if not value.is_none()}
    plain_options = not args[1:] and wanted.keys() <= {"dtype", "device"}
    if not 0 < len(numbers) <= _MOST_NUMBERS or not plain_options:
        raise GraphBreak("FJ0121", "torch.tensor() of data that is not constant")
    inferred = functools.reduce(torch.promote_types, map(_dtype_of, numbers))
    wanted = {"dtype": ConstantValue(inferred), **wanted}
    scalar = TupleValue([])
    made = [
        _of_read(space, number, wanted)
        or _filled(space, scalar, number, wanted)
        or _copied(space, number, wanted)
        or graph_call(space, torch.scalar_tensor, [number], wanted)
        for number in numbers
    ]
    if not shape:
        return made[0]
    row = graph_call(space, torch.stack, [ListValue(made)], {})
    return graph_call(space, torch.reshape, [row, space.constant(shape)], {}) if shape[1:] else row


def _dtype_of(number: Value) -> torch.dtype:
    """The dtype that ``torch.tensor`` infers from an element."""
    if isinstance(number, TensorValue):
        return number.metadata().dtype  # type: ignore[no-any-return]
    kinds = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
    return kinds[number.python_type()]


def _of_read(space: Space, number: Value, options: dict[str, Value]) -> Value | None:
    """An element that is read out of a tensor; None for other elements."""
    if not isinstance(number, ReadNumber):
        return None
    made = number.tensor
    if number.python_type() is not float or "device" in options or default_devices():
        device = options.get("device", ConstantValue(None)).realize()
        if device.is_none() or torch.device(device.as_python()).type != "cpu":
            raise GraphBreak("FJ0121", "torch.tensor() of a number out of a tensor")
    return tensor_call(space, "to", made, options["dtype"], copy=ConstantValue(True))


def _copied(space: Space, number: Value, options: dict[str, Value]) -> Value | None:
    """An element that is a tensor, whose number is read in eager mode; None for other elements."""
    if not isinstance(number, TensorValue):
        return None
    own, dtype = number.metadata(), _dtype(options)
    elsewhere = "device" in options or own.device.type != "cpu" or default_devices()
    if elsewhere or torch.promote_types(own.dtype, dtype) != dtype:
        raise GraphBreak("FJ0121", "torch.tensor() of tensors, which changes their numbers")
    made = tensor_call(space, "detach", number)
    return tensor_call(space, "to", made, ConstantValue(dtype))


def _filled(space: Space, size: Value, number: Value, options: dict[str, Value]) -> Value | None:
    """A tensor of a float that varies; None for other numbers. Compilers build in what a factory
    function is given, and take the factor of a product as an input."""
    if not isinstance(number, SymbolicValue) or number.python_type() is not float:
        return None
    if number.now() is None or not _dtype(options).is_floating_point:
        return None
    ones = graph_call(space, torch.ones, [size], options)
    return graph_call(space, operator.mul, [ones, number], {})


@lookaside(torch.full)
def _full(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = {**dict(zip(("size", "fill_value"), args, strict=False)), **kwargs}
    options = {k: v for k, v in named.items() if k in ("dtype", "device") and not v.is_none()}
    if len(args) <= 2 and named.keys() - {"dtype", "device"} == {"size", "fill_value"}:
        number = named["fill_value"].realize()
        made = _filled(space, named["size"], number, options)
        if made is not None:  # torch.full refuses what the dtype cannot hold
            most = torch.finfo(_dtype(options)).max
            bounds = (("<=", most), (">=", -most))
            tests = (space.compare(op, number, ConstantValue(bound)) for op, bound in bounds)
            if all(space.truth(space.now(test)) for test in tests):
                return made
    return graph_call(space, torch.full, args, kwargs)


def _dtype(options: dict[str, Value]) -> torch.dtype:
    known = options.get("dtype")
    dtype = torch.get_default_dtype() if known is None else known.realize().as_python()
    return PYTHON_DTYPES.get(dtype, dtype)


#: A tensor of more numbers than this, some of which vary, is made by Python.
_MOST_NUMBERS = 64


def _numbers(space: Space, value: Value) -> tuple[list[Value], tuple[int, ...]]:
    """The numbers in nested lists and their shape; none if something else is in them."""
    value = value.realize()
    kind = value.python_type()
    if isinstance(value, TensorValue) and not value.metadata().shape:
        return [value], ()
    if kind in (bool, int, float):
        return [plain(value) if kind is bool else value], ()
    items = value.items_now(space) if kind in (list, tuple, torch.Size) else None
    parts = [_numbers(space, item) for item in items or ()]
    if not all(numbers and shape == parts[0][1] for numbers, shape in parts):
        return [], ()
    numbers = [number for part, _ in parts for number in part]
    return numbers, (len(parts), *(parts[0][1] if parts else ()))


def _constant_data(space: Space, value: Value) -> bool:
    value = value.realize()
    if value.is_constant:
        return True
    if isinstance(value, TensorValue):
        return False
    items = value.items_now(space) if value.python_type() in (list, tuple) else None
    return items is not None and all(_constant_data(space, item) for item in items)


# -- the constructors of old -----------------------------------------------------------------------


def _legacy(what: str, dtype: torch.dtype | None, device: torch.device | None = None) -> Handler:
    """``torch.FloatTensor`` and the like, of sizes, of a list, or on a tensor's memory. Without a
    dtype it is the default one, or that of the tensor."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        given = [arg.realize() for arg in args]
        first = given[0] if given else ConstantValue(0)
        place = device or torch.device(torch._C._get_default_device())
        kind = ConstantValue(dtype or torch.get_default_dtype())
        options: dict[str, Value] = {"dtype": kind, "device": ConstantValue(place)}
        if kwargs or (given[1:] and any(size.python_type() is not int for size in given)):
            raise GraphBreak("FJ0121", f"{what}() with these arguments")
        if isinstance(first, TensorValue):
            own = first.metadata()
            if dtype not in (None, own.dtype) or device not in (None, own.device):
                raise GraphBreak("FJ0121", f"{what}() of a tensor of another kind")
            return graph_call(space, torch.ops.aten.alias.default, [first], {})
        if first.python_type() is int:
            return graph_call(space, torch.empty, [TupleValue(given or [first])], options)
        if first.python_type() is torch.Size:
            return graph_call(space, torch.empty, [first], options)
        if first.python_type() in (list, tuple):
            return space.call(space.constant(torch.tensor), [first], options)
        raise GraphBreak("FJ0121", f"{what}() of a {first.describe()}")

    return handler


LOOKASIDES[torch.Tensor] = _legacy("torch.Tensor", None)
for _cls in torch._tensor_classes:
    if _cls.__module__ == "torch":  # of dense tensors on the CPU
        LOOKASIDES[_cls] = _legacy(f"torch.{_cls.__name__}", _cls.dtype, torch.device("cpu"))


def new_like(space: Space, tensor: TensorValue, name: str, args: Args, kwargs: Kwargs) -> Result:
    """``tensor.new(...)`` and ``tensor.new_tensor(...)``."""
    if tensor.cls not in (torch.Tensor, torch.nn.Parameter):
        raise GraphBreak("FJ0111", f"Tensor.{name}()")
    own = tensor.metadata()
    if name == "new":
        return _legacy("Tensor.new", own.dtype, own.device)(space, args, kwargs)
    options = {"dtype": ConstantValue(own.dtype), "device": ConstantValue(own.device)}
    given = {k: v for k, v in kwargs.items() if not v.is_none()}
    return space.call_now(space.constant(torch.tensor), args, {**options, **given})


def as_type(space: Space, tensor: TensorValue, args: Args, kwargs: Kwargs) -> Result:
    """``tensor.type(...)``. C code asks a class such as ``torch.HalfTensor`` for its name."""
    named = {**dict(zip(("dtype", "non_blocking"), args, strict=False)), **kwargs}
    wanted = named.get("dtype", ConstantValue(None)).realize()
    if wanted.is_none():
        metadata = tensor.metadata()
        if metadata.device.type != "cpu" or named.keys() - {"dtype"}:
            raise GraphBreak("FJ0111", "Tensor.type() of a tensor that is not on the CPU")
        return ConstantValue(torch.empty(0, dtype=metadata.dtype).type())
    if type(wanted.obj) is type(torch.HalfTensor):
        wanted = ConstantValue(f"{wanted.obj.__module__}.{wanted.obj.__name__}")
    if wanted.obj is not None or len(args) > 2:
        raise GraphBreak("FJ0111", f"Tensor.type() of a {wanted.describe()}")
    return graph_call_method(space, "type", [tensor], {**named, "dtype": wanted})
