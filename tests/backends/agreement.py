"""Runs a function in eager mode and compiled, and compares all that a training step leaves behind.

Results, changed arguments, gradients of every leaf, strides, which tensors share memory and where
they start in it, and what the next random number is.
"""

import torch

import framejit
from checking import Comparison
from framejit import config
from framejit.backends.registry import lookup_backend


class Counted:
    """A backend that counts the graphs it is given."""

    def __init__(self, backend):
        self.backend = lookup_backend(backend)
        self.graphs = []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        return self.backend(gm, inputs)


def agrees(function, *makes, graphs=None, backend="aot_eager", train=True, **settings):
    """Call ``function`` with what each of ``makes`` makes, twice; ``graphs`` is how many there are
    in the end. Results are differentiated, each with a factor of its own."""
    counted = Counted(backend)
    compiled = framejit.compile(function, backend=counted, **settings)
    with config.patch(raise_internal_errors=True):
        for make in makes:
            expected = _run(function, make, train)
            for _ in range(2):
                got = _run(compiled, make, train)
                Comparison().compare(expected[:-1], got[:-1], "call")
                assert got[-1] == expected[-1], "other tensors share memory"
    if graphs is not None:
        assert len(counted.graphs) == graphs, f"{len(counted.graphs)} graphs, not {graphs}"
    return counted


def _run(function, make, train):
    torch.manual_seed(3)
    arguments = make()
    torch.manual_seed(4)
    result = function(*arguments)
    found = _tensors([result, arguments])
    if train:
        parts = [t.real if t.is_complex() else t for t in _tensors(result) if t.requires_grad]
        if parts:
            sum(part.sum() * (i + 1) for i, part in enumerate(parts)).backward()
    gradients = [t.grad if t.is_leaf else None for t in found]
    return result, arguments, gradients, torch.rand(1), _sharing(found)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _sharing(tensors):
    keys = [(t.untyped_storage()._cdata, t.storage_offset()) for t in tensors]
    memory = [key[0] for key in keys]
    return [(memory.index(key[0]), key[1]) for key in keys]
