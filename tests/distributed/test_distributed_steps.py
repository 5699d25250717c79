"""Whole steps of training, compiled: model, loss, backward, optimizer. Of a model that is split by
layers all of it is one graph."""

from collections import Counter

import data_parallel
import engines
import pytest
import torch
import torch.distributed as dist
from torch import nn

#: Graphs, and breaks by kind: what PyTorch does around modules that it distributes, and backward
#: of what comes before that. The optimizer's state is made in the first step, hence twice.
EXPECTED = {
    "replicated": (4, {"FJ0126": 1, "FJ0117": 1}),
    "sharded_whole": (7, {"FJ0126": 4, "FJ0117": 1}),
    "split_whole": (2, {}),
    "both": (7, {"FJ0126": 4, "FJ0117": 1}),
}


@pytest.fixture
def processes(request, way):
    """Four processes where a mesh has two directions, else two."""
    return request.getfixturevalue("four_ranks" if way == "both" else "ranks")


def momenta(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def _train(way, make, clips, compiles):
    model = engines.WAYS[way](lambda module: module)
    optimizer = make(model.parameters())
    place = {"split_whole": 0, "both": dist.get_rank() // 2}.get(way, dist.get_rank())

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    step, left = compiles(step), []
    for index in range(data_parallel.STEPS):
        generator = torch.Generator().manual_seed(100 * index + place)
        x = torch.randn(2, engines.LENGTH, 8, generator=generator)
        left.append(step(x, torch.randn(2, engines.LENGTH, 4, generator=generator)))
    assert all(parameter.grad is None for parameter in model.parameters())
    tensors = [*left, *[parameter.detach() for parameter in model.parameters()]]
    return [engines.whole(tensor).clone() for tensor in tensors]


def _compared(rank, way, make, clips, backend):
    engine = engines.Ours(backend)
    expected = _train(way, make, clips, lambda step: step)
    with engine.counting():
        got = _train(way, make, clips, engine.compile)
    exact = {"rtol": 0, "atol": 0} if backend == "eager" else {}
    torch.testing.assert_close(got, expected, **exact)
    return engine.counted.graphs, dict(Counter(one.identifier for one in engine.breaks))


@pytest.mark.parametrize("backend", [pytest.param("eager", marks=pytest.mark.slow), "aot_eager"])
@pytest.mark.parametrize("way", EXPECTED)
def test_steps(processes, way, backend):
    found = processes.run(_compared, way, momenta, False, backend)
    assert found == [EXPECTED[way]] * processes.count


@pytest.mark.parametrize("way", ["split_whole"])
@pytest.mark.parametrize(
    "make, clips",
    [(torch.optim.AdamW, False), pytest.param(momenta, True, marks=pytest.mark.slow)],
)
def test_other_steps_of_a_split_model(processes, way, make, clips):
    assert processes.run(_compared, way, make, clips, "aot_eager") == [(2, {})] * processes.count


def _beside(rank, way):
    ours, peer = engines.Ours("eager"), engines.Peer("eager")
    for engine in (ours, peer):
        with engine.counting():
            _train(way, momenta, False, engine.compile)
    return ours.counted.counting.ops >= peer.counted.counting.ops, len(ours.breaks) <= len(
        peer.breaks
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["replicated", "sharded_whole"])
def test_torch_compile_has_no_fewer_breaks(processes, way):
    """And captures no more operations."""
    assert processes.run(_beside, way) == [(True, True)] * processes.count
