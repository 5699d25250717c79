"""Functions of autograd whose forward or backward exchanges data with other processes."""

import pytest
import torch
import torch.distributed as dist

import framejit
from checking import CountingAround

WORLD = 2


class Copied(torch.autograd.Function):
    """The gradients of all processes, summed."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Reduced(torch.autograd.Function):
    """Writes to its argument, and does not say so."""

    @staticmethod
    def forward(ctx, x):
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class ReducedInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        y = x.new_empty(x.size(0) * dist.get_world_size(group), *x.shape[1:])
        dist.all_gather_into_tensor(y, x.contiguous(), group=group)
        return y

    @staticmethod
    def backward(ctx, gradient):
        size = gradient.size(0) // dist.get_world_size(ctx.group)
        part = gradient.new_empty(size, *gradient.shape[1:])
        dist.reduce_scatter_tensor(part, gradient.contiguous(), group=ctx.group)
        return part, None


class Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        parts[dist.get_rank()] = x
        dist.all_gather(parts, x)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.chunk(dist.get_world_size(), -1)[dist.get_rank()].contiguous()


class Linear(torch.autograd.Function):
    """Exchanges a gradient while it computes the other one."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        first = gradient @ weight
        work = dist.all_reduce(first, async_op=True)
        second = gradient.t() @ x
        work.wait()
        return first, second


class Mixed(torch.autograd.Function):
    """Saves what it has computed, returns more than tensors, and tensors without a gradient."""

    @staticmethod
    def forward(ctx, x, weight, scale):
        product = x @ weight
        ctx.sine, ctx.scale = product.sin(), scale
        y = product * scale
        dist.all_reduce(y)
        large = y > 0
        ctx.mark_non_differentiable(large)
        ctx.save_for_backward(x, weight, y)
        return y, large, "mixed"

    @staticmethod
    def backward(ctx, gradient, *_):
        x, weight, y = ctx.saved_tensors
        inner = gradient * ctx.scale * ctx.sine + y
        other = x.t() @ inner if ctx.needs_input_grad[1] else None
        return inner @ weight.t(), other, None


def copied(x, weight):
    return Copied.apply(x @ weight).cos()


def shared(x, weight):
    """One gradient goes to two operations; the function writes to it."""
    y = x @ weight
    return (Copied.apply(y) + y).cos()


def expanded(x, weight):
    """Autograd gives the function a gradient whose elements share memory."""
    return Copied.apply(x @ weight)


def reduced(x, weight):
    y = x @ weight
    return Reduced.apply(y).sin(), y + 1


def reduced_in_place(x, weight):
    y = x @ weight
    z = ReducedInPlace.apply(y)
    return y.sin(), z is y


def gathered(x, weight):
    return Gathered.apply(x @ weight, dist.group.WORLD).cos()


def joined(x, weight):
    return Joined.apply(x @ weight).cos()


def linear(x, weight):
    return Linear.apply(x.sin(), weight).cos()


def mixed(x, weight):
    y, large, name = Mixed.apply(x, weight, 2.0)
    return y * large, name


def one_weight(x, weight):
    return Mixed.apply(x, weight.detach(), 2.0)[0]


def layers(x, weight):
    for _ in range(4):
        y = torch.relu(Copied.apply(x) @ weight) @ weight.t()
        x = torch.nn.functional.layer_norm(x + Reduced.apply(y), (4,))
    return x


PROGRAMS = [
    copied, shared, expanded, reduced, reduced_in_place, gathered, joined, linear, mixed,
    one_weight, layers,
]  # fmt: skip


def _inside(program):
    """The gradients are computed in the program as well."""

    def step(x, weight):
        found = program(x, weight)
        (found[0] if isinstance(found, tuple) else found).sum().backward()
        return found

    return step


