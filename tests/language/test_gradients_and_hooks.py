"""Autograd functions, checkpoints, gradients that are assigned, and hooks of tensors."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.utils.checkpoint
from torch.func import vmap

from checking import check_between, said

X = torch.arange(6.0).reshape(2, 3) / 4


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b=None):
        return a * 2 if b is None else a * b["k"]

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class WithVjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def vjp(ctx, g):
        return g * 3


def applied_functions(x):
    return (
        said(lambda: Scaled.apply(x, b={"k": 3})), WithVjp.apply(x), Scaled.apply(x, {"k": x}),
        Scaled.apply(x, {"k": 3}), said(Scaled.apply, x, {1: x}),
    )  # fmt: skip


def checkpoints_of_odd_functions(x):
    checkpoint = torch.utils.checkpoint.checkpoint
    with torch.no_grad():
        out = [checkpoint(torch.sin, x, use_reentrant=False)]
    out.append(said(checkpoint, lambda a, b=1: a * b, x, use_reentrant=True, b=3))
    out.append(checkpoint(lambda a: [a * 2, a], x, use_reentrant=True))
    return out, checkpoint(lambda a: {"a": a * 2}, x, use_reentrant=True)


def gradients_of_new_tensors(x):
    leaf = x.detach() + 1
    return leaf.grad, leaf.is_leaf, (x * 2).is_leaf, (x.detach() * 2).grad


def assigned_gradients(x):
    x.grad = x.detach() * 2
    first = x.grad
    x.grad = None
    return first, x.grad


def handles_of_hooks(x):
    y = x * 2
    handle = y.register_hook(lambda g: g * 2)
    kinds = type(handle), isinstance(handle, torch.utils.hooks.RemovableHandle)
    return kinds, said(getattr, handle, "other"), y


def hooks_refused(x):
    y, z = x * 2, x * 3
    y.register_hook(lambda g: g * z)
    return y, said(x.detach().mul(2).register_hook, lambda g: g)


def hook_of_tuple(x):
    y, made = x * 2, (2, lambda b: b * 3)
    y.register_hook(functools.partial(lambda a, g: g * a[1](a[0]), made))
    return y


def hook_that_calls_itself(x):
    y = x * 2

    def hook(g):
        return g * 2 if g.dim() < 9 else hook(g)

    y.register_hook(hook)
    return y


class Factor:
    value = 3


def hook_with_a_class(x):
    y = x * 2
    y.register_hook(lambda g: g * Factor.value)
    return y


CALLS: list[int] = []


def hook_with_effects(x):
    y, z = x * 2, x * 3
    y.register_hook(lambda g: CALLS.append(1))
    z.register_hook(lambda g: g * 2)
    z.add_(1)
    return y * 2, z


def hooks_in_a_transform(x):
    def inside(a):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return a.sin()

    return said(vmap(inside), x)


#: (program, graphs, operations captured)
PROGRAMS = [
    (applied_functions, 6, 8), (checkpoints_of_odd_functions, 2, 5),
    (gradients_of_new_tensors, 1, 7), (assigned_gradients, 1, 4), (handles_of_hooks, 2, 3),
    (hooks_refused, 3, 6), (hook_of_tuple, 1, 4), (hook_that_calls_itself, 2, 3),
    (hook_with_a_class, 1, 4), (hook_with_effects, 2, 6), (hooks_in_a_transform, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, X.clone().requires_grad_(), graphs=graphs, ops=ops)
