"""Models under PyTorch's ways to train on several processes, and what compiles them here: framejit,
or `torch.compile` beside it. A way takes what compiles a module, or nothing for plain Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import data_parallel
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import framejit
from framejit.report import events

WIDTH, HEAD, LENGTH, BLOCKS = 16, 4, 6, 2
Compiles = Callable[[nn.Module], nn.Module]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.values, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layers = self.queries, self.keys, self.values
        heads = [layer(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for layer in layers]
        made = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(made.transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.up(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.second, self.perceptron = nn.LayerNorm(WIDTH), Perceptron()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        return x + self.perceptron(self.second(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(8, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.into(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def made() -> Any:
    """The model, the same in each process."""
    torch.manual_seed(0)
    return Transformer()


def compiled_blocks(model: Any, compiles: Compiles) -> None:
    """Compile each block."""
    for index, block in enumerate(model.blocks):
        model.blocks[index] = compiles(block)


def split(model: Any, mesh: DeviceMesh) -> None:
    """Split the layers of each block among the processes of a mesh, and sequences in between."""
    whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    plan = {
        "first": SequenceParallel(), "second": SequenceParallel(),
        "attention": whole, "perceptron": whole,
        "attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "perceptron.up": ColwiseParallel(),
        "perceptron.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }  # fmt: skip
    plan |= {f"attention.{name}": ColwiseParallel() for name in ("queries", "keys", "values")}
    ends = {
        "into": RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
        ),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(model, mesh, ends)
    for block in model.blocks:
        parallelize_module(block, mesh, plan)


def replicated(compiles: Compiles) -> nn.Module:
    """Data parallel."""
    return compiles(DistributedDataParallel(made()))


def sharded(compiles: Compiles) -> nn.Module:
    """Parameters are sharded; each block is compiled."""
    model = made()
    compiled_blocks(model, compiles)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    return model


def sharded_whole(compiles: Compiles) -> nn.Module:
    """Parameters are sharded; the whole model is compiled."""
    return compiles(sharded(lambda block: block))


def split_whole(compiles: Compiles) -> nn.Module:
    """Layers are split; the whole model is compiled."""
    model = made()
    split(model, init_device_mesh("cpu", (dist.get_world_size(),)))
    return compiles(model)


def both(compiles: Compiles) -> nn.Module:
    """Layers are split in one direction of a mesh and sharded in the other, as large models are."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "layers"))
    model = made()
    split(model, mesh["layers"])
    compiled_blocks(model, compiles)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    return model


WAYS = {way.__name__: way for way in (replicated, sharded, sharded_whole, split_whole, both)}


class Ours:
    """framejit, with what is counted."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.counted = data_parallel.Counted(backend)
        self.breaks: list[Any] = []

    def compile(self, module: nn.Module) -> nn.Module:
        return framejit.compile(module, backend=self.counted)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        with events.recording(events.GraphBreak) as breaks:
            yield
        self.breaks = list(breaks)


class Peer:
    """`torch.compile`, with what is counted."""

    def __init__(self, backend: str) -> None:
        torch._dynamo.reset()
        self.backend = backend
        self.counted = data_parallel.Counted(backend)
        self.breaks: list[Any] = []

    def compile(self, module: nn.Module) -> nn.Module:
        return torch.compile(module, backend=self.counted)

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        found = torch._dynamo.utils.counters["graph_break"]
        found.clear()
        yield
        self.breaks = list(found.elements())


def whole(tensor: Any) -> Any:
    """A tensor that processes share, put together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def train(way: str, compiles: Compiles) -> Any:
    """What six steps leave behind: losses, gradients, parameters."""
    model = WAYS[way](compiles)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    place = {"split_whole": 0, "both": dist.get_rank() // 2}.get(way, dist.get_rank())
    left: list[Any] = []
    for step in range(data_parallel.STEPS):
        generator = torch.Generator().manual_seed(100 * step + place)
        x = torch.randn(2, LENGTH, 8, generator=generator)
        y = torch.randn(2, LENGTH, 4, generator=generator)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        left += [loss.detach(), [whole(p.grad).clone() for p in model.parameters()]]
        optimizer.step()
        optimizer.zero_grad()
    return left, [whole(parameter.detach()).clone() for parameter in model.parameters()]


def measured(way: str, engine: Any, expected: Any = None) -> None:
    """Train, counting graphs and breaks, and compare with what plain Python has left."""
    with engine.counting():
        got = train(way, engine.compile)
    if expected is not None:
        exact = {"rtol": 0, "atol": 0} if engine.backend == "eager" else {}
        torch.testing.assert_close(got, expected, **exact)
