"""Operators and attributes that the program replaces on the classes of tensors: before the first
call, between two, during one; and undone later, in either way. Nothing is captured meanwhile, and
what was captured before fits again afterwards.
"""

from __future__ import annotations

import functools
import inspect
from unittest import mock

import pytest
import torch

import framejit
from checking import CountingAround, Outcome, compare_outcomes
from framejit import native

X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
BACKENDS = ["eager", "aot_eager"]
ABSENT = object()


def tripled(original):
    """A method that does more than torch's."""
    return lambda self, *args: torch.mul(original(self, *args), 3)


def in_place(x):
    y = x.clone()
    y -= x * 2
    return y


def stored(x):
    y = x.clone()
    y[0] = 5.0
    return y


#: What is replaced: class, name, what is put there, the program.
OPERATORS = {
    "__add__": lambda x: (x + 1, x + x),
    "__rsub__": lambda x: 2.0 - x,
    "__rpow__": lambda x: 2.0**x,
    "__isub__": in_place,
    "__matmul__": lambda x: x @ x,
    "__neg__": lambda x: -x,
    "__pos__": lambda x: +x,
    "__abs__": lambda x: abs(x),
    "__lt__": lambda x: x < 1,
    "__getitem__": lambda x: (x[0], x[:, 1]),
}
REPLACED = {
    name: (torch.Tensor, name, tripled(getattr(torch.Tensor, name)), program)
    for name, program in OPERATORS.items()
} | {
    "__mul__": (torch.Tensor, "__mul__", lambda *both: torch.add(*both), lambda x: x * 7),
    "another of torch's": (torch.Tensor, "__sub__", torch.Tensor.__add__, lambda x: x - 1),
    "partial": (
        torch.Tensor, "__floordiv__", functools.partial(torch.add, X), lambda x: x.mul(2) // 5,
    ),
    "declines": (
        torch.Tensor, "__truediv__", lambda self, other: NotImplemented, lambda x: x / x,
    ),
    "none": (torch.Tensor, "__xor__", None, lambda x: x.int() ^ 1),
    "__setitem__": (torch.Tensor, "__setitem__", lambda self, *args: None, stored),
    "__iter__": (torch.Tensor, "__iter__", lambda self: iter((self, 1)), lambda x: [*x]),
    "__len__": (torch.Tensor, "__len__", lambda self: 7, lambda x: (len(x), x.add(1))),
    "__hash__": (torch.Tensor, "__hash__", lambda self: 1, lambda x: (len({x, 1}), x.add(1))),
    "__call__": (torch.Tensor, "__call__", lambda self: 7, lambda x: (x(), x.add(1))),
    "__getattr__": (torch.Tensor, "__getattr__", lambda _, name: name, lambda x: (x.foo, x.add(1))),
    "shape": (torch.Tensor, "shape", property(lambda self: 7), lambda x: (x.shape, x.add(1))),
    "is_leaf": (torch.Tensor, "is_leaf", property(lambda self: 7), lambda x: (x.is_leaf, x.add(1))),
    "requires_grad": (torch.Tensor, "requires_grad", 7, lambda x: (x.requires_grad, x.add(1))),
    "T": (torch.Tensor, "T", property(lambda self: self.add(1)), lambda x: (x.T, x.add(1))),
}  # fmt: skip


def put(cls, name, value):
    """Put an attribute on a class, or take it away; what was there."""
    before = vars(cls).get(name, ABSENT)
    if value is ABSENT:
        delattr(cls, name)
    else:
        setattr(cls, name, value)
    return before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", REPLACED)
@pytest.mark.parametrize("order", ["010", "101"])
def test_between_calls(order, case, backend):
    cls, name, other, program = REPLACED[case]
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting)
    graphs = 0
    for is_replaced in order:
        before = put(cls, name, other) if is_replaced == "1" else None
        try:
            outcomes = [Outcome(f, (X.clone(),), {}) for f in (compiled, program)]
        finally:
            if is_replaced == "1":
                put(cls, name, before)
        compare_outcomes(*reversed(outcomes))
        graphs = graphs or (0 if is_replaced == "1" else len(counting.graphs))
        assert len(counting.graphs) == graphs, "captured while it is replaced, or captured again"
    assert graphs or case in ("__call__", "__getattr__"), "torch's own is not captured"


@pytest.mark.parametrize("backend", BACKENDS)
def test_during_a_call(backend):
    def program(x, other=tripled(torch.Tensor.__add__)):
        first = x + 1
        with mock.patch.object(torch.Tensor, "__add__", other):
            second = x + 1
        return first, second, x + 1

    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting)
    for _ in range(3):
        compare_outcomes(Outcome(program, (X.clone(),), {}), Outcome(compiled, (X.clone(),), {}))
        assert len(counting.graphs) == 1


