"""Hooks on gradients where captured code computes these: they are part of the graph."""

import functools

import pytest
import torch
from torch import nn

import framejit
from checking import Comparison, CountingBackend


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).tanh())


def doubled(model, seen):
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient * 2)


def noted(model, seen):
    """The order in which gradients arrive is autograd's."""
    for name, parameter in model.named_parameters():
        parameter.register_hook(functools.partial(note, seen, name))


def note(seen, name, gradient):
    seen.append((name, gradient.sum(), torch.is_grad_enabled()))


def kept(model, seen):
    """What a hook keeps is not what is stored."""
    model.first.weight.register_hook(seen.append)
    model.second.weight.register_hook(lambda gradient: torch.ones_like(gradient))


def several(model, seen):
    weight = model.first.weight
    handles = [weight.register_hook(lambda g, by=by: g * by) for by in (2, 3, 5)]
    handles[1].remove()
    weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))


def removed(model, seen):
    model.first.weight.register_hook(lambda gradient: gradient * 2).remove()
    model.first.bias.register_post_accumulate_grad_hook(seen.append).remove()


def applied_at_once(model, seen):
    """An optimizer that needs no gradients but one at a time."""
    optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
        seen.append(tuple(parameter.shape))

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(update)


class Clipping:
    def __init__(self, seen):
        self.seen, self.count = seen, 0

    def clip(self, gradient):
        self.count += 1
        return gradient.clamp(-0.1, 0.1)


def methods(model, seen):
    clipping = Clipping(seen)
    for parameter in model.parameters():
        parameter.register_hook(clipping.clip)
    seen.append(clipping)


#: Each with how many graphs three steps take.
HOOKS = {doubled: 2, noted: 2, kept: 2, several: 2, removed: 2, applied_at_once: 2, methods: 2}


def fails(model, seen):
    def check(gradient):
        seen.append("checked")
        raise ValueError("no gradient is good enough")

    model.first.weight.register_hook(check)


def prints_data(model, seen):
    model.first.weight.register_hook(lambda gradient: seen.append(gradient.sum().item()))


def gives_something(model, seen):
    model.first.weight.register_post_accumulate_grad_hook(lambda parameter: 3)


def train(hooks, compile, times=3):
    torch.manual_seed(0)
    model, seen = Network(), []
    hooks(model, seen)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    step, results = compile(step), []
    for _ in range(times):
        try:
            results.append(step(torch.randn(5, 3)))
        except (TypeError, ValueError) as error:
            results.append((type(error), str(error)))
    gradients = [p.grad for p in model.parameters()]
    return results, seen, dict(model.named_parameters()), gradients


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("hooks", HOOKS, ids=lambda hooks: hooks.__name__)
def test_hooks_of_parameters(hooks, backend):
    expected = train(hooks, lambda f: f)
    got = train(hooks, lambda f: framejit.compile(f, backend=backend, fullgraph=True))
    Comparison().compare(expected, got, "")


@pytest.mark.parametrize("hooks", [fails, prints_data, gives_something])
def test_hooks_that_Python_must_call(hooks):
    expected = train(hooks, lambda f: f)
    Comparison().compare(expected, train(hooks, lambda f: framejit.compile(f, backend="eager")), "")


@pytest.mark.parametrize("hooks", HOOKS, ids=lambda hooks: hooks.__name__)
def test_number_of_graphs(hooks):
    counting = CountingBackend()
    train(hooks, lambda f: framejit.compile(f, backend=counting))
    assert len(counting.graphs) == HOOKS[hooks]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_torch_autograd_grad_calls_the_first_hooks_only(backend):
    def slope(w):
        return torch.autograd.grad((w * w).sum(), w)[0]

    w, seen = torch.ones(3, requires_grad=True), []
    w.register_hook(lambda gradient: gradient * 5)
    w.register_post_accumulate_grad_hook(seen.append)
    compiled = framejit.compile(slope, backend=backend, fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(w), torch.full((3,), 10.0))
    assert seen == [] and len(w._backward_hooks) == 1


def test_another_hook_is_noticed():
    def step(w):
        (w * w).sum().backward()
        found, w.grad = w.grad, None
        return found

    w = torch.ones(3, requires_grad=True)
    compiled = framejit.compile(step, backend="eager", fullgraph=True)
    for factor in (3, 4, 5):
        handle = w.register_hook(lambda gradient, factor=factor: gradient * factor)
        torch.testing.assert_close(compiled(w), torch.full((3,), 2.0 * factor))
        handle.remove()
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))


def hook_inside(w):
    hidden = w.exp()
    hidden.register_hook(lambda gradient: gradient * 3)
    (hidden * 2).sum().backward()
    return w.grad + 0


def keeping(w):
    hidden = w.exp()
    hidden.retain_grad()
    (hidden * 2).sum().backward()
    return hidden.grad, hidden.grad is hidden.grad


def keeping_twice(w):
    hidden = (w * 2).t()
    hidden.retain_grad()
    loss = (hidden * hidden).sum()
    loss.backward(retain_graph=True)
    first = hidden.grad
    loss.backward()
    return first, hidden.grad, hidden.grad.stride()


def keeping_after_a_hook(w):
    hidden = w.exp()
    hidden.retain_grad()
    hidden.register_hook(lambda gradient: gradient * 3)
    hidden.sin().sum().backward()
    return hidden.grad


