"""Hooks of results and of modules, where captured code computes the gradients: traced as Python."""

import pytest
import torch
from torch import nn

import framejit
from checking import Comparison, CountingBackend


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.third(self.second(self.first(x).tanh()).relu())


class Kept:
    """What a step leaves behind."""

    def __init__(self):
        self.model, self.seen, self.count = Network(), [], 0
        for name, parameter in self.model.named_parameters():
            parameter.register_hook(lambda gradient, name=name: self.seen.append((name, gradient)))


def kept_in_a_list(kept, x):
    y = kept.model.first(x)
    y.register_hook(kept.seen.append)
    return kept.model.third(kept.model.second(y)).square().mean()


def kept_in_a_dict_of_the_call(kept, x):
    y, gradients = kept.model.first(x), {}
    y.register_hook(lambda gradient: gradients.update(y=gradient))
    loss = kept.model.third(y).square().mean()
    loss.backward(retain_graph=True)
    kept.seen.append(gradients["y"] * 2)
    return loss * 2


def changed_and_noted(kept, x):
    y = kept.model.first(x)

    def clip(gradient):
        kept.count += 1
        kept.seen.append((gradient.norm(), torch.is_grad_enabled()))
        return gradient.clamp(-0.1, 0.1)

    y.register_hook(clip)
    return kept.model.third(y.tanh()).square().sum()


def changed_by_a_tensor_of_the_call(kept, x):
    y, by = kept.model.first(x), x.sum()
    y.register_hook(lambda gradient: gradient * by)
    return kept.model.third(y).square().mean()


def several_of_one_tensor(kept, x):
    """The first ones compute, so the graph calls them; all in the order of the program."""
    y = kept.model.first(x)
    y.register_hook(lambda gradient: gradient * 3)
    y.register_hook(kept.seen.append)
    y.register_hook(lambda gradient: gradient + 1)
    handle = y.register_hook(lambda gradient: kept.seen.append("removed"))
    y.register_hook(kept.seen.append)
    handle.remove()
    return kept.model.third(y).square().mean()


def in_the_order_of_arrival(kept, x):
    a = kept.model.first(x)
    b, c = a.tanh(), a.sin()
    d = b * c + a
    for name, tensor in {"a": a, "d": d, "b": b, "c": c}.items():
        tensor.register_hook(lambda gradient, name=name: kept.seen.append((name, gradient.sum())))
    return kept.model.third(d).square().mean()


def beside_one_that_keeps_its_gradient(kept, x):
    y = kept.model.first(x)
    z = y.tanh()
    y.retain_grad()
    z.register_hook(lambda gradient: kept.seen.append((gradient, y.grad is None)))
    loss = kept.model.third(z).square().mean()
    loss.backward(retain_graph=True)
    kept.seen.append(y.grad)
    return loss


def gradient_that_is_shared(kept, x):
    """What a hook keeps is not what the leaf gets."""
    y = x + kept.model.first.weight.sum() + kept.model.first.bias[:3]
    z = y.view(3, 5)
    for tensor in (y, z):
        tensor.register_hook(kept.seen.append)
    return (z * z).sum()


def around_a_module(kept, x):
    for module in (kept.model.second, kept.model.third):
        if not module._backward_hooks:
            module.register_full_backward_hook(
                lambda module, inputs, outputs: kept.seen.append((inputs, outputs))
            )
    return kept.model(x).square().mean()


def around_every_module(kept, x):
    def note(name):
        return lambda module, inputs, outputs: kept.seen.append((name, inputs, outputs))

    for name, module in kept.model.named_modules():
        if not module._backward_hooks:
            module.register_full_backward_hook(note(name))
    return kept.model(x.clone().requires_grad_()).square().mean()


def in_front_of_a_module(kept, x):
    module = kept.model.second
    if not module._backward_pre_hooks:
        module.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
        module.register_full_backward_pre_hook(lambda module, outputs: kept.seen.append(outputs))
    return kept.model(x).square().mean()


def changed_around_modules(kept, x):
    """Guided backpropagation: each module lets only some of its gradient through."""
    for module in (kept.model.second, kept.model.third):
        if not module._backward_hooks:
            module.register_full_backward_hook(lambda _, inputs, outputs: (inputs[0].clamp(min=0),))
    return kept.model(x).square().mean()


def with_hooks_of_the_tensors_around(kept, x):
    """Autograd calls hooks of tensors before those of its nodes."""
    y = kept.model.first(x)
    module = kept.model.second
    handle = module.register_full_backward_hook(
        lambda _, inputs, outputs: kept.seen.append(("module", inputs, outputs))
    )
    z = module(y)
    for tensor in (y, z):
        tensor.register_hook(lambda gradient: kept.seen.append(gradient) or gradient * 2)
    handle.remove()
    return kept.model.third(z).square().mean()


STEPS = [
    kept_in_a_list, kept_in_a_dict_of_the_call, changed_and_noted, changed_by_a_tensor_of_the_call,
    several_of_one_tensor, in_the_order_of_arrival, beside_one_that_keeps_its_gradient,
    gradient_that_is_shared, around_a_module, around_every_module, in_front_of_a_module,
    changed_around_modules, with_hooks_of_the_tensors_around,
]  # fmt: skip


def train(loss_of, compile, times=3):
    torch.manual_seed(0)
    kept = Kept()

    def step(x):
        loss = loss_of(kept, x)
        loss.backward()
        return loss.detach()

    step = compile(step)
    results = [step(torch.randn(5, 3)) for _ in range(times)]
    parameters = list(kept.model.parameters())
    gradients = [p.grad for p in parameters]
    return results, kept.seen, kept.count, parameters, gradients


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("loss_of", STEPS, ids=lambda step: step.__name__)
def test_steps(loss_of, backend):
    expected = train(loss_of, lambda f: f)
    got = train(loss_of, lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "")


@pytest.mark.parametrize("loss_of", STEPS, ids=lambda step: step.__name__)
def test_number_of_graphs(loss_of):
    counting = CountingBackend()
    train(loss_of, lambda f: framejit.compile(f, backend=counting), 4)

    assert len(counting.graphs) == 2


def backward_of_something_else(gradient):
    leaf = torch.ones(2, requires_grad=True)
    with torch.enable_grad():
        (leaf * 3).sum().backward()
    return gradient + leaf.grad


def backward_of_what_it_gets(gradient):
    with torch.enable_grad():
        gradient = gradient.detach().requires_grad_()
        gradient.square().sum().backward()
    return gradient.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("hook", [backward_of_something_else, backward_of_what_it_gets])
def test_hooks_compute_gradients_of_their_own(hook, backend):
    def program(x):
        y = x * 2
        y.register_hook(hook)
        return y * 3

    gradients = []
    for function in (program, framejit.compile(program, backend=backend)):
        for _ in range(2):
            x = torch.ones(2, requires_grad=True)
            function(x).sum().backward()
            gradients.append(x.grad.tolist())
    assert gradients[2:] == gradients[:2]
