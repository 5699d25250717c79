"""Second derivatives of a compiled function, taken outside of it."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import framejit
from checking import Comparison, CountingAround
from framejit.audit.comparison import Tolerance

BACKENDS = ["eager", "aot_eager", "inductor"]


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.two(self.one(x).tanh())


def judge():
    torch.manual_seed(0)
    return Judge().double(), torch.randn(5, 3, dtype=torch.double)


def penalty(model, compiled, x):
    """What the gradient of a judge is trained with."""
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
    loss = (slope.norm(dim=1) - 1).square().mean()
    loss.backward()
    return loss.detach(), slope, x.grad, [p.grad for p in model.parameters()]


def penalty_in_parameters(model, compiled, x):
    model.zero_grad()
    loss = compiled(x).exp().sum()
    loss.backward(create_graph=True)
    total = sum(p.grad.square().sum() for p in model.parameters() if p.grad is not None)
    found = torch.autograd.grad(total, model.parameters(), allow_unused=True)
    return total.detach(), [None if g is None else g.reshape(-1) for g in found]


def third(model, compiled, x):
    x = x.clone().requires_grad_()
    y = compiled(x).sum()
    for _ in range(3):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        y = g.sin().sum()
    return y.detach(), g


def many_times(model, compiled, x):
    x = x.clone().requires_grad_()
    y = compiled(x).sum()
    (first,) = torch.autograd.grad(y, x, retain_graph=True)
    (second,) = torch.autograd.grad(y, x, create_graph=True)
    rows = [torch.autograd.grad(second[0, i], x, retain_graph=True)[0] for i in range(3)]
    return first, second, rows


def of_an_earlier_result(model, compiled, x):
    x = x.clone().requires_grad_()
    inner = x.exp()
    (slope,) = torch.autograd.grad(compiled(inner).sum(), [x], create_graph=True)
    return torch.autograd.grad(slope.square().sum(), x)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "use", [penalty, penalty_in_parameters, third, many_times, of_an_earlier_result],
    ids=lambda use: use.__name__,
)  # fmt: skip
def test_second_derivatives(use, backend):
    def outcome(compile):
        model, x = judge()
        return [use(model, compile(model), x) for _ in range(2)]

    def compile(model):
        return framejit.compile(model, backend=backend, fullgraph=True)

    expected, got = outcome(lambda model: model), outcome(compile)
    Comparison(Tolerance(1e-10, 1e-10)).compare(expected, got, "")


def several(x, y):
    both = x * y.exp()
    return both.sin().sum(), (x * x).view(-1), {"y": y.square() * 2, "n": x.detach()}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wanted", [(0,), (2,), (0, 2), (1,)])
def test_some_of_several_results(wanted, backend):
    """A gradient of a result that is a view of what AOTAutograd computes has no second one."""

    def outcome(function):
        x, y = (torch.linspace(0.1, 1, 4, dtype=torch.double).view(2, 2) for _ in range(2))
        x.requires_grad_()
        y.requires_grad_()
        first, second, third = function(x, y)
        results = [first, second, third["y"]]
        loss = sum(results[i].sum() for i in wanted)
        found = torch.autograd.grad(loss, [x, y], create_graph=True, allow_unused=True)
        total = sum(g.square().sum() for g in found if g is not None)
        return found, torch.autograd.grad(total, [x, y], allow_unused=True)

    expected = outcome(several)
    try:
        got = outcome(framejit.compile(several, backend=backend, fullgraph=True))
    except RuntimeError as error:
        assert "FJ0215" in str(error) and wanted == (1,)
    else:
        Comparison(Tolerance(1e-10, 1e-10)).compare(expected, got, "")


def dropping(x):
    return functional.dropout(x.exp()).sum()


def writing(x, count):
    count.add_(1)
    return (x.exp() * 2).sum()


def under_autocast(x):
    return (x @ x).exp().sum()


def refused(function, *args, autocast=False):
    x = torch.rand(2, 2, requires_grad=True)
    compiled = framejit.compile(function, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        y = compiled(x, *args)
    (slope,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="no double backward: the graph that begins at"):
        slope.sum().backward()


def test_what_cannot_run_again_has_no_second_derivative():
    refused(dropping)
    refused(writing, torch.zeros(1))
    refused(under_autocast, autocast=True)


def test_what_has_changed_since_has_no_second_derivative():
    x, w = (torch.rand(2, 2, requires_grad=True) for _ in range(2))
    compiled = framejit.compile(lambda x, w: (x.exp() * w.sin()).sum(), backend="aot_eager")
    y = compiled(x, w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError):
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        slope.sum().backward()


def test_autocast_around_the_gradient_is_that_of_its_operations():
    model, x = judge()
    model, x = model.float(), x.float().requires_grad_()
    compiled = framejit.compile(model, backend="aot_eager")
    found = []
    for function in (model, compiled):
        y = function(x).sum()
        with torch.autocast("cpu", torch.bfloat16):
            (slope,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(torch.autograd.grad(slope.sum(), x)[0])
    torch.testing.assert_close(*found)


def test_autocast_that_a_graph_ends_under_is_over_when_it_has_run_again():
    def broken(x):
        with torch.autocast("cpu", torch.float16):
            y = x @ x
            framejit.graph_break()
            return y

    def program(function):
        x = torch.full((2, 2), 0.5, requires_grad=True)
        (slope,) = torch.autograd.grad(function(x).float().square().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(slope.sum(), x)
        now = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        return slope, second, now

    expected, backend = program(broken), CountingAround("aot_eager")
    got = program(framejit.compile(broken, backend=backend))
    Comparison(Tolerance(1e-3, 1e-3)).compare(expected, got, "")
    assert len(backend.graphs) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_that_was_computed_from_another(backend):
    """The gradient of the one does not count what comes through the other; hooks hear it once."""

    def program(compile):
        x = torch.linspace(0.1, 1, 4, dtype=torch.double, requires_grad=True)
        seen = []
        x.register_hook(lambda g: seen.append(g.detach()))

        def f(x):
            y = x * x * x
            framejit.graph_break()
            y.register_hook(lambda g: seen.append(g.detach()))
            return x * y.sin()

        loss = compile(f)(x).sum()
        (slope,) = torch.autograd.grad(loss, x, create_graph=True)
        found = torch.autograd.grad(slope.sum(), x)
        compile(f)(x).sum().backward(create_graph=True)
        return slope, found, x.grad, seen

    expected = program(lambda f: f)
    around = CountingAround(backend)
    got = program(lambda f: framejit.compile(f, backend=around))
    Comparison(Tolerance(1e-10, 1e-10)).compare(expected, got, "")
    assert len(around.graphs) == 4


def test_what_is_differentiated_once_keeps_nothing():
    """After a backward pass the arguments of the graph are let go of, as autograd does."""
    import weakref

    compiled = framejit.compile(lambda x, w: (x * 2 * w).sum(), backend="aot_eager")
    x, w = torch.rand(2, 2), torch.rand(2, 2, requires_grad=True)
    loss = compiled(x, w)
    gone = weakref.ref(x)
    del x
    loss.backward()
    assert gone() is None and loss.requires_grad


def test_a_package_has_second_derivatives(tmp_path):
    path = tmp_path / "judge.fjp"
    model, x = judge()
    compiled = framejit.compile(model, backend="inductor", fullgraph=True)
    penalty(model, compiled, x)
    compiled.save_package(path)
    model, x = judge()
    framejit.counters.clear()
    loaded = framejit.load_package(path, model, backend="inductor", fullgraph=True)
    got = penalty(model, loaded, x)
    assert not framejit.counters["captures"]
    model, x = judge()
    Comparison(Tolerance(1e-10, 1e-10)).compare(penalty(model, model, x), got, "")


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_laid_out_otherwise(backend):
    """That of a sum is one number, expanded."""

    def program(f):
        x = torch.linspace(-1, 1, 6).view(2, 3).double().requires_grad_()
        (slope,) = torch.autograd.grad(f(x).sum().exp(), x, create_graph=True)
        slope.square().sum().backward()
        return slope, x.grad

    counting = CountingAround(backend)
    expected = program(torch.sin)
    got = program(framejit.compile(lambda x: x.sin(), backend=counting))
    Comparison(Tolerance(1e-9, 1e-9)).compare(expected, got, "result")
    assert len(counting.graphs) == 1 and not framejit.counters.get("graph_break")
