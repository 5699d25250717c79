"""The benchmark of whole suites: what it calls right, and one run of it."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


def test_what_counts_as_right():
    import models

    x = torch.arange(3.0)
    assert models.compare({"a": x, "n": 3}, {"a": x + 1e-5, "n": 3}, 1e-3) == "pass"
    assert models.compare(x, x + 0.1, 1e-3).startswith("off by 1.0e-01")
    assert models.compare([x], (x,), 1e-3) == "another structure"
    assert models.compare(x, x.double(), 1e-3) == "another kind of tensor"
    assert models.compare((x, 1), (x, 2), 1e-3) == "2 instead of 1"
    assert models.compare(x * 1000, x * 1000 + 0.5, 1e-3) == "pass", "relative to the largest"
    found = {"accuracy": "pass", "seconds": {"eager": [2.0, 4.0], "framejit": [1.0, 2.0]}}
    row = models.row_of("hf", "bert", found)
    assert row["speedup"] == "2.000" and row["ratio"] == "" and row["eager_ms"] == "3000.000"
    bad = models.row_of("hf", "t5", {"error": "ValueError: no"})
    assert bad["accuracy"] == "ValueError: no"
    text = models.summary([row, bad])
    assert text == "1 of 2 models agree with eager mode; 2.00 x over eager (geometric mean of 1)"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run(tmp_path):
    pytest.importorskip("transformers")
    path = tmp_path / "speedups.csv"
    command = [sys.executable, "-W", "ignore", BENCHMARKS / "models.py", "--suite", "hf"]
    options = ["--models", "gpt2", "t5", "--backend", "eager", "--speedup", "--csv", path]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 models agree with eager mode" in done.stdout
    rows = list(csv.DictReader(path.open()))
    assert [row["model"] for row in rows] == ["gpt2", "t5"]
    assert all(float(row["speedup"]) > 0 and float(row["ratio"]) > 0 for row in rows)
