"""Programs around tensors: operations, aliasing, indexing, attributes; eager and compiled agree."""

from __future__ import annotations

import copy
from collections import namedtuple

import pytest
import torch

import framejit
from checking import CountingBackend, check


def x23():
    return torch.arange(6.0).reshape(2, 3) - 2.0


def chain_of_writes(x):
    y = x.clone()
    y.add_(1).mul_(2)
    y += x
    y[0] = 5
    y[:, 1] -= 3
    return y, x


def argument_is_written(x):
    x.mul_(2)
    return x + 1


def view_of_an_argument_is_written(x):
    row = x[0]
    row.add_(10)
    return row, x.sum()


def written_between_two_reads(x):
    a = x.sum()
    x[1, 2] = 100.0
    b = x.sum()
    return a, b


def out_argument(x):
    out = torch.empty_like(x)
    result = torch.add(x, 1, out=out)
    return result, out, result is out


def input_as_out_argument(x):
    buffer = torch.zeros(2, 3)
    torch.mul(x, 3, out=buffer)
    torch.sub(x, 1, out=x)
    return buffer


def transposed_alias(x):
    t = x.t()
    t.zero_()
    return x


def reshape_copy_or_view(x):
    flat = x.reshape(-1)
    flat[0] = 9
    copied = x.t().reshape(-1)
    copied[1] = 77
    return x, flat, copied


def reading_by_index(x):
    index = torch.tensor([1, 0])
    return (
        x[0],
        x[-1],
        x[0, 1],
        x[..., 1],
        x[None],
        x[:, None, 1:],
        x[::2],
        x[index],
        x[index, index],
        x[:, [0, 2]],
        x[torch.tensor(1)],
        x[1:, ...],
        x[()],
        x[0][1:3],
        x[:, -2:],
        x[(0, 2)],
    )


def writing_by_index(x):
    y = torch.zeros(2, 3)
    y[0] = x[1]
    y[1, 1:] = torch.ones(2)
    y[..., 0] = 4
    y[torch.tensor([0]), torch.tensor([2])] = -1
    y[y > 3] = 0.5
    return y


def index_put_accumulate(x):
    y = torch.zeros(4)
    y.index_put_((torch.tensor([0, 1, 1]),), torch.ones(3), accumulate=True)
    y.index_add_(0, torch.tensor([2]), torch.tensor([7.0]))
    return y, x.index_select(1, torch.tensor([2, 0]))


def dtypes_and_devices(x):
    return (
        x.half(),
        x.double(),
        x.int(),
        x.to(torch.int64),
        x.to("cpu"),
        x.to(torch.device("cpu")),
        x.to(x.new_zeros(1, dtype=torch.float64)),
        x.type(torch.float16),
        x.bool(),
        x.long() // 2,
        x.to(dtype=torch.bfloat16, copy=True),
        x.cpu(),
        x.float() is x,
        x.type_as(x.double()),
        x.contiguous() is x,
        x.to(torch.float32) is x,
    )


def factory_functions(x):
    return (
        torch.zeros(2),
        torch.ones((2, 1)),
        torch.full((2,), 3),
        torch.arange(3),
        torch.arange(1, 2, 0.5),
        torch.eye(2),
        torch.linspace(0, 1, 3),
        torch.empty(0),
        x.new_ones(2),
        x.new_full((1,), 2.0),
        torch.zeros_like(x, dtype=torch.int32),
        torch.tensor([1, 2]),
        torch.tensor(3.5),
        torch.tensor([[1.0], [2.0]], dtype=torch.float64),
        torch.tril(torch.ones(2, 2)),
        torch.zeros(*x.shape),
        torch.zeros(x.shape, dtype=x.dtype, device=x.device),
        torch.scalar_tensor(2.0),
        torch.complex(x, x),
        torch.tensor(True),
        torch.logspace(0, 1, 2),
    )


