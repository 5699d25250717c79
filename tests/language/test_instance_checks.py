"""``isinstance`` and ``issubclass``: hooks, protocols, parameters, objects that claim a class."""

from __future__ import annotations

import abc
import typing

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


class Claims:
    asked = 0

    @property
    def __class__(self):
        Claims.asked += 1
        return int


def claims_a_class(x):
    Claims.asked = 0
    one = Claims()
    kinds = isinstance(one, int), isinstance(one, Claims), isinstance(one, (str, float))
    return x + 1, kinds, type(one) is Claims, Claims.asked


class TypedNames(typing.TypedDict):
    a: int


def typed_dict_is_called(x):
    made = TypedNames(a=1)
    return x + made["a"], type(made), made


class TwoMethods:
    def m(self):
        return 1

    def n(self):
        return 2


class Hooked(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return "m" in other.__dict__ or NotImplemented


class OwnParameter(torch.nn.Parameter):
    pass


@typing.runtime_checkable
class HasMethod(typing.Protocol):
    def m(self): ...


@typing.runtime_checkable
class HasNumber(typing.Protocol):
    a: int


class Implementing(HasMethod):
    pass


class Numbered(HasNumber):
    pass


class WithNumber:
    def __init__(self):
        self.a = 1
        self.m = None


class TypedTable(typing.TypedDict):
    a: int


PARAMETER = torch.nn.Parameter(torch.ones(3))


OWN_PARAMETER = OwnParameter(torch.ones(3))


def subclass_hooks(x):
    return (
        isinstance(TwoMethods(), Hooked),
        issubclass(int, Hooked),
        issubclass(TwoMethods, (int, Hooked)),
    )


def kinds_of_parameters(x):
    return (
        isinstance(PARAMETER, torch.nn.Parameter), isinstance(OWN_PARAMETER, OwnParameter),
        isinstance(OWN_PARAMETER, torch.nn.Parameter), isinstance(PARAMETER, OwnParameter),
        isinstance(x, OwnParameter), isinstance(3, OwnParameter),
        isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor),
        isinstance(x.long(), torch.LongTensor), issubclass(int, torch.FloatTensor),
    )  # fmt: skip


def runtime_protocols(x):
    return (
        isinstance(TwoMethods(), HasMethod), isinstance(WithNumber(), HasMethod),
        isinstance(WithNumber(), HasNumber), isinstance(TwoMethods(), HasNumber),
        isinstance(Implementing(), HasMethod), isinstance(TwoMethods(), Implementing),
        isinstance(WithNumber(), Numbered), isinstance(WithNumber(), (int, Numbered)),
        isinstance(3, Implementing), isinstance(Implementing(), Implementing),
    )  # fmt: skip


def typed_dicts_are_no_classes(x):
    return (
        said(isinstance, {}, TypedTable),
        said(isinstance, {"a": 1}, TypedTable),
        said(isinstance, 3, TypedTable),
    )


class PlainA:
    a = 3


def questions_of_type(x):
    return (
        said(type.__subclasscheck__, int, bool), said(int.__subclasscheck__, 3),
        int.__instancecheck__(3), said(type.__subclasscheck__, PlainA, int | None),
    )  # fmt: skip


#: (program, graphs, operations captured)
PROGRAMS = [
    (claims_a_class, 1, 1), (typed_dict_is_called, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (subclass_hooks, 2, 2), (kinds_of_parameters, 1, 3), (runtime_protocols, 2, 2),
    (typed_dicts_are_no_classes, 1, 2), (questions_of_type, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
