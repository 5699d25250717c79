"""What one process compiled runs in another one: nothing is captured, nothing is compiled."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import package_programs
import pytest
import torch

import framejit

PROGRAMS = Path(package_programs.__file__)

pytestmark = pytest.mark.timeout(600)  # the first test with a backend waits for two processes


COMPILERS = ("g++", "c++", "gcc", "cc", "clang++", "clang")


def process(mode, directory, backend, names=(), script=PROGRAMS):
    """Run all programs in a process of their own; the rows it reports, by name.

    Packages are loaded in another virtual environment than they were made in, with empty caches,
    and no C++ compiler may be started there.
    """
    caches = str(Path(directory) / f"caches-{mode}")
    settings = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=caches)
    paths = [str(Path(__file__).parents[1]), settings.get("PYTHONPATH", "")]
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    python, called = sys.executable, Path(directory) / "compiler was called"
    if mode == "save":  # not tried out by compiling for each kind of vectors, with empty caches
        settings["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    if mode == "load":
        shutil.rmtree(caches, ignore_errors=True)
        python = environment(Path(directory) / "elsewhere", called, settings)
    done = subprocess.run(
        [python, str(script), mode, str(directory), backend, *names],
        capture_output=True, text=True, timeout=1500, env=settings, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert not called.exists()
    rows = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("#")]
    return {row["name"]: row for row in rows}


def environment(folder, called, settings):
    """The interpreter of a virtual environment in ``folder``: the libraries of this process have
    other paths there, framejit too, and compilers only leave a mark that they were started."""
    if not folder.exists():
        venv.create(folder, symlinks=True, with_pip=False)
        (site,) = folder.glob("lib/python*/site-packages")
        for entry in Path(torch.__file__).parents[1].iterdir():
            if not (site / entry.name).exists() and not entry.name.startswith("__editable__"):
                (site / entry.name).symlink_to(entry)
        (folder / "src").symlink_to(Path(framejit.__file__).parents[1])
        for name in COMPILERS:
            (folder / "bin" / name).write_text(f"#!/bin/sh\ntouch '{called}'\nexit 1\n")
            (folder / "bin" / name).chmod(0o755)
    settings["PATH"] = f"{folder / 'bin'}{os.pathsep}{settings.get('PATH', '')}"
    settings["PYTHONPATH"] = f"{folder / 'src'}{os.pathsep}{Path(__file__).parents[1]}"
    settings.pop("CXX", None)
    return str(folder / "bin" / "python")


#: Inductor compiles for seconds: some programs only.
WITH_INDUCTOR = (
    "closure", "constants", "grad_modes", "hooks", "mutation", "sizes", "three_modes", "training",
)  # fmt: skip


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
    assert row["prefix"] != sys.prefix and row["torch"] != torch.__file__
    assert row["right"]
    assert row["captured"] == []
    if backend != "aot_eager":
        assert row["compiled"] == 0
        assert row["modules"] == [] or name == "optimizer"
    else:  # a backend without artefacts compiles the saved graphs
        assert row["compiled"] > 0
