"""How long calls take from a cold process on, while shapes vary: does any of them wait?

A small transformer is called with batches and lengths that vary, in a process of its own per
compiler and with empty caches: plain Python, torch.compile, framejit, and framejit in the
background. Milliseconds per call: the median, the 99th percentile and the worst, and the most that
the process itself has used of the processor during a call, which other processes do not change; and
when the last call came that took more than twice the median of plain Python. With --plot, a picture
of all calls.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

MODES = ("plain Python", "torch.compile", "framejit", "framejit, background")


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def compiled(mode: str, module: torch.nn.Module) -> Any:
    if mode == "torch.compile":
        return torch.compile(module)
    if mode == "plain Python":
        return module
    import framejit

    return framejit.compile(module, background=mode.endswith("background"))


def shapes(calls: int) -> list[tuple[int, int]]:
    """Batch and length of each call; the second differs from the first, as in most programs."""
    numbers = random.Random(0)
    return [(numbers.randint(2, 8), 8 * numbers.randint(2, 12)) for _ in range(calls)]


def latencies(mode: str, calls: int, pause: float) -> dict[str, Any]:
    """Seconds of each call, since when, and whether the results are those of plain Python."""
    torch.set_num_threads(1)
    module, wrong = model().train(False), 0
    with torch.no_grad():
        module(torch.randn(2, 8, 128))  # what the operators themselves set up
        function = compiled(mode, module)
        seconds, started, used = [], [], []
        begin = time.perf_counter()
        for batch, length in shapes(calls):
            x = torch.randn(batch, length, 128)
            start, before = time.perf_counter(), time.process_time()
            result = function(x)
            seconds.append(time.perf_counter() - start)
            used.append(time.process_time() - before)
            started.append(start - begin)
            wrong += not torch.allclose(result, module(x), atol=1e-5)
            time.sleep(pause)
    return {"seconds": seconds, "started": started, "used": used, "wrong": wrong}


def measure(mode: str, calls: int, pause: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", __file__, "--mode", mode]
        command += ["--calls", str(calls), "--pause", str(pause)]
        done = subprocess.run(
            command, capture_output=True, text=True,
            env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder},
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def show(found: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="milliseconds per call")
    for column in ("", "median", "99 %", "worst", "most used", "steady after, s", "wrong"):
        table.add_column(column, justify="right" if column else "left")
    usual = statistics.median(found[MODES[0]]["seconds"])
    for mode, one in found.items():
        calls = sorted(one["seconds"])
        slow = [
            at for at, took in zip(one["started"], one["seconds"], strict=True) if took > 2 * usual
        ]
        numbers = [statistics.median(calls), calls[len(calls) * 99 // 100], calls[-1]]
        numbers.append(max(one["used"]))
        steady = f"{slow[-1]:.1f}" if slow else "0"
        table.add_row(mode, *[f"{n * 1e3:.2f}" for n in numbers], steady, str(one["wrong"]))
    return table


def plot(found: dict[str, dict[str, Any]], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4))
    for mode, one in found.items():
        axes.plot(one["started"], [s * 1e3 for s in one["seconds"]], ".", ms=3, label=mode)
    axes.set(xlabel="seconds since the first call", ylabel="milliseconds per call", yscale="log")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between calls")
    parser.add_argument("--plot", type=Path, help="a picture of all calls goes to this file")
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(latencies(options.mode, options.calls, options.pause)))
        return
    modes = dict.fromkeys([MODES[0], *options.modes])
    found = {mode: measure(mode, options.calls, options.pause) for mode in modes}
    Console(width=100).print(show(found))
    if options.plot:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
