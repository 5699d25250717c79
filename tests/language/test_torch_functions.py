"""torch's own tools in programs: nn.utils, numpy, subclasses, torch.compiler's marks."""

from __future__ import annotations

import contextlib
import copy
import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import framejit
from checking import Comparison, CountingBackend, Outcome, check


def x23():
    return torch.arange(6.0).reshape(2, 3) - 2.0


# -- tensor subclasses and __torch_function__ -------------------------------------------------


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Tagged):
            result.tag = getattr(func, "__name__", "?")
        return result


class Plain(torch.Tensor):
    def doubled(self):
        return self * 2


class Wrapped:
    """Not a tensor, but overrides torch's functions."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.data if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*args, **(kwargs or {})))


def subclass_made_inside(x):
    t = x.as_subclass(Tagged)
    y = t + 1
    return type(y) is Tagged, y.tag, torch.sin(y).tag, y.as_subclass(torch.Tensor)


def subclass_as_an_argument(t):
    y = torch.nn.functional.relu(t) * 2
    return type(y).__name__, getattr(y, "tag", None), y.as_subclass(torch.Tensor)


def override_of_what_is_no_tensor(x):
    w = Wrapped(x)
    y = torch.add(w, 1)
    z = torch.nn.functional.softmax(w, -1)
    return type(y).__name__, y.data, z.data


def override_as_an_argument(w):
    return torch.sin(w).data, torch.nn.functional.dropout(w, 0.0).data


def questions_of_torch_overrides(x, w):
    return (
        torch.overrides.has_torch_function((x,)),
        torch.overrides.has_torch_function((x, w)),
        x + 1,
    )


@pytest.mark.parametrize("kind", [Tagged, Plain])
def test_subclass_argument(kind) -> None:
    compiled = framejit.compile(subclass_as_an_argument, backend=CountingBackend())
    for _ in range(2):
        a, b = subclass_as_an_argument(x23().as_subclass(kind)), compiled(x23().as_subclass(kind))
        assert a[:2] == b[:2]
        torch.testing.assert_close(a[2], b[2])


@pytest.mark.parametrize(
    "function, ops", [(subclass_made_inside, 3), (override_of_what_is_no_tensor, 2)]
)
def test_overrides(function, ops) -> None:
    check(function, x23(), graphs=1, ops=ops)


def test_overriding_object_as_argument() -> None:
    check(override_as_an_argument, Wrapped(x23()), graphs=1, ops=2)
    check(questions_of_torch_overrides, x23(), Wrapped(x23()), graphs=1, ops=1)


def test_plain_call_then_subclass() -> None:
    compiled = framejit.compile(subclass_as_an_argument, backend=CountingBackend())
    for value in (
        x23(),
        x23().as_subclass(Tagged),
        nn.Parameter(x23()),
        x23(),
        x23().as_subclass(Plain),
    ):
        a, b = subclass_as_an_argument(value), compiled(value)
        assert a[:2] == b[:2]
        torch.testing.assert_close(a[2], b[2])


class Log(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class AddOne(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.sin else result


def test_mode_inside() -> None:
    def f(x):
        with AddOne():
            y = torch.sin(x)
        return y, torch.sin(x)

    check(f, x23(), graphs=1, ops=3)


def test_mode_around() -> None:
    def f(x):
        return torch.sin(x) * 2

    compiled = framejit.compile(f, backend="eager")
    x = x23()
    for around in (contextlib.nullcontext, AddOne, contextlib.nullcontext, AddOne):
        with around():
            expected, got = f(x), compiled(x)
        torch.testing.assert_close(got, expected)
    fresh = framejit.compile(f, backend="aot_eager")
    with AddOne():
        torch.testing.assert_close(fresh(x), f(x))
    torch.testing.assert_close(fresh(x), f(x))


def test_mode_sees_every_call() -> None:
    def f(x):
        return torch.cos(torch.sin(x))

    compiled = framejit.compile(f, backend="eager")
    compiled(x23())
    with Log() as log:
        compiled(x23())
    assert [c for c in log.calls if c in ("sin", "cos")] == ["sin", "cos"]


# -- nn.utils ---------------------------------------------------------------------------------


def training(make):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    make(model)
    return model


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


def test_clip_grad() -> None:
    def clip(parameters):
        return nn.utils.clip_grad_norm_(parameters, 0.1), nn.utils.get_total_norm(
            [p.grad for p in parameters]
        )

    results = []
    for run in (clip, framejit.compile(clip, backend="eager")):
        model = training(lambda m: m(x23()).sum().backward())
        parameters = list(model.parameters())
        results.append((run(parameters), [p.grad for p in parameters]))
        nn.utils.clip_grad_value_(parameters, 0.01)
    torch.testing.assert_close(results[1], results[0])


def test_parametrize() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    compiled = framejit.compile(layer, backend=CountingBackend())
    torch.testing.assert_close(compiled(x23()), layer(x23()))
    with torch.no_grad():
        layer.parametrizations.weight.original.mul_(2)
    torch.testing.assert_close(compiled(x23()), layer(x23()))
    with nn.utils.parametrize.cached():
        torch.testing.assert_close(compiled(x23()), layer(x23()))


def test_weight_and_spectral_norm() -> None:
    torch.manual_seed(0)
    old = nn.utils.weight_norm(nn.Linear(3, 4))
    new = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)).eval()
    for layer in (old, new, spectral):
        compiled = framejit.compile(layer, backend=CountingBackend())
        for _ in range(2):
            torch.testing.assert_close(compiled(x23()), layer(x23()))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent(kind) -> None:
    torch.manual_seed(0)
    layer = kind(3, 4, num_layers=2, batch_first=True, bidirectional=True)
    backend = CountingBackend()
    compiled = framejit.compile(layer, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(x23()[None]), layer(x23()[None]))
    assert len(backend.graphs) == 1


def test_optimizers() -> None:
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop):
        losses = []
        for compile_it in (False, True):
            model = training(lambda m: None)
            optimizer = kind(model.parameters(), lr=0.05)

            def step(x):
                optimizer.zero_grad()
                loss = model(x).pow(2).mean()
                loss.backward()
                optimizer.step()
                return loss.detach()

            run = framejit.compile(step, backend=CountingBackend()) if compile_it else step
            losses.append([run(x23()) for _ in range(4)])
        torch.testing.assert_close(losses[1], losses[0])


# -- numpy, random and the world outside ------------------------------------------------------


def arrays_in_the_middle(x):
    a = x.numpy()
    return torch.from_numpy(np.power(a, 2)) + x, np.float32(2.0) * x


def scalars_of_numpy(x):
    scale = np.sqrt(4.0)
    return x * scale, x + np.array([1.0, 2.0, 3.0], dtype=np.float32).sum()


def random_numbers_of_python(x):
    random.seed(3)
    return x * random.random(), random.randint(0, 9), [random.choice([1, 2, 3]) for _ in range(3)]


def random_numbers_of_numpy(x):
    np.random.seed(0)
    return x + np.random.rand(), np.asarray(x).shape, x.sum().numpy() + 1


def warning_that_is_ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("quiet", stacklevel=1)
        y = x + 1
    return y


def array_as_an_argument(x, a):
    return torch.as_tensor(a) + x, a.mean(), torch.tensor(a)


@pytest.mark.parametrize(
    "function",
    [
        arrays_in_the_middle,
        scalars_of_numpy,
        random_numbers_of_python,
        random_numbers_of_numpy,
        warning_that_is_ignored,
    ],
    ids=lambda f: f.__name__,
)
def test_outside(function) -> None:
    check(function, x23(), graphs=1)


def test_numpy_argument() -> None:
    check(array_as_an_argument, x23(), np.ones((2, 3), dtype=np.float32), graphs=1, ops=4)


# -- torch.compiler ---------------------------------------------------------------------------


@torch.compiler.disable
def disabled(x):
    return x * 3, torch.compiler.is_compiling()


@torch.compiler.disable(recursive=False)
def disabled_here(x):
    return x * 3


@torch.compiler.assume_constant_result
def constant():
    return 7


def plain_helper(x):
    return x.sin().cos()


torch.compiler.allow_in_graph(plain_helper)


def test_marks_of_torch() -> None:
    def f(x):
        y = x + 1
        z, compiling = disabled(y)
        return z + constant(), compiling, disabled_here(z)

    backend = check(f, x23(), graphs=2, ops=2)
    assert len(backend.graphs) >= 2


def test_allow_in_graph() -> None:
    def f(x):
        return plain_helper(x) + 1

    backend = check(f, x23(), fullgraph=True, graphs=1, ops=2)
    assert any(n.target is plain_helper for n in backend.graphs[0].graph.nodes)


def test_is_compiling() -> None:
    def f(x):
        return torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(), x + 1

    assert framejit.compile(f, backend="eager")(x23())[:2] == (True, True)
    assert f(x23())[:2] == (False, False)


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        self.calls.add_(1)
        return {"out": self.layer(x).relu(), "more": (x.sum(), self.calls * 2)}


@pytest.mark.parametrize("guards", [True, False])
@pytest.mark.parametrize("varies", [True, False])
def test_exported_programs(varies, guards) -> None:
    """One graph, and the same errors for other sizes."""
    sizes = ({0: torch.export.Dim("rows", min=2, max=64)},) if varies else None
    program = torch.export.export(Exported(), (torch.randn(4, 2),), dynamic_shapes=sizes)
    modules = [copy.deepcopy(program).module(check_guards=guards) for _ in range(2)]
    backend = CountingBackend()
    compiled = framejit.compile(modules[0], backend=backend)
    for rows in (4, 5, 6, 100):
        x = torch.randn(rows, 2)
        expected, got = Outcome(modules[1], (x,), {}), Outcome(compiled, (x,), {})
        assert repr(got.error) == repr(expected.error)
        Comparison().compare(expected.result, got.result, "result")
        assert len(backend.graphs) == (min(rows, 5) - 3 if varies else 1) or not guards or rows > 6
        assert torch.equal(modules[0].calls, modules[1].calls)


MASKS = {
    "left": [[False, False, False, True], [False, True, True, True]],
    "holes": [[False, True, False, True], [False, True, True, True]],
    "none": [[False] * 4, [False] * 4],
}


@pytest.mark.parametrize("mask", MASKS)
def test_encoder_of_padded_sequences(mask) -> None:
    """In eager mode it asks whether the mask has holes, then goes over nested tensors or not."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()

    def f(x, mask):
        return encoder(x + 1, src_key_padding_mask=mask) * 2

    x, padded = torch.randn(2, 4, 8), torch.tensor(MASKS[mask])
    with torch.no_grad():
        check(f, x, padded, graphs=2 if mask == "holes" else 7)
    check(f, x, padded, graphs=2, ops=46)


