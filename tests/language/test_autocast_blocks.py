"""Blocks of autocast: how deep they are nested, what torch keeps of the casts of weights until the
outermost one ends, and what backward runs under."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

import framejit
from checking import CountingAround, CountingBackend

BACKENDS = ("eager", "aot_eager", "inductor")


def level() -> int:
    """In how many blocks of autocast this runs."""
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


apart = framejit.disable(lambda x, w: x @ w)
told = framejit.disable(lambda seen: seen.append((level(), torch.is_autocast_enabled("cpu"))))


def autocast(enabled: bool = True) -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled)


def in_blocks(x: torch.Tensor, w: torch.Tensor, seen: list[Any]) -> torch.Tensor:
    y = x @ w
    with autocast():
        y = y + x @ w
        told(seen)
        with autocast(enabled=False):
            y = y + x @ w
            told(seen)
        told(seen)
        y = y + x @ w
    told(seen)
    return y


@pytest.mark.parametrize("backend", BACKENDS)
def test_code_between_graphs_is_as_deep_as_in_plain_python(backend: str) -> None:
    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    compiled, seen, expected = framejit.compile(in_blocks, backend=backend), [], []
    for _ in range(3):
        compiled(x, w, seen)
        in_blocks(x, w, expected)
        assert seen == expected == [(1, True), (2, False), (1, True), (0, False)] and level() == 0
        seen.clear()
        expected.clear()


def left_at_the_end(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with autocast():
        return apart(x, w)


def left_before_an_operation(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with autocast():
        y = apart(x, w)
    with autocast():
        z = y * 2 + x @ w
        return z + apart(x, w)


def left_in_a_call(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with autocast():
        y = apart(x, w)
    for _ in range(4):
        y = left_alone(y, w)
    return y


def left_alone(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with autocast():
        return (x @ w).float().sin() * 0.5


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function", [left_at_the_end, left_before_an_operation, left_in_a_call]
)  # fmt: skip
def test_the_next_call_casts_the_weights_again(
    function: Callable[..., torch.Tensor], backend: str
) -> None:
    """torch keeps the casts of leaves until the outermost block ends, whatever is written then."""
    x, w = torch.eye(4), torch.full((4, 4), 0.5, requires_grad=True)
    compiled = framejit.compile(function, backend=backend)
    for step in range(4):
        got = compiled(x, w)
        assert torch.equal(apart_under_autocast(x, w), (x @ w).bfloat16()), "a cast was kept"
        torch.testing.assert_close(got, function(x, w), rtol=1e-2, atol=1e-2)
        with torch.no_grad():
            w.add_(step + 1)


def apart_under_autocast(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with autocast():
        return x @ w


def test_casts_are_shared_as_in_plain_python() -> None:
    """One cast for all of a block: its gradients are summed as bfloat16."""

    def function(x, w):
        with autocast():
            y = apart(x, w)
        with autocast():
            y = y + x @ w
            return y + apart(x, w)

    x = torch.randn(4, 4)
    gradients = []
    for call in (function, framejit.compile(function, backend="eager")):
        w = torch.arange(16.0).reshape(4, 4).div(7).requires_grad_()
        call(x, w).square().sum().backward()
        gradients.append(w.grad)
    assert torch.equal(*gradients)


@pytest.mark.parametrize("around", [1, 2])
def test_inner_blocks_keep_the_casts_of_the_outer_one(around: int) -> None:
    """What was captured where the block was the outermost one is not used elsewhere."""

    def function(x):
        with autocast():
            return x * 2

    backend = CountingBackend()
    compiled, x = framejit.compile(function, backend=backend), torch.ones(2)
    with contextlib.ExitStack() as stack:
        for _ in range(around):
            stack.enter_context(autocast(enabled=False))
        compiled(x)
    compiled(x)
    assert len(backend.graphs) == 2
    shown = str(framejit.guards(compiled))
    assert "0 blocks of autocast" in shown and f"{around} block" in shown
    for _ in range(2):
        compiled(x)
    assert len(backend.graphs) == 2


def precise(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    with autocast(enabled=False):
        return layer(x.float())


@pytest.mark.parametrize("backend", BACKENDS)
def test_backward_after_the_block_is_without_autocast(backend: str) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(32, 32), torch.randn(8, 32)
    gradients = []
    for call in (precise, framejit.compile(precise, backend=backend)):
        layer.zero_grad()
        with autocast():
            y = call(layer, x)
        y.square().sum().backward()
        gradients.append(layer.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_trace_that_begins_anew_begins_under_the_same_state(backend: str) -> None:
    """AOTAutograd gives up a trace for a float that it has to build in, after the graph has
    switched gradients off."""
    layer = torch.nn.Linear(4, 4)

    def function(x, number):
        y = layer(x)
        with torch.no_grad():
            z = torch.full_like(x, number)
            framejit.graph_break()
        return y, z

    counting = CountingAround(backend)
    compiled, x = framejit.compile(function, backend=counting, dynamic=True), torch.randn(2, 4)
    for number in (0.1, 0.2, 0.3, 0.4):
        y, z = compiled(x, number)
        assert y.requires_grad and torch.equal(z, torch.full_like(x, number))
        got, expected = (torch.autograd.grad(v.sum(), layer.weight)[0] for v in (y, layer(x)))
        torch.testing.assert_close(got, expected)
    assert counting.ops
