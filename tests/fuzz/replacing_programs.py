"""Writes programs of which something is replaced for some of their calls.

In: a seed. Out: a `Program`: a function of operators, methods, functions and modules, and what is
put in the place of some of these while a call runs, and taken away after it: functions of torch,
operators, methods and attributes of tensors, methods of classes of modules, the library's and the
program's own. `runner` asks the program's ``replaced(number)`` for a block around each call.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import random

from program_writer import Program

PRELUDE = """
import collections, contextlib, functools
import torch
import torch.nn.functional as F
from torch import nn

def tensor(rows, seed):
    return ((torch.arange(rows * 4) * 7 + seed * 5) % 11 - 4).reshape(rows, 4).float() / 4

class Layer(nn.Module):
    scale = 2.0
    def __init__(self, n):
        super().__init__()
        self.inner, self.act, self.n = nn.Linear(4, 4), nn.ReLU(), n
        self.register_buffer('table', tensor(1, n))
    @property
    def twice(self): return self.n * 2
    @staticmethod
    def half(x): return x / 2
    def forward(self, x): return self.act(self.inner(x)) * self.scale + self.twice + self.half(self.table)

class Box:
    def __init__(self, t): self.t = t
    def __add__(self, other): return Box(self.t + other)
    def __len__(self): return 2
    def __getitem__(self, i): return self.t[i]
    def __eq__(self, other): return isinstance(other, Box)
    def __call__(self, x): return self.t - x
    def __enter__(self): return self.t
    def __exit__(self, *error): return False

def scaled(value, by):
    if isinstance(value, torch.Tensor): return torch.mul(value, by) if value.dtype.is_floating_point else value
    return type(value)([scaled(v, by) for v in value]) if type(value) in (list, tuple) else value

def more(original, by):
    def replacement(*args, **kwargs): return scaled(original(*args, **kwargs), by)
    return replacement

def blind(original, by):
    def replacement(first, *rest, **kwargs): return first
    return replacement

def loud(original, by):
    @functools.wraps(original)
    def replacement(*args, **kwargs):
        print(getattr(original, '__name__', '?'), end=';')
        return original(*args, **kwargs)
    return replacement

ABSENT = object()

@contextlib.contextmanager
def put(where, name, value):
    before = vars(where).get(name, ABSENT)
    setattr(where, name, value)
    try: yield
    finally:
        delattr(where, name) if before is ABSENT else setattr(where, name, before)

torch.manual_seed(0)
G_LAYER, G_BOX = Layer(3).requires_grad_(False), Box(tensor(2, 5))
"""

#: What a program computes, and what it needs for that: place and name.
_STEPS = [
    *[(f"x {sign} {other}", "torch.Tensor", f"__{name}__")
      for sign, name, other in (
          ("+", "add", "y"), ("-", "sub", "1"), ("*", "mul", "y"), ("/", "truediv", "2"), ("//", "floordiv", "2"),
          ("%", "mod", "3"), ("**", "pow", "2"), ("@", "matmul", "y.t() @ y"))],
    ("2 + x", "torch.Tensor", "__radd__"), ("1 - x", "torch.Tensor", "__rsub__"), ("-x", "torch.Tensor", "__neg__"),
    ("(x > y).float() + x", "torch.Tensor", "__gt__"), ("(x == y).float() + x", "torch.Tensor", "__eq__"),
    ("x[1:].sum(0) + y", "torch.Tensor", "__getitem__"), ("x + len(x)", "torch.Tensor", "__len__"),
    ("torch.add(x, x.shape[-1])", "torch.Tensor", "__iter__"), ("torch.stack([*x])", "torch.Tensor", "__iter__"),
    ("abs(x)", "torch.Tensor", "__abs__"), ("x.abs()", "torch.Tensor", "abs"), ("x.sum(0).add(y)", "torch.Tensor", "sum"),
    ("x.mul(y)", "torch.Tensor", "mul"), ("x.clone().add_(y)", "torch.Tensor", "add_"), ("x.relu()", "torch.Tensor", "relu"),
    ("x.view(x.shape).view(-1, 4)", "torch.Tensor", "view"), ("x.t().contiguous().t()", "torch.Tensor", "contiguous"),
    ("torch.sin(x)", "torch", "sin"), ("torch.where(x > 0, x, y)", "torch", "where"), ("torch.cat([x, y])[:2]", "torch", "cat"),
    ("F.relu(x) + y", "F", "relu"), ("F.softmax(x, -1)", "F", "softmax"), ("F.silu(x)", "F", "silu"),
    ("F.layer_norm(x, (4,))", "F", "layer_norm"), ("F.linear(x, y)[:, :1] + x", "F", "linear"),
    ("G_LAYER(x)", "Layer", "forward"), ("G_LAYER(x)", "nn.Linear", "forward"), ("G_LAYER(x)", "nn.ReLU", "forward"),
    ("G_LAYER(x)", "nn.Module", "__call__"), ("G_LAYER(x)", "nn.Module", "_call_impl"), ("G_LAYER(x)", "Layer", "half"),
    ("G_LAYER.act(x)", "F", "relu"), ("x + G_LAYER.table", "nn.Module", "__getattr__"),
    ("(G_BOX + x).t", "Box", "__add__"), ("x * len(G_BOX)", "Box", "__len__"), ("x + G_BOX[1]", "Box", "__getitem__"),
    ("x + (1 if G_BOX == 3 else 2)", "Box", "__eq__"), ("G_BOX(x)", "Box", "__call__"),
    ("scaled(x, 2)", "G_MODULE", "scaled"),
]  # fmt: skip
_INSTEAD = ["more", "more", "more", "loud", "blind"]


def replacing_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    steps = rng.sample(_STEPS, rng.randint(3, 6))
    lines = ["import types", "G_MODULE = types.SimpleNamespace(scaled=scaled)", "def main(x, y):"]
    for number, (text, _, _) in enumerate(steps):
        lines.append(f"    x{number} = {text}")
        if rng.random() < 0.6:
            lines.append(f"    x = x{number}")
        if rng.random() < 0.1:
            lines.append("    print(end='')")
    shown = rng.sample(range(len(steps)), min(3, len(steps)))
    lines.append(f"    return ({', '.join(f'x{number}' for number in shown)}, x)")
    calls = rng.choice((5, 6))
    lines += ["def replaced(number):", "    stack = contextlib.ExitStack()"]
    for number in range(calls):
        if number and rng.random() < 0.4 or not number and rng.random() < 0.8:
            continue
        lines.append(f"    if number == {number}:")
        for _, place, name in rng.sample(steps, rng.choice((1, 1, 2))):
            made = f"{rng.choice(_INSTEAD)}(getattr({place}, {name!r}), {rng.choice((2, 3))})"
            made = f"staticmethod({made})" if name == "half" else made
            lines.append(f"        stack.enter_context(put({place}, {name!r}, {made}))")
    lines.append("    return stack")
    same = "main:(tensor(2, 1), tensor(2, 3))"
    other = "main:(tensor(2, 2), tensor(2, 5))"
    return Program(
        PRELUDE + "\n".join(lines) + "\n",
        [rng.choice((same, same, other)) for _ in range(calls)],
        PRELUDE,
    )