@pytest.mark.parametrize("cls", [torch.nn.Parameter, torch.nn.Buffer])
def test_classes_of_members(cls):
    held = torch.nn.Module()
    held.weight = torch.nn.Parameter(X.clone()) if cls is torch.nn.Parameter else cls(X.clone())
    program = lambda x: (held.weight * 2, x + 1)  # noqa: E731
    counting = CountingAround("aot_eager")
    compiled = framejit.compile(program, backend=counting)
    for other in (None, lambda self, other: "mine", None):
        before = put(cls, "__mul__", other) if other else None
        try:
            outcomes = [Outcome(f, (X.clone(),), {}) for f in (program, compiled)]
        finally:
            if other:
                put(cls, "__mul__", before)
        compare_outcomes(*outcomes)
    assert len(counting.graphs) == 1


def test_it_is_said():
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    state = native.GlobalState()
    with mock.patch.object(torch.Tensor, "__add__", tripled(torch.Tensor.__add__)):
        assert native.replaced_attribute() == "Tensor.__add__"
        assert not state.check()
        explained = framejit.explain(compiled)(X)
    assert native.replaced_attribute() is None and state.check()
    assert "Tensor.__add__ is replaced" in str(explained)


def test_put_back_as_found_on_the_class():
    original = torch.Tensor.__add__
    try:
        torch.Tensor.__add__ = lambda self, other: 7
        assert native.replaced_attribute() == "Tensor.__add__"
        torch.Tensor.__add__ = original  # not deleted: the class has it itself now
        assert native.replaced_attribute() is None
    finally:
        torch.Tensor.__add__ = original
        del torch.Tensor.__add__


def test_what_nothing_computes_with_does_not_count(monkeypatch):
    state = native.GlobalState()
    monkeypatch.setattr(torch.Tensor, "__repr__", lambda self, **named: "a tensor")
    monkeypatch.setattr(torch.Tensor, "of_the_program", 7, raising=False)
    assert state.check()
    counting = CountingAround("eager")
    framejit.compile(lambda x: x + 1, backend=counting, fullgraph=True)(X)
    assert len(counting.graphs) == 1


METHODS = {
    "another of torch's": torch.Tensor.mean,
    "of Python in torch": torch.Tensor.norm,
    "partial": functools.partial(torch.mean, X),
    "builtin": torch.mean,
    "static": staticmethod(lambda: X),
    "property": property(lambda self: lambda: self.mean()),
    "object": type("Callable", (), {"__call__": lambda self: X})(),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("order", ["010", "101"])
@pytest.mark.parametrize("case", METHODS)
def test_methods_that_are_no_functions(case, order, backend, monkeypatch):
    def program(x):
        return x.sum()

    compiled = framejit.compile(program, backend=backend)
    for is_replaced in order:
        with monkeypatch.context() as patch:
            if is_replaced == "1":
                patch.setattr(torch.Tensor, "sum", METHODS[case])
            for _ in range(2):
                calls = [Outcome(f, (X.clone(),), {}) for f in (program, compiled)]
                compare_outcomes(*calls)


MODULE = torch.nn.Module
MEMBERS = {
    "__getattr__": lambda original: (
        lambda self, name: original(self, name) * 2 if name == "weight" else original(self, name)
    ),
    "__setattr__": lambda original: (
        lambda self, name, value: original(self, name, (value, 1) if name == "seen" else value)
    ),
    "__call__": lambda original: lambda self, x: original(self, x) + 1,
    "_call_impl": lambda original: lambda self, x: original(self, x) + 1,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MEMBERS)
def test_what_modules_have(name, backend, monkeypatch):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
            self.seen = 0

        def forward(self, x):
            self.seen = 1
            return x * self.weight, self.seen if type(self.seen) is tuple else "plain"

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Scaled()

        def forward(self, x):
            result, seen = self.inner(x) if name.startswith("__") else (self.inner(x)[0], 0)
            return result + 1, seen

    if name in ("__call__", "_call_impl"):
        Scaled.forward = lambda self, x: x * self.weight
        Outer.forward = lambda self, x: self.inner(x) + 1
    counting = CountingAround(backend)
    outer = Outer()
    compiled = framejit.compile(outer, backend=counting)
    other = MEMBERS[name](inspect.getattr_static(MODULE, name))
    for is_replaced in (False, True, False, True):
        with monkeypatch.context() as patch:
            if is_replaced:
                patch.setattr(MODULE, name, other)
            calls = [Outcome(f, (X.clone(),), {}) for f in (outer, compiled)]
            compare_outcomes(*calls)
    # Graphs are modules as well; a compiled module whose class calls another function begins anew.
    expected = {"__getattr__": 1, "__setattr__": 1, "__call__": 4, "_call_impl": 2}
    assert len(counting.graphs) == expected[name]
