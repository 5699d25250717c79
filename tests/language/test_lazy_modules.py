"""Lazy modules: they get their parameters in a call that runs as plain Python, and are captured
whole from the next one on."""

import copy

import torch
from torch import nn

import framejit
from checking import CountingBackend, Outcome, compare_outcomes

X = torch.arange(6.0).reshape(2, 3)


def call(module, x):
    return module(x) + 1


def both(make, *calls, **options):
    """The calls on two equal modules, one of them compiled; the graphs."""
    torch.manual_seed(0)
    plain, compiled_one = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(call, backend=backend, **options)
    for x in calls:
        torch.manual_seed(1)
        expected = Outcome(call, [plain, x.clone()], {})
        torch.manual_seed(1)
        got = Outcome(compiled, [compiled_one, x.clone()], {})
        compare_outcomes(expected, got)
        assert type(plain) is type(compiled_one)
    assert repr(plain) == repr(compiled_one)
    return len(backend.graphs), backend.ops


def test_one_graph_after_the_first_call():
    def network():
        return nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d())

    assert both(network, X, fullgraph=True) == (0, 0)
    assert both(network, X, X, X, fullgraph=True) == (1, 5)
    assert both(lambda: nn.LazyConv1d(4, 1), X[None], X[None], fullgraph=True) == (1, 2)


def test_an_error_of_the_first_call():
    assert both(lambda: nn.LazyConv1d(4, 9), X[None], X[None]) == (0, 0)


def test_a_lazy_module_of_each_call():
    def f(x):
        made = nn.LazyLinear(3, bias=False)
        return made(x + 1).shape, type(made), x * 2

    compiled = framejit.compile(f, backend="eager")
    for _ in range(4):
        shape, kind, y = compiled(X)
        assert (shape, kind) == ((2, 3), nn.Linear) and torch.equal(y, X * 2)


def test_new_lazy_modules_are_waited_for_twice():
    compiled = framejit.compile(lambda module, x: module(x * 2), backend="eager")
    for _ in range(4):
        torch.manual_seed(0)
        module = nn.LazyLinear(3)
        same = copy.deepcopy(module)
        torch.manual_seed(1)
        expected = same(X * 2)
        torch.manual_seed(1)
        assert torch.equal(compiled(module, X), expected)


def test_what_the_first_call_calls_is_not_captured():
    def outer(module, x):
        return helper(module(x))

    def helper(y):
        return y * 2

    backend = CountingBackend()
    compiled = framejit.compile(outer, backend=backend)
    module = nn.LazyLinear(3)
    first = compiled(module, X)
    assert not backend.graphs
    assert torch.equal(compiled(module, X), first) and len(backend.graphs) == 1
