"""Saved-tensor hooks that a function opens itself and that do not give back what they were given:
each operation differentiates with what its own hooks return, with AOTAutograd as in eager mode."""

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import framejit
from backends.agreement import agrees

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


def doubling():
    return saved_tensors_hooks(lambda t: t * 2, lambda t: t / 4)


def low():
    kind = torch.float8_e4m3fn
    return saved_tensors_hooks(lambda t: (t.to(kind), t.dtype), lambda p: p[0].to(p[1]))


def used_outside_as_well(x, w):
    with doubling():
        y = x.sin()
    return y * x.cos()


def result_used_outside(x, w):
    with doubling():
        y = x * x
    return y.sin()


def made_outside(x, w):
    y = x.cos()
    with doubling():
        z = y.sin()
    return z.sin() * y


def nested(x, w):
    with doubling():
        y = x.sin()
        with saved_tensors_hooks(lambda t: t * 3, lambda t: t / 5):
            z = y.cos() * x
        u = z.exp()
    return u * z * y


def two_regions(x, w):
    with doubling():
        y = x * x.sin()
    z = x * x.cos()
    with low():
        u = x * z
    return y * z * u


def products(x, w):
    y = x @ w
    with doubling():
        y = y.relu() @ w
        z = torch.nn.functional.layer_norm(y, (4,))
    return (z @ w).softmax(-1)


def lossy(x, w):
    with low():
        y = (x * x).tanh().exp()
    return y.sigmoid() * x


def views(x, w):
    with doubling():
        y = x.t() * x
    return y.t() * x


def written(x, w):
    with doubling():
        z = x.sin()
        z.mul_(x)
    return z.sin()


def switched_off(x, w):
    with doubling():
        with torch.no_grad():
            c = x.sin()
        z = c * x.exp()
    return z * c


def computed_again(x, w):
    with doubling():
        z = x.sin()
    return checkpoint(lambda v: (v.sin() * v).exp(), z, use_reentrant=False)


def on_the_cpu(x, w):
    with save_on_cpu():
        y = x.sin() * (x @ w)
    return y * x.exp(), y.detach()


def twice_the_same(x, w):
    def part(v):
        return v.sin() * v

    with doubling():
        z = part(x)
    return part(z) + part(x), (z @ w).sum()


PROGRAMS = [
    used_outside_as_well, result_used_outside, made_outside, nested, two_regions, products, lossy,
    views, written, switched_off, computed_again, on_the_cpu, twice_the_same,
]  # fmt: skip


def make():
    return torch.randn(4, 4).requires_grad_(), torch.randn(4, 4).requires_grad_()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_are_those_of_eager_mode(function, backend, dynamic):
    agrees(function, make, backend=backend, dynamic=dynamic, graphs=1)
    assert not framejit.counters["graph_break"]


@pytest.mark.slow
@pytest.mark.parametrize("function", [used_outside_as_well, nested, products, written])
def test_inductor_as_well(function):
    agrees(function, make, backend="inductor", graphs=1)


def test_a_hook_with_effects_leaves_nothing_switched_off():
    """Seen while AOTAutograd traces; whoever opens hooks afterwards gets them."""

    class Counter:
        count = 0

        def pack(self, t):
            if t.dim() == 1:
                self.count += 1
            return t

    counter = Counter()

    def f(x):
        with saved_tensors_hooks(counter.pack, lambda t: t):
            y = x.sum(0).sin()
        return y.sum()

    compiled = framejit.compile(f, backend="aot_eager")
    for call in range(1, 3):
        compiled(torch.randn(3, 4).requires_grad_()).backward()
        assert counter.count == call
    x = torch.ones(3).requires_grad_()
    with doubling():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3
