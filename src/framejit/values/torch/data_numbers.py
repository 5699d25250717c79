"""Numbers out of tensors as symbols whose values are known when the graph runs.

In: conversions of tensors to Python's numbers and lists, where the program wants them in the graph
(`config.capture_scalar_outputs`). Out: symbolic numbers, and lists of them. Next: overrides.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from framejit import config
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue, graph_call, graph_call_method

#: Lists of more elements are made by Python: each element is an operation of the graph.
_MOST_ELEMENTS = 256


def number_of_data(space: Space, tensor: Any) -> Value | None:
    """``tensor.item()`` as a symbol; None if Python has to read it."""
    if not config.capture_scalar_outputs or not isinstance(tensor, TensorValue):
        return None
    if space.transforms or not _has_elements(tensor, 1):
        return None
    return _item(space, tensor)


def _item(space: Space, tensor: TensorValue) -> Value:
    _ = space.builder.symbols  # the number becomes one
    return space.now(graph_call_method(space, "item", [tensor], {})).realize()


def index_of_data(space: Space, tensor: Any) -> Value | None:
    """``operator.index(tensor)`` as a symbol; None if Python has to read it."""
    dtype = tensor.metadata().dtype if isinstance(tensor, TensorValue) else None
    if dtype is None or dtype.is_floating_point or dtype.is_complex or str(dtype) == "torch.bool":
        return None
    return number_of_data(space, tensor)


def list_of_data(space: Space, tensor: TensorValue) -> Value | None:
    """``tensor.tolist()`` with a symbol for each element; None if Python has to read them."""
    if not config.capture_scalar_outputs or space.transforms or tensor.metadata().dtype.is_complex:
        return None
    if not _has_elements(tensor, _MOST_ELEMENTS):
        return None
    return _listed(space, tensor)


def _listed(space: Space, tensor: TensorValue) -> Value | None:
    shape = tensor.metadata().shape
    if not shape:
        return number_of_data(space, tensor)
    if not math.prod(shape):
        return _empty(shape)
    parts = space.items(space.now(graph_call_method(space, "unbind", [tensor], {})))
    listed = [_listed(space, part.realize()) for part in parts]  # type: ignore[arg-type]
    return ListValue([one for one in listed if one is not None])


def _empty(shape: Any) -> Value:
    return ListValue([_empty(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else [])


def _has_elements(tensor: TensorValue, most: int) -> bool:
    """Is it known how many there are, and are they no more than this? For one: exactly one."""
    shape = tensor.metadata().shape
    if not all(type(size) is int for size in shape):
        return False
    return math.prod(shape) == 1 if most == 1 else math.prod(shape) <= most


def indexed_by_data(space: Space, tensor: TensorValue, key: Value) -> Result | None:
    """``tensor[key]`` with tensors for numbers; None if it is none of that, or if Python
    reads them."""
    if type(key) is SliceValue:
        return _sliced(space, tensor, key)
    if not space.maps_indices:
        return None
    parts = [part.realize() for part in (key.items if type(key) is TupleValue else [key])]  # type: ignore[attr-defined]
    if not all(isinstance(part, TensorValue) for part in parts):
        return None
    return graph_call(space, torch.ops.aten.index.Tensor, [tensor, ListValue(parts)], {})


def _sliced(space: Space, tensor: TensorValue, key: SliceValue) -> Result | None:
    """``x[a:b]`` where ``a`` or ``b`` are tensors; None if neither is, or if Python has to
    read them."""
    bounds: list[Value] = []
    parts = [bound.realize() for bound in (key.start, key.stop, key.step)]
    if not any(isinstance(part, TensorValue) for part in parts):
        return None
    for bound in parts:
        held = bound.realize()
        number = index_of_data(space, held) if isinstance(held, TensorValue) else held
        if number is None:
            return None
        bounds.append(number)
    return graph_call(space, operator.getitem, [tensor, SliceValue(*bounds)], {})


@lookaside(torch.equal)
def _equal(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return _compared(space, torch.eq, torch.equal, args, kwargs)


@lookaside(torch.allclose)
def _allclose(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return _compared(space, torch.isclose, torch.allclose, args, kwargs)


def _compared(space: Space, each: Any, whole: Any, args: Args, kwargs: Kwargs) -> Result:
    """Whether all elements of two tensors are alike, as a number of data."""
    tensors = [arg.realize() for arg in args[:2]]
    if config.capture_scalar_outputs and len(tensors) == 2 and not space.transforms:
        if all(type(tensor) is TensorValue for tensor in tensors):
            metas = [tensor.metadata() for tensor in tensors]  # type: ignore[attr-defined]
            kinds = [(m.dtype, m.device, m.layout) for m in metas]
            known = all(type(size) is int for meta in metas for size in meta.shape)
            alike_shapes = metas[0].shape == metas[1].shape
            if kinds[0] == kinds[1] and known and not alike_shapes and whole is torch.equal:
                return ConstantValue(False)
            if kinds[0] == kinds[1] and known and alike_shapes:
                found = graph_call(space, each, [*tensors, *args[2:]], kwargs)
                alike = graph_call_method(space, "all", [found], {})
                return _item(space, alike.realize())  # type: ignore[arg-type]
    return graph_call(space, whole, args, kwargs)


#: What ``item()`` of a tensor becomes in place of these methods.
CONVERSIONS = {"__int__": int, "__float__": float}


def of_data(space: Space, tensor: TensorValue, name: str) -> Value | None:
    """A method that reads data, captured; None if Python has to call it."""
    if name == "item":
        return _item(space, tensor) if config.capture_scalar_outputs else None
    if name == "tolist":
        return list_of_data(space, tensor)
    if name == "__index__":
        return index_of_data(space, tensor)
    if name not in CONVERSIONS or tensor.metadata().dtype.is_complex:
        return None
    number = number_of_data(space, tensor)
    if number is None:
        return None
    return space.now(LOOKASIDES[CONVERSIONS[name]](space, [number], {})).realize()
