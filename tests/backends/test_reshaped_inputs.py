"""Inputs that get another shape or other strides in place, with and without another content."""

import pytest
import torch

import framejit
from backends.agreement import agrees


def view():
    base = torch.arange(6.0)
    return base.view(2, 3), base


def plain():
    return torch.arange(6.0).view(2, 3).clone(), torch.ones(1)


def masked(x, b):
    x.t_()
    x.masked_fill_(x > 2, 0)


def zeroed(x, b):
    x.t_()
    x.zero_()


def index_filled(x, b):
    x.transpose_(0, 1)
    x.index_fill_(0, torch.tensor([1]), -1)


def written_first(x, b):
    x.clamp_(1, 4)
    x.swapaxes_(0, 1)
    return x * 2


def unsqueezed(x, b):
    x.unsqueeze_(1)
    x[0, 0].add_(1)
    x.squeeze_()
    return x.sum()


def other_strides(x, b):
    x.as_strided_((3, 2), (1, 3))
    x.relu_()
    x[0].add_(5)
    return x + 1


def through_a_view(x, b):
    seen = x.view(-1)
    x.t_()
    seen.mul_(2)
    return seen


def through_the_base(x, b):
    x.t_()
    b.add_(1)
    return x * 2


def in_a_loop(x, b):
    for _ in range(3):
        x.transpose_(0, 1)
        x.cumsum_(0)
    return x


WRITTEN = [
    masked, zeroed, index_filled, written_first, unsqueezed, other_strides, through_a_view,
    through_the_base, in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("make", [view, plain])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", WRITTEN)
def test_content_and_shape_of_an_input_change(function, dynamic, make):
    agrees(function, make, dynamic=dynamic)
    unshared = function is through_the_base and (make is plain or dynamic)
    assert unshared or any("input that gets" in text for text in framejit.counters["graph_break"])


@pytest.mark.parametrize("make", [view, plain])
def test_only_the_shape_of_an_input_changes(make):
    def f(x, b):
        x.t_()
        x.unsqueeze_(0)
        return x + 1, b * 2

    agrees(f, make, graphs=1)


@pytest.mark.parametrize("make", [view, plain])
def test_content_and_shape_of_a_new_tensor_change(make):
    def f(x, b):
        y = x * 2
        y.t_()
        y.clamp_(1, 4)
        return y, y.t_()

    agrees(f, make, graphs=1)


def taking_part():
    leaf = torch.arange(6.0).requires_grad_()
    return (leaf * 2).view(2, 3).clone(), leaf


def test_an_input_that_takes_part_in_autograd_gets_another_shape():
    def f(x, leaf):
        y = x.t_()
        return y.sin(), x

    def g(x, leaf):
        x.mul_(3)
        x.t_()
        return x.sin()

    agrees(f, taking_part)
    agrees(g, taking_part)


class Turning(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.arange(6.0).view(2, 3))

    def forward(self, x):
        self.state.t_()
        self.state.clamp_(1, 4)
        return (self.state * x).sum()


def test_a_buffer_is_turned_and_written():
    ours, theirs = Turning(), Turning()
    compiled = framejit.compile(ours, backend="aot_eager")
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(1)), theirs(torch.ones(1)))
        assert torch.equal(ours.state, theirs.state)
        assert ours.state.stride() == theirs.state.stride()


def pairs(size, out):
    return lambda: (torch.ones(size, 3), torch.ones(size, 3), out())


OUT = {
    "add": lambda a, b, o: torch.add(a, b, out=o),
    "mm": lambda a, b, o: torch.mm(a, b.t(), out=o),
    "matmul": lambda a, b, o: torch.matmul(a, b.t(), out=o) + 1,
    "cat": lambda a, b, o: (torch.cat([a, b], out=o), o),
    "stack": lambda a, b, o: torch.stack([a, b], out=o).sum(),
    "sum": lambda a, b, o: torch.sum(a * b, 0, out=o),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("name", OUT)
def test_a_result_resizes_the_tensor_it_is_written_to(name, start, dynamic):
    function = OUT[name]
    makes = [pairs(size, lambda: torch.zeros(start)) for size in (2, 3, 5)]
    agrees(function, *makes, dynamic=dynamic)
    agrees(lambda a, b, o: function(a, b, torch.zeros(start)), *makes, dynamic=dynamic)


def test_a_result_resizes_a_new_tensor_in_a_graph():
    def f(a, b, o):
        return torch.add(a, b, out=torch.zeros(0)) * 2

    agrees(f, pairs(2, lambda: torch.zeros(0)), graphs=1)


def _halves(n=6):
    memory = torch.arange(float(n))
    return memory[: n // 2], memory[n // 2 :]


def _combed(n=6):
    memory = torch.arange(float(n))
    return memory[::2], memory[1::2]


def _shifted(n=6):
    memory = torch.arange(float(n))
    return memory[: n // 2], memory[1 : n // 2 + 1]


def _same():
    one = torch.ones(3)
    return one, one.detach()


def _apart():
    return torch.ones(3), torch.ones(3)


SHARED = [_halves, _combed, _shifted, _same, _apart]


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("first", SHARED)
@pytest.mark.parametrize("second", SHARED)
def test_inputs_that_share_memory_in_another_way(first, second, dynamic):
    """Written inputs, also where strides have begun to vary: they are taken to share nothing."""

    def f(a, b):
        a.add_(1)
        b.mul_(2)
        return a + b

    compiled = framejit.compile(f, backend="aot_eager", dynamic=dynamic)
    for make in (first, second, first):
        expected, found = make(), make()
        assert torch.equal(compiled(*found), f(*expected))
        assert all(map(torch.equal, found, expected))


def _returns_a_view(a, b):
    a.add_(1)
    b.mul_(2)
    return b.view(-1)


def _returns_a_sum(a, b, c):
    a.add_(1)
    b.mul_(2)
    c.mul_(3)
    return a + 0


def _detached():
    one = torch.ones(3)
    return one, one.view(3), one.data


@pytest.mark.parametrize("function, make", [
    (_returns_a_view, _shifted), (_returns_a_view, _same), (_returns_a_view, _combed),
    (_returns_a_sum, _detached),
])  # fmt: skip
def test_written_inputs_that_aot_autograd_cannot_tell_apart(function, make):
    compiled = framejit.compile(function, backend="aot_eager")
    for _ in range(2):
        expected, found = make(), make()
        assert torch.equal(compiled(*found), function(*expected))
        assert all(map(torch.equal, found, expected))
