"""Traceable wrapper subclasses: ``__tensor_flatten__``, ``__tensor_unflatten__`` and a
``__torch_dispatch__`` that says what operators do."""

from __future__ import annotations

import pytest
import torch
from comparing import described, same, same_when_broken
from wrapping import Pair, pair, scaled, x

import framejit
from framejit.backends.registry import lookup_backend


def computes(t):
    return torch.sin(t) * 2, (t + t).sum(), t @ t.t(), torch.cat([t, t]), t[0]


def beside_plain(t, y):
    return t + y, y * t, torch.where(y > 2, t, t + 1), t.shape, t.dtype, type(t) is Pair


def views(t):
    return t.view(3, 2).t().contiguous(), t[:, 1:], t.unbind(), t.view(-1)[2]


def in_place(t):
    t.add_(1)
    t[0].mul_(3)
    return t * 2


def parts(t):
    u = t * 3
    return t.a + u.b, t.a, t.b is t.b, u.tag, u


def part_after_a_write(t):
    t.add_(1)
    return t.a * 2, t.b


def write_to_a_part(t):
    t.a.mul_(2)
    return t + 1


@pytest.mark.parametrize(
    "program", [computes, views, in_place, parts, part_after_a_write, write_to_a_part],
    ids=lambda p: p.__name__,
)  # fmt: skip
def test_operations_are_nodes(program):
    same(program, lambda: (pair(tag="m"),))


def test_beside_plain_tensors():
    same(beside_plain, lambda: (pair(), x()))
    same(torch.nn.functional.linear, lambda: (x(), scaled()), ops=1)


def test_a_break_anywhere_changes_nothing():
    assert same_when_broken(parts, lambda: (pair(tag="m"),)) > 9
    assert same_when_broken(in_place, lambda: (pair(),)) > 9


def graphs_of(program, *arguments, backend="eager", **options):
    graphs, inner = [], lookup_backend(backend)
    compiled = framejit.compile(
        program, backend=lambda m, e: graphs.append(m) or inner(m, e), fullgraph=True, **options
    )
    for make in arguments:
        assert described(compiled(*make())) == described(program(*make()))
    return len(graphs)


def test_what_flattening_tells_is_guarded():
    def linear(w):
        return torch.nn.functional.linear(x(), w)

    calls = [lambda f=f: (scaled(f),) for f in (1.0, 1.0, 2.0, 1.0, 2.0)]
    assert graphs_of(linear, *calls) == 2
    assert graphs_of(linear, lambda: (scaled(),), lambda: (scaled(rows=5),), dynamic=False) == 2


def test_the_context_may_be_changed_in_place():
    weight, program = scaled(1.0), torch.nn.functional.linear
    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    for factor in (1.0, 3.0, 1.0):
        weight.how["factor"] = factor
        assert torch.equal(compiled(x(), weight), program(x(), weight))


@pytest.mark.parametrize(
    "change",
    [
        lambda w: setattr(w, "scale", w.scale.reshape(1)),
        lambda w: setattr(w, "numbers", w.numbers.short()),
        lambda w: setattr(w, "scale", torch.full((3,), 0.5)),
        lambda w: setattr(w, "numbers", torch.ones(3, 4, dtype=torch.int8).t()),
    ],
)
def test_the_metadata_of_parts_is_guarded(change):
    def program(y, w):
        return torch.add(y, w)

    weight, y = scaled(), torch.ones(4, 3)
    graphs = []
    compiled = framejit.compile(
        program, backend=lambda m, _: graphs.append(m) or m, fullgraph=True, dynamic=False
    )
    assert torch.equal(compiled(y, weight), program(y, weight))
    change(weight)
    got, expected = compiled(y, weight), program(y, weight)
    assert described(got) == described(expected)
    assert len(graphs) == 2
    weight.numbers.add_(1)  # a value is not guarded
    assert torch.equal(compiled(y, weight), program(y, weight))
    assert len(graphs) == 2


class Layer(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=isinstance(weight, Pair))

    def forward(self, y):
        return torch.nn.functional.linear(y, self.weight).relu()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_parameters_and_their_gradients(backend):
    def layer():
        torch.manual_seed(0)
        return Layer(Pair(torch.randn(4, 3), torch.randn(4, 3)))

    expected, module = layer(), layer()
    compiled = framejit.compile(module, backend=backend, fullgraph=True)
    for _ in range(2):
        one, two = expected(x()), compiled(x())
        for name in ("a", "b"):
            torch.testing.assert_close(getattr(two, name), getattr(one, name))
        one.sum().backward()
        two.sum().backward()
    for name in ("a", "b"):
        got, wanted = module.weight.grad, expected.weight.grad
        assert type(got) is type(wanted) is Pair
        torch.testing.assert_close(getattr(got, name), getattr(wanted, name))


