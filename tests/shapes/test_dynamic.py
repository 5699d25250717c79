"""When sizes and numbers become symbols, and what that costs in captures."""

import pytest
import torch

import framejit
from checking import Comparison, CountingBackend
from framejit.report import events


@pytest.fixture
def backend():
    return CountingBackend()


def placeholders(graph):
    return [node.name for node in graph.graph.find_nodes(op="placeholder")]


def sizes(graph, index=0):
    node = graph.graph.find_nodes(op="placeholder")[index]
    return [type(size) for size in node.meta["example_value"].shape]


def test_only_what_varied_becomes_symbolic(backend):
    compiled = framejit.compile(lambda x: x * 2, backend=backend)
    for n in (4, 6, 9, 30):
        x = torch.randn(n, 8)
        assert torch.equal(compiled(x), x * 2)
    first, second = backend.graphs
    assert sizes(first) == [int, int]
    assert sizes(second, 1) == [torch.SymInt, int]
    assert len(placeholders(second)) == 2


def test_the_other_dimension_varies_later(backend):
    compiled = framejit.compile(lambda x: x.sum(0), backend=backend)
    for shape in [(4, 8), (6, 8), (6, 9), (7, 10), (3, 50)]:
        x = torch.randn(*shape)
        assert torch.equal(compiled(x), x.sum(0))
    assert len(backend.graphs) == 3
    assert sizes(backend.graphs[2], 2) == [torch.SymInt, torch.SymInt]


def test_dynamic_true_is_symbolic_at_once(backend):
    compiled = framejit.compile(lambda x, n: x * n, backend=backend, dynamic=True)
    for n in (4, 6, 9):
        x = torch.randn(n, n + 1)
        assert torch.equal(compiled(x, n), x * n)
    assert len(backend.graphs) == 1
    assert len(placeholders(backend.graphs[0])) == 4


def test_dynamic_false_never(backend):
    compiled = framejit.compile(lambda x: x * 2, backend=backend, dynamic=False)
    for n in (4, 6, 9):
        compiled(torch.randn(n))
    assert len(backend.graphs) == 3
    assert all(sizes(graph) == [int] for graph in backend.graphs)


def test_parameters_keep_their_sizes(backend):
    layers = [torch.nn.Linear(4, n) for n in (3, 5, 6)]
    compiled = framejit.compile(lambda layer, x: layer(x), backend=backend)
    x = torch.randn(2, 4)
    for layer in layers:
        assert torch.equal(compiled(layer, x), layer(x))
    for graph in backend.graphs:
        for node in graph.graph.find_nodes(op="placeholder"):
            value = node.meta["example_value"]
            if isinstance(value, torch.nn.Parameter):
                assert all(type(size) is int for size in value.shape)


@pytest.mark.parametrize(
    ("function", "graphs"),
    [
        (lambda x: x.mean(), 3),
        (lambda x: torch.cat([x, x]).softmax(-1), 3),
        (lambda x: x @ x.t(), 3),
        # The strides of what a pointwise operation makes depend on sizes that are 1.
        (lambda x: x + x.shape[0], 4),
        # Something of size 1 is repeated, nothing else is.
        (lambda x: x + torch.ones(1, 3).expand(x.shape[0], 3), 4),
    ],
)
def test_size_zero_gets_its_own_code_and_size_one_where_it_matters(backend, function, graphs):
    compiled = framejit.compile(function, backend=backend)
    for n in (4, 6, 1, 0, 7, 1, 0):
        x = torch.randn(n, 3)
        result, expected = compiled(x), function(x)
        assert torch.equal(result, expected) or n == 0 and result.isnan() and expected.isnan()
        assert result.stride() == expected.stride()
    assert len(backend.graphs) == graphs


@pytest.mark.parametrize(
    "make",
    [
        lambda n: torch.ones(0, n, 8)[..., 1:3],
        lambda n: torch.ones(n, 0, 24).chunk(3, -1)[1],
        lambda n: torch.ones(n, 4, 24)[:, 2:2, 3:9],
    ],
)
def test_a_part_without_elements_beside_a_size_that_varies(backend, make):
    def f(x):
        return x.sum(0) + 1, x.transpose(1, 2).shape, x.stride()

    compiled = framejit.compile(f, backend=backend)
    for n in (4, 6, 7):
        Comparison().compare(f(make(n)), compiled(make(n)), "result")
    assert len(backend.graphs) == 2


