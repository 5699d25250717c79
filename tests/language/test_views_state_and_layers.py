"""Tensors as people use them: views that are written, `out=`, indexing, global settings, layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

import framejit
from checking import CountingBackend, check


def matrix():
    return torch.arange(6.0).reshape(2, 3)


def views_of_an_input_are_written(x):
    v = x.view(-1)
    v[1:3].mul_(2)
    x.t()[0].add_(1)
    return v, x


def out_arguments(x):
    y, o = x * 1, torch.empty(2, 3)
    r = torch.add(x, y, out=o)
    torch.mul(x, 2, out=y)
    return o, r is o, y


def out_is_resized(x):
    o = torch.empty(0)
    torch.add(x, 1, out=o)
    return o


def two_outs(x):
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.long)
    torch.max(x, 1, out=(values, indices))
    return values, indices


def reading_by_index(x):
    return (
        x[0], x[..., 1], x[:, None], x[[0, 1], [1, 2]], x[torch.tensor([1, 0])], x[1:, ::2], x[-1],
        x[True], x[(0, 1)], x[slice(0, 1)], x[None, ..., None],
    )  # fmt: skip


def writing_by_index(x):
    x[0] = 1
    x[:, 1] = torch.tensor([5.0, 6.0])
    x[x > 4] = 0
    x[[0, 1], [0, 2]] += 1
    x[..., -1] *= 2
    return x


def split_and_unbind(x):
    a, b = x.split(1)
    c = x.unbind(1)
    return [a, b, *c, *x.chunk(2, 1)], torch.stack(list(c))


def sizes_of_views(x):
    s = x.size()
    n, m = s
    return s.numel(), s + (1,), s[1:], x.reshape(*s, 1), torch.Size([n, m]) == s, x.new_zeros(s)


def a_name_for_the_same_tensor(x):
    y = x
    y += 1
    z = x
    z = z * 2
    return x is y, y, z


def attributes_of_tensors(x):
    return (
        x.shape, x.dtype, x.device, x.ndim, x.stride(), x.is_contiguous(), x.layout, x.T.shape,
        x.mT.shape, x.nbytes, x.itemsize, x.is_cuda, x.element_size(), x.grad, x.data + 1,
    )  # fmt: skip


def iteration_over_tensors(x):
    return [r.sum() for r in x], len(x), list(reversed(x))[0]


def moves_of_dimensions(x):
    return x.type(), x.double().type(torch.float32), x.to("cpu", torch.float64), x.to(torch.int32)


def scatter_and_gather(x):
    i = torch.tensor([[0], [1]])
    return x.scatter(1, i, 9.0), x.gather(1, i), x.index_add(0, i[0], torch.ones(1, 3))


def a_device_as_context(x):
    with torch.device("meta"):
        y = torch.ones(2)
    with torch.device("cpu"):
        z = torch.ones(2, 3)
    return x + z, y.device


def the_default_dtype_for_a_while(x):
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(2, 3)
    finally:
        torch.set_default_dtype(torch.float32)
    return x + y, y.dtype, torch.ones(1)


def attention_kernels(x):
    q = x.reshape(1, 1, 2, 3)
    with sdpa_kernel(SDPBackend.MATH):
        a = F.scaled_dot_product_attention(q, q, q)
        enabled = torch.backends.cuda.flash_sdp_enabled()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        b = F.scaled_dot_product_attention(q, q, q)
    return a, b, enabled


def attention_kernels_in_order(x):
    q = x.reshape(1, 1, 2, 3)
    before = torch._C._get_sdp_priority_order()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        a = F.scaled_dot_product_attention(q, q, q)
        inside = torch._C._get_sdp_priority_order()
    return a, before, inside, torch._C._get_sdp_priority_order()


def autocast_block(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return y, y.dtype


def complex_numbers(x):
    z = torch.complex(x, x)
    return z.abs(), torch.view_as_real(z)


@pytest.mark.parametrize(
    "function, ops",
    [
        (views_of_an_input_are_written, 6),
        (out_arguments, 4),
        (out_is_resized, 2),
        (two_outs, 3),
        (reading_by_index, 12),
        (writing_by_index, 11),
        (split_and_unbind, 11),
        (sizes_of_views, 2),
        (a_name_for_the_same_tensor, 2),
        (attributes_of_tensors, None),
        (iteration_over_tensors, 8),
        (moves_of_dimensions, 4),
        (scatter_and_gather, 6),
        (a_device_as_context, 3),
        (the_default_dtype_for_a_while, 5),
        (attention_kernels, None),
        (attention_kernels_in_order, 10),
        (autocast_block, 4),
        (complex_numbers, 3),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_one_graph(function, ops):
    check(function, matrix(), graphs=1, ops=ops, fullgraph=True)
    assert torch.get_default_dtype() is torch.float32
    assert torch.backends.cuda.flash_sdp_enabled()


def test_the_kernels_that_are_enabled_are_guarded():
    def program(x):
        return x + (1 if torch.backends.cuda.flash_sdp_enabled() else 2)

    compiled = framejit.compile(program, backend="eager")
    assert compiled(torch.zeros(1)).item() == 1
    with sdpa_kernel(SDPBackend.MATH):
        assert compiled(torch.zeros(1)).item() == 2
    assert compiled(torch.zeros(1)).item() == 1


def test_the_order_of_kernels_is_guarded():
    def program(x):
        return x + torch._C._get_sdp_priority_order()[0]

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.zeros(1)), program(torch.zeros(1)))
    with sdpa_kernel([SDPBackend.MATH], set_priority=True):
        assert compiled(torch.zeros(1)).item() == int(SDPBackend.MATH)
    assert torch.equal(compiled(torch.zeros(1)), program(torch.zeros(1)))
    assert len(backend.graphs) == 2


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


def symmetric():
    layer = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


@pytest.mark.parametrize(
    "make, ops",
    [
        (symmetric, 5),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), 2),
        (lambda: nn.utils.weight_norm(nn.Linear(3, 2)), 2),
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)).eval(), 7),
        (lambda: nn.utils.parametrizations.orthogonal(nn.Linear(3, 3)), 6),
    ],
    ids=["symmetric", "weight_norm", "old_weight_norm", "spectral_norm", "orthogonal"],
)
def test_parametrized_layers(make, ops):
    layer, backend = make(), CountingBackend()
    compiled = framejit.compile(layer, backend=backend, fullgraph=True)
    x = matrix().requires_grad_()
    for _ in range(2):
        expected, got = layer(x), compiled(x)
        assert torch.equal(expected, got)
        one = torch.autograd.grad(expected.sum(), list(layer.parameters()))
        two = torch.autograd.grad(got.sum(), list(layer.parameters()))
        assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert len(backend.graphs) == 1 and backend.ops == ops


class Renamed(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result + 1 if func is torch.Tensor.mul else result


def test_subclasses_keep_what_they_do():
    def program(x):
        y = x * 2
        return y, x.sum(), type(y).__name__

    compiled = framejit.compile(program, backend="eager")
    for x in (matrix().as_subclass(Renamed), matrix()):
        for _ in range(2):
            expected, got = program(x), compiled(x)
            assert type(got[0]) is type(expected[0]) and got[2] == expected[2]
            assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])


class Swapped(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return (torch.sub if func is torch.add else func)(*args, **(kwargs or {}))


def test_a_function_mode_inside_and_around():
    def program(x):
        with Swapped():
            y = torch.add(x, 1)
        return y, torch.add(x, 1)

    def plain(x):
        return torch.add(x, 1)

    check(program, matrix(), graphs=1, ops=2)
    compiled = framejit.compile(plain, backend="eager")
    with Swapped():
        assert torch.equal(compiled(matrix()), matrix() - 1)
    assert torch.equal(compiled(matrix()), matrix() + 1)


def test_random_numbers_as_in_eager():
    def program(x):
        generator = torch.Generator().manual_seed(3)
        a = torch.rand(2, generator=generator)
        torch.manual_seed(5)
        return x + torch.rand(2, 3), torch.randn(2), a, torch.randperm(4), F.dropout(x, 0.5)

    check(program, matrix(), graphs=1, ops=5)

    def drawn(x):
        state = torch.get_rng_state()
        a = torch.rand(2)
        torch.set_rng_state(state)
        return a - torch.rand(2), x

    check(drawn, matrix(), graphs=2, ops=3)


def test_numpy_beside_tensors():
    def program(x, n):
        a = x.detach().numpy()
        c = np.sin(a) + n
        d = torch.from_numpy(c)
        a[0, 0] = 7
        return d * 2, torch.as_tensor(np.where(c > 0, c, 0).sum(axis=0)) + x.shape[0], x

    check(program, matrix(), np.ones(3, dtype=np.float32), graphs=1, ops=13)


def test_numbers_and_lists_of_tensors():
    def program(x):
        rows = x.tolist()
        return x * rows[0][1], x[1].tolist(), x.sum().item(), int(x[0, 1]), bool(x[0, 0])

    check(program, matrix(), graphs=4, ops=5)


def test_columns_of_one_tensor_are_written():
    """Their memory is interleaved; no element is in two of them."""

    def program(x):
        y = x.clone()
        y[:, 0].add_(y[:, 1])
        a, b, c = y.t().contiguous().t().chunk(3, 1)
        a.mul_(c)
        z = y.repeat(1, 2)
        z[:, :3].sub_(z[:, 3:])
        return y, a, b, z

    check(program, matrix(), graphs=1, ops=16, fullgraph=True)


def test_overlapping_parts_are_a_break():
    def program(x):
        y = x.reshape(-1).clone()
        try:
            y[1:].add_(y[:-1])
        except RuntimeError:
            return y * 2, "refused"
        return y

    check(program, matrix(), graphs=2, ops=5)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell, nn.RNNCell])
def test_recurrent_cells(cell):
    torch.manual_seed(0)
    step = cell(3, 4)

    def program(x):
        state = None
        for row in (x, x + 1, x * 2):
            state = step(row, state)
        return state

    with torch.no_grad():
        backend = check(program, matrix(), graphs=1, fullgraph=True)
    assert sum("cell" in str(node.target) for node in backend.graphs[0].graph.nodes) == 3
