"""Test suites of other libraries, as they are: what passes with `torch.compile`, passes with us?

Suites of `benchmarks/suites.py` that run pytest: the tests of a library that compile something, in
one process with `torch.compile` as it is and in another after `framejit.install()`. The tests come
from unpacked sdists or installed packages, in the folder that ``--tests`` names:

    pip install --target F einops; pip download --no-binary :all: --no-deps -d F accelerate
    tar xzf F/accelerate-*.tar.gz -C F
    python benchmarks/suites.py einops accelerate --tests F

As a plugin of pytest (``-p outside``), this module installs framejit and writes what tests do.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOUND = ROOT / "build" / "outside.json"
#: A suite of one library takes at most so many seconds.
PATIENCE = 900


@dataclasses.dataclass(frozen=True)
class Library:
    """Where its tests are below the folder, and which of them compile something."""

    folder: str
    files: tuple[str, ...]
    chosen: str = "compil or dynamo"
    #: Differences that are meant, with the reason.
    meant: tuple[tuple[str, str], ...] = ()


NAME = "asks for the name of the class: compiled modules keep that of the module"
LIBRARIES = {
    "einops": Library("einops", ("tests/test_ops.py", "tests/test_other.py")),
    "accelerate": Library(
        "accelerate-*",
        tuple(
            f"tests/test_{one}.py" for one in ("compile", "modeling_utils", "utils", "accelerator")
        ),
        meant=(
            ("test_instance_bound_methods_are_rebound", NAME),
            ("test_no_instance_bound_methods_is_a_no_op", NAME),
        ),
    ),
    "tensordict": Library("tensordict-*", ("test/compile/test_compile.py",), chosen=""),
}


def outcomes(library: Library, folder: Path, ours: bool) -> dict[str, dict[str, str]]:
    """What each test does: its outcome, and the last line of its error."""
    [place] = [one for one in folder.glob(library.folder) if one.is_dir()]
    answer = ROOT / "build" / "outside_outcomes.jsonl"
    answer.parent.mkdir(exist_ok=True)
    answer.write_text("")
    paths = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(folder)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
        "OUTSIDE_ANSWER": str(answer),
        "OUTSIDE_WITH": "framejit" if ours else "torch",
        "EINOPS_TEST_BACKENDS": "numpy,torch",
        "HF_HUB_OFFLINE": "1",
    }
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "outside", "-p", "no:cacheprovider",
        "-p", "no:xdist", *library.files, *(["-k", library.chosen] if library.chosen else []),
    ]  # fmt: skip
    subprocess.run(
        command, cwd=place, env=environment, timeout=PATIENCE, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    lines = map(json.loads, answer.read_text().splitlines())
    return {one["test"]: one for one in lines}


def run(suite: str, folder: Path) -> None:
    """Run the tests of a library both ways, and say what is not as it should be."""
    library = LIBRARIES[suite]
    theirs, ours = (outcomes(library, folder, ours) for ours in (False, True))
    passed = [test for test, one in theirs.items() if one["outcome"] == "passed"]
    failed = [test for test in passed if ours.get(test, {}).get("outcome") != "passed"]
    meant = dict(library.meant)
    found: dict[str, Any] = {
        "tests": sum(one["outcome"] != "skipped" for one in theirs.values()),
        "skipped": sum(one["outcome"] == "skipped" for one in theirs.values()),
        "torch": len(passed),
        "framejit": sum(one["outcome"] == "passed" for one in ours.values()),
        "problems": {
            test.partition("::")[2]: meant.get(test.rpartition("::")[2])
            or ours.get(test, {}).get("error", "did not run")
            for test in failed
        },
    }
    known = known_results() | {suite: found}
    FOUND.write_text(json.dumps(known, indent=1) + "\n")
    print(suite, json.dumps(found, indent=1), flush=True)


def known_results() -> dict[str, Any]:
    """What was found so far, of each suite the newest."""
    known: dict[str, Any] = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    return known


# -- as a plugin of pytest -------------------------------------------------------------------------


def pytest_configure() -> None:
    """Before tests are imported: some compile when they are."""
    if os.environ.get("OUTSIDE_WITH") == "framejit":
        import framejit

        framejit.install()


def pytest_runtest_logreport(report: Any) -> None:
    """Write what a test did, once."""
    if report.when == "call" or report.outcome != "passed":
        if report.when == "teardown":
            return
        error = getattr(getattr(report.longrepr, "reprcrash", None), "message", "")
        one = {"test": report.nodeid, "outcome": report.outcome, "error": _short(error)}
        with open(os.environ["OUTSIDE_ANSWER"], "a") as file:
            print(json.dumps(one), file=file)


def _short(error: str) -> str:
    """The line of an error that says why."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    reasons = [line for line in lines if "cannot capture this" in line]
    return (reasons or lines or [""])[0][:200]
