"""Callables that use AOTAutograd or Inductor find what our own backends find: a fake mode that
knows the inputs' symbols, graphs that AOTAutograd can take, settings as in eager mode."""

import contextlib
import copy
import inspect

import pytest
import torch
import torch.nn.functional as F
from torch._guards import TracingContext
from torch.fx.passes.shape_prop import ShapeProp

import framejit
from backends.agreement import agrees
from framejit.backends.aot import aot_eager
from framejit.report import events


def boxed(gm, inputs):
    from functorch.compile import make_boxed_func

    return make_boxed_func(gm.forward)


def ours(gm, inputs):
    from framejit.backends.aot import aot_eager

    return aot_eager(gm, inputs)


def simplified(gm, inputs):
    from torch._functorch.aot_autograd import aot_module_simplified

    return aot_module_simplified(gm, inputs, fw_compiler=boxed)


def with_min_cut(gm, inputs):
    from functorch.compile import min_cut_rematerialization_partition
    from torch._functorch.aot_autograd import aot_module_simplified

    return aot_module_simplified(
        gm, inputs, fw_compiler=boxed, bw_compiler=boxed,
        partition_fn=min_cut_rematerialization_partition,
    )  # fmt: skip


def of_the_peer(gm, inputs):
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(fw_compiler=boxed)(gm, inputs)


def by_inductor(gm, inputs):
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, inputs)


BACKENDS = [ours, simplified, with_min_cut, of_the_peer]
INDUCTOR = [*BACKENDS, pytest.param(by_inductor, marks=pytest.mark.slow)]


def leaves(*sizes):
    return [lambda n=n: (torch.randn(n).requires_grad_(), torch.randn(n).requires_grad_())
            for n in sizes]  # fmt: skip


def summed(x, w):
    return (w + x).sum()


def two_results(x, w):
    return (w * x).sin() * x.shape[0], (x * x).sum()


def viewed(x, w):
    return x.view(-1, 2).sum(0) + w.reshape(2, -1)[:, 0]


@pytest.mark.parametrize("backend", INDUCTOR)
@pytest.mark.parametrize("dynamic", [None, True])
def test_training_with_sizes_that_vary(backend, dynamic):
    # The second size makes the graph dynamic.
    agrees(summed, *leaves(8, 9, 12), backend=backend, dynamic=dynamic, graphs=1 if dynamic else 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [two_results, viewed])
def test_other_programs_with_sizes_that_vary(function, backend):
    agrees(function, *leaves(8, 10, 12), backend=backend)


