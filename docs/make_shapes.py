"""Writes the table of docs/shapes.md: the guards on sizes of the shape programs in tests/shapes.

Run: python docs/make_shapes.py (after a change of the programs or of the guards).
"""

import inspect
import sys
import textwrap
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shapes"))
PAGE = ROOT / "docs" / "shapes.md"
MARK = "<!-- the table is written by make_shapes.py -->"


def rows():
    """(name, code, guards on sizes) for each program after sizes (4, 3) and (6, 5)."""
    from shape_programs import PROGRAMS

    import framejit

    for name, entry in PROGRAMS.items():
        torch.manual_seed(0)
        compiled = framejit.compile(entry.function, backend="eager")
        for n, m in [(4, 3), (6, 5)]:
            compiled(*entry.make(n, m))
        last = compiled.entries[-1]
        plan = compiled.plans[id(last)]
        guards = [guard.name for guard in plan.guards() if guard.kind == "SHAPE_MATCH"]
        lines = textwrap.dedent(inspect.getsource(entry.function)).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("def "))
        yield name, [line.strip() for line in lines[start + 1 :]], guards


def table():
    """The table as Markdown."""
    out = ["| program | what it does | guards on sizes and numbers |", "|---|---|---|"]
    for name, code, guards in rows():
        shown = "<br>".join(f"`{line}`".replace("|", "\\|") for line in code)
        said = "<br>".join(f"`{guard}`".replace("local ", "") for guard in guards)
        out.append(f"| {name} | {shown} | {said or 'none'} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    head = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(head + MARK + "\n\n" + table())
