"""What a call costs where parameters are tensors made of tensors and nothing is computed: dispatch
and guards, for many parameters that are `DTensor`s, quantised, or plain.

The backend returns results computed once. Microseconds per warm call, medians of 3 runs, framejit
and torch.compile in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

import cases
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

RUNS = 3
#: What torch.compile takes is at least so many times as much.
TARGET = 15


class Quantised(torch.Tensor):
    """Whole numbers, scales per row, and how they were found."""

    @staticmethod
    def __new__(
        cls: Any, numbers: torch.Tensor, scales: torch.Tensor, block: tuple[int, int], bits: int
    ) -> torch.Tensor:
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scales.dtype)

    def __init__(
        self, numbers: torch.Tensor, scales: torch.Tensor, block: tuple[int, int], bits: int
    ) -> None:
        self.numbers, self.scales, self.block, self.bits = numbers, scales, block, bits

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["numbers", "scales"], (self.block, self.bits)

    @classmethod
    def __tensor_unflatten__(cls, inner: Any, context: Any, size: Any, stride: Any) -> torch.Tensor:
        return cls(inner["numbers"], inner["scales"], *context)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            one = args[0]
            return cls(func(one.numbers), func(one.scales), one.block, one.bits)
        plain = [a.numbers * a.scales if isinstance(a, cls) else a for a in args]
        return func(*plain, **(kwargs or {}))


class Chain(nn.Module):
    """Linear layers without biases, one parameter each."""

    def __init__(self, count: int, make: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        made = [nn.Parameter(make(torch.ones(4, 4)), requires_grad=False) for _ in range(count)]
        self.weights = nn.ParameterList(made)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight in self.weights:
            x = nn.functional.linear(x, weight)
        return x


def quantised(weight: torch.Tensor) -> torch.Tensor:
    return Quantised(weight.to(torch.int8), torch.ones(4, 1), (1, 4), 8)


def distributed(weight: torch.Tensor) -> torch.Tensor:
    """In a group of this process alone."""
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Replicate

    if not dist.is_initialized():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        store = dist.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    return DTensor.from_local(weight, dist.init_device_mesh("cpu", (1,)), [Replicate()])


KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda weight: weight,
    "quantised": quantised,
    "distributed": distributed,
}


def constant_backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    result = gm(*inputs)
    return lambda *args: result


def measure(kind: str, count: int, compiler: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    make = KINDS[kind]
    with torch.no_grad():
        model, x = Chain(count, make), torch.ones(2, 4)
        x = make(x) if kind == "distributed" else x
        compiled = cases.compile_with(compiler, model, constant_backend)
        return {"us": cases.seconds_per_call(lambda: compiled(x)) * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="of parameters")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", help="write the figures to this file, too")
    options = parser.parse_args()
    console = Console(width=100)
    table = Table(title=f"overhead per call, microseconds, {options.count} parameters")
    for column in ("parameters", "framejit", "torch.compile", "ratio", "target"):
        table.add_column(column, justify="left" if column == "parameters" else "right")
    figures: dict[str, Any] = {}
    for kind in KINDS:
        found: dict[str, list[float]] = {compiler: [] for compiler in cases.COMPILERS}
        for _ in range(options.runs):
            for compiler in cases.COMPILERS:
                result = cases.in_fork(lambda k=kind, c=compiler: measure(k, options.count, c))  # type: ignore[misc]
                if "error" in result:
                    console.print(f"{kind}, {compiler}: {result['error']}")
                else:
                    found[compiler].append(result["us"])
        ours, theirs = (cases.median(found[compiler]) for compiler in cases.COMPILERS)
        figures[kind] = {"framejit": ours, "torch.compile": theirs}
        row = f"{ours:.1f}", f"{theirs:.0f}", f"{theirs / ours:.1f} x", f"{TARGET} x"
        table.add_row(kind, *row)
    console.print(table)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