def attributes_about_layout(x):
    return (
        x.shape,
        x.size(),
        x.size(0),
        x.size(-1),
        x.dim(),
        x.ndim,
        x.dtype,
        x.device,
        x.stride(),
        x.stride(0),
        x.numel(),
        x.is_contiguous(),
        x.t().is_contiguous(),
        x.is_floating_point(),
        x.element_size(),
        x.layout,
        x.requires_grad,
        x.is_leaf,
        x.storage_offset(),
        x[1].storage_offset(),
        len(x),
        x.is_complex(),
        x.itemsize,
        x.nbytes,
        x.is_cuda,
        x.grad,
        torch.numel(x),
        torch.is_tensor(x),
        torch.is_complex(x),
        x.grad_fn is None if False else None,
        isinstance(x, torch.Tensor),
    )


def size_arithmetic(x):
    shape = x.shape
    a, b = shape
    doubled = shape + (4,)
    return (
        a * b,
        shape[0],
        shape[-1],
        shape[:1],
        shape[1:] + shape[:1],
        shape.numel(),
        len(shape),
        tuple(shape),
        list(shape),
        shape == (2, 3),
        shape == torch.Size([2, 3]),
        torch.Size([1, 2]),
        (1,) + shape,
        doubled,
        x.new_zeros(shape[:1] + (5,)),
        3 in shape,
        max(shape),
        shape.index(3),
        torch.Size((2,)) + torch.Size((3,)),
        shape * 2,
        hash(shape) == hash(torch.Size([2, 3])),
        str(shape),
        repr(shape[:1]),
        isinstance(shape, tuple),
        isinstance(doubled, torch.Size),
        type(shape[:1]) is torch.Size,
        f"{shape}",
    )


def split_unbind_and_chunk(x):
    a, b = x.unbind()
    parts = x.split(2, dim=1)
    first, *rest = torch.chunk(x, 3, dim=1)
    one, two = x.split([1, 2], dim=1)
    return (
        a + b,
        parts,
        [p.sum() for p in parts],
        first,
        rest,
        len(rest),
        one,
        two,
        torch.tensor_split(x, 2),
    )


def iteration_over_a_tensor(x):
    total = 0
    for row in x:
        for value in row:
            total = total + value
    a, b = x
    return total, a, list(x), [r.max() for r in reversed(x)] if False else None, b


def named_tuple_results(x):
    top = x.topk(2)
    values, indices = x.sort(dim=1)
    m = x.max(dim=1)
    return (
        top.values,
        top[1],
        values,
        indices,
        m.values,
        m.indices,
        type(top).__name__,
        top,
        x.min(0)[0],
    )


def einsum_linalg_and_fft(x):
    square = x @ x.t() + torch.eye(2) * 10
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.einsum("ij->", x),
        torch.linalg.norm(x),
        torch.linalg.solve(square, torch.ones(2)),
        torch.linalg.inv(square),
        torch.linalg.det(square),
        torch.fft.fft(x).real,
        torch.fft.rfft(x).abs(),
        torch.fft.irfft(torch.fft.rfft(x), n=3),
        torch.linalg.svdvals(x),
        torch.linalg.cholesky(square),
        x.norm(),
        x.norm(dim=1, keepdim=True),
        torch.trace(square),
        torch.linalg.qr(x.t()).R.abs(),
    )


def complex_tensors(x):
    c = torch.complex(x, x + 1)
    v = torch.view_as_real(c)
    return (
        c * 2j,
        c.conj(),
        c.real,
        c.imag,
        c.abs(),
        torch.angle(c),
        v,
        c.is_complex(),
        c.conj().resolve_conj(),
        c.mT,
    )


def scatter_and_gather(x):
    index = torch.tensor([[0, 1, 0]])
    return (
        torch.zeros(2, 3).scatter(0, index, x[:1]),
        torch.zeros(2, 3).scatter_add_(0, index, x[:1]),
        x.gather(1, torch.tensor([[2], [0]])),
        torch.take_along_dim(x, torch.tensor([[1], [1]]), 1),
        torch.where(x > 0, x, -x),
        torch.where(x > 0, 1.0, 0.0),
        x.masked_fill(x < 0, 0),
        x.clamp(min=0),
        torch.bincount(torch.tensor([0, 1, 1]), minlength=3) if False else 0,
        x.cumsum(1),
        x.flip(0),
        torch.zeros(2, 3).scatter_reduce(0, index, x[:1], "amax"),
        x.roll(1, 0),
        torch.diag(x[0]),
    )


