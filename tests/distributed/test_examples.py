"""The examples of the page about distributed training run under torchrun, in two processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import framejit

ROOT = Path(__file__).parents[2]


def _run(name, backend):
    """What one of the examples says: the number of graphs, and how far the losses are apart."""
    source = str(Path(framejit.__file__).parents[1])
    command = [
        sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--local-addr", "localhost",
        str(ROOT / "examples" / name), "--backend", backend, "--steps", "4",
    ]  # fmt: skip
    variables = {**os.environ, "PYTHONPATH": source, "GLOO_SOCKET_IFNAME": "lo"}
    run = subprocess.run(
        command, env={**variables, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=110,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = re.search(r"(\d+) graphs, apart (\S+)", run.stdout)
    assert found, run.stdout
    return int(found[1]), float(found[2])


@pytest.mark.parametrize(
    "name, graphs", [("ddp.py", 1), ("fsdp2.py", 4), ("tensor_parallel.py", 1)]
)
def test_examples(name, graphs):
    assert _run(name, "eager") == (graphs, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, graphs", [("ddp.py", 1), ("fsdp2.py", 2), ("tensor_parallel.py", 1)]
)
def test_examples_with_inductor(name, graphs):
    """Equal blocks share what was compiled; the first one has an input without a gradient."""
    found, apart = _run(name, "inductor")
    assert found == graphs and apart < 1e-5
