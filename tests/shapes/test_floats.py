"""Floats that vary follow IEEE arithmetic, not that of real numbers."""

import math

import pytest
import torch

import framejit
from checking import CountingBackend

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
