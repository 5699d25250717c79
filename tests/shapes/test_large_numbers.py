"""Ints that no machine number holds, and bools, beside numbers that vary."""

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes
from framejit import config

LARGE = {
    "in a container": lambda x, n: (x + 1, n in [10**20], [n].count(10**20), {10**20: 1}.get(n)),
    "compared": lambda x, n: (x * n, n < 10**20, n == -(10**30), max(n, 10**20), n != 2**63),
    "calculated with": lambda x, n: (x + 1, n + 10**20, n % 10**20, n & (1 << 70), n * 2**64),
    "grown": lambda x, n: (x + 1, n * 10**19, n << 63, 2 ** (n * 20), n + (2**62 - 1), -n - 2**63),
    "of a size": lambda x, n: (x + 1, x.shape[0] == 10**20, x.shape[0] * 10**19, len(x) < 2**64),
    "floats": lambda x, n: (x + 1, n / 3 < 10**20, n * 0.5 == 10**30, n * 0.5 + 10**20),
    "a product as a key": lambda x, n: (x + n, {(n - 7) * 10**18: 1, (n - 7) * 10**20: 2}.get(0)),
    "a product that decides": lambda x, n: (x + n, 1 if (n - 7) * 10**18 * 100 > 0 else 0),
}
BOOLS = {
    "compared": lambda x, n: (x + 1, n == True, n != False, n > True, n in (True, 3)),  # noqa: E712
    "calculated with": lambda x, n: (x * (n + True), True - n, n * False, n // True, n | True),
    "of a size": lambda x, n: (x + 1, int(x.shape[0] == True), x.shape[0] + True, sum([True, n])),  # noqa: E712
    "floats": lambda x, n: (x + 1, n * 0.5 == True, n * 0.5 + True, min(n, True)),  # noqa: E712
    "conditions": lambda x, n: (x + 1, (n > 3) == True, (n > 3) + n, {True: 1}.get(n > 3)),  # noqa: E712
}


def run(program, numbers):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    with config.patch(raise_internal_errors=True):
        for number in numbers:
            outcomes = [Outcome(f, (torch.ones(number), number), {}) for f in (program, compiled)]
            compare_outcomes(*outcomes)
    assert backend.ops


@pytest.mark.parametrize("name", LARGE)
def test_large_ints(name):
    run(LARGE[name], [3, 4, 5, 7])


@pytest.mark.parametrize("name", BOOLS)
def test_bools(name):
    run(BOOLS[name], [3, 4, 5, 7])


def test_arguments_that_grow_large():
    def f(x, y):
        return x + 1, y in [x.shape[0], 5], y + 1, sorted([y, 3]), y == x.shape[0]

    compiled = framejit.compile(f, backend="eager")
    with config.patch(raise_internal_errors=True):
        for y in (1, 2, 10**20, -(10**20), 2**63, 2**62, -(2**63), 7):
            args = torch.ones(3), y
            compare_outcomes(Outcome(f, args, {}), Outcome(compiled, args, {}))
