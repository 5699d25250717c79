"""What programs ask about processes, groups and meshes is part of the graph, and guarded."""

import torch
import torch.distributed as dist
from ranks import without_group
from torch._C._distributed_c10d import _resolve_process_group
from torch.distributed.device_mesh import init_device_mesh

import framejit
from checking import CountingBackend

QUESTIONS = {
    "rank": lambda x, group, mesh: x + dist.get_rank(),
    "rank in a group": lambda x, group, mesh: x + dist.get_rank(group),
    "size": lambda x, group, mesh: x * dist.get_world_size(),
    "size of a group": lambda x, group, mesh: x * dist.get_world_size(group=group),
    "size of the world": lambda x, group, mesh: x * dist.get_world_size(dist.group.WORLD),
    "backend": lambda x, group, mesh: x + (dist.get_backend() == "gloo"),
    "backend of a group": lambda x, group, mesh: x + len(dist.get_backend(group)),
    "world": lambda x, group, mesh: x + 1 if dist.group.WORLD is not None else x,
    "which group": lambda x, group, mesh: x + (dist.GroupMember.WORLD is group),
    "methods": lambda x, group, mesh: x * dist.group.WORLD.size() + group.rank(),
    "name": lambda x, group, mesh: x + len(group.group_name) + len(group.group_desc),
    "ranks": lambda x, group, mesh: x + sum(dist.get_process_group_ranks(group)),
    "ranks elsewhere": lambda x, group, mesh: (
        x + dist.get_global_rank(group, 0) + dist.get_group_rank(group, dist.get_rank())
    ),
    "class": lambda x, group, mesh: x + isinstance(group, dist.ProcessGroup),
    "launcher": lambda x, group, mesh: x + dist.is_torchelastic_launched(),
    "backends": lambda x, group, mesh: x + dist.is_gloo_available() + 2 * dist.is_nccl_available(),
    "size of a mesh": lambda x, group, mesh: x * mesh.size() + mesh.size(1),
    "rank in a mesh": lambda x, group, mesh: x + mesh.get_rank(),
    "rank along a dimension": lambda x, group, mesh: x + mesh.get_local_rank("rows"),
    "names of dimensions": lambda x, group, mesh: (
        x + mesh.mesh_dim_names.index("columns") + mesh.ndim
    ),
    "shape of a mesh": lambda x, group, mesh: x * mesh.shape[0] + len(mesh.shape),
    "place in a mesh": lambda x, group, mesh: x + mesh.get_coordinate()[0],
    "device of a mesh": lambda x, group, mesh: x.to(mesh.device_type) + 1,
    "group of a mesh": lambda x, group, mesh: x * mesh.get_group("rows").size(),
}


def _ask(rank):
    group = dist.new_group([0, 1])
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("rows", "columns"))
    answers = {}
    for name, question in QUESTIONS.items():
        backend = CountingBackend()
        compiled = framejit.compile(question, backend=backend, fullgraph=True)
        x = torch.ones(3)
        results = [compiled(x, group, mesh).tolist() for _ in range(2)]
        assert results == [question(x, group, mesh).tolist()] * 2, name
        assert len(backend.graphs) == 1, name
        answers[name] = results[0]
    return answers


def test_questions_about_groups_are_answered(ranks):
    first, second = ranks.run(_ask)
    assert first["rank"] == [1, 1, 1] and second["rank"] == [2, 2, 2]
    assert first["size"] == second["size"] == [2, 2, 2]


def who(x):
    if dist.is_available() and dist.is_initialized():
        return x * dist.get_world_size() + dist.get_rank()
    return x - 1


def test_without_a_group():
    backend = CountingBackend()
    compiled = framejit.compile(who, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.zeros(2))
    assert not dist.is_initialized() and len(backend.graphs) == 1


def _regroup(rank):
    backend = CountingBackend()
    compiled = framejit.compile(who, backend=backend, fullgraph=True)
    x = torch.ones(2)
    seen = [compiled(x).tolist()]
    with without_group(rank) as name:
        seen.append(compiled(x).tolist())
        dist.init_process_group("gloo", init_method=f"file://{name}{rank}", rank=0, world_size=1)
        seen.append(compiled(x).tolist())
        dist.destroy_process_group()
    graphs = len(backend.graphs)
    seen.append(compiled(x).tolist())
    return seen, graphs, len(backend.graphs)


