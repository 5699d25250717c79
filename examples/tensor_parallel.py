"""Tensor-parallel training: each process has a part of every layer.

    torchrun --nproc-per-node 2 examples/tensor_parallel.py

The model is parallelised, then compiled: it is one graph, collective operations included. The
script trains the plain model as well, and says how far the two are apart.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

import framejit


class Block(nn.Module):
    """A perceptron with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def network(backend: str | None) -> nn.Module:
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(*[Block() for _ in range(4)])
    for block in model:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model if backend is None else framejit.compile(model, backend=backend, fullgraph=True)


def train(model: nn.Module, steps: int) -> list[float]:
    """The loss, step by step: all processes see the same data."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    losses = []
    for step in range(steps):
        x = torch.randn(16, 32, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), x.argmax(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="inductor", help="of framejit")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    compiled = train(network(options.backend), options.steps)
    plain = train(network(None), options.steps)
    apart = max(abs(a - b) for a, b in zip(compiled, plain, strict=True))
    if dist.get_rank() == 0:
        graphs = framejit.counters["stats"]["unique_graphs"]
        print(f"loss {compiled[0]:.4f} -> {compiled[-1]:.4f}, {graphs} graphs, apart {apart:.1e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
