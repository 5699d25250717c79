"""Events, counters, printouts and messages, without a capture."""

import io
import logging
import pickle
import time
import warnings

import pytest
import torch

import framejit
from framejit import config, exc
from framejit.report import events, messages, printouts, progress
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
    events.emit(
        events.GraphBreak(
            name="f", filename="/a/model.py", line=3, reason=reason, identifier="FJ0130"
        )
    )


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
        with pytest.warns(framejit.exc.FramejitWarning, match="ValueError: no"):
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


def entry():
    module = graph_module()
    detail = events.EntryDetail(
        graph_module.__code__, module, "def f(a):\n    return a", ["local 'a' TENSOR_MATCH"], {}, []
    )
    events.emit(events.EntryAdded(name="f", operations=2, detail=lambda: detail))


@pytest.mark.parametrize("which", ["graph", "bytecode", "code", "guards"])
def test_each_printout_has_its_switch(which, capsys):
    entry()
    with config.patch(logs=frozenset({which})):
        entry()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("[framejit]") == 1
    marks = {"graph": "abs_1", "bytecode": "RESUME", "code": "return a", "guards": "'a'"}
    assert marks[which] in err
    with config.patch(debug=True):
        entry()
    assert capsys.readouterr().err.count("[framejit]") == 4


def happen():
    emit_break()
    events.emit(
        events.Recompile(name="f", filename="/a/model.py", line=3, count=1,
                         reasons=("x was 3",), identifiers=("FJ0402",))
    )  # fmt: skip
    events.emit(
        events.CaptureEnd(name="f", outcome="compiled", seconds=0.25, backend_seconds=0.05, steps=7)
    )


@pytest.mark.parametrize(
    "which, parts",
    {
        "breaks": ["graph break [FJ0130] model.py:3: it prints", "Move it before"],
        "recompiles": ["compilation 2 of f (model.py:3)", "[FJ0402] x was 3"],
        "times": ["traced 200.0 ms, backend 50.0 ms, 7 instructions"],
    }.items(),
)
def test_what_happens_is_logged(which, parts, capsys):
    happen()
    framejit.set_logs(which)
    try:
        happen()
    finally:
        framejit.set_logs()
    happen()
    err = capsys.readouterr().err
    assert err.count("[framejit]") == 1
    for part in parts:
        assert part in err


def test_logs_are_records_of_the_standard_library(capsys):
    class Kept(logging.Handler):
        records = []

        def emit(self, record):
            self.records.append((record.name, record.getMessage().splitlines()[0]))

    handler = Kept()
    framejit.set_logs("all", handler=handler)
    try:
        happen()
        framejit.set_logs(handler=handler)
        happen()
        logging.getLogger("framejit.times").setLevel(logging.DEBUG)  # logging's own way
        happen()
    finally:
        framejit.set_logs()
        logging.getLogger("framejit.times").setLevel(logging.NOTSET)
    assert [name for name, _ in Kept.records] == [
        "framejit.breaks", "framejit.recompiles", "framejit.times", "framejit.times",
    ]  # fmt: skip
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="FJ0211"):
        framejit.set_logs("grahp")


def test_a_long_compile_shows_a_line_in_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def long_compile(stream):
        monkeypatch.setattr("sys.stderr", stream)
        events.emit(events.CaptureStart(name="f", filename="/a/model.py", line=3))
        events.emit(events.BackendStart(backend="inductor", operations=5))
        deadline = time.monotonic() + 5
        while "inductor" not in stream.getvalue() and time.monotonic() < deadline:
            if not stream.isatty() and time.monotonic() > deadline - 4.8:
                break
            time.sleep(0.01)
        events.emit(events.CaptureEnd(name="f", outcome="compiled"))
        time.sleep(0.05)
        return stream.getvalue()

    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "_STEP", 0.01)
    shown = long_compile(Terminal())
    assert "framejit: f (model.py:3), inductor: 5 operations, 0 s" in shown
    assert shown.endswith(" \r"), "it is wiped out"
    assert long_compile(io.StringIO()) == ""
    with config.patch(progress=False):
        monkeypatch.setattr(Terminal, "getvalue", lambda self: "inductor")
        stream = Terminal()
        long_compile(stream)
        monkeypatch.undo()
        assert stream.getvalue() == ""


def test_a_process_for_which_others_wait_says_that_it_compiles(monkeypatch):
    monkeypatch.setattr(progress, "_OTHERS_PATIENCE", 0.02)
    monkeypatch.setenv("RANK", "3")

    def long_compile(count):
        monkeypatch.setenv("WORLD_SIZE", str(count))
        monkeypatch.setattr("sys.stderr", stream := io.StringIO())
        events.emit(events.CaptureStart(name="f", filename="/a/model.py", line=3))
        events.emit(events.BackendStart(backend="inductor", operations=5))
        deadline = time.monotonic() + (5 if count > 1 else 0.1)
        while stream.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        events.emit(events.CaptureEnd(name="f", outcome="compiled"))
        return stream.getvalue()

    first, *_ = long_compile(4).splitlines()
    assert first == "framejit: rank 3 is compiling f (model.py:3), inductor: 5 operations, 0 s"
    assert long_compile(1) == ""


def test_a_graph_break_error_is_short_and_names_everything():
    line = test_a_graph_break_error_is_short_and_names_everything.__code__.co_firstlineno
    error = messages.graph_break_error("FJ0130", "print() writes", "", (__file__, line, "f"))
    text = str(error)
    assert isinstance(error, exc.Unsupported)
    assert len(text.splitlines()) <= 6
    for part in (__file__, f"line {line}", "def test_a_graph_break", "print() writes", "Move it"):
        assert part in text
    hinted = str(messages.graph_break_error("FJ0130", "x " * 500, "Do that.", ("gone.py", 1, "")))
    assert len(hinted.splitlines()) <= 6
    assert hinted.endswith("Do that.")
    assert max(map(len, hinted.splitlines())) < 250


def test_a_bug_is_reported_once_with_everything_a_report_needs():
    def bug():
        raise KeyError("lost")

    with pytest.warns(framejit.exc.FramejitWarning) as caught:
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
    with pytest.warns(framejit.exc.FramejitWarning) as caught:
        for function in ("f", "f", "g"):
            messages.warn_recompile_limit(function, "m.py", 1, 16, "local 'n' changed")
    assert len(caught) == 2
    assert "local 'n' changed" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        messages.warn_recompile_limit("f", "m.py", 1, 16, "again")


def test_a_report_within_a_compiled_function_compiles_nothing_of_itself(tmp_path):
    def program(x):
        y = x + 1
        report = framejit.report()
        str(report), report.to_html(tmp_path / "page.html")
        return y * 2

    with events.recording() as log:
        result = framejit.compile(program, backend="eager")(torch.ones(3))
    assert torch.equal(result, torch.ones(3) * 4)
    assert "graph" in (tmp_path / "page.html").read_text()
    assert {e.filename for e in log if isinstance(e, events.CaptureStart)} == {__file__}


def test_names_of_logs_in_a_list():
    with pytest.raises(TypeError, match=r"as in set_logs\('breaks', 'graph'\), not \['breaks'\]"):
        framejit.set_logs(["breaks"])
