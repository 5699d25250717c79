"""Leaves of autograd that captured code hands out, parameters it makes, data it replaces."""

import pytest
import torch
from torch import nn

import framejit
from checking import EXACT, Comparison, CountingAround, CountingBackend


def tensors():
    """Two that require gradients, and one that does not."""
    made = [torch.arange(6.0).reshape(2, 3) / 3 + i for i in range(3)]
    return made[0].requires_grad_(), made[1].requires_grad_(), made[2]


# -- handed out ------------------------------------------------------------------------------------


def leaf(v, w, u):
    return (u * 2).requires_grad_()


def leaf_of_a_view(v, w, u):
    base = u * 2
    part = base[0].requires_grad_()
    return base, part, part.is_leaf


def leaf_of_an_input(v, w, u):
    return u.detach().requires_grad_()


def leaf_with_gradient(v, w, u):
    x = (u * 2).requires_grad_()
    (x * v).sum().backward()
    return x, x.grad


def leaf_that_is_written(v, w, u):
    x = torch.zeros_like(u, requires_grad=True)
    for _ in range(2):
        (x.exp() * w).sum().backward()
        with torch.no_grad():
            x.sub_(x.grad, alpha=0.1)
    return {"x": [x, x]}


def attack(v, w, u):
    delta = torch.zeros_like(u, requires_grad=True)
    for _ in range(3):
        loss = ((u + delta) * w.detach()).pow(2).sum()
        loss.backward()
        delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.2, 0.2)
        delta.grad.zero_()
    return delta.detach()


def leaf_in_an_attribute(v, w, u):
    v.grad = (u * 2).detach()
    holder = {"leaf": torch.ones(2, 3, requires_grad=True)}
    holder["twice"] = (holder["leaf"] * 2).detach()
    return holder


def steps_of_meta_learning(v, w, u):
    fast = [w.detach().clone().requires_grad_() for _ in range(2)]
    for _ in range(2):
        loss = sum((f * u).pow(2).mean() for f in fast)
        slopes = torch.autograd.grad(loss, fast)
        fast = [(f - 0.1 * g).detach().requires_grad_() for f, g in zip(fast, slopes)]
    return fast


# -- parameters ------------------------------------------------------------------------------------


def parameter(v, w, u):
    return nn.Parameter(u * 2)


def parameter_of_an_input(v, w, u):
    made = nn.Parameter(u, requires_grad=False)
    return made, made.requires_grad, isinstance(made, nn.Parameter), type(made * 2)


def parameter_of_a_parameter(v, w, u):
    first = nn.Parameter(v)
    second = nn.Parameter(first)
    with torch.no_grad():
        second.add_(1)
    return first, second


def parameter_by_name(v, w, u):
    return nn.Parameter(requires_grad=False, data=u.half()), nn.Parameter()


def layer(v, w, u):
    made = nn.Linear(3, 2)
    return made(u).detach(), made


def trained_layer(v, w, u):
    made = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    made(u).sum().backward()
    optimizer.step()
    return list(made.parameters())


# -- data ------------------------------------------------------------------------------------------


def data(v, w, u):
    u.data = u * 2
    u.add_(1)
    return u + 1


def data_of_another(v, w, u):
    u.data = v
    u.add_(1)
    return u * 2


def data_of_another_size(v, w, u):
    u.data = u[:, :2]
    return u.shape, u + 1


def data_in_place(v, w, u):
    u.data += 1
    v.data.mul_(2)
    v.data *= 3
    return u * 2


def data_twice(v, w, u):
    before = u.view(-1)
    u.data = u + 1
    u.data = u * 2
    return before, u.detach()


def steps_by_hand(v, w, u):
    for _ in range(2):
        loss = (v.sin() * w * u).sum()
        loss.backward()
        for p in (v, w):
            p.data = p.data - 0.1 * p.grad
            p.grad = None
    return loss.item() if torch.compiler.is_compiling() is None else loss.detach()


def unchanged(v, w, u):
    v.data = v.data
    return (v * w).sum().detach()


