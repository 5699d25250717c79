"""Events, counters, printouts and messages, without a capture."""

import pickle
import warnings

import pytest
import torch

from framejit import config, exc
from framejit.report import events, messages, printouts
from framejit.report.counters import Counters, counters


@pytest.fixture(autouse=True)
def fresh():
    counters.clear()
    events.clear()
    messages.forget_warnings()
    yield
    counters.clear()
    events.clear()


def emit_break(reason="it prints"):
    events.emit(events.GraphBreak(name="f", filename="/a/model.py", line=3, reason=reason))


def test_subscribers_see_events_in_order_until_they_leave():
    with events.recording() as seen:
        emit_break("one")
        events.emit(events.FrameSkipped(reason="two"))
    emit_break("three")
    assert [event.reason for event in seen] == ["one", "two"]
    assert seen[0].place == "model.py:3"


def test_recording_can_be_narrowed():
    with events.recording(events.FrameSkipped) as seen:
        emit_break()
        events.emit(events.FrameSkipped(reason="two"))
    assert [type(event) for event in seen] == [events.FrameSkipped]


def test_history_is_bounded():
    for number in range(events.HISTORY_LIMIT + 10):
        emit_break(str(number))
    kept = events.history(events.GraphBreak)
    assert len(kept) == events.HISTORY_LIMIT
    assert kept[0].reason == "10"


def test_a_subscriber_that_raises_is_reported_and_harms_nobody():
    def broken(event):
        raise ValueError("no")

    unsubscribe = events.subscribe(broken)
    try:
        with pytest.warns(RuntimeWarning, match="ValueError: no"):
            emit_break()
    finally:
        unsubscribe()
    assert counters["graph_break"]["it prints"] == 1


def test_counters_follow_the_stream():
    events.emit(events.CaptureStart(name="f"))
    events.emit(events.GraphCompiled(name="f", backend="eager", operations=5, inputs=2))
    emit_break()
    emit_break()
    events.emit(events.CaptureEnd(name="f", outcome="compiled"))
    events.emit(events.Recompile(name="f", reasons=("x changed",)))
    assert counters["graph_break"] == {"it prints": 2}
    assert counters["stats"] == {"unique_graphs": 1, "calls_captured": 5}
    assert counters["frames"] == {"total": 1, "ok": 1}
    assert counters["recompiles"]["f"] == 1
    counters.clear()
    assert sum(counters["graph_break"].values()) == 0


def test_counters_look_like_plain_dicts():
    some = Counters()
    some["a"]["b"] += 1
    some["empty"]
    assert repr(some) == "{'a': {'b': 1}}"
    assert pickle.loads(pickle.dumps(some))["a"] == {"b": 1}


def graph_module():
    class Toy(torch.nn.Module):
        def forward(self, a, b):
            return torch.abs(a) + b

    return torch.fx.symbolic_trace(Toy())


def test_the_graph_is_a_table():
    lines = printouts.graph_table(graph_module().graph).splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert set(lines[1]) == {"-", " "}
    assert [line.split()[1] for line in lines[2:]] == ["a", "b", "abs_1", "add", "output"]


@pytest.mark.parametrize("which", ["graph", "bytecode", "code", "guards"])
def test_each_printout_has_its_switch(which, capsys):
    def everything():
        printouts.show_graph("f", graph_module())
        printouts.show_bytecode(graph_module.__code__)
        printouts.show_code("f", "def f(a):\n    return a")
        printouts.show_guards("f", ["local 'a' TENSOR_MATCH"])

    everything()
    with config.patch(logs=frozenset({which})):
        everything()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("[framejit]") == 1
    marks = {"graph": "abs_1", "bytecode": "RESUME", "code": "return a", "guards": "'a'"}
    assert marks[which] in err
    with config.patch(debug=True):
        everything()
    assert capsys.readouterr().err.count("[framejit]") == 4


def test_a_graph_break_error_is_short_and_names_everything():
    line = test_a_graph_break_error_is_short_and_names_everything.__code__.co_firstlineno
    error = messages.graph_break_error("FJ0130", "print() writes", "", __file__, line, "f")
    text = str(error)
    assert isinstance(error, exc.Unsupported)
    assert len(text.splitlines()) <= 6
    for part in (__file__, f"line {line}", "def test_a_graph_break", "print() writes", "Move it"):
        assert part in text
    hinted = str(messages.graph_break_error("FJ0130", "x " * 500, "Do that.", "gone.py", 1))
    assert len(hinted.splitlines()) <= 6
    assert hinted.endswith("Do that.")
    assert max(map(len, hinted.splitlines())) < 250


def test_a_bug_is_reported_once_with_everything_a_report_needs():
    def bug():
        raise KeyError("lost")

    with pytest.warns(messages.FramejitWarning) as caught:
        for _ in range(3):
            try:
                bug()
            except KeyError as error:
                messages.warn_internal_error(error, "forward", "model.py", 12)
    text = str(caught[0].message)
    assert len(caught) == 1
    for part in ("forward", "model.py:12", torch.__version__, "KeyError", "in bug", "plain Python"):
        assert part in text


def test_the_recompile_limit_is_reported_once_per_frame():
    with pytest.warns(messages.FramejitWarning) as caught:
        for function in ("f", "f", "g"):
            messages.warn_recompile_limit(function, "m.py", 1, 16, "local 'n' changed")
    assert len(caught) == 2
    assert "local 'n' changed" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        messages.warn_recompile_limit("f", "m.py", 1, 16, "again")
