"""Classes of ``autograd.Function`` that captured code makes itself."""

import pytest
import torch

import framejit
from checking import CountingBackend, check

X = torch.arange(6.0).reshape(2, 3) + 0.5


def unused(x):
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient / 2

    return Halved.apply(x) if x.dim() > 5 else x * 2


def of_constants(x, how):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2):
            ctx.save_for_backward(x)
            return x * factor if how == "times" else x + factor

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * len(how) + x

    return Scaled.apply(x).sin()


def with_setup(x):
    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 3 * x * gradient

    return Squared.apply(x) + 1


def returned(x):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    return Doubled.apply(x), Doubled


def gradient_of(function):
    def program(x, *args):
        y = function(x, *args)
        (y[0] if isinstance(y, tuple) else y).sum().backward()
        return y

    return program


@pytest.mark.parametrize(
    ("function", "args", "ops"),
    [
        (unused, (), 1),
        (of_constants, ("times",), 4),
        (of_constants, ("plus",), 4),
        (with_setup, (), 4),
    ],
)
def test_one_graph(function, args, ops):
    backend = check(function, X.clone().requires_grad_(), *args, graphs=1, fullgraph=True)
    assert backend.ops == ops
    compiled = framejit.compile(function, backend=CountingBackend(), fullgraph=True)
    for _ in range(2):
        x, y = (X.clone().requires_grad_() for _ in range(2))
        gradient_of(function)(x, *args)
        gradient_of(compiled)(y, *args)
        assert torch.equal(x.grad, y.grad)


def test_the_class_is_made_anew_in_each_call():
    compiled = framejit.compile(returned, backend="eager", fullgraph=True)
    (y, first), (_, second) = compiled(X), compiled(X)
    assert first is not second
    assert first._backward_cls._forward_cls is first
    assert torch.equal(first.apply(X), y)
    assert [cls.__qualname__ for cls in (first, second)] == ["returned.<locals>.Doubled"] * 2


def changed_later(x):
    factor = "aa"

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * len(factor)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * len(factor)

    y = Scaled.apply(x)
    factor = "aaa"
    return y


def test_backward_reads_what_its_variables_hold_then():
    compiled = framejit.compile(changed_later, backend="eager")
    for _ in range(2):
        x = X.clone().requires_grad_()
        y = compiled(x)
        assert torch.equal(y, X * 2)
        y.sum().backward()
        assert torch.equal(x.grad, torch.full_like(X, 3))
