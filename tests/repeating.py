"""Models of repeated blocks, what a training step leaves behind, and `Regions`: a backend that
takes graphs with regions and counts them."""

import torch
import torch.nn.functional as F
from torch import nn

from framejit.backends.registry import lookup_backend

#: Asks for regions also where they cost more time in calls than they save.
ALL = {"regions": True}


class Regions:
    """A backend that counts the calls of each region of the graphs it is given."""

    regions = True

    def __init__(self, backend="aot_eager"):
        self.backend = lookup_backend(backend)
        self.graphs = []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        return self.backend(gm, inputs)

    @property
    def calls(self):
        """Per graph: how often each of its subgraphs is called, by their names."""
        return [calls_of(gm) for gm in self.graphs]


def calls_of(gm):
    """How often a graph calls each of its subgraphs, by their names."""
    counts = {}
    for node in gm.graph.nodes:
        if getattr(node.target, "__name__", "") == "invoke_subgraph":
            name = node.args[0].target
            counts[name] = counts.get(name, 0) + 1
    return counts


class Block(nn.Module):
    """A block as transformers have them, with what its subclasses change."""

    def __init__(self, width=8):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, *rest):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.down(F.gelu(self.up(self.inner(x))))


class Stack(nn.Module):
    def __init__(self, count=4, block=Block, **options):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([block(**options) for _ in range(count)])

    def forward(self, x, *rest):
        x = self.first(x)
        for block in self.blocks:
            x = block(x, *rest)
        return x.tanh()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in tensors_in(part)] if isinstance(value, tuple) else []


def step(model, run, arguments, train):
    """What a call, and backward, leave behind."""
    for parameter in model.parameters():
        parameter.grad = None
    torch.manual_seed(1)
    with torch.set_grad_enabled(train):
        result = run(*arguments)
    if train:
        sum((i + 1) * t.square().sum() for i, t in enumerate(tensors_in(result))).backward()
    gradients = [p.grad for p in model.parameters()]
    state = [b.clone() for b in model.buffers()]
    strides = [t.stride() for t in tensors_in(result)]
    return result, gradients, state, strides, torch.rand(1)
