"""Arrays and scalars of numpy: attributes, dtypes, layouts, and tensors made of them."""

from __future__ import annotations

import operator

import numpy
import pytest
import torch

from checking import check, check_between, said

X = torch.arange(6.0).reshape(2, 3) / 4
ARRAY = numpy.arange(6.0).reshape(2, 3)


def tensor_of_a_part_of_an_array(x):
    array = numpy.arange(6.0)
    parts = torch.from_numpy(array[2:]), torch.as_tensor(array[3:])
    return x + 1, [(part.storage_offset(), part * 2) for part in parts]


def test_tensor_of_a_part_of_an_array() -> None:
    check(tensor_of_a_part_of_an_array, X, graphs=3, ops=6)


def attributes_of_arrays(a):
    return (
        a.__class__, type(a.sum()).__name__, said(getattr, a, "other"), hasattr(a, "other"),
        getattr(a, "other", 3), said(len, a.sum()), said(len, numpy.reshape(a.sum(), ())), len(a),
    )  # fmt: skip


def items_of_arrays(a):
    a.__setitem__(0, 5.0)
    return a.__getitem__(1), a.__getitem__((0, 1)), said(a.__getitem__, 7)


def functions_not_alike(a):
    return (
        numpy.argsort(a), numpy.lib.stride_tricks.sliding_window_view(a, (2, 2)),
        numpy.broadcast_to(a, (2, 2, 3)), numpy.diagonal(a), numpy.linalg.slogdet(a @ a.T),
    )  # fmt: skip


def lists_without_arrays(a):
    return (
        numpy.broadcast_shapes((1, 3), (2, 1)), numpy.divmod(7, 2), numpy.frexp(3.0),
        numpy.meshgrid([1, 2], [3]), numpy.split(numpy.array([1, 2, 3, 4]), 2),
        numpy.nonzero([1, 0]),
        numpy.logspace(0, 1, 3), numpy.hanning(4),
    )  # fmt: skip


def layouts_of_arrays(a):
    t = a.T
    return (
        numpy.concatenate([t, t]), numpy.stack([t, t], -1), numpy.cumsum(t, axis=0), t[:, [0, 1]],
        numpy.pad(t, 1), t.copy(), t.astype(numpy.float32), numpy.outer(t, t),
    )  # fmt: skip


def arrays_under_autocast(a):
    with torch.autocast("cpu"):
        return numpy.sum(a) + 1


def comparisons_of_dtypes(a):
    return (
        a.dtype == numpy.float64, a.dtype != numpy.float32, said(operator.lt, a.dtype, 3),
        a.dtype <= numpy.dtype("float64"), numpy.dtype(float), numpy.dtype(numpy.int8).itemsize,
        numpy.finfo(numpy.float32).eps, numpy.iinfo(numpy.int8).max, a.dtype == "float64",
    )  # fmt: skip


SCALAR = numpy.float32(2.0)


def methods_of_scalars(a):
    return SCALAR.item(), SCALAR.astype(numpy.int64), SCALAR.is_integer(), said(SCALAR.item, 3)


def tensors_of_arrays(a):
    return (
        said(torch.from_numpy, 3), said(torch.from_numpy, a.sum()), torch.from_numpy(a) + 1,
        torch.tensor(a, requires_grad=True), torch.asarray(a, copy=True),
    )  # fmt: skip


def test_arrays_that_are_too_large_to_try():
    def run(x, a):
        return x + 1, a[:3] + 1

    check(run, torch.ones(3), numpy.zeros((1 << 24) + 2, numpy.uint8), graphs=2, ops=3)


#: (program, graphs, operations captured)
PROGRAMS = [
    (attributes_of_arrays, 1, 7), (items_of_arrays, 1, 6), (functions_not_alike, 3, 4),
    (lists_without_arrays, 3, 18), (layouts_of_arrays, 3, 6), (arrays_under_autocast, 2, 5),
    (comparisons_of_dtypes, 2, 2), (methods_of_scalars, 1, 2), (tensors_of_arrays, 4, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, ARRAY, graphs=graphs, ops=ops)
