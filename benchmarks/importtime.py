"""What ``import framejit`` costs on top of ``import torch``; the peer's front end for comparison.

Seconds in fresh processes, medians of 5, in turn.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from rich.console import Console
from rich.table import Table

RUNS = 5
BUDGET = 0.1
CODE = "import torch, time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    """Seconds of importing ``module`` in a new process that has imported torch."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is there once it is installed
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE.format(module)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    return float(done.stdout)


def main() -> None:
    modules = ("framejit", "torch._dynamo")
    for module in modules:  # compile the byte code, fill the file cache
        seconds(module)
    times: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(RUNS):
        for module in modules:
            times[module].append(seconds(module))
    table = Table(title=f"import on top of torch, seconds (median of {RUNS})")
    for column in ("module", "seconds", "budget"):
        table.add_column(column, justify="left" if column == "module" else "right")
    for module in modules:
        budget = f"{BUDGET:g}" if module == "framejit" else ""
        table.add_row(module, f"{statistics.median(times[module]):.3f}", budget)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
