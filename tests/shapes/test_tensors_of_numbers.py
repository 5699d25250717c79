"""Tensors made of numbers that vary are made in the graph, with at most one recompile."""

import math

import pytest
import torch
from torch.utils._pytree import tree_map_only

import framejit
from checking import Outcome, compare_outcomes
from framejit import config
from framejit.backends.registry import lookup_backend

MADE = {
    "row": lambda x, n: x * torch.tensor([n, 1.0]).sum(),
    "scalar": lambda x, n: (x + torch.tensor(n), torch.as_tensor(n, dtype=torch.float64)),
    "nested": lambda x, n: torch.tensor([[n, 2], (3, n + 1), [True, n]]),
    "dtypes": lambda x, n: (torch.tensor([n, 1], dtype=torch.float16), torch.asarray([n], dtype=torch.int8), torch.tensor((n, 1.5), device="cpu", dtype=None)),  # noqa: E501
    "like": lambda x, n: (x.new_tensor([n, 2.5]), x.long().new_tensor(n), x.new_tensor((n,), dtype=torch.int32), x.new_tensor([1.0])),  # noqa: E501
    "full": lambda x, n: (torch.full((2, 2), n), torch.full(size=(), fill_value=n, dtype=torch.float64) + x, torch.full((1,), n, dtype=torch.int16)),  # noqa: E501
    "others": lambda x, n: (torch.full_like(x, n), torch.linspace(0, n, 3), x.new_full((2,), n)),
}  # fmt: skip


def graphs_of(program, values, backend_name="eager"):
    """How many graphs and frames were captured for these values."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return lookup_backend(backend_name)(module, inputs)

    compiled = framejit.compile(program, backend=backend)
    framejit.counters.clear()
    with config.patch(raise_internal_errors=True):
        for value in values:
            outcomes = [Outcome(f, (torch.ones(4), value), {}) for f in (program, compiled)]
            compare_outcomes(*outcomes)
            one, two = [tree_map_only(torch.Tensor, torch.detach, o.result) for o in outcomes]
            assert repr(one) == repr(two)  # signs of zero, too
    return len(graphs), framejit.counters["frames"]["total"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", MADE)
def test_one_graph(name, backend):
    assert graphs_of(MADE[name], range(2, 7), backend) == (2, 2)
    if backend == "eager" or name in ("row", "scalar"):  # others convert the float: AOT fixes it
        assert graphs_of(MADE[name], [1.5, 2.5, 0.25, 7.75], backend) == (2, 2)


def test_sizes():
    program = lambda x, n: torch.tensor(x[:n].shape) + torch.tensor([x.shape[0], n])
    assert graphs_of(program, range(2, 5)) == (2, 2)


def test_odd_floats():
    program = lambda x, n: (torch.tensor([n, 2.0]), torch.full((2,), n) * x)
    graphs_of(program, [1.5, 2.5, -0.0, 1e300, math.inf, math.nan, -3.4e38, 0.5])


def test_what_cannot_be_made():
    for program in (
        lambda x, n: torch.tensor([[n], [n, 2]]),
        lambda x, n: torch.tensor([n, "a"]),
        lambda x, n: torch.tensor([n, None]),
        lambda x, n: torch.tensor(n * 100, dtype=torch.uint8),
        lambda x, n: torch.tensor([n] * 80).sum(),
        lambda x, n: torch.tensor([n, 1j]),
        lambda x, n: torch.tensor([n, torch.ones(())]),
    ):
        graphs_of(program, [2, 3, 4])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_new_leaves(backend):
    def program(x, n):
        leaf = torch.full((2,), n, requires_grad=True)
        (leaf * x[:2]).sum().backward()
        return leaf.grad, torch.tensor([n], requires_grad=True) * 2

    graphs_of(program, [1.5, 2.5, 3.5], backend)


NUMBERS = {
    "rounded": lambda x, n: (x * round(n), round(n, 2), round(n / 4, 1)),
    "parts": lambda x, n: (x * n.real, n.imag),
    "whole": lambda x, n: (x * (n // 8), n // 8, divmod(n, 9), -(n // 8), n % 3),
    "zeros": lambda x, n: (x / (n // 8 + 1), (n // 8) * 2, abs(n // 8) + x, x * round(n / 100)),
    "limits": lambda x, n: (x * max(n, 2.5), min(n, 2.5), max([n, 1.0])),
    "kinds": lambda x, n: (x * int(n), float(n), abs(-n)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", NUMBERS)
def test_arithmetic_recompiles_once(name, backend):
    kinds = [[1.5, 2.5, 3.5, 0.25, 9.0, 17.5]]
    if name != "limits":  # of an int and a float, either may come out
        kinds.append(list(range(2, 8)))
    for values in kinds:
        assert graphs_of(NUMBERS[name], values, backend) == (2, 2)


def test_a_quotient_that_is_zero_for_a_while():
    program = lambda x, step: x * (step / 100 // 1)
    assert graphs_of(program, range(1, 350, 30)) == (2, 2)
    assert graphs_of(lambda x, n: (x, n.numerator, n.denominator), [4, 5, 6]) == (0, 2)
    assert graphs_of(lambda x, n: (x, round(n, -1), round(True, 1)), [14, 15, 16])[0] == 0
