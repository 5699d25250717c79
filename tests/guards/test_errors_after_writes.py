"""The error of a graph that has written and cannot run again: blocks that were entered before it
clean up, as they do in plain Python."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import framejit
from checking import CountingBackend

LOG: list[str] = []
LOCK = threading.Lock()
LEAF = torch.ones(2, requires_grad=True)


@contextlib.contextmanager
def generated() -> Iterator[None]:
    LOG.append("enter")
    try:
        yield
    finally:
        LOG.append("exit")


class Told:
    def __enter__(self) -> None:
        LOG.append("enter")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        LOG.append(f"exit {error}")


def in_no_grad(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        framejit.graph_break()
        big.add_(1)
        return x[index]


def in_lock(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    with LOCK:
        big.add_(1)
        return x[index]


def in_generated(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    with generated():
        framejit.graph_break()
        big.add_(1)
        return x[index]


def in_told(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    with Told():
        framejit.graph_break()
        big.add_(1)
        return x[index]


def in_callee(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    def written() -> torch.Tensor:
        framejit.graph_break()
        big.add_(1)
        return x[index]

    with Told(), torch.autocast("cpu", dtype=torch.bfloat16):
        return written() + 1


def in_suppress(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor | None:
    with Told(), contextlib.suppress(BaseException):
        LOG.append(f"{LOCK.locked()}")
        framejit.graph_break()
        big.add_(1)
        return x[index]
    return None


def after_a_handler(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    try:
        LEAF.add_(1)
    except RuntimeError:
        pass
    big.add_(1)
    return x[index]


def after_a_named_error(big: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    with Told():
        try:
            LEAF.add_(1)
        except RuntimeError as error:
            text = str(error)
        big.add_(1)
        return x[index] + len(text)


def after_what_is_suppressed(
    big: torch.Tensor, x: torch.Tensor, index: torch.Tensor
) -> torch.Tensor:
    with contextlib.suppress(RuntimeError):
        LEAF.add_(1)
    big.add_(1)
    return x[index]


def state() -> tuple[Any, ...]:
    locked, said = LOCK.locked(), list(LOG)
    LOG.clear()
    modes = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    return locked, said, *modes, sys.exc_info()


def run(function: Callable[..., Any]) -> list[Any]:
    big, x, found = torch.zeros(600, 600), torch.ones(3), []
    for index in (1, 7, 2):
        try:
            found.append(function(big, x, torch.tensor([index])).tolist())
        except IndexError as error:
            found.append((str(error), error.__context__))
        found.append((float(big[0, 0]), *state()))
    return found


@pytest.mark.parametrize("function, graphs, operations", [
    (in_no_grad, 1, 3), (in_lock, 1, 2), (in_generated, 1, 2), (in_told, 1, 2), (in_callee, 1, 4),
    (after_a_handler, 1, 2), (after_a_named_error, 1, 3), (after_what_is_suppressed, 1, 2),
])  # fmt: skip
def test_blocks_clean_up(function: Callable[..., Any], graphs: int, operations: int) -> None:
    backend = CountingBackend()
    assert run(framejit.compile(function, backend=backend)) == run(function)
    assert (len(backend.graphs), backend.ops) == (graphs, operations)


def test_nothing_swallows_an_error_that_comes_too_late() -> None:
    """The variables of the frame know nothing of what has been written: it does not go on."""
    backend = CountingBackend()
    compiled = framejit.compile(in_suppress, backend=backend)
    big, x = torch.zeros(600, 600), torch.ones(3)
    assert compiled(big, x, torch.tensor([1])) == 1
    with pytest.raises(IndexError, match="out of bounds") as caught:
        compiled(big, x, torch.tensor([7]))
    assert any("handlers were left out" in note for note in caught.value.__notes__)
    assert state()[1] == ["enter", "False", "exit None", "enter", "False", "exit None"]
    assert len(backend.graphs) == 1 and backend.ops == 2
