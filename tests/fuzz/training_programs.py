"""Writes programs that compute gradients: steps of training in any order, with whatever programs do
between a forward pass and an optimizer's step.

In: a seed. Out: a `Program`: two small networks and what trains them, a step of statements in a
random order, and changes between its calls. Errors of autograd are part of what is compared.
"""

# ruff: noqa: E501 (one statement of a program a line)
from __future__ import annotations

import random

from program_writer import Program

PRELUDE = """
import collections, contextlib, copy, functools, math
import framejit
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

G_LOG = []

def tensor(rows, seed):
    return ((torch.arange(rows * 4) * 7 + seed * 5) % 11 - 4).reshape(rows, 4).float() / 4

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 + ctx.saved_tensors[0] * 0

class Net(nn.Module):
    def __init__(self, seed, norm):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4) if norm else nn.Identity()
        self.scale = nn.Parameter(torch.ones(4))
        with torch.no_grad():
            for i, p in enumerate(self.parameters()):
                p.copy_(((torch.arange(p.numel()) * 5 + seed + i) % 7 - 3).reshape(p.shape) / 4)
    def forward(self, x):
        return self.two(torch.tanh(self.norm(self.one(x)) * self.scale)) + x * 0.5

def noted(name):
    def hook(gradient):
        G_LOG.append((name, tuple(gradient.shape)))
    return hook

@framejit.disable
def apart(net, x):
    return net(x).float()

def weights(net):
    return [net.one.weight, net.two.weight, net.scale]

def penalty(net, x):
    x = x.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return (slope.norm(2, -1) - 1).square().mean()
"""

