"""Tensors that begin or cease to require gradients in captured code."""

import pytest
import torch
from torch import nn

import framejit
from checking import Comparison, CountingBackend


def tensors():
    """Two that require gradients, and one that does not."""
    made = [torch.arange(6.0).reshape(2, 3) / 3 for _ in range(3)]
    return made[0].requires_grad_(), made[1].requires_grad_(), made[2]


def frozen(v, w, u):
    v.requires_grad_(False)
    (v * w * u).sum().backward()
    v.requires_grad_(True)
    return w.grad


def frozen_for_good(v, w, u):
    v.requires_grad = False
    loss = (v * w * u).sum()
    loss.backward()
    return v.requires_grad, v.is_leaf, loss.detach()


def frozen_after_use(v, w, u):
    loss = (v * w * u).sum()
    v.requires_grad_(False)
    loss.backward()
    return v.grad


def frozen_while_it_is_used(v, w, u):
    loss = (v * w).sum()
    v.requires_grad_(False)
    other = (v * w * u).sum()
    v.requires_grad_(True)
    (loss * other).backward()
    return v.grad


def begins(v, w, u):
    u.requires_grad_()
    (u.sin() * v).sum().backward()
    return u.grad, u.requires_grad


def begins_and_ends(v, w, u):
    before = u * 2
    u.requires_grad = True
    (slope,) = torch.autograd.grad((u.exp() * v + before).sum(), u)
    u.requires_grad = False
    return slope, u * 3, before


def begins_twice(v, w, u):
    loss = v.sum()
    for _ in range(2):
        u.requires_grad_(True)
        loss = loss + (u * u * w).sum()
        u.requires_grad_(False)
    u.requires_grad_(True)
    loss.backward()
    return u.grad


def written_while_frozen(v, w, u):
    v.requires_grad_(False)
    v.mul_(2)
    v.requires_grad_(True)
    (v * w).sum().backward()
    return v.grad


def its_own_gradient(v, w, u):
    u.requires_grad_(True)
    (u * v).sum().backward()
    with torch.no_grad():
        u.sub_(u.grad)
    u.grad = None
    return u.detach() + 0


def by_view(v, w, u):
    part = u[0]
    u.requires_grad_()
    whole = u[1]
    (part * whole * v).sum().backward()
    return part.requires_grad, whole.requires_grad, u.grad


def copied(v, w, u):
    u.data.clamp_(0, 1)
    u.requires_grad_()
    (u * v).sum().backward()
    return u.grad


#: Each with how many graphs it takes to call it twice, with the same tensors.
PROGRAMS = {
    frozen: 2, frozen_for_good: 2, frozen_after_use: 2, frozen_while_it_is_used: 2, begins: 2,
    begins_and_ends: 1, begins_twice: 2, written_while_frozen: 2, its_own_gradient: 2,
    copied: 2,
}  # fmt: skip


def history_for_the_frozen(v, w, u):
    v.requires_grad_(False)
    v.add_(w)
    return v


def of_the_begun(v, w, u):
    u.requires_grad_()
    return (u * v).sum()


def turned_while_frozen(v, w, u):
    v.requires_grad_(False)
    v.t_()
    v.requires_grad_(True)
    return (v @ w).sum()


def of_a_result(v, w, u):
    return (v * w).requires_grad_(False)


def of_integers(v, w, u):
    return u.long().requires_grad_()


#: These need plain Python.
BREAKING = [
    history_for_the_frozen,
    of_the_begun,
    turned_while_frozen,
    of_a_result,
    of_integers,
    by_view,
]


def outcome(function, given):
    try:
        return function(*given), None
    except Exception as error:
        return None, (type(error), str(error))


def run(program, compile, times=2):
    given, found = tensors(), []
    function = compile(program)
    for _ in range(times):
        found.append(outcome(function, given))
    flags = [(tensor.requires_grad, tensor.is_leaf) for tensor in given]
    return found, flags, [tensor.detach() for tensor in given], [t.grad for t in given if t.is_leaf]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [*PROGRAMS, *BREAKING], ids=lambda program: program.__name__)
def test_program(program, backend):
    fullgraph = program in PROGRAMS
    expected = run(program, lambda f: f)
    got = run(program, lambda f: framejit.compile(f, backend=backend, fullgraph=fullgraph))
    Comparison().compare(expected, got, "")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_number_of_graphs(program):
    counting = CountingBackend()
    run(program, lambda f: framejit.compile(f, backend=counting), times=3)
    assert len(counting.graphs) == PROGRAMS[program]


def test_what_a_frozen_tensor_is_stays_another():
    """The guards tell a frozen tensor from all others."""

    def f(v, w):
        v.requires_grad_(False)
        (slope,) = torch.autograd.grad((v * w).sum(), w)
        v.requires_grad_(True)
        return slope

    compiled = framejit.compile(f, backend="eager")
    v, w, _ = tensors()
    torch.testing.assert_close(compiled(v, w), f(v, w))
    for function in (f, compiled):
        with pytest.raises(RuntimeError, match="does not require grad"):
            function(v, v)
        v.requires_grad_(True)


class Pair(nn.Module):
    """Two networks that train in turn, as a generator and what it is judged by."""

    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
        self.judge = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_networks_that_train_in_turn(backend):
    def train(compile):
        torch.manual_seed(0)
        pair = Pair()
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (pair.maker, pair.judge)]

        def step(noise, real):
            for parameter in pair.judge.parameters():
                parameter.requires_grad = True
            optimizers[1].zero_grad()
            fake = pair.maker(noise).detach()
            (pair.judge(fake).mean() - pair.judge(real).mean()).backward()
            optimizers[1].step()
            pair.judge.requires_grad_(False)
            optimizers[0].zero_grad()
            loss = -pair.judge(pair.maker(noise)).mean()
            loss.backward()
            optimizers[0].step()
            return loss.detach()

        step = compile(step)
        losses = [step(torch.randn(5, 3), torch.randn(5, 3)) for _ in range(4)]
        return losses, dict(pair.named_parameters()), [p.grad for p in pair.parameters()]

    def compile(f):
        return framejit.compile(f, backend=backend, fullgraph=True)

    Comparison().compare(train(lambda f: f), train(compile), "")


def test_old_gradients_are_gone_when_the_graph_runs():
    """What `zero_grad` lets go of makes room for the step."""
    model = nn.Linear(4, 2)
    optimizer, alive = torch.optim.SGD(model.parameters(), lr=0.1), []

    def backend(gm, inputs):
        def run(*tensors):
            alive.append([p.grad is not None for p in model.parameters()])
            return gm.forward(*tensors)

        return run

    def step(x, index):
        optimizer.zero_grad()
        loss = model(x)[index].sum()
        loss.backward()
        optimizer.step()

    compiled, x = framejit.compile(step, backend=backend, fullgraph=True), torch.ones(3, 4)
    for _ in range(3):
        compiled(x, 1)
    for _ in range(3):
        compiled(x, torch.tensor([1, 2]))
    # Where the graph may raise, the program may have to run once more: the first time.
    assert alive == [[False, False]] * 3 + [[True, True]] + [[False, False]] * 2
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([1, 5]))
    assert all(p.grad is None for p in model.parameters())
