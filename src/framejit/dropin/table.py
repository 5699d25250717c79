"""The switches of ``torch.compile``: what framejit does for each, as data.

In: ``switches.toml``. Out: rows, and the table that ``framejit doctor --switches`` prints and
docs/switches.md has. Next: options.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

#: Where the rows are.
TEXTS = Path(__file__).with_name("switches.toml")
#: What the groups of rows are about, in order.
GROUPS = {
    "options": "Options: torch._dynamo.config and torch.compiler.config",
    "arguments": "Arguments of torch.compile",
    "functions": "Functions and classes",
    "environment": "Environment variables",
}


class Switch(NamedTuple):
    """One switch: either ``option`` of `framejit.config` does it, with ``values`` where they are
    others, or ``does`` says what happens instead. ``always``: what framejit does anyway, so nothing
    is to be said where a program asks for it."""

    name: str
    group: str
    option: str = ""
    values: str = ""
    does: str = ""
    always: Any = None
    #: Is it obeyed, or does something else happen?
    obeyed: bool = True

    @property
    def answer(self) -> str:
        """What happens, as one sentence."""
        if not self.option:
            return self.does
        said = f"`framejit.config.{self.option}`"
        said += f", {self.values}" if self.values else ""
        return f"{said}: {self.does}" if self.does else said


@functools.cache
def switches() -> dict[str, Switch]:
    """Every row by its name, in the order of the file."""
    import tomllib  # seldom needed

    read = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
    rows: dict[str, Switch] = {}
    for group in GROUPS:
        for name, fields in read[group].items():
            if isinstance(fields, str):
                fields = {"does": fields}
            rows[name] = Switch(name, group, **fields)
    return rows


def table() -> str:
    """All rows as text, for a terminal."""
    lines = []
    for group, title in GROUPS.items():
        lines.append(title)
        for row in switches().values():
            if row.group == group:
                mark = "yes" if row.obeyed else "no "
                lines.append(f"  {mark}  {row.name}: {row.answer}".replace("`", ""))
    return "\n".join(lines)
