"""Arguments and results of transforms and higher-order operators: those that are refused, and the
rarer ones that are not."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from checking import check_between, said

X = torch.arange(6.0).reshape(2, 3) / 4


def mapped_dimensions(x):
    def add(a, b):
        return a + b

    return [
        said(vmap(torch.sin, in_dims=dims), x) for dims in (None, 5, -3, "a", (0, 0), 1)
    ] + [
        said(vmap(add, in_dims=(0,)), x, x), said(vmap(add, in_dims=(0, None)), x, 3),
        said(vmap(lambda pair: pair[0] + pair[1], in_dims=((0, 0, 0),)), (x, x)),
    ]  # fmt: skip


def mapped_results(x):
    one = torch.ones(2)
    return (
        said(vmap(lambda a: 3), x), said(vmap(lambda a: (a, one), out_dims=(0, None)), x),
        said(vmap(lambda a: (a, 3)), x), vmap(lambda a: (a, one), out_dims=(1, 0))(x),
    )  # fmt: skip


def differentiated_arguments(x):
    def total(a, b=None):
        return a.sum()

    return (
        said(grad(total, argnums=3), x), said(grad(total, argnums=()), x),
        said(grad(lambda a, b: (a * b).sum(), argnums=(0, 0)), x, x), said(grad(total), 3.0),
        said(grad(total, argnums=-1), x), grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(x, x),
    )  # fmt: skip


def differentiated_results(x):
    return (
        said(grad(lambda a: 3.0), x), said(grad(lambda a: (a.sum(),)), x),
        said(grad(lambda a: a.sum(), has_aux=True), x),
        said(grad(lambda a: (a.sum(), a, a), has_aux=True), x),
        said(grad(lambda a: (a.sum(), 3), has_aux=True), x),
    )  # fmt: skip


def pulled_back(x):
    value, pull = vjp(torch.sin, x)
    return (
        value, said(getattr, pull, "other"), pull.__name__, said(pull, x, x), said(pull, (x, x)),
        said(pull), pull(x), hasattr(pull, "__wrapped__"),
    )  # fmt: skip


def pull_backs_refused(x):
    return (
        said(vjp, torch.sin), said(vjp, torch.sin, x, other=3), said(vjp, lambda a: 3, x),
        said(vjp, lambda a: a.long(), x), said(lambda: vjp(lambda a: (a, 3), x)[0]),
    )  # fmt: skip


def pushed_forward(x):
    return (
        said(jvp, torch.sin, (3.0,), (x,)), said(jvp, lambda a: 3, (x,), (x,)),
        said(jvp, lambda a: (a.sin(), a), (x,), (x,), has_aux=True),
        said(jvp, lambda a: (a * 2, a * 3), (x,), (x * 2,)),
    )  # fmt: skip


def jacobians_of_odd_functions(x):
    row = x[0]
    return (
        said(jacfwd(lambda a: (a * 3, a * 2)), row),
        said(jacfwd(torch.sin, randomness="same"), row),
        said(jacrev(torch.sin, chunk_size=1), row), said(jacfwd(lambda a: 3), row),
    )  # fmt: skip


def predicates_of_cond(x):
    row = x[0]
    return (
        said(torch.cond, "a", torch.sin, torch.cos, (row,)),
        said(torch.cond, 3, torch.sin, torch.cos, (row,)),
        said(torch.cond, row, torch.sin, torch.cos, (row,)),
        torch.cond(True, torch.sin, torch.cos, (row,)),
        torch.cond(x.dim() == 3, torch.sin, torch.cos, (row,)),
    )  # fmt: skip


def branches_of_other_structure(x):
    return said(torch.cond, x.sum() > 0, lambda a: (a + 1,), lambda a: [a + 1], (x,))


def loops_refused(x):
    return (
        said(while_loop, lambda a, b: a.sum() < 10, lambda a, b: (a + 1, b), (x, 3)),
        said(while_loop, lambda a: a.sum() < 10, lambda a: (a + 1, a), (x,)),
        said(while_loop, lambda a: (a.sum() < 10, a), lambda a: (a + 1,), (x,)),
    )  # fmt: skip


def scans_refused(x):
    def step(carry, a):
        return carry + a, carry * 2

    start = x[0]
    return (
        said(scan, step, start, 3), said(scan, step, 3, x), said(scan, step, start, x[:0]),
        said(scan, lambda c, a: (c + a, c, c), start, x), said(scan, step, start, x, dim=2),
    )  # fmt: skip


def maps_refused(x):
    return (
        said(map_over, torch.sin, x, other=1), said(map_over, torch.sin, x.sum()),
        said(map_over, torch.sin, 3), said(map_over, torch.sin, x[:0]),
    )  # fmt: skip


#: (program, graphs, operations captured)
PROGRAMS = [
    (mapped_dimensions, 4, 14), (mapped_results, 2, 9), (differentiated_arguments, 2, 33),
    (differentiated_results, 2, 2), (pulled_back, 2, 2), (pull_backs_refused, 2, 2),
    (pushed_forward, 2, 11), (jacobians_of_odd_functions, 3, 41), (predicates_of_cond, 5, 14),
    (branches_of_other_structure, 2, 4), (loops_refused, 2, 2), (scans_refused, 3, 4),
    (maps_refused, 4, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
