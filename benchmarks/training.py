"""How fast training steps run: framejit and torch.compile, both with Inductor, and eager.

Milliseconds per step (zero_grad, forward, backward, AdamW), with the whole step compiled or only
the model, in one process and in turn, so that noise hits all alike; one thread. The ratios are
medians over the turns of torch.compile's time divided by that of framejit's whole step: above 1,
framejit is faster. Memory is what a step takes at its peak beside what was resident before it, in
processes of their own. Recompiles are those of framejit's whole step after the second one.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import steady
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

RUNS = 40
WARM = 4
#: What compiles (nothing, framejit, torch.compile), and what: the step or the model in it.
CANDIDATES = {
    "eager": ("", ""),
    "step": ("framejit", "step"),
    "model": ("framejit", "model"),
    "torch.compile: step": ("torch.compile", "step"),
    "torch.compile: model": ("torch.compile", "model"),
}
WHOLE = "step"


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


def step_of(model: Any, args: Any, kwargs: Any, compiler: str, what: str) -> Callable[[], Any]:
    """One training step; returns the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    call = cases.compile_with(compiler, model, "inductor") if what == "model" else model

    def step(*args: Any, **kwargs: Any) -> torch.Tensor:
        optimizer.zero_grad()
        loss = steady.first_tensor(call(*args, **kwargs)).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = cases.compile_with(compiler, step, "inductor") if what == "step" else step
    return lambda: run(*args, **kwargs)


def prepared(make: Callable[[], Any]) -> tuple[Any, Any, Any]:
    """A model that computes the same in all candidates, and its arguments."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, kwargs = make()
    model.train()
    for part in model.modules():  # compiled random numbers are others than eager's
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return model, args, kwargs


def captured() -> int:
    """How many frames framejit has captured in this process."""
    import framejit

    return framejit.counters["frames"]["total"]


def measure(make: Callable[[], Any]) -> dict[str, Any]:
    """Seconds per step of each candidate, per turn, how often framejit captured after the second
    step, and the largest difference of losses."""
    model, args, kwargs = prepared(make)
    steps = {
        name: step_of(copy.deepcopy(model), args, kwargs, *how) for name, how in CANDIDATES.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    difference, recompiles, names = 0.0, 0, list(CANDIDATES)
    for turn in range(WARM + RUNS):
        losses = {}
        first = turn % len(names)
        for name in (names[first:] + names[:first])[:: -1 if turn % 2 else 1]:
            before = captured()
            started = time.perf_counter()
            losses[name] = steps[name]().item()
            seconds[name].append(time.perf_counter() - started)
            if name == WHOLE and turn > 1:
                recompiles += captured() - before
        if turn < WARM:  # later on, rounding has led them apart
            difference = max(difference, abs(losses[WHOLE] - losses["eager"]))
    return {
        "seconds": {name: each[WARM:] for name, each in seconds.items()},
        "difference": difference, "recompiles": recompiles,
    }  # fmt: skip


#: Parameters of glibc's mallopt: what is freed is given back at once, so that it counts no more.
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1


def resident(line: str) -> float:
    """MB of this process: now ("VmRSS") or at its peak ("VmHWM")."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(line + ":")[1].split()[0]) / 1024


def memory(make: Callable[[], Any], name: str) -> float:
    """MB that a warm step of the candidate takes at its peak beside what was there."""
    libc = ctypes.CDLL(None)
    libc.mallopt(MMAP_THRESHOLD, 1 << 14)
    libc.mallopt(TRIM_THRESHOLD, 0)
    model, args, kwargs = prepared(make)
    step = step_of(model, args, kwargs, *CANDIDATES[name])
    found = []
    for _ in range(WARM + 3):
        libc.malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        step().item()
        found.append(resident("VmHWM") - before)
    return statistics.median(found[WARM:])


def main() -> None:
    """Measure every model in processes of its own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=list(MODELS), help="names of models")
    parser.add_argument("--json", help="write the figures to this file, too")
    arguments = parser.parse_args()
    console = Console(width=150)
    table = Table(title=f"training step with Inductor, milliseconds (median of {RUNS})")
    columns = ("model", *CANDIDATES, "over step", "over model", "MB eager", "MB step",
               "recompiles", "loss differs by")  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column == "model" else "right")
    figures: dict[str, Any] = {}
    for name in arguments.cases:
        console.print(f"  {name}: compiling four times ...", style="dim")
        found = cases.in_fork(lambda n=name: measure(MODELS[n]))  # type: ignore[misc]
        if "error" in found:
            console.print(f"  {name}: {found['error']}")
            continue
        megabytes = [
            cases.in_fork(lambda n=name, c=c: {"MB": memory(MODELS[n], c)}).get("MB", 0.0)  # type: ignore[misc]
            for c in ("eager", WHOLE)
        ]
        seconds, ratios = found["seconds"], []
        for other in ("torch.compile: step", "torch.compile: model"):
            pairs = zip(seconds[WHOLE], seconds[other], strict=True)
            ratios.append(statistics.median(theirs / ours for ours, theirs in pairs))
        medians = [cases.median(seconds[candidate]) * 1e3 for candidate in CANDIDATES]
        figures[name] = {"ms": medians, "ratios": ratios, "MB": megabytes, **found}
        table.add_row(
            name, *[f"{value:.2f}" for value in medians], *[f"{ratio:.2f} x" for ratio in ratios],
            *[f"{value:.1f}" for value in megabytes], str(found["recompiles"]),
            f"{found['difference']:.0e}",
        )  # fmt: skip
    console.print(table)
    for which, title in enumerate(("the whole step", "the model")):
        each = [entry["ratios"][which] for entry in figures.values()]
        if each:
            console.print(
                f"  over torch.compile of {title}: {statistics.median(each):.2f} x (median), "
                f"{min(each):.2f} x at least"
            )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
