"""Backends that use AOTAutograd leave behind what eager mode does: random numbers, gradients."""

import functools

import pytest
import torch
from torch import nn

import framejit
from backends.agreement import Counted, agrees
from checking import Comparison
from framejit.audit.comparison import Tolerance

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("wanted", ["input", "weights", "both", "none"])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_with_dropout_draw_the_masks_of_eager_mode(kind, wanted, packed):
    torch.manual_seed(0)
    layer = kind(3, 4, num_layers=3, dropout=0.5, bidirectional=True)
    layer.requires_grad_(wanted in ("weights", "both"))

    def f(x, *weights):
        x = x * 2
        given = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 2])) if packed else x
        out = layer(given)[0]
        return (out.data if packed else out) * 3

    def make():
        layer.zero_grad()
        return torch.randn(5, 2, 3).requires_grad_(wanted in ("input", "both")), *[
            p for p in layer.parameters()
        ]

    for backend in BACKENDS:
        agrees(f, make, backend=backend, graphs=None if packed else 2)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_that_draw_nothing_are_in_the_graph(kind):
    torch.manual_seed(0)
    for layer in (kind(3, 4, num_layers=2), kind(3, 4, num_layers=2, dropout=0.5).eval()):
        layer.requires_grad_(False)

        def f(x, layer=layer):
            return layer(x * 2)[0] * 3

        agrees(f, lambda: (torch.randn(5, 2, 3),), graphs=1)


# -- training with sizes that vary -----------------------------------------------------------------


def vectors(*sizes):
    return [lambda n=n: ((torch.rand(n) + 0.5).requires_grad_(),) for n in sizes]


def pinv(x):
    return torch.linalg.pinv(torch.diag(x)), (x * 2).sum()


def cholesky_solve(x):
    square = torch.diag(x) + 0.1
    factor = torch.linalg.cholesky(square @ square.T + torch.eye(x.shape[0]))
    return torch.cholesky_solve(square, factor), (x * 2).sum()


def log_prob(x):
    normal = torch.distributions.MultivariateNormal(x, torch.eye(x.shape[0]))
    return normal.log_prob(x * 2), (x * 2).sum()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [pinv, cholesky_solve, log_prob])
def test_results_with_gradients_of_their_own_in_sizes_that_vary(function, dynamic):
    for backend in BACKENDS:
        agrees(function, *vectors(4, 5, 6), backend=backend, dynamic=dynamic)


def masks(*sizes):
    def make(size):
        mask = torch.arange(size) % 3 > 0
        return torch.randn(size), mask, torch.randn(int(mask.sum())).requires_grad_()

    return [lambda n=n: make(n) for n in sizes]


def assigned(x, mask, y):
    x = x.clone()
    x[mask] = y
    return x * 2, y.sum()


def scattered(x, mask, y):
    return x.masked_scatter(mask, y).sin()


def accumulated(x, mask, y):
    return (x * 1).index_put_((mask,), y, accumulate=True).sin()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [assigned, scattered, accumulated])
def test_what_a_mask_selects_gets_a_gradient(function, dynamic):
    for backend in BACKENDS:
        agrees(function, *masks(4, 5, 7), backend=backend, dynamic=dynamic)


def test_a_mask_of_a_known_size_is_in_the_graph():
    agrees(assigned, *masks(4), graphs=1)


# -- memory that several tensors share, and bits that change what it means -------------------------


def overlapping():
    base = torch.arange(6.0)
    return base[2:4], base


def one_twice(x, b):
    torch._foreach_add_([b, b], 1.0)
    return b * 1


def base_and_view(x, b):
    torch._foreach_mul_([b, x], 2.0)
    return b * 1


def new_ones(x, b):
    y = b * 1
    torch._foreach_add_([y, y[1:]], 1.0)
    torch._foreach_add_([y, y], [y, y])
    return y


def crosswise(x, b):
    y = b * 3
    torch._foreach_mul_([b, y], [y, b])
    return y


def parts_crosswise(x, b):
    torch._foreach_lerp_([b[:2], b[4:]], [b[4:], b[:2]], 0.5)
    return b * 1


OVERLAPPING = [one_twice, base_and_view, new_ones, crosswise, parts_crosswise]


