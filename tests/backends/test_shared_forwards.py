"""Layers that differ in which gradients they need: Inductor compiles one forward for them."""

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._inductor.utils import fresh_cache, run_and_get_code

import framejit
from checking import Comparison
from framejit.audit.comparison import Tolerance
from framejit.report import events
from repeating import ALL, Regions, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FORWARD, BACKWARD = r"^def (partitioned_fw_\w+)\(", r"^def (partitioned_bw_\w+)\("


class Layer(nn.Module):
    def __init__(self, width=8, rate=0.0):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.BatchNorm1d(width),
            nn.Linear(width, 16),
            nn.Linear(16, width),
        )
        self.rate = rate

    def forward(self, x):
        y = F.gelu(self.up(self.norm(x)))
        return x + F.dropout(self.down(y), self.rate).tanh()


class Chain(nn.Module):
    def __init__(self, count, layer=Layer, **options):
        super().__init__()
        self.layers = nn.ModuleList([layer(**options) for _ in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sin()


def written_for(model, arguments, dynamic=False, train=True):
    """The code that Inductor writes for a step, which is compared with plain Python; how often the
    captured graph calls each of its subgraphs."""
    twin, counted = copy.deepcopy(model), Regions("inductor")
    compiled = framejit.compile(model, backend=counted, options=ALL, dynamic=dynamic)
    codes = None
    with fresh_cache(), events.recording(events.RegionsRefused) as refused:
        for given in arguments:
            expected = step(twin, twin, (given,), train)
            got, made = run_and_get_code(lambda given=given: step(model, compiled, (given,), train))
            Comparison(Tolerance(1e-4, 1e-4)).compare(expected, got, "a step")
            codes = codes or made
    assert not refused
    return "\n".join(codes), counted.calls[0]


def subgraphs(pattern, code):
    return sorted(set(re.findall(pattern, code, re.M)))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def test_the_first_layer_and_the_others_have_one_forward():
    code, calls = written_for(Chain(4), [torch.randn(4, 8) for _ in range(2)])
    assert calls == {"region_Layer": 3, "region_Layer_1": 1}
    assert len(subgraphs(FORWARD, code)) == 1
    assert len(subgraphs(BACKWARD, code)) == 2


def test_a_frozen_layer_among_others():
    model = Chain(5)
    for parameter in model.layers[3].parameters():
        parameter.requires_grad_(False)
    code, calls = written_for(model, [torch.randn(4, 8, requires_grad=True)])
    assert calls == {"region_Layer": 4, "region_Layer_1": 1}
    assert len(subgraphs(FORWARD, code)) == 1


@pytest.mark.parametrize("position", [1, 3])
def test_several_rare_kinds_have_one_forward(position):
    """The first one returns some of what the second one returns, which is replaced as well."""
    model = Chain(6)
    model.layers[position].up.bias.requires_grad_(False)
    code, calls = written_for(model, [torch.randn(4, 8)])
    assert sorted(calls.values()) == [1, 1, 4]
    assert len(subgraphs(FORWARD, code)) == 1


def test_frozen_layers_that_are_many_compute_nothing_for_backward():
    model = Chain(6)
    for layer in model.layers[:3]:
        layer.requires_grad_(False)
    code, calls = written_for(model, [torch.randn(4, 8)])
    assert calls == {"region_Layer": 3, "region_Layer_1": 2, "region_Layer_2": 1}
    kept = subgraphs(r"^def ((?!partitioned_bw)\w*(?:region|subgraph)\w*)\(args", code)
    assert len(kept) == 2


def test_sizes_that_vary():
    code, _ = written_for(Chain(4), [torch.randn(n, 8) for n in (4, 6)], dynamic=True)
    assert len(subgraphs(FORWARD, code)) == 1


def test_random_numbers_are_drawn_as_before():
    """Each call draws its own, and backward takes the same."""
    model = Chain(4, rate=0.5)
    compiled = framejit.compile(model, backend="inductor", options=ALL)
    x = torch.randn(64, 8)
    with fresh_cache():
        _, codes = run_and_get_code(lambda: compiled(x).sum().backward())
    assert len(subgraphs(FORWARD, "\n".join(codes))) == 1
    weight = model.layers[0].down.weight
    weight.grad = None
    torch.manual_seed(3)
    compiled(x).sum().backward()
    moved = 1e-2 * torch.randn_like(weight)
    sums = []
    for sign in (1, -1):
        with torch.no_grad():
            weight.add_(sign * moved)
        torch.manual_seed(3)
        sums.append(compiled(x).sum().item())
        with torch.no_grad():
            weight.sub_(sign * moved)
    found, expected = (weight.grad * moved).sum().item(), (sums[0] - sums[1]) / 2
    assert found == pytest.approx(expected, rel=0.05, abs=1e-3)