def interpolate_and_pad(x):
    image = x[None, None]
    f = torch.nn.functional
    return (
        f.interpolate(image, scale_factor=2),
        f.interpolate(image, size=(4, 5), mode="bilinear"),
        f.pad(x, (1, 1)),
        f.pad(image, (1, 0, 1, 0), mode="replicate"),
        f.softmax(x, -1),
        f.gelu(x),
        f.avg_pool2d(image, 2),
        f.max_pool2d(image, 2, return_indices=True),
        f.one_hot(torch.tensor([0, 2]), 3),
        f.cosine_similarity(x, x + 1),
        f.normalize(x),
        f.layer_norm(x, (3,)),
        f.mse_loss(x, x + 1),
        f.cross_entropy(x, torch.tensor([0, 2])),
        f.scaled_dot_product_attention(x[None], x[None], x[None]),
        f.embedding(torch.tensor([1, 0]), x),
        f.unfold(image, 2),
        f.linear(x, x),
        f.glu(x.t()),
    )


def detach_and_data(x):
    y = x * 2
    d = y.detach()
    return d, d.requires_grad, y.data, torch.no_grad()(lambda: y + 1)()


def tensors_in_containers(x):
    box = {"a": x, "b": [x + 1, (x * 2, {"c": x - 1})]}
    box["d"] = box["b"][1][0]
    box["b"].append(box["a"])
    return box, box["d"] is box["b"][1][0]


class Holder:
    def __init__(self, value):
        self.value = value
        self.history = []

    def push(self, t):
        self.history.append(t)
        self.value = self.value + t
        return self


def tensors_on_objects(x):
    holder = Holder(x)
    holder.push(x * 2).push(x * 3)
    return holder.value, holder.history, holder


def object_with_a_tensor(holder, x):
    holder.push(x)
    holder.extra = x.sum()
    holder.value.mul_(2)
    return holder.value


def identity_of_tensors(x):
    y = x
    z = x.add_(0)
    v = x.view(2, 3)
    return y is x, z is x, v is x, x in [x] if False else True, [x, y][0] is y


def operators_of_tensors(x):
    y = x + 1
    return (
        -x,
        abs(x),
        ~(x > 0),
        x**2,
        2**x,
        1 / (y.abs() + 1),
        x // 2,
        x % 2,
        5 % (y.abs() + 1),
        x == y,
        x != y,
        x < 1,
        1 >= x,
        (x > 0) & (y > 0),
        (x > 0) | True,
        (x > 0) ^ (y > 0),
        x @ y.t(),
        3 - x,
        x.int() << 1,
        x.int() >> 1,
        2 * x,
        round(x),
        divmod(x, 2) if False else 0,
        x.pow(2),
        x.eq(x).all(),
    )


def operators_in_place(x):
    y = x.clone()
    alias = y
    y += 1
    y -= 2
    y *= 3
    y /= 2
    y //= 1
    y **= 2
    y %= 5
    z = x > 0
    z &= True
    z |= x > 1
    return alias, alias is y, z


def unused_operation_in_place(x):
    x.add_(1)  # nothing is returned: the effect must stay
    return 3


def expand_stack_and_cat(x):
    return (
        torch.stack([x, x]),
        torch.cat([x, x], dim=-1),
        x.expand(2, 2, 3),
        x.repeat(1, 2),
        torch.hstack((x, x)),
        x.unsqueeze(0).squeeze(),
        x.permute(1, 0),
        x.view(-1),
        x.flatten(),
        torch.atleast_2d(x[0]),
        torch.meshgrid(x[0], x[1], indexing="ij"),
        torch.broadcast_tensors(x, x[0]),
        torch.cartesian_prod(x[0], x[0]),
        torch.block_diag(x, x),
        x.movedim(0, 1),
        torch.broadcast_to(x, (1, 2, 3)),
        x.unfold(1, 2, 1),
        torch.combinations(x[0]) if False else 0,
    )


