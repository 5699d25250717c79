"""Results that nobody differentiates, reached by operations whose derivative is infinite."""

import pytest
import torch
import torch.nn.functional as F
from counted_parts import Parts
from torch.utils.checkpoint import checkpoint

import framejit
from checking import Comparison


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.sqrt())
        return x.sqrt()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (2 * ctx.saved_tensors[0])


UNBOUNDED = {
    "sqrt": lambda y: y.pow(2).mean().sqrt(),
    "sqrt in place": lambda y: (y * y).sqrt_(),
    "divided": lambda y: 3 / y,
    "by a divisor": lambda y: y / y.sum(),
    "power": lambda y: y**0.5,
    "power of a tensor": lambda y: y ** (0.5 + 0 * y.detach()),
    "log": lambda y: torch.log(y),
    "log of less": lambda y: torch.log1p(y - 1),
    "rsqrt": lambda y: torch.rsqrt(y.abs()),
    "angle": lambda y: torch.atan2(y, y),
    "decomposition": lambda y: torch.linalg.svdvals(y[None]),
    "checkpoint": lambda y: checkpoint(lambda z: z.square().sum().sqrt(), y, use_reentrant=False),
    "limited below zero": lambda y: y.clamp(min=-1).sqrt(),
    "with less than its dtype has": lambda y: (y.abs() + 1e-40).rsqrt(),
    "function": lambda y: Root.apply(y),
}
BOUNDED = {
    "square": lambda y: y**2 + 2**y,
    "root mean square": lambda y: y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6),
    "layer norm": lambda y: F.layer_norm(y, (3,)),
    "norms": lambda y: y.norm() + F.normalize(y, dim=0) / 3,
    "standardized": lambda y: (y - y.mean()) / (y.var() + 1e-5).sqrt(),
    "limited": lambda y: y / y.abs().sum().clamp_min(1e-9),
    "softmax": lambda y: torch.log(y.softmax(0) + 1e-9),
    "by a size": lambda y: y.sum() / y.shape[0],
    "log1p": lambda y: torch.log1p(y.relu()),
}


def steps(compile, function, *, first=True, calls=3, **more):
    """Gradients where the second result is used and where it is not, of leaves with hooks."""
    out = []

    @compile
    def f(x, w):
        y = more.get("before", lambda y: y)(x * w)
        return y + 1, function(y)

    for number in range(calls):
        x, w = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
        seen = []
        x.register_hook(seen.append)
        one, other = f(x, w)
        (one.sum() if first else other.sum() + number * one.sum()).backward()
        out.append([one, other, x.grad, w.grad, seen])
    return out


def same(graphs, *args, **options):
    """``graphs``: captured, and compiled with a backward graph."""
    torch.manual_seed(0)
    expected = steps(lambda f: f, *args, **options)
    torch.manual_seed(0)
    parts = Parts()
    got = steps(lambda f: framejit.compile(f, backend=parts), *args, **options)
    Comparison().compare(expected, got, "result")
    assert not framejit.counters.get("graph_break")
    assert (len(parts.graphs), len(parts.forward)) == graphs
    return parts


#: They run code of the program's, or such that counts as that.
AT_ONCE = ["checkpoint", "function"]


@pytest.mark.parametrize("name", [name for name in UNBOUNDED if name not in AT_ONCE])
def test_a_zero_meets_no_infinite_derivative(name):
    parts = same((2, 3), UNBOUNDED[name])
    assert parts.graphs[0].meta["parts"] is None and parts.graphs[1].meta["parts"] is not None


@pytest.mark.parametrize("name", BOUNDED)
def test_graphs_with_bounded_derivatives_stay_whole(name):
    same((1, 1), BOUNDED[name])


@pytest.mark.parametrize("name", ["sqrt", "divided", "log"])
def test_graphs_stay_whole_while_backward_comes_to_all(name):
    same((1, 1), UNBOUNDED[name], first=False)


def test_what_cannot_run_twice_is_divided_at_once():
    same((1, 2), UNBOUNDED["sqrt"], before=lambda y: F.dropout(y, 0.5))
    for name in AT_ONCE:
        framejit.reset()
        same((1, 2), UNBOUNDED[name])
    framejit.reset()
    with torch.autocast("cpu"):
        same((1, 2), UNBOUNDED["sqrt"])


@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        (lambda x: (y := x * 2, y.view(-1), (y * y).sum().sqrt()), (2, 3)),
        (lambda x: ((y := x * 2).view(-1), y.t(), (y * y).sum().sqrt()), (1, 2)),
        (lambda x: (x.t(), (y := x * 2).view(-1), (y * y).sum().sqrt()), (2, 3)),
    ],
)
def test_results_that_share_memory(function, graphs):
    def program(compile):
        out = []
        f = compile(function)
        for _ in range(2):
            x = torch.zeros(2, 2, requires_grad=True)
            results = f(x)
            results[1].sum().backward()
            out += [x.grad, *results]
        return out

    parts = Parts()
    expected, got = program(lambda f: f), program(lambda f: framejit.compile(f, backend=parts))
    Comparison().compare(expected, got, "result")
    assert (len(parts.graphs), len(parts.forward)) == graphs


def test_gradients_that_are_kept_and_differentiated_again():
    def program(compile):
        out = []
        f = compile(lambda x: ((y := x * x) + 1, y.sum().sqrt()))
        for keep, again in [(True, False), (False, True), (False, False)]:
            x = torch.zeros(2, requires_grad=True)
            one, other = f(x)
            (found,) = torch.autograd.grad(one.sum(), x, retain_graph=keep, create_graph=again)
            out.append(found)
            if keep:
                out += torch.autograd.grad(one.sum(), x, retain_graph=True)
                out += torch.autograd.grad(other + one.sum(), x)
            if again:
                out += torch.autograd.grad(found.sum(), x)
        return out

    parts = Parts()
    expected, got = program(lambda f: f), program(lambda f: framejit.compile(f, backend=parts))
    Comparison().compare(expected, got, "result")
    assert len(parts.graphs) == 2


def test_with_sizes_that_vary():
    def program(compile):
        out = []
        f = compile(lambda x: ((y := x * 2) + 1, (y * y).mean().sqrt() / x.shape[0]))
        for size in (2, 3, 4, 5):
            x = torch.zeros(size, requires_grad=True)
            f(x)[0].sum().backward()
            out.append(x.grad)
        return out

    parts = Parts()
    expected, got = program(lambda f: f), program(lambda f: framejit.compile(f, backend=parts))
    Comparison().compare(expected, got, "result")
    assert len(parts.graphs) == 3


@pytest.mark.slow
def test_with_inductor():
    expected = steps(lambda f: f, UNBOUNDED["sqrt"])
    got = steps(lambda f: framejit.compile(f), UNBOUNDED["sqrt"])
    Comparison().compare(expected, got, "result")


def test_in_a_package(tmp_path):
    def f(x, w):
        y = x * w
        return y + 1, y.pow(2).mean().sqrt()

    def program(f):
        out = []
        for _ in range(2):
            x = torch.zeros(3, requires_grad=True)
            one, _ = f(x, torch.ones(3))
            one.sum().backward()
            out.append(x.grad)
        return out

    saved = framejit.compile(f, backend="aot_eager")
    saved(torch.zeros(3, requires_grad=True), torch.ones(3))
    saved.save_package(tmp_path / "package")
    framejit.reset()
    framejit.counters.clear()
    loaded = framejit.compile(f, backend="aot_eager")
    loaded.load_package(tmp_path / "package")
    Comparison().compare(program(f), program(loaded), "result")
    assert framejit.counters["frames"].get("total", 0) == 0
