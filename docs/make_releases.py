"""Makes docs/releases.md from docs/releases.json, which `make matrix` writes.

python docs/make_releases.py            writes the page
python docs/make_releases.py --check    exit status 1 when the page is not current
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pages import write_or_check

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "releases.json"
PAGE = ROOT / "docs" / "releases.md"

HEAD = """# Releases of Python and torch

Made by `make matrix`; do not edit. Each row is a release of CPython with one of torch: so many
tests pass (and so many fail, by name below). Continuous integration runs all tests with the first;
`make test PYTHON=python3.13 TORCH=2.15.0` runs them with another. The columns are folders of
`tests/`; *Inductor* trains and runs a small BERT, *random programs* are 470 of the fuzzer's.
"""


def table(results: dict) -> list[str]:
    """One row a combination."""
    columns = list(next(iter(results.values()))["columns"])
    head = ["Python", "torch", *columns, "commit", "day"]
    lines = [head, ["---"] * len(head)]
    for name, outcome in results.items():
        cells = []
        for column in columns:
            cell = outcome["columns"].get(column, {"passed": 0, "failures": []})
            failed = f", **{len(cell['failures'])} fail**" if cell["failures"] else ""
            cells.append(f"{cell['passed']:,}{failed}")
        lines.append([*name.split("/"), *cells, commits(outcome), outcome["date"]])
    return [f"| {' | '.join(line)} |" for line in lines]


def commits(outcome: dict) -> str:
    """What was tested, and columns that were tested again later."""
    later: dict[str, list[str]] = {}
    for column, cell in outcome["columns"].items():
        if cell.get("commit", outcome["commit"]) != outcome["commit"]:
            later.setdefault(cell["commit"], []).append(column)
    again = [f"{', '.join(columns)}: {commit}" for commit, columns in later.items()]
    return "; ".join([outcome["commit"], *again])


def details(name: str, outcome: dict) -> list[str]:
    """What does not pass or is not run in one combination, and why."""
    cells = outcome["columns"].items()
    failures = [f"- {column}: `{test}`" for column, cell in cells for test in cell["failures"]]
    skips = [
        f"- {column}: {count} skipped: {reason}"
        for column, cell in cells
        for reason, count in cell.get("skipped", {}).items()
    ]
    if not failures and not skips:
        return []
    python, torch = name.split("/")
    lines = [f"\n## Python {python}, torch {torch}\n", *skips]
    if failures:
        lines += ["", "These fail:", "", *failures]
    return lines


def page(results: dict) -> str:
    """The text of the page."""
    lines = [HEAD, *table(results)]
    for name, outcome in results.items():
        lines += details(name, outcome)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(json.loads(RESULTS.read_text()))))
