"""`detach_` takes the history away from one tensor, and from nothing that was computed of it; the
gradient that a tensor was given stays its own when its shape changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import framejit
from checking import CountingBackend, check

WEIGHT = torch.nn.Parameter(torch.arange(3.0))


def used_before(x: torch.Tensor) -> Any:
    y = x * 2
    z = (y + WEIGHT) * 3
    y.detach_()
    return y, z


def through_a_function(x: torch.Tensor) -> Any:
    y = x * 2
    z = (y + WEIGHT) * 3
    return torch.detach_(y), z


def given(x: torch.Tensor) -> Any:
    x.detach_()
    return x, x * WEIGHT


def an_operand_returned(x: torch.Tensor) -> Any:
    y = x.contiguous()
    y.detach_()
    return y, x


def outcome(function: Callable[..., Any], make: Callable[[], torch.Tensor]) -> Any:
    x = make()
    try:
        results = function(x)
    except RuntimeError as error:
        return str(error)
    found = [(t.requires_grad, t.is_leaf, t._is_view(), t.tolist()) for t in (x, *results)]
    kept = [t for t in results if t.requires_grad]
    inputs = [WEIGHT, x] if x.requires_grad else [WEIGHT]
    if kept:
        total = torch.stack([t.sum() for t in kept]).sum()
        found += torch.autograd.grad(total, inputs, allow_unused=True)
    return str(found)


INPUTS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.ones(3), lambda: torch.ones(2, 3)[0], lambda: torch.ones(3, requires_grad=True),
    lambda: torch.ones(3, requires_grad=True) * 2,
    lambda: torch.ones(2, 3, requires_grad=True)[0],
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [used_before, through_a_function, given, an_operand_returned])
def test_detached_in_place(function: Callable[..., Any], backend: str) -> None:
    for make in INPUTS:
        compiled = framejit.compile(function, backend=backend)
        for _ in range(2):
            assert outcome(compiled, make) == outcome(function, make)


def test_a_view_is_told_from_what_is_none() -> None:
    counting = CountingBackend()
    compiled = framejit.compile(given, backend=counting)
    compiled(torch.ones(3))
    assert len(counting.graphs) == 1 and counting.ops == 2
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        compiled(torch.ones(2, 3)[0])


def longer(x: torch.Tensor) -> Any:
    x.grad = x.detach().clone()
    x.unsqueeze_(0)
    return x.grad, x * 2


def longer_gradient(x: torch.Tensor) -> Any:
    gradient = x.detach().clone()
    x.grad = gradient
    gradient.unsqueeze_(0)
    return x.grad is gradient, x * 2


def longer_and_back(x: torch.Tensor) -> Any:
    x.grad = x.detach().clone()
    x.unsqueeze_(0)
    x.squeeze_(0)
    return x.grad, x * 2


@pytest.mark.parametrize("program, graphs, ops", [
    (longer, 2, 4), (longer_gradient, 2, 4), (longer_and_back, 1, 5),
])  # fmt: skip
def test_gradient_of_a_tensor_whose_shape_changes(
    program: Callable[..., Any], graphs: int, ops: int
) -> None:
    check(program, torch.ones(3), graphs=graphs, ops=ops)
