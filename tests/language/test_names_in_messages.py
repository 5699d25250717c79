"""CPython names classes of C by their module in messages, and those of ``class`` statements not."""

from __future__ import annotations

import functools
import itertools
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque

import pytest
import torch

from checking import check


class Own:
    pass


class OwnError(Exception):
    pass


OBJECTS = {
    "defaultdict": lambda: defaultdict(int), "OrderedDict": OrderedDict, "Counter": Counter,
    "deque": lambda: deque([1]), "partial": lambda: functools.partial(max),
    "namespace": types.SimpleNamespace, "count": itertools.count, "list": lambda: [1],
    "dict": dict, "own": Own, "class": lambda: Own, "set": lambda: {1}, "error": OwnError,
    "Size": lambda: torch.Size([1]), "dtype": lambda: torch.float32, "tuple": lambda: (1,),
    "device": lambda: torch.device("cpu"), "text": lambda: "a", "builtin": lambda: len,
    "module": lambda: torch, "pattern": lambda: re.compile("a"), "none": lambda: None,
}  # fmt: skip


def store(v):
    v["q"] = 1


def two(v):
    a, b = v
    return a, b


def added(v):
    number = 1
    number += v
    return number


def enter(v):
    with v:
        pass


OPERATIONS = {
    "attribute": lambda v: v.nope, "call": lambda v: v(), "length": len, "store": store,
    "index": lambda v: v["q"], "key": lambda v: {v: 1}, "negative": lambda v: -v,
    "times": lambda v: [1] * v, "next": lambda v: next(v), "as_index": lambda v: [1][v],
    "plus": lambda v: v + Own(), "to a list": lambda v: [1] + v, "less": lambda v: v < Own(),
    "of a text": lambda v: "a" * v, "mapping": lambda v: types.MappingProxyType({}) < v,
    "added": added, "bytes": lambda v: b"a" + v, "int": lambda v: int(v), "type": lambda v: int | v,
    "to a deque": lambda v: deque([1]) + v, "of a tuple": lambda v: (1, 2) * v,
    "Size": lambda v: torch.Size([1]) + v, "equal to a list": lambda v: [1] == v,
    "two": two, "enter": enter, "reversed": lambda v: reversed(v), "absolute": lambda v: abs(v),
}  # fmt: skip
#: Whose own messages differ.
ODD = {("absolute", "deque"), ("reversed", "deque"), ("two", "count")}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_message(operation, name):
    if (operation, name) in ODD:
        pytest.skip("not about names")
    make, run = OBJECTS[name], OPERATIONS[operation]

    def f(x):
        try:
            shown = type(run(make())).__name__
        except Exception as error:
            shown = type(error).__name__, str(error)
        return x + 1, shown

    check(f, torch.ones(1), calls=1, graphs=1, ops=1)


@pytest.mark.parametrize("times, graphs", [(torch.tensor(2), 1), (torch.ones(2), 2)])
def test_a_sequence_as_often_as_a_tensor_says(times, graphs):
    def f(x, times):
        try:
            return x + 1, [1] * times, "a" * times
        except TypeError as error:
            return x + 2, str(error)

    check(f, torch.ones(1), times, graphs=graphs, ops=graphs)


class Number(int):
    pass


class Text(str):
    pass


class Two:
    def __index__(self):
        return 2


ANSWERS = {
    "int": 3, "negative": -1, "large": 1 << 70, "float": 1.5, "text": "a", "none": None,
    "true": True, "of int": Number(3), "of str": Text("q"), "index": Two(), "list": [1],
    "complex": 1j, "not implemented": NotImplemented,
}  # fmt: skip
#: Special methods, and who uses what they return.
USERS = {
    "__len__": [len, bool], "__bool__": [bool, lambda o: not o], "__int__": [int],
    "__index__": [
        int, float, complex, range, lambda o: [1, 2, 3][o:], lambda o: "ab" * o, lambda o: o * b"a",
    ],
    "__float__": [float, complex], "__complex__": [complex], "__trunc__": [int], "__hash__": [hash],
    "__str__": [str, lambda o: f"{o:>3}", lambda o: "%s" % o], "__repr__": [repr, ascii],
    "__format__": [lambda o: f"{o}", lambda o: format(o, "x")], "__iter__": [list, sum],
}  # fmt: skip
SKIPPED = {("__str__", "of str"), ("__repr__", "of str")}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("name", USERS)
def test_what_special_methods_return(name, answer):
    class Own:
        pass

    setattr(Own, name, lambda self, *spec: ANSWERS[answer])

    def f(x):
        seen = []
        for use in USERS[name]:
            try:
                made = use(Own())
                seen.append((type(made).__name__, made))
            except (TypeError, ValueError, OverflowError, IndexError) as error:
                seen.append(str(error))
        return x + 1, seen

    check(f, torch.ones(1), graphs=None if (name, answer) in SKIPPED else 1, ops=1)