@pytest.mark.parametrize("function", OVERLAPPING)
def test_lists_that_overlap_are_written_one_after_the_other(function):
    for backend in BACKENDS:
        agrees(function, overlapping, backend=backend)


def test_lists_of_views_that_do_not_overlap_are_in_the_graph():
    def f(b):
        torch._foreach_add_([b[:2], b[2:]], 1.0)
        torch._foreach_mul_([b[:2], b[2:]], [b[:2], b[2:]])
        return b * 2

    agrees(f, lambda: (torch.arange(6.0),), graphs=1)


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_inputs_with_a_bit_for_negation_or_conjugation(backend):
    numbers = torch.tensor([1 + 2j, 3 - 1j])
    agrees(lambda x: x + 1, lambda: (numbers.conj().imag,), backend=backend)
    agrees(lambda x: x.mul_(2) + 1, lambda: (numbers.clone().conj().imag,), backend=backend)
    agrees(lambda x: x * 2, lambda: (numbers.conj(),), backend=backend)


def through_a_conjugate(z):
    w = z.conj()
    w.add_(1)
    torch.view_as_real(z.resolve_conj())[0, 0] = 7
    return w * 1


def a_conjugate_of_parts(z):
    z.imag.mul_(2)
    z.real.zero_()
    w = z.conj()
    w.add_(1j)
    torch.view_as_real(z.resolve_conj())[0, 0] = 7
    return w


@pytest.mark.parametrize("function", [through_a_conjugate, a_conjugate_of_parts])
def test_writes_through_conjugates_and_their_parts(function):
    numbers = torch.tensor([1 + 2j, 3 - 1j])
    for backend in BACKENDS:
        agrees(function, lambda: (numbers.clone(),), backend=backend)
        agrees(function, lambda: (numbers.clone().conj(),), backend=backend)


def test_compiling_tells_of_errors_in_gradients_that_the_graph_is_not_compiled(recwarn):
    """And nothing else: the gradients, which would be an error, are never computed."""

    def f(x):
        y = x.exp()
        y.add_(1)
        return y.sum()

    x = torch.ones(2, requires_grad=True)
    compiled = framejit.compile(f, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), f(x))
    (warning,) = recwarn.list
    assert "FJ0234" in str(warning.message)


BEYOND = [
    lambda b, x: x.as_strided((3,), (1,), 0).add_(1),
    lambda b, x: (x.as_strided((2,), (1,), 1).mul_(3), x * 1)[1],
    lambda b, x: x.as_strided((2,), (1,), 4).add_(x[0]),
    lambda b, x: x[1:].as_strided((2,), (1,)).add_(1),
    lambda b, x: (x.add_(1), torch.as_strided(x, (6,), (1,), 0) * 1)[1],
]


@pytest.mark.parametrize("function", BEYOND)
def test_writes_beyond_what_an_input_shows_of_its_memory(function):
    """Whatever the offset at capture was."""

    def whole():
        b = torch.arange(6.0)
        return b, b[:3]

    def part():
        b = torch.arange(6.0)
        return b, b[2:5]

    for backend in BACKENDS:
        for dynamic in (None, True):
            agrees(function, whole, part, backend=backend, dynamic=dynamic)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_buffer_that_views_a_parameter_is_written(backend):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.arange(4.0))
            self.register_buffer("v", self.w.detach()[1:3])

        def forward(self, x):
            self.v.add_(1)
            return (self.w * x).sum()

    plain, shared = Shared(), Shared()
    compiled = framejit.compile(shared, backend=backend, fullgraph=True)
    for step in range(1, 4):
        for module in (plain, compiled):
            module(torch.ones(4) * step).backward()
        torch.testing.assert_close([shared.w, shared.v, shared.w.grad],
                                   [plain.w, plain.v, plain.w.grad])  # fmt: skip
        assert shared.v.data_ptr() == shared.w[1:].data_ptr()


def test_inputs_of_several_dtypes_in_one_memory_are_written():
    def f(x, bits):
        bits.add_(1)
        return x * 2

    def make():
        x = torch.arange(4.0)
        return x, x.view(torch.int32)

    for backend in BACKENDS:
        agrees(f, make, backend=backend, graphs=1)


# -- inputs that are written to after they were used -----------------------------------------------