PROGRAMS = [
    leaf, leaf_of_a_view, leaf_of_an_input, leaf_with_gradient, leaf_that_is_written,
    leaf_in_an_attribute, steps_of_meta_learning, parameter, parameter_of_an_input,
    parameter_of_a_parameter, parameter_by_name, layer, trained_layer, data, data_of_another,
    data_in_place, data_twice, steps_by_hand, unchanged,
]  # fmt: skip


def what_it_led_to(v, w, u):
    x = (u * 2).requires_grad_()
    return x, x * 3


def written_into(v, w, u):
    x, out = (u * 2).requires_grad_(), torch.zeros(2, 3)
    out.add_(x)
    return out


def with_a_hook(v, w, u):
    x = (u * 2).requires_grad_()
    x.register_hook(lambda gradient: gradient * 2)
    return x


def loss_of_replaced(v, w, u):
    loss = (v * w).sum()
    v.data = w * 2
    loss.backward()
    return v.grad, w.grad


def loss_handed_out(v, w, u):
    loss = (v * w).sum()
    v.data = w * 2
    return loss


def slope_of_replaced(v, w, u):
    loss = (v * w).sum()
    v.data = w * 2
    return torch.autograd.grad(loss, v, allow_unused=True)


def saved_beside(v, w, u):
    loss = (v * u).sum()
    u.data = u * 2
    loss.backward()
    return v.grad


def data_of_a_result(v, w, u):
    x = v * 2
    x.data = u
    return x


def data_of_another_kind(v, w, u):
    u.data = u.double()
    return u


def data_of_nothing(v, w, u):
    u.data = None


#: These need plain Python.
BREAKING = [
    what_it_led_to, written_into, with_a_hook, loss_of_replaced, loss_handed_out, attack,
    slope_of_replaced, saved_beside, data_of_a_result, data_of_another_kind, data_of_nothing,
    data_of_another_size,
]  # fmt: skip


def outcome(function, given):
    torch.manual_seed(0)
    try:
        return function(*given), None
    except Exception as error:
        return None, (type(error), str(error))


def differentiated(value):
    """Gradients of what was handed out, where it has any."""
    found = value if isinstance(value, (list, tuple)) else [value]
    for one in found:
        if isinstance(one, torch.Tensor) and one.requires_grad and one.is_floating_point():
            one.sum().backward(retain_graph=True)
    return [one.grad for one in found if isinstance(one, torch.Tensor) and one.is_leaf]


def run(program, compile, times=2):
    given, found = tensors(), []
    function = compile(program)
    for _ in range(times):
        found.append(outcome(function, given))
        found.append(differentiated(found[-1][0]))
    return found, given, [t.grad for t in given if t.is_leaf]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [*PROGRAMS, *BREAKING], ids=lambda program: program.__name__)
def test_program(program, backend):
    fullgraph = program in PROGRAMS
    expected = run(program, lambda f: f)
    got = run(program, lambda f: framejit.compile(f, backend=backend, fullgraph=fullgraph))
    Comparison().compare(expected, got, "")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_number_of_graphs(program):
    """One, and at most another one when gradients are there already."""
    counting = CountingBackend()
    run(program, lambda f: framejit.compile(f, backend=counting, fullgraph=True), times=3)
    assert 1 <= len(counting.graphs) <= 2


def differentiated_already(u):
    loss = u.exp().sum().detach().requires_grad_()
    double = loss * 2
    double.backward()
    return double * 3, loss


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_only_a_leaf_of_its_own_led_to_says_that_it_is_used_up(backend):
    """Gradients with respect to what came before the leaf are none, as it was detached."""

    def outcome(function):
        u = torch.ones(3, requires_grad=True)
        result, loss = function(u)
        none = torch.autograd.grad(result, [u], allow_unused=True)
        with pytest.raises(RuntimeError, match="a second time"):
            result.backward()
        return result.detach(), none, loss, loss.grad, u.grad

    counted = CountingAround(backend)
    got = outcome(framejit.compile(differentiated_already, backend=counted, fullgraph=True))
    Comparison(EXACT).compare(outcome(differentiated_already), got, "")
    assert len(counted.graphs) == 1
