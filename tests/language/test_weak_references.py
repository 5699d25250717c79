"""Weak references: shared, compared, called, and to nothing."""

from __future__ import annotations

import types
import weakref

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(6.0).reshape(2, 3) / 4


class Bare:
    """No attributes of its own."""


def _proxy_of_nothing():
    return weakref.proxy(Bare())


NOTHING = _proxy_of_nothing()


def proxy_of_nothing(x):
    y = x + 1
    try:
        NOTHING.a  # noqa: B018
    except ReferenceError as error:
        return y + 2, str(error)
    return y


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b=None):
        return a * 2 if b is None else a * b["k"]

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


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


class Slotted:
    __slots__ = ()


REFUSED = ["text", 3, (1,), [2], {}, None, 1.5, Slotted(), object(), HOLDER, Bare(), Bare, {1}]


def objects_without_weak_references(x):
    made = tuple(_weak_or_none(one) for one in REFUSED)
    return [one is None for one in made], said(weakref.ref, "text"), said(weakref.ref, x.shape)


def _weak_or_none(one):
    try:
        return weakref.ref(one)
    except TypeError:
        return None


#: (program, graphs, operations captured)
BETWEEN = [
    (weak_references, 2, 2), (weak_references_are_shared, 2, 2),
    (weak_references_compare_objects, 2, 2), (objects_without_weak_references, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (proxy_of_nothing, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
