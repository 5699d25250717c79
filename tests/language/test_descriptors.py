"""Descriptors that the program makes: ``property``, ``staticmethod``, ``classmethod`` and
``cached_property`` with the arguments that they take, and with others."""

from __future__ import annotations

import functools

import pytest
import torch

from checking import check

X = torch.ones(2)


def refused(x, make):
    try:
        make()
    except TypeError as error:
        return str(error), x + 1


@pytest.mark.parametrize(
    "make",
    [
        staticmethod, classmethod, functools.cached_property, lambda: staticmethod(len, len),
        lambda: staticmethod(__func__=len), lambda: property(1, 2, 3, 4, 5),
        lambda: property(len, fget=len), lambda: functools.cached_property(None, func=len),
    ],
)  # fmt: skip
def test_wrong_arguments(make):
    check(refused, X, make, graphs=1)


def test_parts_that_are_no_functions(x=X):
    def program(x):
        made = staticmethod(None), classmethod(0), property(0), property(None, fset=len)
        return (
            made[0].__func__, made[1].__func__, made[2].fget, made[3].fget, made[3].fset is len,
            functools.cached_property(func=len).func is len, x + 1,
        )  # fmt: skip

    check(program, X, graphs=1)