def new_tensors_of_data(x):
    values = [1.0, 2.0]
    return torch.tensor(values) + x[0, 0], torch.as_tensor([1, 2]), torch.asarray(3.0)


def returned_view_is_written(x):
    y = x * 1
    a, b = y.unbind()
    a.add_(1)
    return y, b


def item_of_a_sliced_list_is_written(x):
    rows = [x[0], x[1]]
    rows[0], rows[1] = rows[1], rows[0]
    rows[0].mul_(3)
    return torch.stack(rows), x


def copy_in_place(x):
    y = torch.empty(2, 3)
    y.copy_(x)
    z = torch.zeros(2, 3, dtype=torch.float64)
    z[:] = x
    y.fill_(2).zero_()
    return y, z


def names_of_functions(x):
    return (
        torch.relu_(x.clone()),
        torch.sigmoid(x),
        torch.Tensor.add(x, 1),
        torch.Tensor.mul_(x.clone(), 2),
        torch.ops.aten.sin(x),
        torch.ops.aten.add.Tensor(x, x),
    )


def keyword_arguments_of_methods(x):
    return (
        x.sum(dim=0, keepdim=True),
        x.mean((0, 1)),
        x.std(unbiased=False),
        x.sum(-1),
        x.argmax(),
        x.any(),
        x.all(dim=0),
        x.var(dim=1),
        x.prod(),
        x.amax(1),
        x.logsumexp(0),
        x.nanmean(),
    )


#: (program, operations)
FULL = [
    (chain_of_writes, 8), (argument_is_written, 2), (view_of_an_argument_is_written, 3),
    (written_between_two_reads, 3), (out_argument, 2), (input_as_out_argument, 3),
    (transposed_alias, 2), (reshape_copy_or_view, 5), (reading_by_index, 19),
    (writing_by_index, 11), (index_put_accumulate, 9), (dtypes_and_devices, 19),
    (factory_functions, 22), (attributes_about_layout, 2), (size_arithmetic, 1),
    (split_unbind_and_chunk, 19), (iteration_over_a_tensor, 23), (named_tuple_results, 11),
    (einsum_linalg_and_fft, 27), (complex_tensors, 12), (scatter_and_gather, 27),
    (interpolate_and_pad, 31), (detach_and_data, 6), (tensors_in_containers, 3),
    (tensors_on_objects, 4), (object_with_a_tensor, 3), (identity_of_tensors, 2),
    (operators_of_tensors, 35), (operators_in_place, 12), (unused_operation_in_place, 1),
    (expand_stack_and_cat, 27), (new_tensors_of_data, 5), (returned_view_is_written, 5),
    (item_of_a_sliced_list_is_written, 4), (copy_in_place, 6), (names_of_functions, 8),
    (keyword_arguments_of_methods, 12),
]  # fmt: skip


@pytest.mark.parametrize("function, ops", FULL, ids=[row[0].__name__ for row in FULL])
def test_program(function, ops) -> None:
    args = (Holder(x23()), x23()) if function is object_with_a_tensor else (x23(),)
    check(function, *args, fullgraph=True, graphs=int(ops > 0), ops=ops)


# -- programs with breaks: how many graphs each may need --------------------------------------


def product_with_an_item(x):
    y = x + 1
    n = y.sum().item()
    return y * n


def tolist_of_a_tensor(x):
    y = x * 2
    values = y.tolist()
    return y + values[0][1], values


def truth_of_a_tensor(x):
    y = x * 2
    if (y > 0).any():
        return y + 1
    return y - 1


def int_and_float_of_a_tensor(x):
    n = int(x.sum())
    m = float(x[0, 0])
    return x * n + m


def range_of_an_item(x):
    y = x + 1
    for i in range(int(y.abs().sum()) % 4):
        y = y + i
    return y


def nonzero_elements(x):
    y = x + 1
    i = (y > 0).nonzero()
    return i, y[y > 0] * 2


