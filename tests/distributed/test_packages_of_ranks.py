"""What one rank has saved is loaded by new processes, of the same rank and of another one."""

import os

import engines
import pytest
import test_collectives
import torch
import torch.distributed as dist
from ranks import Ranks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import framejit
from framejit.report import events

X = torch.arange(4.0)


@pytest.fixture(scope="module")
def others():
    """Two processes in a group that have compiled nothing."""
    started = Ranks(2)
    yield started
    started.close()


def by_operation(x, op):
    y = x * 2
    dist.all_reduce(y, op=op)
    return y + 1


def by_group(x, group):
    y = x * 2
    dist.all_reduce(y, group=group)
    return y / dist.get_world_size(group)


def with_facts(x):
    group = dist.group.WORLD
    named = len(group.group_name) + (1 if dist.get_backend(group) == "gloo" else 2)
    return x * group.rank() + group.size() + named


PROGRAMS = {
    **{function.__name__: (function, ()) for function in test_collectives.IN_PLACE},
    "with_facts": (with_facts, ()),
    "by_operation": (by_operation, (dist.ReduceOp.MAX,)),
    "by_group": (by_group, (None,)),
}


def _path(folder, name):
    return os.path.join(folder, f"{name}.package")


def _same(compiled, function, *args):
    """Call both; what is captured meanwhile."""
    x = X + dist.get_rank()
    with events.recording(events.CaptureStart) as captured:
        got = compiled(x.clone(), *args)
    torch.testing.assert_close(got, function(x.clone(), *args), rtol=0, atol=0)
    return len(captured)


def _save(rank, folder):
    for name, (function, args) in PROGRAMS.items():
        compiled = framejit.compile(function, backend="eager", fullgraph=True)
        assert _same(compiled, function, *args) == 1
        if rank == 0:
            compiled.save_package(_path(folder, name))


def _load(rank, folder):
    captured = {}
    for name, (function, args) in PROGRAMS.items():
        compiled = framejit.compile(function, backend="eager", fullgraph=True)
        compiled.load_package(_path(folder, name))
        captured[name] = _same(compiled, function, *args)
    return captured


#: Programs that are another graph on another rank.
_ASK_FOR_THE_RANK = {
    "maximum", "broadcasted", "gathered", "gathered_lists", "scattered", "exchanged",
    "exchanged_unevenly", "with_facts",
}  # fmt: skip


def _change(rank, folder):
    """Another operation, another group, another size of the group: they are captured again."""
    found = {}
    compiled = framejit.compile(by_operation, backend="eager", fullgraph=True)
    compiled.load_package(_path(folder, "by_operation"))
    ops = (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN)
    found["operation"] = [_same(compiled, by_operation, op) for op in ops]
    pair, alone = dist.new_group([0, 1]), [dist.new_group([other]) for other in (0, 1)][rank]
    compiled = framejit.compile(by_group, backend="eager", fullgraph=True)
    compiled.load_package(_path(folder, "by_group"))
    found["group"] = [_same(compiled, by_group, group) for group in (pair, alone, None)]
    return found


def test_collectives(ranks, others, tmp_path):
    folder = str(tmp_path)
    ranks.run(_save, folder)
    assert sorted(os.listdir(folder)) == sorted(f"{name}.package" for name in PROGRAMS)
    first, second = others.run(_load, folder)
    assert not any(first.values()), first
    assert {name for name, count in second.items() if count} == _ASK_FOR_THE_RANK
    for found in others.run(_change, folder):
        assert found == {"operation": [1, 0, 1], "group": [1, 1, 0]}


# -- distributed tensors ---------------------------------------------------------------------------


def doubled(d):
    return (d * 2).to_local()


def redistributed(d):
    return d.redistribute(placements=[Replicate()]).to_local() + 1


def put_together(d):
    return d.full_tensor() + 1


def made(x, mesh):
    return DTensor.from_local(x, mesh, [Shard(0)]).full_tensor() * 2


def _distributed_tensors(rank, folder, mode):
    mesh, x = init_device_mesh("cpu", (2,)), X + rank
    d = DTensor.from_local(x, mesh, [Shard(0)])
    again = DTensor.from_local(x, mesh, [Replicate()])
    captured = []
    for function, *args in (
        (doubled, d), (redistributed, d), (put_together, d), (made, x, mesh),
    ):  # fmt: skip
        compiled = framejit.compile(function, backend="eager", fullgraph=True)
        if mode == "load":
            compiled.load_package(_path(folder, function.__name__))
        for given in (args, [again]) if args == [d] else (args,):
            with events.recording(events.CaptureStart) as seen:
                got = compiled(*given)
            torch.testing.assert_close(got, function(*given), rtol=0, atol=0)
            captured.append(len(seen))
            if mode == "save" and rank == 0 and given is args:
                compiled.save_package(_path(folder, function.__name__))
    return captured


def test_distributed_tensors_and_other_placements(ranks, others, tmp_path):
    assert ranks.run(_distributed_tensors, str(tmp_path), "save") == [[1] * 7] * 2
    assert others.run(_distributed_tensors, str(tmp_path), "load") == [[0, 1, 0, 1, 0, 1, 0]] * 2


# -- models ----------------------------------------------------------------------------------------


def _train(rank, way, folder):
    """Losses, gradients and parameters are those of plain Python; what was captured."""
    # Hooks go by numbers, which a process counts from its start; other tests have run in this one.
    torch.utils.hooks.RemovableHandle.next_id = 0
    expected = engines.train(way, lambda module: module)
    with events.recording(events.CaptureStart) as captured:
        with framejit.packaged(_path(folder, f"{way}-{rank}")):
            got = engines.train(way, lambda module: framejit.compile(module, backend="eager"))
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    return len(captured)


@pytest.mark.parametrize("way", ["replicated", "sharded", "sharded_whole", "split_whole"])
def test_models(ranks, others, way, tmp_path):
    assert all(ranks.run(_train, way, str(tmp_path)))
    assert others.run(_train, way, str(tmp_path)) == [0, 0]
