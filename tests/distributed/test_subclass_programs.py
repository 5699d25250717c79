"""Programs with distributed tensors, each held against plain Python and `torch.compile`."""

import sys
from pathlib import Path

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent.parent / "subclasses"))
from conforming import Program, conforms, graphs_of_peer  # noqa: E402

_meshes = []


def mesh():
    if not _meshes:
        _meshes.append(init_device_mesh("cpu", (2,)))
    return _meshes[0]


def spread(values=0.0, place=None, rows=4):
    local = torch.arange(4.0 * rows).reshape(rows, 4) / 8 + values
    placements = [Shard(0) if place is None else place]
    return DTensor.from_local(local, mesh(), placements, run_check=False)


def _layer(x, up, down):
    return functional.linear(functional.gelu(functional.linear(x, up)), down).full_tensor()


def _layers(x, up, down):
    y = functional.linear(x, up)
    return (x + functional.linear(y.relu(), down).redistribute(placements=[Shard(0)])).to_local()


def _weights(values=0.0):
    return spread(values), spread(values, Shard(1))


def _asked(x):
    place = x.placements[0]
    return x * (2 if place.is_shard() else 3), place.is_partial(), x.device_mesh.size(), x.shape


def _gathered(x):
    return x.redistribute(placements=[Replicate()]) * 2, x.full_tensor().sum()


def _made(x, mesh):
    made = DTensor.from_local(x, mesh, [Shard(0)], run_check=False)
    return (made + made).redistribute(placements=[Replicate()]).to_local(), made.to_local()


def _one(values):
    return (spread(values),)


def _whole(values=0.0):
    return spread(values, Replicate())


PROGRAMS = {
    "computes": Program(
        lambda x: (torch.sin(x) * 2 + x, x.t(), x[:, 1:]), _one, lambda: (_whole(),)
    ),
    "reduces": Program(
        lambda x: (x.sum(), x.mean(0), x.softmax(-1)), _one, lambda: (spread(0.0, Shard(1)),)
    ),
    "asks": Program(_asked, _one, lambda: (spread(0.0, Partial()),)),
    "gathers": Program(_gathered, _one, lambda: (spread(0.0, Shard(1)),)),
    "makes": Program(
        _made, lambda values: (torch.ones(2, 3) * values, mesh()),
        lambda: (torch.ones(2, 3).double(), mesh()),
    ),
    "multiplies": Program(
        lambda x, w: x @ w, lambda v: (spread(v), _whole(v)), lambda: (_whole(), _whole())
    ),
    "a layer": Program(
        _layer, lambda v: (_whole(v), *_weights(v)), lambda: (spread(0.0), *_weights())
    ),
    "layers": Program(
        _layers, lambda v: (spread(v, rows=2), *_weights(v)), lambda: (spread(), *_weights())
    ),
}  # fmt: skip


def _conforms(rank, name, backend):
    conforms(PROGRAMS[name], backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_may_change_and_placements_may_not(ranks, name, backend):
    ranks.run(_conforms, name, backend)


def _beside(rank, name):
    return graphs_of_peer(PROGRAMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_compile_makes_no_fewer_graphs(ranks, name):
    assert all(graphs is None or graphs >= 1 for graphs in ranks.run(_beside, name))