#: Before anything is computed.
_FIRST = [
    "G_OPT.zero_grad()",
    "G_OPT.zero_grad()",
    "G_OPT.zero_grad()",
    "G_OPT.zero_grad(set_to_none=False)",
    "G_NET.zero_grad(); G_OTHER.zero_grad()",
    "for p in G_NET.parameters(): p.grad = None",
    "pass",
    "G_W.grad = None",
]
#: What makes ``y`` of ``x``.
_FORWARD = [
    "y = G_NET(x)",
    "y = G_NET(x)",
    "y = G_NET(x)",
    "y = G_OTHER(G_NET(x))",
    "y = G_OTHER(G_NET(x).detach())",
    "y = x @ G_W + G_NET(x)",
    "y = checkpoint(G_NET, x, use_reentrant=False)",
    "y = Twice.apply(G_NET(x))",
    "y = F.dropout(G_NET(x), 0.0)",
    "y = torch.stack([G_NET(x), G_OTHER(x)]).sum(0)",
    "y = G_NET(x) * G_NET(-x)",
    "y = torch.cat([G_NET(x[:1]), G_OTHER(x[1:])])",
    "y = G_NET(x + 0)[:, :]",
    "y = torch.where(x > 0, G_NET(x), G_OTHER(x))",
    "y = F.linear(x, G_NET.one.weight.t(), G_NET.scale)",
    "y = (G_W @ G_W.t() @ x.t()).t()",
    "y = G_W.expand(2, 4, 4).sum((0, 1)) + x",
    "y = torch.func.functional_call(G_NET, {'scale': G_OTHER.scale * 2}, (x,))",
]
#: Anything, once there is ``y`` and ``loss``.
_ANY = [
    "y = y + G_NET(x)",
    "y = y.sin()",
    "loss = loss + y.square().mean()",
    "loss = loss * 2",
    "loss = (y - 1).abs().mean()",
    "loss = F.mse_loss(y, x)",
    "loss = loss + penalty(G_NET, x)",
    "loss = loss + G_W.square().sum() * 0.1",
    "loss = F.cross_entropy(y, torch.arange(x.shape[0]) % 4)",
    "if not torch.isfinite(loss): raise ValueError('no loss')",
    "assert not torch.isnan(y).any()",
    "loss.backward()",
    "loss.backward()",
    "loss.backward()",
    "loss.backward(retain_graph=True)",
    "y.sum().backward(retain_graph=True)",
    "y.mean().backward()",
    "y.backward(torch.ones_like(y) / 3, retain_graph=True)",
    "torch.autograd.backward([loss, y.sum()])",
    "loss.backward(inputs=weights(G_NET))",
    "loss.backward(retain_graph=True, inputs=[G_W])",
    "kept.append(torch.autograd.grad(loss, [G_NET.one.weight], retain_graph=True)[0])",
    "kept.append(torch.autograd.grad(y.sum(), weights(G_OTHER), allow_unused=True, retain_graph=True))",
    "g = torch.autograd.grad(loss, G_NET.scale, create_graph=True)[0]; loss = loss + g.square().sum()",
    "kept.append(torch.autograd.grad(loss, y, retain_graph=True)[0])",
    "y.register_hook(lambda g: g * 2)",
    "y.retain_grad()",
    "y = y * 1; y.retain_grad(); kept.append(lambda y=y: y.grad)",
    "kept.append([p.grad is None for p in weights(G_NET)])",
    "G_W.requires_grad_(False)",
    "G_W.requires_grad_(True)",
    "for p in G_OTHER.parameters(): p.requires_grad = False",
    "G_OTHER.requires_grad_(True)",
    "G_NET.scale.requires_grad_(not G_NET.scale.requires_grad)",
    "kept.append((G_W.requires_grad, loss.requires_grad, y.requires_grad, G_W.is_leaf))",
    "G_OPT.step()",
    "G_OPT.step()",
    "G_OPT.step(); G_OPT.zero_grad()",
    "G_OTHER_OPT.step()",
    "G_OPT.zero_grad()",
    "G_SCHEDULER.step()",
    "kept.append(nn.utils.clip_grad_norm_(G_NET.parameters(), 0.5))",
    "nn.utils.clip_grad_value_([p for p in G_NET.parameters() if p.grad is not None], 0.1)",
    "if G_W.grad is not None: G_W.grad.mul_(0.5)",
    "if G_W.grad is not None: G_W.grad = G_W.grad * 2",
    "G_W.grad = None",
    "G_W.grad = torch.ones(4, 4)",
    "kept.append(G_W.grad)",
    "kept.append(G_NET.scale.grad)",
    "with torch.no_grad():\n        for p in weights(G_NET):\n            if p.grad is not None: p -= 0.1 * p.grad",
    "with torch.no_grad(): G_W.add_(0.1)",
    "G_NET.scale.data.clamp_(-1, 1)",
    "G_W.data.mul_(0.9)",
    "with torch.no_grad(): y2 = G_NET(x); kept.append(y2)",
    "with torch.no_grad():\n        for a, b in zip(G_OTHER.parameters(), G_NET.parameters()): a.lerp_(b, 0.1)",
    "z = x.detach().clone().requires_grad_(); (G_NET(z) * 2).sum().backward(); kept.append(z.grad)",
    "z = torch.zeros(4, requires_grad=True); ((z + y) ** 2).sum().backward(retain_graph=True); kept.append(z.grad)",
    "x.requires_grad_(); y = y + x",
    "x = x.detach()",
    "kept.append(x.grad)",
    "kept.append(loss.item())",
    "kept.append(float(loss.detach()))",
    "print(loss.shape)",
    "loss = loss.detach().requires_grad_()",
    "with torch.autocast('cpu', torch.bfloat16): y = y + G_NET(x).float()",
    "with torch.enable_grad(): y = y * G_W.sum()",
    "y = y.detach() + y",
    "y = y.clone(); y.mul_(2)",
    "y = y.clone(); y[0] = 0",
    "for p in weights(G_NET): p.grad = None if p.grad is None else p.grad.clone()",
    "torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(G_OTHER.parameters()), G_OTHER.parameters())",
    "kept.append(sum(p.grad.sum() for p in G_NET.parameters() if p.grad is not None))",
    "state = copy.copy(G_OPT.state_dict()['param_groups']); kept.append(state[0]['lr'])",
    "torch.set_grad_enabled(False); kept.append(G_NET(x)); torch.set_grad_enabled(True)",
    "try: loss.backward()\n    except RuntimeError as e: G_LOG.append(str(e)[:20])",
    "G_W.data = G_W.data * 0.9",
    "G_W.data -= 0.1",
    "G_W.data = y.detach().new_ones(4, 4)",
    "G_W.data, G_NET.one.weight.data = G_NET.one.weight.data, G_W.data",
    "for p in weights(G_NET):\n        if p.grad is not None: p.data = p.data - 0.1 * p.grad",
    "x.data = x * 2",
    "kept.append((y * 2).detach().requires_grad_())",
    "z = nn.Parameter(y.detach()); (z * x).sum().backward(); kept.append(z)",
    "z = y.detach().requires_grad_(); (z * z).sum().backward(); kept.append((z, z.grad))",
    "x = x.detach().clone().requires_grad_(); kept.append(x)",
    "G_NET.scale = nn.Parameter(G_NET.scale.detach() * 2)",
    "kept.append(torch.func.grad(lambda t: G_OTHER(t).sum())(x.detach()))",
]
_RETURN = [
    "return loss.detach(), kept",
    "return loss.detach(), kept",
    "return loss, kept",
    "return y.detach(), kept",
    "return y, loss",
    "return y, loss, kept",
    "return loss, G_W.grad",
    "return kept",
    "return [loss, y * 2]",
    "return loss.item()",
]
#: What happens between two calls.
_CHANGES = [
    "G_W.register_hook(noted('W'))",
    "G_NET.scale.register_hook(lambda g: g * 3)",
    "G_NET.two.weight.register_post_accumulate_grad_hook(lambda p: G_LOG.append(p.grad.sum()))",
    "HANDLES.append(G_W.register_hook(lambda g: -g))",
    "HANDLES and HANDLES.pop().remove()",
    "for p in G_NET.parameters(): p.register_hook(noted('all'))",
    "G_W.requires_grad_(not G_W.requires_grad)",
    "G_NET.requires_grad_(False)",
    "G_NET.requires_grad_(True)",
    "G_OPT.param_groups[0]['lr'] = 0.01",
    "G_OPT.param_groups[0]['weight_decay'] = 0.1",
    "G_NET.eval()",
    "G_NET.train()",
    "G_W.grad = torch.ones(4, 4)",
    "G_OPT.zero_grad()",
    "G_OTHER.one.weight = G_NET.one.weight",
    "G_NET.scale = nn.Parameter(torch.ones(4) * 2)",
    "G_OPT.state.clear()",
    "G_OPT.load_state_dict(G_OPT.state_dict())",
    "G_W.data = G_W.data.t().contiguous()",
    "G_NET.two.weight.grad = G_NET.one.weight.grad",
    "torch.manual_seed(3)",
]
_OPTIMIZERS = [
    "torch.optim.SGD({p}, lr=0.1)", "torch.optim.SGD({p}, lr=0.1, momentum=0.9, nesterov=True)", "torch.optim.Adam({p}, lr=0.1)", "torch.optim.AdamW({p}, lr=0.1, foreach=False)",
    "torch.optim.RMSprop({p}, lr=0.1, centered=True)", "torch.optim.Adagrad({p}, lr=0.1)", "torch.optim.SGD([dict(params=[G_W], lr=0.2), dict(params=[q for q in {p} if q is not G_W])], lr=0.1)",
]  # fmt: skip


