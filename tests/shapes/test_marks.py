"""Marks on tensors, framejit's own and PyTorch's; what is said when the code contradicts one."""

import re

import pytest
import torch

import framejit
from checking import CountingBackend


@pytest.fixture
def backend():
    return CountingBackend()


def double(x):
    return x * 2


def sizes(graph):
    values = [n.meta["example_value"] for n in graph.graph.find_nodes(op="placeholder")]
    return [[type(s) for s in v.shape] for v in values if isinstance(v, torch.Tensor)]


def test_marked_dimensions_are_symbolic_at_once(backend):
    compiled = framejit.compile(double, backend=backend)
    x = torch.randn(4, 5)
    framejit.mark_dynamic(x, 0)
    compiled(x)
    for n in (6, 9):
        assert compiled(torch.randn(n, 5)).shape == (n, 5)
    assert sizes(backend.graphs[0]) == [[torch.SymInt, int]] and len(backend.graphs) == 1


def test_torchs_own_marks_count(backend):
    from torch._dynamo import mark_dynamic

    compiled = framejit.compile(double, backend=backend)
    x = torch.randn(4, 5)
    mark_dynamic(x, 1, min=2, max=8)
    compiled(x)
    compiled(torch.randn(4, 8))
    assert len(backend.graphs) == 1
    compiled(torch.randn(4, 9))
    assert len(backend.graphs) == 2


def test_torch_compile_sees_ours():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    x = torch.randn(4, 5)
    framejit.mark_dynamic(x, 0, min=2, max=100)
    compiled = torch.compile(double, backend=backend)
    compiled(x)
    compiled(torch.randn(6, 5))
    assert len(graphs) == 1


def test_bounds_are_checked(backend):
    compiled = framejit.compile(double, backend=backend)
    x = torch.randn(4)
    framejit.mark_dynamic(x, 0, min=3, max=10)
    compiled(x)
    compiled(torch.randn(10))
    assert len(backend.graphs) == 1
    y = compiled(torch.randn(11))
    assert y.shape == (11,) and len(backend.graphs) == 2


def test_two_ranges_hold_together(backend):
    compiled = framejit.compile(double, backend=backend)
    for bounds in ({"min": 3}, {"min": 2, "max": 10}, {"max": 20}):
        x = torch.randn(4)
        framejit.mark_dynamic(x, 0, **bounds)
        framejit.mark_dynamic(x, 0, min=3, max=10)
        framejit.reset()
        before = len(backend.graphs)
        for size in (4, 10, 3):
            compiled(x if size == 4 else torch.randn(size))
        assert len(backend.graphs) == before + 1
        compiled(torch.randn(11))
        assert len(backend.graphs) == before + 2


def test_static_dimensions_stay_constant(backend):
    compiled = framejit.compile(double, backend=backend)
    for n in (4, 6, 9):
        x = torch.randn(n, n)
        framejit.mark_static(x, 0)
        compiled(x)
    assert [sizes(graph)[0][0] for graph in backend.graphs] == [int, int, int]
    assert sizes(backend.graphs[2])[0][1] is torch.SymInt


def exactly_four(x):
    y = x + 1
    return y * torch.ones(4)


def test_a_mark_that_the_code_contradicts(backend):
    x = torch.randn(4)
    framejit.mark_dynamic(x, 0)
    with pytest.raises(framejit.exc.MarkContradicted) as caught:
        framejit.compile(exactly_four, backend=backend)(x)
    text = str(caught.value)
    assert "dimension 0 of L['x'] is marked as dynamic" in text
    line = r"test_marks.py:\d+ \(return y \* torch.ones\(4\)\)"
    assert re.search(line + " works for size 4 only", text)
    assert "maybe_mark_dynamic" in text and "sympy" not in text and not re.search(r"\bs\d", text)


def test_maybe_marked_may_be_one_size(backend):
    compiled = framejit.compile(exactly_four, backend=backend)
    x = torch.randn(4)
    framejit.maybe_mark_dynamic(x, 0)
    assert torch.equal(compiled(x), exactly_four(x))
    y = torch.randn(6)
    framejit.maybe_mark_dynamic(y, 0)
    compiled = framejit.compile(double, backend=backend)
    compiled(y)
    compiled(torch.randn(7))
    assert len(backend.graphs) == 2


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: framejit.mark_dynamic(3, 0), TypeError, "must be a tensor"),
        (lambda: framejit.mark_dynamic(torch.ones(2), 1), IndexError, "has no dimension 1"),
        (lambda: framejit.mark_dynamic(torch.ones(2), 0, min=3), ValueError, "is 2, outside of 3"),
        (lambda: framejit.mark_dynamic(torch.ones(2), 0, min=-3), ValueError, "not -3"),
        (lambda: framejit.mark_static(None), TypeError, "must be a tensor"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("ours, torchs", [
    (lambda x: framejit.mark_dynamic(x, 0), lambda x: torch._dynamo.mark_dynamic(x, 1)),
    (lambda x: framejit.maybe_mark_dynamic(x, 0), lambda x: torch._dynamo.maybe_mark_dynamic(x, 1)),
    (lambda x: framejit.mark_static(x, 0), lambda x: torch._dynamo.mark_static(x, 1)),
])  # fmt: skip
def test_both_kinds_of_marks_on_one_tensor(ours, torchs):
    one, other = torch.ones(4, 3), torch.ones(4, 3)
    ours(one), torchs(one), torchs(other), ours(other)
    assert one.__dict__.keys() | {"_specialize_on"} == other.__dict__.keys() | {"_specialize_on"}
    for x in (one, other):
        assert sorted(next(iter(x.__dict__.values()))) == [0, 1]
