"""Branches of ``cond`` and bodies of ``map`` and ``while_loop`` write to tensors of their own."""

import pytest
import torch
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.while_loop import while_loop

import framejit
from checking import check

X = torch.arange(6.0).reshape(2, 3) + 0.5
ROW = torch.tensor([1.0, -2.0, 0.5])


def rows(x, y):
    def body(row, y):
        z = row.cos()
        z.add_(1.0)
        return z * y

    return map_rows(body, x, y)


def branches(x, sign):
    def shifted(x):
        z = x * 2
        z.add_(1)
        return z

    def first(x):
        z = torch.zeros(2, 3)
        z[0] = x[1] * 3
        return z

    return torch.cond(x.sum() * sign > 0, shifted, first, (x,))


def loop(x):
    def again(i, x):
        return i < 3

    def body(i, x):
        y = x.clone()
        y.mul_(2)
        return i + 1, y

    return while_loop(again, body, (torch.zeros((), dtype=torch.int64), x))


@pytest.mark.parametrize(
    ("function", "args"),
    [(rows, (ROW,)), (branches, (1,)), (branches, (-1,)), (loop, ())],
)
def test_in_one_graph(function, args):
    backend = check(function, X, *args, graphs=1, fullgraph=True)
    assert backend.ops >= 1
    compiled = framejit.compile(function, backend="aot_eager", fullgraph=True)
    got, expected = compiled(X, *args), function(X, *args)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("function", "args"), [(rows, (ROW,)), (branches, (1,))])
def test_gradients(function, args, backend):
    compiled = framejit.compile(function, backend=backend, fullgraph=True)
    gradients = []
    for called in (function, compiled):
        x = X.clone().requires_grad_()
        called(x, *args).square().sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def writes_to_its_operand(x):
    def body(row):
        row.add_(1)
        return row * 2

    return map_rows(body, x)


def writes_to_what_is_outside(x):
    z = x * 2

    def one(x):
        z.add_(1)
        return x + z

    return torch.cond(x.sum() > 0, one, lambda x: x + 1, (x,)), z


@pytest.mark.parametrize("function", [writes_to_its_operand, writes_to_what_is_outside])
def test_what_is_outside_stays_outside(function):
    with pytest.raises(framejit.exc.Unsupported, match="writes to a tensor"):
        framejit.compile(function, backend="eager", fullgraph=True)(X.clone())
