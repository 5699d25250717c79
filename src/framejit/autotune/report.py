"""What the trials showed, for people and for other programs.

In: results. Out: a table on the terminal, a CSV file with one row per graph and backend, a bar
chart of speed-ups. rich and matplotlib are imported when they are needed. Next: api.
"""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Sequence
from typing import Any

from framejit.autotune.trial import REFERENCE, Result

COLUMNS = (
    "graph", "line", "operations", "training", "backend", "milliseconds", "speedup", "winner",
    "problem",
)  # fmt: skip


def backends_of(results: Sequence[Result]) -> list[str]:
    """All that were tried, eager first."""
    return list(dict.fromkeys(str(o.candidate) for r in results for o in r.outcomes))


def total(results: Sequence[Result], backend: str | None) -> float | None:
    """Seconds for one call of each graph: with one backend, or each with its winner (None). None
    where one of the graphs has no time."""
    names = [result.winner if backend is None else backend for result in results]
    times = [r.timed.get(name) for r, name in zip(results, names, strict=True) if name is not None]
    known = [seconds for seconds in times if seconds is not None]
    return sum(known) if len(known) == len(results) else None


def rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One row per graph and backend, as in the CSV file; speed-ups are over eager."""
    made = []
    for result in results:
        graph = result.subgraph
        for outcome in result.outcomes:
            name, seconds = str(outcome.candidate), outcome.seconds
            faster = result.speedup(name)
            values = (
                graph.key, graph.line, graph.operations, int(graph.training), name,
                "" if seconds is None else f"{seconds * 1e3:.4f}",
                "" if faster is None else f"{faster:.3f}", int(name == result.winner),
                outcome.problem,
            )  # fmt: skip
            made.append(dict(zip(COLUMNS, values, strict=True)))
    return made


def write_csv(path: str | os.PathLike[str], results: Sequence[Result]) -> None:
    """Write `rows`. Raises OSError."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows(results))


def show(results: Sequence[Result], console: Any) -> None:
    """Print the table and what it comes to."""
    from rich.table import Table  # slow: only the command needs it

    names = backends_of(results)
    table = Table(title="milliseconds per call (in brackets: times as fast as eager)")
    table.add_column("graph", overflow="fold")
    table.add_column("ops", justify="right")
    for name in names:
        table.add_column(name, justify="right")
    for result in results:
        kind = " (training)" if result.subgraph.training else ""
        cells = [_place(result) + kind, str(result.subgraph.operations)]
        table.add_row(*cells, *[_cell(result, name) for name in names])
    if len(results) > 1:
        sums = {name: total(results, name) for name in names}
        cells = ["-" if s is None else f"{s * 1e3:.3f}" for s in sums.values()]
        table.add_row("all together", "", *cells, end_section=True)
    console.print(table)
    for result in results:
        for outcome in result.outcomes:
            if outcome.problem:
                text = f"left out  {_place(result)}: {outcome.candidate}: {outcome.problem}"
                console.print(text, markup=False, highlight=False)
    tuned, eager = total(results, None), total(results, REFERENCE)
    if tuned is not None and eager is not None:
        text = f"with the winners: {tuned * 1e3:.3f} ms, {eager / tuned:.2f} times as fast as eager"
        singles = {n: s for n in names if (s := total(results, n)) is not None}
        best = min(singles, key=singles.__getitem__)
        text += f"; the best single backend, {best}: {singles[best] * 1e3:.3f} ms"
        console.print(text, highlight=False)


def _place(result: Result) -> str:
    """The user's line in short, or the graph's key."""
    parts = result.subgraph.line.removeprefix("File ").split(", ")
    if len(parts) < 3:
        return result.subgraph.key
    name = os.path.basename(parts[0].strip('"'))
    return f"{name}:{parts[1].removeprefix('line ')} {result.subgraph.key[:4]}"


def _cell(result: Result, name: str) -> str:
    seconds = result.timed.get(name)
    if seconds is None:
        tried = any(str(outcome.candidate) == name for outcome in result.outcomes)
        return "left out" if tried else "-"
    text, faster = f"{seconds * 1e3:.3f}", result.speedup(name)
    if faster is not None and name != REFERENCE:
        text += f" ({faster:.2f})"
    return f"[bold green]{text}[/]" if name == result.winner else text


def plot(path: str | os.PathLike[str], results: Sequence[Result]) -> None:
    """A bar chart: the median speed-up over eager of each backend, and of the winners.

    Raises ImportError, with what to install, where matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure  # optional dependency
    except ImportError as error:
        raise ImportError("the chart needs matplotlib: pip install framejit[plots]") from error
    speed: dict[str, float] = {}
    for name in [*backends_of(results)[1:], None]:
        chosen = [(r, name or r.winner) for r in results]
        ratios = [s for r, which in chosen if which and (s := r.speedup(which)) is not None]
        if ratios:
            speed[name or "winners"] = statistics.median(ratios)
    figure = Figure(figsize=(max(4, 1.2 * len(speed) + 1.5), 3.6), layout="constrained")
    axes = figure.subplots()
    bars = axes.bar(list(speed), list(speed.values()), color=["#7a8ca3"] * len(speed))
    if speed:
        bars[-1].set_color("#2f855a")
    axes.margins(y=0.12)
    axes.axhline(1.0, color="#444444", linewidth=1)
    axes.bar_label(bars, fmt="%.2f", padding=2)
    axes.set_ylabel("times as fast as eager (median)")
    axes.set_title(f"{len(results)} graphs")
    axes.tick_params(axis="x", rotation=30)
    figure.savefig(path, dpi=150)
