"""Piecewise compilation, as serving engines do it: attention stays out of the compiled graph.

    python examples/piecewise.py

Attention is an operator of this file's that no compiler looks into: it writes to a cache and to a
tensor made for its result. What lies between two calls of it is compiled, piece by piece.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

import framejit

WIDTH, LAYERS, LENGTH = 32, 3, 16


@torch.library.custom_op("example::attention", mutates_args=["keys", "values", "out"])
def attention(
    query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor, at: int, out: Tensor
) -> None:
    """Attend to all tokens so far; ``keys`` and ``values`` (batch, length, width) get this one."""
    keys[:, at : at + 1] = key
    values[:, at : at + 1] = value
    seen = keys[:, : at + 1], values[:, : at + 1]
    out.copy_(functional.scaled_dot_product_attention(query, *seen))


class Layer(nn.Module):
    """Attention with a cache, and a small network."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.network = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
        self.register_buffer("keys", torch.zeros(batch, LENGTH, WIDTH), persistent=False)
        self.register_buffer("values", torch.zeros(batch, LENGTH, WIDTH), persistent=False)

    def forward(self, x: Tensor, at: int) -> Tensor:
        query, key, value = self.project(x).chunk(3, -1)
        out = torch.empty_like(query)
        attention(query, key, value, self.keys, self.values, at, out)
        x = x + out
        return x + self.network(x)


class Model(nn.Module):
    """Some layers, one token at a time."""

    def __init__(self, batch: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(batch) for _ in range(LAYERS)])

    def forward(self, x: Tensor, at: int) -> Tensor:
        for layer in self.layers:
            x = layer(x, at)
        return x


def main() -> None:
    """Decode a few tokens, compiled and as plain Python, and say how many pieces there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="inductor", help="compiles the pieces")
    backend = parser.parse_args().backend
    torch.manual_seed(0)
    model, plain = Model(), Model()
    plain.load_state_dict(model.state_dict())
    pieces = []

    def counted(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        pieces.append(gm)
        return compiler(gm, inputs)

    compiler = framejit.backends.lookup_backend(backend)
    split = framejit.piecewise(counted, at=[attention])
    decode = framejit.compile(model, backend=split, fullgraph=True)
    with torch.inference_mode():
        for at in range(6):
            x = torch.randn(2, 1, WIDTH)
            torch.testing.assert_close(decode(x, at), plain(x, at))
            if at == 0:
                print(f"{LAYERS} layers: {len(pieces)} pieces, {LAYERS} calls of attention between")
    print("6 tokens: equal to plain Python")


if __name__ == "__main__":
    main()
