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


def numbers(*values):
    return lambda i: (torch.tensor([i + value for value in values]),)


#: Programs whose numbers stay in one graph, and what makes their arguments.
WHOLE = {
    "an int": (lambda x: torch.ones(3) * int(x.sum()), numbers(0, 1)),
    "an int of a float": (lambda x: torch.zeros(int(x.float()[0])) + 1, numbers(0.75, 1)),
    "a float": (lambda x: torch.ones(3) * float(x.sum()), numbers(0, 1)),
    "a list": (lambda x: torch.ones(3) * x.tolist()[0] + x.tolist()[1], numbers(0, 1)),
    "a list of one number": (lambda x: torch.ones(3) * x.sum().tolist(), numbers(0, 1)),
    "lists of lists": (lambda x: torch.ones(2) * x.view(2, 2).tolist()[1][0], numbers(0, 1, 2, 3)),
    "a list that is returned": (lambda x: (x.tolist(), x * 2), numbers(0.5, 1)),
    "a list of truth values": (lambda x: ((x > 3).tolist(), x * 2), numbers(0, 1)),
    "empty lists": (lambda x: (x[:0].tolist(), x.view(2, 1)[:, :0].tolist(), x + 1), numbers(0, 1)),
    "the largest of a list": (lambda x: torch.ones(2) * max(x.tolist()), numbers(0, 1)),
    "the sum of a list": (lambda x: torch.ones(2) * sum(x.tolist()), numbers(0, 1)),
    "a power": (lambda x: torch.ones(2) * (x[0].item() - 5) ** 3, numbers(0, 1)),
    "a slice by tensors": (lambda x: torch.arange(20)[x[0] : x[1]] + 1, numbers(0, 2)),
    "a slice by numbers": (lambda x: torch.arange(9)[: x[0].item()] + 1, numbers(0, 2)),
    "sizes": (lambda x: torch.zeros(x[0].item(), 2) + torch.full((2,), x[1].item()), numbers(0, 2)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WHOLE)
def test_numbers_that_stay_in_one_graph(name, backend):
    function, make = WHOLE[name]
    assert captures(function, make, scalars=True, backend=backend) == 1


def test_what_one_number_cannot_be_made_of():
    def f(x):
        y = x + 1
        return int(y)

    make = lambda i: (torch.ones(i),)  # noqa: E731
    assert captures(f, make, scalars=True) <= 2


def test_a_long_list_is_read_by_python():
    framejit.counters.clear()
    assert captures(lambda x: (x + 1).tolist(), lambda i: (torch.ones(1000),), scalars=True) == 1
    assert sum(framejit.counters["graph_break"].values()) == 1


def by_expert(x, weights, expert):
    """Each row times the weights of its expert, with sizes that depend on the routing."""
    result = torch.zeros_like(x)
    for number in range(weights.shape[0]):
        rows = (expert == number).nonzero().squeeze(1)
        result.index_add_(0, rows, x[rows] @ weights[number])
    return result


def by_sorted_experts(x, weights, expert):
    order, start, parts = expert.argsort(stable=True), 0, []
    counts = torch.stack([(expert == number).sum() for number in range(3)]).tolist()
    for number, count in enumerate(counts):
        parts.append(x[order[start : start + count]] @ weights[number])
        start += count
    return torch.cat(parts)


def routed(seed):
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(size, generator=generator) for size in ((6, 4), (3, 4, 4))]
    return (*made, torch.randint(3, (6,), generator=generator))


@pytest.mark.parametrize("backend", BACKENDS)
def test_routing_is_captured_whole(backend):
    assert captures(by_expert, routed, sizes=True, backend=backend) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_routing_by_counts_is_captured_whole(backend):
    assert captures(by_sorted_experts, routed, scalars=True, sizes=True, backend=backend) == 1
