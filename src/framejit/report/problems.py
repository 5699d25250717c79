"""The registry of problems: every kind of break, skip, recompile and error, with cause and fix.

In: an identifier such as ``FJ0101``. Out: a `Problem`, or its page as Markdown. `GraphBreak`s,
errors and events carry the identifier; messages, ``framejit explain FJ0101`` and docs/problems.md
show what is written here. The texts are in ``problem_texts/FJ0101.toml``, one file for each
problem, and are read when somebody asks. A test runs every example. Next room: api.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

#: The first lines of every example.
PRELUDE = "import framejit\nimport torch\n\n"
TEXTS = Path(__file__).with_name("problem_texts")


class Problem(NamedTuple):
    """One kind of problem: its identifier, and the fields of its file, none of which is empty.
    ``example`` is a program that has it, without its imports of framejit and torch."""

    identifier: str
    title: str
    cause: str
    example: str
    fix: str

    @property
    def program(self) -> str:
        """The example, ready to run."""
        return PRELUDE + self.example

    def page(self) -> str:
        """Cause, example and fix as Markdown."""
        return (
            f"## {self.identifier}: {self.title} {{#{self.identifier.lower()}}}\n\n{self.cause}\n\n"
            f"```python\n{self.program}```\n\n**What to do.** {self.fix}\n"
        )


#: What the hundreds of an identifier mean.
FAMILIES = {
    "FJ01": "Graph breaks",
    "FJ02": "Errors",
    "FJ03": "Frames that run as plain Python",
    "FJ04": "Why something is compiled again",
}


def problems() -> dict[str, Problem]:
    """Every problem by its identifier, in order."""
    return {name: _read(name) for name in _identifiers()}


def find(identifier: str) -> Problem | None:
    """The problem with this identifier; upper and lower case are the same."""
    identifier = identifier.upper()
    return _read(identifier) if identifier in _identifiers() else None


@functools.cache
def _identifiers() -> list[str]:
    return sorted(path.stem for path in TEXTS.glob("*.toml"))


@functools.cache
def _read(identifier: str) -> Problem:
    import tomllib  # seldom needed

    fields = tomllib.loads((TEXTS / f"{identifier}.toml").read_text(encoding="utf-8"))
    for paragraph in ("cause", "fix"):
        fields[paragraph] = " ".join(fields[paragraph].split())
    return Problem(identifier, **fields)
