"""Tensors made of data, sizes and other tensors; classes of Python and torch as dtypes."""

from __future__ import annotations

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes, said

X = torch.arange(6.0).reshape(2, 3) / 4


def sizes_of_new(x):
    made = x.new(2, 3).zero_() + x, x.new(torch.Size([2, 3])).fill_(1), x.new(3).shape
    return (*made, x.new().shape, x.long().new(x.shape[0], 1).zero_(), x.new(x.size()).zero_())


def data_of_new(x):
    doubled = x.double()
    made = x.new([1, 2.5]), x.new((3, 4)), x.long().new([1.5]), doubled.new([[1.0], [2.0]])
    return (*made, x.new([]), x.new_tensor([1, 2]), x.new_tensor(data=[True]))


def new_on_the_memory_of_another(x):
    y = x * 2
    z = x.new(y)
    z += 1
    return y, z, z is y, said(x.new, x.long())[0]


def classes_with_the_names_of_dtypes(x):
    made = torch.FloatTensor([1, 2, 3]) + x, torch.LongTensor(2, 3).zero_(), torch.Tensor([1, 2])
    on_memory = torch.Tensor(x), torch.FloatTensor(x), torch.BoolTensor([[True, False]])
    sized = torch.Tensor(2, 3).fill_(1), torch.Tensor(torch.Size([2])).zero_(), torch.Tensor()
    return made, on_memory, sized


def types_by_class(x):
    named = x.type(torch.HalfTensor), x.type(torch.DoubleTensor), x.type(dtype=torch.LongTensor)
    return named, x.type(torch.FloatTensor) is x, x.type("torch.IntTensor")


def dtypes_of_python(x):
    moved = x.to(float), x.to(dtype=int), x.to(bool), x.to(complex), x.long().to("cpu", float)
    made = torch.zeros(2, dtype=int), torch.full((2,), 1, dtype=float), torch.arange(3, dtype=float)
    like = x.new_zeros(3, dtype=int), torch.ones_like(x, dtype=bool), x.new_tensor([1], dtype=float)
    sums = x.sum(dtype=float), x.softmax(-1, dtype=float), torch.sum(x, 0, dtype=int)
    more = torch.nn.functional.softmax(x, 0, dtype=float), torch.as_tensor([1, 2], dtype=float)
    return moved, made, like, sums, more, x.view(float if x.shape[1] % 2 == 0 else torch.int32)


def copies_of_tensors(x):
    copied = torch.tensor(x), torch.tensor(data=x, dtype=torch.float64), x.new_tensor(x.double())
    same = torch.as_tensor(x) is x, torch.as_tensor(data=x) is x, torch.as_tensor(x, dtype=int)
    y = torch.tensor(x)
    y += 1
    return copied, same, y, x, torch.asarray(obj=x), torch.tensor(x[0, 0], dtype=int)


def elements_that_are_tensors(x):
    row = [x[0, 0], x[1, 1].double(), 2]
    made = torch.tensor(row), torch.tensor([[x.sum(), 1.5], [2, x[0, 1]]]), torch.tensor((x[0, 2],))
    return made, torch.tensor([x[0, 0], True], dtype=float)


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize(
    "program",
    [
        sizes_of_new, data_of_new, classes_with_the_names_of_dtypes, types_by_class,
        dtypes_of_python, copies_of_tensors, elements_that_are_tensors,
    ],
)  # fmt: skip
def test_new_tensors(program):
    check(program, X, graphs=1, fullgraph=True)


REFUSED = [
    lambda x: torch.LongTensor(x), lambda x: torch.Tensor(1.5), lambda x: x.type(float),
    lambda x: torch.tensor([x[0], 1]), lambda x: torch.tensor([x[0, 1]], dtype=int),
    lambda x: torch.ops.aten.zeros([2], dtype=float), lambda x: torch.zeros(2, dtype=str),
    lambda x: x.type(), lambda x: x.type(x), lambda x: x.new(2.5), lambda x: x.new(2, "3"),
    lambda x: x.to(torch.HalfTensor),
]  # fmt: skip


@pytest.mark.parametrize("program", REFUSED)
def test_what_torch_refuses_is_refused(program):
    check(lambda x: (x + 1, said(program, x)[0]), X, graphs=1)


def test_new_tensors_on_the_memory_of_others():
    check(new_on_the_memory_of_another, X, graphs=1)


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_copies_do_not_take_part_in_autograd():
    def run(x):
        made = torch.tensor(x * 2), torch.tensor([x[0, 0], x[1, 0]]), torch.as_tensor(x * 2)
        return [(one, one.requires_grad) for one in (*made, torch.asarray(x), x.new(x))]

    check(run, X.clone().requires_grad_(), graphs=1, fullgraph=True)
    leaf = X.clone().requires_grad_()
    compiled = framejit.compile(
        lambda x: torch.tensor(x * 2) + torch.as_tensor(x * 3), backend="aot_eager"
    )
    compiled(leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.full_like(leaf, 3))


def test_the_default_dtype_is_that_of_each_call():
    def run(x):
        return torch.Tensor([1, 2]), torch.tensor([x[0, 0].half(), 1.5]), x + 1

    compiled = framejit.compile(run, backend="eager", fullgraph=True)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            expected, got = run(X), compiled(X)
        finally:
            torch.set_default_dtype(torch.float32)
        assert [one.dtype for one in got] == [one.dtype for one in expected]


def test_sizes_that_vary():
    def run(x, n):
        return x.new(n, 2).zero_(), torch.LongTensor(n).zero_(), torch.Tensor(x.size()).zero_()

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend, fullgraph=True)
    for n in (2, 3, 4, 5):
        expected, got = run(torch.ones(n), n), compiled(torch.ones(n), n)
        assert [one.tolist() for one in got] == [one.tolist() for one in expected]
    assert len(backend.graphs) == 2


def test_a_number_is_no_answer_to_requires_grad():
    """Torch takes a bool, and nothing that is equal to one."""

    def run(x, wanted):
        return torch.ones(2, requires_grad=wanted), x.new_zeros(2, requires_grad=wanted), x + 1

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend)
    for wanted in (False, True, 1, 0, torch.tensor(True)):
        expected, got = Outcome(run, [X, wanted], {}), Outcome(compiled, [X, wanted], {})
        compare_outcomes(expected, got)
    assert len(backend.graphs) == 2
