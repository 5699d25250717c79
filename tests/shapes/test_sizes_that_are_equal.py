"""Sizes that have been equal in every call so far are one symbol, until a call has others."""

import math

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes
from framejit.report import events
from framejit.shapes import profile


@pytest.fixture(autouse=True)
def fresh():
    profile.forget()
    yield
    profile.forget()


def scaled(x, y):
    return x.sum(0) * y.shape[0] + y.sum(0) * x.shape[0]


def symbols_of(backend):
    """Per graph: how many symbols its inputs have."""
    counts = []
    for gm in backend.graphs:
        examples = [node.meta["example_value"] for node in gm.graph.find_nodes(op="placeholder")]
        sizes = [s for e in examples if isinstance(e, torch.Tensor) for s in e.shape]
        counts.append(len({str(size) for size in sizes if isinstance(size, torch.SymInt)}))
    return counts


def call_both(compiled, *sizes, function=scaled):
    tensors = [torch.arange(2.0 * size).reshape(size, 2) for size in sizes]
    assert torch.equal(compiled(*tensors), function(*tensors))


def test_one_symbol_until_they_differ():
    backend = CountingBackend()
    compiled = framejit.compile(scaled, backend=backend)
    for size in (4, 6, 9):
        call_both(compiled, size, size)
    assert symbols_of(backend) == [0, 1]
    with events.recording(events.Recompile) as seen:
        call_both(compiled, 5, 7)
    assert "local 'y'.size(0) == local 'x'.size(0), now" in seen[0].reasons[-1]
    assert symbols_of(backend) == [0, 1, 2]
    for sizes in ((9, 9), (3, 8), (20, 2)):
        call_both(compiled, *sizes)
    assert len(backend.graphs) == 3


@pytest.mark.parametrize("calls", [
    [(4, 6), (6, 4)], [(4, 6), (6, 6)], [(4, 4), (6, 4), (8, 8)], [(4, 4), (6, 8), (7, 7)],
])  # fmt: skip
def test_others_are_symbols_of_their_own(calls):
    backend = CountingBackend()
    compiled = framejit.compile(scaled, backend=backend)
    for sizes in [*calls, (12, 13), (14, 14)]:
        call_both(compiled, *sizes)
    assert symbols_of(backend)[-1] == 2 and len(backend.graphs) <= 3


def test_what_a_user_says_comes_first():
    for dynamic, mark, graphs in ((True, False, 1), (None, True, 2)):
        backend = CountingBackend()
        compiled = framejit.compile(scaled, backend=backend, dynamic=dynamic)
        for size in (4, 6):
            tensors = [torch.ones(size, 2), torch.ones(size, 2)]
            if mark:
                framejit.mark_dynamic(tensors[0], 0)
            compiled(*tensors)
        call_both(compiled, 5, 7)
        assert len(backend.graphs) == graphs


def test_sizes_of_one_tensor():
    def traced(x):
        return x.diagonal() * x.shape[0] + x.shape[1]

    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for shape in ((3, 3), (5, 5), (6, 6), (4, 7), (7, 4)):
        x = torch.arange(float(shape[0] * shape[1])).reshape(shape)
        assert torch.equal(compiled(x), traced(x))
    assert symbols_of(backend) == [0, 1, 2]


def run(sizes, path):
    """As a process with the profile at ``path`` runs it: the symbols of its graphs."""
    profile.forget()
    backend = CountingBackend()
    compiled = framejit.compile(scaled, backend=backend)
    if path.exists():
        framejit.load_profile(path)
    for pair in sizes:
        call_both(compiled, *pair)
    framejit.save_profile(path)
    framejit.reset()
    return symbols_of(backend)


def test_the_next_process_knows_it(tmp_path):
    path = tmp_path / "p"
    assert run([(4, 4), (6, 6)], path) == [0, 1]
    text = path.read_text()
    assert run([(5, 5), (7, 7), (9, 9)], path) == [1]
    assert path.read_text() == text
    # A process in which they differ says so to all that come after it.
    assert run([(5, 5), (7, 8)], path) == [1, 2]
    assert run([(5, 5), (7, 7), (8, 3)], path) == [2]
    assert run([(5, 5), (7, 7)], path) == [2]


SEARCHES = {
    "in": lambda x: x + (-1 in x.shape),
    "not in a list": lambda x: x * (x.shape[0] not in [2, 3]),
    "count": lambda x: x + x.shape.count(1),
    "index": lambda x: x + [5, 300, x.shape[0]].index(x.shape[0]),
    "products": lambda x: [y + math.prod(s) for y in (x, -x) for s in [x.shape] if 0 not in s],
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_number_that_is_searched_for_among_sizes_fixes_none(name):
    function = SEARCHES[name]
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend, fullgraph=True)
    for size in ((4, 8), (6, 12), (8, 16), (10, 4), (7, 7)):
        x = torch.ones(size)
        compare_outcomes(Outcome(function, (x,), {}), Outcome(compiled, (x,), {}))
    assert len(backend.graphs) == 2 and backend.ops
