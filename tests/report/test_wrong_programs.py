"""Wrong programs and wrong calls: each message has at most six lines, names the user's line and an
identifier that is registered."""

import contextlib
import io
import linecache
import re
import warnings

import pytest
import torch
from torch import nn

import framejit
from framejit import exc
from framejit.report.problems import problems

BREAKS = [p for name, p in problems().items() if name.startswith("FJ01")]
#: Whose exception is the program's own, or whose capture is not asked for an error.
NO_ERROR = {"FJ0108", "FJ0109"}


def checked(message, identifiers=None):
    lines = message.splitlines()
    assert len(lines) <= 6, message
    assert max(map(len, lines)) < 400
    found = re.findall(r"\[(FJ\d{4})\]", lines[0])
    assert len(found) == 1 and found[0] in problems(), message
    if identifiers is not None:
        assert found[0] in identifiers, message
    return lines


@pytest.mark.parametrize("problem", BREAKS, ids=[p.identifier for p in BREAKS])
def test_wrong_programs_under_fullgraph(problem):
    name = f"<wrong {problem.identifier}>"
    text = problem.program.replace('backend="eager"', 'backend="eager", fullgraph=True')
    text = re.sub(r"docs::(\w+)", r"docs::wrong_\1", text).replace("ops.docs.", "ops.docs.wrong_")
    linecache.cache[name] = (1, None, text.splitlines(True), name)
    framejit.reset()
    scalars = framejit.config.capture_scalar_outputs
    raised = None
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, name, "exec"), {"__name__": "example"})
        except Exception as error:
            raised = error
        finally:
            framejit.config.capture_scalar_outputs = scalars
            torch.set_default_device(None)
    if problem.identifier in NO_ERROR and not isinstance(raised, exc.Unsupported):
        return
    if raised is None and "except RuntimeError" in text:  # which `Unsupported` is
        return
    assert isinstance(raised, exc.Unsupported), raised
    lines = checked(str(raised))
    assert raised.identifier in str(raised)
    place = re.search(r'File "(.*)", line (\d+)', str(raised))
    assert place is not None and place.group(1) == name, "the user's file"
    assert linecache.getline(name, int(place.group(2))).strip() in lines[2], "and line"


def f(x):
    return x + 1


X = torch.ones(3)
WRONG_CALLS = [
    lambda: framejit.compile(3),
    lambda: framejit.compile(nn.Linear),
    lambda: framejit.compile(staticmethod(f)),
    lambda: framejit.compile(None)(None),
    lambda: framejit.compile(f, fullgraph="yes"),
    lambda: framejit.compile(f, dynamic=3),
    lambda: framejit.compile(f, backend=3),
    lambda: framejit.compile(f, backend="egaer"),
    lambda: framejit.compile(f, mode="fastest"),
    lambda: framejit.compile(f, mode="default", options={}),
    lambda: framejit.compile(f, options=["x"]),
    lambda: framejit.compile(f, options={"no_such_option": True}),
    lambda: framejit.optimize("eager", nopython=1),
    lambda: framejit.disable(3),
    lambda: framejit.run(int),
    lambda: framejit.allow_in_graph("f"),
    lambda: framejit.guards(f),
    lambda: framejit.register_backend(3, name="x"),
    lambda: framejit.register_backend(f, name=""),
    lambda: framejit.mark_dynamic([1], 0),
    lambda: framejit.mark_dynamic(X, 4),
    lambda: framejit.config.patch(recompile_limit=0),
    lambda: framejit.config.patch(no_such=0),
    lambda: framejit.set_logs("grahp"),
    lambda: framejit.load_package("/no/such/file", f),
    lambda: framejit.comptime(3),
    lambda: framejit.compile(f, backend=lambda gm, inputs: None)(X),
    lambda: framejit.compile(f, backend=lambda gm, inputs: 1 / 0)(X),
    lambda: framejit.install("egaer"),
]


@pytest.mark.parametrize("number", range(len(WRONG_CALLS)))
def test_wrong_calls(number):
    with pytest.raises(Exception) as caught:
        WRONG_CALLS[number]()
    error = caught.value
    lines = checked(str(error))
    if isinstance(error, exc.BackendCompilerFailed) and error.__cause__ is not None:
        assert __file__ in "".join(lines), "the user's line"


def test_there_are_many():
    assert len(BREAKS) + len(WRONG_CALLS) >= 80


def outer(x):
    return middle(x) * 2


def middle(x):
    return torch.nn.functional.relu(inner(x))


def inner(x):
    print(x.shape)
    return x


def test_verbose_messages_have_every_frame():
    short, long = [], []
    for verbose, out in ((False, short), (True, long)):
        with framejit.config.patch(verbose=verbose), pytest.raises(exc.Unsupported) as caught:
            framejit.compile(outer, backend="eager", fullgraph=True)(X)
        out += checked(str(caught.value)) if not verbose else str(caught.value).splitlines()
    assert sum("File" in line for line in short) == 1
    assert [re.search(r"in (\w+)", line).group(1) for line in long if "File" in line] == [
        "outer", "middle", "inner",
    ]  # fmt: skip


def test_a_recompile_storm_explains_itself():
    """One sentence per recompile with old value, new value, line and remedy."""

    def g(x, n, name, flag):
        y = x * n if flag else x
        return y + len(name)

    calls = [(2, "a", True), (2, "ab", True), (2, "ab", False), (2, "abc", False)]
    explainer = framejit.explain(g, dynamic=False)
    seen = []
    for n, name, flag in calls:
        seen.append(explainer(X, n, name, flag).recompiles)
    assert [len(recompiles) for recompiles in seen] == [0, 1, 1, 1]
    values = [("'a'", "'ab'"), ("True", "False"), ("'ab'", "'abc'")]
    for (recompile,), (old, new) in zip(seen[1:], values):
        sentence = recompile.reasons[-1]
        assert f"it was {old}, now it is {new}" in sentence
        assert re.search(r"assumed at test_wrong_programs\.py:\d+: .+; to avoid it, ", sentence)
        assert recompile.identifiers[-1] in problems()
