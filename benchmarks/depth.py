"""What a further layer costs: models of equal layers, few and many, framejit and torch.compile.

Per model and compiler, in processes of their own and in turn: the seconds of a capture (a backend
that does nothing) and of a first call with Inductor from empty caches, at several depths; per
further layer that is the slope between the smallest depth and the largest, in CPU seconds of the
process and its children, and in MiB that a capture leaves in use. Steady state is the graph that
framejit gives to Inductor by itself (with regions where these pay) against its flat graph, in one
process and in turn: the ratio is above 1 where the former is slower.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

#: Budgets per further layer (docs/architecture.md): capture against the first layer's, capture and
#: first call against torch.compile's.
FIRST_LAYER, CAPTURE, FIRST_CALL = 1 / 10, 1 / 40, 1 / 8


def llama(layers: int) -> Any:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=128, use_cache=False,
    )  # fmt: skip
    return LlamaModel(config), (torch.randint(0, 128, (2, 16)),)


def bert(layers: int) -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=64, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=128,
        vocab_size=128, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertModel(config), (torch.randint(0, 128, (2, 16)),)


def vit(layers: int) -> Any:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=64, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=128,
        image_size=32, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return ViTModel(config), (torch.randn(2, 3, 32, 32),)


class Residual(nn.Module):
    """A basic block of a residual network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.first(x)))
        return torch.relu(x + self.norm2(self.second(y)))


def resnet(layers: int) -> Any:
    return nn.Sequential(*[Residual(16) for _ in range(layers)]), (torch.randn(2, 16, 16, 16),)


class Experts(nn.Module):
    """A block of a mixture of experts: each token goes to the two experts that it weighs most."""

    def __init__(self, width: int = 64, count: int = 4) -> None:
        super().__init__()
        self.norm, self.inner = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 2 * width) / 16)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) / 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2)
                   for part in self.qkv(self.norm(x)).chunk(3, -1))  # fmt: skip
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.inner(x)
        weights, chosen = torch.topk(torch.softmax(self.gate(y), -1), 2)
        kept = torch.zeros_like(self.gate(y)).scatter(-1, chosen, weights)
        hidden = torch.einsum("btw,ewh->bteh", y, self.up)
        made = torch.einsum("bteh,ehw->btew", nn.functional.silu(hidden), self.down)
        return x + (made * kept.unsqueeze(-1)).sum(2)


def mixture(layers: int) -> Any:
    return nn.Sequential(*[Experts() for _ in range(layers)]), (torch.randn(2, 16, 64),)


class Rectified(nn.Module):
    """A block of a perceptron that ends in what backward needs a mask of."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.up(x)))
        return torch.relu(x + self.norm2(self.down(y)))


def perceptron(layers: int) -> Any:
    return nn.Sequential(*[Rectified() for _ in range(layers)]), (torch.randn(1024, 256),)


MODELS: dict[str, Callable[[int], Any]] = {
    "Llama": llama, "BERT": bert, "ViT": vit, "residual": resnet, "mixture": mixture,
    "perceptron": perceptron,
}  # fmt: skip


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def nothing(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    return gm.forward


def first_call(name: str, layers: int, compiler: str, backend: Any, train: bool) -> float:
    """CPU seconds of the first call (and backward), beyond those of an eager one."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, TORCHINDUCTOR_COMPILE_THREADS="1")
        cases.compile_with(compiler, lambda x: x + 1, nothing)(torch.ones(2))  # what it imports
        model, args = MODELS[name](layers)
        model.train(train)

        def run(function: Any) -> None:
            with torch.set_grad_enabled(train):
                result = function(*args)
                result = result if isinstance(result, torch.Tensor) else result[0]
                if train:
                    result.square().mean().backward()

        run(model)
        started = cpu_seconds()
        run(model)
        eager = cpu_seconds() - started
        compiled = cases.compile_with(compiler, model, backend)
        started = cpu_seconds()
        run(compiled)
        return max(0.0, cpu_seconds() - started - eager)


def package_size(name: str, layers: int) -> float:
    """Bytes of a package of the model with Inductor."""
    import framejit

    torch.manual_seed(0)
    model, args = MODELS[name](layers)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=f"{folder}/cache")
        compiled = framejit.compile(model.eval(), backend="inductor")
        compiled(*args)
        compiled.save_package(f"{folder}/package")
        path = Path(folder, "package")
        files = [path] if path.is_file() else path.rglob("*")
        return float(sum(file.stat().st_size for file in files if file.is_file()))