def boolean_masks(x):
    return x[[True, False]], x[x > 0], x[torch.tensor([False, True])] + 1


def tensor_to_numpy_and_back(x):
    y = x + 1
    n = y.numpy()
    n[0, 0] = 50
    return torch.from_numpy(n) * 2, y


def written_before_and_after_a_break(x):
    x.add_(1)
    view = x[0]
    print("here")
    view.mul_(2)
    return x, view


def print_of_a_tensor(x):
    y = x + 1
    print(y)
    return y * 2


def membership_in_a_tensor(x):
    return (1.0 in x), x + 1


def requires_grad_in_place(x):
    y = (x * 2).detach()
    y.requires_grad_()
    z = (y * 3).sum()
    z.backward()
    return y.grad, y.requires_grad, z.detach()


def grad_of_a_tensor(x):
    w = torch.ones(2, 3, requires_grad=True)
    (w * x).sum().backward()
    g = w.grad
    w.grad = None
    return g, w.grad


def data_is_assigned(x):
    x.data = x.data * 2
    return x + 1


def attribute_of_the_users(x):
    y = x + 1
    y.tag = "mine"
    return y, y.tag


def attribute_of_the_users_on_an_input(x):
    x.seen = getattr(x, "seen", 0) + 1
    return x * x.seen, hasattr(x, "unseen")


def equal_tensors(x):
    return torch.equal(x, x.clone()), torch.allclose(x, x + 1), x + 1


