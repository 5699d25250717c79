"""``backward(create_graph=True)`` in captured code: gradients of leaves have a history."""

import pytest
import torch
from torch import nn

import framejit
from checking import Comparison, CountingBackend


class Run:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        self.parameters = [*self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.parameters, lr=0.1)

    def loss(self, x):
        return self.model(x).square().mean()


def penalty(run, x):
    run.optimizer.zero_grad()
    loss = run.loss(x)
    loss.backward(create_graph=True)
    sum(p.grad.square().sum() for p in run.parameters).backward()
    run.optimizer.step()
    return loss.detach()


def curvature(run, x):
    run.optimizer.zero_grad()
    run.loss(x).backward(create_graph=True)
    slopes = [p.grad for p in run.parameters]
    found = torch.autograd.grad(slopes, run.parameters, [torch.ones_like(s) for s in slopes])
    for parameter, second in zip(run.parameters, found, strict=True):
        parameter.grad = parameter.grad.detach() / (second.abs() + 1)
    run.optimizer.step()
    return found


def added_up(run, x):
    run.optimizer.zero_grad()
    run.loss(x).backward(create_graph=True)
    first = run.parameters[0].grad
    run.loss(x * 2).backward(create_graph=True)
    again = run.parameters[0].grad
    again.sum().backward()
    return first is again, first.detach(), again is run.parameters[0].grad


def under_no_grad(run, x):
    run.optimizer.zero_grad()
    loss = run.loss(x)
    with torch.no_grad():
        loss.backward(create_graph=True)
    sum(p.grad.exp().sum() for p in run.parameters).backward()
    return [p.grad.detach().clone() for p in run.parameters]


def to_go_on_from_outside(run, x):
    run.optimizer.zero_grad()
    run.loss(x).backward(create_graph=True)
    return sum(p.grad.square().sum() for p in run.parameters)


#: Each with how many graphs four steps take; None: not one graph each.
PROGRAMS = {penalty: 2, curvature: 2, added_up: 2, under_no_grad: 2, to_go_on_from_outside: None}


def outcome(program, compile):
    run = Run()
    function, results = compile(program), []
    for _ in range(4):
        result = function(run, torch.randn(5, 3, dtype=torch.double))
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.backward()
        gradients = [(p.grad.requires_grad, p.grad.stride(), p.grad.detach().clone())
                     for p in run.parameters]  # fmt: skip
        results.append((result, gradients, [p.detach().clone() for p in run.parameters]))
    return results


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program, backend):
    def compile(function):
        fullgraph = PROGRAMS[program] is not None
        return framejit.compile(function, backend=backend, fullgraph=fullgraph)

    expected = outcome(program, lambda function: function)
    Comparison().compare(expected, outcome(program, compile), "")


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("program", [p for p in PROGRAMS if PROGRAMS[p] is not None])
def test_number_of_graphs(program):
    counting = CountingBackend()
    outcome(program, lambda function: framejit.compile(function, backend=counting))
    assert len(counting.graphs) == PROGRAMS[program]
    assert counting.ops