FIRST_PROGRAM = 7_000_000
#: From here on, and from as many programs after `FIRST_WHOLE` on, all that branch on their state,
#: compute with lists, or are one operation.
FIRST_OF_ALL_OPTIMIZERS = 7_200_000
_ALL_OPTIMIZERS = [
    *_OPTIMIZERS, "torch.optim.RAdam({p}, lr=0.1)", "torch.optim.RAdam({p}, lr=0.1, foreach=True, weight_decay=0.1)",
    "torch.optim.ASGD({p}, lr=0.1, t0=2)", "torch.optim.ASGD({p}, lr=0.1, foreach=True)", "torch.optim.Adafactor({p}, lr=0.1)",
    "torch.optim.Adafactor({p}, foreach=True)", "torch.optim.NAdam({p}, lr=0.1)", "torch.optim.NAdam({p}, lr=0.1, foreach=True)",
    "torch.optim.Adam({p}, lr=0.1, foreach=True)", "torch.optim.Adam({p}, lr=0.1, fused=True)", "torch.optim.SGD({p}, lr=0.1, fused=True)",
    "torch.optim.SGD({p}, lr=torch.tensor(0.1), foreach=False)", "torch.optim.Adagrad({p}, lr=torch.tensor(0.1))", "torch.optim.Rprop({p}, lr=0.1)",
    "torch.optim.Adamax({p}, lr=0.1, foreach=True)", "torch.optim.Adadelta({p}, lr=0.1, foreach=True)",
]  # fmt: skip

