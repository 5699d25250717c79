"""``record_function`` in programs: labels cover what they name while a profiler records."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import profile, record_function

import framejit
from checking import CountingBackend, check

X = torch.ones(2)
EXISTING = record_function("existing")


def nested(x):
    x = x + 1
    with record_function("outer"):
        x = x * 2
        with record_function("inner"):
            x = x.sin()
    return x


@record_function("decorated")
def decorated(x):
    return x + 1


def existing(x):
    with EXISTING:
        return x * 3


def by_hand(x):
    label = record_function("by hand")
    label.__enter__()
    y = x * 2
    label.__exit__(None, None, None)
    return y


def as_a_decorator(x):
    @record_function("inside")
    def double(x):
        return x * 2

    return double(x)


def with_its_name(x):
    with record_function("named") as label:
        y = x + 1
    return y, label.name, type(label) is record_function


def left_by_an_error(x):
    try:
        with record_function("left"):
            x = x + 1
            raise ValueError
    except ValueError:
        return x


def labelled(function):
    def call(*args):
        with record_function("outside"):
            return function(*args)

    return call


@labelled
def refused(x):
    y = x + 1
    with record_function("refused"):
        return torch.autograd.grad(y.sum(), x)


def refused_and_caught(x):
    try:
        refused(x * 2)
    except RuntimeError as error:
        return x + 1, str(error)


PROGRAMS = nested, decorated, existing, by_hand, as_a_decorator, left_by_an_error
LABELS = {"outer", "inner", "decorated", "existing", "by hand", "left", "late", "inside"}


def recorded(function):
    with profile() as profiler:
        result = function(X)
    labels = [event for event in profiler.events() if event.name in LABELS]
    return result.tolist(), [
        (event.name, [part.name for part in event.cpu_children if part.name.startswith("aten::")])
        for event in labels
    ]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
def test_labels_of_a_profiler_that_records(function):
    expected = recorded(function)
    assert expected[1]
    compiled = framejit.compile(function, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(X), function(X))
        assert recorded(compiled) == expected


@pytest.mark.parametrize("function", PROGRAMS)
def test_labels_that_nobody_records_cost_no_graph(function):
    check(function, X, graphs=1, fullgraph=True)
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    recorded(compiled), compiled(X), compiled(X)
    graphs = len(backend.graphs)
    recorded(compiled), compiled(X)
    assert len(backend.graphs) == graphs, "compiled again"


def test_a_profiler_under_fullgraph():
    compiled = framejit.compile(nested, backend="eager", fullgraph=True)
    assert recorded(compiled) == (nested(X).tolist(), [])


@pytest.mark.parametrize("made", [True, False])
def test_a_profiler_that_starts_inside_a_label(made):
    def function(x):
        profiler = profile()
        with EXISTING if made else record_function("late"):
            x = x + 1
            profiler.start()
            x = x * 2
        profiler.stop()
        return x

    compiled = framejit.compile(function, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(X), function(X))


@pytest.mark.parametrize(("function", "graphs"), [(refused, 1), (refused_and_caught, 3)])
def test_an_error_leaves_labels_in_plain_python(function, graphs):
    check(function, X, graphs=graphs)


def test_a_label_is_an_object():
    check(with_its_name, X, graphs=1, ops=1, fullgraph=True)
