"""What AOTAutograd cannot trace runs as it was recorded, whatever it says; what compilers raise is
an error of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import framejit
from checking import CountingAround
from framejit.backends.aot import aot_autograd
from framejit.report import events


@pytest.fixture
def doubled() -> Iterator[Any]:
    """An operator of which AOTAutograd cannot make a function without side effects."""
    with torch.library._scoped_library("refusals", "FRAGMENT") as library:
        library.define("doubled(Tensor x) -> Tensor")
        library.impl("doubled", lambda x: x * 2, "CompositeExplicitAutograd")
        library.impl("doubled", lambda x: torch.empty_like(x), "Meta")
        library.impl("doubled", _refuse, "Functionalize")
        yield torch.ops.refusals.doubled.default


def _refuse(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no function without side effects")


@pytest.mark.parametrize("sizes", [[3], [3, 5, 4]])
def test_the_graph_runs_as_recorded(doubled: Any, sizes: list[int]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return doubled(x + 1) * 3

    backend = CountingAround("aot_eager")
    compiled = framejit.compile(program, backend=backend)
    with events.recording(events.GraphRefused) as refused:
        for size in sizes:
            x = torch.arange(float(size))
            assert torch.equal(compiled(x), program(x))
    assert [event.reason for event in refused] == [
        "ValueError: no function without side effects"
    ] * len(backend.graphs)
    assert len(backend.graphs) == min(len(sizes), 2)
    (skip,) = framejit.explain(program, backend="aot_eager")(torch.ones(3)).skips
    assert skip.reason.startswith("AOTAutograd cannot trace the graph, which runs as it is: ")


def test_gradients_go_through_it(doubled: Any) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, doubled(x.detach())

    compiled = framejit.compile(program, backend="aot_eager", fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    first, second = compiled(x)
    first.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 3
    assert second.tolist() == [2.0] * 3 and not second.requires_grad


@pytest.mark.parametrize("training", [False, True])
def test_compilers_fail_loudly(training: bool) -> None:
    def fails(module: torch.fx.GraphModule, inputs: Any) -> Any:
        raise ValueError("no such kernel")

    compiled = framejit.compile(lambda x: x * 2, backend=aot_autograd(fails))
    with events.recording(events.GraphRefused) as refused:
        with pytest.raises(framejit.exc.BackendCompilerFailed, match="no such kernel"):
            compiled(torch.ones(3, requires_grad=training))
    assert not refused


def test_partitioners_fail_loudly() -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("no such cut")

    backend = aot_autograd(lambda module, inputs: module.forward, partition_fn=fails)
    compiled = framejit.compile(lambda x: x * 2, backend=backend)
    with pytest.raises(framejit.exc.BackendCompilerFailed, match="no such cut"):
        compiled(torch.ones(3, requires_grad=True))


def views_of_one(x: torch.Tensor) -> Any:
    """AOTAutograd finds an error that is one only where backward is called."""
    y = x.exp()
    v, w = y[0], y[1]
    v.mul_(2)
    w.add_(1)
    return v, w


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_one_warning_for_each_graph(backend: str) -> None:
    """It names the line where the graph begins, and what AOTAutograd says."""
    compiled = framejit.compile(views_of_one, backend=backend)
    line = views_of_one.__code__.co_firstlineno + 2
    words = (
        rf"line {line}, in views_of_one runs as it is.*{backend}.*modified by an inplace.*FJ0234"
    )
    with pytest.warns(framejit.exc.FramejitWarning, match=words) as seen:
        for size in (3, 4):
            x = torch.ones(2, size, requires_grad=True)
            for got, expected in zip(compiled(x), views_of_one(x), strict=True):
                assert torch.equal(got, expected)
    assert [issubclass(one.category, framejit.exc.FramejitWarning) for one in seen].count(True) == 1
    assert framejit.counters["graphs_refused"] == {backend: 2}
