"""Programs as engineers write them, by people who knew neither these tests nor the fuzzer.

Each file defines ``program`` and the texts of its arguments, ``CALLS``. It runs as plain Python and
compiled; results, state, output and exceptions are compared as the fuzzer does it.
"""

from __future__ import annotations

import gc
import sys
import types
from pathlib import Path

import pytest
from program_writer import Program
from runner import run

FILES = sorted(Path(__file__).parent.glob("*_[0-9][0-9][0-9].py"))
#: What is known to differ, and why.
OPEN: dict[str, str] = {}


#: Some whose gradients are in parts of graphs that AOTAutograd compiles.
WITH_AOT = [path for path in FILES if path.stem in ("training_086",)]


def compare(path: Path, mode: str) -> None:
    """Assert that a program does the same compiled."""
    text = path.read_text()
    module = sys.modules["program"] = types.ModuleType("program")
    exec(compile(text, str(path), "exec"), module.__dict__)
    calls = [f"program:{call}" for call in module.__dict__["CALLS"]]
    seed = sum(map(ord, path.stem))
    gc.freeze()  # what earlier programs left; some programs collect after each step
    report = run(Program(text, calls, ""), mode, seed, ends=True)
    assert not report.failure, report.failure
    assert report.calls > report.raised, "nothing but errors"


def some(files: list[Path]) -> list[object]:
    """As parameters; what is open is expected to fail."""
    return [
        pytest.param(
            path, id=path.stem,
            marks=[pytest.mark.xfail(reason=OPEN[path.stem], strict=False)]
            if path.stem in OPEN else [],
        )
        for path in files
    ]  # fmt: skip


@pytest.mark.parametrize("path", some(FILES[::8]))
def test_one_in_eight(path: Path) -> None:
    compare(path, "plain")


@pytest.mark.parametrize("path", some(WITH_AOT))
def test_with_aotautograd(path: Path) -> None:
    compare(path, "aot")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["plain", "hook", "cut"])
@pytest.mark.parametrize("path", some(FILES))
def test_all(path: Path, mode: str) -> None:
    compare(path, mode)
