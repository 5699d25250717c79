"""Training loops of data-parallel models, run plainly and compiled, and what they leave behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.report import events

STEPS = 6
#: What PyTorch does around a module that it distributes is a break of this kind.
AROUND_MODULES = "FJ0126"


class Counted:
    """A backend that counts its graphs and hands them to another one."""

    def __init__(self, backend: str) -> None:
        self.backend = lookup_backend(backend)
        self.counting = CountingBackend()

    def __call__(self, module: Any, inputs: Any) -> Any:
        self.counting(module, inputs)
        return self.backend(module, inputs)

    @property
    def graphs(self) -> int:
        return len(self.counting.graphs)


def blocks(width: int = 8, depth: int = 3) -> nn.Module:
    """A few equal layers."""
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth)]
    return nn.Sequential(*layers, nn.Linear(width, 4))


class Convolutions(nn.Module):
    """Running statistics, and a buffer that each process fills with numbers of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.register_buffer("seen", torch.full((1,), float(dist.get_rank())))
        self.head = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(dist.get_rank() + 1)
        y = self.norm(self.convolution(x.view(-1, 1, 2, 4).repeat(1, 1, 2, 1)))
        return self.head(y.relu().mean((2, 3))) * self.seen


class Branches(nn.Module):
    """Of two layers, one is used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, second: bool = False) -> torch.Tensor:
        return self.second(x) if second else self.first(x)


def wrapped(make: Callable[[], nn.Module], how: str, backend: Any, **options: Any) -> nn.Module:
    """The model in data-parallel form; ``how``: plain, compiled outside, compiled inside."""
    torch.manual_seed(0)
    model = make()
    if how == "inside":
        model = framejit.compile(model, backend=backend)
    model = DistributedDataParallel(model, **options)
    return framejit.compile(model, backend=backend) if how == "outside" else model


def batch(step: int, width: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Other data in each process and step."""
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(4, width, generator=generator), torch.randn(4, 4, generator=generator)


def train(
    model: nn.Module,
    arguments: Callable[[int], dict[str, Any]] = lambda step: {},
    accumulate: int = 1,
) -> list[Any]:
    """What `STEPS` steps leave behind: losses, gradients, parameters, buffers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    left: list[Any] = []
    for step in range(STEPS):
        x, y = batch(step)
        together = (step + 1) % accumulate == 0
        context = contextlib.nullcontext() if together else model.no_sync()
        with context:
            loss = nn.functional.mse_loss(model(x, **arguments(step)), y)
            loss.backward()
        left.append(loss.item())
        left.append([None if p.grad is None else p.grad.clone() for p in model.parameters()])
        if together:
            optimizer.step()
            optimizer.zero_grad()
    left.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    return left


def compared(
    make: Callable[[], nn.Module], how: str, backend: str = "eager",
    prepare: Callable[[Any], None] = lambda model: None, options: dict[str, Any] | None = None,
    **loop: Any,
) -> tuple[int, int]:  # fmt: skip
    """Train plainly and compiled, and compare; the numbers of graphs and of breaks."""
    plain = wrapped(make, "plain", None, **(options or {}))
    prepare(plain)
    expected = train(plain, **loop)
    counted = Counted(backend)
    model = wrapped(make, how, counted, **(options or {}))
    prepare(model)
    with events.recording(events.GraphBreak) as breaks:
        got = train(model, **loop)
    exact = {"rtol": 0, "atol": 0} if backend == "eager" else {}
    torch.testing.assert_close(got, expected, **exact)
    for parameter in model.parameters():  # the processes agree
        first = parameter.detach().clone()
        dist.broadcast(first, src=0)
        assert torch.equal(first, parameter)
    return counted.graphs, len(breaks)
