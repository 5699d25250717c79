"""Packages of many models: saved by one process, loaded and run by another.

``python benchmarks/packages.py --zoo FOLDER [--cases hf/bert,timm/] [--backend eager]``: FOLDER
has ``zoo.py`` with ``CASES``, ``run_zoo.py`` and ``compare.py``. A case is good when the second
process gets what plain Python gets, captures no frame and compiles no graph. Each case runs in a
child of its own; saving and loading have different parents, so nothing depends on addresses or
hash seeds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")


def run_case(mode: str, name: str, folder: Path, backend: str) -> dict[str, Any]:
    """Call a case with all its batches, saving or loading what is compiled in it."""
    import run_zoo
    import zoo
    from compare import flatten_cmp

    import framejit
    from framejit.report import events

    case = zoo.CASES[name]
    row: dict[str, Any] = {"case": name, "mode": mode, "good": False}
    batches = list(case.batches)
    inputs = {batch: case.build(batch)[1:] for batch in batches}
    calls = [batches[0], *batches]
    keep = "ValueError" if name == "prog/raises" else None
    made: list[Any] = []

    def compiled(target: Any) -> Any:
        one = framejit.compile(target, backend=backend)
        path = folder / f"{name.replace('/', '-')}.{len(made)}"
        if mode == "load":
            started = time.perf_counter()
            one.load_package(path)
            row["load_s"] = row.get("load_s", 0) + time.perf_counter() - started
        made.append((one, path))
        return one

    reference, _, _ = case.build(batches[0])
    expected = [run_zoo.call(case, reference, *inputs[b], keep)[0] for b in calls]
    target, _, _ = case.build(batches[0])
    with (
        warnings.catch_warnings(record=True) as warned,
        events.recording(events.CaptureStart, events.GraphCompiled, events.FrameSkipped) as seen,
    ):
        warnings.simplefilter("always")
        if hasattr(target, "apply_compile"):
            target.apply_compile(compiled)
        else:
            target = compiled(target)
        worst = 0.0
        for number, batch in enumerate(calls):
            got, seconds = run_zoo.call(case, target, *inputs[batch], keep)
            if number == 0:
                row["first_s"] = seconds
            difference, mismatch = flatten_cmp(expected[number], got)
            worst = max(worst, difference)
            if mismatch:
                row.setdefault("mismatch", f"call {number}: {mismatch}")
        captured = [e.name for e in seen if isinstance(e, events.CaptureStart)]
        row["skipped"] = [
            (e.name, e.reason) for e in seen if isinstance(e, events.FrameSkipped)
        ]  # fmt: skip
        row["captured"], row["worst"] = captured, worst
        row["compiled"] = sum(isinstance(e, events.GraphCompiled) for e in seen)
        if mode == "save":
            for one, path in made:
                one.save_package(path)
            row["bytes"] = sum(path.stat().st_size for _, path in made)
    row["warnings"] = sorted(
        {str(w.message)[:600] for w in warned if "Framejit" in w.category.__name__}
    )  # fmt: skip
    right = worst <= case.tol and "mismatch" not in row
    nothing_new = not captured and not row["compiled"]
    row["good"] = right and (mode == "save" or nothing_new)
    return row


def run_all(mode: str, names: list[str], folder: Path, backend: str, timeout: int) -> None:
    """Each case in a forked child; one JSON line per case."""
    import torch

    torch.set_num_threads(1)
    for module in ("tvstub", "transformers", "framejit"):  # in this order, once for all children
        importlib.import_module(module)
    for name in names:
        result = folder / "row.json"
        result.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            import signal

            signal.alarm(timeout)
            try:
                row = run_case(mode, name, folder, backend)
            except BaseException as error:  # whatever a case raises is its result
                text = f"{type(error).__name__}: {error}"
                row = {"case": name, "mode": mode, "good": False, "error": text[:500]}
                row["trace"] = traceback.format_exc()[-3000:]
            result.write_text(json.dumps(row))
            os._exit(0)
        os.waitpid(child, 0)
        lost = {"case": name, "mode": mode, "good": False, "error": "died or took too long"}
        print("#" + (result.read_text() if result.exists() else json.dumps(lost)), flush=True)


def process(
    mode: str, names: list[str], folder: Path, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """All cases in one mode, in a new interpreter; shows a line for each."""
    command = [sys.executable, __file__, "--mode", mode, "--folder", str(folder)]
    command += ["--zoo", options.zoo, "--cases", ",".join(names), "--backend", options.backend]
    command += ["--timeout", str(options.timeout)]
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / f"caches-{mode}")}
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("#"):
                rows.append(json.loads(line[1:]))
                show(rows[-1])
    return rows


def show(row: dict[str, Any]) -> None:
    """One line about a case."""
    text = f"{row['mode']:5}{'good' if row['good'] else 'BAD':5}{row['case']:34}"
    if "first_s" in row:
        text += f"{row['first_s']:7.2f} s"
    if not row["good"]:
        keys = ("captured", "compiled", "worst", "mismatch", "error", "warnings")
        text += "  " + "; ".join(f"{key} {row[key]}" for key in keys if row.get(key))
    print(text[:1200], flush=True)


def main() -> None:
    """Save with one process, load with another, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--cases", default="all")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--out", help="a file for the rows, one JSON line each")
    parser.add_argument("--mode", choices=["save", "load"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, options.zoo)
    from run_zoo import select_cases

    names = select_cases(options.cases)
    if options.mode:
        run_all(options.mode, names, Path(options.folder), options.backend, options.timeout)
        return
    with tempfile.TemporaryDirectory() as folder:
        saved = process("save", names, Path(folder), options)
        kept = [row["case"] for row in saved if row["good"]]
        loaded = process("load", kept, Path(folder), options)
    if options.out:
        Path(options.out).write_text("".join(json.dumps(row) + "\n" for row in saved + loaded))
    good = sum(row["good"] for row in loaded)
    print(f"{good} of {len(names)} cases run from a package with nothing traced or compiled")


if __name__ == "__main__":
    main()
