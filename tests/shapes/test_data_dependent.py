"""Numbers and sizes that depend on data, captured when the configuration asks for it."""

import pytest
import torch

import framejit
from checking import Outcome, compare_outcomes
from framejit.backends import lookup_backend


def captures(function, make, *, scalars=False, sizes=False, backend="eager"):
    """The number of graphs after five calls that are all like eager."""
    graphs = []

    def counting(gm, inputs):
        graphs.append(gm)
        return lookup_backend(backend)(gm, inputs)

    with framejit.config.patch(
        capture_scalar_outputs=scalars, capture_dynamic_output_shape_ops=sizes
    ):
        compiled = framejit.compile(function, backend=counting)
        for number in (4, 2, 5, 3, 7):
            expected = Outcome(function, make(number), {})
            compare_outcomes(expected, Outcome(compiled, make(number), {}))
    return len(graphs)


BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_item_is_a_number_of_the_graph(backend):
    def f(x):
        n = x.sum().item()
        return x * n, n + 1

    make = lambda i: (torch.full((2,), float(i)),)  # noqa: E731
    assert captures(f, make, scalars=True, backend=backend) == 1
    assert captures(f, make) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_checks_say_what_is_known(backend):
    def f(x):
        n = x.item()
        torch._check(n >= 0)
        torch._check(n <= 12)
        return torch.zeros(n) + 1, n

    assert captures(f, lambda i: (torch.tensor(i),), scalars=True, backend=backend) == 1


def test_a_check_that_fails_raises():
    def f(x):
        n = x.item()
        torch._check(n >= 3)
        return torch.zeros(n) + 1

    with framejit.config.patch(capture_scalar_outputs=True):
        compiled = framejit.compile(f, backend="eager")
        assert torch.equal(compiled(torch.tensor(4)), torch.ones(4))
        with pytest.raises(RuntimeError):
            compiled(torch.tensor(2))


def test_a_decision_by_data_is_a_break():
    def f(x):
        n = x.item()
        return x + 1 if n > 3 else x - n

    assert captures(f, lambda i: (torch.tensor(i),), scalars=True) <= 4


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.nonzero() + 1).sum(0),
        lambda x: x[x > 2].sum(),
        lambda x: x.unique().sum(),
        lambda x: x[x > 2] * 2,
    ],
)
def test_sizes_that_depend_on_data(function, backend):
    make = lambda i: (torch.arange(10) % i,)  # noqa: E731
    assert captures(function, make, sizes=True, backend=backend) == 1


def test_the_size_itself():
    def f(x):
        found = x.nonzero()
        return found.shape[0], torch.ones(3) * found.shape[0]

    assert captures(f, lambda i: (torch.arange(10) % i,), sizes=True) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_truth_value_is_a_number_of_the_graph(backend):
    def f(x, flag):
        return x * flag.item(), torch.where(flag, x + flag.item(), x), flag.item()

    make = lambda i: (torch.ones(2), torch.tensor(i > 3))  # noqa: E731
    assert captures(f, make, scalars=True, backend=backend) == 1


def test_sizes_that_only_the_answer_needs():
    """They become operations of the graph after the last instruction."""

    def f(x, i):
        y = x[x > i]
        return y * 2, y.numel(), torch.nonzero(x).shape, torch.where(x > i)[0].shape

    make = lambda i: (torch.arange(9.0), i)  # noqa: E731
    assert captures(f, make, scalars=True, sizes=True) <= 2
