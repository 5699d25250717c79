"""Results of compiled graphs that are views of one another, and writes to them."""

import pytest
import torch

import framejit
from backends.agreement import Counted
from checking import Comparison

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


def transposed(x):
    y = x * 1
    v = y.t()
    v.mul_(3)
    return y, v


def part(x):
    y = x * 1
    v = y.view(-1)[1:3]
    v.mul_(3)
    return v, y


def diagonal(x):
    y = x * 1
    v = y.diagonal()
    v.mul_(3)
    return y, v


def of_a_lost_one(x):
    y = x * 1
    y.t().mul_(3)
    return y[0], y.t(), y.view(-1)


def alone(x):
    y = x * 1
    y.t().mul_(3)
    return y


def written_afterwards(f, x):
    """What is seen after a write to each of the results."""
    results = f(x)
    results = results if isinstance(results, tuple) else (results,)
    bases = [a._base is b for a in results for b in results]
    views = [r._is_view() for r in results]
    for number, result in enumerate(results):
        result.mul_(number + 2)
    sum(r.sum() * (i + 1) for i, r in enumerate(results)).backward()
    return results, bases, views, x.grad


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [transposed, part, diagonal, of_a_lost_one, alone])
def test_results_written_through_views(f, backend):
    def make():
        return torch.arange(4.0).view(2, 2).requires_grad_()

    counted = Counted(backend)
    expected = written_afterwards(f, make())
    got = written_afterwards(framejit.compile(f, backend=counted), make())
    Comparison().compare(expected, got, "result")
    assert len(counted.graphs) == 1


def one_of_several(x):
    y = x * 1
    y.unbind(1)[0].mul_(3)
    return y


def of_a_part(x):
    y = x * 1
    a, b = y.chunk(2)
    a.view(-1).add_(1)
    return y


def made_without_gradients(x):
    y = x * 1
    with torch.no_grad():
        v = y.view(-1)
    v.mul_(3)
    return y


def caught(x):
    y = x * 1
    parts = y.split(1)
    try:
        parts[0].zero_()
    except RuntimeError:
        return y + 1
    return y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [one_of_several, of_a_part, made_without_gradients, caught])
def test_writes_that_autograd_refuses(f, backend):
    def outcome(f):
        x = torch.arange(4.0).view(2, 2).requires_grad_()
        try:
            return f(x).tolist()
        except RuntimeError as error:
            return str(error)

    counted = Counted(backend)
    assert outcome(framejit.compile(f, backend=counted)) == outcome(f)
    assert len(counted.graphs) == (2 if f is caught else 1)


def made_in_inference_mode(x):
    with torch.inference_mode():
        return x[0], x.view(-1), x.detach(), x * 2


def between_blocks(x):
    y = x * 1
    with torch.inference_mode():
        first = y[0]
    return first, y + 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [made_in_inference_mode, between_blocks])
def test_views_of_inference_mode_require_gradients(f, backend):
    def outcome(f):
        x = torch.ones(2, 2, requires_grad=True)
        results = f(x)
        found = [(t.requires_grad, t.is_leaf, t._is_view(), t.is_inference()) for t in results]
        (results[0] * 3).sum().backward()
        return found, results[0].grad, x.grad

    counted = Counted(backend)
    compiled = framejit.compile(f, backend=counted)
    for _ in range(2):
        assert str(outcome(compiled)) == str(outcome(f))
    assert len(counted.graphs) == (1 if f is made_in_inference_mode else 3)
