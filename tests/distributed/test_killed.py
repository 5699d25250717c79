"""A process that ends in the middle of a compilation: the others end with one error, and what is on
disk serves the next job."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import framejit

SCRIPT = Path(__file__).parent / "scripts" / "killed.py"
SOURCE = str(Path(framejit.__file__).parents[1])
#: How long a job may take, in seconds.
PATIENCE = 100


def _variables(folder, where):
    return {
        **os.environ, "PYTHONPATH": SOURCE, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
        "KILLED": where, "FRAMEJIT_PROFILE": str(folder / "profile"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), "STORE": str(folder / f"store {where}"),
    }  # fmt: skip


def _job(folder, where, backend="aot_eager"):
    """Exit status and standard error of each of two processes that nobody looks after."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT), str(folder), backend]
    processes = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**_variables(folder, where), "RANK": str(rank), "WORLD_SIZE": "2"},
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        told = [process.communicate(timeout=PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [
        (process.returncode, out, err) for process, (out, err) in zip(processes, told, strict=True)
    ]


def _check_error(survivor, killed):
    assert killed[0] == -9
    status, _, text = survivor
    assert status == 1
    assert text.count("Traceback (most recent call last)") == 1, text
    assert "internal error" not in text
    assert re.search(r"RuntimeError: .*(closed by peer|reset by peer)", text), text


def _check_files(folder):
    """What is there is whole, but for files of which nobody knows the name."""
    found = {path.name for path in folder.iterdir()}
    assert not [name for name in found if name.startswith("model-1.")]
    for path in folder.glob("model-0.package"):
        assert path.stat().st_size > 1000


def test_the_others_end_with_one_error(tmp_path):
    for where in ("capture", "backend"):
        _check_error(*_job(tmp_path, where))
    survivor, killed = _job(tmp_path, "collective")
    _check_error(survivor, killed)
    before, _, _ = SCRIPT.read_text().partition("  # the others are asked here")
    assert f"{SCRIPT}:{before.count(chr(10)) + 1}, in added" in survivor[2]
    assert [job[:2] for job in _job(tmp_path, "")] == [(0, "done, whole: True\n")] * 2


@pytest.mark.slow
def test_nothing_on_disk_is_broken(tmp_path):
    for where in ("backend", "files"):
        _check_error(*_job(tmp_path, where, "inductor"))
        _check_files(tmp_path)
    assert (tmp_path / "profile").read_text().startswith("{")
    for _ in range(2):  # the second job loads what the first one has saved
        assert [job[:2] for job in _job(tmp_path, "", "inductor")] == [
            (0, "done, whole: True\n")
        ] * 2
    assert (tmp_path / "model-1.package").exists()


@pytest.mark.slow
def test_a_launcher_says_which_process_it_was(tmp_path):
    command = [
        sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--local-addr", "localhost",
        str(SCRIPT), str(tmp_path), "inductor",
    ]  # fmt: skip
    run = subprocess.run(
        command, env=_variables(tmp_path, "backend"), capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr.count("Traceback (most recent call last)") == 1
    root = run.stderr.partition("Root Cause")[2]
    assert "rank      : 1" in root and "SIGKILL" in root
