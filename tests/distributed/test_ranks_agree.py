"""Ranks that compile the same, and one error where they do not."""

import os
import tempfile
import time

import pytest
import torch
import torch.distributed as dist
from ranks import PATIENCE, without_group
from torch.testing._internal.distributed import fake_pg

import framejit
from checking import CountingBackend
from framejit import ranks as agreement
from framejit.callables import compiled_function_of
from framejit.exc import BackendCompilerFailed, RanksDisagree

#: Seconds that a rank waits for the others: longer than any takes on a busy machine; and for one
#: that never comes.
LONG, SHORT = PATIENCE - 20, 2


def _told(call, *args, seconds=LONG):
    """What is said of a difference, and for how long it took; a result is none."""
    started = time.monotonic()
    with framejit.config.patch(ranks_agree=True, ranks_agree_seconds=seconds):
        try:
            call(*args)
        except RanksDisagree as error:
            return str(error), time.monotonic() - started
    return "", time.monotonic() - started


def _alone(rank, function, *args):
    """The ranks call ``function`` in a group of its own, as what they do may differ."""
    with without_group(rank) as store:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        try:
            return function(rank, *args)
        finally:
            dist.destroy_process_group()


# -- what is alike


def _steps(rank):
    """All ranks meet the same sizes, one after the other."""

    def step(x, weight):
        y = (x @ weight).relu()
        dist.all_reduce(y)
        framejit.graph_break()
        return y.sum() + x.shape[0] + rank

    backend, made = CountingBackend(), []
    compiled, weight = framejit.compile(step, backend=backend), torch.ones(4, 3)
    with framejit.config.patch(ranks_agree=True, ranks_agree_seconds=LONG):
        for size in (4, 5, 6):
            x = torch.full((size, 4), 1.0 + rank)
            made.append((compiled(x, weight).tolist(), step(x, weight).tolist()))
    return len(backend.graphs), made


def test_equal_programs_compile_as_without(ranks):
    for count, made in ranks.run(_steps):
        assert count == 4  # for one size and for all, before and after the break
        assert all(got == expected for got, expected in made)


def _sizes(rank):
    """Each rank has another batch in the first call already."""
    linear = torch.nn.Linear(4, 2)
    backend, right = CountingBackend(), []
    compiled = framejit.compile(lambda x, y: linear(x) + y[:, :2], backend=backend)
    with framejit.config.patch(ranks_agree=True, ranks_agree_seconds=LONG):
        for size in (8, 5, 3):
            x, y = torch.randn(size + rank, 4), torch.randn(size + rank, 4)
            right.append(torch.equal(compiled(x, y), linear(x) + y[:, :2]))
    sizes = [str(node.meta["example_value"].shape) for node in _inputs_of(backend.graphs[0])]
    return right, len(backend.graphs), sizes


def _inputs_of(graph):
    nodes = graph.graph.find_nodes(op="placeholder")
    return [node for node in nodes if isinstance(node.meta["example_value"], torch.Tensor)]


def test_sizes_that_differ_between_ranks_vary_on_all_of_them(ranks):
    first, second = ranks.run(_sizes)
    assert first == second
    right, count, sizes = first
    assert right == [True] * 3
    assert count == 1  # the second and the third call fit what the first one has compiled
    assert sum("s" in size for size in sizes) == 2, sizes


def _members(rank):
    """Parameters of other sizes, other numbers and names of groups are no differences."""
    group = [dist.new_group([0]), dist.new_group([1])][rank]
    linear = torch.nn.Linear(4, 2 + rank)
    backend = CountingBackend()

    def step(x, group):
        y = linear(x) * (rank + 1)
        dist.all_reduce(y, group=group)
        return y

    compiled, x = framejit.compile(step, backend=backend, fullgraph=True), torch.ones(3, 4)
    with torch.no_grad():
        told, _ = _told(lambda: torch.testing.assert_close(compiled(x, group), step(x, group)))
    return told, len(backend.graphs)


def test_what_programs_make_differ_on_purpose_is_not_compared(ranks):
    assert ranks.run(_members) == [("", 1)] * 2


def _shared(rank, folder):
    """Both ranks have one package: one compiles each graph, and the other one loads it."""
    path = os.path.join(folder, "model.package")

    def step(x):
        return x * 2 + 1

    def other(x):
        return x.sin() - 1

    right = []
    first = framejit.compile(step, backend="eager", package=path)
    second = framejit.compile(other, backend="eager", package=f"{path}.other")
    with framejit.config.patch(ranks_agree=True, ranks_agree_seconds=LONG):
        for shape in ((3, 2), (4, 2, 2)):
            x = torch.ones(shape)
            made = first(x)
            dist.all_reduce(made)  # who has compiled waits for who has not loaded yet
            right += [torch.equal(made, step(x) * 2), torch.equal(second(x), other(x))]
    frames = [compiled_function_of(one) for one in (first, second)]
    return right, sum(one.compiler.compiled_anew for one in frames)


