"""Writes to tensors whose elements do not lie in order, where AOTAutograd traces them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes

SLOW = pytest.mark.slow


def x23():
    return torch.arange(6.0).reshape(2, 3)


def turned_in_place(x):
    y = x * 2
    y.t_()
    y.masked_fill_(y > 2, 0)
    return y, y + 1


def a_turned_view(x):
    y = (x * 2).t()
    y.masked_fill_(y > 2, 0)
    y.cumsum_(0)
    z = y.reshape(-1)  # a copy
    z += 1
    return y, z, y.t()


def operators_on_turned_tensors(x):
    y = (x * 2).t()
    y[y > 2] = 0
    y[0] += 1
    y **= 2
    y.tril_()
    return y, y.sum(0)


def by_index(x):
    y = (x * 2).t()
    y.scatter_(0, torch.zeros(1, 2, dtype=torch.long), 4.0)
    y.index_copy_(0, torch.tensor([1]), torch.ones(1, 2))
    y.masked_scatter_(y > 3, torch.ones(6))
    return y


def lists_and_results(x):
    some = [(x * 2).t(), (x * 3).t()]
    torch._foreach_clamp_max_(some, 3.0)
    out = torch.zeros(2, 3).t()
    torch.cumsum(x.t(), 0, out=out)
    return some, out


def channels_last(x):
    y = x.reshape(1, 3, 1, 2).expand(2, 3, 2, 2).clone(memory_format=torch.channels_last)
    y.masked_fill_(y > 3, 0)
    y.index_add_(0, torch.tensor([0]), torch.ones(1, 3, 2, 2))
    return y


def random_numbers(x):
    y = (x * 2).t()
    functional.dropout(y, 0.5, True, inplace=True)
    return y, torch.ones(2, 3).t().uniform_(), (x / 10).t().bernoulli_(0.5)


def strides_of_arguments(x):
    turned = x.t()
    turned.masked_fill_(turned > 2, 0)
    x[:, ::2].cumsum_(0)
    return turned.reshape(-1)


def diagonals_of_views(x):
    y = torch.stack([x[:, :2], x[:, 1:]])
    y[0].fill_diagonal_(9)
    (x * 2).t().fill_diagonal_(3)
    x[:, 1:].fill_diagonal_(7)
    return y


PROGRAMS = [
    turned_in_place, a_turned_view, operators_on_turned_tensors, by_index, lists_and_results,
    channels_last, random_numbers, strides_of_arguments, diagonals_of_views,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_writes_leave_strides_alone(program, backend):
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        outcomes = []
        for function in (program, compiled):
            torch.manual_seed(0)
            outcomes.append(Outcome(function, (x23(),), {}))
        compare_outcomes(*outcomes)


@pytest.mark.parametrize("program", [a_turned_view, strides_of_arguments], ids=lambda p: p.__name__)
def test_with_sizes_that_vary(program):
    compiled = framejit.compile(program, backend="aot_eager", fullgraph=True)
    for sizes in [(2, 3), (3, 4), (5, 6), (7, 3)]:
        x = torch.arange(float(sizes[0] * sizes[1])).reshape(sizes)
        compare_outcomes(*[Outcome(f, (copy.deepcopy(x),), {}) for f in (program, compiled)])


def test_in_training():
    def f(x):
        y = x.square().t()
        y.masked_fill_(y > 4, 0)
        y.cumsum_(1)
        return y, y.reshape(-1) * 2

    compiled = framejit.compile(f, backend="aot_eager", fullgraph=True)
    for function, gradients in ((f, expected := []), (compiled, got := [])):
        x = x23().requires_grad_()
        y, z = function(x)
        assert y.stride() == (1, 3)
        (y.sin().sum() + z.cos().sum()).backward()
        gradients.append(x.grad)
    assert torch.equal(got[0], expected[0])


def test_inductor():
    compiled = framejit.compile(a_turned_view, fullgraph=True)
    compare_outcomes(*[Outcome(f, (x23(),), {}) for f in (a_turned_view, compiled)])


LAYERS = {
    "batch_norm": lambda: nn.BatchNorm1d(3), "logsigmoid": nn.LogSigmoid, "rrelu": nn.RReLU,
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=SLOW)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_results_of_turned_operands(name, training, backend):
    """The kernels return contiguous results, unlike the rules for fake tensors."""
    layer = LAYERS[name]().train(training)
    other = copy.deepcopy(layer)

    def program(layer):
        def f(x):
            y = layer(x.transpose(1, 2))
            return y, y.stride(), y.is_contiguous(), y.view(2, -1)

        return f

    compiled = framejit.compile(program(layer), backend=backend, fullgraph=True)
    for _ in range(2):
        x = torch.arange(24.0).reshape(2, 4, 3)
        torch.manual_seed(0)
        *expected, flat = program(other)(x)
        torch.manual_seed(0)
        *got, got_flat = compiled(x)
        assert got[1:] == expected[1:] and got[0].stride() == expected[0].stride()
        if backend != "inductor" or name != "rrelu" or not training:  # other random numbers
            torch.testing.assert_close(got_flat, flat)


def test_channels_last_stays():
    layer = nn.BatchNorm2d(3).eval()

    def f(x):
        y = layer(x.to(memory_format=torch.channels_last))
        return y, y.stride()

    check(f, torch.ones(2, 3, 4, 5), graphs=1, ops=2)


def test_other_graphs_are_left_as_they_are():
    backend = CountingBackend()
    f = framejit.compile(lambda x: (x * 2).add_(1), backend=backend)
    f(x23())
    assert backend.graphs[0].meta["writes"] == []


def test_packages(tmp_path):
    compiled = framejit.compile(a_turned_view, backend="aot_eager")
    compiled(x23())
    compiled.save_package(tmp_path / "package")
    again = framejit.compile(a_turned_view, backend="aot_eager")
    again.load_package(tmp_path / "package")
    with framejit.run():
        compare_outcomes(*[Outcome(f, (x23(),), {}) for f in (a_turned_view, again)])
