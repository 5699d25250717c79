"""``make matrix``: a part of the tests with each release of Python and torch.

    python tests/matrix                     all combinations
    python tests/matrix --only 3.13/2.15.0  one, or some (repeat the option)
    python tests/matrix --columns guards    some of the tests

Each combination runs as ``make test PYTHON=... TORCH=...`` does. What passes, fails and is skipped
goes to docs/releases.json, from which docs/make_releases.py makes the page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from results import keep, parse

ROOT = Path(__file__).resolve().parents[2]
#: Releases of Python and of torch; the first is what constraints.txt names.
COMBINATIONS = (
    "3.11/2.13.0", "3.11/2.14.1", "3.11/2.15.0", "3.12/2.13.0", "3.13/2.13.0", "3.13/2.14.1",
    "3.13/2.15.0", "3.14/2.15.0",
)  # fmt: skip
#: Columns of the table, each with pytest's arguments.
COLUMNS = {
    "language": "tests/language",
    "guards": "tests/guards",
    "native": "tests/native",
    "bytecode": "tests/bytecode",
    "packages": "tests/package",
    "torch": "tests/torchcompat",
    "Inductor": "tests/models/test_zoo_models.py -k inductor -m 'slow or not slow'",
    "random programs": "tests/fuzz -k 'test_a_few or breaks or hook-800' -m 'not slow'",
}


def run(combination: str, column: str) -> dict[str, Any]:
    """The outcome of one cell of the table."""
    python, torch = combination.split("/")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = (
            "-q --tb=short --timeout=900 --max-worker-restart=40 "
            f"-o junit_family=xunit1 --junitxml={report}"
        )
        command = ["make", "test", f"PYTHON=python{python}", f"TORCH={torch}"]
        done = subprocess.run([*command, f"ARGS={COLUMNS[column]} {options}"], cwd=ROOT)
        if not report.exists():
            return {"passed": 0, "failures": [f"no report: exit status {done.returncode}"]}
        return parse(report)


def main(arguments: list[str]) -> int:
    """The exit status: 1 if a test failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=COMBINATIONS, metavar="PYTHON/TORCH")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    options = parser.parse_args(arguments)
    failed = 0
    for combination in options.only or COMBINATIONS:
        cells = {column: run(combination, column) for column in options.columns}
        failed += sum(len(cell["failures"]) for cell in cells.values())
        keep(combination, cells, len(COLUMNS), COMBINATIONS)
        for column, cell in cells.items():
            counts = f"{cell['passed']} passed, {len(cell['failures'])} failed"
            print(f"{combination:12} {column:16} {counts}", *cell["failures"], sep="\n    ")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
