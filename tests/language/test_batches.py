"""``itertools.batched``, which CPython has since 3.12."""

import inspect
import itertools

import pytest
import torch

from checking import check, check_between

batched = getattr(itertools, "batched", None)
pytestmark = pytest.mark.skipif(batched is None, reason="this release has no batched()")
X = torch.ones(2)
STRICT = batched is not None and "strict" in inspect.signature(batched).parameters


def of_everything(x):
    parts = list(batched([x, x + 1, x + 2], 2))
    letters = [*batched("abcde", 3)]
    source = iter(range(5))
    first = next(batched(source, 2))
    return parts, letters, first, list(source), list(batched([], 4))


def what_is_refused(x):
    found = []
    for arguments in (([1], 0), ([1], -1), (3, 1), ([1], "2"), ([1],), ([1], 2.5)):
        try:
            found.append(list(batched(*arguments)))
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    return x + 1, found


def that_goes_on(x, iterator):
    first = next(iterator)
    return x * first[0], iterator, next(iterator, "none")


def strict(x):
    parts = batched([x, x, x], 2, strict=True)
    first = next(parts)
    try:
        return first, next(parts)
    except ValueError as error:
        return first, str(error), list(parts), list(batched([1, 2], 2, strict=True))


def test_programs():
    check(of_everything, X, graphs=1, ops=2)
    check(what_is_refused, X, graphs=1, ops=1)
    check(lambda x: that_goes_on(x, batched([3, 4, 5], 2)), X, graphs=1, ops=1)


@pytest.mark.skipif(not STRICT, reason="batches of this release may always be shorter")
def test_strict():
    check_between(strict, X, graphs=1, ops=2)


def test_between_operations():
    check_between(of_everything, X, graphs=1, ops=4)
    check_between(what_is_refused, X, graphs=1, ops=3)
