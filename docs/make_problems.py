"""Makes docs/problems.md from the registry of problems (`framejit.report.problems`).

    python docs/make_problems.py            writes the page
    python docs/make_problems.py --check    exit status 1 when the page is not current
"""

from __future__ import annotations

from pathlib import Path

from pages import write_or_check

from framejit.report.problems import FAMILIES, problems

PAGE = Path(__file__).parent / "problems.md"

HEAD = """# Problems and what to do about them

Made by `python docs/make_problems.py` from the registry in `framejit/report`; do not edit. Every
graph break, error and recompile that framejit reports carries an identifier; this is the page that
it stands for. `framejit explain FJ0101` prints the same in a shell. A test runs each example and
checks that it has the problem that it shows. With a graph break the result is right, too: Python
runs the line between two graphs.
"""


def page() -> str:
    """The text of docs/problems.md."""
    lines = [HEAD]
    for prefix, family in FAMILIES.items():
        lines.append(f"# {family}\n")
        found = [problem for name, problem in problems().items() if name.startswith(prefix)]
        lines += [f"- [{p.identifier}](#{p.identifier.lower()}): {p.title}" for p in found]
        lines.append("")
        lines += [problem.page() for problem in found]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(write_or_check(PAGE, page()))
