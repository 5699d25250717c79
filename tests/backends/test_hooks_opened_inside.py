"""Saved-tensor hooks that do not give back what they were given, opened by a function itself or in
place around its calls: each operation differentiates with what its own hooks return, with
AOTAutograd as in eager mode."""

import contextlib

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import framejit
from backends.agreement import Counted, agrees
from framejit.backends.registry import lookup_backend

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


def composed(x, w):
    return x.sin().cos()


def normalised(x, w):
    z = torch.nn.functional.layer_norm(x @ w, (4,)).relu().pow(3)
    return torch.softmax(z, 0) * torch.sigmoid(x)


def independent_results(x, w):
    return x.exp().sin(), (w * w).tanh()


def with_idle_dropout(x, w):
    return torch.nn.functional.dropout(x * x, 0.3, training=False).mul_(w.sin()).cos()


def gradients_under(hooks, run):
    torch.manual_seed(1)
    x, w = make()
    with hooks():
        result = run(x, w)
    results = result if isinstance(result, tuple) else (result,)
    for one in results:
        if one.requires_grad:
            one.sum().backward(retain_graph=True)
    return x.grad, w.grad, [one.detach() for one in results]


AROUND = [composed, normalised, independent_results, with_idle_dropout]
AROUND += [function for function in PROGRAMS if function is not computed_again]


def same_around(function, backend, hooks, **settings):
    counted = Counted(backend)
    compiled = framejit.compile(function, backend=counted, **settings)
    for _ in range(2):
        expected = gradients_under(hooks, function)
        torch.testing.assert_close(gradients_under(hooks, compiled), expected)
        torch.testing.assert_close(  # and without hooks
            gradients_under(contextlib.nullcontext, compiled),
            gradients_under(contextlib.nullcontext, function),
        )
    assert len(counted.graphs) == 2 and not framejit.counters["graph_break"]


@pytest.mark.parametrize("hooks", [doubling, low])
@pytest.mark.parametrize("backend", BACKENDS[:2])
@pytest.mark.parametrize("function", AROUND)
def test_hooks_around_the_call(function, backend, hooks):
    same_around(function, backend, hooks)


def test_hooks_around_the_call_and_a_checkpoint_under_others():
    """AOTAutograd cannot take the graph, which then runs operation by operation."""
    compiled = framejit.compile(computed_again, backend="aot_eager", fullgraph=True)
    for _ in range(2):
        expected = gradients_under(doubling, computed_again)
        torch.testing.assert_close(gradients_under(doubling, compiled), expected)


@pytest.mark.parametrize("function", [composed, normalised, independent_results])
def test_hooks_around_the_call_with_sizes_that_vary(function):
    same_around(function, "aot_eager", doubling, dynamic=True)


def test_hooks_around_the_call_and_aot_compilers_of_users():
    same_around(composed, lambda gm, inputs: lookup_backend("aot_eager")(gm, inputs), doubling)


@pytest.mark.slow
@pytest.mark.parametrize("function", AROUND[:4])
def test_hooks_around_the_call_with_inductor(function):
    same_around(function, "inductor", doubling)


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
