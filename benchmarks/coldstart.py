"""From ``import torch`` to the first result of BERT through Inductor, in a new process.

``torch.compile`` with all its caches warm, against a framejit package, in one run; and the package
once more in a process whose caches are empty. ``python benchmarks/coldstart.py [--layers 12]``
Every figure is the median of several processes; making the model is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = r"""
import json, sys, time, warnings
warnings.filterwarnings("ignore")
mode, path, layers = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.path.insert(0, sys.argv[4])
import torch
from cases import bert
torch.manual_seed(0)
model, args, _ = bert(layers)
known = set(sys.modules)
with torch.no_grad():
    started = time.perf_counter()
    if mode == "torch.compile":
        compiled = torch.compile(model)
    else:
        import framejit
        compiled = framejit.compile(model)
        if mode == "load":
            compiled.load_package(path)
    result = compiled(*args)[0]
    seconds = time.perf_counter() - started
    if mode == "save":
        compiled.save_package(path)
    difference = float((result - model(*args)[0]).abs().max())
slow = [m for m in ("torch._dynamo", "torch._inductor", "sympy") if m in set(sys.modules) - known]
print(json.dumps({"seconds": seconds, "difference": difference, "imported": slow}))
"""


def child(mode: str, path: Path, layers: int, cache: str | None = None) -> dict[str, object]:
    """One process; ``cache`` is an empty folder for Inductor's files."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # byte code is there once it is installed
    if cache is not None:
        environment |= {"TORCHINDUCTOR_CACHE_DIR": cache, "CXX": "/bin/false"}
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, mode, str(path), str(layers), here],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--processes", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bert"
        for mode in ("save", "torch.compile"):
            child(mode, path, options.layers)
        print(f"BERT, {options.layers} layers; the package has {path.stat().st_size:,} bytes")
        empty = str(Path(folder) / "empty")
        rows = {
            "torch.compile, caches warm": ("torch.compile", None),
            "framejit, from a package": ("load", None),
            "framejit, caches empty, no C++ compiler": ("load", empty),
        }
        medians = {}
        for label, (mode, cache) in rows.items():
            runs = [child(mode, path, options.layers, cache) for _ in range(options.processes)]
            medians[label] = statistics.median(float(str(run["seconds"])) for run in runs)
            imported = ", ".join(runs[0]["imported"])  # type: ignore[arg-type]
            note = f"  (imports {imported})" if imported else ""
            print(f"{label:42} {medians[label]:6.3f} s{note}")
        slow, fast, _ = medians.values()
        print(f"ratio {slow / fast:.1f}")


if __name__ == "__main__":
    main()
