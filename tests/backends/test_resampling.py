"""Images resized by factors and to sizes that vary: forward, backward and errors are those of eager
mode, which copies where the sizes stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import framejit
from checking import CountingAround, said

DIMS = {"nearest": 2, "linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "nearest-exact": 2}


def image(size: int, dims: int) -> torch.Tensor:
    shape = (2, 1, *[size] * dims)
    whole = torch.arange(2.0 * size**dims) * 7 % 11
    return whole.reshape(shape).requires_grad_()


def slopes(function: Callable[..., Any], x: torch.Tensor, *args: Any) -> Any:
    """A result with its gradient, or an error."""
    made = said(function, x, *args)
    if isinstance(made, tuple):
        return made[0]
    (gradient,) = torch.autograd.grad((made * made.detach()).sum(), [x])
    return made, gradient


def agree(function: Callable[..., Any], compiled: Callable[..., Any], *args: Any) -> None:
    expected, got = slopes(function, *args), slopes(compiled, *args)
    if isinstance(expected, str) or isinstance(got, str):
        assert got == expected
    else:
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("dynamic", [None, False, True])
@pytest.mark.parametrize("mode", DIMS)
def test_factors_that_leave_sizes_as_they_are(mode: str, dynamic: bool | None) -> None:
    def run(x: torch.Tensor, factor: float) -> torch.Tensor:
        return F.interpolate(x * 2, scale_factor=factor, mode=mode) + 1

    backend = CountingAround("aot_eager")
    compiled = framejit.compile(run, backend=backend, dynamic=dynamic)
    for factor in (2.0, 1.1, 1.2, 0.6, 0.1, 1.0):
        agree(run, compiled, image(4, DIMS[mode]), factor)
    assert len(backend.graphs) == 6  # AOTAutograd has factors built in


@pytest.mark.parametrize("dims", [1, 3])
def test_gradients_of_the_nearest_element(dims: int) -> None:
    module = torch.nn.Upsample(scale_factor=1.1)
    backend = CountingAround("aot_eager")
    agree(module, framejit.compile(module, backend=backend), image(4, dims))
    assert len(backend.graphs) == 1


def test_sizes_that_become_zero() -> None:
    def run(x: torch.Tensor, size: int) -> torch.Tensor:
        return F.interpolate(x, size=(size, 3), mode="bilinear", align_corners=True)

    backend = CountingAround("aot_eager")
    compiled = framejit.compile(run, backend=backend)
    for size in (2, 3, 0, 4, 5):
        agree(run, compiled, image(4, 2), size)
    assert len(backend.graphs) == 3


def test_calls_that_are_repeated() -> None:
    """What is resized is no part of a call that is one operation."""

    def layer(x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = torch.tanh(x) + 1
        return F.interpolate(x, scale_factor=1.2, mode="bilinear")

    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = layer(x)
        return x

    backend = CountingAround("aot_eager")
    compiled, x = framejit.compile(run, backend=backend), image(4, 2).detach()
    torch.testing.assert_close(compiled(x), run(x))
    assert len(backend.graphs) == 1 and backend.ops == 36


def test_inductor_resizes_alike() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=1.1, mode="bilinear") + F.interpolate(x, size=(4, 4))

    backend = CountingAround("inductor")
    agree(run, framejit.compile(run, backend=backend), image(4, 2))
    assert len(backend.graphs) == 1
