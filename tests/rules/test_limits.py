"""The limits in the README are true: each of these is a graph break, with eager's result.

When a test here fails because framejit captures more than before, take the words out of the README
and the program out of this file.
"""

import inspect
import logging
import random
import re
import time
import warnings
import zlib
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import framejit

# Run before a release: a feature that lands need not wait for the words about it.
pytestmark = pytest.mark.slow

README = (Path(__file__).parents[2] / "README.md").read_text()


class Own(torch.Tensor):
    """A subclass with behaviour of its own."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs)


def backward(leaf):
    (leaf * 2).sum().backward()
    return leaf.grad + 1


def requires_grad(t):
    y = t.clone()
    y.requires_grad_()
    return y * 2


def hook(leaf):
    y = leaf * 2
    y.register_hook(lambda g: print(end=""))
    return y + 1


def except_star(t):
    try:
        raise ExceptionGroup("several", [ValueError(1)])
    except* ValueError:
        y = t * 2
    return y


STARTED = (number for number in range(1000))
next(STARTED)


def from_generator(t):
    return t + 0 * next(STARTED)


#: The README's words, and a program that shows it. An argument called ``leaf`` requires grad.
LIMITS = {
    "`if t.sum() > 0`": lambda t: t + 1 if t.sum() > 0 else t,
    "`t.item()`": lambda t: t * t.sum().item(),
    "`t.tolist()`": lambda t: (t + 1).tolist(),
    "`torch.nonzero(t)`": lambda t: torch.nonzero(t + 1) * 2,
    "`loss.backward()`": backward,
    "`torch.autograd.grad`": lambda leaf: torch.autograd.grad((leaf * leaf).sum(), leaf)[0],
    "`t.requires_grad_()`": requires_grad,
    "`t.register_hook`": hook,
    "`nn.Parameter(t)`": lambda t: nn.Parameter(t + 1) * 2,
    "Tensor subclasses with behaviour of their own": lambda t: t.as_subclass(Own) + 1,
    "`t.to_sparse()`": lambda t: t.to_sparse().to_dense() + 1,
    "nested tensors": lambda t: torch.nested.nested_tensor([t, t]).unbind()[0],
    "`print`": lambda t: print(end="") or t + 1,
    "`logging`": lambda t: logging.getLogger("nobody").debug("") or t + 1,
    "`warnings`": lambda t: warnings.warn("old", DeprecationWarning) or t + 1,
    "`time`": lambda t: t + 0 * time.time(),
    "`random`": lambda t: t + 0 * random.random(),
    "C functions of other packages": lambda t: t + len(zlib.compress(b"a")),
    "`numpy.random`": lambda t: t + numpy.random.default_rng(0).random(),
    "read-only arrays": lambda t: t + float(numpy.broadcast_to(1.0, (3,)).sum()),
    "`torch._numpy`": lambda t: numpy.unwrap((t + 1).numpy()),
    "`except*`": except_star,
    "`locals()`": lambda t: t + len(locals()),
    "the next element of a generator that was started elsewhere": from_generator,
}
TEXT = README.partition("What is not captured.")[2].partition("What runs as plain Python")[0]


def fresh(function):
    (name,) = inspect.signature(function).parameters
    return torch.ones(3, requires_grad=name == "leaf")


@pytest.mark.parametrize("words", LIMITS)
def test_what_the_readme_calls_a_limit_is_one(words):
    assert words in " ".join(TEXT.split())
    function = LIMITS[words]
    expected = function(fresh(function))
    got = framejit.compile(function, backend="eager")(fresh(function))
    torch.testing.assert_close(got, expected)
    assert sum(framejit.counters["graph_break"].values()) >= 1
    assert not framejit.counters["internal_error"]


def test_every_limit_in_the_readme_is_shown():
    marked = set(re.findall(r"`[^`]+`", TEXT)) - {"`backward()`"}
    assert marked == {words for words in LIMITS if words.startswith("`")}


def test_recompiles_are_as_the_readme_says():
    def graphs(dynamic, calls):
        framejit.counters.clear()
        compiled = framejit.compile(lambda t, n: t * n, backend="eager", dynamic=dynamic)
        for size, number in calls:
            compiled(torch.ones(size), number)
        return framejit.counters["stats"]["unique_graphs"]

    sizes = [(size, 2) for size in range(2, 8)]
    assert [graphs(dynamic, sizes) for dynamic in (None, True, False)] == [2, 1, 6]
    assert graphs(None, [*sizes, (1, 2), (1, 2)]) == 3
    assert graphs(None, [(3, number) for number in range(2, 8)]) == 2
    assert graphs(None, [(3, number + 0.5) for number in range(2, 8)]) == 2


def test_generator_functions_run_as_plain_python():
    def generate(t):
        yield t + 1

    (got,) = framejit.compile(generate, backend="eager")(torch.ones(2))
    torch.testing.assert_close(got, torch.full((2,), 2.0))
    assert framejit.counters["stats"]["unique_graphs"] == 0
