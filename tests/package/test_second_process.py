"""What one process compiled runs in another one: nothing is captured, nothing is compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path

import package_programs
import pytest

PROGRAMS = Path(package_programs.__file__)


def process(mode, directory, backend, names=(), script=PROGRAMS):
    """Run all programs in a process of their own; the rows it reports, by name."""
    caches = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(Path(directory) / f"caches-{mode}"))
    done = subprocess.run(
        [sys.executable, str(script), mode, str(directory), backend, *names],
        capture_output=True, text=True, timeout=1500, env=caches, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("#")]
    return {row["name"]: row for row in rows}


#: Inductor compiles for seconds: some programs only.
WITH_INDUCTOR = ("closure", "mutation", "sizes", "three_modes", "training")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module", params=["eager", "aot_eager", "inductor", "inductor, warm"])
def rows(request, base):
    """Warm: the package is saved by a process that found everything in Inductor's caches."""
    backend, _, warm = request.param.partition(", ")
    directory = base / backend
    names = WITH_INDUCTOR if backend == "inductor" else ()
    for _ in range(2 if warm and not directory.exists() else 1):
        directory.mkdir(exist_ok=True)
        saved = process("save", directory, backend, names)
        assert all(row["right"] and row["captured"] for row in saved.values()), saved
    return backend, process("load", directory, backend, names)


@pytest.mark.parametrize("name", package_programs.PROGRAMS)
def test_the_second_process_traces_nothing(rows, name):
    backend, loaded = rows
    if backend == "inductor" and name not in WITH_INDUCTOR:
        pytest.skip("run with the other backends")
    row = loaded[name]
    assert row["right"]
    assert row["captured"] == []
    if backend != "aot_eager":
        assert row["compiled"] == 0
        assert row["modules"] == [] or name == "optimizer"
    else:  # a backend without artefacts compiles the saved graphs
        assert row["compiled"] > 0