def keeping_what_is_not_reached(w):
    hidden = w.exp()
    hidden.retain_grad()
    w.sin().sum().backward()
    return hidden.grad


def keeping_what_a_leaf_is_made_of(w):
    hidden = w * 2
    hidden.retain_grad()
    leaf = hidden.detach().requires_grad_()
    leaf.sum().backward()
    before = hidden.grad
    hidden.sum().backward()
    return before, hidden.grad, leaf.grad


def keeping_what_is_handed_out(w):
    hidden = w.exp()
    hidden.retain_grad()
    (hidden * 2).sum().backward()
    return hidden


def keeping_what_is_written_to(w):
    hidden = w * 3
    hidden.retain_grad()
    hidden.mul_(2)
    hidden.sum().backward()
    return hidden.grad


INSIDE = [
    hook_inside, keeping, keeping_twice, keeping_what_is_not_reached,
    keeping_what_a_leaf_is_made_of,
]  # fmt: skip
BREAKING = [keeping_after_a_hook, keeping_what_is_handed_out, keeping_what_is_written_to]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize(
    ("program", "backend"),
    [*[(p, b) for p in INSIDE for b in ("eager", "aot_eager")], *[(p, "eager") for p in BREAKING]],
)
def test_results_that_are_watched(program, backend):
    found = []
    whole = framejit.compile(program, backend=backend, fullgraph=program in INSIDE)
    for function in (program, whole):
        w = torch.arange(6.0).reshape(2, 3).requires_grad_()
        results = [function(w) for _ in range(2)]
        grads = [r.grad for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        found.append((results, grads, w.grad))
    Comparison().compare(*found, "")


def test_hooks_that_are_put_in_place_again_for_each_step():
    """Handles count all hooks of the process: the same hooks are the same code."""

    def tripled(gradient):
        return gradient * 3

    def halved(parameter):
        parameter.grad.div_(2)

    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    models[0].load_state_dict(models[1].state_dict())
    backend = CountingBackend()

    def step_of(model):
        def step(x):
            model.zero_grad()
            model(x).square().sum().backward()

        return step

    steps = [framejit.compile(step_of(models[0]), backend=backend), step_of(models[1])]
    for turn in range(6):
        x = torch.randn(4, 3)
        for model, step in zip(models, steps, strict=True):
            handles = [
                model.weight.register_hook(tripled),
                model.bias.register_post_accumulate_grad_hook(halved),
            ]
            step(x)
            for handle in handles if turn < 4 else ():
                handle.remove()
        for got, expected in zip(models[0].parameters(), models[1].parameters(), strict=True):
            assert torch.equal(got.grad, expected.grad)
    # The gradients are there from the second step on; in the last one there are more hooks.
    assert len(backend.graphs) == 3


def frozen_teacher(model, head, x):
    return head(x) * model(x).detach()


def switched_off(model, head, x):
    with torch.no_grad():
        target = model(x)
    return (head(x) - target).square()


@pytest.mark.parametrize("loss_of", [frozen_teacher, switched_off])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_backward_does_not_come_to_what_no_gradient_goes_to(loss_of, backend):
    """Neither to leaves with hooks, nor to what is used up."""
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model, head, seen = Network(), nn.Linear(3, 2), []
        for name, parameter in [*model.named_parameters(), *head.named_parameters()]:
            parameter.register_hook(lambda g, name=name, seen=seen: seen.append((name, g is None)))
            parameter.register_post_accumulate_grad_hook(
                lambda p, name=name, seen=seen: seen.append((name, p.grad is None))
            )
        made = torch.randn(4, 3, requires_grad=True) * 2
        made.sum().backward()
        function = loss_of
        if compiled:
            function = framejit.compile(loss_of, backend=backend, fullgraph=True)
        function(model, head, torch.randn(4, 3)).sum().backward()
        found.append((sorted(seen), [p.grad for p in model.parameters()]))
        assert found[-1][1] == [None] * 4

        def product(x, of):
            return torch.mm(of, of.T).detach().sum() * x

        again = framejit.compile(product, backend=backend) if compiled else product
        again(torch.ones(2, requires_grad=True), made).sum().backward()
    assert found[0] == found[1]
    assert all(not nothing for _, nothing in found[0][0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_where_the_graph_writes_to_memory_that_others_share(backend):
    """A written buffer gets its gradient; another view of it is looked at and not used."""

    def step(model, head, x, buffer, view):
        unused = view * 2  # noqa: F841
        buffer.add_(head(x))
        return model(x).detach() * x.sum()

    found = []
    for function in (step, framejit.compile(step, backend=backend, fullgraph=True)):
        torch.manual_seed(0)
        model, head, seen = Network(), nn.Linear(3, 2), []
        for parameter in [*model.parameters(), *head.parameters()]:
            parameter.register_hook(lambda g, seen=seen: seen.append(g.shape))
        base = torch.zeros(4, 2)
        buffer, view = base[:], base[1:]
        x = torch.randn(4, 3, requires_grad=True)
        result = function(model, head, x, buffer, view)
        (buffer.sum() + result.sum()).backward()
        found.append((sorted(seen), x.grad, head.weight.grad, result, base))
    Comparison().compare(*found, "")
