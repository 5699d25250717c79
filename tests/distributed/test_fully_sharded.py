"""Sharded modules (`fully_shard`): blocks are captured whole, and train as in plain Python."""

import data_parallel
import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import framejit
from framejit.report import events

BLOCKS = 3


def _sharded(how, backend, checkpoints=False, **options):
    """``how``: plain; the whole model; its blocks before or after they are sharded."""
    torch.manual_seed(0)
    model = data_parallel.blocks()
    if checkpoints:
        for index in range(BLOCKS):
            model[index] = checkpoint_wrapper(model[index])
    for index in range(BLOCKS):
        block = model[index]
        if how == "blocks before":  # what `nn.Module.compile` does
            block._compiled_call_impl = framejit.compile(
                block._call_impl, backend=backend, fullgraph=True
            )
        if how == "blocks":
            model[index] = block = framejit.compile(block, backend=backend, fullgraph=True)
        fully_shard(block, **options)
    fully_shard(model, **options)
    if how == "blocks after":
        for index in range(BLOCKS):
            model[index] = framejit.compile(model[index], backend=backend, fullgraph=True)
    return framejit.compile(model, backend=backend) if how == "whole" else model


def _local(tensor):
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    left = []
    for step in range(data_parallel.STEPS):
        x, y = data_parallel.batch(step)
        loss = nn.functional.mse_loss(model(x).float(), y)
        loss.backward()
        left += [loss.detach(), [_local(p.grad) for p in model.parameters()]]
        optimizer.step()
        optimizer.zero_grad()
    return left, [_local(parameter.detach()) for parameter in model.parameters()]


def _compared(rank, how, backend, **options):
    expected = _train(_sharded("plain", None, **options))
    counted = data_parallel.Counted(backend)
    with events.recording(events.GraphBreak) as breaks:
        got = _train(_sharded(how, counted, **options))
    exact = {"rtol": 0, "atol": 0} if backend == "eager" else {}
    torch.testing.assert_close(got, expected, **exact)
    return counted.graphs, len(breaks)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", ["blocks", "blocks before", "blocks after"])
def test_each_block_is_one_graph(ranks, how, backend):
    assert ranks.run(_compared, how, backend) == [(BLOCKS, 0)] * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_model(ranks, backend):
    """A graph for each module that is sharded on its own, and breaks between them."""
    assert ranks.run(_compared, "whole", backend) == [(BLOCKS, BLOCKS)] * 2


def _with(rank, how, options):
    return _compared(rank, how, "aot_eager", **options)


OPTIONS = {
    "checkpoints": {"checkpoints": True},
    "kept": {"reshard_after_forward": False},
    "mixed": {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)},
}


@pytest.mark.parametrize("how", ["blocks", "blocks before", "blocks after"])
@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_sharding(ranks, how, name):
    assert ranks.run(_with, how, OPTIONS[name]) == [(BLOCKS, 0)] * 2


# -- methods of sharded modules --------------------------------------------------------------------


def _accumulated(model):
    """Gradients are exchanged, and parameters let go, for every second batch."""
    left = []
    for step in range(data_parallel.STEPS):
        x, y = data_parallel.batch(step)
        last = step % 2 == 1
        model.set_requires_gradient_sync(last)
        model.set_is_last_backward(last)
        model.set_reshard_after_backward(last)
        nn.functional.mse_loss(model(x), y).backward()
        if last:
            left.append([_local(p.grad) for p in model.parameters()])
            model.zero_grad()
    return left


def _gathered(model):
    """Parameters are whole while the model is used several times."""
    left = []
    for step in range(2):
        model.unshard()
        with torch.no_grad():
            left += [model(data_parallel.batch(step + again)[0]) for again in range(2)]
        model.reshard()
    return left


def _ahead(model):
    """The parameters of a block are gathered while the one before it runs."""
    for index in range(BLOCKS - 1):
        model[index].set_modules_to_forward_prefetch([model[index + 1]])
        model[index + 1].set_modules_to_backward_prefetch([model[index]])
    return _train(model)


def _used(rank, how, use):
    expected = use(_sharded("plain", None))
    counted = data_parallel.Counted("eager")
    with events.recording(events.GraphBreak) as breaks:
        got = use(_sharded(how, counted))
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    return counted.graphs, len(breaks)


@pytest.mark.parametrize("how, breaks", [("whole", BLOCKS), ("blocks", 0), ("blocks after", 0)])
@pytest.mark.parametrize("use", [_accumulated, _gathered, _ahead])
def test_methods_of_compiled_modules(ranks, how, breaks, use):
    for graphs, found in ranks.run(_used, how, use):
        assert graphs >= BLOCKS and found % BLOCKS == 0 and found >= breaks
