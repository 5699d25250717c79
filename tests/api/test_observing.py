"""What users can see: counters, events, printouts, warnings, limits."""

import re
import warnings

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.exc import FramejitWarning
from framejit.report import events

SCALE = 2.0


def simple(a, b):
    return torch.abs(a) * b.size(0) * SCALE


def broken(x):
    y = x + 1
    print("", end="")
    return y * 2


@pytest.fixture
def backend():
    return CountingBackend()


def test_counters(backend):
    compiled = framejit.compile(broken, backend=backend)
    compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert sum(framejit.counters["graph_break"].values()) == 1
    assert framejit.counters["stats"] == {"unique_graphs": 2, "calls_captured": 2}
    assert framejit.counters["frames"]["ok"] == 2
    framejit.counters.clear()
    compiled(torch.ones(2))
    assert framejit.counters["frames"] == {}


def test_events_name_the_users_line(backend):
    with events.recording(events.GraphBreak) as breaks:
        framejit.compile(broken, backend=backend)(torch.ones(2))
    (event,) = breaks
    assert event.filename == __file__
    assert event.line == broken.__code__.co_firstlineno + 2
    assert event.code == 'print("", end="")'


def test_recompiles_say_why(backend):
    compiled = framejit.compile(simple, backend=backend)
    with events.recording(events.Recompile) as recompiles:
        compiled(torch.ones(2), torch.ones(3))
        compiled(torch.ones(2), torch.ones(3, dtype=torch.float64))
    (event,) = recompiles
    assert event.count == 1
    (reason,) = event.reasons
    assert reason.startswith(
        "local 'b' TENSOR_MATCH: it was dtype float32, now it is dtype float64"
    )


def test_global_state_changes_say_why(backend):
    compiled = framejit.compile(simple, backend=backend)
    with events.recording(events.Recompile) as recompiles:
        compiled(torch.ones(2), torch.ones(3))
        with torch.no_grad():
            compiled(torch.ones(2), torch.ones(3))
    assert "it was grad mode on, now it is grad mode off" in recompiles[0].reasons[0]


def test_the_recompile_limit_warns_once_and_keeps_what_is_there(backend):
    def f(x, n):
        return x * n

    compiled = framejit.compile(f, backend=backend, dynamic=False)
    x = torch.ones(2)
    with framejit.config.patch(recompile_limit=3):
        with pytest.warns(FramejitWarning, match="local 'n'") as caught:
            for n in range(8):
                assert torch.equal(compiled(x, n), x * n)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(8):
                assert torch.equal(compiled(x, n), x * n)
    assert len(caught) == 1 and caught[0].filename == __file__, "it names the user's line"
    assert len(backend.graphs) == 3
    assert "recompile_limit" in str(caught[0].message)


def test_printouts(backend, capsys):
    with framejit.config.patch(debug=True):
        framejit.compile(simple, backend=backend)(torch.ones(2), torch.ones(3))
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"graph of simple\n\s+opcode\s+name\s+target\s+args\s+kwargs", err)
    assert "abs_1" in err and "mul" in err
    assert "LOAD_GLOBAL" in err
    assert "def simple(" in err
    for guard in (
        "local 'a' TENSOR_MATCH",
        "global 'torch' MODULE_MATCH",
        "global 'SCALE' EQUALS_MATCH 2.0",
    ):
        assert guard in err


def test_guards_say_whose_global_it_is(backend, capsys):
    linear = torch.nn.Linear(2, 2)

    def f(x):
        return abs(linear(x)) * SCALE

    compiled = framejit.compile(f, backend=backend)
    with framejit.config.patch(logs=frozenset({"guards"})):
        compiled(torch.ones(1, 2))
    printed = capsys.readouterr().err
    for guard in (
        "global 'SCALE' EQUALS_MATCH 2.0",
        "global 'abs' ABSENT",
        "global builtins.abs FUNCTION_MATCH",
        "global torch.nn.modules.linear.F MODULE_MATCH",
        "global torch.nn.functional.linear FUNCTION_MATCH",
        "local 'linear'.__dict__['forward'] ABSENT",
        "local 'linear'.weight TENSOR_MATCH",
    ):
        assert f"  {guard}" in printed
    # Of a compiled module, the function is PyTorch's: every global needs its module's name.
    with framejit.config.patch(logs=frozenset({"guards"})):
        framejit.compile(torch.nn.Sequential(linear), backend=backend)(torch.ones(1, 2))
    printed = capsys.readouterr().err
    assert "global torch.nn.modules.module._global_forward_hooks TYPE_MATCH" in printed
    assert "global '" not in printed


@pytest.mark.parametrize("which", ["graph", "bytecode", "code", "guards"])
def test_one_printout(which, backend, capsys):
    with framejit.config.patch(logs=frozenset({which})):
        framejit.compile(simple, backend=backend)(torch.ones(2), torch.ones(3))
    assert capsys.readouterr().err.count("[framejit]") == 1


def test_guards_and_graphs_are_the_same_in_every_capture(capsys):
    texts = []
    for _ in range(2):
        with framejit.config.patch(debug=True):
            framejit.compile(simple, backend="eager")(torch.ones(2), torch.ones(3))
        texts.append(capsys.readouterr().err)
    assert texts[0] == texts[1]
    assert "0x" not in texts[0].replace("0x0", "")


def test_an_internal_error_is_reported_once_and_harms_nobody(monkeypatch, backend):
    from framejit import compiler

    def bug(*args):
        raise KeyError("lost")

    monkeypatch.setattr(compiler, "capture", bug)
    compiled = framejit.compile(simple, backend=backend)
    a, b = torch.ones(2), torch.ones(3)
    with framejit.config.patch(raise_internal_errors=False):
        with pytest.warns(FramejitWarning, match="KeyError") as caught:
            assert torch.equal(compiled(a, b), simple(a, b))
        assert torch.equal(compiled(a, b), simple(a, b))
    assert len(caught) == 1 and caught[0].filename == __file__
    assert sum(framejit.counters["internal_error"].values()) == 1


def test_a_capture_that_is_interrupted_is_over():
    def interrupted(gm, inputs):
        raise KeyboardInterrupt

    with events.recording(events.CaptureStart, events.CaptureEnd) as seen:
        with pytest.raises(KeyboardInterrupt):
            framejit.compile(simple, backend=interrupted)(torch.ones(2), torch.ones(3))
    assert [type(event) for event in seen] == [events.CaptureStart, events.CaptureEnd]
    assert seen[1].outcome == "failed"


def test_tracebacks_show_the_users_line(backend):
    def outer(x):
        y = x * 2
        return inner(y)

    def inner(y):
        return y.reshape(7)

    import traceback

    with pytest.raises(RuntimeError) as caught:
        framejit.compile(outer, backend=backend)(torch.ones(2))
    lines = [(f.filename, f.lineno) for f in traceback.extract_tb(caught.tb)]
    assert (__file__, inner.__code__.co_firstlineno + 1) in lines


def test_config_disable(backend):
    compiled = framejit.compile(simple, backend=backend)
    with framejit.config.patch(disable=True):
        compiled(torch.ones(2), torch.ones(3))
    assert backend.graphs == []
