"""``torch.vmap`` and ``torch.func.jacrev`` in chunks, with keyword arguments, with more beside."""

import pytest
import torch
from torch.func import jacfwd, jacrev, vmap

import framejit
from checking import check

X = torch.arange(6.0).reshape(2, 3) + 0.5
W = torch.arange(12.0).reshape(3, 4) / 7


def per_row(x):
    return vmap(lambda row: row.sin() * 2, chunk_size=1)(x)


def per_column(x):
    mapped = vmap(lambda c: (c.sin(), {"a": c * 2}), 1, (0, {"a": 1}), chunk_size=2)
    return mapped(x)


def whole_beside(x):
    return vmap(lambda row, w: row @ w, in_dims=(0, None), chunk_size=5)(x, W)


def of_a_dict(x):
    return vmap(lambda both: both["a"] + both["b"], chunk_size=1)({"a": x, "b": x + 1})


def named(x):
    def f(row, scale, w=None):
        return (row * scale) @ w

    return vmap(f)(x, scale=3, w=W), vmap(f, chunk_size=1)(x, scale=x[0], w=W)


def row_by_row(x):
    return jacrev(lambda t: t.sin() * 2, chunk_size=1)(x)


def some_rows(x):
    return jacrev(lambda t, w: t @ w, (0, 1), chunk_size=3)(x, W)


def more_rows_than_there_are(x):
    return jacrev(lambda t: t.sin() * 2, chunk_size=99)(x)


def something_beside(x):
    return jacrev(lambda t: (t.sum(1), {"kept": t.T + 1}), has_aux=True, chunk_size=1)(x)


def forward(x):
    return jacfwd(lambda t: t.sin(), randomness="same")(x)


@pytest.mark.parametrize("program, ops", [
    (per_row, 17), (per_column, 20), (whole_beside, 9), (of_a_dict, 21), (named, 24),
    (row_by_row, 58), (some_rows, 48), (more_rows_than_there_are, 20), (something_beside, 32),
    (forward, 2),
])  # fmt: skip
def test_in_one_graph(program, ops):
    check(program, X, graphs=1, ops=ops, fullgraph=True)
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0


def test_with_gradients():
    def program(x):
        return jacrev(lambda t: t.sin() * t, chunk_size=2)(x[0]).sum() + per_row(x).sum()

    compiled = framejit.compile(program, backend="aot_eager", fullgraph=True)
    ours, theirs = X.clone().requires_grad_(), X.clone().requires_grad_()
    compiled(ours).backward()
    program(theirs).backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("size", [0, -1])
def test_no_such_chunks(size):
    def program(x):
        return vmap(torch.sin, chunk_size=size)(x + 1)

    check(program, X, graphs=0)
    check(lambda x: jacrev(torch.sin, chunk_size=size)(x + 1), X, graphs=0)
