"""Makes docs/messages.md: what framejit and torch.compile say about the same wrong programs.

    python docs/make_messages.py

The programs are examples of the registry of problems, with ``fullgraph=True``. Each runs once with
each compiler; the page has both messages as they came, with the versions and the date.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import linecache
import re
import sys
import warnings
from pathlib import Path

import torch

import framejit
from framejit.report.problems import problems

PAGE = Path(__file__).parent / "messages.md"
CAPTURED = "(no error: it captures this)"
HEAD = """# Messages, side by side

Made by `python docs/make_messages.py` on {date} with framejit {framejit}, torch {torch} and
Python {python}; do not edit. The programs of [the registry](problems.md) that framejit refuses
under `fullgraph=True`, and what each compiler's exception says, in full but for the paths. Where
torch.compile captures the program, there is no message.

| problem | framejit: lines | torch.compile: lines |
|---|---|---|
"""


def message(program: str, name: str) -> str:
    """What the program raises."""
    linecache.cache[name] = (1, None, program.splitlines(True), name)
    framejit.reset()
    torch.compiler.reset()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(compile(program, name, "exec"), {"__name__": "example"})
        except Exception as error:
            return re.sub(r"(?<![\w.:/])/(?:[^/\s]+/)+(?=\w)", "", str(error))
    return CAPTURED


def main() -> int:
    """Write the page."""
    rows, parts = [], []
    for identifier, problem in problems().items():
        ours = problem.program.replace('backend="eager"', 'backend="eager", fullgraph=True')
        theirs = ours.replace("framejit.compile(", "torch.compile(")
        said = message(ours, "model.py").strip(), message(theirs, "model.py").strip()
        if identifier not in said[0]:
            continue
        counts = [
            "captures it" if text == CAPTURED else len(text.splitlines()) for text in said
        ]
        rows.append(f"| [{identifier}](#{identifier.lower()}) {problem.title} | {counts[0]} | "
                    f"{counts[1]} |")  # fmt: skip
        parts.append(
            f"## {identifier}: {problem.title} {{#{identifier.lower()}}}\n\n"
            f"```text title=\"the program\"\n{problem.example.rstrip()}\n```\n\n"
            f"```text title=\"framejit\"\n{said[0]}\n```\n\n"
            f"```text title=\"torch.compile\"\n{said[1]}\n```\n"
        )
    head = HEAD.format(
        date=datetime.date.today(), framejit=framejit.__version__, torch=torch.__version__,
        python=sys.version.split()[0],
    )  # fmt: skip
    PAGE.write_text(head + "\n".join(rows) + "\n\n" + "\n".join(parts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