@pytest.mark.parametrize("backend", INDUCTOR)
def test_inference_with_sizes_that_vary(backend):
    def f(x):
        return x.relu() * x.shape[0]

    makes = [lambda n=n: (torch.randn(n, 3),) for n in (4, 5, 6)]
    agrees(f, *makes, backend=backend, graphs=2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_floats_that_vary(backend):
    def f(x, w, scale):
        return (x * scale).sin() * w

    makes = [lambda s=s: (*leaves(4)[0](), s) for s in (0.5, 0.25, 0.125)]
    agrees(f, *makes, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fused_optimizer(backend):
    def trained(compile):
        step = compile(lambda optimizer: optimizer.step())
        out = []
        for size in (3, 5, 6):
            torch.manual_seed(0)
            model = torch.nn.Linear(size, 2)
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            for factor in (1.0, 2.0):
                optimizer.zero_grad()
                model(torch.full((1, size), factor)).square().sum().backward()
                step(optimizer)
            out += [p.detach() for p in model.parameters()]
        return out

    got = trained(lambda f: framejit.compile(f, backend=backend))
    torch.testing.assert_close(got, trained(lambda f: f))


@pytest.mark.parametrize("backend", INDUCTOR)
def test_backward_as_often_as_in_eager_mode(backend):
    """Again for one result, and apart for each of two that share no operation."""
    for dynamic in (None, True):
        x, w = leaves(4)[0]()
        f = framejit.compile(lambda x, w: (x.sin().sum(), w.cos().sum()),
                             backend=backend, dynamic=dynamic)  # fmt: skip
        one, two = f(x, w)
        one.backward(retain_graph=True)
        one.backward()
        assert w.grad is None
        two.backward()
        torch.testing.assert_close(x.grad, 2 * x.cos())
        torch.testing.assert_close(w.grad, -w.sin())


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_cannot_be_differentiated_twice_is_an_error_with_the_line(backend):
    x, w = leaves(4)[0]()
    (gradient,) = torch.autograd.grad(
        framejit.compile(dropped_squares, backend=backend)(x, w), x, create_graph=True
    )
    with pytest.raises(RuntimeError, match="test_user_backends.py"):
        gradient.sum().backward()


def dropped_squares(x, w):
    return F.dropout(x * x * w).sum()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_write_to_what_an_idle_dropout_returns(backend):
    def f(x, w):
        y = x * 2
        z = F.dropout(y, 0.5, training=False)
        z.add_(1)
        return y * w

    agrees(f, *leaves(4, 5), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_inputs_that_share_memory(backend):
    def f(x, y):
        x.add_(1)
        return x * y

    def make(size):
        base = torch.arange(2.0 * size)
        return base[:size], base[1 : size + 1]

    agrees(f, *[lambda n=n: make(n) for n in (4, 5, 6)], backend=backend)


def _in_place(x, w):
    y = (w * x.clone()).sin() + (w + x[0]).sigmoid()
    x.add_(1)
    return y


@pytest.mark.parametrize("backend", INDUCTOR)
def test_gradients_come_from_what_inputs_were(backend):
    """Also where the backend's own way to divide a graph saves the inputs themselves."""

    def make():
        return torch.arange(5.0), torch.linspace(0, 1, 5).requires_grad_()

    agrees(_in_place, make, backend=backend, graphs=1)
    x = torch.arange(5.0)
    plain = torch.compile(lambda x, w: w.add_(x), backend="aot_eager")  # not a graph of ours
    assert torch.equal(plain(x, torch.ones(5)), x + 1)


def test_what_a_backend_finds():
    found = []

    def backend(gm, inputs):
        mode = TracingContext.get().fake_mode
        fakes = [mode.from_tensor(x) for x in inputs if isinstance(x, torch.Tensor)]
        found.append([str(size) for size in fakes[0].shape])
        assert not any(isinstance(x, torch._subclasses.FakeTensor) for x in inputs)
        return gm.forward

    f = framejit.compile(lambda x: x.sin(), backend=backend)
    for size in (3, 4, 5):
        f(torch.ones(size, 2))
    (static, dynamic) = found
    assert static == ["3", "2"]
    assert dynamic[0].startswith("s") and dynamic[1] == "2"


def test_a_backend_that_fails_is_called_once():
    calls = []

    def backend(gm, inputs):
        calls.append(gm)
        assert TracingContext.get().fake_mode is not None
        raise ValueError("not today")

    f = framejit.compile(lambda x: x.sin(), backend=backend)
    with pytest.raises(framejit.exc.BackendCompilerFailed, match="not today"):
        f(torch.ones(3))
    assert len(calls) == 1
    assert TracingContext.try_get() is None


def copied_first(gm, inputs):
    return aot_eager(copy.deepcopy(gm), inputs)


def copied_to_fakes(gm, inputs):
    ShapeProp(gm).propagate(*inputs)  # it makes a deep copy with fake parameters
    return gm


@pytest.mark.parametrize("backend", [copied_first, copied_to_fakes])
@pytest.mark.parametrize("dynamic", [None, True])
def test_the_graph_module_can_be_copied(backend, dynamic):
    agrees(summed, *leaves(8, 9), backend=backend, dynamic=dynamic, graphs=1 if dynamic else 2)


RETURNED = {
    "a Tensor": lambda results: results[0],
    "a dict": lambda results: dict(enumerate(results)),
    "a tuple of 2": lambda results: (*results, *results),
    "a list of 0": lambda results: [],
}


@pytest.mark.parametrize("given", RETURNED)
def test_results_that_are_not_those_of_the_graph(given):
    def backend(gm, inputs):
        return lambda *args: RETURNED[given](gm(*args))

    x = torch.randn(1, 3)
    f = framejit.compile(lambda x: x.cos() + 1, backend=backend)
    with events.recording(events.BackendFailed) as told:
        torch.testing.assert_close(f(x), x.cos() + 1)
        torch.testing.assert_close(f(x), x.cos() + 1)
    first, second = [event.reason for event in told]
    assert first == second
    assert f"returned {given}, not a tuple or list of 1, the outputs of the graph" in first


def test_results_are_looked_at_once():
    seen = []

    def backend(gm, inputs):
        return lambda *args: seen.append(len(inspect.stack())) or list(gm(*args))

    f = framejit.compile(lambda x: x.cos() + 1, backend=backend)
    for _ in range(3):
        f(torch.ones(2))
    first, second, third = seen
    assert first > second == third


@pytest.mark.parametrize("classes", [False, True])
def test_backends_trace_with_fx(classes):
    """Proxies are asked as objects with ``__torch_function__``, which classes of tensors are not
    while a graph is made of them."""

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs)

    seen, traced = [], []

    def backend(gm, inputs):
        inputs[0].sin()
        if not classes:
            traced.append(torch.fx.symbolic_trace(lambda x: torch.ops.aten.mul.Tensor(x, 0.5)))
        return gm.forward

    x = torch.randn(3)
    given = x.as_subclass(Own) if classes else x
    with torch._C.DisableTorchFunctionSubclass() if classes else contextlib.nullcontext():
        framejit.compile(lambda x: x + 1, backend=backend)(given)
    assert not seen and len(traced) != classes
