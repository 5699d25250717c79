"""Compiled stages of a pipeline: schedules send activations and gradients between ranks."""

import pytest
import torch
from torch import nn
from torch.distributed import pipelining

import framejit
from checking import CountingAround

WIDTH, MICROBATCHES, STEPS = 8, 4, 3


class Stage(nn.Module):
    """A part of the layers of a network."""

    def __init__(self, number, layers=2):
        super().__init__()
        torch.manual_seed(number)
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(layers)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return self.norm(x)


SCHEDULES = {
    "GPipe": (pipelining.ScheduleGPipe, 1),
    "1F1B": (pipelining.Schedule1F1B, 1),
    "interleaved": (pipelining.ScheduleInterleaved1F1B, 2),
}


def trained(rank, name, compiling):
    """Losses, and the stages' parameters and gradients, after some steps."""
    schedule_class, count = SCHEDULES[name]
    numbers = [rank + 2 * number for number in range(count)]
    modules = [Stage(number) for number in numbers]
    stages = [
        pipelining.PipelineStage(compiling(module), number, 2 * count, torch.device("cpu"))
        for module, number in zip(modules, numbers, strict=True)
    ]
    loss = nn.functional.mse_loss
    schedule = schedule_class(
        stages if count > 1 else stages[0], n_microbatches=MICROBATCHES, loss_fn=loss
    )
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.SGD(parameters, 0.1)
    told = []
    for step in range(STEPS):
        torch.manual_seed(100 + step)
        x, target = torch.randn(8, WIDTH), torch.randn(8, WIDTH)
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        else:
            out = schedule.step(target=target, losses=losses)
            told.append(out.tolist())
        told.append([one.item() for one in losses])
        told.append([p.grad.tolist() for p in parameters])
        optimizer.step()
    told.append([p.tolist() for p in parameters])
    return told


def program(rank, name, backend):
    plain = trained(rank, name, lambda module: module)
    framejit.reset()
    counted = CountingAround(backend)
    compiled = trained(rank, name, lambda m: framejit.compile(m, backend=counted, fullgraph=True))
    return plain, compiled, len(counted.graphs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", list(SCHEDULES))
def test_compiled_stages(ranks, name, backend):
    for plain, compiled, graphs in ranks.run(program, name, backend):
        assert compiled == plain
        assert graphs == SCHEDULES[name][1]


@pytest.mark.slow
def test_compiled_stages_with_inductor(ranks):
    for plain, compiled, graphs in ranks.run(program, "1F1B", "inductor"):
        for expected, found in zip(plain, compiled, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        assert graphs == 1
