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


def used_after(x: torch.Tensor) -> Any:
    y = x * WEIGHT
    kept = [y]
    z = y * 3
    y = y.detach_()
    return y, z, y * WEIGHT, kept[0] * 2


def in_steps(x: torch.Tensor) -> Any:
    hidden, total, seen = x, torch.zeros(()), []
    for step in range(4):
        hidden = torch.tanh(hidden * WEIGHT + x)
        seen.append(hidden)
        total = total + hidden.sum()
        if step % 2:
            hidden = hidden.detach_()
            assert seen[-1] is hidden and not seen[-1].requires_grad and seen[-1].is_leaf
    return hidden, total, *seen


def of_a_view(x: torch.Tensor) -> Any:
    y = x * WEIGHT
    first = y[:1]
    try:
        first.detach_()
    except RuntimeError as error:
        return first, y, torch.tensor(len(str(error)))
    return first, y


def with_a_view(x: torch.Tensor) -> Any:
    y = x * WEIGHT
    first = y[:1]
    y.detach_()
    first.mul_(2)
    return y, first


def detached_and_marked(x: torch.Tensor) -> Any:
    y = x * WEIGHT
    y.detach_().requires_grad_()
    return y * 2, x


def given_and_written(x: torch.Tensor) -> Any:
    z = x * WEIGHT
    x.detach_()
    x.mul_(2)
    return z * 2, x


def given_and_marked(x: torch.Tensor) -> Any:
    z = x * WEIGHT
    x.detach_().requires_grad_()
    return z, x * WEIGHT


def given_and_saved(x: torch.Tensor) -> Any:
    y = x + WEIGHT
    z = y * WEIGHT
    y.detach_()
    return y, z


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
        try:
            found += torch.autograd.grad(total, inputs, allow_unused=True)
        except RuntimeError as error:
            found.append(str(error)[:60])
    return str(found)


INPUTS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.ones(3), lambda: torch.ones(2, 3)[0], lambda: torch.ones(3, requires_grad=True),
    lambda: torch.ones(3, requires_grad=True) * 2,
    lambda: torch.ones(2, 3, requires_grad=True)[0],
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [
    used_before, through_a_function, given, an_operand_returned, used_after, in_steps, of_a_view,
    with_a_view, detached_and_marked,
])  # fmt: skip
def test_detached_in_place(function: Callable[..., Any], backend: str) -> None:
    compare(function, backend)


@pytest.mark.parametrize("function", [given_and_written, given_and_marked, given_and_saved])
def test_autograd_refuses_what_has_let_go_of_its_history(function: Callable[..., Any]) -> None:
    compare(function, "eager")  # AOTAutograd saves other tensors


def compare(function: Callable[..., Any], backend: str) -> None:
    for make in INPUTS:
        compiled = framejit.compile(function, backend=backend)
        for _ in range(2):
            assert outcome(compiled, make) == outcome(function, make)


@pytest.mark.parametrize("function, ops", [
    (used_before, 4), (through_a_function, 4), (used_after, 5), (in_steps, 23),
])  # fmt: skip
def test_results_let_go_of_it_in_one_graph(function: Callable[..., Any], ops: int) -> None:
    for make in INPUTS[:4]:
        assert check(function, make().detach(), graphs=1, fullgraph=True).ops == ops


def test_existing_tensors_let_go_of_it_after_the_graph() -> None:
    counting = CountingBackend()
    compiled = framejit.compile(given, backend=counting, fullgraph=True)
    for make in INPUTS[2:4]:
        for _ in range(2):
            assert outcome(compiled, make) == outcome(given, make)
    assert len(counting.graphs) == 2


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
