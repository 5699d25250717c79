"""Do numpy and ``torch._numpy`` agree on made-up arrays?

In: the results of one function from both. Out: how the result is put together, or `Differs`.
Next: array_calls.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy
import torch
from torch.utils._pytree import tree_any


class Differs(Exception):
    """numpy and ``torch._numpy`` do not agree."""


class Leaf(NamedTuple):
    """What is known of one array among the results."""

    cls: type
    #: The position of the argument that it is, if it is one.
    argument: int | None
    #: It shares memory in torch, but not in numpy.
    copied: bool
    contiguous: bool
    owns: bool = False


@functools.cache
def numpy_on_torch() -> Any:
    """``torch._numpy``, imported when arrays are first met."""
    import torch._numpy

    return torch._numpy


def torch_dtype(array: Any) -> torch.dtype:
    """The dtype of tensors that corresponds to an array's."""
    return torch.from_numpy(numpy.empty(0, array.dtype)).dtype


def made_up_numbers(draw: Any, dtype: Any, count: int, odd: bool) -> Any:
    if dtype.kind == "b":
        return draw.integers(0, 2, count).astype(dtype)
    if dtype.kind in "iu":
        low = 1 if not odd else 0 if dtype.kind == "u" else -4
        return draw.integers(low, 5, count).astype(dtype)
    numbers = draw.normal(size=count) * 3 if odd else draw.uniform(0.1, 0.9, count)
    if odd:
        numbers[1::5], numbers[2::5], numbers[4::10] = 0.0, -1.5, 2.5
        numbers[3::20], numbers[8::20] = numpy.nan, numpy.inf
    if dtype.kind == "c":
        numbers = numbers + 1j * draw.uniform(0.1, 0.9, count)
    return numbers.astype(dtype)


def holds(kind: type, tree: Any) -> bool:
    """Is there an object of this kind in the lists and tuples?"""

    def found(part: Any) -> bool:
        return isinstance(part, kind)

    return tree_any(found, tree, is_leaf=found)


def form_of(answer: Any, made: Any, ours: list[Any], theirs: list[Any], compare: bool) -> Any:
    """How a result is put together: a list of forms, a `Leaf`, or ``(constant,)``."""
    library = numpy_on_torch()
    if type(answer) in (tuple, list) and isinstance(made, (tuple, list)):
        if len(answer) != len(made):
            raise Differs("another number of results")
        return [form_of(a, m, ours, theirs, compare) for a, m in zip(answer, made, strict=True)]
    if isinstance(made, library.ndarray):
        if type(answer) is not numpy.ndarray and not isinstance(answer, numpy.generic):
            raise Differs(f"it returns {type(answer).__name__}")
        return _leaf(answer, made.tensor, ours, theirs, compare)
    if isinstance(made, library.DType) and getattr(answer, "name", "") == made.name:
        return (answer,)
    if type(answer) is not type(made) and not isinstance(answer, numpy.generic):
        raise Differs(f"it returns {type(answer).__name__}")
    if not isinstance(made, (int, float, complex, str, type(None))) or answer != made:
        raise Differs("torch answers something else")
    return (answer,)


def _leaf(
    answer: Any, made: torch.Tensor, ours: list[Any], theirs: list[Any], compare: bool
) -> Leaf:
    scalar = isinstance(answer, numpy.generic)
    array = numpy.asarray(answer)
    for position, one in enumerate(ours):
        if answer is one:
            return Leaf(numpy.ndarray, position, False, True)
    if made.dtype != torch_dtype(array) or tuple(made.shape) != array.shape:
        raise Differs(f"torch gives {made.dtype} {list(made.shape)}, numpy {answer.dtype}")
    if not array.size and any(array.strides):
        raise Differs("a part without elements, which keeps its strides")
    if not scalar and not answer.flags.writeable:
        raise Differs("the result is read-only")
    shared = [not scalar and numpy.may_share_memory(answer, one) for one in ours]
    storage = made.untyped_storage().data_ptr()
    alike = [storage == two.untyped_storage().data_ptr() for two in theirs]
    if any(a and not b for a, b in zip(shared, alike, strict=True)):
        raise Differs("the result shares memory with an argument")
    copied = any(b and not a for a, b in zip(shared, alike, strict=True))
    made = made.resolve_conj().resolve_neg()
    if compare:
        same_numbers(array, made.numpy())
    contiguous = not any(shared) and bool(array.flags.c_contiguous)
    if not scalar and not contiguous and _layout(array) != _layout(made.numpy()):
        raise Differs("the result has another layout")
    return Leaf(type(answer), None, copied, contiguous, array.flags.owndata)


def _layout(array: Any) -> Any:
    """The strides that matter."""
    return [step for size, step in zip(array.shape, array.strides, strict=True) if size > 1]


def same_numbers(one: Any, two: Any) -> None:
    exact = one.dtype.kind in "biu"
    loose = 1e-2 if one.dtype.itemsize <= 2 else 1e-4 if one.dtype.name in _SINGLE else 1e-9
    same = (
        numpy.array_equal(one, two)
        if exact
        else numpy.allclose(one, two, rtol=loose, atol=loose, equal_nan=True)
    )
    if not same:
        raise Differs("torch computes other numbers for some inputs")


_SINGLE = ("float32", "complex64")
