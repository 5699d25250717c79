"""Operations of torch and numpy that programs seldom use, or that are refused: in the middle of
other operations, which stay in graphs."""

from __future__ import annotations

import functools
import operator
import types
import weakref
from typing import Any

import numpy
import pytest
import torch
import torch.utils.checkpoint
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.func import grad, jacfwd, jacrev, jvp, vjp, vmap

from checking import check


def said(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What it returns, or the exception's class and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


# -- transforms ------------------------------------------------------------------------------------


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


def jacobians(x):
    row = x[0]
    return (
        said(jacfwd(lambda a: (a * 3, a * 2)), row),
        said(jacfwd(torch.sin, randomness="same"), row),
        said(jacrev(torch.sin, chunk_size=1), row), said(jacfwd(lambda a: 3), row),
    )  # fmt: skip


def predicates(x):
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


# -- autograd --------------------------------------------------------------------------------------


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b=None):
        return a * 2 if b is None else a * b["k"]

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class WithVjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def vjp(ctx, g):
        return g * 3


def applied(x):
    return (
        said(lambda: Scaled.apply(x, b={"k": 3})), WithVjp.apply(x), Scaled.apply(x, {"k": x}),
        Scaled.apply(x, {"k": 3}), said(Scaled.apply, x, {1: x}),
    )  # fmt: skip


def checkpoints(x):
    checkpoint = torch.utils.checkpoint.checkpoint
    with torch.no_grad():
        out = [checkpoint(torch.sin, x, use_reentrant=False)]
    out.append(said(checkpoint, lambda a, b=1: a * b, x, use_reentrant=True, b=3))
    out.append(checkpoint(lambda a: [a * 2, a], x, use_reentrant=True))
    return out, checkpoint(lambda a: {"a": a * 2}, x, use_reentrant=True)


def gradients_of_new_tensors(x):
    leaf = x.detach() + 1
    return leaf.grad, leaf.is_leaf, (x * 2).is_leaf, (x.detach() * 2).grad


def assigned_gradients(x):
    x.grad = x.detach() * 2
    first = x.grad
    x.grad = None
    return first, x.grad


def handles(x):
    y = x * 2
    handle = y.register_hook(lambda g: g * 2)
    kinds = type(handle), isinstance(handle, torch.utils.hooks.RemovableHandle)
    return kinds, said(getattr, handle, "other"), y


def hooks_refused(x):
    y, z = x * 2, x * 3
    y.register_hook(lambda g: g * z)
    return y, said(x.detach().mul(2).register_hook, lambda g: g)


def hook_of_tuple(x):
    y, made = x * 2, (2, lambda b: b * 3)
    y.register_hook(functools.partial(lambda a, g: g * a[1](a[0]), made))
    return y


def hook_that_calls_itself(x):
    y = x * 2

    def hook(g):
        return g * 2 if g.dim() < 9 else hook(g)

    y.register_hook(hook)
    return y


class Factor:
    value = 3


def hook_with_a_class(x):
    y = x * 2
    y.register_hook(lambda g: g * Factor.value)
    return y


CALLS: list[int] = []


def hook_with_effects(x):
    y, z = x * 2, x * 3
    y.register_hook(lambda g: CALLS.append(1))
    z.register_hook(lambda g: g * 2)
    z.add_(1)
    return y * 2, z


def hooks_in_a_transform(x):
    def inside(a):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return a.sin()

    return said(vmap(inside), x)


# -- tensors ---------------------------------------------------------------------------------------


def missing_attributes(x):
    return said(getattr, x, "other"), said(getattr, x + 1, "other"), hasattr(x, "other"), x.grad


def lengths(x):
    none = x.sum()
    return (
        x.__len__(), list(x.__iter__()), said(len, none), said(none.__len__), said(iter, none),
        said(list, none), said(none.__iter__),
    )  # fmt: skip


def called(x):
    return said(x), said(x + 1, 2), said(lambda: x.sum()(1))


def sizes_refused(x):
    return (
        said(x.size, 7), said(x.size, "a"), x.size(dim=1), said(x.stride, 9), said(x.size, dim=-3),
        x.size(-1), x.stride(0), said(x.dim, 3), said(x.ndimension, a=1),
    )  # fmt: skip


def new_tensors(x):
    return (
        x.new(2, 3).shape, x.new_tensor([1, 2]), said(x.new_tensor, [1], [2]),
        x.new_tensor(data=[3]), x.new_tensor([1], dtype=None),
    )  # fmt: skip


