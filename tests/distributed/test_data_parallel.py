"""Data-parallel training: few graphs and breaks, and what plain Python computes."""

import loops
import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

WAYS = ["outside", "inside"]
#: Breaks of a compiled data-parallel module: what the reducer does before and after.
AROUND = {"outside": 2, "inside": 0}


def _trained(rank, make, how, backend="eager", **more):
    return loops.compared(make, how, backend, **more)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_a_model_is_one_graph(ranks, how, backend):
    assert ranks.run(_trained, loops.blocks, how, backend) == [(1, AROUND[how])] * 2


@pytest.mark.parametrize("how", WAYS)
def test_buffers_are_those_of_the_first_process(ranks, how):
    assert ranks.run(_trained, loops.Convolutions, how) == [(1, AROUND[how])] * 2


def _with(rank, how, options, backend):
    return loops.compared(loops.blocks, how, backend, options=options)


OPTIONS = [
    {"find_unused_parameters": True}, {"static_graph": True}, {"gradient_as_bucket_view": True},
    {"bucket_cap_mb": 0.0001}, {"broadcast_buffers": False},
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_options_of_the_reducer(ranks, how, options):
    for backend in ("eager", "aot_eager"):
        assert ranks.run(_with, how, options, backend) == [(1, AROUND[how])] * 2


def _second(step):
    return {"second": step % 2 == 1}


def _unused(rank, how, backend):
    options = {"find_unused_parameters": True}
    return loops.compared(loops.Branches, how, backend, options=options, arguments=_second)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_unused_parameters(ranks, how, backend):
    graphs = [graphs for graphs, _ in ranks.run(_unused, how, backend)]
    assert graphs == [2, 2]


def _accumulated(rank, how, backend):
    return loops.compared(loops.blocks, how, backend, accumulate=3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_gradients_are_accumulated_without_talking(ranks, how, backend):
    assert ranks.run(_accumulated, how, backend) == [(1, AROUND[how])] * 2


def _hooked(rank, how):
    def prepare(model):
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)

    return loops.compared(loops.blocks, how, "aot_eager", prepare=prepare)


@pytest.mark.parametrize("how", WAYS)
def test_communication_hooks(ranks, how):
    assert ranks.run(_hooked, how) == [(1, AROUND[how])] * 2
