"""``backward`` and ``torch.autograd.grad`` in captured code, and what they leave behind."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from checking import Comparison, CountingBackend, check
from repeating import ALL, Regions, Stack


def leaves():
    return [torch.arange(6.0).reshape(2, 3).requires_grad_() for _ in range(2)]


def stored(*tensors):
    return [tensor.grad for tensor in tensors]


def shared_gradient(v, w):
    (v + w).backward(torch.ones(2, 3))
    v.grad.mul_(2)
    return stored(v, w)


def expanded_gradient(v, w):
    (v.sum() + w.mean()).backward()
    return [grad.stride() for grad in stored(v, w)], stored(v, w)


def transposed(v, w):
    turned = (v.t() @ w).sum()
    turned.backward()
    return stored(v, w)


def one_is_not_reached(v, w):
    (v * 2).sum().backward()
    return stored(v, w)


def in_two_steps(v, w):
    loss = (v * w).sum()
    loss.backward(retain_graph=True)
    first = v.grad.clone()
    loss.backward()
    return first, stored(v, w), v.grad is v.grad


def added_up(v, w):
    for factor in (1, 2, 3):
        (v * w * factor).sum().backward()
    return stored(v, w)


def only_for_some(v, w):
    (v * w).sum().backward(inputs=[w])
    return stored(v, w)


def of_several(v, w):
    torch.autograd.backward([v * 2, (v * w).sum()], [w.detach(), None])
    return stored(v, w)


def by_autograd(v, w):
    loss = (v.exp() * w).sum()
    (first,) = torch.autograd.grad(loss, v, retain_graph=True)
    return first, torch.autograd.grad(loss, [v, w])


def unused(v, w):
    return torch.autograd.grad((v * v).sum(), [v, w], allow_unused=True)


def by_result(v, w):
    y = v * w
    z = y.sin()
    return torch.autograd.grad(z.sum(), y)[0], z.detach()


def twice(v, w):
    (slope,) = torch.autograd.grad((v**3 * w).sum(), v, create_graph=True)
    return torch.autograd.grad(slope.square().sum(), [v, w])


def leaf_of_its_own(v, w):
    inner = (v * 2).detach().requires_grad_()
    (inner * w).sum().backward()
    return inner.grad, stored(v, w)


def new_leaf(v, w):
    inner = torch.zeros(2, 3, requires_grad=True)
    ((inner + v) * w).sum().backward()
    return inner.grad, stored(v, w)


def in_no_grad(v, w):
    loss = (v * w).sum()
    with torch.no_grad():
        loss.backward()
        v.add_(v.grad)
    return loss.detach(), v + 0


def assigned(v, w):
    v.grad = w.detach() * 2
    (v * w).sum().backward()
    return stored(v, w)


#: Each with how many graphs two calls take, of which the second finds gradients.
PROGRAMS = {
    shared_gradient: 2, expanded_gradient: 2, transposed: 2, one_is_not_reached: 2,
    in_two_steps: 2, added_up: 2, only_for_some: 2, of_several: 2, by_autograd: 1, unused: 1,
    by_result: 1, twice: 1, leaf_of_its_own: 2, new_leaf: 2, in_no_grad: 2, assigned: 2,
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program, backend):
    ours, eager = leaves(), leaves()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        Comparison().compare((program(*eager), eager), (compiled(*ours), ours), "")
        for got, expected in zip(ours, eager, strict=True):
            Comparison().compare(expected.grad, got.grad, "gradient")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_number_of_graphs(program):
    counting, given = CountingBackend(), leaves()
    compiled = framejit.compile(program, backend=counting)
    for _ in range(3):
        compiled(*given)
    assert len(counting.graphs) == PROGRAMS[program]


def loss_and_more(w):
    hidden = w.exp()
    loss = (hidden * 2).sum()
    loss.backward()
    return hidden, loss, loss * 3, w.sum() + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_is_used_up_says_so(backend):
    """And what is not can be differentiated."""
    compiled = framejit.compile(loss_and_more, backend=backend, fullgraph=True)
    found = []
    for function in (loss_and_more, compiled):
        w = torch.ones(3, requires_grad=True)
        results = function(w)
        said = []
        for result in results:
            try:
                said.append(result.sum().backward())
            except RuntimeError as error:
                said.append(str(error))
        found.append((said, [r.requires_grad for r in results], [r.is_leaf for r in results],
                      [r.detach() for r in results], w.grad))  # fmt: skip
    assert "second time" in found[0][0][1]
    Comparison().compare(*found, "")


def half_used_up(v, w):
    hidden = v.exp()
    (hidden * 2).sum().backward()
    return hidden * w.sin()


def test_a_result_that_is_used_up_in_part_ends_the_graph():
    found = []
    counting = CountingBackend()
    for function in (half_used_up, framejit.compile(half_used_up, backend=counting)):
        v, w = leaves()
        result = function(v, w)
        found.append((torch.autograd.grad(result.sum(), w), v.grad))
    Comparison().compare(*found, "")
    assert len(counting.graphs) == 2


def goes_on_in_what_was_before(loss):
    loss.backward()
    return loss.detach() * 2


def test_a_loss_from_elsewhere():
    w = torch.ones(3, requires_grad=True)
    compiled = framejit.compile(goes_on_in_what_was_before, backend="eager")
    assert compiled((w * w).sum()).item() == 6
    torch.testing.assert_close(w.grad, torch.full((3,), 2.0))


def refused(w):
    return torch.autograd.grad(w * 2, w)


def refused_twice(w):
    loss = w.exp().sum()
    loss.backward()
    loss.backward()


@pytest.mark.parametrize("program", [refused, refused_twice])
def test_errors_are_those_of_autograd(program):
    check(program, torch.ones(3, requires_grad=True))


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x * w

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0], None


def none_for_one(v, w):
    Half.apply(v, w).sum().backward()
    return stored(v, w)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_gradient_that_a_function_does_not_give_stays_none(backend):
    found = []
    for function in (none_for_one, framejit.compile(none_for_one, backend=backend)):
        found.append(function(*leaves()))
    assert found[0][1] is None
    Comparison().compare(*found, "")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_come_and_go(backend):
    def step(w):
        (w * w).sum().backward()
        found, w.grad = w.grad, None
        return found

    compiled = framejit.compile(step, backend=backend)
    w = torch.ones(3, requires_grad=True)
    seen = []
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    handle = w.register_hook(lambda gradient: gradient * 5)
    torch.testing.assert_close(compiled(w), torch.full((3,), 10.0))
    handle.remove()
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    assert len(seen) == 1


def test_repeated_blocks_of_a_step_are_compiled_once():
    def run(compile):
        torch.manual_seed(0)
        model = Stack(6)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @compile
        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return [step(torch.randn(2, 5, 8)) for _ in range(3)], dict(model.named_parameters())

    regions = Regions()
    got = run(lambda f: framejit.compile(f, backend=regions, options=ALL, fullgraph=True))
    Comparison().compare(run(lambda f: f), got, "")
    assert regions.calls[0] == {"region_Block": 6}


def test_a_finally_ends_no_error_and_no_graph():
    """What may raise stands in a ``try``, and parameters are written to after it."""
    table, optimizers = nn.Embedding(500, 600), []
    optimizers.append(torch.optim.SGD(table.parameters(), lr=0.1))
    noted = []

    def step(index, swallow):
        try:
            loss = table(index).square().sum()
        finally:
            noted.append("looked up")
        F.relu(loss).backward()
        optimizers[0].step()
        optimizers[0].zero_grad()

    counting = CountingBackend()
    compiled = framejit.compile(step, backend=counting)
    compiled(torch.tensor([1, 2]), False)
    assert len(counting.graphs) == 1 and noted == ["looked up"]
    with pytest.raises(IndexError):
        compiled(torch.tensor([1, 5000]), False)