def required_gradients(x):
    return (
        said(x.requires_grad_, False), said((x + 1).requires_grad_, False, True),
        said((x + 2).requires_grad_, other=1),
    )  # fmt: skip


def names_of_types(x):
    return x.type(), x.type(torch.float64), x.int().type(), x.to("meta").type()


def made_sizes(x):
    return (
        torch.Size([2, 3]), said(torch.Size, [2.0]), torch.Size(), said(torch.Size, 3),
        torch.Size((x.size(0), True)), torch.zeros(torch.Size([2])),
    )  # fmt: skip


def checked(x):
    return (
        said(torch._check, False), said(torch._check, False, lambda: "mine"),
        said(torch._check, 3), said(torch._check, True), said(torch._check, x.sum() > 0),
        said(torch._check_with, ValueError, False, None),
        said(torch._check_with, KeyError, False, lambda: 3),
    )  # fmt: skip


def annotated(x):
    return torch.jit.annotate(int, 3), torch.jit.annotate(the_type=int, the_value=4)


def grouped(x):
    group = torch._C._group_tensors_by_device_and_dtype
    return said(group, [[x, x + 1], [x, x]], True), said(group, [[None, x], [x, x]])


HOLDER = types.SimpleNamespace(inner=Scaled(), other=Scaled())
REFERENCE = weakref.ref(HOLDER.inner)


def weak_references(x):
    made = weakref.ref(HOLDER.inner)
    return (
        said(made, 1), made() is HOLDER.inner, type(made) is weakref.ref, said(REFERENCE, 3),
        REFERENCE.__class__, isinstance(REFERENCE, weakref.ReferenceType),
    )  # fmt: skip


def weak_references_are_shared(x):
    made, again = weakref.ref(HOLDER.inner), weakref.ref(HOLDER.inner)
    return made is REFERENCE, made is again, made is weakref.ref(HOLDER.other)


def weak_references_compare_objects(x):
    made, other = weakref.ref(HOLDER.inner), weakref.ref(HOLDER.other)
    return made == REFERENCE, made != other, made in [other, REFERENCE], made == 3


def questions_about_dtypes(x):
    return (
        torch.is_floating_point(x), said(torch.is_floating_point, 3), said(torch.is_complex, [1]),
        said(torch.numel, 3), said(torch.is_floating_point),
    )  # fmt: skip


def old_autocast(x):
    torch.set_autocast_enabled(True)
    out = [torch.is_autocast_enabled()]
    torch.set_autocast_enabled(False)
    return out, torch.is_autocast_enabled()


class WithoutBuffers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        del self.__dict__["_buffers"]


WITHOUT_BUFFERS = WithoutBuffers()


def modules_without_buffers(x):
    return WITHOUT_BUFFERS.weight * x, said(getattr, WITHOUT_BUFFERS, "other")


def called_graph_break(x):
    y = x * 3
    torch._dynamo.graph_break()
    return y * 4


# -- arrays ----------------------------------------------------------------------------------------


def attributes_of_arrays(a):
    return (
        a.__class__, type(a.sum()).__name__, said(getattr, a, "other"), hasattr(a, "other"),
        getattr(a, "other", 3), said(len, a.sum()), said(len, numpy.reshape(a.sum(), ())), len(a),
    )  # fmt: skip


def items_of_arrays(a):
    a.__setitem__(0, 5.0)
    return a.__getitem__(1), a.__getitem__((0, 1)), said(a.__getitem__, 7)


def functions_not_alike(a):
    return (
        numpy.argsort(a), numpy.lib.stride_tricks.sliding_window_view(a, (2, 2)),
        numpy.broadcast_to(a, (2, 2, 3)), numpy.diagonal(a), numpy.linalg.slogdet(a @ a.T),
    )  # fmt: skip


def lists_without_arrays(a):
    return (
        numpy.broadcast_shapes((1, 3), (2, 1)), numpy.divmod(7, 2), numpy.frexp(3.0),
        numpy.meshgrid([1, 2], [3]), numpy.split(numpy.array([1, 2, 3, 4]), 2),
        numpy.nonzero([1, 0]),
        numpy.logspace(0, 1, 3), numpy.hanning(4),
    )  # fmt: skip


def layouts(a):
    t = a.T
    return (
        numpy.concatenate([t, t]), numpy.stack([t, t], -1), numpy.cumsum(t, axis=0), t[:, [0, 1]],
        numpy.pad(t, 1), t.copy(), t.astype(numpy.float32), numpy.outer(t, t),
    )  # fmt: skip


