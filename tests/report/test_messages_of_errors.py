"""Wrong programs and wrong calls: each message has at most six lines, names the user's line and an
identifier that is registered."""

import contextlib
import io
import linecache
import re
import traceback
import warnings

import pytest
import torch
from torch import nn

import framejit
from checking import own_modules
from framejit import exc
from framejit.report.problems import problems

BREAKS = [p for name, p in problems().items() if name.startswith("FJ01")]
#: Whose exception is the program's own, or whose capture is not asked for an error or waits for the
#: next call.
NO_ERROR = {"FJ0108", "FJ0109", "FJ0126", "FJ0140"}


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
    with own_modules(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
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
    lambda: framejit.install(backend=3),
    lambda: framejit.mark_dynamic(X, "a"),
    lambda: framejit.mark_dynamic(X, [0, 1.5]),
    lambda: framejit.mark_dynamic(X, True),
    lambda: framejit.mark_dynamic(X, 0, min="a"),
    lambda: framejit.mark_dynamic(X, 0, max=10.5),
    lambda: framejit.mark_dynamic(X, 0, min=4, max=2),
    lambda: framejit.mark_static(X, "b"),
    lambda: framejit.compile(f, package=3),
    lambda: framejit.compile(f, disable="no"),
    lambda: framejit.compile(f, backend="eager", mode="reduce-overhead"),
    lambda: framejit.compile(f, backend="eager", options={"x": 1}),
    lambda: framejit.compile(f, backend=lambda gm, inputs: gm.forward, mode="max-autotune"),
    lambda: framejit.packaged(3),
    lambda: framejit.save_profile(3),
    lambda: framejit.load_profile(None),
    lambda: framejit.set_logs(["graph"]),
    lambda: framejit.set_logs("graph", handler=3),
    lambda: framejit.explain(3),
    lambda: framejit.explain(f, backend="egaer"),
    lambda: framejit.explain(f)(X).to_html(3),
    lambda: framejit.explain(f)(X).to_html(""),
    lambda: framejit.optimize("eager", disable="no"),
    lambda: framejit.run(strict=3),
    lambda: framejit.disable(f, recursive="no"),
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


def backend_that_raises(gm, inputs):
    raise ValueError("mine")


def marked(x):
    framejit.mark_dynamic(x, 0)
    return framejit.compile(lambda x: x + 1 if x.shape[0] == 5 else x, backend="eager")(x)


def strict(x):
    with framejit.run(strict=True):
        return framejit.compile(f, backend="eager")(x)


def in_a_block(x):
    with framejit.optimize(backend_that_raises):
        return f(x)


FROM_CAPTURES = {
    "break": (lambda x: framejit.compile(print, backend="eager", fullgraph=True)(x), None),
    "backend": (lambda x: framejit.compile(f, backend=backend_that_raises)(x), ValueError),
    "block": (in_a_block, ValueError),
    "no callable": (lambda x: framejit.compile(f, backend=lambda gm, inputs: None)(x), None),
    "arguments": (lambda x: framejit.compile(f, backend=lambda gm: gm)(x), None),
    "comptime": (
        lambda x: framejit.compile(lambda x: framejit.comptime(lambda ctx: 1 / 0))(x),
        ZeroDivisionError,
    ),
    "marked": (marked, None),
    "strict": (strict, None),
}  # fmt: skip


@pytest.mark.parametrize("name", FROM_CAPTURES)
def test_errors_of_captures_show_the_users_frames_only(name):
    program, cause = FROM_CAPTURES[name]
    with pytest.raises(exc.FramejitError) as caught:
        program(torch.ones(5))
    error = caught.value
    assert not [line for line in traceback.format_tb(error.__traceback__) if "/framejit/" in line]
    assert (error.__cause__ and type(error.__cause__)) == cause
    if cause is not None:  # begins where the user's own code does
        first = traceback.extract_tb(error.__cause__.__traceback__)[0]
        assert first.filename == __file__
    with framejit.config.patch(verbose=True), pytest.raises(exc.FramejitError) as caught:
        program(torch.ones(5))
    assert "in miss" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_a_backend_that_takes_other_arguments_is_named():
    def lacking(gm):
        return gm

    with pytest.raises(exc.BackendCompilerFailed) as caught:
        framejit.compile(f, backend=lacking)(X)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("backend 'lacking' cannot be called as f(gm, example_inputs): ")
    assert line.endswith("lacking() takes 1 positional argument but 2 were given [FJ0202]")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


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


class Box:
    def __init__(self, value):
        self.value = value


def member(x, box):
    return x * box.value if hasattr(box, "value") else x


STORM = [  # what is called, with what first, with what then, what it says about both
    (lambda x, v: x[v], slice(0, 2), slice(1, 3), "0", "1"),
    (lambda x, v: x + 1 if v else x, True, False, "True", "False"),
    (lambda x, v: x + 1 if v else x, [1], [], "true", "false or empty"),
    (lambda x, v: x.to(v), torch.float64, torch.float16, "torch.float64", "torch.float16"),
    (lambda x, v: v(x), torch.sin, torch.cos, "function torch.sin", "function torch.cos"),
    (lambda x, v: x + v["a"], {"a": 1}, {"a": X}, "1", "Tensor float32[3] on cpu"),
    (lambda x, v: x + sum(v), [X], [X, X + 1], "length 1", "length 2"),
    (lambda x, v: x + v, X * 2, X.double(), "dtype float32", "dtype float64"),
    (lambda x, v: x + v, X * 2, X[:1] * 2, "of size 3 at dimension 0", "of size 1"),
    (lambda x, v: x + v, X * 2, torch.ones(3, 3), "of shape [3]", "of shape [3, 3]"),
    (lambda x, v: x + v, X + 0j, (X + 0j).conj(), "dispatch keys none", "with Conjugate instead"),
    (member, Box(2.0), Box("a"), "2.0", "'a'"),
]


@pytest.mark.parametrize("number", range(len(STORM)))
def test_every_reason_has_old_and_new_value_line_and_remedy(number):
    function, first, then, old, new = STORM[number]
    explainer = framejit.explain(function, dynamic=False)
    explainer(X, first)
    with contextlib.suppress(TypeError):
        explainer(X, then)
    (recompile,) = framejit.report().recompiles[-1:]
    pattern = (
        rf"[^;]*: it was .*{re.escape(old)}.*, now it is .*{re.escape(new)}.*"
        r"\(assumed at test_messages_of_errors\.py:\d+: .+\); to avoid it, .+"
    )
    assert re.fullmatch(pattern, recompile.reasons[-1]), recompile.reasons[-1]
    assert recompile.identifiers[-1] in problems()


def test_states_parameters_and_intermediate_values_are_named():
    def g(x, state, key):
        y = state.get(key, x)
        return y + outside(x)

    outside = framejit.disable(lambda x: x * 2)
    key, state = nn.Parameter(torch.ones(3, 2)), {}
    explainer = framejit.explain(g, dynamic=False)
    explainer(X, state, key)
    with torch.autocast("cpu", torch.bfloat16):
        (recompile, *_) = explainer(X, state, key).recompiles
    assert (
        "it was no autocast on the CPU, now it is autocast on the CPU to bfloat16"
        in (recompile.reasons[-1])
    )
    state[key] = X * 2
    (recompile, *_) = explainer(X, state, key).recompiles
    assert recompile.reasons[-1].startswith(
        "local 'state'[<Parameter 0, float32[3, 2]>] ABSENT: it was not there, now it is Tensor"
    )
    assert any(
        "intermediate value" in reason
        for recompile in explainer(X.double(), {}, key).recompiles for reason in recompile.reasons
    )  # fmt: skip


def test_the_entry_that_fits_best_explains_a_recompile():
    def g(x, n):
        y = x * 2
        return y if n > 3 else x

    explainer = framejit.explain(g, dynamic=False)
    for x, n in ((X, 1), (X.double(), 1), (X.double(), 2)):
        (*_, last) = [(), *explainer(x, n).recompiles]
    assert "it was dtype" in last.reasons[0] and "it was 1, now it is 2" in last.reasons[1]
    explainer(X, 2)
    assert "it was 1, now it is 2" in framejit.report().recompiles[-1].reasons[-1]


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
        assert re.search(r"assumed at test_messages_of_errors\.py:\d+: .+; to avoid it, ", sentence)
        assert recompile.identifiers[-1] in problems()
