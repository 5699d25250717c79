"""How fast compiled models run: Inductor's kernels under framejit's and torch.compile's front end.

Milliseconds per warm call of eager, framejit and torch.compile, in one process and in turn, so that
noise hits all alike; inference, one thread. The ratio is the median over the turns of
torch.compile's time divided by framejit's: 1 says that the same kernels run, more that framejit is
faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import cases
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

RUNS = 60
WARM = 5
COLUMNS = ("eager", *cases.COMPILERS)


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> Any:
    """ResNet-18 (He et al., 2015) on one small picture."""
    stem = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers = [nn.MaxPool2d(3, 2, padding=1)]
    channels = 64
    for out in (64, 128, 256, 512):
        layers += [Block(channels, out, 1 if out == channels else 2), Block(out, out, 1)]
        channels = out
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*stem, *layers, *head).eval(), (torch.randn(1, 3, 96, 96),), {}


MODELS: dict[str, Callable[[], Any]] = {"BERT, 12 layers": cases.bert, "ResNet-18": resnet18}


def measure(make: Callable[[], Any]) -> dict[str, Any]:
    """Seconds per call of each candidate, per turn, and the largest difference to eager."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, kwargs = make()
    calls = {"eager": model}
    for name in cases.COMPILERS:
        calls[name] = cases.compile_with(name, model, "inductor")
    seconds: dict[str, list[float]] = {name: [] for name in COLUMNS}
    with torch.no_grad():
        wanted = first_tensor(model(*args, **kwargs))
        difference = 0.0
        for name in cases.COMPILERS:
            result = first_tensor(calls[name](*args, **kwargs))
            difference = max(difference, (result - wanted).abs().max().item())
        for turn in range(WARM + RUNS):
            # Who comes first changes, so that nobody always finds the caches as another left them.
            for name in order(turn):
                started = time.perf_counter()
                calls[name](*args, **kwargs)
                seconds[name].append(time.perf_counter() - started)
    return {"seconds": {n: all_[WARM:] for n, all_ in seconds.items()}, "difference": difference}


def order(turn: int) -> tuple[str, ...]:
    """The candidates of one turn: each follows each other equally often, as caches remember."""
    rotated = COLUMNS[turn % 3 :] + COLUMNS[: turn % 3]
    return rotated[::-1] if turn // 3 % 2 else rotated


def first_tensor(result: Any) -> torch.Tensor:
    """The main output of a model."""
    return result if isinstance(result, torch.Tensor) else result[0]


def report(
    title: str, runs: int, differs: str, models: dict[str, Any], measure: Callable[[Any], Any]
) -> None:
    """Measure every model in a process of its own and print the table; command-line options."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--cases", nargs="*", default=list(models), help="names of models")
    parser.add_argument("--json", help="write the figures to this file, too")
    arguments = parser.parse_args()
    console = Console(width=110)
    table = Table(title=f"{title}, milliseconds (median of {runs})")
    for column in ("model", *COLUMNS, "over eager", "ratio", differs):
        table.add_column(column, justify="left" if column == "model" else "right")
    figures: dict[str, Any] = {}
    for name in arguments.cases:
        console.print(f"  {name}: compiling twice ...", style="dim")
        found = cases.in_fork(lambda n=name: measure(models[n]))  # type: ignore[misc]
        if "error" in found:
            console.print(f"  {name}: {found['error']}")
            continue
        seconds = found["seconds"]
        ours, theirs = (seconds[compiler] for compiler in cases.COMPILERS)
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        speedup = statistics.median(b / a for a, b in zip(ours, seconds["eager"], strict=True))
        medians = [cases.median(seconds[column]) * 1e3 for column in COLUMNS]
        figures[name] = {"ms": medians, "ratio": ratio, "difference": found["difference"]}
        table.add_row(
            name, *[f"{value:.2f}" for value in medians], f"{speedup:.2f} x", f"{ratio:.2f} x",
            f"{found['difference']:.0e}",
        )  # fmt: skip
    console.print(table)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    report("steady state with Inductor", RUNS, "differs by", MODELS, measure)
