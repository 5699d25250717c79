"""Writes programs in which calls of one function are made many times, with other objects.

In: a seed. Out: a `Program`: layers that read, share, change and return what such layers do, a
function that calls them in some way, and changes of single layers between its calls. Captures of
these programs repeat calls (`framejit.interpreter.call_recordings`), and are verified.
"""

# ruff: noqa: E501 (one statement of a program a line)
from __future__ import annotations

import random

from program_writer import Program

PRELUDE = """
import collections, contextlib, functools, math, types
import torch
import torch.nn.functional as F
from torch import nn

class Settings:
    def __init__(self, **known): self.__dict__.update(known)
    def get(self, name, default=None): return self.__dict__.get(name, default)

Result = collections.namedtuple('Result', 'first second')
G_SETTINGS = Settings(scale=2.0, kind='a', eps=1e-3, on=True)
G_TABLE = {i: float(i % 2) for i in range(9)}
G_LOG = []
G_FIRST = []
G_ONE = Settings(scale=1.5, kind='b', eps=0.5, on=False)
G_SHARED = [None]

def tensor(rows, seed):
    return ((torch.arange(rows * 4) * 7 + seed * 5) % 11 - 4).reshape(rows, 4).float() / 4

def parameter(seed):
    return nn.Parameter(tensor(4, seed) / 2)

def plain_step(x, weight, *rest, flag=False, **more):
    for _ in range(4):
        x = torch.tanh(x @ weight)
    for part in rest:
        x = x + part
    return -x if flag else x * more.get('scale', 1)

def compared(x, one, two):
    for _ in range(9):
        x = torch.tanh(x * one) + 0
    return x + (1 if one is two else 2) + (3 if one in (two,) else 4)

def shifted(x):
    for _ in range(9):
        x = torch.tanh(x * 2) + 0
    return x + SHIFT

G_MADE = [types.FunctionType(shifted.__code__, {'torch': torch, 'range': range, 'SHIFT': n % 3}) for n in range(12)]
"""

