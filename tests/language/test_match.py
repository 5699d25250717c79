"""Class patterns of ``match`` statements."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from checking import check, check_between

X = torch.arange(3.0)


class PlainA:
    a = 3


class Point:
    __match_args__ = ("a", "missing", "raising")
    a = 1

    @property
    def raising(self):
        raise KeyError("raising")


def class_patterns(x):
    out = []
    match Point():
        case Point(1, 2):
            out.append(1)
        case Point(missing=3):
            out.append(2)
        case Point(1):
            out.append(3)
    try:
        match Point():
            case Point(raising=3):
                out.append(4)
    except KeyError as error:
        out.append(str(error))
    return out


def class_patterns_that_are_refused(x):
    out = []
    for value in (Point(), PlainA()):
        try:
            match value:
                case Point(1, 2, 3, 4):
                    out.append(5)
                case PlainA(1):
                    out.append(6)
        except TypeError as error:
            out.append(str(error))
    return out


def one_attribute_in_two_places(x):
    out = []
    for value in (Point(), PlainA()):
        try:
            match value:
                case Point(1, a=1):
                    out.append(7)
        except TypeError as error:
            out.append(str(error))
    return out


class SaysList:
    """Is no list, which sequence patterns notice."""

    @property
    def __class__(self):
        return list

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return [4, 5][i]


def subject_that_says_it_is_a_list(x):
    match SaysList():
        case [a, b]:
            return a, b
        case {"a": a}:
            return a
        case list():
            return "list"


def class_pattern_of_no_class(x):
    try:
        match PlainA():
            case x.shape():
                return 1
    except TypeError as error:
        return str(error)


def match_of_a_dataclass_and_a_list(x):
    @dataclasses.dataclass
    class P:
        a: int
        b: int

    match P(1, 2):
        case P(a=1, b=q):
            r = q
        case _:
            r = 0
    match [1, 2, 3, {"k": 5}]:
        case [a, *rest, {"k": v}]:
            r += a + v
    return x + r


#: (program, graphs, operations captured)
BETWEEN = [
    (class_patterns, 1, 2), (class_patterns_that_are_refused, 2, 2),
    (class_pattern_of_no_class, 2, 2), (one_attribute_in_two_places, 1, 2),
    (subject_that_says_it_is_a_list, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (match_of_a_dataclass_and_a_list, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
