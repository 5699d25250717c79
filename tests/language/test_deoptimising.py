"""A graph that raises: random numbers, writes and Python's effects happen as in eager."""

from __future__ import annotations

import copy

import pytest
import torch

import framejit
from framejit.report import events

X = torch.arange(6.0).reshape(2, 3)
GOOD, BAD = torch.tensor([1]), torch.tensor([7])
BACKENDS = ["eager", "aot_eager"]


def draws(x, i):
    first = torch.rand(3)
    try:
        picked = torch.index_select(x, 1, i)
    except (IndexError, RuntimeError):
        picked = x * 2
    return picked, first, torch.rand(3)


def writes_behind(x, i):
    try:
        picked = torch.index_select(x, 1, i)
    except (IndexError, RuntimeError):
        picked = x * 2
    x.mul_(2)
    return picked + 1


def appends(x, i, log):
    log.append("before")
    y = x + 1
    log.append(torch.index_select(y, 1, i))
    return y


def both(function, compiled, *args):
    """What eager and compiled do with the same arguments under the same seed."""
    sides = []
    for run in (function, compiled):
        mine = copy.deepcopy(args)
        torch.manual_seed(3)
        try:
            result = run(*mine)
        except (IndexError, RuntimeError) as error:
            result = type(error), str(error).splitlines()[0]
        sides.append((result, mine, torch.rand(2)))
    return sides


def assert_same(sides):
    torch.testing.assert_close(sides[1][1], sides[0][1])
    torch.testing.assert_close(sides[1][2], sides[0][2])
    if not isinstance(sides[0][0], torch.Tensor) and isinstance(sides[0][0][0], type):
        assert sides[1][0] == sides[0][0]
    else:
        torch.testing.assert_close(sides[1][0], sides[0][0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_numbers_are_drawn_once(backend):
    compiled = framejit.compile(draws, backend=backend)
    assert_same(both(draws, compiled, X, GOOD))
    with events.recording(events.Deoptimised) as seen:
        assert_same(both(draws, compiled, X, BAD))
    assert len(seen) == 1
    assert_same(both(draws, compiled, X, GOOD))


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_was_written_yet(backend):
    compiled = framejit.compile(writes_behind, backend=backend)
    assert_same(both(writes_behind, compiled, X, GOOD))
    with events.recording(events.Deoptimised) as seen:
        assert_same(both(writes_behind, compiled, X, BAD))
    assert len(seen) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_python_effects_happen_once(backend):
    compiled = framejit.compile(appends, backend=backend)
    compiled(X, GOOD, [])
    log, expected = [], []
    with pytest.raises((IndexError, RuntimeError)):
        appends(X, BAD, expected)
    with pytest.raises((IndexError, RuntimeError)):
        compiled(X, BAD, log)
    assert log == expected == ["before"]
