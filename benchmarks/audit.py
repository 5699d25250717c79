"""What `framejit.audit` costs: the sampling alone, audited calls, and a program at some rates.

The README's small function with the eager backend, and a BERT of two layers. Processor time of all
runs, which take turns, so that the few long calls count; "sampling" is a rate so low that no call
is audited.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch

import framejit

RUNS = 7
NEVER = 1e-12


def small() -> tuple[Callable[[], Any], int]:
    def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = framejit.compile(toy_example, backend="eager")
    a, b = torch.randn(10), torch.ones(10)
    return lambda: compiled(a, b), 20000


def model() -> tuple[Callable[[], Any], int]:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=256)  # fmt: skip
    compiled = framejit.compile(BertModel(config).eval(), backend="eager")
    tokens = torch.randint(0, 1000, (2, 32))

    def call() -> Any:
        with torch.no_grad():
            return compiled(tokens)

    return call, 1000


def seconds(call: Callable[[], Any], count: int) -> float:
    started = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - started) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    for name, make in (("the README's function", small), ("BERT, two layers", model)):
        call, count = make()
        call()
        with framejit.audit():  # the first one of a process loads the auditor
            call()
        rates = {"none": 0.0, "sampling": NEVER, "0.001": 0.001, "0.01": 0.01, "1": 1.0}
        taken, audits = dict.fromkeys(rates, 0.0), dict.fromkeys(rates, 0)
        for _ in range(runs):
            for title, rate in rates.items():
                number = count if rate < 0.1 else max(count // 200, 3)
                audit = framejit.audit(rate, on_mismatch="raise") if rate else None
                with audit or contextlib.nullcontext():
                    taken[title] += seconds(call, number) / runs
                audits[title] += audit.calls if audit else 0
        base = taken.pop("none")
        print(f"{name}: {base * 1e6:.2f} us a call")
        for title, mean in taken.items():
            print(f"  rate {title:10} {mean * 1e6:10.2f} us, {mean / base - 1:+.1%}, "
                  f"{audits[title]} audits")  # fmt: skip


if __name__ == "__main__":
    main()
