"""Gradients of graphs of which only some outputs are differentiated: those that reach an input
through a write, under whichever name the tensor is read afterwards, and None where none does."""

import pytest
import torch

import framejit
from checking import EXACT, Comparison


def read_by_its_own_name(o, x, w, u):
    o.index_add_(0, torch.tensor([0, 2]), x[:2] * w[:2])
    y = x + o
    return y, y * u


def read_by_the_name_of_the_result(o, x, w, u):
    p = o.index_add_(0, torch.tensor([0, 2]), x[:2] * w[:2])
    y = x + p
    return y, y * u, o * y


def read_by_both_names(o, x, w, u):
    p = o.add_(x * w)
    y = p * 2
    return y, o.sin() * y, (y + o) * u


def written_twice(o, x, w, u):
    o.add_(x)
    o.mul_(w)
    y = x + o
    return y, y * u, o.exp() * y


def written_through_a_view(o, x, w, u):
    view = o[1:]
    view.add_(x[1:])
    view.mul_(w[1:])
    y = o * 2
    return y, view + y[1:], y * u


def read_through_a_view(o, x, w, u):
    view = o[:2]
    o.add_(w)
    o.mul_(x)
    y = view * 2
    return y, y * u[:2], (x + o)[:2] * y


PROGRAMS = [
    read_by_its_own_name, read_by_the_name_of_the_result, read_by_both_names, written_twice,
    written_through_a_view, read_through_a_view,
]  # fmt: skip


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1), (-1,), (0, -1)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("with_history", [True, False], ids=["history", "plain"])
def test_gradients_of_some_outputs(program, wanted, with_history):
    """``wanted``: which of the outputs are differentiated."""

    def gradients(run):
        torch.manual_seed(0)
        o, x, w, u = (torch.rand(4, 3) for _ in range(4))
        leaves = [t.requires_grad_() for t in ((o, x, w, u) if with_history else (x, w, u))]
        outputs = run(o * 1, x, w, u)
        loss = sum((outputs[i] * (2 + i)).square().sum() for i in set(wanted))
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        return [f if f is None else f.clone() for f in found], outputs

    framejit.reset()
    expected = gradients(program)
    got = gradients(framejit.compile(program, backend="aot_eager", fullgraph=True))
    assert [g is None for g in got[0]] == [e is None for e in expected[0]]
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_of_leaves_that_are_only_written_to_are_not_called(backend):
    """No gradient comes to what an optimizer has changed, and nothing else has used."""

    def step(w, v, x):
        with torch.no_grad():
            v.sub_(x, alpha=0.5)
        return (w * x).sum()

    def outcome(function):
        w, v, called = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), []
        v.register_hook(called.append)
        for _ in range(2):
            function(w, v, torch.ones(3)).backward()
        loss = function(w, v, torch.ones(3))
        found = torch.autograd.grad(loss, [w, v], allow_unused=True)
        return w.grad, v.grad, v.detach(), v.is_leaf, found, called

    compiled = framejit.compile(step, backend=backend, fullgraph=True)
    got, expected = outcome(compiled), outcome(step)
    Comparison(EXACT).compare(expected, got, "")
    assert expected[-1] == [] and expected[1] is None