#: What ``__init__`` of a layer may do; N is its number.
_INIT = [
    "self.number = n", "self.settings = G_SETTINGS", "self.settings = Settings(scale=1.0 + n % 2, kind='b', eps=0.1, on=n % 3 == 0)",
    "self.linear = nn.Linear(4, 4)", "self.linear = nn.Linear(4, 4, bias=n % 2 == 0)", "self.norm = nn.LayerNorm(4)",
    "self.register_buffer('offset', tensor(1, n))", "self.register_buffer('offset', None if n == 2 else tensor(1, n))",
    "self.weight = parameter(n)", "self.flag = n > 2",
    "self.names = ['a', 'b'][: 1 + n % 2]", "self.table = {'k': n, 'v': 2}", "self.shape = (2, n)",
    "self.__dict__['owner'] = G_FIRST[0] if G_FIRST else self", "self.step = functools.partial(plain_step, flag=n % 2 == 0)",
    "self.function = torch.relu if n % 3 else torch.sigmoid", "self.parts = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])",
    "self.settings = G_ONE if n == 3 else Settings(scale=2.0, kind='a', eps=1.0, on=True)",
    "self.other = self.linear if n > 2 else nn.Linear(4, 4)", "self.turned = tensor(2, n).t()",
    "self.seen = 0", "self.log = G_LOG", "self.weight.note = n", "self.act = ACT", "self.drop = nn.Dropout(0.0)",
]  # fmt: skip
#: What ``forward`` may do to ``x``.
_FORWARD = [
    "x = x + self.weight.sum(0)", "x = torch.relu(x @ self.weight)", "x = self.linear(x)", "x = self.norm(x)", "x = self.act(x)",
    "x = x * self.settings.scale", "x = x * (2 if self.settings.kind == 'a' else 3)", "x = x + self.settings.get('eps', 1)",
    "x = x if self.flag else -x", "x = x + (0 if self.offset is None else self.offset)", "x = x * len(self.names)",
    "x = x + self.table['v']", "x = x + self.table['k']", "x = x + G_TABLE[self.number]", "x = x + self.shape[0]",
    "x = x + (1 if self.owner is self else 2)", "x = x + self.owner.weight[0]", "x = self.step(x, self.weight)", "x = self.function(x)",
    "for part in self.parts: x = x + part(x).tanh()", "self.seen += 1; x = x + self.seen", "self.log.append(x.shape[0])",
    "with torch.no_grad(): x = x / (1 + x.abs().amax())", "q, k = x.chunk(2, -1); x = torch.cat([k, q], -1)",
    "x = self.drop(x)", "x = x.clone().mul_(2)", "x = getattr(self, 'extra', lambda v: v)(x)", "x = x.reshape(-1).reshape(x.shape)",
    "x = x + math.sqrt(x.shape[-1])", "x = torch.where(x > 0, x, x * 0.5)", "assert x.dim() == 2", "x = x + type(self).bias",
    "x = x + (mask if mask is not None else 0)", "x = x + sum(extra.values()) if extra else x", "x = x + rest[0] if rest else x",
    "x = x.masked_fill(x > 3, 0.5)", "x = torch.stack([x, x * 2]).sum(0)", "x = F.softmax(x, -1) + x", "x = x + state[0]; state.append(1) if self.flag else None",
    "try: x = x + self.absent\n        except AttributeError: x = x - 1", "x = x + len([m for m in self.modules()])", "x = x + hash('a') * 0",
    "x = x + (0 if id(self) == id(self.owner) else 1)", "print('in', self.number) if self.number == 9 else None",
    "x = x + (100 if self.settings is G_ONE else 1)", "x = x + (10 if self.settings is G_SHARED[0] else 1)",
    "x = x + (10 if G_SHARED[0] is self.linear else 1)", "x = self.other(self.linear(x))",
    "x = x + self.turned.shape[0] + 10 * self.turned.stride(0) + 100 * self.turned.requires_grad",
    "x = x + float(self.training)", "x = x + int(self.weight.requires_grad) + self.weight.shape[0]",
]  # fmt: skip
_RETURN = [
    "return x", "return x", "return x", "return x + 0, self.weight", "return [x, x.sum(0)]", "return {'x': x, 'n': self.table}",
    "return (x, None, 3)", "return Result(x, x.mean())", "return x, state", "return x.detach(), x",
    "return x + 0, x[:, 1:]", "return x.view(x.shape), x.chunk(2, -1)", "return x[:], [x.t(), x[:1].detach()]",
    "return x, x * 2 + 1", "return {'y': x.mean(1), 'x': x.sin()}",
]  # fmt: skip
#: How the layers are called; X takes the tensor out of a result.
_CALLS = [
    "for layer in G_LAYERS:\n        x = first(layer(x, [2.0], 1.0))",
    "for i, layer in enumerate(G_LAYERS):\n        x = first(layer(x, [i * 0.0], mask=mask))",
    "for layer in G_LAYERS[1:]:\n        x = x + first(layer(x, [1.0], mask=mask, k=2, l=x.mean()))",
    "results = [layer(x, [3.0]) for layer in G_LAYERS]\n    x = sum([first(one) for one in results]) + x",
    "state = [0.5]\n    for layer in reversed(G_LAYERS):\n        x = first(layer(x, state))\n    x = x + len(state)",
    "for a, b in zip(G_LAYERS[::2], G_LAYERS[1::2]):\n        x = first(a(first(b(x, [1])), [1], x))",
    "for layer in G_LAYERS:\n        layer.table = {'k': 1, 'v': 4}\n        x = first(layer(x, [2.0]))",
    "for layer in G_LAYERS:\n        G_SETTINGS.scale = G_SETTINGS.scale * 1.0\n        x = first(layer(x, [2.0]))",
    "for layer in G_LAYERS[2:4]: layer.turned.t_()\n    for layer in G_LAYERS:\n        x = first(layer(x, [2.0]))",
    "with torch.no_grad(): G_LAYERS[3].turned.mul_(2)\n    for layer in G_LAYERS:\n        x = first(layer(x, [2.0]))",
    "for n in range(12):\n        one = float('1.5')\n        x = compared(x, one, one if n % 2 else float('1.5'))",
    "one, two = float('nan'), 1.5\n    for n in range(12):\n        x = compared(x, two, one if n % 3 else two)",
    "for function in G_MADE: x = function(x)",
    "for n in range(5):\n        x = plain_step(x, G_LAYERS[n % len(G_LAYERS)].weight, x, flag=n > 2, scale=0.5)",
    "with torch.no_grad():\n        for layer in G_LAYERS: x = first(layer(x, [2.0]))",
    "def inner(layer, y): return first(layer(y * scale, [2.0])) + y\n    scale = 0.5\n    for layer in G_LAYERS: x = inner(layer, x)",
    "for layer in [*G_LAYERS, G_LAYERS[0], G_LAYERS[-1]]:\n        x = first(layer(x, [1.0]))",
    "x = functools.reduce(lambda y, layer: first(layer(y, [2.0])), G_LAYERS, x)",
    "pairs = [(layer, x * i) for i, layer in enumerate(G_LAYERS)]\n    for layer, y in pairs: x = x + first(layer(y, [1.0]))",
]  # fmt: skip
#: What happens to single layers between two calls of the program.
_CHANGES = [
    "G_LAYERS[3].flag = not getattr(G_LAYERS[3], 'flag', False)", "G_LAYERS[2].weight = parameter(9)", "G_LAYERS[4].weight.requires_grad_(False)",
    "G_LAYERS[1].extra = torch.sin", "G_LAYERS[4].eval()", "G_LAYERS[3] = Layer(1)", "G_LAYERS[2].settings = Settings(scale=3.0, kind='a', eps=1.0, on=True)",
    "G_LAYERS[4].settings = G_ONE", "G_SHARED[0] = G_LAYERS[2].settings", "G_SHARED[0] = G_LAYERS[3].linear", "G_LAYERS[1].other = G_LAYERS[1].linear",
    "G_SETTINGS.scale = 4.0", "G_TABLE[3] = 7.0", "Layer.bias = 2", "G_LAYERS[4].table['v'] = 9", "del G_LAYERS[-1]", "G_LAYERS.append(Layer(7))",
    "G_LAYERS[2].forward = G_LAYERS[1].forward", "G_LAYERS[1] = G_LAYERS[2]",
    "G_LAYERS[4].double().float()", "G_LAYERS[3].weight = nn.Parameter(tensor(4, 3).t())", "G_LAYERS[2].weight = G_LAYERS[3].weight",
]  # fmt: skip