def tensors(results):
    """The plain tensors in results."""
    for result in results if isinstance(results, (list, tuple)) else [results]:
        if isinstance(result, (list, tuple)):
            yield from tensors(result)
        elif isinstance(result, torch.Tensor):
            yield from [result.a, result.b] if type(result) is Pair else [result]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_backends_take_them_apart(backend):
    for program in (computes, views, in_place, parts, part_after_a_write):
        compiled = framejit.compile(program, backend=backend, fullgraph=True)
        for _ in range(2):
            one, two = pair(tag="m"), pair(tag="m")
            for wanted, got in zip(tensors(program(one)), tensors(compiled(two)), strict=True):
                torch.testing.assert_close(got, wanted)
            assert described(two) == described(one)


class Folded(torch.Tensor):
    """Half of the rows: the others are the same."""

    @staticmethod
    def __new__(cls, half):
        size = 2 * half.shape[0], *half.shape[1:]
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=half.dtype)

    def __init__(self, half):
        self.half = half

    def __repr__(self):
        return "Folded"

    def __tensor_flatten__(self):
        return ["half"], None

    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Folded(inner["half"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(func(args[0].half))
        full = [torch.cat([one.half, one.half]) if isinstance(one, cls) else one for one in args]
        return func(*full, **(kwargs or {}))


def rows_of(t):
    return t * 2, torch.zeros(t.shape[0], t.size(1)), t.sum() + t.numel(), t[: t.shape[0] - 1]


def weighs(w):
    return torch.nn.functional.linear(x(), w).sum() + w.shape[0]


def several(t, u):
    t.add_(1)
    return torch.cat([t, u]), t + u, t.a + u.b, t.t() @ u


SIZES = (4, 5, 6, 4, 9)
VARYING = {
    rows_of: lambda rows: (Folded(torch.ones(rows, 3)),),
    weighs: lambda rows: (scaled(rows=rows),),
    several: lambda rows: tuple([Pair(torch.ones(rows, 2), torch.ones(rows, 2) * 2)] * 2),
    computes: lambda rows: (Pair(torch.ones(rows, 2), torch.ones(rows, 2) * 2, "m"),),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", VARYING, ids=lambda program: program.__name__)
def test_sizes_that_vary_are_symbols(program, backend):
    calls = [lambda rows=rows: VARYING[program](rows) for rows in SIZES]
    assert graphs_of(program, *calls, backend=backend) == 2
    assert graphs_of(program, *calls, backend=backend, dynamic=True) == 1
    assert graphs_of(program, *calls, backend=backend, dynamic=False) == 4


def test_sizes_of_layers_that_vary_are_symbols():
    def program(t):
        return t * 2, t.a.b + 1

    def layers(rows):
        inner = Pair(torch.ones(rows, 2), torch.ones(rows, 2) * 2, "in")
        return (Pair(inner, inner * 3, "out"),)

    for backend in ("eager", "aot_eager"):
        calls = [lambda rows=rows: layers(rows) for rows in SIZES]
        assert graphs_of(program, *calls, backend=backend) == 2


def test_parts_of_sizes_that_do_not_fit_are_no_symbols():
    """The size that the tensor tells is not that of its part any more."""
    folded = Folded(torch.ones(4, 3))
    compiled = framejit.compile(lambda t: t * t.shape[0], backend="eager")
    for rows in (4, 5, 6):
        torch.testing.assert_close(
            compiled(Folded(torch.ones(rows, 3))), torch.ones(2 * rows, 3) * 2 * rows
        )
    folded.half = torch.ones(5, 3)
    torch.testing.assert_close(compiled(folded), torch.ones(10, 3) * 8)


class Filled(torch.Tensor):
    """One number in all places, and no tensor that holds it."""

    @staticmethod
    def __new__(cls, size, number):
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=torch.float32)

    def __init__(self, size, number):
        self.number = number

    def __tensor_flatten__(self):
        return [], (tuple(self.shape), self.number)

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Filled(*context)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [torch.full(a.shape, a.number) if isinstance(a, Filled) else a for a in args]
        return func(*plain, **(kwargs or {}))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_that_is_made_of_no_tensor_is_left_to_python(backend):
    def program(t, y):
        return y * 2 + t, y.sin() + 1

    t, y = Filled((3,), 4.0), torch.arange(3.0)
    graphs = []
    compiled = framejit.compile(
        program, backend=lambda gm, args: graphs.append(gm) or lookup_backend(backend)(gm, args)
    )
    for _ in range(2):
        assert described(compiled(t, y)) == described(program(t, y))
    assert len(graphs) == 2
