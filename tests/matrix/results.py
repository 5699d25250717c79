"""What the tests of one combination come to, and the file that keeps it for the documents.

In: pytest's reports (junit). Out: docs/releases.json, from which docs/make_releases.py makes the
page.
"""

from __future__ import annotations

import collections
import datetime
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "releases.json"


def parse(report: Path) -> dict[str, Any]:
    """Counts of one run of pytest, names of failures, and reasons of skips with their numbers."""
    passed, failures, reasons = 0, [], collections.Counter[str]()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if (skip := case.find("skipped")) is not None:
            reasons[re.sub(r"^\S+:\d+: ", "", skip.get("message", ""))] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed += 1
    return {"passed": passed, "failures": failures, "skipped": dict(sorted(reasons.items()))}


def _commit() -> str:
    """The commit that is tested, with a + where the folder has changes on top (but results)."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout

    changed = git("status", "--porcelain", "--", ".", ":!docs/releases.*")
    return git("rev-parse", "--short", "HEAD").strip() + ("+" if changed.strip() else "")


def keep(combination: str, cells: dict[str, Any], columns: int, order: tuple[str, ...]) -> None:
    """Put a row into the file, beside those of other combinations, and renew the page. Cells of
    fewer than all ``columns`` go into the row that is there, each with its own commit."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if len(cells) == columns:
        today = datetime.date.today().isoformat()
        results[combination] = {"commit": _commit(), "date": today, "columns": cells}
    elif combination in results:
        tested = {name: {**cell, "commit": _commit()} for name, cell in cells.items()}
        results[combination]["columns"].update(tested)
    kept = {name: results[name] for name in order if name in results}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    subprocess.run([sys.executable, ROOT / "docs" / "make_releases.py"], check=True)
