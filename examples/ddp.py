"""Data-parallel training: the compiled model, wrapped by PyTorch, in as many processes as you like.

    torchrun --nproc-per-node 2 examples/ddp.py

Each process compiles for itself. The compiled model is one graph, forward and backward; gradients
are averaged by `DistributedDataParallel` while backward runs, as in plain PyTorch. The script
trains the plain model as well, and says how far both are apart (``--backend eager``: not at all).
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import framejit


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32)) for _ in range(4)]
    return nn.Sequential(*layers, nn.Linear(32, 8))


def train(model: nn.Module, steps: int) -> list[float]:
    """The mean loss of all processes, step by step."""
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
        x = torch.randn(16, 32, generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), x.argmax(-1) % 8)
        loss.backward()
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        losses.append(mean.item() / dist.get_world_size())
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="inductor", help="of framejit")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    compiled = train(framejit.compile(network(), backend=options.backend), options.steps)
    plain = train(network(), options.steps)
    apart = max(abs(a - b) for a, b in zip(compiled, plain, strict=True))
    if dist.get_rank() == 0:
        graphs = framejit.counters["stats"]["unique_graphs"]
        print(f"loss {compiled[0]:.4f} -> {compiled[-1]:.4f}, {graphs} graphs, apart {apart:.1e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
