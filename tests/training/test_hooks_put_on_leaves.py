"""Hooks that captured code puts on leaves: existing ones, switched ones and new ones."""

import pytest
import torch
from torch import nn

import framejit
from checking import Comparison, CountingBackend


class Run:
    """What programs work on, and what they leave behind."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        self.weight, self.bias = self.model[0].weight, self.model[2].bias
        self.seen, self.handles = [], []
        self.optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in self.model.parameters()}

    def loss(self, x):
        return self.model(x).square().mean()

    def __deepcopy__(self, memo):
        return self  # its tensors are compared as they are


def removed_in_the_end(run, x):
    handle = run.weight.register_hook(lambda gradient: gradient * 2)
    run.loss(x).backward()
    handle.remove()


def noted_by_all(run, x):
    def note(gradient):
        run.seen.append((gradient.norm(), torch.is_grad_enabled()))

    handles = [p.register_hook(note) for p in run.model.parameters()]
    run.loss(x).backward()
    for handle in handles:
        handle.remove()


def stays(run, x):
    if not run.handles:
        run.handles.append(run.weight.register_hook(lambda g: g.clamp(-0.01, 0.01)))
    run.loss(x).backward()


def one_more_each_time(run, x):
    run.weight.register_hook(lambda gradient: gradient * 2)
    run.loss(x).backward()


def after_the_first_of_two(run, x):
    run.loss(x).backward()
    with run.weight.register_hook(torch.neg):
        run.loss(x).backward()
    run.loss(x).backward()


def double_the_gradient(leaf):
    leaf.grad.mul_(2)


def in_order(run, x):
    first = run.weight.register_hook(lambda gradient: gradient + 1)
    second = run.weight.register_hook(lambda gradient: gradient * 3)
    third = run.weight.register_post_accumulate_grad_hook(double_the_gradient)
    run.loss(x).backward(retain_graph=True)
    first.remove()
    run.loss(x).backward()
    second.remove()
    third.remove()


def applied_at_once(run, x):
    def update(parameter):
        run.optimizers[parameter].step()
        parameter.grad = None

    handles = [p.register_post_accumulate_grad_hook(update) for p in run.model.parameters()]
    loss = run.loss(x)
    loss.backward()
    for handle in handles:
        handle.remove()
    return loss.detach()


def on_a_switched_input(run, x):
    x.requires_grad_()
    handle = x.register_hook(lambda gradient: run.seen.append(gradient.abs().max()))
    run.loss(x).backward()
    handle.remove()
    return x.grad


def on_a_new_leaf(run, x):
    inner = (x * 2).requires_grad_()
    inner.register_hook(lambda gradient: gradient * 2)
    inner.register_post_accumulate_grad_hook(lambda leaf: run.seen.append(leaf.grad.sum()))
    run.loss(inner).backward()
    return inner.grad


def of_grad(run, x):
    handle = run.weight.register_hook(lambda gradient: gradient * 5)
    found = torch.autograd.grad(run.loss(x), [run.weight, run.bias])
    handle.remove()
    return found


def of_an_operand(run, x):
    """Operations that have nothing to do return their operand."""
    same = run.weight.contiguous()
    handle = same.register_hook(lambda gradient: gradient * 7)
    (run.loss(x) + same.sum()).backward()
    handle.remove()


#: Each with how many graphs four steps take: the first finds no gradients and no dicts of hooks.
PROGRAMS = {
    removed_in_the_end: 2, noted_by_all: 2, stays: 2, after_the_first_of_two: 2, in_order: 2,
    applied_at_once: 2, on_a_switched_input: 2, on_a_new_leaf: 2, of_grad: 2, of_an_operand: 2,
    one_more_each_time: 4,
}  # fmt: skip


def told(text, run, x):
    handle = run.weight.register_hook(lambda gradient: gradient * 2)
    print(text)
    run.loss(x).backward()
    handle.remove()


def broken(run, x):
    """The dict is there when Python goes on."""
    told("broken", run, x)


def raising(run, x):
    """The gradients of one node of autograd's arrive together: it has one parameter here."""

    def refuse(gradient):
        run.seen.append(gradient.sum())
        raise ValueError("no gradient is good enough")

    handle = run.weight.register_hook(refuse)
    try:
        (run.weight * x.sum()).sum().backward()
    finally:
        handle.remove()


def without_gradient(run, x):
    x.register_hook(torch.neg)


def too_late(run, x):
    run.loss(x).register_post_accumulate_grad_hook(torch.neg)


def handed_out(run, x):
    """Its gradient is computed outside."""
    inner = (x * 2).requires_grad_()
    inner.register_hook(lambda gradient: gradient * 2)
    return inner


def result_is_handed_out(run, x):
    run.weight.register_hook(lambda gradient: gradient * 2)
    return run.loss(x)


def looked_at(run, x):
    run.loss(x).backward()
    before = run.weight._backward_hooks is None, run.bias._post_accumulate_grad_hooks is None
    with run.weight.register_hook(torch.neg) as handle:
        during = len(run.weight._backward_hooks), handle.id in run.weight._backward_hooks
    return before, during, len(run.weight._backward_hooks)


OTHERS = [broken, raising, without_gradient, too_late, handed_out, result_is_handed_out, looked_at]


def outcome(program, compile):
    run = Run()
    function, results = compile(program), []
    for _ in range(4):
        x = torch.randn(5, 3)
        try:
            result = function(run, x)
        except (RuntimeError, ValueError) as error:
            result = type(error), str(error)
        if isinstance(result, torch.Tensor) and result.requires_grad:
            result.square().sum().backward()
        hooks = [(p._backward_hooks, p._post_accumulate_grad_hooks) for p in run.optimizers]
        lengths = [[None if one is None else len(one) for one in pair] for pair in hooks]
        parameters = [(p.detach().clone(), p.grad) for p in run.model.parameters()]
        results.append((result, x.grad, x.requires_grad, lengths, parameters))
    run.loss(torch.ones(2, 3)).backward()  # what has stayed is called
    return results, run.seen, run.weight.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [*PROGRAMS, *OTHERS], ids=lambda program: program.__name__)
def test_program(program, backend):
    fullgraph = program in PROGRAMS

    def compile(function):
        return framejit.compile(function, backend=backend, fullgraph=fullgraph)

    expected = outcome(program, lambda function: function)
    Comparison().compare(expected, outcome(program, compile), "")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_number_of_graphs(program):
    counting = CountingBackend()
    outcome(program, lambda function: framejit.compile(function, backend=counting))
    assert len(counting.graphs) == PROGRAMS[program]
    assert counting.ops
