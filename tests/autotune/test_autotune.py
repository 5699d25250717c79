"""Recording a program's graphs, choosing a backend for each, and running with what was chosen."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import framejit
from framejit import autotune
from framejit.autotune import Candidate, report, trial, try_all, winners
from framejit.autotune.recording import RecordingWarning
from framejit.autotune.subgraphs import graph_key
from framejit.backends import lookup_backend, register_backend
from framejit.backends.registry import unregister_backend
from framejit.exc import PackageError
from framejit.report import events


@pytest.fixture(autouse=True)
def own_winners(tmp_path):
    with framejit.config.patch(winners=str(tmp_path / "winners.json")):
        yield


@pytest.fixture
def backend():
    """Register backends for one test."""
    names = []

    def register(function, name=None):
        names.append(name or function.__name__)
        return register_backend(function, name=names[-1])

    yield register
    for name in names:
        unregister_backend(name)


def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def recorded(tmp_path, function, *args, **settings):
    """The only graph of a compiled function."""
    compiled = framejit.compile(function, backend="eager", fullgraph=True, **settings)
    with framejit.record(tmp_path / "graphs"):
        compiled(*args)
    (subgraph,) = autotune.load(tmp_path / "graphs")
    return subgraph


# -- recording -------------------------------------------------------------------------------------


def test_the_graphs_of_a_plain_program(tmp_path, capsys):
    torch.manual_seed(0)
    calls = [(torch.randn(10), torch.randn(10)) for _ in range(6)]
    expected = [toy(a, b) for a, b in calls]
    got = []
    with framejit.record(tmp_path / "a" / "b") as recording:
        for a, b in calls:  # a comprehension would be captured as a whole
            got.append(toy(a, b))
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    found = autotune.load(tmp_path / "a" / "b")
    assert sorted(s.operations for s in found) == [1, 2, 5] and not recording.left_out
    assert sorted(recording.saved) == sorted((tmp_path / "a" / "b").glob("*.json"))
    assert all("in toy" in s.line and __file__ in s.line and not s.training for s in found)
    (first,) = [s for s in found if s.operations == 5]
    out, flag = first.module()(*first.inputs())
    assert torch.equal(out, calls[0][0] / (calls[0][0].abs() + 1))
    assert not capsys.readouterr().out
    before = [p.stat().st_mtime_ns for p in recording.saved]
    framejit.reset()
    with framejit.record(tmp_path / "a" / "b") as again:
        toy(*calls[0])
    assert set(again.saved) <= set(recording.saved), "known graphs are known again"
    assert [p.stat().st_mtime_ns for p in recording.saved] == before


def test_files_are_safetensors_and_text(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    subgraph = recorded(tmp_path, lambda x: torch.sin(x) + 1, torch.arange(3.0))
    path = tmp_path / "graphs" / f"{subgraph.key}.json"
    data = json.loads(path.read_text())
    assert any("sin" in line for line in data["text"])
    held = safetensors.load_file(path.with_suffix(".safetensors"))
    assert held["0"].tolist() == [0, 1, 2]


def test_training_modes_and_strides_come_back(tmp_path):
    w = torch.nn.Parameter(torch.randn(4, 3).t())
    x = torch.randn(2, 3)

    def f(x, w):
        return F.linear(x, w.t()), x.detach()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        subgraph = recorded(tmp_path, f, x, w)
    assert subgraph.training
    one, two = subgraph.inputs()
    assert one.requires_grad and one.stride() == w.stride() and not two.requires_grad
    with subgraph.settings():
        assert subgraph.module()(one, two)[0].dtype is torch.bfloat16
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        other = recorded(tmp_path / "other", f, x, w)
    assert not other.training and other.key != subgraph.key


def test_sizes_that_vary(tmp_path):
    def f(x, n):
        return (x * n).sum(0) + x.shape[0]

    compiled = framejit.compile(f, backend="eager", dynamic=True, fullgraph=True)
    x = torch.randn(3, 4)
    with framejit.record(tmp_path):
        compiled(x, 5)
    (subgraph,) = autotune.load(tmp_path)
    (got,) = subgraph.module()(*subgraph.inputs())
    torch.testing.assert_close(got, f(x, 5))
    result = try_all(subgraph, [Candidate("aot_eager")], repeats=2)
    assert set(result.timed) == {"eager", "aot_eager"}, result
    again = tmp_path / "again"
    with framejit.record(again):  # another example of the same graph
        framejit.compile(f, backend="eager", dynamic=True)(torch.randn(6, 7), 5)
    assert [p.name for p in again.glob("*.json")] == [f"{subgraph.key}.json"]


def test_what_cannot_be_saved_is_named(tmp_path):
    secret = 3

    @framejit.allow_in_graph
    def closure(x):
        return x * secret

    compiled = framejit.compile(lambda x: closure(x) + 1, backend="eager", fullgraph=True)
    with pytest.warns(RecordingWarning, match="1 graphs were not saved"):
        with framejit.record(tmp_path) as recording:
            assert compiled(torch.ones(2)).tolist() == [4, 4]
    assert len(recording.left_out) == 1 and not autotune.load(tmp_path)


def test_a_damaged_file_is_one_error(tmp_path):
    subgraph = recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    path = tmp_path / "graphs" / f"{subgraph.key}.json"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(PackageError, match="is no recorded graph"):
        autotune.load(tmp_path / "graphs")
    assert autotune.command([str(tmp_path / "graphs")]) == 1


def test_damaged_tensors_are_named(tmp_path):
    subgraph = recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    path = tmp_path / "graphs" / f"{subgraph.key}.safetensors"
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(PackageError, match=f"{subgraph.key}.json cannot be used: the constants"):
        autotune.load(tmp_path / "graphs")


@pytest.mark.parametrize("options", [{"winners": 3}, {"default": 3}])
def test_options_of_the_wrong_type(options):
    with pytest.raises(ValueError, match=r"it must be (a path|the name).*\[FJ0213\]"):
        framejit.compile(torch.sin, backend="autotuned", options=options)


def test_keys_are_the_same_in_another_process(tmp_path):
    source = (
        "import sys, torch, framejit\n"
        "def f(x, y):\n    return torch.relu(x @ y)[:, 1:].sum(dim=-1)\n"
        "with framejit.record(folder if 'folder' in globals() else sys.argv[1]):\n"
        "    framejit.compile(f, backend='eager')(torch.randn(2, 3), torch.randn(3, 4))\n"
    )
    exec(source, {"folder": tmp_path / "here", "__name__": "here"})
    command = [sys.executable, "-W", "ignore", "-c", source, str(tmp_path / "there")]
    subprocess.run(command, check=True, timeout=100)
    here, there = [
        [path.name for path in (tmp_path / part).glob("*.json")] for part in ("here", "there")
    ]
    assert here == there and len(here) == 1


# -- trials ----------------------------------------------------------------------------------------


def wrong_numbers(gm, inputs):
    return lambda *args: [r + 0.01 for r in gm.forward(*args)]


def baked_in(gm, inputs):
    """Right for the example inputs alone."""
    made = gm.forward(*inputs)
    return lambda *args: made


def wrong_dtype(gm, inputs):
    return lambda *args: [r.double() for r in gm.forward(*args)]


def too_few(gm, inputs):
    return lambda *args: gm.forward(*args)[:-1]


def forgets_writes(gm, inputs):
    return lambda *args: gm.forward(*[a.detach().clone() for a in args])


def fails(gm, inputs):
    raise ValueError("no such\ninstruction")


def not_a_number(gm, inputs):
    return lambda *args: [r * float("nan") for r in gm.forward(*args)]


WRONG = [wrong_numbers, baked_in, wrong_dtype, too_few, forgets_writes, fails, not_a_number]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_a_wrong_backend_is_left_out(tmp_path, backend, wrong):
    def f(x, y):
        y.add_(1)
        return torch.sin(x) * y, x + 2

    subgraph = recorded(tmp_path, f, torch.randn(8), torch.randn(8))
    backend(wrong)
    result = try_all(subgraph, [Candidate(wrong.__name__), Candidate("aot_eager")], repeats=2)
    outcomes = {str(o.candidate): o for o in result.outcomes}
    assert list(outcomes) == ["eager", wrong.__name__, "aot_eager"]
    left_out = outcomes[wrong.__name__]
    assert left_out.seconds is None and left_out.problem
    assert left_out.problem.startswith("it fails: " if wrong is fails else "wrong: ")
    assert result.winner in ("eager", "aot_eager") and not outcomes["aot_eager"].problem


def test_a_wrong_gradient_is_found(tmp_path, backend):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    @backend
    def wrong_gradients(gm, inputs):
        return lambda *args: gm.forward(*[Twice.apply(a) for a in args])

    subgraph = recorded(tmp_path, lambda x: (x * x,), torch.randn(8, requires_grad=True))
    result = try_all(subgraph, [Candidate("wrong_gradients"), Candidate("aot_eager")], repeats=2)
    assert set(result.timed) == {"eager", "aot_eager"}
    with torch.no_grad():  # nothing wrong with it here
        subgraph = recorded(tmp_path / "x", lambda x: (x * x,), torch.randn(8, requires_grad=True))
    result = try_all(subgraph, [Candidate("wrong_gradients")], repeats=2)
    assert set(result.timed) == {"eager", "wrong_gradients"}


def test_training_that_writes_to_results_of_others(tmp_path):
    def f(x, w):
        return x.mul_(2) @ w

    w = torch.randn(3, 3, requires_grad=True)
    subgraph = recorded(tmp_path, f, torch.ones(2, 3, requires_grad=True) * 2, w)
    assert subgraph.training and subgraph.inner == [0]
    result = try_all(subgraph, [Candidate("aot_eager")], repeats=2)
    assert set(result.timed) == {"eager", "aot_eager"}, result.outcomes


def test_random_numbers_are_compared_by_kind(tmp_path, backend):
    @backend
    def own_numbers(gm, inputs):
        def run(*args):
            torch.rand(7)
            return gm.forward(*args)

        return run

    subgraph = recorded(tmp_path, lambda x: F.dropout(x, 0.5), torch.ones(50))
    backend(wrong_dtype)
    result = try_all(subgraph, [Candidate("own_numbers"), Candidate("wrong_dtype")], repeats=2)
    assert set(result.timed) == {"eager", "own_numbers"}


def test_trials_leave_random_numbers_alone(tmp_path):
    subgraph = recorded(tmp_path, lambda x: F.dropout(x, 0.5), torch.ones(50))
    before = torch.get_rng_state()
    try_all(subgraph, [Candidate("aot_eager")], repeats=2)
    assert torch.equal(torch.get_rng_state(), before)


def slow(gm, inputs):
    def run(*args):
        torch.ones(200_000).sort()
        return gm.forward(*args)

    return run


def test_noise_asks_for_more_samples(tmp_path, backend, monkeypatch):
    """A burst of noise hits the faster of two like backends in the first samples."""
    names = {"near": 1.1, "near_too": 1.0, "far": 3.0}
    for name in names:
        made = lambda gm, inputs: gm.forward  # noqa: E731
        made.__name__ = name
        backend(made)
    subgraph = recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    taken = {}

    def sample(subgraph, run, inputs, count):
        name = named.get(id(run))
        turn = taken[name] = taken.get(name, -1) + 1
        noise = 0.5 if name == "near_too" and turn < 13 and turn % 5 < 3 else 0.01 * (turn % 3)
        return (names.get(name, 4.0) + noise) * count

    named, compiled = {}, trial._compiled

    def remember(subgraph, candidate):
        run = compiled(subgraph, candidate)
        named[id(run)] = candidate.backend
        return run

    monkeypatch.setattr(trial, "_compiled", remember)
    monkeypatch.setattr(trial, "_sample", sample)
    result = try_all(subgraph, [Candidate(name) for name in names], repeats=10)
    assert result.winner == "near_too"
    assert taken["near"] == taken["near_too"] > 2 * taken["far"] == 2 * taken["eager"]


# -- winners ---------------------------------------------------------------------------------------


def test_the_fastest_wins_and_is_used(tmp_path, backend):
    used = []

    @backend
    def quick(gm, inputs):
        used.append(sum(n.op.startswith("call") for n in gm.graph.nodes))
        return gm.forward

    backend(slow)
    torch.manual_seed(0)
    with framejit.record(tmp_path):
        for _ in range(6):
            toy(torch.randn(10), torch.randn(10))
    results = autotune.tune(tmp_path, backends=["slow", "quick"], repeats=3)
    assert len(results) == 3 and all(r.winner in ("quick", "eager") for r in results)
    assert all(r.timed["slow"] > 2 * r.timed["quick"] for r in results)
    forced = {r.subgraph.key: "quick" if r.subgraph.operations == 5 else "eager" for r in results}
    path = Path(framejit.config.winners)
    data = json.loads(path.read_text())
    assert data["machines"][winners.machine()].keys() == forced.keys()
    data["machines"] = {winners.machine(): forced, "another machine": dict.fromkeys(forced, "slow")}
    path.write_text(json.dumps(data))
    used.clear()
    compiled = framejit.compile(toy, backend="autotuned")
    for _ in range(6):
        a, b = torch.randn(10), torch.randn(10)
        torch.testing.assert_close(compiled(a, b), toy(a, b), rtol=0, atol=0)
    assert used == [5], "each graph with its own winner"
    autotune.tune(tmp_path, backends=["eager"], repeats=1)
    assert "another machine" in json.loads(path.read_text())["machines"], "others' are kept"


def test_graphs_without_a_winner_get_the_default(tmp_path, backend):
    used = []

    @backend
    def mine(gm, inputs):
        used.append("mine")
        return gm.forward

    recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    autotune.tune(tmp_path / "graphs", backends=[], repeats=1)
    options = {"default": "mine"}
    compiled = framejit.compile(lambda x: x + 2, backend="autotuned", options=options)
    assert compiled(torch.ones(2)).tolist() == [3, 3] and used == ["mine"]
    plain = lookup_backend("autotuned")
    assert str(plain.default) == "inductor"
    same = framejit.compile(lambda x: x + 1, backend="autotuned", options=options)
    assert same(torch.ones(2)).tolist() == [2, 2] and used == ["mine"], "it has a winner: eager"
    assert same(torch.ones(3)).tolist() == [2, 2, 2] and used == ["mine", "mine"]


def test_winners_that_cannot_be_used(tmp_path):
    key = recorded(tmp_path, lambda x: x + 1, torch.ones(2)).key
    path = tmp_path / "w.json"
    rows = {key: "gone_backend"}
    path.write_text(json.dumps({"framejit winners": 1, "machines": {winners.machine(): rows}}))
    options = {"winners": str(path), "default": "eager"}
    compiled = framejit.compile(lambda x: x + 1, backend="autotuned", options=options)
    with pytest.warns(winners.WinnersWarning, match="gone_backend won for a graph, but"):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
    path.write_text("{")
    compiled = framejit.compile(lambda x: x + 1, backend="autotuned", options=options)
    with pytest.warns(winners.WinnersWarning, match="winners are ignored"):
        assert compiled(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="no option 'defualt'"):
        framejit.compile(lambda x: x + 1, backend="autotuned", options={"defualt": "eager"})(
            torch.ones(1)
        )


# -- the command -----------------------------------------------------------------------------------


def test_the_command(tmp_path, capsys, backend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    backend(wrong_numbers)
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 4)
    compiled = framejit.compile(lambda x: F.relu(layer(x)), backend="eager")
    with framejit.record(tmp_path):
        compiled(torch.randn(2, 4))
        toy(torch.randn(10), -torch.rand(10))
    arguments = [str(tmp_path), "--backends", "wrong_numbers,aot_eager", "--repeats", "2"]
    assert autotune.command([*arguments, "--csv", str(tmp_path / "s.csv")]) == 0
    out = capsys.readouterr().out
    assert "left out" in out and "wrong: value 0 is off by 0.01" in out
    assert "with the winners: " in out and "the best single backend" in out
    with open(tmp_path / "s.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == report.COLUMNS and len(rows) == 3 * 3
    assert sum(int(row["winner"]) for row in rows) == 3
    for row in rows:
        assert (row["backend"] == "wrong_numbers") == bool(row["problem"])
        assert row["problem"] or float(row["milliseconds"]) > 0 and float(row["speedup"]) > 0
    assert [row["training"] for row in rows].count("1") == 3
    assert set(winners.read(framejit.config.winners).values()) <= {"eager", "aot_eager"}


def test_what_the_command_refuses(tmp_path, capsys):
    assert autotune.command([str(tmp_path)]) == 1
    assert "holds no recorded graphs" in capsys.readouterr().err
    recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    assert autotune.command([str(tmp_path / "graphs"), "--backends", "eagre"]) == 1
    assert "there is no backend 'eagre'. Did you mean 'eager'" in capsys.readouterr().err
    assert autotune.command([str(tmp_path / "graphs"), "--repeats", "0"]) == 1
    with pytest.raises(SystemExit):
        autotune.command([])


def test_the_chart(tmp_path):
    subgraph = recorded(tmp_path, lambda x: x + 1, torch.ones(2))
    results = [try_all(subgraph, [Candidate("aot_eager")], repeats=2)]
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install framejit\[plots\]"):
            report.plot(tmp_path / "p.png", results)
    else:
        report.plot(tmp_path / "p.png", results)
        assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


# -- ensembles of users ----------------------------------------------------------------------------


def test_an_ensemble_written_by_a_user():
    tried = []

    def ensemble(gm, example_inputs):
        for name in ("picky", "ts"):
            compiled = (
                picky(gm, example_inputs)
                if name == "picky"
                else (lookup_backend(name)(gm, example_inputs))
            )
            tried.append((name, compiled is not None))
            if compiled is not None:
                return compiled
        return gm.forward

    def picky(gm, example_inputs):
        """Compiles only graphs that multiply."""
        targets = [node.target for node in gm.graph.nodes]
        return gm.forward if any("mul" in str(t) for t in targets) else None

    torch.manual_seed(0)
    compiled = framejit.compile(toy, backend=ensemble)
    with events.recording(events.GraphCompiled) as made:
        for sign in (1, -1):
            a, b = torch.randn(10), torch.rand(10) * sign
            torch.testing.assert_close(compiled(a, b), toy(a, b))
    assert [event.operations for event in made] == [5, 1, 2]
    assert tried == [("picky", False), ("ts", True), ("picky", True), ("picky", True)]


def test_keys_do_not_depend_on_values():
    keys = []

    def note(gm, inputs):
        keys.append(graph_key(gm, inputs))
        return gm.forward

    for make in (torch.ones, torch.zeros, lambda n: torch.ones(n, dtype=torch.float64)):
        framejit.compile(lambda x: x * 2, backend=note)(make(3))
    framejit.compile(lambda x: x * 3, backend=note)(torch.ones(3))
    assert keys[0] == keys[1] and len(set(keys)) == 3
