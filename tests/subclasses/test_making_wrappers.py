"""Tensors made of tensors that the program makes: constructors are traced, as are class methods,
attributes and methods; the object that comes out is the one that plain Python makes."""

from __future__ import annotations

import pytest
import torch
from comparing import described, same, same_when_broken
from wrapping import Pair, Scaled, pair, tensors, x

import framejit
from checking import CountingAround
from framejit.report import events


class Quantised(torch.Tensor):
    """Whole numbers per row and scales, with everything that such classes have."""

    made = 0

    @staticmethod
    def __new__(cls, numbers, scales, bits, shape, dtype=torch.float32):
        kwargs = {"device": numbers.device, "dtype": dtype, "requires_grad": False}
        kwargs["strides"] = (shape[1], 1)
        return torch.Tensor._make_wrapper_subclass(cls, shape, **kwargs)

    def __init__(self, numbers, scales, bits, shape, dtype=torch.float32):
        self.numbers, self.scales = numbers, scales
        self.layers = {"bits": bits, "sizes": [bits, len(shape)]}
        self.largest = 2 ** (bits - 1) - 1

    def __repr__(self):
        return "Quantised"

    @classmethod
    def from_float(cls, weight, bits=8):
        largest = 2 ** (bits - 1) - 1
        scales = weight.abs().amax(1, keepdim=True) / largest
        numbers = torch.clamp((weight / scales).round(), -largest, largest).to(torch.int8)
        return cls(numbers, scales, bits, tuple(weight.shape), weight.dtype)

    @property
    def bits(self):
        return self.layers["bits"]

    def dequantised(self):
        return self.numbers.to(self.dtype) * self.scales

    def __tensor_flatten__(self):
        return ["numbers", "scales"], (self.bits, tuple(self.shape), self.dtype)

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(inner["numbers"], inner["scales"], *context)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear and isinstance(args[1], cls):
            y, weight, *bias = args
            made = (y @ weight.numbers.to(y.dtype).t()) * weight.scales.t()
            return made + bias[0] if bias and bias[0] is not None else made
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            one = args[0]
            parts = func(one.numbers), func(one.scales)
            return cls(*parts, one.bits, tuple(one.shape), one.dtype)
        plain = [one.dequantised() if isinstance(one, cls) else one for one in args]
        return func(*plain, **(kwargs or {}))


def operations(a, b):
    t = Pair(a + 1, b, "m")
    return t * 2, (t + t).sum(), torch.cat([t, t]), t.shape


def the_very_parts(a, b):
    first = a * 2
    t = Pair(first, b, "m")
    u = t * 2
    return t, t.a is first, t.a, t.b is b, t.tag, u, isinstance(t, Pair), type(t) is torch.Tensor


def only_made(a, b):
    return Pair(a, b), [Pair(b, a, "n")] * 2


def metadata(a, b):
    t = Pair(a, b[:, :2].t().contiguous().t() if b.dim() == 3 else b)
    return t.shape, t.dtype, t.size(0), t.stride(), t.requires_grad, t.is_contiguous(), t.ndim


def with_existing(a, t):
    u = Pair(a, t.b)
    return t + u, u, Pair(t.a, a).a is t.a


def attributes_afterwards(a, b):
    t = Pair(a, b)
    t.tag = "later"
    t.other = [1, a]
    u = Pair(b, a)
    u.tag = t.tag
    return t, u * 2, t.other, vars(u)["tag"]


def from_parts(a, b):
    inner, context = Pair(a, b, "m").__tensor_flatten__()
    t = Pair.__tensor_unflatten__(dict(zip(inner, [a, b], strict=True)), context, None, None)
    return t, t + 1, inner, context


def nested(a, b):
    t = Pair(Pair(a, b), Pair(b, a), "outer")
    return (t * 2).a.b, t


def in_a_loop(a, b):
    t = Pair(a, b)
    for i in range(4):
        t = Pair(t.b + i, (t * 2).a, f"turn {i}")
    return t


@pytest.mark.parametrize(
    "program",
    [operations, the_very_parts, only_made, metadata, attributes_afterwards, from_parts, in_a_loop],
    ids=lambda p: p.__name__,
)
def test_made_ones_are_nodes(program):
    same(program, lambda: (x(), x() + 1), graphs=program not in (only_made, metadata))
    assert same_when_broken(program, lambda: (x(), x() + 1)) > 9


def test_made_of_parts_of_others():
    same(with_existing, lambda: (x(), pair()))
    same(nested, lambda: (x(), x() + 1))


def quantises(weight, y):
    t = Quantised.from_float(weight, 4)
    plain = t.dequantised()
    return torch.nn.functional.linear(y, t), t, (plain - weight).abs().max(), t.bits, y @ t.t()


def shares_attributes(weight, y):
    t = Quantised.from_float(weight)
    layers = t.layers
    u = t.clone()
    layers["seen"] = True
    return t, layers, t.layers is layers, u


def uses_changed_attributes(weight, y):
    t = Quantised.from_float(weight)
    first = y @ t.t()
    t.layers["bits"] = 4
    return first, t.clone(), t


def test_quantised_in_the_program():
    torch.manual_seed(0)
    make = lambda: (torch.linspace(-1, 1, 12).view(4, 3), x())  # noqa: E731
    same(quantises, make)
    same(shares_attributes, make)
    assert same_when_broken(shares_attributes, make) > 5


