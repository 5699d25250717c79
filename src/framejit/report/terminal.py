"""An explanation in a terminal: tables and the user's lines, drawn with rich.

In: an `Explanation`. Out: a renderable of rich, or its text. Next: page.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from framejit.report.explanation import Explanation

_WIDTH = 100
_RECOMPILES = 20


def text(explanation: Explanation) -> str:
    """What ``print(explanation)`` shows; in colour when standard output is a terminal."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    stream = io.StringIO()
    width = Console().width if terminal else _WIDTH
    console = Console(file=stream, width=width, force_terminal=terminal, highlight=False)
    console.print(renderable(explanation))
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # which may not have every letter
    return stream.getvalue().rstrip().encode(encoding, "backslashreplace").decode(encoding)


def renderable(explanation: Explanation) -> Any:
    """Everything that matters, the breaks first."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(_headline(explanation), "bold")]
    if explanation.no_graph:
        parts.append(Text(explanation.no_graph))
    for wrong in explanation.mismatches:
        parts.append(Text(f"\nmismatch [{wrong.identifier}] {wrong.place}", "bold red"))
        parts.append(Text(textwrap.indent(wrong.difference, "  ")))
        if wrong.script:
            parts.append(Text(f"  {wrong.script}", "green"))
    for number, one in enumerate(explanation.breaks, 1):
        times = f", {one.times} times" if one.times > 1 else ""
        parts.append(Text(f"\nbreak {number} [{one.identifier}] {one.place}{times}", "bold red"))
        if one.code:
            parts.append(Text(f"  {one.code}", "cyan"))
        parts.append(Text(f"  {one.reason}"))
        parts.append(Text(f"  {one.fix}", "green"))
    if explanation.graphs:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title, justify in (("graph of", "left"), ("starts at", "left"), ("ops", "right"),
                               ("guards", "right"), ("in", "right"), ("out", "right")):  # fmt: skip
            style = "bold" if title == "graph of" else ""
            table.add_column(title, justify=justify, style=style, overflow="fold")  # type: ignore[arg-type]
        for entry in explanation.graphs:
            table.add_row(
                entry.frame + " *" * entry.reused, entry.place, str(entry.operations),
                str(len(entry.guards)), size(entry.input_bytes), size(entry.output_bytes),
            )  # fmt: skip
        parts += [Text(), table]
        if any(entry.reused for entry in explanation.graphs):
            parts.append(Text("  * compiled by an earlier call"))
    if explanation.repeated:
        parts.append(Text(f"\ncalls repeated, not executed: {_listed(explanation.repeated)}"))
    if explanation.regions:
        spared = sum(one.saved for entry in explanation.entries for one in entry.regions)
        parts.append(
            Text(f"compiled once: {_listed(explanation.regions)}; "
                 f"{count(spared, 'operation')} less to compile")
        )  # fmt: skip
    if explanation.recompiles:
        parts.append(Text("\nrecompiles", "bold yellow"))
        for recompile in explanation.recompiles[:_RECOMPILES]:
            identifier = recompile.identifiers[-1] if recompile.identifiers else ""
            reason = recompile.reasons[-1] if recompile.reasons else "no reason is known"
            parts.append(Text(f"  {recompile.frame} [{identifier}] {reason}"))
        if len(explanation.recompiles) > _RECOMPILES:
            parts.append(Text(f"  and {len(explanation.recompiles) - _RECOMPILES} more"))
    if explanation.skips:
        parts.append(Text("\nruns as plain Python", "bold yellow"))
        parts += [Text(f"  {s.frame} [{s.identifier}] {s.reason}") for s in explanation.skips]
    return Group(*parts)


def _listed(counted: Counter[str]) -> str:
    """``30 × Block``, the most frequent first."""
    return ", ".join(f"{number} × {name}" for name, number in counted.most_common())


def _headline(explanation: Explanation) -> str:
    times = explanation.times
    memory = f", memory +{size(explanation.memory)}" if explanation.memory else ""
    return (
        f"{', '.join(counts(explanation))}; traced in {seconds(times['trace'])}, "
        f"backend {seconds(times['backend'])}{memory}"
    )


def counts(explanation: Explanation) -> list[str]:
    """How many there are of everything that is counted."""
    return [
        count(explanation.graph_count, "graph"),
        count(explanation.break_count, "graph break"),
        count(explanation.op_count, "operation"),
        count(len(explanation.guards), "guard"),
        count(len(explanation.recompiles), "recompile"),
    ]


def count(number: int, noun: str) -> str:
    """``1 graph``, ``2 graphs``"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A time in words."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def size(value: float) -> str:
    """A number of bytes in words."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
