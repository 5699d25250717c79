"""torch's modes and random numbers in programs: state during, after and across breaks."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

import framejit
from checking import CountingBackend, check


def x23():
    return torch.arange(6.0).reshape(2, 3) - 2.0


def grad_state():
    return torch.is_grad_enabled()


@torch.no_grad()
def decorated(x):
    return x * 2, torch.is_grad_enabled()


@torch.no_grad
def decorated_bare(x):
    return x * 2


@torch.inference_mode()
def inferring(x):
    return x * 2


@torch.autocast("cpu", dtype=torch.bfloat16)
def autocasting(x):
    return x @ x.t()


def no_grad_block(x):
    with torch.no_grad():
        y = x * 2
        inside = torch.is_grad_enabled()
        with torch.enable_grad():
            z = x * 3
            nested = grad_state()
    return y, z, inside, nested, torch.is_grad_enabled()


def set_grad_enabled_block(x):
    with torch.set_grad_enabled(False):
        a = x + 1
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    b = x + 2
    during = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    return a, b, before, during


def modes_as_decorators(x):
    return (
        decorated(x),
        decorated_bare(x),
        autocasting(x).dtype,
        torch.no_grad()(lambda t: t + 1)(x),
    )


def autocast_block(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        on = torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", enabled=False):
            z = x @ x.t()
        w = x @ x.t()
    return y, z, w, on, torch.is_autocast_enabled("cpu"), (x @ x.t()).dtype


def default_dtype_for_a_while(x):
    before = torch.get_default_dtype()
    return torch.ones(2).dtype, before, x + 1


def error_in_no_grad(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise ValueError("stop")
    except ValueError:
        z = x * 3
    return y, z, torch.is_grad_enabled()


def questions_of_torch_compiler(x):
    return (x + 1) if torch.compiler.is_compiling() else (x + 1)


def return_from_no_grad(x):
    with torch.no_grad():
        return x * 2, torch.is_grad_enabled()


def kernels_of_attention(x):
    q = x[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    return y


def modes_on_an_exit_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x * 2
        off = torch.is_grad_enabled()
    return y, off, torch.is_grad_enabled()


def state_left_changed(x):
    torch.set_grad_enabled(False)
    return x * 2


def inference_mode_block(x):
    with torch.inference_mode():
        y = x * 2
        inside = torch.is_inference_mode_enabled()
    return inside, torch.is_inference_mode_enabled(), (x * 2)


FULL = [
    no_grad_block, set_grad_enabled_block, modes_as_decorators, autocast_block,
    default_dtype_for_a_while, error_in_no_grad, questions_of_torch_compiler, return_from_no_grad,
    kernels_of_attention, modes_on_an_exit_stack, state_left_changed, inference_mode_block,
]  # fmt: skip
MAY_BREAK = {
    "default_dtype_for_a_while",
    "inference_mode_block",
    "kernels_of_attention",
    "modes_on_an_exit_stack",
}


@pytest.fixture(autouse=True)
def state_is_restored():
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    assert torch._C._len_torch_function_stack() == 0
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function", FULL, ids=lambda f: f.__name__)
def test_program(function, grad) -> None:
    x = x23().requires_grad_(grad)
    outcomes = []
    compiled = framejit.compile(function, backend=CountingBackend())
    for run in (function, compiled, compiled):
        with torch.set_grad_enabled(True):
            result = run(x)
            outcomes.append((result, torch.is_grad_enabled()))
    flat = [[t for t in torch.utils._pytree.tree_leaves(o)] for o in outcomes]
    for other in flat[1:]:
        for one, two in zip(flat[0], other, strict=True):
            if isinstance(one, torch.Tensor):
                assert one.requires_grad is two.requires_grad and one.dtype is two.dtype
                assert one.is_inference() is two.is_inference()
                torch.testing.assert_close(two, one)
            else:
                assert one == two


@pytest.mark.parametrize("function", FULL, ids=lambda f: f.__name__)
def test_one_graph(function) -> None:
    if function.__name__ not in MAY_BREAK:
        with torch.set_grad_enabled(True):
            check(function, x23(), fullgraph=True, graphs=1)


# -- across breaks ----------------------------------------------------------------------------


def break_in_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print(torch.is_grad_enabled())
        z = y * 3
        off = torch.is_grad_enabled()
    return z, off, torch.is_grad_enabled(), z.requires_grad


def break_in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        print(torch.is_autocast_enabled("cpu"))
        z = x @ x.t()
    return y, z, x @ x.t()


def error_after_break(x):
    try:
        with torch.no_grad():
            print("in")
            y = x + 1
            raise KeyError("k")
    except KeyError:
        on = torch.is_grad_enabled()
    return y, on


def error_that_leaves_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print(torch.is_grad_enabled())
        raise RuntimeError(f"gone {y.shape}")


def default_dtype_changed(x):
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(2) + 1
    finally:
        torch.set_default_dtype(torch.float32)
    return y, torch.ones(1)


def device_as_a_context(x):
    with torch.device("meta"):
        y = torch.ones(2)
    with torch.device("cpu"):
        z = torch.zeros(2)
    return y.device, z.device, z


def break_in_a_nested_callee(x):
    def inner(t):
        with torch.no_grad():
            print(torch.is_grad_enabled())
            return t * 2

    y = inner(x)
    return y, torch.is_grad_enabled(), y.requires_grad


def generator_in_no_grad(x):
    @contextlib.contextmanager
    def quiet():
        previous = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        try:
            yield previous
        finally:
            torch.set_grad_enabled(previous)

    with quiet() as was:
        y = x * 2
        print(torch.is_grad_enabled())
        z = x * 2
    return y, z, was, torch.is_grad_enabled()


def break_in_inference_mode(x):
    with torch.inference_mode():
        y = x * 2
        print(torch.is_inference_mode_enabled())
        z = y + 1
    return z.is_inference(), y.is_inference()


#: (program, graphs, operations)
BREAKS = [
    (break_in_no_grad, 2, 4), (break_in_autocast, 2, 9), (error_after_break, 1, 2),
    (error_that_leaves_no_grad, 1, 2), (default_dtype_changed, 1, 5), (device_as_a_context, 1, 2),
    (break_in_a_nested_callee, 1, 2), (generator_in_no_grad, 2, 3), (break_in_inference_mode, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("function, graphs, ops", BREAKS, ids=[row[0].__name__ for row in BREAKS])
def test_state_across_breaks(function, graphs, ops, grad) -> None:
    x = x23().requires_grad_(grad)
    check(function, x, graphs=graphs, ops=ops)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


# -- the caller's state is guarded ------------------------------------------------------------


def test_callers_modes_are_guarded() -> None:
    def f(x):
        return x @ x.t(), torch.is_grad_enabled(), torch.get_default_dtype(), torch.ones(1)

    compiled = framejit.compile(f, backend="eager")
    x = x23().requires_grad_()
    modes = [
        contextlib.nullcontext,
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        contextlib.nullcontext,
        torch.no_grad,
        lambda: torch.device("meta"),
        contextlib.nullcontext,
    ]
    for mode in modes:
        with mode():
            expected, got = f(x), compiled(x)
        for one, two in zip(expected, got, strict=True):
            if isinstance(one, torch.Tensor):
                assert one.dtype is two.dtype and one.requires_grad is two.requires_grad
                assert one.device == two.device and one.is_inference() is two.is_inference()
            else:
                assert one == two


# -- random numbers ---------------------------------------------------------------------------


def random_tensors(x):
    return torch.rand(2, 3) + x, torch.randn_like(x), torch.randint(0, 9, (3,)), torch.randperm(4)


def dropout_and_bernoulli(x):
    return torch.nn.functional.dropout(x + 3, 0.5), torch.bernoulli(torch.full((3,), 0.5))


def random_tensors_around_a_break(x):
    a = torch.rand(2)
    print("break")
    return a, torch.rand(2), torch.nn.functional.dropout(x, 0.3)


def seed_set_inside(x):
    torch.manual_seed(7)
    return torch.rand(2), x + 1


def generator_of_its_own(x):
    g = torch.Generator().manual_seed(3)
    return torch.rand(2, generator=g), torch.randn(2, generator=g), torch.rand(1)


def tensors_filled_with_random_numbers(x):
    y = torch.empty(3).normal_()
    y.uniform_(0, 1)
    return y, x.clone().exponential_(), torch.multinomial(torch.ones(4), 2)


def random_tensor_that_is_not_used(x):
    unused = torch.rand(5)
    return torch.rand(2)


def random_state_set_back(x):
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    b = torch.rand(2)
    return a, b


def forked_random_state(x):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        a = torch.rand(2)
    return a, torch.rand(2)


@pytest.mark.parametrize(
    "function",
    [
        random_tensors,
        dropout_and_bernoulli,
        random_tensors_around_a_break,
        seed_set_inside,
        generator_of_its_own,
        tensors_filled_with_random_numbers,
        random_tensor_that_is_not_used,
        random_state_set_back,
        forked_random_state,
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("backend", ["counting", "aot_eager"])
def test_random_numbers(function, backend) -> None:
    compiled = framejit.compile(
        function, backend=CountingBackend() if backend == "counting" else backend
    )
    torch.manual_seed(0)
    expected = [function(x23()) for _ in range(3)], torch.rand(3)
    torch.manual_seed(0)
    got = [compiled(x23()) for _ in range(3)], torch.rand(3)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


def test_generator_argument() -> None:
    def f(x, g):
        return torch.rand(2, generator=g) + x

    compiled = framejit.compile(f, backend="eager")
    a, b = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2), a), f(torch.ones(2), b), rtol=0, atol=0)


# -- default devices -------------------------------------------------------------------------------


def device_inside(x):
    with torch.device("meta"):
        a = torch.ones(2)
        with torch.device("cpu"):
            b = torch.zeros(2)
        c = torch.tensor([1.0, 2.0])
        d = torch.zeros(3, device="cpu")
    return a, b, c, d, x + torch.ones(2)


def device_and_break(x):
    with torch.device("meta"):
        a = torch.ones(2)
        print("inside", torch.zeros(1).device)
        b = torch.ones(2)
    return a, b, x + torch.ones(2)


def device_and_exception(x):
    try:
        with torch.device("meta"):
            a = torch.ones(2)
            raise ValueError
    except ValueError:
        pass
    return a, torch.ones(2) + x


def default_device_set(x):
    torch.set_default_device("meta")
    a = torch.ones(2)
    torch.set_default_device(None)
    return a, x + torch.ones(2)


def device_asked(x):
    with torch.device("meta"):
        device = torch.get_default_device()
    return x + 1, device, torch.get_default_device()


def traced_on_meta():
    """Does torch.tensor() make a fake tensor on this device? It does since torch 2.14."""
    with FakeTensorMode(), torch.device("meta"):
        return isinstance(torch.tensor([1.0]), FakeTensor)


TRACED = traced_on_meta()


@pytest.mark.parametrize(
    ("function", "graphs", "ops"),
    [(device_inside, 2 - TRACED, 5 + TRACED), (device_and_break, 2, 5),
     (device_and_exception, 1, 3), (default_device_set, 2, 3), (device_asked, 1, 1 + TRACED)],
)  # fmt: skip
def test_default_devices(function, graphs, ops) -> None:
    check(function, torch.ones(2), graphs=graphs, ops=ops)
    assert torch._C._len_torch_function_stack() == 0


def test_default_device_of_the_caller() -> None:
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: torch.ones(2), backend=backend)
    for device in ("cpu", "meta", "cpu", "meta"):
        with torch.device(device):
            assert compiled(torch.ones(2)).device.type == device
    assert compiled(torch.ones(2)).device.type == "cpu"
    assert len(backend.graphs) == 3
