"""What `framejit.audit` costs: the sampling alone, audited calls, and a program at some rates.

The README's small function with the eager backend, and a BERT of two layers. Medians of several
runs that take turns; "sampling" is a rate so low that no call is audited.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import framejit

RUNS = 15
NEVER = 1e-12


def small() -> tuple[Callable[[], Any], int]:
    def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = framejit.compile(toy_example, backend="eager")
    a, b = torch.randn(10), torch.ones(10)
    return lambda: compiled(a, b), 4000


def model() -> tuple[Callable[[], Any], int]:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=256)  # fmt: skip
    compiled = framejit.compile(BertModel(config).eval(), backend="eager")
    tokens = torch.randint(0, 1000, (2, 32))

    def call() -> Any:
        with torch.no_grad():
            return compiled(tokens)

    return call, 40


def seconds(call: Callable[[], Any], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    for name, make in (("the README's function", small), ("BERT, two layers", model)):
        call, count = make()
        call()
        rates = {"none": 0.0, "sampling": NEVER, "0.001": 0.001, "0.01": 0.01, "1": 1.0}
        taken: dict[str, list[float]] = {title: [] for title in rates}
        for _ in range(runs):
            for title, rate in rates.items():
                number = count if rate < 0.1 else max(count // 20, 3)
                if not rate:
                    taken[title].append(seconds(call, number))
                    continue
                with framejit.audit(rate, on_mismatch="raise"):
                    taken[title].append(seconds(call, number))
        base = statistics.median(taken["none"])
        print(f"{name}: {base * 1e6:.2f} us a call")
        for title, times in list(taken.items())[1:]:
            ratios = [one / other for one, other in zip(times, taken["none"], strict=True)]
            print(f"  rate {title:10} {statistics.median(times) * 1e6:10.2f} us, "
                  f"{statistics.median(ratios) - 1:+.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