def test_another_group_is_noticed(ranks):
    first, second = ranks.run(_regroup)
    assert first == ([[2, 2], [0, 0], [1, 1], [2, 2]], 3, 3)
    assert second == ([[3, 3], [0, 0], [1, 1], [3, 3]], 3, 3)


def _of_group(x, group):
    return x * group.size() + group.rank()


def _other_groups(rank):
    backend = CountingBackend()
    compiled = framejit.compile(_of_group, backend=backend, fullgraph=True)
    x = torch.ones(2)
    groups = [dist.group.WORLD, dist.new_group([0, 1]), dist.new_group([1, 0])]
    alone = [dist.new_group([one]) for one in range(2)][rank]
    results = [compiled(x, group).tolist() for group in (*groups, alone)]
    assert results == [_of_group(x, group).tolist() for group in (*groups, alone)]
    return len(backend.graphs)


def test_groups_with_the_same_answers_share_a_graph(ranks):
    assert ranks.run(_other_groups) == [2, 2]


def _of_parts(x, mesh):
    rows, columns = mesh["rows"], mesh["columns"]
    named = mesh.get_group("rows"), rows.get_group(), mesh.get_group(mesh_dim="columns")
    x = x * rows.size() + columns.get_local_rank() + rows.get_rank()
    return x + sum(group.size() for group in named), rows == mesh["rows"]


def _parts(rank):
    meshes = [
        init_device_mesh("cpu", (2, 2), mesh_dim_names=names)
        for names in (("rows", "columns"), ("columns", "rows"))
    ]
    backend = CountingBackend()
    compiled = framejit.compile(_of_parts, backend=backend, fullgraph=True)
    graphs = []
    for mesh in (*meshes, *meshes):
        expected, got = _of_parts(torch.ones(2), mesh), compiled(torch.ones(2), mesh)
        assert torch.equal(got[0], expected[0]) and got[1] is expected[1] is True
        graphs.append(len(backend.graphs))
    return graphs


def test_parts_of_a_mesh(four_ranks):
    assert four_ranks.run(_parts) == [[1, 2, 2, 2]] * 4


def _said(program, *args):
    try:
        return program(*args).tolist()
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


def _bad_parts(rank):
    """A part that there is not is the program's error."""
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("rows", "columns"))

    def sliced(x, names):
        return (x + 1) * mesh[names].size()

    compiled = framejit.compile(sliced, backend="eager")
    wrong = ["depth", ("rows", "rows")]
    said = [_said(sliced, torch.ones(2), names) for names in wrong]
    assert [_said(compiled, torch.ones(2), names) for names in wrong] == said
    return [name for name, _ in said]


def test_parts_that_a_mesh_does_not_have(ranks):
    assert ranks.run(_bad_parts) == [["KeyError", "RuntimeError"]] * 2


def _renamed(rank):
    """A group of the same name after all groups have been destroyed."""

    def sized(x):
        return x * _resolve_process_group(name).size()

    name = dist.group.WORLD.group_name
    backend = CountingBackend()
    compiled = framejit.compile(sized, backend=backend)
    x = torch.ones(2)
    seen = [_said(compiled, x)]
    with without_group(rank) as file:
        seen.append(_said(compiled, x)[0])
        dist.init_process_group("gloo", init_method=f"file://{file}{rank}", rank=0, world_size=1)
        seen.append(_said(compiled, x) if dist.group.WORLD.group_name == name else None)
        dist.destroy_process_group()
    return seen


def test_groups_by_name(ranks):
    for seen in ranks.run(_renamed):
        assert seen[:2] == [[2, 2], "RuntimeError"] and seen[2] in ([1, 1], None)


def _waits(rank):
    def wait(x):
        y = x + 1
        dist.barrier()
        return y * 2

    backend = CountingBackend()
    compiled = framejit.compile(wait, backend=backend)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    return len(backend.graphs), len(framejit.explain(wait)(torch.ones(2)).breaks)


def test_waiting_for_others_is_one_break(ranks):
    assert ranks.run(_waits) == [(2, 1)] * 2
