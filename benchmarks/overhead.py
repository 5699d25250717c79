"""What a call of a compiled function costs when nothing is computed: dispatch and guards.

The backend returns results computed once, so all that remains is the way into and out of the
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
#: Budgets in microseconds.
BUDGETS = {
    "f(a, b)": 0.5,
    "4 linear layers": 1.0,
    "3 breaks": 3.0,
    "dataclass, dict": 1.5,
    "timm resnet18": 10.0,
    "BERT, 12 layers": 10.0,
}
GROWTH = (1, 4, 16, 64)


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


# -- growth ----------------------------------------------------------------------------------------


def of_modules(count: int) -> tuple[Any, list[tuple[Any, ...]]]:
    """A chain of linear layers, two parameters each."""
    layers = [torch.nn.Linear(4, 4) for _ in range(count)]
    return torch.nn.Sequential(*layers).eval(), [(torch.ones(1, 4),)]


def of_arguments(count: int) -> tuple[Any, list[tuple[Any, ...]]]:
    """A function of many tensors."""
    names = ", ".join(f"x{i}" for i in range(count))
    namespace: dict[str, Any] = {}
    exec(f"def f({names}):\n    return {names.replace(', ', ' + ')} + 1", namespace)
    return namespace["f"], [tuple(torch.ones(4) for _ in range(count))]


def of_entries(count: int) -> tuple[Any, list[tuple[Any, ...]]]:
    """A function with an entry for each of many strings, all of them in turn."""

    def f(x: torch.Tensor, name: str) -> torch.Tensor:
        return x + len(name)

    return f, [(torch.ones(4), "n" * i) for i in range(1, count + 1)]


def of_one_entry(count: int) -> tuple[Any, list[tuple[Any, ...]]]:
    """The same, and then the same string again and again."""
    f, calls = of_entries(count)
    return f, [*calls, calls[0]]


GROWING = {
    "modules": of_modules,
    "tensor arguments": of_arguments,
    "entries, in turn": of_entries,
    "entries, one hit": of_one_entry,
}


def measure_growth(kind: str, count: int) -> dict[str, Any]:
    import framejit

    function, calls = GROWING[kind](count)
    compiled = framejit.compile(function, backend=constant_backend, dynamic=False)
    framejit.config.recompile_limit = max(GROWTH) + 1
    with torch.no_grad():
        for args in calls:
            compiled(*args)
        if kind != "entries, in turn":
            calls = calls[-1:]

        def run() -> None:
            for args in calls:
                compiled(*args)

        return {"us": cases.seconds_per_call(run) * 1e6 / len(calls)}


def show_growth(console: Console, loop: float) -> dict[str, Any]:
    """How the cost grows with modules, arguments and entries; framejit alone."""
    table = Table(title="overhead per call as programs grow, microseconds")
    table.add_column("number of ...")
    for count in GROWTH:
        table.add_column(str(count), justify="right")
    figures: dict[str, Any] = {}
    for kind in GROWING:
        row = []
        for count in GROWTH:
            results = [
                cases.in_fork(lambda k=kind, c=count: measure_growth(k, c))  # type: ignore[misc]
                for _ in range(3)
            ]
            row.append(cases.median([r["us"] - loop for r in results if "us" in r]))
        figures[kind] = dict(zip(GROWTH, row, strict=True))
        table.add_row(kind, *[f"{value:.2f}" for value in row])
    console.print(table)
    return figures


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
    if arguments.cases == list(cases.CASES):
        figures["growth"] = show_growth(console, loop)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