def test_ranks_that_share_a_package_compile_once(ranks, tmp_path):
    answers = ranks.run(_shared, os.fspath(tmp_path))
    assert [right for right, _ in answers] == [[True] * 4] * 2
    assert sum(count for _, count in answers) == 4


# -- what is not


def _operations(rank):
    def step(x):
        y = x * 2
        if rank == 1:
            y = y.sin()
        return y.sum()

    return _told(framejit.compile(step, backend="eager"), torch.ones(3))


def _breaks(rank):
    def step(x):
        y = x * 2
        if rank == 1:
            framejit.graph_break()
        return y

    return _told(framejit.compile(step, backend="eager"), torch.ones(3))


def _functions(rank):
    def first(x):
        return x + 1

    def second(x):
        return x + 2

    return _told(framejit.compile((first, second)[rank], backend="eager"), torch.ones(3))


def _fixed(rank):
    compiled = framejit.compile(lambda x: x * 2, backend="eager", dynamic=False)
    return _told(compiled, torch.ones(3 + rank, 2))


def _differing(rank):
    return [_operations(rank), _breaks(rank), _functions(rank), _fixed(rank)]


def test_a_difference_is_one_error_on_each_rank(ranks):
    here = os.path.basename(__file__)
    for rank, told in enumerate(ranks.run(_alone, _differing)):
        other = 1 - rank
        assert all(seconds < LONG for _, seconds in told)
        operations, breaks, functions, fixed = [text for text, _ in told]
        head, what = operations.splitlines()
        assert f"step ({__file__}:" in head and head.endswith("[FJ0233]")
        assert f"not compiled alike on ranks {rank} and {other}:" in head
        assert "operation 2 is method s" in what and f"({here}:" in what
        assert f"framejit.graph_break() was called on rank {1}" in breaks
        assert f"to the end on rank {0}" in breaks
        assert f"rank {other} compiles" in functions and "instead" in functions
        assert f"is {3 + rank} x 2 on rank {rank}, {3 + other} x 2 on rank {other}" in fixed


def _late(rank):
    compiled = framejit.compile(lambda x: x * 2, backend="eager")
    return _told(compiled, torch.ones(3), seconds=SHORT) if rank == 0 else ("", 0.0)


def test_a_rank_that_never_comes_is_named(ranks):
    (text, seconds), _ = ranks.run(_alone, _late)
    assert "rank 1 has compiled nothing for 2 seconds" in text and "<lambda>" in text
    assert seconds >= SHORT


def _failing(rank):
    def backend(gm, inputs):
        if rank == 1:
            raise ValueError("no room")
        return gm.forward

    def step(x):
        y = x.cos()
        framejit.graph_break()
        return y + 1

    try:
        return _told(framejit.compile(step, backend=backend), torch.ones(3))
    except BackendCompilerFailed:
        return "", 0.0


def test_a_rank_that_cannot_compile_tells_the_others(ranks):
    (text, seconds), _ = ranks.run(_alone, _failing)
    assert "rank 1 cannot compile: BackendCompilerFailed" in text and "ValueError" in text
    assert seconds < LONG


# -- one process


@pytest.fixture
def group():
    """The first of two ranks, the other of which is not there."""
    dist.init_process_group("fake", store=dist.HashStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


def test_ranks_that_are_made_up_are_not_asked():
    dist.init_process_group("fake", store=fake_pg.FakeStore(), rank=0, world_size=2)
    compiled, x = framejit.compile(lambda x: x + 1, backend="eager"), torch.ones(3)
    with framejit.config.patch(ranks_agree=True):
        assert not agreement.agreeing()
        assert torch.equal(compiled(x), x + 1)
    dist.destroy_process_group()


def test_nobody_is_asked_unless_wanted(group):
    compiled, x = framejit.compile(lambda x: x + 1, backend="eager"), torch.ones(3)
    assert not agreement.agreeing()
    assert torch.equal(compiled(x), x + 1)
    framejit.reset()
    with framejit.config.patch(ranks_agree=True, ranks_agree_seconds=1):
        assert agreement.agreeing()
        with pytest.raises(RanksDisagree, match="rank 1 has compiled nothing"):
            compiled(x)
        framejit.export(lambda x: x + 1, (x,))  # one rank may


def test_one_process_has_nobody_to_agree_with():
    store = os.path.join(tempfile.mkdtemp(), "store")
    compiled, x = framejit.compile(lambda x: x + 1, backend="eager"), torch.ones(3)
    with framejit.config.patch(ranks_agree=True):
        assert torch.equal(compiled(x), x + 1)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        assert not agreement.agreeing()
        assert torch.equal(compiled(torch.ones(4, 4)), torch.ones(4, 4) + 1)
        dist.destroy_process_group()
