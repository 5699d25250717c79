"""Parameters that are tensors made of tensors: their gradients, and whole steps of training."""

import pytest
import torch
from conforming import check_equal, shown
from torch import nn
from torch.utils._pytree import tree_map
from wrapping import Pair, tensors, x

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.report import events

BACKENDS = ["eager", "aot_eager"]


class Turning(Pair):
    """What is read of its gradient, ``__torch_function__`` makes."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.grad.__get__ and made is not None:
            return made * 2
        return made


def parameters():
    torch.manual_seed(0)
    shapes = (3, 4), (4, 2)
    return [nn.Parameter(Pair(torch.randn(shape), torch.randn(shape), "t")) for shape in shapes]


def loss_of(first, second, turn):
    return ((Pair(x() + turn, x() * 2, "t") @ first).relu() @ second).pow(2).sum()


class Engine:
    """Compiles, and counts graphs and breaks."""

    def __init__(self, backend):
        inner, self.counting = lookup_backend(backend), CountingBackend()
        self.backend = lambda module, inputs: inner(self.counting(module, inputs), inputs)

    def compare(self, run):
        """Assert that ``run``, which is given what compiles functions, leaves what it leaves when
        nothing is compiled; how many graphs and breaks there were."""
        expected = run(lambda function: function)
        with events.recording(events.GraphBreak) as breaks:
            got = run(lambda function: framejit.compile(function, backend=self.backend))
        check_equal(shown(got), shown(expected))
        return len(self.counting.graphs), [one.identifier for one in breaks]


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01)


def momenta(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def one_by_one(parameters):
    return torch.optim.AdamW(parameters, lr=0.01, foreach=False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("optimizer", "graphs"), [(sgd, 1), (momenta, 2), (torch.optim.AdamW, 2), (one_by_one, 2)]
)
def test_whole_steps(optimizer, graphs, kept, backend):
    """Without and with what the optimizer keeps, and with gradients that are kept."""

    def run(compiles):
        weights = parameters()
        engine = optimizer(weights)

        def step(turn):
            loss = loss_of(*weights, turn)
            loss.backward()
            engine.step()
            engine.zero_grad(set_to_none=not kept)
            return loss.detach()

        step, left = compiles(step), []
        for turn in (0.0, 1.0, 2.0):
            left.append(step(turn if turn < 2 else 1.0))
            left.append([None if w.grad is None else w.grad.clone() for w in weights])
        return [*left, *[weight.detach().clone() for weight in weights]]

    found, breaks = Engine(backend).compare(run)
    assert found >= graphs and not breaks


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("optimizer", "graphs"), [(sgd, 1), (momenta, 2), (one_by_one, 2)])
def test_the_optimizer_alone(optimizer, graphs, backend):
    def run(compiles):
        weights = parameters()
        engine, left = optimizer(weights), []

        def step():
            engine.step()
            engine.zero_grad()

        step = compiles(step)
        for turn in range(4):
            loss_of(*weights, turn).backward()
            step()
            left.append([weight.grad for weight in weights])
        return [*left, *[weight.detach().clone() for weight in weights]]

    assert Engine(backend).compare(run) == (graphs, [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_of_the_class(backend):
    def differentiated(w):
        (found,) = torch.autograd.grad((w * w).sum(), w)
        return found, type(found) is Pair, found.a * 2, found.tag

    def run(compiles):
        return compiles(differentiated)(nn.Parameter(Pair(x(), x() + 1, "t")))

    assert Engine(backend).compare(run) == (1, [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_read_and_assigned(backend):
    def given(w, g):
        before = w.grad
        w.grad = g * 2
        added = w.grad + 1
        w.grad.mul_(2)
        return added, w.grad is g, w.grad is None, before is None

    def run(compiles):
        w, g = nn.Parameter(Pair(x(), x() + 1)), Pair(x() * 3, x() - 1)
        call = compiles(given)
        first = call(w, g)
        held = w.grad
        return [first, held, call(w, g), w.grad, w.grad is held, g]

    graphs, breaks = Engine(backend).compare(run)
    assert graphs == 2 and not breaks  # without and with a gradient before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_is_the_same_object(backend):
    def same(w):
        return w.grad is w.grad, w.grad * 2

    def run(compiles):
        w = nn.Parameter(Pair(x(), x() + 1))
        (w * 3).sum().backward()
        return [compiles(same)(w), w.grad]

    assert Engine(backend).compare(run) == (1, [])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_is_made_when_it_is_read(backend):
    def read(w):
        return w.grad + 1

    def run(compiles):
        w = nn.Parameter(Turning(x(), x() + 1))
        w.grad = Turning(x() * 3, x() - 1)
        return [tree_map(lambda one: list(tensors(one)), compiles(read)(w))]

    run(lambda function: function)
    Engine(backend).compare(run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_through_what_has_changed(backend):
    """An input that is written to first, and one that was computed before."""

    def written(w, t):
        t.mul_(2)
        (w * t).sum().backward()
        return t * 1

    def run(compiles):
        w, t = nn.Parameter(Pair(x(), x() + 1)), Pair(x() + 2, x())
        call = compiles(written)
        left = [call(w, t), call(w, t * 2)]
        return [*left, w.grad.detach().clone(), t]

    Engine(backend).compare(run)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_graph_that_writes_and_raises(backend):
    def taken(t, values, index):
        t.add_(1)
        return values[index] * 2

    compiled = framejit.compile(taken, backend=backend)
    t = Pair(x(), x())
    assert compiled(t, torch.ones(3), torch.tensor([1])).tolist() == [2.0]
    assert torch.equal(t.a, x() + 1) and torch.equal(t.b, x() + 1)
    with pytest.raises(IndexError):
        compiled(t, torch.ones(3), torch.tensor([7]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_object_in_the_place_of_two(backend):
    def exchanged(first, second):
        given = first.grad
        first.grad = None
        second.grad = None if given is None else given * 2
        return first.grad is None, second.grad is None

    def run(compiles):
        call, left = compiles(exchanged), []
        for same in (False, True, False):
            first = nn.Parameter(Pair(x(), x() + 1))
            second = first if same else nn.Parameter(Pair(x() + 2, x()))
            (first * 3).sum().backward()
            left += [call(first, second), first.grad, second.grad]
        return left

    assert Engine(backend).compare(run) == (2, [])


def test_a_gradient_of_another_size_is_refused():
    def given(w, g):
        w.grad = g
        return w * 1

    compiled = framejit.compile(given, backend="eager")
    for call in (given, compiled):
        with pytest.raises(RuntimeError, match="size"):
            call(nn.Parameter(Pair(x(), x())), Pair(x()[:1], x()[:1]))