def steady(name: str, layers: int, train: bool) -> float:
    """The median of the ratios of the time of a call to that of a call of the flat graph."""
    import framejit

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, args = MODELS[name](layers)
    model.train(train)
    ratios = []
    with torch.set_grad_enabled(train):
        calls = []
        for options in (None, {"regions": False}):
            compiled = framejit.compile(model, backend="inductor", options=options)

            def call(compiled: Any = compiled) -> None:
                result = compiled(*args)
                result = result if isinstance(result, torch.Tensor) else result[0]
                if train:
                    result.square().mean().backward()

            calls.append(call)
        for _ in range(15):
            usual, flat = [cases.seconds_per_call(call, 0.1) for call in calls]
            ratios.append(usual / flat)
    return statistics.median(ratios)


def resident() -> float:
    """MiB of this process that are in memory."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(name: str, layers: int, compiler: str) -> float:
    """MiB that a capture without gradients leaves in use."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cases.compile_with(compiler, lambda x: x + 1, nothing)(torch.ones(2))
    model, args = MODELS[name](layers)
    model.eval()
    with torch.no_grad():
        model(*args)
        compiled = cases.compile_with(compiler, model, nothing)
        gc.collect()
        before = resident()
        compiled(*args)
        gc.collect()
        return resident() - before


def slopes(depths: list[int], runs: int, measure: Callable[[int, str], float]) -> dict[str, Any]:
    """Per compiler: the medians at each depth of what ``measure(layers, compiler)`` finds, and what
    a further layer adds."""
    found: dict[str, Any] = {}
    for compiler in cases.COMPILERS:
        medians = []
        for layers in depths:
            results = [
                cases.in_fork(lambda n=layers, c=compiler: measure(n, c))  # type: ignore[misc]
                for _ in range(runs)
            ]
            bad = [one for one in results if isinstance(one, dict)]
            medians.append(bad[0] if bad else cases.median(results))
        if any(isinstance(one, dict) for one in medians):
            found[compiler] = {"medians": medians, "further": float("nan")}
            continue
        further = (medians[-1] - medians[0]) / (depths[-1] - depths[0])
        found[compiler] = {"medians": medians, "further": max(further, 0.0)}
    return found


def add_rows(table: Table, name: str, what: str, found: dict[str, Any], budget: float = 0) -> None:
    ours, peers = [found[compiler]["further"] for compiler in cases.COMPILERS]
    shown = [
        " ".join(f"{m:.2f}" if isinstance(m, float) else "error" for m in one["medians"])
        for one in found.values()
    ]
    ratio = f"1/{peers / ours:.1f}" if ours > 0 else "0"
    limit = f"1/{1 / budget:.0f}" if budget else ""
    table.add_row(name, what, *shown, f"{ours:.4f}", f"{peers:.4f}", ratio, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--depths", nargs="*", type=int, default=[4, 8, 32, 128])
    parser.add_argument("--inductor-depths", nargs="*", type=int, default=[4, 32])
    parser.add_argument("--what", nargs="*", default=["capture", "inference", "training", "steady"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="write the figures to this file, too")
    options = parser.parse_args()
    cases.prefetch()
    console = Console(width=140)
    table = Table(title=f"a further layer: CPU seconds, or MiB (medians of {options.runs})")
    for column in ("model", "what", "framejit by depth", "torch.compile", "further layer",
                   "torch.compile", "ratio", "budget"):  # fmt: skip
        table.add_column(column, justify="left" if column in ("model", "what") else "right")
    figures: dict[str, Any] = {}
    for name in options.models:
        figures[name] = {}
        if "capture" in options.what:
            found = slopes(
                options.depths, options.runs,
                functools.partial(first_call, name, backend=nothing, train=False),
            )  # fmt: skip
            figures[name]["capture"] = found
            add_rows(table, name, f"capture {options.depths}", found, CAPTURE)
        if "memory" in options.what:
            found = slopes(options.depths, 1, functools.partial(memory, name))
            figures[name]["memory"] = found
            add_rows(table, name, f"MiB {options.depths}", found)
        for train in (False, True):
            what = "training" if train else "inference"
            if what in options.what:
                found = slopes(
                    options.inductor_depths, 1,
                    functools.partial(first_call, name, backend="inductor", train=train),
                )  # fmt: skip
                figures[name][what] = found
                add_rows(table, name, f"{what} {options.inductor_depths}", found, FIRST_CALL)
        if "package" in options.what:
            sizes = [cases.in_fork(lambda n=n: package_size(name, n)) for n in (4, 12)]  # type: ignore[misc]
            figures[name]["package"] = sizes
            console.print(name, "package, bytes at 4 and 12 layers:", sizes)
        if "steady" in options.what:
            ratios = [cases.in_fork(lambda t=t: steady(name, 8, t)) for t in (False, True)]  # type: ignore[misc]
            figures[name]["steady"] = ratios
            console.print(name, "against the flat graph, inference and training:", ratios)
    console.print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
