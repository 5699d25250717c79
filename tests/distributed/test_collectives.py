"""Collective operations are nodes of the graph, and do what they do in plain Python."""

import copy

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend

WORLD = 2


def reduced(x):
    y = x + 1
    dist.all_reduce(y)
    return y * 2


def maximum(x):
    y = x * (dist.get_rank() - 0.5)
    dist.all_reduce(y, op=dist.ReduceOp.MAX, group=dist.group.WORLD)
    return y


def written_input(x):
    assert dist.all_reduce(x) is None
    return x * 2


def unused(x):
    y = x + 1
    dist.all_reduce(y)
    return x * 2


def awaited(x):
    y = x + 1
    work = dist.all_reduce(y, async_op=True)
    z = x * 3
    return work.wait(), y * z


def broadcasted(x):
    y = x + dist.get_rank()
    dist.broadcast(y, src=1)
    z = y * 2 + dist.get_rank()
    dist.broadcast(z, group_src=0)
    return y, z


def gathered(x):
    y = x.new_empty(WORLD * x.size(0))
    dist.all_gather_into_tensor(y, x + dist.get_rank())
    return y * 2


def gathered_lists(x):
    parts = [torch.empty_like(x) for _ in range(WORLD)]
    dist.all_gather(parts, x + dist.get_rank())
    return torch.stack(parts)


