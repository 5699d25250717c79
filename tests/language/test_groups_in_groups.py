"""Groups of exceptions whose members are groups."""

import pytest
import torch

import framejit
from checking import Comparison, CountingBackend


def raised(x):
    try:
        try:
            raise ValueError("q")
        except ValueError as error:
            inner = ExceptionGroup("in", [error, KeyError(3)])
            raise ExceptionGroup("outer", [inner, BlockingIOError()]) from inner
    except ExceptionGroup as group:
        return x + 1, [type(each).__name__ for each in group.exceptions], str(group)


def split(x):
    matching, rest = ExceptionGroup("m", [ValueError(1), TypeError(2)]).split(ValueError)
    return x * 2, repr(ExceptionGroup("outer", [matching, rest]))


@pytest.mark.parametrize("function", [raised, split])
def test_groups_of_groups(function):
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    with framejit.config.patch(raise_internal_errors=True):
        Comparison().compare(function(torch.ones(2)), compiled(torch.ones(2)), "")
    assert backend.ops == 1
