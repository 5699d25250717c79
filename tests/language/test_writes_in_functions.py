"""Functions that autograd calls (``autograd.Function``, ``checkpoint``) write to tensors that they
have made themselves."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import framejit
from checking import CountingBackend, check

X = torch.arange(6.0).reshape(2, 3) + 0.5
KEPT = torch.zeros(3)


class Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = x.clone()
        y[y < 2] = 0
        return y

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        gradient = gradient.clone()
        gradient[x < 2] = 0
        return gradient


class IntoAnOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        torch.mul(x, 2, out=y)
        y += 1
        return y, torch.is_grad_enabled()

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient * 2


class CountsItsCalls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        KEPT.add_(1)
        return x.clone().add_(1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class WritesToItsArgument(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        part = x.detach().view(-1)
        part.add_(1)
        return part.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.view(2, 3)


class ReturnsItsArgument(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient.mul_(2)


def written_argument(x):
    y = x * 2
    return WritesToItsArgument.apply(y), y


def written_input(x):
    return WritesToItsArgument.apply(x) * 3


def returned_argument(x):
    y = x + 1
    part = y.view(-1)
    z = ReturnsItsArgument.apply(y)
    return y * 3, z is y, z.is_leaf, part + 1


def returned_part(x):
    y = x + 1
    part = y.view(-1)
    z = ReturnsItsArgument.apply(part)
    return y * 3, z is part


def without_history(x):
    y = x.detach() + 1
    z = ReturnsItsArgument.apply(y)
    return x * z, z is y, y.requires_grad


def rows(t):
    y = torch.zeros(2, 3)
    y.copy_(t)
    y[0] = 3
    return (y * t).sin()


def two_views(t):
    y = t * 1
    y.add_(1)
    z = y.view(-1)
    z.mul_(2)
    return y, z


def rectified(x):
    return Rectified.apply(x) * 2


def into_an_output(x):
    y, enabled = IntoAnOutput.apply(x)
    return y + 1, enabled


def recomputed_rows(x):
    return checkpoint(rows, x, use_reentrant=False) + 1


def recomputed_views(x):
    return checkpoint(two_views, x, use_reentrant=False)


@pytest.mark.parametrize(
    "program, ops",
    [(rectified, 2), (into_an_output, 4), (recomputed_rows, 3), (recomputed_views, 3)],
)
def test_in_one_graph(program, ops):
    backend = check(program, X.clone().requires_grad_(), graphs=1, fullgraph=True)
    assert backend.ops <= ops + 2
    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    for function, x in ((compiled, ours), (program, theirs)):
        found = function(x)
        first = found[0] if isinstance(found, tuple) else found
        first.square().sum().backward()
    assert torch.equal(ours.grad, theirs.grad)


@pytest.mark.parametrize(
    "program", [written_argument, written_input, returned_argument, returned_part, without_history]
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_arguments_may_be_written_to(program, backend):
    check(program, X.clone().requires_grad_(), graphs=1, fullgraph=True)
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    for function, x in ((compiled, ours), (program, theirs)):
        found = function(x)
        first = found[0] if isinstance(found, tuple) else found
        first.square().sum().backward()
    assert torch.equal(ours, theirs) and torch.equal(ours.grad, theirs.grad)


def test_what_autograd_refuses_of_a_written_argument_is_raised():
    check(lambda x: ReturnsItsArgument.apply(x), X.clone().requires_grad_(), graphs=1)  # a leaf


def test_what_is_outside_stays_outside():
    def program(x):
        return CountsItsCalls.apply(x) * 2, KEPT.clone()

    KEPT.zero_()
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for turn in (1, 2):
        y, kept = compiled(X.clone().requires_grad_())
        assert torch.equal(y, (X + 1) * 2) and kept.tolist() == [turn] * 3
    assert len(backend.graphs) == 2


def test_arrays_where_gradients_are_off():
    @torch.no_grad()
    def program(x):
        return x.numpy() + 1, x.numpy(), x * 2

    check(program, X.clone().requires_grad_(), graphs=1, fullgraph=True)
    check(lambda x: x.numpy(), X.clone().requires_grad_(), graphs=0)
