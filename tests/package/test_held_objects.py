"""Objects of every kind that guards, continuations and graphs hold go through a package: nothing is
captured again in a new process, and another object in the same place is noticed there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import held_objects
import pytest
import torch

import framejit

pytestmark = pytest.mark.timeout(600)  # the first test waits for two processes


def _process(mode, directory):
    """What a process with another order of hashes says about each program."""
    settings = {**os.environ, "PYTHONHASHSEED": "1" if mode == "save" else "2"}
    done = subprocess.run(
        [sys.executable, held_objects.__file__, mode, str(directory)],
        capture_output=True, text=True, timeout=500, env=settings, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("#")]
    return {row["name"]: row for row in rows}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    directory = tmp_path_factory.mktemp("held")
    return _process("save", directory), _process("load", Path(directory))


@pytest.mark.parametrize("kind", held_objects.KINDS)
def test_what_a_program_holds_goes_through_a_package(rows, kind):
    saved, loaded = rows
    names = [name for name, *_ in held_objects.programs() if name.rsplit(", ", 2)[0] == kind]
    assert names
    for name in names:
        row = saved[name]
        assert row.get("right") and row["other"] and row["graphs"] and row["captured"], (name, row)
        assert not row["refused"] and not row["warned"], (name, row)
        row = loaded[name]
        assert row.get("right") and row["other"], (name, row)
        assert not row["captured"] and not row["graphs"] and not row["warned"], (name, row)


def makes(x):
    class Local:
        def times(self, x):
            return x * 3

    return Local().times(x)


def test_what_cannot_be_saved_is_named_with_its_place(tmp_path):
    compiled = framejit.compile(makes, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(3)), makes(torch.ones(3)))
    named = r"it refers to .*Local, which no guard leads to \(class .*Local\)"
    with pytest.raises(framejit.exc.PackageError, match=named):
        with pytest.warns(framejit.exc.FramejitWarning, match="it refers to .*Local"):
            compiled.save_package(tmp_path / "package")
