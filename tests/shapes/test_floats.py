"""Floats that vary follow IEEE arithmetic, not that of real numbers."""

import math
import random

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend

X = torch.ones(2)
NAN, INF = math.nan, math.inf


def skip_nan(x, n):
    return (x * 0, "skipped") if n != n else (x * n, "used")


PROGRAMS = [
    (skip_nan, [1.5, 2.5, NAN, 3.5]),
    (lambda x, n: (x, n == n, n >= n), [1.5, 2.5, NAN]),
    (lambda x, n: (x * (n - n), x + n * 0), [1.5, 2.5, INF, NAN]),
    (lambda x, n: (x, n * 0.0), [1.5, 2.5, -3.0]),
    (lambda x, n: (x, n + 1 > n, n - 1 < n), [1.5, 2.5, 1e17, INF, NAN, 1e30]),
    (lambda x, n: (x, n * 2 == n + n, n * n >= 0), [1.5, 2.5, NAN]),
    (lambda x, n: (x * (n + 1 - n), n - n + 1), [1.5, 2.5, 1e17, INF]),
    (lambda x, n: x * ((n + 1e8) - n), [1.5, 2.5, 1e30]),
    (lambda x, n: (x, (n + 0.1) - 0.1 - n), [1.5, 2.5, 0.3]),
    (lambda x, n: (x + n, math.copysign(1, n), str(n)), [0.5, 1.5, 0.0, -0.0, 0.0]),
    (lambda x, n: (x * -n, 1 if n else 2), [0.5, 1.5, -0.0, 0.0, NAN]),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_floats_are_no_real_numbers(number, backend):
    function, values = PROGRAMS[number]
    compiled = framejit.compile(function, backend=backend)
    for value in values:
        assert repr(compiled(X, value)) == repr(function(X, value)), value


def test_chains_that_keep_their_order_stay_symbolic():
    def step(x, rate, decay):
        return x * (1 - rate * decay) - x / (rate / 3) + x * (rate**0.5), -rate, rate > 0.001

    backend = CountingBackend()
    compiled = framejit.compile(step, backend=backend)
    for k in range(1, 30):
        assert repr(compiled(X, k / 7, k / 100)) == repr(step(X, k / 7, k / 100))
    assert len(backend.graphs) == 2


@pytest.mark.parametrize("name", ["sin", "tan", "cosh", "tanh", "asin", "atan", "log2", "sqrt"])
def test_functions_of_numbers_that_vary(name):
    function = getattr(math, name)

    def program(x, number):
        try:
            return x * function(number), 1 - function(number), function(number) > 0.1
        except (ValueError, OverflowError) as error:
            return str(error)

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for k in range(1, 12):
        assert repr(compiled(X, 0.2 + k / 20)) == repr(program(X, 0.2 + k / 20))
    assert len(backend.graphs) == 2
    for odd in (math.nan, math.inf, -5.5, 0.0, 1e301, 800.0):
        assert repr(compiled(X, odd)) == repr(program(X, odd))


def test_sizes_in_functions():
    def program(x, step):
        return x * (1 / math.sqrt(x.shape[-1])) * math.cos(math.pi * step / 100)

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for k in range(2, 9):
        assert torch.equal(compiled(torch.ones(3, k), k), program(torch.ones(3, k), k))
    assert len(backend.graphs) == 2


def test_what_is_a_leaf_is_asked_though_the_tensor_is_used():
    compiled = framejit.compile(lambda x: (x * 2, x.is_leaf), backend="eager")
    leaf = torch.ones(2, requires_grad=True)
    for x in (leaf, leaf * 2, leaf):
        assert compiled(x)[1] == x.is_leaf


COMPUTED = {
    "squares": lambda x, s: (x * (s * s), s**2 * 3, x * s**3),
    "factors": lambda x, s: (x * ((s + 1) * 2), sum([s, s, 1.0])),
    "rests": lambda x, s: (x * (s // 0.25), s % -0.7, -s % 0.7, 7.5 // s),
    "rounded": lambda x, s: (x * round(s * 10), round(s, 2), round(s * 3)),
    "limits": lambda x, s: (x * min(1.0, s / 7), max(s, 0.5), max(0.0, min(s, 1.5))),
    "functions": lambda x, s: (x * math.exp(-s), math.log(s), math.log10(s) * s),
    "kinds": lambda x, s: (x if math.isnan(s) else x * s, math.isfinite(s), math.isinf(s)),
    "converted": lambda x, s: x * float(s) + min(s, math.inf),
    "shapes": lambda x, s: (x[: round(s)], x.new_zeros(int(s * s) + 2)),
    "a_loop": lambda x, s: [s := s * 0.9 + 0.1 for _ in range(9)] + [x * s],
}


@pytest.mark.parametrize("backend_name", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", COMPUTED)
def test_python_computes_for_the_graph_what_sympy_would_round_differently(name, backend_name):
    program, graphs = COMPUTED[name], []

    def backend(module, inputs):
        graphs.append(module)
        return lookup_backend(backend_name)(module, inputs)

    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for k in range(8, 15):  # from 1.69 to 2.55
        x = torch.ones(4)
        assert repr(compiled(x, 0.55 + k / 7)) == repr(program(x, 0.55 + k / 7))
    assert len(graphs) == 2
    for odd in (NAN, INF, -INF, -0.5, 0.0, -0.0, 1e300, 5e-324, 1e-3):
        assert repr(raised(compiled, odd)) == repr(raised(program, odd)), odd


def raised(program, number):
    try:
        return program(torch.ones(4), number)
    except (ArithmeticError, ValueError, RuntimeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(3))
def test_guards_on_computed_numbers_are_pythons(seed):
    def program(x, a, b):
        taken = [a // b > 3, a % b < b / 2, round(a, 1) > 2.2, min(a, b) < 1.5, a**2 > b * b]
        taken += [math.exp(-a) < 0.1, math.log(b) > 0.3, round(a * b) == 4, round(b, 2) == b]
        return x * a, taken

    numbers = random.Random(seed)
    compiled = framejit.compile(program, backend="eager")
    with framejit.config.patch(recompile_limit=1000):
        for _ in range(40):
            a, b = numbers.choice([-1, 1]) * numbers.uniform(0, 4), numbers.choice([0.1, 0.7, 1.25])
            for pair in ((a, b), (round(a, 1), b), (b, b), (3 * b, b), (-a, b + 1)):
                assert repr(compiled(X, *pair)) == repr(program(X, *pair)), pair


def test_the_sign_of_a_zero_that_is_looked_at():
    def program(x, s):
        return x, str(s * 0.0), str((s - 2.5) * -1)

    compiled = framejit.compile(program, backend="eager")
    for value in (1.5, 2.5, -3.5, 0.5, -1.0):
        assert repr(compiled(X, value)) == repr(program(X, value)), value


def test_zeros_of_both_signs_beside_a_number():
    def program(x, n):
        y = x * (-0.0 % n) + x * (0.0 % n)
        return y, -0.0 // n, 0.0 // n, -0.0 % n, 0.0 % n, n * 0.5 * -0.0, n * 0.5 * 0.0

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for n in (2, -3, 5, -1):
        assert repr(compiled(X, n)) == repr(program(X, n)), n
    assert len(backend.graphs) == 2


def test_truth_values_with_a_sign_are_ints():
    program = lambda x, n: (x + 1, +(x.shape[0] > 3), ~n, ~(n > 3))  # noqa: E731
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for n in (4, 5, 6, 9):
        assert repr(compiled(torch.ones(n), n)) == repr(program(torch.ones(n), n))
    assert len(backend.graphs) == 2


@pytest.mark.slow
def test_floats_that_inductor_builds_in():
    """The condition that they keep their values is no part of what AOTAutograd's cache keeps."""

    def f(x, d):
        return torch.add(x * d, x, alpha=1 - d)

    compiled = framejit.compile(f, backend="inductor")
    x = torch.randn(3, 3)
    for d in (0.9, 0.91, 0.92, 0.93, 0.91):
        torch.testing.assert_close(compiled(x, d), f(x, d))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_several_floats_change_and_some_have_to_be_built_in(backend):
    params = [torch.randn(3, requires_grad=True) for _ in range(2)]
    twins = [p.detach().clone().requires_grad_() for p in params]
    options = [torch.optim.AdamW(ps, lr=0.01) for ps in (params, twins)]
    schedules = [torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 10) for o in options]
    steps = [framejit.compile(options[0].step, backend=backend), options[1].step]
    for _ in range(4):
        for ps, step, schedule in zip((params, twins), steps, schedules, strict=True):
            sum(p.square().sum() for p in ps).backward()
            step()
            schedule.step()
    torch.testing.assert_close(params, twins)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_floats_vary_in_inference_mode(backend, mode):
    compiled = framejit.compile(lambda x, k: x * k, backend=backend, fullgraph=True)
    with mode():
        for k in (0.5, 2.0, 3.0, 4.0):
            result = compiled(X, k)
            assert result.tolist() == [k, k]
            assert result.is_inference() == (mode is torch.inference_mode)
    assert len(compiled.entries) == 2


def test_divmod_by_zero_has_its_own_complaint():
    def f(x, a, b):
        try:
            return x + 1, divmod(a, b)
        except ZeroDivisionError as error:
            return str(error)

    compiled = framejit.compile(f, backend="eager")
    for a, b in ((7.0, 3.0), (7.5, 2.0), (8.5, 4.0), (0.5, 0.0), (7, 2), (8, 3), (9, 0)):
        assert repr(compiled(torch.ones(1), a, b)) == repr(f(torch.ones(1), a, b))


def of_methods(x, k):
    y = x.clone()
    y.sub_(k, alpha=k)
    return x.add(k, alpha=2), x.add(other=k, alpha=2), y.add_(k, alpha=4)


def of_functions(x, k):
    result = torch.empty_like(x)
    torch.add(x.detach(), k, alpha=2, out=result)
    return torch.sub(x, k, alpha=3), torch.add(x, k * 2, alpha=1.5), result


def of_read_numbers(x, k):
    number = torch.tensor(k).item()
    return x.add(number, alpha=2), torch.sub(x, number, alpha=3)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [of_methods, of_functions, of_read_numbers])
def test_added_numbers_that_vary_have_a_factor(program, backend):
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    with framejit.config.patch(capture_scalar_outputs=True):
        for k in (0.5, 2.0, 3.0, -4.0):
            for x in (X, X.clone().requires_grad_()):
                torch.testing.assert_close(compiled(x, k), program(x, k))
    assert len(compiled.entries) == 4
