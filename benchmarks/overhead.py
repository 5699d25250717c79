"""What a call of a compiled function costs when nothing is computed: dispatch and guards.

The backend answers with results computed once, so all that remains is the way into and out of the
compiled code. Microseconds per warm call, medians of 5 runs, framejit and torch.compile in turn.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import cases
import torch
from rich.console import Console
from rich.table import Table

RUNS = 5
#: Budgets in microseconds (docs/architecture.md).
BUDGETS = {"f(a, b)": 0.5, "BERT, 12 layers": 10.0}


def constant_backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    result = gm(*[value.detach() if not value.is_leaf else value for value in inputs])
    return lambda *args: result


def measure(name: str, compiler: str) -> dict[str, Any]:
    case = cases.CASES[name]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, kwargs = case.make()
    with torch.set_grad_enabled(case.grad):
        compiled = cases.compile_with(compiler, model, constant_backend)
        return {"us": cases.seconds_per_call(lambda: compiled(*args, **kwargs)) * 1e6}


def baseline() -> float:
    """Microseconds of the measuring loop itself."""
    return cases.seconds_per_call(lambda: None) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=list(cases.CASES), help="names of cases")
    parser.add_argument("--json", help="write the figures to this file, too")
    arguments = parser.parse_args()
    cases.prefetch()
    console = Console(width=100)
    loop = baseline()
    table = Table(title=f"overhead per call, microseconds (median of {RUNS})")
    for column in ("program", "framejit", "torch.compile", "ratio", "budget"):
        table.add_column(column, justify="left" if column == "program" else "right")
    figures: dict[str, Any] = {}
    for name in arguments.cases:
        found: dict[str, list[float]] = {compiler: [] for compiler in cases.COMPILERS}
        errors: dict[str, str] = {}
        for _ in range(RUNS):
            for compiler in cases.COMPILERS:
                if compiler in errors:
                    continue
                result = cases.in_fork(lambda n=name, c=compiler: measure(n, c))  # type: ignore[misc]
                if "error" in result:
                    errors[compiler] = result["error"]
                else:
                    found[compiler].append(max(0.0, result["us"] - loop))
        ours, theirs = (cases.median(found[compiler]) for compiler in cases.COMPILERS)
        figures[name] = {"framejit": ours, "torch.compile": theirs, "errors": errors}
        budget = f"{BUDGETS[name]:g}" if name in BUDGETS else ""
        table.add_row(name, f"{ours:.2f}", f"{theirs:.1f}", f"{theirs / ours:.1f} x", budget)
        console.print(f"  {name}: {ours:.2f} / {theirs:.1f}", *errors.values(), style="dim")
    console.print(table)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
