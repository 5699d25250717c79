"""The autotune room: time every installed backend on a program's graphs, and use the winners.

In: a folder that `record` filled. Out: a report, and a file of winners that ``backend="autotuned"``
obeys. `command` is what the shell command ``framejit autotune FOLDER`` runs. Next room: api.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framejit.exc import PackageError, UnknownBackend

from . import report, winners
from .recording import Recording, record
from .trial import Candidate, Outcome, Result, default_candidates, try_all

__all__ = [
    "Candidate",
    "Outcome",
    "Recording",
    "Result",
    "command",
    "load",
    "record",
    "tune",
]

if TYPE_CHECKING:
    from .subgraphs import Subgraph


def load(folder: str | os.PathLike[str]) -> list[Subgraph]:
    """The recorded graphs in a folder, in the order of their keys. Raises PackageError, OSError."""
    from . import subgraphs  # only programs that tune need it

    return subgraphs.load(folder)


def tune(
    folder: str | os.PathLike[str],
    *,
    backends: Sequence[str] | None = None,
    repeats: int = 15,
    keep_in: str | os.PathLike[str] | None = None,
    step: Callable[[Subgraph, str], None] = lambda subgraph, what: None,
) -> list[Result]:
    """Time backends on every graph in ``folder`` and remember the winners.

    Args:
        folder: What `record` was given.
        backends: Names, or ``name:mode``; all installed ones without it. Eager always takes part.
        repeats: Samples per graph and backend; the median counts.
        keep_in: The file of winners; without it the one that ``backend="autotuned"`` reads.
        step: Called with each graph and what is done with it, for showing progress.

    Raises PackageError for a file that cannot be read, UnknownBackend or ValueError for a backend.
    """
    given = None if backends is None else [Candidate.parse(name) for name in backends]
    results = []
    for subgraph in load(folder):
        candidates = default_candidates(subgraph.device) if given is None else given
        results.append(try_all(subgraph, candidates, repeats, functools.partial(step, subgraph)))
    winners.keep(winners.default_path() if keep_in is None else keep_in, results)
    return results


def command(arguments: Sequence[str]) -> int:
    """``framejit autotune FOLDER ...``; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="framejit autotune",
        description="Time every installed backend on recorded graphs (with framejit.record(...)) "
        'and remember the winners for backend="autotuned".',
    )
    parser.add_argument("folder", help="where the graphs were recorded")
    parser.add_argument("--backends", help="names or name:mode, separated by commas")
    parser.add_argument("--repeats", type=int, default=15, help="samples per graph and backend")
    parser.add_argument("--winners", help="the file of winners (default: the user's own)")
    parser.add_argument("--csv", help="the report (default: FOLDER/speedups.csv)")
    parser.add_argument("--plot", help="a bar chart, as a PNG file")
    options = parser.parse_args(list(arguments))
    names = None if options.backends is None else options.backends.split(",")
    try:
        if options.repeats < 1:
            raise ValueError("--repeats must be at least 1")
        return _run(options, names)
    except (PackageError, UnknownBackend, ValueError, ImportError, OSError) as error:
        print(f"framejit autotune: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace, names: list[str] | None) -> int:
    # Slow: only the command needs them.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    found = load(options.folder)
    if not found:
        print(f"framejit autotune: {options.folder} holds no recorded graphs", file=sys.stderr)
        return 1
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(found))
        done: set[str] = set()

        def step(subgraph: Subgraph, what: str) -> None:
            done.add(subgraph.key)
            text = f"{subgraph.key}  {what}"
            progress.update(task, description=text, completed=len(done) - 1)

        kept = winners.default_path() if options.winners is None else Path(options.winners)
        results = tune(
            options.folder, backends=names, repeats=options.repeats, keep_in=kept, step=step
        )
    report.show(results, console)
    written = [Path(options.folder) / "speedups.csv" if options.csv is None else Path(options.csv)]
    report.write_csv(written[0], results)
    if options.plot is not None:
        report.plot(options.plot, results)
        written.append(Path(options.plot))
    names_of_files = ", ".join(map(str, written))
    console.print(f"report: {names_of_files}; winners: {kept}", highlight=False, soft_wrap=True)
    return 0
