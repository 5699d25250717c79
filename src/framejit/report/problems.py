"""The registry of problems: every kind of break, skip, recompile and error, with cause and fix.

In: an identifier such as ``FJ0101``. Out: a `Problem`, or its page as Markdown. `GraphBreak`s,
errors and events carry the identifier; messages, ``framejit explain FJ0101`` and docs/problems.md
show what is written here. The texts are in the modules `problem_texts_*` and are
read when somebody asks. Next room: api.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

#: The first lines of every example.
PRELUDE = "import framejit\nimport torch\n\n"


class Problem(NamedTuple):
    """One kind of problem. ``example`` is a program that has it, without its imports of framejit
    and torch."""

    identifier: str
    title: str
    cause: str
    fix: str
    example: str

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


@functools.cache
def problems() -> dict[str, Problem]:
    """Every problem by its identifier, in order."""
    # Long and seldom needed.
    from framejit.report import problem_texts_others, problem_texts_python, problem_texts_tensors

    table: dict[str, Problem] = {}
    for texts in (problem_texts_tensors, problem_texts_python, problem_texts_others):
        for entry in texts.TEXT.strip().split("\n=== "):
            problem = _parsed(entry.removeprefix("=== "))
            if problem.identifier in table:
                raise AssertionError(f"{problem.identifier} is in the registry twice")
            table[problem.identifier] = problem
    return dict(sorted(table.items()))


def find(identifier: str) -> Problem | None:
    """The problem with this identifier; upper and lower case are the same."""
    return problems().get(identifier.upper())


def _parsed(entry: str) -> Problem:
    """``FJ0101 title``, the cause, ``---``, the example, ``---``, the fix."""
    head, _, rest = entry.partition("\n")
    cause, example, fix = rest.split("\n---\n")
    identifier, _, title = head.partition(" ")
    return Problem(
        identifier, title, " ".join(cause.split()), " ".join(fix.split()), example.strip() + "\n"
    )
