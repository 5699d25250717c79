"""``checkpoint(context_fn=...)``: what is kept and what is computed again."""

import functools
from collections import defaultdict

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import framejit
from checking import Comparison, CountingBackend

MATMULS = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default]


def of_products(context, operator, *args, **kwargs):
    kept = operator in MATMULS
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def every_other_product():
    """A policy that counts, made anew for each block."""
    counts = defaultdict(int)

    def policy(context, operator, *args, **kwargs):
        if operator in MATMULS:
            counts[context.is_recompute] += 1
        kept = operator in MATMULS and counts[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.drop = nn.Linear(4, 8), nn.Linear(8, 4), nn.Dropout(0.5)

    def forward(self, x):
        return x + self.drop(self.two(self.one(x.sin()).tanh()))


CONTEXTS = {
    "function": functools.partial(create_selective_checkpoint_contexts, of_products),
    "list": functools.partial(create_selective_checkpoint_contexts, MATMULS),
    "counting": every_other_product,
    "lambda": lambda: create_selective_checkpoint_contexts(of_products),
}


class Model(nn.Module):
    def __init__(self, contexts):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.contexts = contexts

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, context_fn=self.contexts)
        return x.square().mean()


def train(contexts, compile, whole):
    torch.manual_seed(0)
    model = Model(contexts)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    call = model if whole else compile(model)

    def step(x):
        optimizer.zero_grad()
        loss = call(x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = compile(step) if whole else step
    return [step(torch.randn(3, 4)) for _ in range(3)], dict(model.named_parameters())


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("contexts", CONTEXTS)
def test_contexts(contexts, backend, whole):
    contexts = CONTEXTS[contexts]
    expected = train(contexts, lambda f: f, whole)
    got = train(contexts, lambda f: framejit.compile(f, backend=backend, fullgraph=True), whole)
    Comparison().compare(expected, got, "")


def products_in_backward(contexts):
    """How many products a backward graph computes; two gradients per layer, and what is computed
    again."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    found = []

    def count(gm, inputs):
        found.append(sum(node.target in MATMULS for node in gm.graph.nodes))
        return gm.forward

    backend = aot_autograd(
        fw_compiler=lambda gm, inputs: gm.forward,
        bw_compiler=count,
        partition_fn=min_cut_rematerialization_partition,
    )
    torch.manual_seed(0)
    framejit.compile(Model(contexts), backend=backend, fullgraph=True)(torch.ones(3, 4)).backward()
    return found[0]


def test_the_partitioner_knows_what_is_kept():
    everything = functools.partial(create_selective_checkpoint_contexts, [])
    again = products_in_backward(everything)
    kept = products_in_backward(CONTEXTS["function"])
    assert again > products_in_backward(every_other_product) > kept


def other_contexts():
    return torch.enable_grad(), torch.enable_grad()


SEEN = []


def noting():
    SEEN.append("made")
    return create_selective_checkpoint_contexts(of_products)


@pytest.mark.parametrize("contexts", [other_contexts, noting])
def test_other_contexts_are_made_by_python(contexts):
    counting = CountingBackend()
    SEEN.clear()
    expected = train(contexts, lambda f: f, False), list(SEEN)
    SEEN.clear()
    got = train(contexts, lambda f: framejit.compile(f, backend=counting), False), list(SEEN)
    Comparison().compare(expected, got, "")


def test_another_policy_is_noticed():
    model = Model(CONTEXTS["function"])
    counting = CountingBackend()
    compiled = framejit.compile(model, backend=counting, fullgraph=True)
    for contexts in CONTEXTS.values():
        model.contexts = contexts
        compiled(torch.ones(3, 4)).backward()
    assert len(counting.graphs) == len(CONTEXTS)


def test_a_reentrant_checkpoint_takes_none():
    @framejit.compile(backend="eager")
    def f(x):
        return checkpoint(torch.sin, x, use_reentrant=True, context_fn=CONTEXTS["function"])

    with pytest.raises(ValueError, match="context_fn"):
        f(torch.ones(3, requires_grad=True))