def _same(program, backend, inside, rank):
    counting = CountingAround(backend)
    function = _inside(program) if inside else program
    compiled = framejit.compile(function, backend=counting, fullgraph=True)
    framejit.counters.clear()
    for call in range(2):
        torch.manual_seed(rank + call)
        drawn = torch.randn(4, 4), torch.randn(4, 4)
        results = []
        for one in (function, compiled):
            x, weight = (tensor.clone().requires_grad_() for tensor in drawn)
            found = one(x, weight)
            tensors = found if isinstance(found, tuple) else (found,)
            if not inside:
                tensors[0].sum().backward()
            results.append([*tensors, x, weight, x.grad, weight.grad])
        for expected, got in zip(*results, strict=True):
            assert type(expected) is type(got)
            if not isinstance(got, torch.Tensor):
                assert expected == got
                continue
            assert expected.stride() == got.stride() and expected.is_leaf == got.is_leaf
            assert expected.requires_grad == got.requires_grad
            torch.testing.assert_close(expected, got, rtol=1e-6, atol=1e-6)
    assert not framejit.counters["graphs_refused"], program.__name__
    return len(counting.graphs)


def _programs(rank, backend, inside):
    return {one.__name__: _same(one, backend, inside, rank) for one in PROGRAMS}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functions_that_exchange_data_are_part_of_the_graph(ranks, backend, inside):
    expected = dict.fromkeys([program.__name__ for program in PROGRAMS], 1)
    assert ranks.run(_programs, backend, inside) == [expected] * WORLD


# -- what is not recorded for compilers ------------------------------------------------------------


def across(x, weight):
    """The function copies a gradient of other strides, and leaves the gradient of ``y`` alone."""
    y = x @ weight
    return (y.sin() + Copied.apply(y).t()).cos()


def _run_as_recorded(rank):
    compiled = framejit.compile(across, backend="aot_eager", fullgraph=True)
    results = []
    for function in (across, compiled):
        torch.manual_seed(rank)
        x, weight = (torch.randn(4, 4).requires_grad_() for _ in range(2))
        function(x, weight).square().sum().backward()
        results.append((x.grad, weight.grad))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-6)
    return sum(framejit.counters["graphs_refused"].values())


def test_a_gradient_of_other_strides_is_not_taken_for_one_that_was_traced(ranks):
    assert ranks.run(_run_as_recorded) == [1, 1]


def _once_more(rank, backend):
    """A graph that raises after its backward has exchanged data does not run again."""

    def step(x, index):
        y = Copied.apply(x * 2)
        y.square().sum().backward()
        return x.grad[index]

    compiled = framejit.compile(step, backend=backend)
    good, bad = torch.tensor([1]), torch.tensor([9])
    compiled(torch.ones(4, requires_grad=True), good)
    error = None
    try:
        compiled(torch.ones(4, requires_grad=True), bad if rank == 0 else good)
    except IndexError as raised:
        error = str(raised)
    after = torch.ones(1) + rank
    dist.all_reduce(after)  # a repeated operation would meet this one
    assert (error is not None) == (rank == 0)
    return after.item()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_backward_is_not_repeated_when_its_graph_raises(ranks, backend):
    assert ranks.run(_once_more, backend) == [3, 3]


class Left(torch.autograd.Function):
    """Starts what nobody waits for in the same function."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        ctx.work = dist.all_reduce(y, async_op=True)
        ctx.work.wait()
        ctx.later = dist.all_reduce(x.clone(), async_op=True)
        return y

    @staticmethod
    def backward(ctx, gradient):
        ctx.later.wait()
        return gradient


def _left(rank):
    def program(x):
        return Left.apply(x * 2) + 1

    compiled = framejit.compile(program, backend="eager")
    results = []
    for function in (program, compiled, compiled):
        x = torch.arange(4.0).requires_grad_()
        y = function(x)
        y.sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results == results[:1] * 3
    return sum(framejit.counters["graph_break"].values())


def test_what_is_waited_for_elsewhere_is_a_graph_break(ranks):
    first, second = ranks.run(_left)
    assert first == second >= 1