@pytest.mark.slow
def test_no_element_of_an_empty_dimension_is_read():
    compiled = framejit.compile(lambda x: x[-1] + 1, backend="inductor")
    for n in (4, 6, 1):
        x = torch.randn(n, 3)
        assert torch.equal(compiled(x), x[-1] + 1)
    with pytest.raises(IndexError, match="dimension 0 with size 0"):
        compiled(torch.randn(0, 3))


@pytest.mark.parametrize("first", [1, 4])
@pytest.mark.parametrize(
    "backend_name", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)
def test_size_one_through_aotautograd(backend_name, first):
    layer = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))

    def loss(x):
        return layer(x).softmax(0).square().sum()

    compiled = framejit.compile(loss, backend=backend_name)
    for n in (first, 6, 1, 2, 0, 5, 1):
        x = torch.randn(n, 3)
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        compiled(ours).backward()
        loss(theirs).backward()
        torch.testing.assert_close(ours.grad, theirs.grad)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 0
        self.rate = 0.5

    def forward(self, x):
        return x * self.factor + self.rate


@pytest.mark.parametrize("name", ["factor", "rate"])
def test_fifty_values_of_a_module_attribute(backend, name):
    module = Scaled()
    compiled = framejit.compile(module, backend=backend)
    x = torch.randn(3)
    for n in range(50):
        setattr(module, name, n if name == "factor" else n / 7)
        assert torch.equal(compiled(x), module(x))
    assert len(backend.graphs) <= 2


@pytest.mark.parametrize("scale", [1, 0.3])
def test_fifty_values_of_an_argument(backend, scale):
    def f(x, n):
        return x * n + 1, n * 2

    compiled = framejit.compile(f, backend=backend)
    x = torch.randn(3)
    for n in range(-5, 45):
        got, expected = compiled(x, n * scale), f(x, n * scale)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]
        assert type(got[1]) is type(expected[1])
    assert len(backend.graphs) == 2


LEVEL = 0


def test_fifty_values_of_a_global(backend):
    global LEVEL
    compiled = framejit.compile(lambda x: x + LEVEL, backend=backend)
    x = torch.randn(3)
    for n in range(50):
        LEVEL = n
        assert torch.equal(compiled(x), x + n)
    assert len(backend.graphs) == 2


def test_a_counter_that_the_program_advances(backend):
    module = Scaled()

    def f(x):
        module.factor += 1
        return x * module.factor

    compiled = framejit.compile(f, backend=backend)
    for n in range(1, 20):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), float(n)))
    assert len(backend.graphs) == 2 and module.factor == 19


def test_strings_get_one_entry_each(backend):
    compiled = framejit.compile(lambda x, s: x + len(s), backend=backend)
    for text in ("a", "bb", "ccc", "a"):
        compiled(torch.ones(2), text)
    assert len(backend.graphs) == 3


def test_an_int_beyond_64_bits(backend):
    def f(x, n):
        return x + 1, n + 1

    compiled = framejit.compile(f, backend=backend)
    for n in (3, 4, 10**30, 5, -(10**25), 2**63):
        assert compiled(torch.ones(1), n)[1] == n + 1


def test_a_number_carried_over_a_break_does_not_recompile_for_ever(backend):
    def f(x):
        n = x.sum().item()
        return x * n

    compiled = framejit.compile(f, backend=backend)
    for n in range(20):
        x = torch.full((2,), float(n))
        assert torch.equal(compiled(x), f(x))
    assert len(backend.graphs) == 3  # the sum; the product twice


def test_lists_and_slices_need_the_number(backend):
    items = [torch.ones(2) * i for i in range(5)]
    compiled = framejit.compile(lambda i: items[i] * i, backend=backend)
    for i in (0, 1, 2, 1, 0, 2):
        assert torch.equal(compiled(i), items[i] * i)
    assert len(backend.graphs) == 3


def test_conditions_split_the_sizes(backend):
    def f(x):
        return x + 1 if x.shape[0] > 8 else x - 1

    compiled = framejit.compile(f, backend=backend)
    for n in (4, 6, 9, 10, 7, 20, 3):
        x = torch.randn(n)
        assert torch.equal(compiled(x), f(x))
    assert len(backend.graphs) == 3


