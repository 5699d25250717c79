"""Programs with torchao's tensors, where it is installed, each held against plain Python."""

import functools

import pytest
import torch
from conforming import Program, conforms, graphs_of_peer
from torch import nn
from torch.nn import functional

quantization = pytest.importorskip("torchao.quantization")

KINDS = [
    "Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "Float8WeightOnlyConfig",
    "IntxWeightOnlyConfig",
]  # fmt: skip


@functools.cache
def weight(name, rows=32):
    """A weight that torchao has quantised."""
    config = getattr(quantization, name, None)
    if config is None:
        pytest.skip(f"this torchao has no {name}")
    torch.manual_seed(rows)
    model = nn.Sequential(nn.Linear(64, rows)).bfloat16()
    quantization.quantize_(model, config())
    return model[0].weight


def _layer(x, w):
    return functional.linear(x, w).relu() * 2


def _dequantised(x, w):
    return w.dequantize() * 2, x + 1


def _input(values):
    return torch.linspace(-1, 1, 4 * 64).view(4, 64).bfloat16() + values / 8


def program(name, run):
    return Program(
        run, lambda values: (_input(values), weight(name)),
        lambda: (_input(0.0), weight(name, 48)),
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("run", [_layer, _dequantised])
@pytest.mark.parametrize("name", KINDS)
def test_values_may_change_and_what_is_told_may_not(name, run, backend):
    with torch.no_grad():
        conforms(program(name, run), backend)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_torch_compile_makes_no_fewer_graphs(name):
    with torch.no_grad():
        graphs = graphs_of_peer(program(name, _layer))
    assert graphs is None or graphs >= 1
