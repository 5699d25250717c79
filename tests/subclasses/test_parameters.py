"""Parameters that captured code makes of tensors that are made of tensors, and leaves of autograd:
objects of the same class, marked."""

import pytest
import torch
from comparing import described, same, same_when_broken
from torch import nn
from wrapping import Pair, pair, scaled, x

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.report import events


def frozen(t):
    p = nn.Parameter(t, requires_grad=False)
    flags = (
        isinstance(p, nn.Parameter),
        isinstance(t, nn.Parameter),
        isinstance(p * 2, nn.Parameter),
    )
    return p, p * 2, flags, p is t, p._is_param


def of_a_made_one(a, b):
    p = nn.Parameter(Pair(a, b, "m"), False)
    return p, p * 2


def of_a_result(t):
    return nn.Parameter(t * 2)


def used(t, y):
    p = nn.Parameter(t, False)
    return p, nn.functional.linear(y, p), p.how


def leaf(t):
    made = (t * 2).requires_grad_()
    return made, made.is_leaf


def leaf_without_history(t):
    made = t.detach()
    made.requires_grad_()
    return made, made.is_leaf


def tagged():
    return (pair(0.0, "k"),)


PROGRAMS = [
    (frozen, tagged, 3), (of_a_made_one, lambda: (x(), x() * 3), 3), (of_a_result, tagged, 4),
    (used, lambda: (scaled(), x()), 2), (leaf, tagged, 3),
    (leaf_without_history, tagged, 3),
]  # fmt: skip


@pytest.mark.parametrize("program, make, ops", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_one_graph(program, make, ops):
    same(program, make, ops=ops)


@pytest.mark.parametrize(
    "program, make, ops", PROGRAMS[::2], ids=lambda p: getattr(p, "__name__", "")
)
def test_breaks_change_nothing(program, make, ops):
    assert same_when_broken(program, make) > 5


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_marks_are_on_the_object_that_comes_out(backend):
    p, twice, *_ = framejit.compile(frozen, backend=backend)(*tagged())
    assert p._is_param and isinstance(p, nn.Parameter) and type(p) is Pair and p.is_leaf
    assert not hasattr(twice, "_is_param")
    p = framejit.compile(of_a_result, backend=backend, fullgraph=True)(*tagged())
    assert p.requires_grad and p.is_leaf and isinstance(p, nn.Parameter)


def put_into_a_module(layer, t):
    layer.weight = nn.Parameter(t, False)
    return layer(torch.ones(1, 3)), layer.weight is next(layer.parameters())


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_modules_take_them(backend):
    compiled = framejit.compile(put_into_a_module, backend=backend, fullgraph=True)
    layers = [nn.Linear(3, 4, bias=False) for _ in range(2)]
    expected, got = put_into_a_module(layers[0], scaled()), compiled(layers[1], scaled())
    assert torch.equal(got[0], expected[0]) and got[1] and expected[1]
    kept, here = [list(layer.parameters()) for layer in layers]
    assert described(here) == described(kept) and here[0]._is_param


def leaf_and_more(t):
    p = nn.Parameter(t)
    return p, p * 2, isinstance(p, nn.Parameter)


def test_what_a_leaf_leads_to_is_another_graph():
    """What tells of the tensor is looked at where the parameter is made."""
    with events.recording(events.GraphBreak) as breaks:
        same(leaf_and_more, tagged, graphs=1, fullgraph=False)
    assert [one.identifier for one in breaks] == ["FJ0111"]


def namespace(t):
    return sorted(vars(t * 2))


def test_the_namespace_of_a_result_is_that_of_the_object():
    with events.recording(events.GraphBreak) as breaks:
        same(namespace, tagged, graphs=1, fullgraph=False)
    assert [one.identifier for one in breaks] == ["FJ0156"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_modules_are_converted(backend):
    """``Module.to`` swaps such parameters, which torch refuses where somebody refers to one."""
    inner, counting = lookup_backend(backend), CountingBackend()
    model = torch.nn.Linear(3, 3, bias=False)
    model.weight = torch.nn.Parameter(Convertible(torch.ones(3, 3)))
    compiled = framejit.compile(
        model, backend=lambda m, e: inner(counting(m, e), e), fullgraph=True
    )
    for dtype in (torch.float32, torch.float64, torch.float32):
        model.to(dtype)
        given = torch.ones(2, 3, dtype=dtype)
        result = compiled(given)
        assert result.dtype is dtype and torch.equal(result, model(given))
    assert len(counting.graphs) == counting.ops == 2


class Convertible(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, content):
        return torch.Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype)

    def __init__(self, content):
        self.content = content

    def __repr__(self):
        return "Convertible"

    def __tensor_flatten__(self):
        return ["content"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, told, size, stride):
        return cls(inner["content"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        plain = [one.content if isinstance(one, cls) else one for one in args]
        result = func(*plain, **(kwargs or {}))
        kept = "detach", "clone", "_to_copy", "alias", "empty_like"
        return cls(result) if func.__name__.split(".")[0] in kept else result
