"""A function keeps the builtins that its globals had when it was made."""

import builtins

import torch

import framejit
from checking import CountingBackend

CODE = """
def count(x):
    return x * len([1, 2])

def around(x):
    return count(x) + 1
"""


def made():
    names = {"__builtins__": builtins}
    exec(CODE, names)
    return names


def exchanged(names):
    names["__builtins__"] = {**vars(builtins), "len": lambda items: 10}


def outcomes(name, compile, when):
    """``when``: in front of the first call or the second; and of a function made afterwards."""
    names, out = made(), []
    function = compile(names[name])
    for number in range(2):
        if number == when:
            exchanged(names)
        out.append(function(torch.ones(2)).tolist())
    later = dict(names)
    exec(CODE, later)
    return [*out, compile(later[name])(torch.ones(2)).tolist()]


def same(name, when, graphs):
    backend = CountingBackend()
    expected = outcomes(name, lambda f: f, when)
    got = outcomes(name, lambda f: framejit.compile(f, backend=backend), when)
    assert expected == got
    assert len(backend.graphs) == graphs


def test_it_is_compiled():
    same("count", 1, 2)


def test_one_that_has_other_builtins_runs_as_it_is():
    same("count", 0, 1)


def test_a_call_of_one_is_a_break():
    same("around", 1, 2)