def test_encoder_without_nested_tensors_is_one_graph() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    def f(x, mask):
        return encoder(x + 1, src_key_padding_mask=mask) * 2

    with torch.no_grad():
        check(
            f, torch.randn(2, 4, 8), torch.tensor(MASKS["left"]), graphs=1, fullgraph=True, ops=13
        )


@torch.library.custom_op("framejit_tests::positives", mutates_args=())
def positives(x: torch.Tensor) -> int:
    return int((x > 0).sum())


@positives.register_fake
def _(x: torch.Tensor) -> int:
    return 0


def nested_tensor_of_a_mask(x):
    left = torch._nested_tensor_from_mask_left_aligned(x[None].expand(2, 2, 3), x < 0)
    return x * 2, left


def memory_of_two_tensors(x):
    y = x[:1]
    return x * 2, x.is_set_to(x), y.is_set_to(x)


def custom_operator_that_returns_an_int(x):
    return x * 2, torch.ops.framejit_tests.positives(x)


@pytest.mark.parametrize(
    "function",
    [nested_tensor_of_a_mask, memory_of_two_tensors, custom_operator_that_returns_an_int],
    ids=lambda f: f.__name__,
)
def test_operators_that_compute_numbers_break_the_graph(function) -> None:
    check(function, x23(), ops=2 if function is memory_of_two_tensors else None, graphs=1)
    check(function, x23() + 1, graphs=1)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k + x * 0, None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_autograd_function(backend) -> None:
    def f(x):
        return (Double.apply(x + 1, 3) * 2).sum()

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    grads = []
    for run in (f, compiled, compiled):
        x = x23().requires_grad_()
        run(x).backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], grads[0])
    torch.testing.assert_close(grads[2], grads[0])


