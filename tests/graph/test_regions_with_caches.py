"""Layers that keep keys and values in an object, as language models do by default: their calls
cannot be recorded, but what they compute is compiled once."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from checking import Comparison, Tolerance
from framejit import config
from repeating import ALL, Regions


class Cache:
    """What the layers have computed so far; made by the caller or by the model."""

    def __init__(self):
        self.layers = []

    def update(self, keys, values, number):
        while len(self.layers) <= number:
            self.layers.append(Entry())
        return self.layers[number].update(keys, values)


class Entry:
    def __init__(self):
        self.keys = self.values = None

    def update(self, keys, values):
        if self.keys is not None:
            keys, values = (torch.cat(p, 1) for p in ((self.keys, keys), (self.values, values)))
        self.keys, self.values = keys, values
        return keys, values


class Attending(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.norm, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x, cache):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        k, v = cache.update(k * 1, v * 1, self.number)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.down(F.gelu(self.up(x)))


class Decoder(nn.Module):
    def __init__(self, count=5):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.layers = nn.ModuleList([Attending(number) for number in range(count)])

    def forward(self, x, cache=None):
        if cache is None:
            cache = Cache()
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, cache)
        return x, cache


def content(result):
    x, cache = result
    return x, [(entry.keys, entry.values) for entry in cache.layers]


@pytest.mark.parametrize("train", [False, True])
def test_layers_with_a_cache_are_regions(train):
    torch.manual_seed(0)
    model, regions = Decoder(), Regions()
    twin = copy.deepcopy(model)
    with config.patch(raise_internal_errors=True), torch.set_grad_enabled(train):
        compiled = framejit.compile(model, backend=regions, options=ALL)
        cache, expected = None, None
        for length in (4, 1, 1, 1, 2):
            x = torch.randn(2, length, 8)
            (got, cache), (result, expected) = compiled(x, cache), twin(x, expected)
            Comparison(Tolerance(1e-5, 1e-5)).compare(
                content((result, expected)), content((got, cache)), "cache"
            )
            if train:
                got.sum().backward(retain_graph=True)
                result.sum().backward(retain_graph=True)
        if train:
            for one, two in zip(model.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-4)
    # A new cache, one with four entries, one whose entries grow, another number of new ones.
    assert regions.calls == [{"region_Attending": 5}] * len(regions.graphs)
    assert 3 <= len(regions.graphs) <= 4
