"""Hooks on results of a compiled graph that backward does not come to, as it comes to others."""

import pytest
import torch

import framejit
from checking import Comparison, CountingBackend
from framejit.backends.aot import aot_eager


class Counting(CountingBackend):
    def __call__(self, gm, inputs):
        super().__call__(gm, inputs)
        return aot_eager(gm, inputs)


def from_one(x, w):
    y = x * w
    return y + 1, (y * y).sum()


def several(x, w):
    return x * 2, x * w, w * 3


def of_views(x, w):
    y = x * w
    return y.view(-1), y.t(), x.sum()


def run(function, graphs=1, hook=None):
    """Each result is differentiated while all have hooks, one of which is removed; as in eager."""

    def program(function):
        out = []
        for which in range(3):
            x, w = [torch.full((2, 2), n).requires_grad_() for n in (1.5, 2.0)]
            results = function(x, w)
            results = results[which:] + results[:which]
            seen = []
            handles = [
                one.register_hook(hook or (lambda g, i=i: seen.append((i, g))))
                for i, one in enumerate(results)
            ]
            if which == 2:
                handles[0].remove()
            results[0].sum().backward(retain_graph=True)
            out += [sorted(seen, key=lambda row: row[0]), x.grad, w.grad]
            sum(one.sum() for one in results).backward()
            out += [x.grad, w.grad, [len(one._backward_hooks) for one in results]]
        return out

    backend = Counting()
    expected, got = program(function), program(framejit.compile(function, backend=backend))
    Comparison().compare(expected, got, "result")
    assert len(backend.graphs) == graphs
    assert not framejit.counters.get("graph_break")


@pytest.mark.parametrize("function", [from_one, several, of_views])
def test_hooks_are_called_where_a_gradient_arrives(function):
    run(function)


def test_hooks_that_change_gradients():
    run(from_one, hook=lambda gradient: gradient * 2)


def test_a_hook_after_a_break_in_the_function():
    """It is put there by Python: it keeps what it gets."""

    def program(compile):
        out = []
        seen = []

        @compile
        def f(x, w):
            y = x * w
            z = y * y
            z.register_hook(seen.append)
            return y + 1, z.sum()

        for which in (0, 1, 0):
            x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
            f(x, w)[which].sum().backward()
            out += [x.grad, w.grad, list(seen)]
        return out

    backend = Counting()
    expected = program(lambda f: f)
    got = program(lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "result")
    assert len(backend.graphs) == 2


def test_items_of_one_operation_hear_of_each_other():
    """As in eager mode."""

    def program(function):
        out = []
        one, other = function(torch.ones(2, 2, requires_grad=True))
        other.register_hook(out.append)
        one.sum().backward()
        return out

    def items(x):
        return torch.unbind(x.sin())

    backend = Counting()
    expected, got = program(items), program(framejit.compile(items, backend=backend))
    Comparison().compare(expected, got, "result")
    assert len(backend.graphs) == 1
