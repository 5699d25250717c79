"""The programs that the benchmarks measure, and how a measurement is run.

Each measurement runs in a forked process of its own, so that neither compiler finds what the other
left behind; the two compilers take turns, and medians are reported.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
# A torchvision that does not fit this torch must not stop transformers and timm.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
import torch  # noqa: E402
from torch import nn  # noqa: E402

import torchvision_operators  # noqa: E402, F401

COMPILERS = ("framejit", "torch.compile")


def compile_with(name: str, model: Any, backend: Any) -> Any:
    """``model`` compiled by framejit or by torch.compile."""
    if name == "framejit":
        import framejit

        return framejit.compile(model, backend=backend)
    return torch.compile(model, backend=backend)


@dataclasses.dataclass
class Case:
    """A program: ``make`` gives a fresh callable and its arguments."""

    make: Callable[[], tuple[Any, tuple[Any, ...], dict[str, Any]]]
    grad: bool = False


# -- programs --------------------------------------------------------------------------------------


def tiny() -> Any:
    def f(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b

    return f, (torch.ones(4), torch.ones(4)), {}


def linear4() -> Any:
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)]).eval(), (torch.ones(1, 4),), {}


def breaks3() -> Any:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        if x.sum() > -1e9:
            x = x * 2
        if x.mean() > -1e9:
            x = x.relu()
        if x.max() > -1e9:
            x = x.sin()
        return x.cos()

    return f, (torch.ones(4),), {}


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    weights: dict[str, float]


def dataclass_and_dict() -> Any:
    def f(batch: Batch, named: dict[str, Any]) -> dict[str, Any]:
        y = batch.x * named["scale"] + batch.y * batch.weights["w"]
        for key in ("p", "q"):
            y = y + named[key]
        return {"y": y}

    batch = Batch(torch.ones(4), torch.ones(4), {"w": 2.0, "v": 1.0})
    return f, (batch, {"scale": 3, "p": torch.ones(4), "q": torch.ones(4)}), {}


def list32() -> Any:
    def f(tensors: list[torch.Tensor]) -> torch.Tensor:
        total = tensors[0]
        for tensor in tensors[1:]:
            total = total + tensor
        return total

    return f, ([torch.ones(4) for _ in range(32)],), {}


def convolutions() -> Any:
    """A residual network with 18 convolutions."""

    class Block(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(channels)
            self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(channels)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.norm1(self.first(x)))
            return torch.relu(x + self.norm2(self.second(y)))

    return nn.Sequential(*[Block(8) for _ in range(9)]).eval(), (torch.randn(1, 8, 8, 8),), {}


def bert(layers: int = 12) -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=128,
        intermediate_size=256,
        num_attention_heads=4,
        vocab_size=1000,
    )
    return BertModel(config).eval(), (torch.randint(0, 1000, (2, 32)),), {}


def resnet18() -> Any:
    from timm import create_model

    return create_model("resnet18").eval(), (torch.randn(1, 3, 32, 32),), {}


def llama8() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    tokens = torch.randint(0, 1000, (2, 32))
    return LlamaForCausalLM(config).eval(), (), {"input_ids": tokens, "use_cache": False}


def bert2_training() -> Any:
    model, args, kwargs = bert(2)
    return model.train(), args, kwargs


CASES: dict[str, Case] = {
    "f(a, b)": Case(tiny),
    "4 linear layers": Case(linear4),
    "3 breaks": Case(breaks3),
    "dataclass, dict": Case(dataclass_and_dict),
    "list of 32": Case(list32),
    "18 convolutions": Case(convolutions),
    "timm resnet18": Case(resnet18),
    "BERT, 12 layers": Case(bert),
    "Llama, 8 layers": Case(llama8),
    "BERT, 2, grad": Case(bert2_training, grad=True),
}


# -- running ---------------------------------------------------------------------------------------


def in_fork(measure: Callable[[], Any]) -> Any:
    """The result (plain data) of ``measure`` in a forked process; {"error": text} if it fails."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            result = measure()
        except BaseException as error:  # the parent reports it
            if os.environ.get("BENCHMARK_TRACEBACK"):
                traceback.print_exc()
            first = (str(error).splitlines() or [""])[0]
            result = {"error": f"{type(error).__name__}: {first}"[:200]}
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    chunks = []
    while chunk := os.read(reader, 65536):
        chunks.append(chunk)
    os.close(reader)
    os.waitpid(child, 0)
    return json.loads(b"".join(chunks)) if chunks else {"error": "the process died"}


def seconds_per_call(call: Callable[[], Any], budget: float = 0.2) -> float:
    """Seconds per warm call, over as many calls as fit into ``budget`` seconds."""
    for _ in range(10):
        call()
    count = 5
    gc.collect()
    gc.disable()
    try:
        while True:
            started = time.perf_counter()
            for _ in range(count):
                call()
            spent = time.perf_counter() - started
            if spent > budget / 4 or count >= 200_000:
                return spent / count
            count = min(200_000, max(count * 2, int(count * budget / 3 / max(spent, 1e-7))))
    finally:
        gc.enable()


def prefetch() -> None:
    """Import what the models need, once, before forking."""
    import timm  # noqa: F401
    import transformers.models.bert.modeling_bert
    import transformers.models.llama.modeling_llama  # noqa: F401


def median(values: list[float]) -> float:
    """The median; nan for none."""
    return statistics.median(values) if values else float("nan")
