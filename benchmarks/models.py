"""Whole suites of models: right first, then how fast, against eager and torch.compile.

    python benchmarks/models.py --suite hf --speedup
    python benchmarks/models.py --suite timm --models resnet18 --speedup
    python benchmarks/models.py --suite zoo --path FOLDER          # a folder with zoo.py
    python benchmarks/models.py --suite torchbench --path FOLDER   # a checkout of pytorch/benchmark

Each model runs in a process of its own, with random weights, for inference on the CPU. Its results
are compared with eager mode; with ``--speedup`` models that agree are timed, in turn.
``speedups.csv`` gets a row per model, and the end says what it comes to.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cases
import torch
from torch.utils._pytree import tree_flatten

import torchvision_operators  # on the path since cases was imported

COLUMNS = ("suite", "model", "accuracy", "eager_ms", "framejit_ms", "torch_compile_ms", "speedup",
           "ratio")  # fmt: skip
#: A model with its positional and named arguments.
Program = tuple[Any, Sequence[Any], dict[str, Any]]

# -- suites: the names of the models, and a function that makes one -------------------------------


def hugging_face(path: str | None) -> dict[str, Callable[[], Program]]:
    import small_models as small

    makers = [small.bert, small.gpt2, small.llama, small.t5, small.vit, small.bart, small.clip,
              small.electra, small.mamba, small.mixtral]  # fmt: skip

    def made(make: Callable[[], Any]) -> Callable[[], Program]:
        def build() -> Program:
            model, inputs = make()
            return model.eval(), (), inputs

        return build

    return {make.__name__: made(make) for make in makers}


TIMM = ("resnet18", "resnet50", "mobilenetv3_small_050", "efficientnet_b0", "convnext_atto",
        "regnetx_002", "densenet121", "vit_tiny_patch16_224", "mixer_s32_224")  # fmt: skip


def timm_models(path: str | None) -> dict[str, Callable[[], Program]]:
    import timm

    def made(name: str) -> Callable[[], Program]:
        def build() -> Program:
            model = timm.create_model(name, pretrained=False).eval()
            return model, (torch.randn(2, *model.default_cfg["input_size"]),), {}

        return build

    return {name: made(name) for name in TIMM}


def zoo(path: str | None) -> dict[str, Callable[[], Program]]:
    """A module ``zoo`` with ``CASES``: by name, objects with ``kind`` and ``build(batch=)``."""
    if torchvision_operators.library is not None:  # the zoo declares them itself
        torchvision_operators.library._destroy()
    sys.path.insert(0, _folder(path, "zoo.py"))
    import zoo  # type: ignore[import-not-found]

    def made(case: Any) -> Callable[[], Program]:
        return lambda: case.build(batch=2)

    return {name: made(case) for name, case in zoo.CASES.items() if case.kind == "eval"}


def torchbench(path: str | None) -> dict[str, Callable[[], Program]]:
    folder = _folder(path, "torchbenchmark")
    sys.path.insert(0, folder)
    from torchbenchmark import load_model_by_name  # type: ignore[import-not-found]

    def made(name: str) -> Callable[[], Program]:
        def build() -> Program:
            model, inputs = load_model_by_name(name)(test="eval", device="cpu").get_module()
            named = dict(inputs) if isinstance(inputs, dict) else {}
            return model.eval(), () if named else inputs, named

        return build

    models = Path(folder, "torchbenchmark", "models")
    return {p.parent.name: made(p.parent.name) for p in sorted(models.glob("*/__init__.py"))}


def _folder(path: str | None, content: str) -> str:
    if path is None or not Path(path, content).exists():
        raise SystemExit(f"models.py: --path must name a folder with {content}, not {path}")
    return str(Path(path).resolve())


SUITES = {"hf": hugging_face, "timm": timm_models, "zoo": zoo, "torchbench": torchbench}

# -- one model -------------------------------------------------------------------------------------


def compare(wanted: Any, got: Any, tolerance: float) -> str:
    """ "pass", or how the results differ."""
    (one, first), (two, second) = tree_flatten(wanted), tree_flatten(got)
    if first != second:
        return "another structure"
    for a, b in zip(one, two, strict=True):
        if not isinstance(a, torch.Tensor):
            if a != b:
                return f"{b!r:.30} instead of {a!r:.30}"
        elif a.shape != b.shape or a.dtype != b.dtype:
            return "another kind of tensor"
        else:
            size = max(1.0, a.abs().max().item()) if a.numel() and a.is_floating_point() else 0.0
            if not torch.allclose(a, b, rtol=0, atol=tolerance * size, equal_nan=True):
                return f"off by {(a - b).abs().max().item():.1e}"
    return "pass"


def measure(build: Callable[[], Program], backend: str, speed: bool, runs: int) -> dict[str, Any]:
    """What one model does: its accuracy under each compiler and, if it is right, its times."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args, kwargs = build()
    calls = {"eager": model}
    found: dict[str, Any] = {"accuracy": "pass", "seconds": {}}
    with torch.no_grad():
        wanted = model(*args, **kwargs)
        for name in cases.COMPILERS if speed else cases.COMPILERS[:1]:
            calls[name] = cases.compile_with(name, model, backend)
            verdict = compare(wanted, calls[name](*args, **kwargs), 1e-3)
            if name == "framejit":
                found["accuracy"] = verdict
            if verdict != "pass":
                del calls[name]
        if not speed or found["accuracy"] != "pass":
            return found
        order = list(calls)
        seconds: dict[str, list[float]] = {name: [] for name in order}
        for turn in range(3 + runs):
            shift = turn % len(order)
            for name in order[shift:] + order[:shift]:
                started = time.perf_counter()
                calls[name](*args, **kwargs)
                seconds[name].append(time.perf_counter() - started)
    found["seconds"] = {name: all_[3:] for name, all_ in seconds.items()}
    return found


