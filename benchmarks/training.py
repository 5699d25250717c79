"""How fast training steps run: framejit and torch.compile, both with Inductor, and eager.

Milliseconds per step (zero_grad, forward, backward, AdamW) with the forward pass compiled, in one
process and in turn, so that noise hits all alike; one thread. The ratio is the median over the
turns of torch.compile's time divided by framejit's: above 1, framejit is faster.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import cases
import steady
import torch
from torch import nn

RUNS = 40
WARM = 4


def perceptron() -> Any:
    layers = [part for _ in range(6) for part in (nn.Linear(256, 256), nn.GELU())]
    return nn.Sequential(*layers), (torch.randn(32, 256),), {}


def encoder() -> Any:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, (torch.randn(4, 32, 64),), {}


def normalised() -> Any:
    block = [nn.Linear(128, 128), nn.LayerNorm(128), nn.SiLU()]
    return nn.Sequential(*block, *copy.deepcopy(block)), (torch.randn(64, 128),), {}


def embedding() -> Any:
    return (
        nn.Sequential(nn.Embedding(1000, 64), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1000)),
        (torch.randint(0, 1000, (8, 16)),),
        {},
    )


MODELS: dict[str, Callable[[], Any]] = {
    "perceptron": perceptron,
    "encoder": encoder,
    "normalised": normalised,
    "embedding": embedding,
    "18 convolutions": cases.convolutions,
    "ResNet-18": steady.resnet18,
    "BERT, 2 layers": cases.bert2_training,
    "Llama, 8 layers": cases.llama8,
}


def step_of(model: Any, call: Any, args: Any, kwargs: Any) -> Callable[[], float]:
    """One training step; returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = steady.first_tensor(call(*args, **kwargs)).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def measure(make: Callable[[], Any]) -> dict[str, Any]:
    """Seconds per step of each candidate, per turn, and the largest difference of losses."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, kwargs = make()
    model.train()
    for part in model.modules():  # compiled random numbers are others than eager's
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    twins = {name: copy.deepcopy(model) for name in steady.COLUMNS}
    steps = {}
    for name, twin in twins.items():
        call = twin if name == "eager" else cases.compile_with(name, twin, "inductor")
        steps[name] = step_of(twin, call, args, kwargs)
    seconds: dict[str, list[float]] = {name: [] for name in steady.COLUMNS}
    difference = 0.0
    for turn in range(WARM + RUNS):
        losses = {}
        for name in steady.order(turn):
            started = time.perf_counter()
            losses[name] = steps[name]()
            seconds[name].append(time.perf_counter() - started)
        if turn < WARM:  # later on, rounding has led them apart
            difference = max(difference, abs(losses["framejit"] - losses["eager"]))
    return {"seconds": {n: all_[WARM:] for n, all_ in seconds.items()}, "difference": difference}


if __name__ == "__main__":
    steady.report("training step with Inductor", RUNS, "loss differs by", MODELS, measure)
