"""Writes programs in which layers that only compute are called many times, without gradients.

In: a seed. Out: a `Program`: what its layers return is used, or some of it is not, or a program
does to it what makes captures look inside of repeated calls. Each such call may be one operation of
the graph (`framejit.graph.composites`).
"""

# ruff: noqa: E501 (one statement of a program a line)
from __future__ import annotations

import random

from program_writer import Program
from repeated_programs import PRELUDE

#: What ``forward`` of a layer does.
_FORWARD = [
    "x = self.linear(x)", "x = self.norm(x) + x", "x = torch.relu(x) - y", "x = x.t().contiguous().t()",
    "a, b = x.chunk(2, -1); x = torch.cat([b, a], -1)", "x = torch.stack([x, x * 2]).sum(0)",
    "x = F.softmax(x, -1) + x", "x = x + self.number", "x = x * self.settings.scale", "x = self.function(x)",
    "x = x.masked_fill(x > 3, 0.5)", "v, i = x.max(-1, keepdim=True); x = x - v + i",
    "x = x.reshape(-1).view(x.shape)", "x = x + self.linear.weight.sum()", "x = x.expand(2, *x.shape).mean(0)",
    "x = x.flip(0)", "x = x[1:].sum(0) + x", "x = x + self.table", "y = y + x.mean()", "y = torch.sin(y) * x.amax()",
    "x = x.index_select(0, self.rows)", "x = x + y if x.shape[0] > 1 else x - y", "x = F.dropout(x, 0.5, self.training)",
    "x = x.to(torch.float64).to(torch.float32)", "x = torch.where(x > 0, x, y)", "x = x @ self.linear.weight",
    "x = x + self.inner(x)", "x = x.view(x.shape)", "x = x.detach()", "x = torch.zeros_like(x) + x",
]  # fmt: skip
_RETURN = [
    "return x", "return x", "return x, y", "return x, x * 2 + 1", "return {'y': x.mean(1), 'x': x.sin()}",
    "return [x + 0, [x.sum(0), x.mean()]]", "return x, (y, None, 3)", "return Result(x, x.mean())", "return x + 0, x",
    "return x, x[:, 1:]", "return x + y, given", "return y * x, x, x",
]  # fmt: skip
#: How the layers are called; ``first`` takes one tensor out of a result, ``last`` another.
_CALLS = [
    "for layer in G_LAYERS: x = first(layer(x, y))", "for layer in G_LAYERS: x, y = first(layer(x, y)), last(layer(x, y)).mean()",
    "for layer in G_LAYERS:\n        made = layer(x, y)\n        x = first(made)\n    y = last(made).sum()",
    "made = [layer(x, y) for layer in G_LAYERS]\n    x = x + first(made[2]) + first(made[-1])",
    "made = [layer(x, y) for layer in G_LAYERS]\n    x = sum([first(one) for one in made])\n    y = y + last(made[0]).sum()",
    "for layer in G_LAYERS: y = y + last(layer(x, y)).sum()", "for layer in reversed(G_LAYERS): x = first(layer(x + 1, y)) - 1",
    "x = functools.reduce(lambda z, layer: first(layer(z, y)), G_LAYERS, x)",
    "for i, layer in enumerate(G_LAYERS):\n        x = first(layer(x, y))\n        if i == 4: x.mul_(0.5)",
    "for i, layer in enumerate(G_LAYERS):\n        x = first(layer(x, y))\n        if i == 4: x.t_(); x = x.t()",
    "for layer in G_LAYERS:\n        try: x = first(layer(x, y))\n        except ValueError: x = -x",
    "for layer in G_LAYERS:\n        x = first(layer(x, y))\n        x = x / (1 + x.abs().max())",
    "for layer in G_LAYERS: layer(x, y)", "for a, b in zip(G_LAYERS[::2], G_LAYERS[1::2]): x = first(a(first(b(x, y)), y))",
    "for layer in G_LAYERS:\n        x = first(layer(x, y))\n        if x is y: break",
    "for layer in G_LAYERS:\n        x = first(layer(x, y))\n    z = x.view(-1)[:2]\n    x = x + z.sum()",
    "for layer in [*G_LAYERS, *G_LAYERS[:3]]: x = first(layer(x, y))",
    "for layer in G_LAYERS[:-2]: x = first(layer(x, y))\n    y = x.flatten()[0].item()\n    for layer in G_LAYERS[:-2]: x = first(layer(x, y))",
]  # fmt: skip
_RESULTS = [
    "x",
    "x",
    "x, y",
    "y",
    "x.sum()",
    "[x, first(layer(x, y))]",
    "x.shape, x.is_contiguous()",
    "x.view(-1), x",
]
_CHANGES = [
    "G_LAYERS[3].number = 7", "G_LAYERS[2].linear = nn.Linear(4, 4)", "G_LAYERS[4].table = tensor(1, 5)", "G_LAYERS.append(G_LAYERS[0])",
    "G_LAYERS[1].function = torch.sin", "G_LAYERS[3].train()", "G_LAYERS[5].rows = torch.tensor([0, 0])", "pass",
    "G_LAYERS[3].linear = G_LAYERS[2].linear", "del G_LAYERS[-1]", "torch.nn.init.ones_(G_LAYERS[4].linear.weight)",
]  # fmt: skip


def computing_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    forward = [rng.choice(_FORWARD) for _ in range(rng.randint(3, 8))]
    lines = [
        "class Layer(nn.Module):",
        "    def __init__(self, n):",
        "        super().__init__()",
        "        self.number, self.settings, self.function = 1 + n % 1, G_SETTINGS, torch.tanh",
        "        self.linear, self.norm, self.inner = nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4)",
        "        self.register_buffer('table', tensor(1, n))",
        "        self.register_buffer('rows', torch.tensor([1, 0]))",
        "    def forward(self, x, y):",
        "        given = x",
        "        for _ in range(2): x = x + self.linear(self.norm(x))",
        *[f"        {line}" for line in forward],
        f"        {rng.choice(_RETURN)}",
        "def parts(result):",
        "    if isinstance(result, dict): result = list(result.values())",
        "    if not isinstance(result, (tuple, list)): return [result]",
        "    return [t for part in result if isinstance(part, (torch.Tensor, tuple, list)) for t in parts(part)]",
        "def first(result): return parts(result)[0]",
        "def last(result): return parts(result)[-1]",
        "torch.manual_seed(0)",
        f"G_LAYERS = [Layer(n).eval().requires_grad_(False) for n in range({rng.randint(7, 14)})]",
    ]
    if rng.random() < 0.2:
        lines.append("for layer in G_LAYERS: layer.linear = G_LAYERS[0].linear")
    lines += ["def program(x, y):", f"    {rng.choice(_CALLS)}"]
    if rng.random() < 0.3:
        lines.append(f"    {rng.choice(_CALLS)}")
    lines += [f"    return {rng.choice(_RESULTS)}", "def change():", f"    {rng.choice(_CHANGES)}"]
    call = "program:(tensor(2, 1), tensor(1, 3)[0, 0])"
    calls = [call, call, "change:()", call, "program:(tensor(2, 2), tensor(2, 3))"]
    return Program(PRELUDE + "\n".join(lines) + "\n", calls, PRELUDE)
