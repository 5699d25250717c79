"""Captured code issues warnings: each is shown for the same line, as often as plain Python shows
it, and whoever collects warnings gets the same ones."""

import subprocess
import sys
import warnings

import pytest
import torch

import framejit
from checking import CountingBackend

X = torch.arange(4.0)


class OfTheProgram(UserWarning):
    pass


class Talkative(UserWarning):
    def __init__(self, text):
        super().__init__(text + "!")


def plain(x):
    y = x + 1
    warnings.warn("a plain one")
    return y * 2


def with_category(x):
    warnings.warn("the size is %d" % x.shape[0], OfTheProgram)
    warnings.warn(DeprecationWarning("an old name"))
    warnings.warn(message="by name", category=FutureWarning, stacklevel=1)
    return x * 2


def warner(x, level):
    warnings.warn("about a caller", stacklevel=level)
    return x + 1


def between(x, level):
    return warner(x, level) * 2


def about_its_caller(x):
    return between(x, 2) - 1


def about_the_callers_caller(x):
    return between(x, 3) - 1


def in_a_loop(x):
    for i in range(3):
        warnings.warn("again")
        warnings.warn(f"turn {i}")
        x = x + 1
    return x


class Layer(torch.nn.Module):
    def forward(self, x):
        warnings.warn("a layer", stacklevel=2)
        return x * 2


LAYER = Layer()


def in_a_module(x):
    return LAYER(x) + 1


def collected(function, *args, times=3, action="default"):
    """What a program warns of in several calls, and its last result."""
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        for _ in range(times):
            result = function(*args)
    return result, [(str(w.message), w.category, w.filename, w.lineno) for w in found]


ALL = [plain, with_category, about_its_caller, about_the_callers_caller, in_a_loop]


@pytest.mark.parametrize("action", ["default", "always", "ignore", "once", "module"])
@pytest.mark.parametrize("function", ALL)
def test_in_one_graph(function, action):
    expected, told = collected(function, X, action=action)
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend, fullgraph=True)
    got, ours = collected(compiled, X, action=action)
    assert torch.equal(got, expected)
    assert ours == told
    assert len(backend.graphs) == 1
    assert (action == "ignore") == (not told)


SCRIPT = """
import sys, warnings, torch, framejit

def f(x):
    y = x + 1
    warnings.warn("a plain one")
    return y * 2

function = framejit.compile(f, backend="eager", fullgraph=True) if sys.argv[1:] else f
for _ in range(2):
    function(torch.ones(2))
"""


def test_it_is_shown_as_plain_python_shows_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    plainly, captured = (
        subprocess.run(
            [sys.executable, str(script), *more], capture_output=True, text=True, check=True
        ).stderr
        for more in ([], ["captured"])
    )
    assert captured == plainly
    assert plainly.count("a plain one") == 2  # the text, and the line


@pytest.mark.parametrize("function", [in_a_module, lambda x: warner(x, 2) if len(x) else x])
def test_about_frames_that_are_not_captured(function):
    expected, told = collected(function, X)
    backend = CountingBackend()
    got, ours = collected(framejit.compile(function, backend=backend), X)
    assert torch.equal(got, expected)
    assert ours == told
    assert backend.ops >= 1


def caller_of(function):
    return function(X)


def test_about_the_caller_of_the_compiled_function():
    def program(x):
        y = x * 2
        warnings.warn("yours", stacklevel=2)
        return y + 1

    expected, told = collected(caller_of, program)
    backend = CountingBackend()
    got, ours = collected(caller_of, framejit.compile(program, backend=backend))
    assert torch.equal(got, expected) and ours == told
    assert len(backend.graphs) == 2
    with pytest.raises(framejit.exc.Unsupported, match="caller"):
        framejit.compile(program, backend="eager", fullgraph=True)(X)


def test_warnings_that_are_errors_are_raised_where_they_are_issued():
    def program(x):
        try:
            warnings.warn("wrong")
        except UserWarning as error:
            return x * 2, str(error)
        return x + 1, ""

    compiled = framejit.compile(program, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(X)[1] == ""
        warnings.simplefilter("error")
        assert compiled(X)[1] == program(X)[1] == "wrong"
        warnings.simplefilter("ignore")
        assert compiled(X)[1] == ""


def test_who_shows_warnings_otherwise_sees_the_program_as_it_is():
    state, seen = {"n": 0}, []

    def show(*args):
        seen.append(state["n"])

    def program(x):
        state["n"] += 1
        warnings.warn("now")
        state["n"] += 1
        return x * 2

    compiled = framejit.compile(program, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        compiled(X)
        warnings.showwarning = show
        compiled(X)
        compiled(X)
    assert seen == [3, 5]


def test_a_category_with_code_of_its_own_breaks():
    def program(x):
        warnings.warn("loud", Talkative)
        return x * 2

    expected, told = collected(program, X)
    got, ours = collected(framejit.compile(program, backend="eager"), X)
    assert torch.equal(got, expected) and ours == told
    assert told[0][0] == "loud!"


def test_in_the_order_of_other_effects():
    log = []

    def program(x):
        log.append(1)
        warnings.warn("between")
        log.append(2)
        return x + len(log)

    expected, told = collected(program, X, times=1)
    log.clear()
    got, ours = collected(framejit.compile(program, backend="eager", fullgraph=True), X, times=1)
    assert torch.equal(got, expected) and ours == told and log == [1, 2]