def scattered(x):
    y = x.new_empty(x.size(0) // WORLD)
    dist.reduce_scatter_tensor(y, x + dist.get_rank())
    return y * 2


def exchanged(x):
    y = torch.empty_like(x)
    dist.all_to_all_single(y, x + dist.get_rank())
    return y * 2


def exchanged_unevenly(x):
    mine = [1, 3] if dist.get_rank() == 0 else [3, 1]
    sizes = [mine[0], 3] if dist.get_rank() == 0 else [3, 1]
    y = x.new_empty(sum(sizes))
    dist.all_to_all_single(y, x + dist.get_rank(), sizes, mine)
    return y * 2


def in_a_loop(x):
    total = x
    for step in range(3):
        part = total * step
        dist.all_reduce(part)
        total = total + part
    return total


FUNCTIONAL = {
    "all_reduce": lambda x, group: functional.all_reduce(x + 1, "sum", group) * 2,
    "by_name": lambda x, group: functional.all_reduce(x + 1, "avg", group.group_name) * 2,
    "all_gather": lambda x, group: functional.all_gather_single(x + 1, 0, group) * 2,
    "second_dimension": lambda x, group: (
        functional.all_gather_single(x.view(2, -1) + 1, 1, group) * 2
    ),
    "reduce_scatter": lambda x, group: functional.reduce_scatter_single(x, "sum", 0, group) * 2,
    "broadcast": lambda x, group: functional.broadcast(x + 1, 1, group) * 2,
    "all_to_all": lambda x, group: functional.all_to_all_single(x, None, None, group) * 2,
    "permute": lambda x, group: functional.permute_tensor(x + 1, [1, 0], group) * 2,
    "several": lambda x, group: sum(functional.all_reduce_coalesced([x, x + 1], "sum", group)),
    "operators": lambda x, group: (
        torch.ops._c10d_functional.wait_tensor(
            torch.ops._c10d_functional.all_reduce(x + 1, "sum", group.group_name)
        )
        * 2
    ),
}
IN_PLACE = [
    reduced, maximum, written_input, unused, awaited, broadcasted, gathered, gathered_lists,
    scattered, exchanged, exchanged_unevenly, in_a_loop,
]  # fmt: skip


def _same(function, backend, *more):
    counting = CountingBackend()

    def both(module, inputs):
        counting(module, inputs)
        return lookup_backend(backend)(module, inputs)

    compiled = framejit.compile(function, backend=both, fullgraph=True)
    for call in range(2):
        x = torch.arange(4.0) + dist.get_rank() + call
        mine = copy.deepcopy(x)
        torch.testing.assert_close(compiled(mine, *more), function(x, *more), rtol=0, atol=0)
        assert torch.equal(mine, x)
    assert len(counting.graphs) == 1
    return [node.name for node in counting.graphs[0].graph.nodes]


def _in_place(rank, backend):
    return {function.__name__: _same(function, backend) for function in IN_PLACE}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_collectives_that_write_are_part_of_the_graph(ranks, backend):
    for nodes in ranks.run(_in_place, backend):
        assert all(any("wait_tensor" in name for name in names) for names in nodes.values())
        assert sum("all_reduce" in name for name in nodes["in_a_loop"]) == 3


def _functional(rank, backend):
    names = {n: _same(f, backend, dist.group.WORLD) for n, f in FUNCTIONAL.items()}
    return [name for name, nodes in names.items() if not any("wait" in node for node in nodes)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functional_collectives_are_part_of_the_graph(ranks, backend):
    assert ranks.run(_functional, backend) == [[], []]


def _gradients(rank, backend):
    def loss(x, weight):
        gathered = functional.all_gather_single_autograd(x * weight, 0, dist.group.WORLD)
        return (gathered**2).sum()

    compiled = framejit.compile(loss, backend=backend, fullgraph=True)
    found = []
    for function in (loss, compiled):
        weight = torch.full((4,), 2.0 + rank, requires_grad=True)
        function(torch.arange(4.0), weight).backward()
        found.append(weight.grad)
    assert torch.equal(*found)
    return found[0].tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_go_through_collectives(ranks, backend):
    first, second = ranks.run(_gradients, backend)
    assert first != second


class Row(torch.nn.Module):
    """A layer of which each process has a part."""

    def __init__(self, later):
        super().__init__()
        self.norm, self.first = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
        self.second, self.later = torch.nn.Linear(8, 8), later

    def forward(self, x):
        y = self.second(torch.nn.functional.gelu(self.first(self.norm(x))))
        work = dist.all_reduce(y, async_op=self.later)
        z = x.sin() * 2
        if work is not None:
            work.wait()
        return y + z


def _layers(rank, later, backend):
    model = torch.nn.Sequential(*[Row(later) for _ in range(6)])
    counting = CountingBackend()

    def both(module, inputs):
        counting(module, inputs)
        return lookup_backend(backend)(module, inputs)

    compiled = framejit.compile(model, backend=both, fullgraph=True)
    with torch.no_grad():
        x = torch.randn(2, 8)
        torch.testing.assert_close(compiled(x), model(x))
    (graph,) = counting.graphs
    return sum("all_reduce" in node.name for node in graph.graph.nodes)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("later", [False, True])
def test_equal_layers_talk_once_each(ranks, later, backend):
    assert ranks.run(_layers, later, backend) == [6, 6]


# -- what Python has to do -------------------------------------------------------------------------


def not_awaited(x):
    y = x + 1
    return y, dist.all_reduce(y, async_op=True)


def with_gradient(x):
    y = x * torch.ones(4, requires_grad=True)
    dist.all_reduce(y)
    return y


def strided(x):
    y = torch.zeros(4, 2)
    dist.broadcast(y[:2].t(), src=0)
    return y + x[:2]


def wrong_sizes(x):
    y = x.new_empty(3)
    dist.all_gather_into_tensor(y, x)
    return y


def too_few(x):
    dist.all_gather([torch.empty_like(x)], x)
    return x


def too_many(x):
    parts = [torch.empty_like(x) for _ in range(WORLD + 1)]
    dist.all_gather(parts, x)
    return torch.stack(parts)


def _said(function, x):
    try:
        result = function(x)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)
    if isinstance(result, tuple):
        result[1].wait()
        return result[0].tolist()
    return result.tolist()


def _by_python(rank):
    found = []
    for function in (not_awaited, with_gradient, strided, wrong_sizes, too_few, too_many):
        compiled = framejit.compile(function, backend="eager")
        expected = _said(function, torch.arange(4.0) + rank)
        assert [_said(compiled, torch.arange(4.0) + rank) for _ in range(2)] == [expected] * 2
        if function not in (wrong_sizes, too_few, too_many):
            x = torch.arange(4.0) + rank
            found.append(max(event.identifier for event in framejit.explain(function)(x).breaks))
    return found


def test_what_no_graph_can_hold_is_done_by_python(ranks):
    assert ranks.run(_by_python) == [["FJ0161", "FJ0125", "FJ0125"]] * 2


# -- operations happen once, in every process ------------------------------------------------------


def picks(x, index):
    y = x + 1
    dist.all_reduce(y)
    return y[index]


def _raising(rank, backend):
    """One process raises after the operation; it must not be repeated."""
    compiled = framejit.compile(picks, backend=backend)
    x = torch.arange(4.0)
    good, bad = torch.tensor([1]), torch.tensor([9])
    compiled(x, good)
    error = None
    try:
        compiled(x, bad if rank == 0 else good)
    except IndexError as raised:
        error = str(raised)
    after = x + rank
    dist.all_reduce(after)  # a repeated operation would meet this one
    assert (error is not None) == (rank == 0)
    return after.tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operation_is_not_repeated_when_its_graph_raises(ranks, backend):
    expected = (2 * torch.arange(4.0) + 1).tolist()
    assert ranks.run(_raising, backend) == [expected] * 2


def _divided(rank):
    """A condition that is taken for granted, and does not hold in one process."""

    def check(x, bad):
        y = x + 1
        dist.all_reduce(y)
        if (bad > 0).any():
            raise ValueError("bad")
        return y

    compiled = framejit.compile(check, backend="eager")
    x = torch.arange(4.0)
    compiled(x, torch.zeros(2))
    error = None
    try:
        compiled(x, torch.full((2,), float(rank)))
    except ValueError as raised:
        error = str(raised)
    after = x + rank
    dist.all_reduce(after)
    return error, after.tolist()


def test_an_operation_is_not_repeated_for_a_condition(ranks):
    after = (2 * torch.arange(4.0) + 1).tolist()
    assert ranks.run(_divided) == [(None, after), ("bad", after)]


def _unused_in_one(rank, backend):
    """Only one process uses the result; all take part."""

    def mean(x):
        total = functional.all_reduce(x, "sum", dist.group.WORLD)
        return total / dist.get_world_size() if dist.get_rank() == 0 else x * 2

    compiled = framejit.compile(mean, backend=backend, fullgraph=True)
    return [compiled(torch.arange(2.0) + rank).tolist() for _ in range(2)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_unused_operations_still_happen(ranks, backend):
    first, second = ranks.run(_unused_in_one, backend)
    assert first == [[0.5, 1.5]] * 2 and second == [[2, 4]] * 2


# -- from one process to another -------------------------------------------------------------------


def in_a_ring(x):
    left, right = (dist.get_rank() - 1) % WORLD, (dist.get_rank() + 1) % WORLD
    sent, received = x * 2, torch.empty_like(x)
    pair = [dist.P2POp(dist.isend, sent, right), dist.P2POp(dist.irecv, received, left)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return received + 1


def one_way(x):
    y = x * 2
    work = dist.isend(y, 1) if dist.get_rank() == 0 else dist.irecv(y, 0)
    z = x.sin()
    work.wait()
    return y + z


def _sent(rank):
    found = []
    for function in (in_a_ring, one_way):
        compiled = framejit.compile(function, backend="eager")
        expected = function(torch.arange(4.0) + rank)
        for _ in range(2):
            assert torch.equal(compiled(torch.arange(4.0) + rank), expected)
        breaks = framejit.explain(function)(torch.arange(4.0) + rank).breaks
        found.append([event.identifier for event in breaks].count("FJ0125"))
        found.append(len(breaks))
    return found


def test_sending_and_waiting_are_one_graph_break_each(ranks):
    assert ranks.run(_sent) == [[1, 2, 1, 2]] * WORLD
