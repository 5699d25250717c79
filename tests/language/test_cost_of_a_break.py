"""What a break costs: one. Wherever it is, what comes before and after it is captured."""

from __future__ import annotations

import contextlib

import pytest
import torch

import framejit
from checking import CountingBackend, Ctx, check

X = torch.arange(6.0).reshape(2, 3)


def third(x):
    y = x + 1
    print("deep")
    return y * 2


def second(x):
    return third(x - 1) + 1


def first(x):
    return second(x / 2) * 3


def print_in_for(x):
    for _ in range(5):
        x = x + 1
        print("in for")
        x = x * 2
    return x


def print_in_for_with_the_loop_variable(x):
    for i in range(3):
        x = x + i
        print(i)
        x = x * 2
    return x


def print_in_while(x):
    n = 0
    while n < 3:
        x = x + 1
        print("in while")
        x = x * 2
        n += 1
    return x


def print_in_try(x):
    try:
        x = x + 1
        print("in try")
        x = x * 2
    except ValueError:
        x = x - 1
    return x.relu()


def print_in_except(x):
    try:
        x = x + 1
        raise ValueError("here")
    except ValueError as error:
        x = x - 1
        print("in except", error)
        x = x * 3
    return x.relu()


def print_in_finally(x):
    try:
        x = x + 1
    finally:
        x = x * 2
        print("in finally")
        x = x - 1
    return x.relu()


def print_in_with(x):
    with Ctx():
        x = x + 1
        print("in with")
        x = x * 2
    return x.relu()


def print_in_no_grad(x):
    with torch.no_grad():
        x = x + 1
        print(torch.is_grad_enabled())
        x = x * 2
    return x.relu(), torch.is_grad_enabled()


def branch_in_for(x):
    for _ in range(3):
        x = x + 1
        if x.sum() > 5:
            x = x * 2
        else:
            x = x - 1
    return x


def print_three_calls_deep(x):
    return first(x + 5).relu()


def print_three_calls_deep_in_a_loop(x):
    for _ in range(3):
        x = first(x)
    return x


def print_three_calls_deep_in_with_and_try(x):
    with Ctx():
        try:
            x = first(x)
        finally:
            x = x - 1
    return x * 2


def print_in_a_comprehension(x):
    return sum([first(x) for _ in range(2)])


def print_in_a_method_of_a_module(x):
    class Layer(torch.nn.Module):
        def forward(self, v):
            v = v * 2
            print("in forward")
            return v + 1

    layer = Layer()
    return layer(x - 1).relu()


def break_in_match(x):
    match x.dim():
        case 2:
            x = x + 1
            print("two")
            x = x * 2
        case _:
            x = x - 1
    return x.relu()


def break_as_an_argument(x):
    return torch.add(x + 1, x * 2 if print("argument") is None else x).relu()


def break_in_a_nested_with(x):
    with Ctx(), contextlib.nullcontext(3) as three, torch.no_grad():
        x = x + three
        print("nested")
        x = x * 2
    return x.relu()


def break_in_a_lambda(x):
    loud = lambda v: (print("lambda"), v * 2)[1]
    return loud(x + 1).relu()


def break_in_a_property(x):
    class Box:
        @property
        def value(self):
            y = x + 1
            print("property")
            return y * 2

    return Box().value.relu()


def break_in_an_operator(x):
    class Loud:
        def __add__(self, other):
            y = other + 1
            print("add")
            return y * 2

    return (Loud() + x).relu()


def break_in_init(x):
    class Made:
        def __init__(self, v):
            self.v = v + 1
            print("init")
            self.w = self.v * 2

    made = Made(x)
    return made.v + made.w


#: (program, graphs, operations captured)
PROGRAMS = [
    (print_in_for, 3, 4), (print_in_for_with_the_loop_variable, 4, 6),
    (print_in_while, 4, 6), (print_in_try, 2, 3), (print_in_except, 2, 4),
    (print_in_finally, 2, 4), (print_in_with, 2, 3), (print_in_no_grad, 2, 5),
    (branch_in_for, 3, 8), (print_three_calls_deep, 2, 8),
    (print_three_calls_deep_in_a_loop, 3, 12),
    (print_three_calls_deep_in_with_and_try, 2, 8), (print_in_a_comprehension, 3, 14),
    (print_in_a_method_of_a_module, 2, 4), (break_in_match, 2, 3),
    (break_as_an_argument, 2, 4), (break_in_a_nested_with, 2, 5),
    (break_in_a_lambda, 2, 3), (break_in_a_property, 2, 3),
    (break_in_an_operator, 2, 3), (break_in_init, 2, 3),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


#: (program, its distinct code paths from one break, or an end of the function, to the next)
PLACEMENTS = [
    (print_in_for, 3), (print_in_try, 2), (print_in_with, 2),
    (branch_in_for, 5), (print_three_calls_deep, 2),
]  # fmt: skip
#: What a break on the truth value of a tensor runs itself.
_TRUTH = {"aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"}


@pytest.mark.parametrize("function, paths", PLACEMENTS, ids=[p[0].__name__ for p in PLACEMENTS])
def test_every_operation_around_a_break_is_in_a_graph(function, paths):
    """No operation runs outside of a graph, and a code path has two graphs at most.

    The paths. A ``print`` in a ``for``: entry to the first print, print to the next print, print to
    the end. In a ``try`` or a ``with``, and three calls deep: entry to the print, print to the end.
    An ``if`` on a tensor in a ``for``: entry to the first ``if``; from each of its two branches to
    the next ``if``, and to the end.
    """
    backend = CountingBackend()

    def marked(module, inputs):
        backend(module, inputs)

        def run(*args):
            with torch.profiler.record_function("graph"):
                return module(*args)

        return run

    compiled = framejit.compile(function, backend=marked)
    for x in (X, X - 9, X):  # both branches of the ``if``
        torch.testing.assert_close(compiled(x), function(x))
        with torch.profiler.profile() as profile:
            compiled(x)
        outside = [event.name for event in profile.events() if not _in_graph(event)]
        assert {name for name in outside if name.startswith("aten::")} <= _TRUTH
        assert any(event.name == "graph" for event in profile.events())
    assert len(backend.graphs) <= 2 * paths


def _in_graph(event):
    while event is not None:
        if event.name == "graph":
            return True
        event = event.cpu_parent
    return False
