"""`local_map`, and DTensors that captured code makes of sizes."""

import functools

import pytest
import torch
import torch.distributed.tensor as dtensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.experimental import local_map

import framejit
from checking import CountingAround

WORLD = 2
ROWS, WHOLE = [Shard(0)], [Replicate()]


@functools.cache
def _mesh():
    """One for all tests: torch remembers the first of several equal ones."""
    return init_device_mesh("cpu", (WORLD,))


def _compared(program, backend, arguments, fullgraph=True):
    """How many graphs there are of a program that does the same compiled."""
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting, fullgraph=fullgraph)
    for _ in range(2):
        results = []
        for function in (program, compiled):
            made = arguments()
            found = function(*made)
            if any(one.requires_grad for one in made):
                found[-1].backward()
            results.append([*found, *[one.grad for one in made]])
        for expected, got in zip(*results, strict=True):
            assert type(expected) is type(got)
            if isinstance(got, DTensor):
                assert got.device_mesh is expected.device_mesh
                assert got.placements == expected.placements and got.shape == expected.shape
                assert got.stride() == expected.stride() and got.dtype is expected.dtype
                expected, got = expected.to_local(), got.to_local()
            if got is not None:
                assert got.stride() == expected.stride()
                torch.testing.assert_close(expected, got, rtol=1e-6, atol=1e-6)
    return len(counting.graphs)


# -- local_map -------------------------------------------------------------------------------------


def _mapped(mesh):
    def product(x, weight, power):
        return (x @ weight).relu() ** power, x.sum()

    function = local_map(
        product, out_placements=(ROWS, [Partial()]), in_placements=(ROWS, WHOLE, None),
        in_grad_placements=(ROWS, [Partial()], None),
    )  # fmt: skip

    def program(x, weight):
        y, total = function(x * 2, weight, 2)
        return y, (y.sum() + total).full_tensor()

    return program


def _decorated(mesh):
    @local_map(out_placements=ROWS, in_placements=(ROWS, WHOLE), device_mesh=mesh)
    def product(x, weight):
        return x @ weight

    def program(x, weight):
        y = product(x, weight)
        return y, y.cos().sum().full_tensor()

    return program


def _made_inside(mesh):
    def product(x, weight):
        return x @ weight

    def program(x, weight):
        function = local_map(
            product, out_placements=WHOLE, in_placements=(WHOLE, WHOLE), redistribute_inputs=True
        )
        y = function(x, weight)
        return y, y.cos().sum().full_tensor()

    return program


def _other_placements(mesh):
    function = local_map(torch.mul, out_placements=ROWS, in_placements=(WHOLE, WHOLE))

    def program(x, weight):
        try:
            return function(x, weight), x
        except ValueError as error:
            return torch.ones(len(str(error))), x

    return program


def _local_maps(rank, backend):
    mesh = _mesh()

    def arguments(leaf=True):
        torch.manual_seed(rank)
        x = DTensor.from_local(torch.randn(2, 4), mesh, ROWS)
        torch.manual_seed(WORLD)
        weight = DTensor.from_local(torch.randn(4, 4), mesh, WHOLE)
        return [one.detach().requires_grad_(leaf) for one in (x, weight)]

    found = [_compared(make(mesh), backend, arguments) for make in PROGRAMS]
    _compared(_other_placements(mesh), backend, lambda: arguments(False), fullgraph=False)
    return found


PROGRAMS = [_mapped, _decorated, _made_inside]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_local_map_is_part_of_the_graph(ranks, backend):
    assert ranks.run(_local_maps, backend) == [[1, 1, 1]] * WORLD


# -- what is made of sizes -------------------------------------------------------------------------

MAKERS = {
    "zeros": lambda mesh, x: dtensor.zeros(4, 2, device_mesh=mesh, placements=ROWS),
    "ones": lambda mesh, x: dtensor.ones(
        (5, 2), device_mesh=mesh, placements=ROWS, dtype=torch.float64
    ),
    "whole": lambda mesh, x: dtensor.zeros([4, 2], device_mesh=mesh),
    "full": lambda mesh, x: dtensor.full(
        torch.Size([4, 2]), 3.0, device_mesh=mesh, placements=[Shard(1)]
    ),
    "empty": lambda mesh, x: dtensor.empty(4, 2, device_mesh=mesh, placements=WHOLE).fill_(2),
    "sized": lambda mesh, x: dtensor.ones(*x.shape, device_mesh=mesh, placements=ROWS),
}


def _makers(rank, backend):
    mesh = _mesh()
    found = {}
    for name, make in MAKERS.items():

        def program(x, make=make):
            made = make(mesh, x)
            return made, made * 2, x + 1

        found[name] = _compared(program, backend, lambda: [torch.ones(3, 2)])
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_is_made_of_sizes_is_part_of_the_graph(ranks, backend):
    assert ranks.run(_makers, backend) == [dict.fromkeys(MAKERS, 1)] * WORLD


def _leaves(rank):
    mesh = _mesh()

    def leaf(x):
        made = dtensor.zeros(4, 2, device_mesh=mesh, placements=ROWS, requires_grad=True)
        return made, made.is_leaf, x + 1

    def without_mesh(x):
        with mesh:
            return dtensor.ones(4, 2, placements=ROWS), x + 1

    found = []
    for program in (leaf, without_mesh):
        compiled = framejit.compile(program, backend="eager")
        for _ in range(2):
            expected, got = program(torch.ones(2)), compiled(torch.ones(2))
            assert expected[0].requires_grad == got[0].requires_grad
            assert expected[0].placements == got[0].placements
            assert torch.equal(expected[0].to_local(), got[0].to_local())
            assert expected[1:-1] == got[1:-1]
        event = framejit.explain(program)(torch.ones(2)).breaks
        found.append("FJ0131" in [one.identifier for one in event])
    return found


def test_leaves_and_those_of_the_current_mesh_are_made_by_python(ranks):
    assert ranks.run(_leaves) == [[True, True]] * WORLD