def mapped_rows(x):
    return torch.vmap(lambda r: r * 2 + 1)(x) + 1


def gradient_of_a_function(x):
    return torch.func.grad(lambda t: (t**2).sum())(x) * 2


def cond_on_data(x):
    return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)) * 2


def pull_back_and_jacobian(x):
    out, pull = torch.func.vjp(torch.sin, x)
    return out, pull(torch.ones_like(x))[0], torch.func.jacrev(torch.sin)(x[0])


def checkpointed_function(x):
    from torch.utils.checkpoint import checkpoint

    return checkpoint(lambda t: (t * 2).sin(), x, use_reentrant=False) + 1


@pytest.mark.parametrize(
    "function",
    [
        mapped_rows,
        gradient_of_a_function,
        cond_on_data,
        pull_back_and_jacobian,
        checkpointed_function,
    ],
    ids=lambda f: f.__name__,
)
def test_higher_order(function) -> None:
    check(function, x23(), graphs=1)
    check(function, -x23() - 10, graphs=1)


@pytest.mark.parametrize("function", [mapped_rows, cond_on_data], ids=lambda f: f.__name__)
def test_higher_order_in_one_graph(function) -> None:
    check(function, x23(), fullgraph=True, graphs=1)
    grads = []
    for run in (function, framejit.compile(function, backend="aot_eager", fullgraph=True)):
        x = x23().requires_grad_()
        run(x).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], grads[0])


