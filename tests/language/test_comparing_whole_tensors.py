"""``torch.equal`` and ``torch.allclose`` where numbers that depend on data are captured."""

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit import config

X = torch.tensor([1.0, float("nan")])
ONES = torch.ones(2)


def equal(a, b):
    return torch.equal(a, b), a + 1


def near(a, b):
    return torch.allclose(a, b, atol=0.5), a + 1


def near_with_nan(a, b):
    return torch.allclose(a, b, equal_nan=True), a + 1


@pytest.mark.parametrize("function", [equal, near, near_with_nan])
def test_in_one_graph(function):
    backend = CountingBackend()
    with config.patch(capture_scalar_outputs=True):
        compiled = framejit.compile(function, backend=backend, fullgraph=True)
        for a, b in ((ONES, ONES + 0.1), (ONES, ONES.clone()), (X, X), (X, ONES)):
            (ours, y), (theirs, z) = compiled(a, b), function(a, b)
            assert (ours, type(ours)) == (theirs, type(theirs))
            assert torch.equal(y, z) or a is X
    assert len(backend.graphs) == 1
    assert backend.ops >= 4


@pytest.mark.parametrize("other", [torch.ones(3), ONES.double(), ONES.int()])
def test_what_python_has_to_compare(other):
    with config.patch(capture_scalar_outputs=True):
        assert framejit.compile(equal, backend="eager")(ONES, other)[0] == torch.equal(ONES, other)
    assert framejit.compile(equal, backend="eager")(ONES, ONES.clone())[0] is True
