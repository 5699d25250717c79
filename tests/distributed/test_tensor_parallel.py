"""Tensor parallelism: modules with `DTensor` parameters are captured whole, and train as in plain
Python."""

import data_parallel
import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

import framejit
from framejit.report import events

WIDTH = 8


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Normed(nn.Module):
    """A block whose activations between the layers are sharded along the sequence."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(WIDTH), Perceptron()

    def forward(self, x):
        return x + self.inner(self.norm(x))


def mesh():
    return init_device_mesh("cpu", (2,))


def perceptron(mesh):
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    return parallelize_module(Perceptron(), mesh, plan)


def layers(mesh):
    return nn.Sequential(*[perceptron(mesh) for _ in range(4)])


def normed(mesh):
    plan = {
        "norm": SequenceParallel(),
        "inner": PrepareModuleInput(
            input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
        ),
        "inner.up": ColwiseParallel(),
        "inner.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    return parallelize_module(Normed(), mesh, plan)


def embedded(mesh):
    plan = {
        "0": ColwiseParallel(output_layouts=Replicate()),
        "1": RowwiseParallel(input_layouts=Replicate()),
    }
    model = nn.Sequential(nn.Embedding(12, WIDTH), nn.Linear(WIDTH, WIDTH))
    return parallelize_module(model, mesh, plan)


def _input(make, mesh):
    torch.manual_seed(1)
    if make is embedded:
        return torch.randint(12, (4,))
    x = torch.randn(2, 4, WIDTH)
    return distribute_tensor(x, mesh, [Shard(1)]) if make is normed else x


def _whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _train(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    left = []
    for _ in range(data_parallel.STEPS):
        loss = _whole(model(x)).square().mean()
        loss.backward()
        left += [loss.detach(), [_whole(p.grad) for p in model.parameters()]]
        optimizer.step()
        optimizer.zero_grad()
    return left, [_whole(parameter.detach()) for parameter in model.parameters()]


def _compared(rank, make, backend):
    torch.manual_seed(0)
    shared = mesh()
    x = _input(make, shared)
    torch.manual_seed(0)
    expected = _train(make(shared), x)
    counted = data_parallel.Counted(backend)
    torch.manual_seed(0)
    model = framejit.compile(make(shared), backend=counted)
    with events.recording(events.GraphBreak) as breaks:
        got = _train(model, x)
    exact = {"rtol": 0, "atol": 0} if backend == "eager" else {}
    torch.testing.assert_close(got, expected, **exact)
    return counted.graphs, counted.counting.ops, [one.reason for one in breaks]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "make, ops", [(perceptron, 9), (layers, 36), (normed, 10), (embedded, 9)],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_a_module_is_one_graph(ranks, make, ops, backend):
    assert ranks.run(_compared, make, backend) == [(1, ops, [])] * 2


class Counting:
    """Counts captures of a compiled program."""

    def __init__(self, program):
        self.counted = data_parallel.Counted("eager")
        self.compiled = framejit.compile(program, backend=self.counted, fullgraph=True)
        self.program = program

    def same(self, *args):
        """How many graphs there are after another call, which does the same."""
        expected, got = self.program(*args), self.compiled(*args)
        if isinstance(expected, DTensor):
            assert got._spec == expected._spec and got.requires_grad == expected.requires_grad
        torch.testing.assert_close(_whole(got), _whole(expected))
        return self.counted.graphs


def _there_and_back(x, mesh, placements):
    sharded = DTensor.from_local(x, mesh, placements, run_check=False)
    doubled = (sharded + sharded).redistribute(placements=[Replicate()])
    return doubled.full_tensor() * mesh.size() + doubled.to_local()


def _placements(x):
    place = x.placements[0]
    if isinstance(place, Shard):
        return x * 2, place.dim, x.device_mesh.ndim, x.shape
    return x + 1, place.is_partial(), x.device_mesh.get_rank(), x.shape


def _programs(rank):
    shared, x = mesh(), torch.arange(8.0).view(4, 2)
    captures = []
    counting = Counting(_there_and_back)
    for placements in ([Shard(0)], [Shard(0)], (Shard(1),), [Shard(0)], [Replicate()]):
        captures.append(counting.same(x, shared, placements))
    counting = Counting(_placements)
    for _ in range(2):
        for place in (Shard(0), Replicate(), Shard(1), Partial()):
            given = DTensor.from_local(x, shared, [place], run_check=False)
            expected, got = _placements(given), counting.compiled(given)
            assert got[1:] == expected[1:] and got[0]._spec == expected[0]._spec
            torch.testing.assert_close(got[0].to_local(), expected[0].to_local())
    return captures, counting.counted.graphs


def test_placements_are_guarded(ranks):
    assert ranks.run(_programs) == [([1, 1, 2, 2, 3], 4)] * 2


def _spread(rank):
    shared = mesh()

    def spread(x):
        return distribute_tensor(x * 2, shared, [Shard(0)]) * 3

    counted = data_parallel.Counted("aot_eager")
    with events.recording(events.GraphBreak) as breaks:
        got = framejit.compile(spread, backend=counted)(torch.ones(4, 2))
    expected = spread(torch.ones(4, 2))
    assert got._spec == expected._spec and torch.equal(_whole(got), _whole(expected))
    return counted.graphs, [one.identifier for one in breaks]


def test_distributing_a_tensor_is_one_break(ranks):
    assert ranks.run(_spread) == [(2, ["FJ0131"])] * 2


def _meshes(rank):
    """A mesh of both processes, and one of each alone."""
    groups = init_device_mesh("cpu", (2, 1), mesh_dim_names=("rows", "columns"))
    pair, alone = mesh(), groups["columns"]
    x = torch.arange(8.0).view(4, 2)

    def program(x):
        return (x * 2).full_tensor()

    counting = Counting(program)
    captures = []
    for one in (pair, alone, pair, alone):
        captures.append(counting.same(DTensor.from_local(x, one, [Shard(0)], run_check=False)))
    return captures


def test_meshes_are_guarded(ranks):
    assert ranks.run(_meshes) == [[1, 2, 2, 2]] * 2


def _made_and_computed(rank, backend):
    """All results have a mesh equal to that of the program; an equal one is torch's choice."""
    shared = mesh()

    def program(x, weight):
        local = DTensor.from_local(x, shared, [Shard(0)], run_check=False)
        doubled = local * 2
        return local, doubled, doubled.redistribute(placements=[Replicate()]), doubled * weight

    counted = data_parallel.Counted(backend)
    compiled = framejit.compile(program, backend=counted, fullgraph=True)
    for differentiable in (False, True):
        weight = distribute_tensor(torch.ones(4, 2), shared, [Shard(0)])
        weight.requires_grad_(differentiable)
        x = torch.arange(4.0).view(2, 2) + rank
        for got, expected in zip(compiled(x, weight), program(x, weight), strict=True):
            assert type(got.device_mesh) is type(shared) and got.device_mesh == shared
            assert got._spec == expected._spec, (repr(got._spec), repr(expected._spec))
            assert repr(got) == repr(expected)
            torch.testing.assert_close(got.full_tensor(), expected.full_tensor())
    return counted.graphs


BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_have_the_mesh(ranks, backend):
    assert ranks.run(_made_and_computed, backend) == [2, 2]


def _written_and_viewed(x, y):
    x.mul_(2)
    y.add_(x)
    return x.view(-1), x[:, 1:], x.t(), y


def _other_written(x, y):
    y.add_(x)
    return x.view(-1), y


def _view_written(x, y):
    view = x.view(-1)
    view.mul_(2)
    return view, x


def _views(rank, program, backend):
    """Writes go through the views that are returned."""
    counted = data_parallel.Counted(backend)
    both = []
    for one in (program, framejit.compile(program, backend=counted, fullgraph=True)):
        given = [distribute_tensor(torch.arange(8.0).view(4, 2), mesh(), [Shard(0)]) for _ in "xy"]
        results = one(*given)
        results[0].add_(1)
        tensors = [*results, *given]
        looks = [(type(t), t.shape, t.stride(), t.placements, t._is_view()) for t in tensors]
        both.append((looks, [t.full_tensor().tolist() for t in tensors]))
    assert both[0] == both[1]
    return counted.graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [_written_and_viewed, _other_written, _view_written])
def test_views_of_what_is_written(ranks, program, backend):
    assert ranks.run(_views, program, backend) == [1, 1]


def _twice_sharded(rank, backend):
    """A DTensor that its class cannot make of what it tells of itself: in a graph it is computed,
    and one that comes from elsewhere is left to Python."""

    def flat(x):
        return x.t().contiguous().view(-1) * 2

    x = distribute_tensor(torch.arange(8.0).view(4, 2), mesh(), [Shard(0)])
    counted = data_parallel.Counted(backend)
    results = []
    for program in (flat, framejit.compile(flat, backend=counted, fullgraph=True)):
        made = program(x)
        results.append((made.placements, made.to_local()))
    assert results[0][0] == results[1][0] and torch.equal(results[0][1], results[1][1])
    with events.recording(events.GraphBreak) as breaks:
        added = framejit.compile(lambda y: y + 1, backend=counted)(made)
    assert added.placements == made.placements
    assert torch.equal(added.to_local(), made.to_local() + 1)
    return counted.graphs, [one.identifier for one in breaks]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_tensor_that_its_class_cannot_make_again(ranks, backend):
    assert ranks.run(_twice_sharded, backend) == [(1, ["FJ0114"])] * 2