class Printing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")
        return x * 2

    @staticmethod
    def backward(ctx, g):
        print("backward")
        return g * 2


def test_autograd_function_with_effects() -> None:
    def f(x):
        y = Printing.apply(x) + 1
        y.sum().backward()
        return x.grad

    def g(x, scale):
        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                return t * scale

            @staticmethod
            def backward(ctx, d):
                return d * scale

        return Scaled.apply(x)

    compiled = framejit.compile(f, backend="aot_eager")
    for _ in range(2):
        torch.testing.assert_close(compiled(x23().requires_grad_()), f(x23().requires_grad_()))
    check(f, x23().requires_grad_(), graphs=3, ops=4)
    check(g, x23().requires_grad_(), torch.tensor(3.0), graphs=1, ops=1)


def test_inside_a_transform() -> None:
    def f(x):
        return (x * 2).sin().sum()

    compiled = framejit.compile(f, backend="eager")
    x = x23()
    torch.testing.assert_close(compiled(x), f(x))
    torch.testing.assert_close(torch.vmap(compiled)(x), torch.vmap(f)(x))
    torch.testing.assert_close(torch.func.grad(compiled)(x), torch.func.grad(f)(x))
    torch.testing.assert_close(compiled(x), f(x))


def test_function_bound_by_hand() -> None:
    def scaled(x, k):
        return x * k

    def f(x):
        bound = scaled.__get__(x, type(x))
        return bound(3), scaled.__get__(None, int)(x, 2)

    check(f, x23(), fullgraph=True, graphs=1, ops=2)


def test_numbers_read_out_of_tensors_keep_the_operation():
    def program(x, y):
        made = y.addcdiv(x, x + 9, value=torch.tensor(2.0))
        return made.grad_fn.name(), made, x.addcmul(x, x, value=torch.tensor(3.0))

    check(program, torch.ones(3), torch.ones(3, requires_grad=True), graphs=2, ops=7)


def test_checks_of_sizes_want_a_bool():
    def program(x):
        try:
            torch._check(x.shape[0])
        except TypeError as error:
            return str(error), x + 1

    compiled = framejit.compile(program, backend="eager", dynamic=True)
    assert [compiled(torch.ones(n))[0] for n in (2, 3)] == [program(torch.ones(2))[0]] * 2