def weight_and_statistics(n=2):
    numbers = torch.arange(1.0, n * n + 1).view(n, n) / 4
    return torch.arange(1.0, n + 1).requires_grad_(), numbers


def a_weight(w, b):
    z = (w + 1).sin() * (w + 2).cos()
    with torch.no_grad():
        w.add_(1)
    return z


def a_weight_through_data(w, b):
    z = w.expand(30, 2).clone().exp().sin()
    w.data.clamp_(0, 1)
    return z


def statistics(w, b):
    z = (w * (b + 1)).sin() * (w + b).cos()
    b.add_(1)
    return z, b


def moving_average(w, b):
    z = ((w - b.mean(0)) * w.exp()).sin() * (b.tanh() @ (w * 2)).cos()
    b.lerp_(w.detach().expand_as(b), 0.5)
    y = (b.exp() * w).cos()
    b[0].zero_()
    return z + y


def made_to_depend(w, b):
    b.mul_(w)
    return b * 2


WRITTEN_LATER = [
    a_weight, a_weight_through_data, statistics, moving_average, made_to_depend,
    lambda w, b: ((w * b[:, 0].exp()).sin(), b[:, 0].add_(1))[0],
    lambda w, b: ((w * (b.t() + 1)).sin(), b.zero_())[0],
]  # fmt: skip
AOT_BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.parametrize("backend", AOT_BACKENDS)
@pytest.mark.parametrize("function", WRITTEN_LATER)
def test_gradients_come_from_what_inputs_were(function, backend):
    agrees(function, weight_and_statistics, backend=backend, graphs=1)


@pytest.mark.parametrize("backend", AOT_BACKENDS)
def test_gradients_come_from_what_inputs_with_gaps_were(backend):
    def columns():
        w, _ = weight_and_statistics()
        return w, torch.arange(8.0).view(2, 4)[:, 1:3] / 4

    agrees(statistics, columns, backend=backend, graphs=1)
    agrees(moving_average, columns, backend=backend, graphs=1)


def test_gradients_come_from_what_inputs_of_varying_size_were():
    makes = [functools.partial(weight_and_statistics, n) for n in (2, 3, 4)]
    agrees(moving_average, *makes, graphs=2)
    agrees(a_weight, *makes, graphs=2)


SPOILING = [
    lambda b: b.add_(1), lambda b: torch._foreach_add_([b], 1.0),
    lambda b: torch._foreach_zero_([b[0]]),
]  # fmt: skip


@pytest.mark.parametrize("backend", AOT_BACKENDS)
@pytest.mark.parametrize("spoil", SPOILING)
def test_what_a_write_spoils_is_an_error_of_backward(spoil, backend):
    """The call itself is none, as in eager mode."""

    def f(w, b):
        z = w * b
        spoil(b)
        return z

    compiled = framejit.compile(f, backend=backend)
    for _ in range(2):
        w, b = weight_and_statistics()
        z = compiled(w, b)
        assert torch.equal(z, f(*weight_and_statistics()))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


KEEPING = [lambda t: t, lambda t: t[:], lambda t: t + 0, lambda t: t.clone()]


@pytest.mark.parametrize("opened", ["inside", "outside"])
@pytest.mark.parametrize("pack", KEEPING)
def test_hooks_keep_what_is_written_later(pack, opened):
    """Hooks that return their operand see it change; others do not, and nothing else does."""

    def hooks():
        return torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t)

    def f(w, b):
        with hooks():
            y = w * b
        with torch.no_grad():
            w.add_(1)
            b.mul_(2)
        return y.sin()

    def g(w, b):
        z = (w * b).sin()
        with torch.no_grad():
            w.add_(1)
        return z

    def around(function):
        def call(w, b):
            with hooks():
                return function(w, b)

        return call

    backend = Counted("aot_eager")
    inside = opened == "inside"
    compiled = framejit.compile(f if inside else g, backend=backend)
    functions = (f, compiled) if inside else (around(g), around(compiled))
    found = []
    for function in (*functions, functions[1]):
        w, b = weight_and_statistics()
        b.requires_grad_()
        function(w, b).sum().backward()
        found.append((w, b, w.grad, b.grad))
    for got in found[1:]:
        Comparison().compare(found[0], got, "gradients")
    assert len(backend.graphs) == 1