def unique_elements(x):
    return torch.unique(x.int() // 2), x.sum()


def gradient_by_autograd_grad(x):
    w = (x * 1).detach().requires_grad_(True)
    (g,) = torch.autograd.grad((w**2).sum(), w)
    return g


def hook_of_a_tensor(x):
    seen = []
    w = torch.ones(2, 3, requires_grad=True)
    y = w * x
    y.register_hook(lambda g: seen.append(g.sum()))
    y.sum().backward()
    return seen, w.grad


def type_as_text(x):
    return x.type(), x.double().type(), str(x.dtype), repr(x), f"{x.sum():.2f}", str(x.device)


def deep_copy_of_a_tensor(x):
    y = copy.deepcopy(x)
    y.add_(1)
    return x, y


def tensor_of_a_tensor(x):
    y = torch.tensor([x[0, 0].item(), 2.0])
    return y, torch.as_tensor(x) is x, torch.as_tensor(x, dtype=torch.float64)


def tensor_as_a_key(x):
    table = {x: 1}
    return table[x], len({x, x}), x + 1


def version_and_base(x):
    v = x._version
    x.add_(1)
    return x._version - v, x.t()._base is None


def storage_is_set_and_resized(x):
    y = torch.empty(0)
    y.set_(x.clone())
    y.resize_(3, 2)
    return y


#: (program, graphs, operations)
BREAKS = [
    (product_with_an_item, 2, 3), (tolist_of_a_tensor, 2, 2), (truth_of_a_tensor, 2, 4),
    (int_and_float_of_a_tensor, 3, 4), (range_of_an_item, 2, 6), (nonzero_elements, 3, 4),
    (boolean_masks, 3, 3), (tensor_to_numpy_and_back, 2, 4),
    (written_before_and_after_a_break, 2, 3), (print_of_a_tensor, 2, 2),
    (membership_in_a_tensor, 1, 1), (requires_grad_in_place, 1, 8), (grad_of_a_tensor, 1, 6),
    (data_is_assigned, 1, 4), (attribute_of_the_users, 1, 1),
    (attribute_of_the_users_on_an_input, 1, 1), (equal_tensors, 3, 3), (unique_elements, 2, 3),
    (gradient_by_autograd_grad, 1, 7), (hook_of_a_tensor, 1, 10), (type_as_text, 2, 2),
    (deep_copy_of_a_tensor, 1, 1), (tensor_of_a_tensor, 2, 4), (tensor_as_a_key, 1, 1),
    (version_and_base, 2, 2), (storage_is_set_and_resized, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", BREAKS, ids=[row[0].__name__ for row in BREAKS])
def test_program_with_breaks(function, graphs, ops) -> None:
    check(function, x23(), graphs=graphs, ops=ops)


# -- gradients --------------------------------------------------------------------------------


def loss_of_a_product(x, w):
    return (x @ w).relu().sum()


def writes_that_autograd_records(x, w):
    y = x.clone()
    y[0] = y[0] * 2
    y.mul_(w.sum())
    return y.sum() * 3


def part_without_gradients(x, w):
    with torch.no_grad():
        scale = (w * 2).sum()
    return (x * scale + w.t().detach()).sum() + w.pow(2).mean()


def break_before_the_loss(x, w):
    y = x * 2
    print("break")
    return (y @ w).sum()


def detached_part(x, w):
    y = (x * 2).detach()
    return (y @ w).sum() + x.sum()


@pytest.mark.parametrize(
    "function",
    [
        loss_of_a_product,
        writes_that_autograd_records,
        part_without_gradients,
        break_before_the_loss,
        detached_part,
    ],
    ids=lambda f: f.__name__,
)
def test_gradients(function) -> None:
    grads = []
    for compiled in (False, True):
        x, w = x23().requires_grad_(), (x23().t() * 0.5).clone().requires_grad_()
        run = framejit.compile(function, backend=CountingBackend()) if compiled else function
        run(x, w).backward()
        run(x, w).backward()
        grads.append((x.grad, w.grad))
    torch.testing.assert_close(grads[1], grads[0])


# -- arguments that alias each other ----------------------------------------------------------


def two(a, b):
    a.add_(1)
    return a * 2, b + 1


def two_views(a, b):
    b.mul_(3)
    c = a.sum()
    a[0] = 1
    return c, b * 1


def identity(a, b):
    return (1 if a is b else 2) * a + b


def pairs():
    base = x23()
    yield base.clone(), x23()
    same = base.clone()
    yield same, same
    whole = base.clone()
    yield whole, whole[0]
    whole = base.clone()
    yield whole[1], whole
    whole = base.clone()
    yield whole, whole.view(2, 3)
    whole = base.clone()
    yield whole.view(2, 3), whole
    yield base.clone(), x23()


@pytest.mark.parametrize("function", [two, two_views, identity], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_aliased_arguments(function, backend) -> None:
    compiled = framejit.compile(function, backend=backend)
    for (a, b), (c, d) in zip(pairs(), pairs(), strict=True):
        expected, got = function(a, b), compiled(c, d)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close((c, d), (a, b))


def test_tensor_in_two_places_of_one_argument() -> None:
    def f(pair):
        pair[0].add_(1)
        return pair[0] + pair[1], pair[0] is pair[1]

    compiled = framejit.compile(f, backend="aot_eager")
    for shared in (False, True, False, True):

        def make():
            a = x23()
            return [a, a] if shared else [a, x23()]

        torch.testing.assert_close(compiled(make())[0], f(make())[0])
        assert compiled(make())[1] is shared


Pair = namedtuple("Pair", "a b")


def test_out_of_a_view_of_an_input_is_an_alias() -> None:
    def f(x):
        return x.view(-1), x[0], Pair(x, x.t())

    x = x23()
    flat, row, pair = framejit.compile(f, backend="eager")(x)
    flat[0] = 100
    assert x[0, 0] == 100 and row[0] == 100 and pair.b[0, 0] == 100 and pair.a is x


@pytest.mark.parametrize("given", [(), (True,), (False,), (True, True), (None,)], ids=str)
@pytest.mark.parametrize("named", [{}, {"requires_grad": True}, {"wanted": True}], ids=str)
def test_gradients_that_are_asked_for_again(given, named):
    def program(x):
        try:
            return x.requires_grad_(*given, **named).requires_grad, x + 1
        except TypeError:
            return x + 2

    switched = given == (False,) and not named  # later uses take a tensor without history
    check(program, torch.ones(2, requires_grad=True), graphs=1, ops=2 if switched else 1)
