"""How long capturing takes: the first call with a backend that does nothing.

"cold" is the first capture of a new process (with everything that is loaded only then, unless the
models' library has loaded it already), "warm" a further capture of a fresh model in that process.
Seconds beyond one eager call, medians of 5, framejit and torch.compile in turn.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from typing import Any

import cases
import torch
from rich.console import Console
from rich.table import Table

RUNS = 5
NAMES = ["f(a, b)", "18 convolutions", "BERT, 12 layers", "Llama, 8 layers", "BERT, 2, grad"]
#: Budgets in seconds for warm captures (docs/architecture.md).
BUDGETS = {"BERT, 12 layers": 0.25}


def nothing(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    return gm.forward


def first_call(name: str, compiler: str) -> float:
    case = cases.CASES[name]
    model, args, kwargs = case.make()
    with torch.set_grad_enabled(case.grad):
        model(*args, **kwargs)
        started = time.perf_counter()
        model(*args, **kwargs)
        eager = time.perf_counter() - started
        compiled = cases.compile_with(compiler, model, nothing)
        gc.collect()
        started = time.perf_counter()
        compiled(*args, **kwargs)
        return max(0.0, time.perf_counter() - started - eager)


def measure(name: str, compiler: str) -> dict[str, float]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if compiler == "framejit":
        import framejit  # noqa: F401 - its import is measured elsewhere
    cold = first_call(name, compiler)
    if compiler != "framejit":
        torch.compiler.reset()
    return {"cold": cold, "warm": first_call(name, compiler)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=NAMES, help="names of cases")
    parser.add_argument("--json", help="write the figures to this file, too")
    arguments = parser.parse_args()
    cases.prefetch()
    console = Console(width=110)
    table = Table(title=f"capture, seconds (median of {RUNS})")
    for column in ("program", "framejit cold", "warm", "torch.compile cold", "warm", "ratio warm"):
        table.add_column(column, justify="left" if column == "program" else "right")
    table.add_column("budget", justify="right")
    figures: dict[str, Any] = {}
    for name in arguments.cases:
        found: dict[str, list[float]] = {}
        errors: dict[str, str] = {}
        for _ in range(RUNS):
            for compiler in cases.COMPILERS:
                if compiler in errors:
                    continue
                result = cases.in_fork(lambda n=name, c=compiler: measure(n, c))  # type: ignore[misc]
                if "error" in result:
                    errors[compiler] = result["error"]
                    continue
                for kind, seconds in result.items():
                    found.setdefault(f"{compiler} {kind}", []).append(seconds)
        values = [
            cases.median(found.get(f"{compiler} {kind}", []))
            for compiler in cases.COMPILERS
            for kind in ("cold", "warm")
        ]
        figures[name] = {"seconds": values, "errors": errors}
        budget = f"{BUDGETS[name]:g}" if name in BUDGETS else ""
        ratio = f"{values[3] / values[1]:.1f} x"
        table.add_row(name, *[f"{value:.3f}" for value in values], ratio, budget)
        console.print(f"  {name}: {values[1]:.3f} / {values[3]:.3f}", *errors.values(), style="dim")
    console.print(table)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