# -- random numbers of Inductor --------------------------------------------------------------------

DRAWING = {
    "dropout": lambda x: nn.functional.dropout(x, 0.5, True),
    "rrelu": lambda x: nn.functional.rrelu(x - 0.5, training=True),
    "rrelu_": lambda x: nn.functional.rrelu_(x - 0.5, training=True),
    "rand": lambda x: x * torch.rand(4),
    "randn_like": lambda x: x * torch.randn_like(x),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWING)
def test_inductor_draws_the_random_numbers_of_eager_mode_if_asked(name):
    settings = {"options": {"fallback_random": True}, "fullgraph": True}
    found = []
    for run in (DRAWING[name], framejit.compile(DRAWING[name], **settings)):
        x = torch.linspace(0.0, 0.5, 4).requires_grad_()
        torch.manual_seed(0)
        y = run(x)
        y.sum().backward()
        found.append((y, x.grad, torch.rand(1)))
    Comparison(Tolerance(1e-6, 1e-6)).compare(found[0], found[1], name)


INTO_EXPANDED = [
    lambda x, v: (x.__setitem__((0,) * x.dim(), v), x * 2)[1],
    lambda x, v: x[1:2].fill_(v),
    lambda x, v: (x[:, :1].t().add_(v) if x.dim() > 1 else x[:1].add_(v)) + x[0],
]


@pytest.mark.parametrize("shape", [(3,), (1, 3)])
@pytest.mark.parametrize("function", INTO_EXPANDED)
def test_writes_to_inputs_whose_elements_are_in_one_place(function, shape):
    for backend in BACKENDS:
        compiled = framejit.compile(function, backend=backend)
        for value in (7, 8):
            ours, theirs = torch.ones(1).expand(shape), torch.ones(1).expand(shape)
            Comparison().compare(function(theirs, value), compiled(ours, value), backend)
            Comparison().compare(theirs, ours, backend)
        assert framejit.counters["stats"]["unique_graphs"]
        framejit.reset()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_attributes_of_tensors_whose_sizes_vary(backend: str) -> None:
    """AOTAutograd's notes about them are not the program's."""
    weight = torch.nn.Parameter(torch.ones(3))

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * weight
        return y.sin(), x.view(-1), x

    compiled = framejit.compile(program, backend=backend)
    for size in (2, 3, 4):
        x = torch.ones(size, 3)
        results = compiled(x)
        results[0].sum().backward()
        assert [vars(tensor) for tensor in (x, weight, *results)] == [{}] * 5


def viewed_and_written(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z = x.view(-1)
    x.add_(1)
    return z, x * 2


def new_data(x: torch.nn.Parameter) -> torch.Tensor:
    x.data = torch.square(x)
    return x * 2


def with_data_of_inference() -> tuple[torch.nn.Parameter]:
    made = torch.nn.Parameter(torch.ones(3))
    with torch.inference_mode():
        made.data = torch.arange(3.0)
    return (made,)


@pytest.mark.parametrize("function, make", [
    (viewed_and_written, lambda: (torch.ones(2, 3, requires_grad=True) * 2,)),
    (viewed_and_written, lambda: (torch.nn.Parameter(torch.ones(2, 3)),)),
    (new_data, with_data_of_inference),
])  # fmt: skip
def test_histories_that_nobody_asks_for(function, make) -> None:
    """A view made without gradients whose base is written, a parameter made in inference mode: as
    results or operands they are as good as others."""
    counted = Counted("aot_eager")
    compiled = framejit.compile(function, backend=counted)
    with torch.no_grad(), framejit.config.patch(raise_internal_errors=True):
        for _ in range(2):
            (x,), (y,) = make(), make()
            expected, got = function(x), compiled(y)
            found = [[t.tolist() for t in (a, *b)] for a, b in ((x, expected), (y, got))]
            assert found[0] == found[1]
            assert [t.requires_grad for t in got] == [t.requires_grad for t in expected]
    assert len(counted.graphs) == 1


def test_views_of_a_tensor_with_a_history_are_written():
    def program(a, b):
        a.mul_(2)
        b.add_(1)
        return a * b.sum()

    def make():
        leaf = torch.ones(2, 3, requires_grad=True)
        made = leaf * 2
        return made, made.view(-1)

    agrees(program, make, graphs=1)
