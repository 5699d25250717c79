"""Hooks on the gradients of inputs that some results of a compiled graph do not depend on."""

import pytest
import torch

import framejit
from checking import Comparison, CountingBackend
from framejit.backends.aot import aot_eager


class Counting(CountingBackend):
    def __call__(self, gm, inputs):
        super().__call__(gm, inputs)
        return aot_eager(gm, inputs)


def step(a, w):
    o = w * 1
    return a + o, o * 2


def run(program):
    """``program(step)`` in eager mode and compiled."""
    torch.manual_seed(0)
    expected = program(step)
    torch.manual_seed(0)
    backend = Counting()
    got = program(framejit.compile(step, backend=backend))
    Comparison().compare(expected, got, "result")
    assert len(backend.graphs) == 1


def leaves():
    return torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)


def test_hooks_are_not_called_with_none():
    def program(step):
        a, w = leaves()
        a.register_hook(lambda g: g.clamp(-0.5, 0.5))
        found = []
        for output in (1, 0, 1):
            step(a, w)[output].sum().backward()
            found += [None if a.grad is None else a.grad.clone(), w.grad.clone()]
        return found

    run(program)


def test_optimizers_that_run_in_backward():
    def program(step):
        a, w = leaves()

        def descend(p):
            p.data.sub_(p.grad * 0.1)
            p.grad = None

        for p in (a, w):
            p.register_post_accumulate_grad_hook(descend)
        found = []
        for output in (1, 0, 1, 1):
            step(a, w)[output].sum().backward()
            found += [a.detach().clone(), w.detach().clone(), a.grad, w.grad]
        return found

    run(program)


@pytest.mark.parametrize("late", [False, True])
def test_hooks_of_computed_inputs(late):
    def program(step):
        x, w = leaves()
        a = x * 3
        if not late:
            a.register_hook(lambda g: g * 2)
        result = step(a, w)[1]
        if late:
            a.register_hook(lambda g: g * 2)
        result.sum().backward()
        return x.grad, w.grad

    run(program)


def test_gradients_from_elsewhere_are_seen():
    def program(step):
        a, w = leaves()
        seen = []
        a.register_hook(lambda g: seen.append(g.clone()) or g * 2)
        a.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        (step(a, w)[1] + a * 5 + step(a, w)[1]).sum().backward()
        (step(a, w)[1] + step(a, w)[0]).sum().backward()
        return seen, a.grad, w.grad

    run(program)


def test_hooks_are_as_before_afterwards():
    def program(step):
        a, w = leaves()

        def hook(g):
            return g * 2

        handle = a.register_hook(hook)
        step(a, w)[1].sum().backward()
        kept = [one is hook for one in a._backward_hooks.values()]
        torch.autograd.grad(step(a, w)[1].sum(), [w])
        kept += [one is hook for one in a._backward_hooks.values()]
        handle.remove()
        return kept, len(a._backward_hooks), torch.autograd.grad(step(a, w)[0].sum(), [a])[0] + 1

    run(program)


def test_a_hook_that_raises():
    def program(step):
        a, w = leaves()
        seen = []
        a.register_hook(lambda g: seen.append(g.clone()))
        fails = w.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            step(a, w)[1].sum().backward()
        fails.remove()
        step(a, w)[1].sum().backward()
        step(a, w)[0].sum().backward()
        return seen, a.grad, w.grad

    run(program)