def row_of(suite: str, name: str, found: dict[str, Any]) -> dict[str, Any]:
    """A row of the CSV file."""
    seconds = found.get("seconds", {})
    row = dict.fromkeys(COLUMNS, "")
    row.update(suite=suite, model=name, accuracy=found.get("accuracy") or found["error"])
    for column, key in (("eager_ms", "eager"), ("framejit_ms", "framejit"),
                        ("torch_compile_ms", "torch.compile")):  # fmt: skip
        if key in seconds:
            row[column] = f"{statistics.median(seconds[key]) * 1e3:.3f}"
    for column, key in (("speedup", "eager"), ("ratio", "torch.compile")):
        if key in seconds and "framejit" in seconds:
            pairs = zip(seconds[key], seconds["framejit"], strict=True)
            row[column] = f"{statistics.median(a / b for a, b in pairs):.3f}"
    return row


def summary(rows: list[dict[str, Any]]) -> str:
    """Counts and geometric means."""
    right = sum(row["accuracy"] == "pass" for row in rows)
    text = f"{right} of {len(rows)} models agree with eager mode"
    for column, words in (("speedup", "over eager"), ("ratio", "over torch.compile")):
        values = [float(row[column]) for row in rows if row[column]]
        if values:
            mean = math.exp(statistics.fmean(map(math.log, values)))
            text += f"; {mean:.2f} x {words} (geometric mean of {len(values)})"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--suite", choices=SUITES, required=True)
    parser.add_argument("--path", help="where zoo.py or torchbenchmark lie")
    parser.add_argument("--models", nargs="*", help="some of the suite's models")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--speedup", action="store_true", help="time the models that agree")
    parser.add_argument("--runs", type=int, default=20, help="samples per model and candidate")
    parser.add_argument("--csv", default="speedups.csv")
    options = parser.parse_args()
    makers = SUITES[options.suite](options.path)
    unknown = sorted(set(options.models or ()) - makers.keys())
    if unknown:
        parser.error(f"the suite has no {', '.join(unknown)}; it has {', '.join(makers)}")
    rows = []
    for name in options.models or makers:
        found = cases.in_fork(
            lambda n=name: measure(makers[n], options.backend, options.speedup, options.runs)  # type: ignore[misc]
        )
        row = row_of(options.suite, name, found)
        rows.append(row)
        figures = "  ".join(f"{c}={row[c]}" for c in COLUMNS[3:] if row[c])
        print(f"{name:28} {row['accuracy']:20} {figures}", flush=True)
        with open(options.csv, "w", newline="") as file:  # each time: a long run may be stopped
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    print(f"{summary(rows)}; {options.csv}")
    return 0 if all(row["accuracy"] == "pass" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
