"""What torch warns of reaches the program as often as in plain Python, and nothing else does."""

import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F

import framejit
from checking import CountingBackend

X = torch.arange(4.0)


def resized(x, out):
    return torch.add(x, 1, out=out)


def implicit_dimension(x, out):
    return F.softmax(x) + out.sum()


def one_degree_of_freedom(x, out):
    return x[:1].std() + out.sum()


def warnings_of(function, sizes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in sizes:
            function(torch.ones(size), torch.zeros(2))
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", [resized, implicit_dimension, one_degree_of_freedom])
def test_warnings_of_each_call(function, dynamic):
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend, dynamic=dynamic)
    sizes = [2, 3, 4, 4]
    assert warnings_of(compiled, sizes) == warnings_of(function, sizes)
    assert backend.graphs


ONCE = """
import warnings
import torch, framejit

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    compiled = framejit.compile(lambda x: x.T + 1, backend="eager")
    for _ in range(3):
        compiled(torch.ones(3))
assert framejit.counters["stats"]["unique_graphs"] == 1
print([w.lineno > 0 and "x.T" in str(w.message) for w in caught], torch.is_warn_always_enabled())
"""


def test_what_torch_warns_of_once():
    command = [sys.executable, "-c", ONCE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[0] == "[True] False"


def warned(x, number):
    warnings.warn("once at each place", stacklevel=1)
    return x + number


def test_what_was_said_is_not_said_again():
    compiled = framejit.compile(warned, backend="eager")
    compiled(X, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for number in (2, 2.5, 3j, torch.ones(3, 1)):  # each makes a graph
            compiled(X, number)
    assert len(caught) == 1


AGAIN = """
import warnings
import torch, framejit

compiled = framejit.compile(lambda x, n: x * n, backend="{backend}")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    for n in (1, 2, 2.5, 7):
        warnings.warn("said once")
        x = torch.ones(2, requires_grad=True)
        compiled(x, n).sum().backward()
    first = len([w for w in caught if str(w.message) == "said once"])
    warnings.simplefilter("always")
    for _ in range(2):
        warnings.warn("said once")
print(first, len([w for w in caught if str(w.message) == "said once"]))
print(framejit.counters["stats"]["unique_graphs"])
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_captures_make_nobody_forget_what_was_said(backend):
    """Neither by what they import, sympy for one, nor by filters that AOTAutograd sets."""
    program = AGAIN.format(backend=backend)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.split() == ["1", "3", "3"], out.stderr