def test_what_a_graph_holds_may_not_change():
    same(uses_changed_attributes, lambda: (x(), x()), graphs=2)


def writes(a, b):
    first = a + 0
    t = Pair(first, b)
    t.add_(1)
    b.mul_(2)
    t[0].mul_(3)
    return t, first, t.a, t * 1


class Replacing(Pair):
    """In-place operations put other parts in place."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func is torch.ops.aten.add_.Tensor:
            one, other = args
            one.a, one.b, one.tag = one.a + other, one.b + other, "replaced"
            return one
        if func is torch.ops.aten.mul.Tensor:
            return func(args[0].a, args[1])
        return super().__torch_dispatch__(func, types, args, kwargs)

    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Replacing(inner["a"], inner["b"], tag)


def replaces(a, b):
    t = Replacing(a, b)
    t.add_(1)
    return t * 2, t.a, t.tag, t


def test_writes_reach_the_parts():
    same(writes, lambda: (x(), x() + 1))
    assert same_when_broken(writes, lambda: (x(), x() + 1)) > 9
    same(replaces, lambda: (x(), x() + 1), graphs=1, fullgraph=False)


class Unusual(Pair):
    @staticmethod
    def __new__(cls, a, b, tag=None):
        return torch.Tensor._make_wrapper_subclass(cls, a.size(), requires_grad=True)


def unusual(a, b):
    return Unusual(a + 1, b).requires_grad


def test_a_leaf_of_autograd_is_a_graph_break():
    same(unusual, lambda: (x(), x()), fullgraph=False)


class Bounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        t = Pair(a.detach(), b.detach())
        ctx.save_for_backward(a)
        return (t * 2).a + (t + 1).b

    @staticmethod
    def backward(ctx, gradient):
        (a,) = ctx.saved_tensors
        return gradient * a, gradient


class Quantises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        return Quantised.from_float(weight.detach())

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def differentiates(a, b):
    t = Pair(a.detach() * 2, b.detach())
    quantised = torch.nn.functional.linear(b, Quantises.apply(a))
    return torch.sin(a) * (t + 1).a, Bounds.apply(a, b), quantised[:, :2].mean()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_backends(backend):
    for program in (operations, the_very_parts, quantises, writes, differentiates):
        compiled = framejit.compile(program, backend=backend, fullgraph=True)
        for _ in range(2):
            given, same_given = (
                [x().requires_grad_(program is differentiates), x() + 1] for _ in "12"
            )
            wanted, got = program(*given), compiled(*same_given)
            for one, two in zip(tensors(wanted), tensors(got), strict=True):
                torch.testing.assert_close(two, one)
            if program is differentiates:
                sum(wanted).sum().backward()
                sum(got).sum().backward()
            for one, two in zip(given, same_given, strict=True):
                torch.testing.assert_close([two, two.grad], [one, one.grad])


class Strided(Pair):
    """Says its strides, and knows how many rows there are."""

    @staticmethod
    def __new__(cls, a, b, rows):
        kwargs = {"dtype": a.dtype, "strides": (a.shape[1], 1), "storage_offset": 0}
        return torch.Tensor._make_wrapper_subclass(cls, [a.shape[0], 2], **kwargs)

    def __init__(self, a, b, rows):
        super().__init__(a, b)
        self.rows = rows

    def __tensor_flatten__(self):
        return ["a", "b"], self.rows

    @classmethod
    def __tensor_unflatten__(cls, inner, rows, size, stride):
        return cls(inner["a"], inner["b"], rows)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        rows = next(arg.rows for arg in args if isinstance(arg, cls))
        parts = [
            [getattr(arg, name) if isinstance(arg, cls) else arg for arg in args] for name in "ab"
        ]
        return cls(*[func(*part, **(kwargs or {})) for part in parts], rows)


def strided(a, b):
    t = Strided(a, b, "some")
    return t * 2, t.shape, t.stride(), t.size(0) + t.numel()


def knows_rows(a, b):
    return Strided(a, b, a.shape[0]) * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "graphs"), [(operations, 2), (in_a_loop, 2), (strided, 2), (knows_rows, 4)]
)
def test_sizes_that_vary_are_symbols(program, graphs, backend):
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting, fullgraph=True)
    for size in (2, 3, 2, 4, 5):
        a, b = torch.ones(size, 2), torch.ones(size, 2) * 3
        assert described(compiled(a, b)) == described(program(a, b))
    assert len(counting.graphs) == graphs


def test_a_package_has_what_graphs_hold(tmp_path):
    given = x(), x()
    compiled = framejit.compile(operations, backend="eager")
    compiled(*given)
    compiled.save_package(tmp_path / "made")
    framejit.reset()
    loaded = framejit.compile(operations, backend="eager").load_package(tmp_path / "made")
    with events.recording(events.CaptureStart) as captures:
        assert described(loaded(*given)) == described(operations(*given))
    assert not captures


def test_scaled_as_a_weight():
    def program(weight, y):
        scale = weight.abs().amax() / 127
        t = Scaled((weight / scale).round().to(torch.int8), scale, {"factor": 1.0})
        return torch.nn.functional.linear(y, t), t, t.how["factor"]

    same(program, lambda: (x(), x() + 1), ops=8)
