"""``autograd.Function``s that are applied to modules, functions and other objects."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend

X = torch.ones(2, 3)


class Settings:
    def __init__(self, factor):
        self.factor = factor


SHARED = nn.Module()
SHARED.settings = Settings(1.5)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, settings, function, layer):
        ctx.settings = settings
        return function(x) * settings.factor * (2 if layer.training else 3)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.settings.factor, None, None, None


def tripled(x):
    return x * 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.settings, self.layer = Settings(2.5), nn.Linear(3, 3)

    def forward(self, x):
        return Scaled.apply(x * 2, self.settings, tripled, self.layer) + 1


def gradient_of(model, x):
    leaf = x.clone().requires_grad_()
    result = model(leaf)
    result.sum().backward()
    return result, leaf.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_objects_are_part_of_the_graph(backend):
    model = Model()
    compiled = framejit.compile(model, backend=backend, fullgraph=True)
    for _ in range(4):
        model.layer.train(not model.layer.training)
        for got, expected in zip(gradient_of(compiled, X), gradient_of(model, X), strict=True):
            assert torch.equal(got, expected)


def test_another_object_and_another_content():
    model, backend = Model(), CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    first = model.settings
    for settings, factor in ((first, 2.5), (Settings(4.5), 4.5), (first, 2.5), (first, 7.5)):
        model.settings, settings.factor = settings, factor
        for got, expected in zip(gradient_of(compiled, X), gradient_of(model, X), strict=True):
            assert torch.equal(got, expected)
    assert backend.graphs


def test_what_a_call_makes_is_between_graphs():
    layer, backend = nn.Linear(3, 3), CountingBackend()

    def run(x):
        return Scaled.apply(x * 2, Settings(2.5), tripled, layer) + 1

    compiled = framejit.compile(run, backend=backend)
    for _ in range(3):
        for got, expected in zip(gradient_of(compiled, X), gradient_of(run, X), strict=True):
            assert torch.equal(got, expected)
    assert len(backend.graphs) == 3  # before, after, and of what it calls


def test_a_function_that_the_call_makes():
    layer, settings = nn.Linear(3, 3), Settings(2.5)

    def run(x):
        return Scaled.apply(x * 2, SHARED.settings, lambda t: t * 3, layer) + settings.factor

    compiled = framejit.compile(run, backend="eager", fullgraph=True)
    for _ in range(2):
        for got, expected in zip(gradient_of(compiled, X), gradient_of(run, X), strict=True):
            assert torch.equal(got, expected)
