"""Tracebacks show the program's frames: functions written in C have none, traced or not."""

import bisect
import functools
import heapq
import itertools
import statistics
import traceback

import pytest
import torch
import torch.utils.checkpoint

import framejit
from checking import CountingBackend


def fails(v, *rest):
    if len(rest) > 1:
        print(end="")
    return v.missing


def breaks_and_fails(v, *rest):
    print(end="")
    return v.missing


def heapify(x):
    heapq.heapify([3, "a", x])


def sort(x):
    [3, 1].sort(key=fails)


def compared(x):
    return sorted([3, 1], key=functools.cmp_to_key(fails))


class Sized:
    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        return self.x.missing

    def __eq__(self, other):
        return self.x.missing

    __hash__ = None

    def __len__(self):
        return self.x.missing

    def __iter__(self):
        yield self.x
        yield self.x.missing

    def __index__(self):
        return self.x.missing


CALLS = {
    "max": lambda x: max([x, "a"], key=fails), "min": lambda x: min([x, x], key=breaks_and_fails),
    "reduce": lambda x: functools.reduce(fails, [x, 1, "a"]),
    "reduce break": lambda x: functools.reduce(breaks_and_fails, [x, 1, "a"]),
    "heapify": heapify, "bisect": lambda x: bisect.bisect([1, 2, 3], "a"), "sort": sort,
    "sorted": lambda x: sorted([x, x], key=breaks_and_fails), "cmp_to_key": compared,
    "less": lambda x: sorted([Sized(x), Sized(x)]), "equal": lambda x: Sized(x) in [Sized(x)],
    "index": lambda x: [Sized(x)].index(Sized(x)), "length": lambda x: bool(Sized(x)),
    "unpacked": lambda x: [*Sized(x)], "list": lambda x: list(Sized(x)),
    "sum": lambda x: sum(Sized(x)), "any": lambda x: any(Sized(x)),
    "dict": lambda x: dict(Sized(x)),
    "map": lambda x: list(map(fails, [x])), "filter": lambda x: list(filter(fails, [x])),
    "accumulate": lambda x: list(itertools.accumulate([x, 1], fails)),
    "groupby": lambda x: list(itertools.groupby([x, 1], fails)),
    "starmap": lambda x: list(itertools.starmap(breaks_and_fails, [(x, 1)])),
    "partial": lambda x: functools.partial(fails, x)(), "fmean": lambda x: statistics.fmean(["a"]),
    "join": lambda x: "".join(Sized(x)), "range": lambda x: range(Sized(x)),
    "heappush": lambda x: heapq.heappush([Sized(x)], Sized(x)),
    "insort": lambda x: bisect.insort([Sized(x)], Sized(x)),
    "merge": lambda x: list(heapq.merge([x], [1], key=fails)),
    "vmap": lambda x: torch.func.vmap(fails)(x),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(fails, x, use_reentrant=False),
}  # fmt: skip


def frames(error):
    return [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("name", CALLS)
def test_frames(name):
    function = CALLS[name]

    def leaves(x):
        y = x + 1
        function(y)

    def caught(x):
        y = x + 1
        try:
            function(y)
        except Exception as error:
            return error, y * 2

    found = []
    for compile in (lambda f: f, lambda f: framejit.compile(f, backend=backend)):
        backend = CountingBackend()
        with pytest.raises(Exception) as raised:  # noqa: PT011, B017
            compile(leaves)(torch.ones(2))
        error, _ = compile(caught)(torch.ones(2))
        found.append([str(error), frames(error), frames(raised.value)[1:]])
    assert found[0] == found[1]
    assert backend.graphs
