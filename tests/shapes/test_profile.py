"""The profile: the next process compiles for what varied at once, whatever happened to the file."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.graph.symbols import unique_number
from framejit.shapes import profile
from framejit.shapes.profile import Profile, ProfileWarning

PROGRAM = """
import torch

def work(x, y, scale):
    return (x + y).relu().sum(0) * scale
"""
RUNNER = """
import json, sys, warnings
sys.path.insert(0, {folder!r})
import torch, framejit
from {module} import work
graphs = []
def backend(gm, inputs):
    graphs.append(gm)
    return {compiled}
compiled = framejit.compile(work, backend=backend)
for n, s in {sizes}:
    x, y = torch.randn(n, 8), torch.randn(n, 8)
    assert torch.allclose(compiled(x, y, s), work(x, y, s), atol=1e-6)
from torch._dynamo.utils import counters
print(json.dumps([len(graphs), graphs[-1].code, dict(counters["inductor"])]))
"""


@pytest.fixture(autouse=True)
def fresh():
    profile.forget()
    yield
    profile.forget()


def run(folder, sizes, path, module="program", compiled="gm.forward", **environment):
    code = RUNNER.format(folder=str(folder), module=module, sizes=sizes, compiled=compiled)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "FRAMEJIT_PROFILE": str(path), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SIZES = [(4, 2.0), (6, 2.0), (9, 2.0)]


def test_the_second_process_compiles_once(tmp_path):
    path = tmp_path / "shapes.profile"
    (tmp_path / "program.py").write_text(PROGRAM)
    captures, text, _ = run(tmp_path, SIZES, path)
    assert captures == 2
    again, same_text, _ = run(tmp_path, SIZES, path)
    assert (again, same_text) == (1, text)
    # Another folder, a line above the function, other sizes first: the same graph.
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "program.py").write_text("import os\nBEFORE = 1\n" + PROGRAM)
    assert run(other, [(9, 2.0), (4, 2.0), (30, 2.0)], path)[:2] == [1, text]


def test_changed_code_starts_anew(tmp_path):
    path = tmp_path / "shapes.profile"
    (tmp_path / "program.py").write_text(PROGRAM)
    run(tmp_path, SIZES, path)
    (tmp_path / "program.py").write_text(PROGRAM.replace("relu", "tanh"))
    assert run(tmp_path, SIZES, path)[0] == 2


@pytest.mark.slow
def test_inductors_cache_hits(tmp_path):
    path = tmp_path / "shapes.profile"
    (tmp_path / "program.py").write_text(PROGRAM)
    compiled = "framejit.backends.lookup_backend('inductor')(gm, inputs)"
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    run(tmp_path, SIZES, path, compiled=compiled, **cache)
    captures, _, counters = run(tmp_path, SIZES, path, compiled=compiled, **cache)
    assert captures == 1 and counters.get("fxgraph_cache_hit") == 1, counters


def f(x, n):
    return x * n


def vary():
    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend)
    for n in (3, 4, 5):
        compiled(torch.randn(n, 2), n)
    return len(backend.graphs)


def test_save_and_load_in_one_process(tmp_path):
    path = tmp_path / "p"
    assert vary() == 2
    framejit.save_profile(path)
    profile.forget()
    assert vary() == 2
    profile.forget()
    framejit.load_profile(path)
    assert vary() == 1
    assert f"{__name__}:f" in path.read_text()


def test_an_over_wide_profile_keeps_the_other_names(tmp_path):
    def g(x, y):
        return (x + 1, y + 1) if y.shape[0] == 3 else (x, y)

    def names():
        backend = CountingBackend()
        compiled = framejit.compile(g, backend=backend)
        for n in (4, 5):
            compiled(torch.randn(n), torch.randn(3))
        return len(backend.graphs), [
            str(node.meta["example_value"].shape[0])
            for node in backend.graphs[-1].graph.find_nodes(op="placeholder")
            if node.name == "x"
        ]

    _, narrow = names()
    framejit.save_profile(tmp_path / "p")
    data = json.loads((tmp_path / "p").read_text())
    (key,) = data["frames"]
    data["frames"][key]["L['y'] 1"] = {"sizes": [0], "strides": []}
    (tmp_path / "p").write_text(json.dumps(data))
    profile.forget()
    framejit.load_profile(tmp_path / "p")
    assert names() == (1, narrow)


def test_colliding_names_are_probed():
    taken = set()
    first = unique_number("a", taken)
    assert unique_number("a", taken) == first + 1
    assert unique_number("a", taken) == first + 2
    assert unique_number("a", set()) == first


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "it is damaged, or something else$"),
        ('{"framejit profile": 1, "fra', "it is damaged, or something else$"),
        ("[1, 2]", "no framejit profile"),
        ('{"framejit profile": 2, "frames": {}}', "version 2"),
        ('{"framejit profile": 1, "frames": {"k": {"L 2": {"sizes": ["x"]}}}}', "damaged"),
        ('{"framejit profile": 1, "frames": {"k": 3}}', "damaged"),
        ("\x00\x01", "it is damaged, or something else$"),
    ],
)
def test_a_file_that_is_not_understood_is_ignored_with_one_warning(tmp_path, content, words):
    path = tmp_path / "p"
    path.write_text(content)
    with pytest.warns(ProfileWarning, match=words) as caught:
        framejit.load_profile(path)
        framejit.load_profile(path)
    assert len(caught) == 1
    assert vary() == 2


@pytest.mark.parametrize("content, kept", [
    ('{\n "framejit profile": 1,\n "fra', False), ("", False), ("nonsense", True),
    ('{"a": 1}', True), ('{"framejit profile": 2, "frames": {}}', True),
])  # fmt: skip
def test_a_damaged_profile_is_replaced_and_another_file_is_not(tmp_path, content, kept):
    path = tmp_path / "p"
    path.write_text(content)
    with framejit.config.patch(profile=str(path)), pytest.warns(ProfileWarning) as caught:
        vary()
    assert len(caught) == 1
    if not kept:
        assert Profile.parse(path.read_text()).frames
        return
    assert path.read_text() == content
    with pytest.raises(FileExistsError, match="left as it is"):
        framejit.save_profile(path)


def one(number):
    made = Profile()
    made.frames[f"frame {number}"] = {"L['x'] 2": {"sizes": [number % 2], "strides": []}}
    return made


def _write(path, start, count):
    for number in range(start, start + count):
        profile.merge_into(path, one(number))


def test_sixteen_processes_at_once_lose_nothing(tmp_path):
    path = str(tmp_path / "p")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write, args=(path, 5 * i, 5)) for i in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(Profile.parse((tmp_path / "p").read_text()).frames) == 80


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_writers_leave_a_readable_file(tmp_path, kills):
    path = str(tmp_path / "p")
    profile.merge_into(path, one(-1))
    context = multiprocessing.get_context("fork")
    numbers = random.Random(kills)
    for i in range(kills):
        worker = context.Process(target=_write, args=(path, 10_000 * i, 10_000))
        worker.start()
        time.sleep(numbers.random() * 0.02)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert "frame -1" in Profile.parse((tmp_path / "p").read_text()).frames
    profile.merge_into(path, one(7))  # no lock is left behind


def test_merge_and_show(tmp_path, capsys):
    for number in (1, 2):
        profile.merge_into(str(tmp_path / str(number)), one(number))
    files = [str(tmp_path / name) for name in ("out", "1", "2")]
    assert profile.command(["merge", *files]) == 0
    assert profile.command(["show", files[0]]) == 0
    shown = capsys.readouterr().out
    assert "L['x'] (2 dimensions): sizes 1" in shown and "sizes 0" in shown
    assert profile.command(["show"]) == 2


def test_a_path_is_an_option_and_the_users_path_is_named(tmp_path, capsys):
    with framejit.config.patch(profile=tmp_path / "p"):
        vary()
    assert Profile.parse((tmp_path / "p").read_text()).frames
    with pytest.raises(FileNotFoundError, match="no folder .*nono: '.*nono/x'$"):
        framejit.save_profile(tmp_path / "nono" / "x")
    (tmp_path / "s.py").write_text("import torch\n")
    assert profile.command(["show", str(tmp_path / "s.py")]) == 2
    assert "s.py is no profile: it is damaged, or something else\n" in capsys.readouterr().err


def test_what_is_new():
    known = profile.Profile()
    varied = {"L['x'] 2": {"sizes": [0], "strides": []}, "L['n'] int": {}}
    assert known.add("m:f 0", varied) and known.knows("m:f 0", varied)
    assert not known.add("m:f 0", varied)
    assert known.add("m:g 0", {})
    assert known.add("m:f 0", {"L['x'] 2": {"sizes": [2, 1]}})
    assert known.frames["m:f 0"]["L['x'] 2"] == {"sizes": [0, 1, 2], "strides": []}
    other = profile.Profile()
    assert other.merge(known) and not other.merge(known)
    assert other.data == known.data and not known.knows("m:h 0", {})


def test_a_capture_adds_to_what_is_known_without_reading_all_of_it(monkeypatch):
    """Else the thousandth capture of a process would cost a hundred times what the tenth does."""
    monkeypatch.setattr(profile.Profile, "text", lambda self: pytest.fail("all of it is written"))
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    for size in (2, 3, 4):
        compiled(torch.ones(size))
    assert any(facts for facts in profile._learned.frames.values())
