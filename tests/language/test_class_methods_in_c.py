"""Class methods of classes in C, bound to a class: ``dict.fromkeys``, ``Function.apply``."""

import pytest
import torch

import framejit
from checking import CountingBackend, check

X = torch.tensor([1.0, -2.0])


class Table(dict):
    """A dict of the program's own."""


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


made, number, doubled = dict.fromkeys, int.from_bytes, Doubled.apply
known = {made: "made", number: "number"}


def kinds(x):
    return x + 1, type(made), type(dict.fromkeys), type(Doubled.apply) is type(doubled)


def names(x):
    return x + 1, made.__qualname__, Table.fromkeys.__qualname__, number.__name__, made.__self__


def receivers(x):
    return x + 1, made("ab"), Table.fromkeys("ab"), super(Table, Table).fromkeys("a", 2)


def equal_ones(x):
    same = made == dict.fromkeys, made == Table.fromkeys, doubled == Doubled.apply, made != number
    return x + 1, same, hash(doubled) == hash(Doubled.apply)


def found_as_keys(x):
    return x + 1, known.get(made), known.get(dict.fromkeys), {dict.fromkeys: 1}.get(made)


def in_a_set(x):
    return x + 1, made in {dict.fromkeys}, number in {made}, len({made, dict.fromkeys})


def applied(x):
    return doubled(x) + Doubled.apply(x)


@pytest.mark.parametrize(
    ("program", "graphs", "ops"),
    [(kinds, 1, 1), (names, 1, 1), (receivers, 1, 1), (equal_ones, 1, 1), (found_as_keys, 1, 1),
     (in_a_set, 1, 1), (applied, 1, 3)],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_class_methods(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


def test_a_function_kept_in_a_variable_has_its_gradient():
    check(lambda x: applied(x).sum(), X.clone().requires_grad_(), graphs=1, ops=8)


class Base:
    """A class with subclasses."""


class Above(Base):
    pass


class Beside(Base):
    pass


def by_subclasses(x):
    found = Base.__subclasses__()
    found.reverse()
    return x + len(found), [cls.__name__ for cls in found], type.__subclasses__(Above)


def test_subclasses_are_found():
    check(by_subclasses, X, graphs=1, ops=1, fullgraph=True)


def test_a_subclass_that_comes_later():
    backend = CountingBackend()
    compiled = framejit.compile(by_subclasses, backend=backend, fullgraph=True)
    assert compiled(X)[1] == by_subclasses(X)[1]
    later = type("Later", (Base,), {})
    assert compiled(X)[1] == by_subclasses(X)[1] == [later.__name__, "Beside", "Above"]
    assert len(backend.graphs) == 2


def test_subclasses_beside_one_that_is_being_made():
    def run(x):
        class Inner(Base):
            pass

        return x + 1, Inner in Base.__subclasses__(), Inner.__subclasses__()

    check(run, X, graphs=1, ops=1)
