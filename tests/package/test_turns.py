"""Processes that start from one missing package: one compiles, and the others have it as well."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch
from forks import child, ended

import framejit
from calling import MINUTES, until
from framejit.files import lock_file, locked, unlock
from framejit.package import Reader
from framejit.report import events
from threads import in_threads

PROCESSES = 8


def function(x):
    return x.sin() * 2 + 1


def other(x):
    return x.cos() - 1


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


class Backend:
    """Takes a moment, and says in a file that it was called."""

    def __init__(self, log, before=lambda count: None):
        self.log = log
        self.before = before
        self.__name__ = "slow"

    def __call__(self, gm, inputs):
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()}\n")
        self.before(len(lines(self.log)))
        time.sleep(0.1)
        return gm.forward

    def serialize(self, compiled, gm):
        return {"nothing": b"."}

    def deserialize(self, parts, module):
        return module().forward


def calls(path, backend, *functions):
    def work():
        x = torch.arange(4.0)
        for one in functions:
            compiled = framejit.compile(one, backend=backend, package=path)
            if not all(torch.equal(compiled(x), one(x)) for _ in range(2)):
                return False
        return True

    return work


@pytest.mark.timeout(120)
def test_one_process_compiles(tmp_path):
    path, log = tmp_path / "shared.package", tmp_path / "log"
    work = calls(path, Backend(log), function)
    assert ended([child(work) for _ in range(PROCESSES)]) == [0] * PROCESSES
    assert len(lines(log)) == 1
    Reader(path).verify()
    assert ended([child(work)]) == [0] and len(lines(log)) == 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("moment", ["compiles", "writes"])
def test_processes_that_are_killed_leave_the_others_alone(tmp_path, moment):
    path, log = tmp_path / "shared.package", tmp_path / "log"

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def before(count):
        if count > 3:
            return
        if moment == "compiles":
            die()
        os.fsync = die  # when the file is there in part

    work = calls(path, Backend(log, before), function)
    ends = ended([child(work) for _ in range(PROCESSES)])
    assert sorted(ends) == [0] * (PROCESSES - 3) + [signal.SIGKILL] * 3
    assert len(lines(log)) == 4
    Reader(path).verify()
    assert ended([child(work)]) == [0] and len(lines(log)) == 4


@pytest.mark.timeout(120)
def test_two_packages_in_either_order(tmp_path):
    """Nobody keeps one turn while waiting for another one."""
    log = tmp_path / "log"
    backend = Backend(log)
    one, two = tmp_path / "one.package", tmp_path / "two.package"

    def both(first, second, path, after):
        return lambda: calls(path, backend, first)() and calls(after, backend, second)()

    processes = [child(both(function, other, one, two)) for _ in range(2)]
    processes += [child(both(other, function, two, one)) for _ in range(2)]
    assert ended(processes) == [0] * 4
    assert len(lines(log)) == 2


def test_a_process_that_goes_on_has_written_what_it_compiled(tmp_path):
    path, log = tmp_path / "shared.package", tmp_path / "log"
    compiled = framejit.compile(function, backend=Backend(log), package=path)
    compiled(torch.ones(3))
    with locked(str(path)):  # when its turn is over
        (row,) = Reader(path).manifest["objects"]
    assert len(row["frames"][0]["entries"]) == len(lines(log)) == 1


def test_what_another_process_wrote_is_used_in_this_one(tmp_path):
    path, log = tmp_path / "shared.package", tmp_path / "log"
    compiled = framejit.compile(function, backend=Backend(log), package=path)
    assert ended([child(calls(path, Backend(log), function))]) == [0]
    x = torch.arange(4.0)
    with events.recording(events.CaptureStart) as captured:
        assert torch.equal(compiled(x), function(x))
    assert captured == [] and len(lines(log)) == 1


@pytest.mark.timeout(120)
def test_in_the_background_nobody_waits(tmp_path):
    path = tmp_path / "shared.package"
    compiled = framejit.compile(function, backend="eager", package=path, background=True)
    x, held = torch.arange(4.0), lock_file(str(path), wait=False)  # as another process would
    turn = "another process compiles what the package lacks"

    def call():
        assert torch.equal(compiled(x), function(x))

    def reasons():
        return [getattr(event, "reason", None) for event in seen]  # None: a capture starts

    # A machine that is busy leaves calls for the time of the capture, too, or has it begin again.
    with events.following(), events.recording(events.CallSkipped, events.CaptureStart) as seen:
        until(lambda: turn in reasons(), call)
    assert None not in reasons()
    unlock(held)
    with events.following(), events.recording(events.CallSkipped, events.CaptureStart) as seen:
        until(lambda: framejit.wait(compiled, timeout=MINUTES) and compiled.entries, call)
    assert turn not in reasons() and None in reasons()


def test_other_threads_go_on_while_a_turn_is_held(tmp_path):
    path, log = tmp_path / "shared.package", tmp_path / "log"
    compiled = framejit.compile(function, backend=Backend(log), package=path)
    wrong = []

    def work(size):
        for _ in range(20):
            x = torch.arange(float(size))
            if not torch.equal(compiled(x), function(x)):
                wrong.append(size)

    in_threads(work, (2, 3, 4, 5))
    assert not wrong
    assert len(lines(log)) == 2  # the first size, then all


SERVER = """
    import json, sys
    import torch
    import framejit
    from framejit.report import events

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    x = torch.randn(3, 8)
    background = sys.argv[2] == "background"
    compiled = framejit.compile(model, package=sys.argv[1], background=background)
    with events.recording(events.CaptureStart, events.GraphCompiled) as seen, torch.no_grad():
        right = torch.allclose(compiled(x), model(x), atol=1e-5)
        framejit.wait(compiled)
        right = right and torch.allclose(compiled(x), model(x), atol=1e-5)
    count = sum(isinstance(event, events.GraphCompiled) for event in seen)
    print(json.dumps({"right": right, "compiled": count, "seen": len(seen)}))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["waiting", "background"])
def test_servers_with_inductor(tmp_path, way):
    path = tmp_path / "model.package"
    script = tmp_path / "server.py"
    script.write_text(textwrap.dedent(SERVER))
    command = [sys.executable, str(script), str(path), way]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
    rows = [json.loads(one.communicate(timeout=800)[0].splitlines()[-1]) for one in started]
    assert all(row["right"] for row in rows)
    assert sum(row["compiled"] for row in rows) == 1
    Reader(path).verify()