def repeated_program(seed: int, gradients: bool = True) -> Program:
    """The program of a seed. Without ``gradients`` a repeated call may be one operation, which a
    capture that is verified looks into: it is not verified."""
    rng = random.Random(seed)
    needed = [
        "self.number = n", "self.weight = parameter(n)", "self.flag = False", "self.names = ['a']",
        "self.table = {'k': 1, 'v': 2}", "self.settings = G_SETTINGS", "self.shape = (1, 2)",
        "self.__dict__['owner'] = self", "self.function = torch.relu", "self.step = plain_step",
        "self.linear = nn.Linear(4, 4)", "self.norm = nn.LayerNorm(4)", "self.offset = None",
        "self.other = nn.Linear(4, 4)", "self.turned = tensor(2, n)",
        "self.parts = []", "self.act = ACT", "self.seen = 0", "self.log = []", "self.drop = nn.Identity()",
    ]  # fmt: skip
    init = needed + rng.sample(_INIT, rng.randint(1, 6))
    if any("register_buffer('offset'" in line for line in init):
        init.remove("self.offset = None")
    if any("self.parts = nn" in line for line in init):
        init.remove("self.parts = []")
    forward = [rng.choice(_FORWARD) for _ in range(rng.randint(3, 7))]
    lines = [
        "ACT = nn.GELU()",
        "class Layer(nn.Module):",
        "    bias = 1",
        "    def __init__(self, n):",
        "        super().__init__()",
        *[f"        {line}" for line in init],
        "    def forward(self, x, state, *rest, mask=None, **extra):",
        *[f"        {line}" for line in forward],
        f"        {rng.choice(_RETURN)}",
        "def first(result):",
        "    while not isinstance(result, torch.Tensor):",
        "        result = result['x'] if isinstance(result, dict) else result[0]",
        "    return result",
        "torch.manual_seed(0)",
        "G_LAYERS = []",
        f"for i in range({rng.randint(5, 7)}):",
        "    G_LAYERS.append(Layer(i))",
        "    G_FIRST.append(G_LAYERS[0])",
    ]
    if rng.random() < 0.3:
        lines.append("for layer in G_LAYERS[2:]: layer.weight = G_LAYERS[1].weight")
    if rng.random() < 0.3:
        lines.append("for layer in G_LAYERS: layer.linear = G_LAYERS[0].linear")
    lines += ["def program(x, mask=None):", f"    {rng.choice(_CALLS)}"]
    if rng.random() < 0.4:
        lines.append(f"    {rng.choice(_CALLS)}")
    # The tensors of a tuple are differentiated.
    result = rng.choice(
        ("x", "x,", "x, x.mean()", "x, [layer.linear(x).sin() for layer in G_LAYERS]")
    )
    lines += [f"    return {result}", "def change():", f"    {rng.choice(_CHANGES)}"]
    rows = rng.choice((2, 3))
    asked = rng.choice(("", ".requires_grad_()")) if gradients else ""
    call = f"program:(tensor({rows}, 1){asked},)"
    calls = [call, call, "change:()", call, f"program:(tensor({rows + 1}, 2), tensor(1, 3) > 0)"]
    if not gradients:
        lines.append("for layer in G_LAYERS: layer.requires_grad_(False)")
    return Program(PRELUDE + "\n".join(lines) + "\n", calls, PRELUDE, verified=gradients)