def under_autocast(a):
    with torch.autocast("cpu"):
        return numpy.sum(a) + 1


def dtypes(a):
    return (
        a.dtype == numpy.float64, a.dtype != numpy.float32, said(operator.lt, a.dtype, 3),
        a.dtype <= numpy.dtype("float64"), numpy.dtype(float), numpy.dtype(numpy.int8).itemsize,
        numpy.finfo(numpy.float32).eps, numpy.iinfo(numpy.int8).max, a.dtype == "float64",
    )  # fmt: skip


SCALAR = numpy.float32(2.0)


def methods_of_scalars(a):
    return SCALAR.item(), SCALAR.astype(numpy.int64), SCALAR.is_integer(), said(SCALAR.item, 3)


def tensors_of_arrays(a):
    return (
        said(torch.from_numpy, 3), said(torch.from_numpy, a.sum()), torch.from_numpy(a) + 1,
        torch.tensor(a, requires_grad=True), torch.asarray(a, copy=True),
    )  # fmt: skip


ARRAY = numpy.arange(6.0).reshape(2, 3)
PROGRAMS: list[tuple[Any, str, int, int]] = [
    (mapped_dimensions, "tensor", 4, 14),
    (mapped_results, "tensor", 2, 9),
    (differentiated_arguments, "tensor", 2, 33),
    (differentiated_results, "tensor", 2, 2),
    (pulled_back, "tensor", 2, 2),
    (pull_backs_refused, "tensor", 2, 2),
    (pushed_forward, "tensor", 2, 11),
    (jacobians, "tensor", 2, 3),
    (predicates, "tensor", 5, 14),
    (branches_of_other_structure, "tensor", 2, 4),
    (loops_refused, "tensor", 2, 2),
    (scans_refused, "tensor", 3, 4),
    (maps_refused, "tensor", 4, 4),
    (applied, "leaf", 6, 8),
    (checkpoints, "leaf", 2, 5),
    (gradients_of_new_tensors, "leaf", 1, 7),
    (assigned_gradients, "leaf", 2, 4),
    (handles, "leaf", 2, 3),
    (hooks_refused, "leaf", 3, 6),
    (hook_of_tuple, "leaf", 1, 4),
    (hook_that_calls_itself, "leaf", 2, 3),
    (hook_with_a_class, "leaf", 1, 4),
    (hook_with_effects, "leaf", 2, 6),
    (hooks_in_a_transform, "leaf", 2, 2),
    (missing_attributes, "tensor", 1, 3),
    (lengths, "tensor", 1, 6),
    (sizes_refused, "tensor", 2, 2),
    (called, "tensor", 1, 4),
    (new_tensors, "tensor", 3, 4),
    (required_gradients, "tensor", 3, 4),
    (names_of_types, "tensor", 2, 5),
    (made_sizes, "tensor", 2, 3),
    (checked, "tensor", 2, 4),
    (annotated, "tensor", 1, 2),
    (grouped, "tensor", 2, 3),
    (weak_references, "tensor", 2, 2),
    (weak_references_are_shared, "tensor", 2, 2),
    (weak_references_compare_objects, "tensor", 2, 2),
    (questions_about_dtypes, "tensor", 2, 2),
    (old_autocast, "tensor", 2, 2),
    (modules_without_buffers, "tensor", 1, 3),
    (called_graph_break, "tensor", 2, 4),
    (attributes_of_arrays, "array", 1, 7),
    (items_of_arrays, "array", 1, 6),
    (functions_not_alike, "array", 3, 4),
    (lists_without_arrays, "array", 3, 19),
    (layouts, "array", 3, 6),
    (under_autocast, "array", 2, 10),
    (dtypes, "array", 2, 2),
    (methods_of_scalars, "array", 1, 2),
    (tensors_of_arrays, "array", 4, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "kind", "graphs", "ops"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS]
)
def test_between_two_operations(program, kind, graphs, ops):
    def run(x, given):
        y = x + 1
        return program(given), y * 2

    x = torch.arange(6.0).reshape(2, 3) / 4
    given = {"tensor": x, "leaf": x.clone().requires_grad_(), "array": ARRAY}[kind]
    check(run, x, given, graphs=graphs, ops=ops)


def test_arrays_that_are_too_large_to_try():
    def run(x, a):
        return x + 1, a[:3] + 1

    check(run, torch.ones(3), numpy.zeros((1 << 24) + 2, numpy.uint8), graphs=2, ops=3)
