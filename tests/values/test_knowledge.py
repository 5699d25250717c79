"""What framejit says about a callable is what a capture does with a call of it."""

import collections
import datetime
import fractions
import posixpath
import re

import numpy
import pytest
import torch

import framejit
from checking import CountingBackend, check
from framejit import cli
from framejit.values.core.knowledge import Way, known_callable


def double(x):
    return x * 2


class Doubler:
    def __call__(self, x):
        return x * 2


uncaptured = framejit.disable(lambda x: x * 2)
breaks = {Way.REFUSED, Way.MARKED}

#: The callable, its argument (None: a tensor), the way, operations of the call.
CALLS = {
    "function": (double, None, Way.TRACED, 1),
    "object": (Doubler(), None, Way.TRACED, 1),
    "node": (torch.relu, None, Way.NODE, 1),
    "node_of_python": (torch.nn.functional.relu, None, Way.NODE, 1),
    "operator": (torch.ops.aten.sin, None, Way.NODE, 1),
    "method": (torch.Tensor.cos, None, Way.METHOD, 1),
    "replaced": (len, None, Way.REPLACED, 0),
    "replaced_class": (collections.OrderedDict, {"a": 1}, Way.REPLACED, 0),
    "array": (numpy.sin, 2.0, Way.REPLACED, 0),
    "folded_class": (fractions.Fraction, 3, Way.FOLDED, 0),
    "standard_library": (posixpath.basename, "a/b", Way.TRACED, 0),
    "class_of_c": (datetime.timedelta, 3, Way.REFUSED, 0),
    "outside": (re.escape, "a.b", Way.REFUSED, 0),
    "marked": (uncaptured, None, Way.MARKED, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_the_way_that_is_told(name):
    function, argument, way, ops = CALLS[name]
    assert known_callable(function).way is way

    def program(x, argument):
        y = x + 1
        return function(y if argument is None else argument), y

    check(program, torch.rand(3), argument, graphs=1, ops=1 + ops)
    framejit.reset()
    framejit.compile(program, backend=CountingBackend())(torch.rand(3), argument)
    assert bool(framejit.counters["graph_break"]) is (way in breaks)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch.relu", "a node of the graph"),
        ("len", "replaced (framejit."),
        ("re.escape", "a graph break (the standard library module re is not traced through)"),
    ],
)
def test_doctor_says_it(name, said, capsys):
    assert cli.main(["doctor", "--knows", name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: {said}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.such.module", "No module named 'no'"),
        ("torch.no_such_function", "module 'torch' has no attribute 'no_such_function'"),
        ("torch.pi", "a float cannot be called"),
        ("", "invalid format"),
        ("a b", "invalid format"),
    ],
)
def test_doctor_names_what_it_cannot_find(name, said, capsys):
    assert cli.main(["doctor", "--knows", name]) == 1
    assert said in capsys.readouterr().err
