"""Models that torchao has quantised, where it is installed: one graph, which does what plain Python
does; and weights that the captured program quantises itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from wrapping import tensors

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend

quantization = pytest.importorskip("torchao.quantization")

KINDS = [
    "Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "Float8WeightOnlyConfig",
    "IntxWeightOnlyConfig",
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", KINDS)
def test_quantised_models(name, backend):
    config = getattr(quantization, name, None)
    if config is None:
        pytest.skip(f"this torchao has no {name}")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).bfloat16().eval()
    quantization.quantize_(model, config())
    counting, inner = CountingBackend(), lookup_backend(backend)
    compiled = framejit.compile(
        model, backend=lambda m, e: inner(counting(m, e), e), fullgraph=True
    )
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(4, 64, dtype=torch.bfloat16)
            expected = model(x)  # fills torchao's caches, which the first call has to
            torch.testing.assert_close(compiled(x), expected)
    assert len(counting.graphs) == 1
    assert counting.ops > 10  # how many is torchao's affair


def test_quantised_in_the_program():
    cls = getattr(quantization, "Int8Tensor", None)
    if cls is None or not hasattr(quantization, "PerRow"):
        pytest.skip("this torchao has another class")

    def program(weight, x):
        quantised = cls.from_hp(weight, quantization.PerRow())
        return nn.functional.linear(x, quantised), quantised.dequantize(), quantised

    weight, x = torch.randn(32, 64), torch.randn(4, 64)
    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            wanted, got = program(weight, x), compiled(weight, x)
            assert type(got[2]) is cls
            torch.testing.assert_close(list(tensors(got)), list(tensors(wanted)))
