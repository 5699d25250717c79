"""The table of names is complete for this Python, and every row of it is true."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path

import names
import pytest
import torch
from names import NAMES, NEWER, Break

from checking import check
from framejit.report import events

X = torch.arange(6.0).reshape(2, 3)
#: What ``site`` puts into builtins for the interactive prompt.
OF_SITE = {"copyright", "credits", "exit", "help", "license", "quit"}


def is_there(module, name):
    """Not so where this release of CPython does not have the name yet."""
    return f"{module}.{name}" not in NEWER or hasattr(importlib.import_module(module), name)


ROWS = [
    pytest.param(module, name, row, id=f"{module}.{name}")
    for module, table in NAMES.items() for name, row in table.items() if is_there(module, name)
]  # fmt: skip


@pytest.mark.parametrize("module", NAMES)
def test_complete(module):
    real = importlib.import_module(module)
    public = getattr(real, "__all__", None)
    if public is None:
        public = [name for name in dir(real) if not name.startswith("_")]
    optional = OF_SITE if module == "builtins" else set()
    known = {name for name in NAMES[module] if is_there(module, name)}
    assert set(public) | optional == known | optional


@pytest.mark.parametrize("module, name, row", ROWS)
def test_row(module, name, row, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("text\n" * 4))
    monkeypatch.setattr(sys, "breakpointhook", lambda *args: None)
    with events.recording(events.GraphBreak) as breaks:
        if isinstance(row, Break):
            check(row.program, X, graphs=1)
        else:
            check(row, X, graphs=1)
    reasons = [event.reason for event in breaks]
    if isinstance(row, Break):
        assert any(row.reason in reason for reason in reasons), reasons
    else:
        assert not reasons


@pytest.mark.parametrize("module, name, row", ROWS)
def test_the_program_uses_the_name(module, name, row):
    program = row.program if isinstance(row, Break) else row
    text, todo, seen = "", [program], set()
    while todo:
        part = todo.pop()
        text += inspect.getsource(part)
        code = getattr(part, "__code__", None)
        for used in code.co_names if code is not None else ():
            found = inspect.unwrap(getattr(names, used, len))
            if inspect.isfunction(found) or inspect.isclass(found):
                if used not in seen and found.__module__ == "names":
                    seen.add(used)
                    todo.append(found)
    assert re.search(rf"\b{name}\b", text.replace(f'"{name}":', ""))


def test_the_page_is_current():
    script = Path(__file__).parents[2] / "docs" / "make_coverage.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run python docs/make_coverage.py"
