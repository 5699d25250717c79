"""Methods of tensors and small functions of torch, with arguments that they take or refuse."""

from __future__ import annotations

import pytest
import torch

from checking import check, check_between, said
from framejit import config

X = torch.arange(6.0).reshape(2, 3) / 4


def bad_device(x):
    try:
        x = x + torch.zeros(3, device=torch.device("nowhere"))
    except RuntimeError as error:
        return x + 1, str(error)[:30]
    return x


def operations_that_return_their_argument(x):
    z = x * 2
    same = torch.nn.functional.dropout(x, training=False), torch.nn.functional.dropout(x, p=0.0)
    others = torch.nn.functional.alpha_dropout(x, training=False), torch.dropout(z, 0.5, False)
    kept = torch.nn.functional.relu(z, inplace=True), torch.positive(x), torch.add(x, 1, out=z)
    seen = [value is x for value in (*same, *others, *kept)]
    seen += [value is z for value in (*same, *others, *kept)]
    eval_ = torch.nn.Dropout(0.5).eval()
    drawn = torch.nn.functional.dropout(x, 0.5) is x, torch.nn.functional.relu(z) is z
    return eval_(z) is z, seen, drawn, same[0] + 1, x.contiguous() is x, x.double() is x


def test_groups_of_tensors_come_in_the_order_of_a_hash_table():
    def run(x, tensors):
        grouped = torch._C._group_tensors_by_device_and_dtype([tensors, tensors], True)
        return x + 1, list(grouped.items())

    kinds = (torch.float32, torch.float64, torch.float32, torch.int32, torch.bool, torch.float64)
    check(run, torch.ones(2), [torch.ones(2, dtype=kind) for kind in kinds], graphs=1, ops=1)


def test_what_was_checked_of_data_is_known():
    def run(x, count):
        number = count.item()
        torch._check(number >= 3)
        return (x + 1 if number >= 3 else x), number

    with config.patch(capture_scalar_outputs=True):
        check(run, torch.ones(2), torch.tensor(4), graphs=1, ops=4)


def missing_attributes(x):
    return said(getattr, x, "other"), said(getattr, x + 1, "other"), hasattr(x, "other"), x.grad


def lengths_of_tensors(x):
    none = x.sum()
    return (
        x.__len__(), list(x.__iter__()), said(len, none), said(none.__len__), said(iter, none),
        said(list, none), said(none.__iter__),
    )  # fmt: skip


def tensors_that_are_called(x):
    return said(x), said(x + 1, 2), said(lambda: x.sum()(1))


def sizes_refused(x):
    return (
        said(x.size, 7), said(x.size, "a"), x.size(dim=1), said(x.stride, 9), said(x.size, dim=-3),
        x.size(-1), x.stride(0), said(x.dim, 3), said(x.ndimension, a=1),
    )  # fmt: skip


def new_tensors(x):
    return (
        x.new(2, 3).shape, x.new_tensor([1, 2]), said(x.new_tensor, [1], [2]),
        x.new_tensor(data=[3]), x.new_tensor([1], dtype=None),
    )  # fmt: skip


def required_gradients(x):
    return (
        said(x.requires_grad_, False), said((x + 1).requires_grad_, False, True),
        said((x + 2).requires_grad_, other=1),
    )  # fmt: skip


def names_of_types(x):
    return x.type(), x.type(torch.float64), x.int().type(), x.to("meta").type()


def made_sizes(x):
    return (
        torch.Size([2, 3]), said(torch.Size, [2.0]), torch.Size(), said(torch.Size, 3),
        torch.Size((x.size(0), True)), torch.zeros(torch.Size([2])),
    )  # fmt: skip


def torch_check(x):
    return (
        said(torch._check, False), said(torch._check, False, lambda: "mine"),
        said(torch._check, 3), said(torch._check, True), said(torch._check, x.sum() > 0),
        said(torch._check_with, ValueError, False, None),
        said(torch._check_with, KeyError, False, lambda: 3),
    )  # fmt: skip


def annotated_for_torch_script(x):
    return torch.jit.annotate(int, 3), torch.jit.annotate(the_type=int, the_value=4)


def grouped_tensors(x):
    group = torch._C._group_tensors_by_device_and_dtype
    return said(group, [[x, x + 1], [x, x]], True), said(group, [[None, x], [x, x]])


def questions_about_dtypes(x):
    return (
        torch.is_floating_point(x), said(torch.is_floating_point, 3), said(torch.is_complex, [1]),
        said(torch.numel, 3), said(torch.is_floating_point),
    )  # fmt: skip


def old_autocast(x):
    torch.set_autocast_enabled(True)
    out = [torch.is_autocast_enabled()]
    torch.set_autocast_enabled(False)
    return out, torch.is_autocast_enabled()


class WithoutBuffers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        del self.__dict__["_buffers"]


WITHOUT_BUFFERS = WithoutBuffers()


def modules_without_buffers(x):
    return WITHOUT_BUFFERS.weight * x, said(getattr, WITHOUT_BUFFERS, "other")


def called_graph_break(x):
    y = x * 3
    torch._dynamo.graph_break()
    return y * 4


#: (program, graphs, operations captured)
BETWEEN = [
    (missing_attributes, 1, 3), (lengths_of_tensors, 1, 6), (tensors_that_are_called, 1, 4),
    (sizes_refused, 2, 2), (new_tensors, 2, 6), (required_gradients, 3, 4), (names_of_types, 2, 5),
    (made_sizes, 2, 3), (torch_check, 2, 4), (annotated_for_torch_script, 1, 2),
    (grouped_tensors, 2, 3), (questions_about_dtypes, 2, 2), (old_autocast, 2, 2),
    (modules_without_buffers, 1, 3), (called_graph_break, 2, 4),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (bad_device, 1, 1), (operations_that_return_their_argument, 1, 14),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