#: A graph that AOTAutograd has compiled is one node of autograd's: from here on no program sees that
#: by what it does between two graphs.
FIRST_WHOLE = 7_500_000
#: From here on parameters that a checkpoint uses begin and cease to require gradients.
FIRST_FROZEN = 7_800_000
#: From here on layers run under autocast in a graph break, where torch keeps the casts of weights.
FIRST_AUTOCAST = 7_900_000
_AUTOCAST = [
    "with torch.autocast('cpu', torch.bfloat16): y = y + apart(G_OTHER, x)",
    "with torch.autocast('cpu', torch.bfloat16): y = y + (x.detach() @ G_W).float() + apart(G_OTHER, x)",
    "with torch.autocast('cpu', torch.bfloat16):\n        with torch.autocast('cpu', enabled=False): y = G_NET(y) + apart(G_OTHER, x)",
]
_BETWEEN_GRAPHS = (
    "expand",
    "torch.func",
    ".item()",
    "float(",
    "print(",
    "try:",
    "inputs=",
    "(loss, y",
    "retain_grad",
    "hook(",
    ".data",
)
_WITHIN = [s for s in _ANY if not any(part in s for part in _BETWEEN_GRAPHS)]
_FORWARD_WITHIN = [s for s in _FORWARD if not any(part in s for part in _BETWEEN_GRAPHS)]


def training_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    whole = seed >= FIRST_WHOLE
    statements, forward = (_WITHIN, _FORWARD_WITHIN) if whole else (_ANY, _FORWARD)
    more = FIRST_OF_ALL_OPTIMIZERS <= seed % 500_000 + FIRST_PROGRAM < FIRST_WHOLE
    optimizer = rng.choice(_ALL_OPTIMIZERS if more else _OPTIMIZERS).format(
        p="[*G_NET.parameters(), G_W]"
    )
    lines = [
        "G_W = nn.Parameter(tensor(4, 3))",
        f"G_NET, G_OTHER = Net(1, {rng.random() < 0.3}), Net(2, False)",
        f"G_OPT = {optimizer}",
        "G_OTHER_OPT = torch.optim.SGD(G_OTHER.parameters(), lr=0.1)",
        "G_SCHEDULER = torch.optim.lr_scheduler.ExponentialLR(G_OPT, 0.9)",
        "HANDLES = []",
        "def step(x):",
        "    kept = []",
        f"    {rng.choice(_FIRST)}",
        f"    {rng.choice(forward)}",
        f"    loss = {rng.choice(('y.square().mean()', 'F.mse_loss(y, x)', 'y.sum()', '(y * x).mean()'))}",
    ]
    body = [rng.choice(statements) for _ in range(rng.randint(2, 7))]
    if seed >= FIRST_AUTOCAST:
        body = [*rng.choices(_AUTOCAST, k=2), *body, "G_OPT.step()"]
    if "checkpoint" in lines[-2]:  # it would compute again with another parameter
        others = ("G_NET.scale = ", "G_NET.scale.requires_grad_(")[: 1 + (seed < FIRST_FROZEN)]
        body = [statement for statement in body if not any(other in statement for other in others)]
    if rng.random() < 0.6:  # what most steps do
        body.insert(rng.randint(0, len(body)), "loss.backward()")
        body.append("G_OPT.step()")
    lines += [f"    {statement}" for statement in body]
    result, change = rng.choice(_RETURN), rng.choice(_CHANGES)
    if whole and "'all'" in change:  # it would see in which order gradients arrive at parameters
        change = "pass"
    lines += [f"    {result}", "def change():", f"    {change}"]
    call = f"step:(tensor({rng.choice((2, 3))}, 1){rng.choice(('', '', '.requires_grad_()'))},)"
    calls = [call, call, call, "change:()", call, call]
    return Program(PRELUDE + "\n".join(lines) + "\n", calls, PRELUDE, nodes=False)