def test_strides_that_follow_the_sizes_and_strides_that_do_not(backend):
    compiled = framejit.compile(lambda x: x.t() + 1, backend=backend)
    big = torch.randn(40, 50)
    for x in (torch.randn(4, 8), torch.randn(6, 9), torch.randn(5, 7)):
        assert torch.equal(compiled(x), x.t() + 1)
    assert len(backend.graphs) == 2
    for n in (5, 6, 7):
        assert torch.equal(compiled(big[:n, :n]), big[:n, :n].t() + 1)
    assert len(backend.graphs) == 3
    x = torch.randn(6, 9).t()
    assert torch.equal(compiled(x), x.t() + 1)


def test_mutated_inputs_that_share_memory():
    def f(x, y):
        x.add_(1)
        return y * 2

    for backend in ("eager", "aot_eager"):
        compiled = framejit.compile(f, backend=backend)
        for n in (4, 6, 9):
            base, other = torch.zeros(2 * n), torch.zeros(2 * n)
            expected = f(base[:n], base[1 : n + 1])
            assert torch.equal(compiled(other[:n], other[1 : n + 1]), expected)
            assert torch.equal(base, other)


@pytest.mark.parametrize("backend_name", ["eager", "aot_eager"])
def test_training_with_a_symbolic_batch(backend_name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    compiled = framejit.compile(model, backend=backend_name)
    with events.recording(events.CaptureEnd) as captures:
        for n in (4, 6, 9, 2, 17):
            x = torch.randn(n, 4)
            model.zero_grad()
            model(x).pow(2).mean().backward()
            expected = [p.grad.clone() for p in model.parameters()]
            model.zero_grad()
            compiled(x).pow(2).mean().backward()
            for grad, p in zip(expected, model.parameters(), strict=True):
                assert torch.allclose(grad, p.grad)
    assert len(captures) == 2


@pytest.mark.slow
def test_inductor_with_sizes_ints_and_floats_that_vary():
    def f(x, n, s):
        return (x * s).sum(0) + n

    compiled = framejit.compile(f, backend="inductor")
    with events.recording(events.CaptureEnd) as captures:
        for i in (4, 6, 9, 17, 2):
            x = torch.randn(i, 8, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            compiled(x, i, i / 3).sum().backward()
            f(y, i, i / 3).sum().backward()
            assert torch.allclose(x.grad, y.grad)
    assert len(captures) == 2


def test_reasons_name_the_assumption():
    def f(x):
        return x + 1 if x.shape[0] > 8 else x - 1

    compiled = framejit.compile(f, backend="eager")
    with events.recording(events.Recompile) as recompiles:
        for n in (4, 6, 9):
            compiled(torch.randn(n))
    words = "it was assumed that local 'x'.size(0) <= 8, now local 'x'.size(0) is 9"
    assert recompiles[1].reasons[1].startswith(words)
    assert "x.shape[0] > 8" in recompiles[1].reasons[1]


def test_a_decoding_loop(backend):
    def step(cache, x):
        cache = torch.cat([cache, x], 1)
        scores = cache @ x.transpose(1, 2)
        return cache, (cache * scores.softmax(1)).sum(1, keepdim=True)

    compiled = framejit.compile(step, backend=backend)
    x = torch.randn(2, 1, 4)
    cache = mine = torch.zeros(2, 0, 4)
    out = got = x
    for _ in range(64):
        cache, out = step(cache, out)
        mine, got = compiled(mine, got)
        assert torch.equal(cache, mine) and torch.equal(out, got)
    assert len(backend.graphs) <= 3


@pytest.mark.parametrize(
    "chosen",
    [
        lambda n: torch.sym_max(n, 5) + torch.sym_min(n, 5), lambda n: max(n, 5) + min(5, n),
        lambda n: max([n, 5]) + min([n, 5]), lambda n: max((n, 5)) + min((n, 5)),
        lambda n: max(i for i in (n, 5)) + min(i for i in (n, 5)),
        lambda n: max(iter([n, 5])) + min(iter([n, 5])), lambda n: -n + 1, lambda n: ~n * -1,
    ],
)  # fmt: skip
def test_numbers_that_vary_stay_so(chosen):
    def program(x):
        return x + chosen(x.size(0)), chosen(x.size(0))

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for size in (3, 4, 7, 5, 8):
        (made, number), (expected, its) = compiled(torch.ones(size)), program(torch.ones(size))
        assert torch.equal(made, expected) and number == its
    assert len(backend.graphs) == 2
