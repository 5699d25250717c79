"""Children of a process whose threads compile, or have something locked, when it forks."""

import os
import sys
import threading
import time

import pytest
import torch

import framejit
from calling import MINUTES
from framejit import forks
from framejit.background import crew as crews
from framejit.background import deferred

pytestmark = pytest.mark.timeout(2 * MINUTES)


def in_child(work):
    """``work`` in a child of this process; fails if it raises, or does not come to its end."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent says so
            import traceback

            traceback.print_exc()
        finally:
            os._exit(status)
    until = time.monotonic() + MINUTES / 3
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            pytest.fail("the child does not come to its end")
        time.sleep(0.02)
    assert done[1] == 0


def compiles_something():
    def function(x, n):
        return x.sin() * n

    compiled = framejit.compile(function, backend="eager")
    for size in (3, 4):
        x = torch.ones(size)
        assert torch.equal(compiled(x, size), function(x, size))
    assert framejit.counters["stats"]["unique_graphs"] >= 2


def test_a_child_has_no_locks_of_threads_that_are_gone(tmp_path):
    held, over = threading.Event(), threading.Event()
    locks = [*forks._all]
    assert len(locks) >= 8

    def hold():
        for lock in locks:
            lock.__enter__()
        held.set()
        over.wait()
        for lock in locks:
            lock.__exit__()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(MINUTES)
        with framejit.config.patch(profile=tmp_path / "profile"):
            in_child(compiles_something)
    finally:
        over.set()
        thread.join()


def test_what_the_thread_that_forks_has_it_still_has():
    lock = forks.Lock()

    def others_wait():
        taken = threading.Event()
        thread = threading.Thread(target=lambda: lock.__enter__() or taken.set(), daemon=True)
        thread.start()
        assert not taken.wait(0.2)

    with lock:
        in_child(others_wait)
    in_child(lock.__enter__)


def test_a_child_can_import_what_a_thread_was_importing(tmp_path, monkeypatch):
    (tmp_path / "slow_for_forks.py").write_text("import time\ntime.sleep(1)\nvalue = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    imports = deferred._Imports()
    monkeypatch.setattr(deferred, "_imports", imports)
    monkeypatch.setattr(deferred.slow_imports, "MODULES", ("slow_for_forks",))
    monkeypatch.setattr(deferred.slow_imports, "LATER", ())
    imports.begin()

    def work():
        import slow_for_forks

        assert slow_for_forks.value == 3
        assert imports.begun == imports.done

    while "slow_for_forks" not in sys.modules:
        time.sleep(0.01)
    in_child(work)
    assert framejit.wait(timeout=MINUTES)


def test_the_thread_goes_on_after_an_error(monkeypatch):
    class Failing:
        owner = None

        def run(self, crew):
            raise framejit.exc.FramejitWarning("a filter makes it an error")

    crew, done = crews.Crew(), []

    class Working:
        owner = None

        def run(self, crew):
            done.append(True)

    errors = []
    monkeypatch.setattr(threading, "excepthook", lambda shown: errors.append(shown.exc_value))
    crew.add(Failing())
    crew.add(Working())
    assert crew.wait(timeout=MINUTES)
    assert done == [True] and [type(error) for error in errors] == [framejit.exc.FramejitWarning]


def test_where_no_thread_can_be_started(monkeypatch, tmp_path):
    def function(x):
        return x.sin() * 3

    def start(self):
        raise RuntimeError("can't start new thread")

    x, path = torch.ones(3), tmp_path / "model.package"
    monkeypatch.setattr(crews, "_crew", crews.Crew())
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        compiled = framejit.compile(function, backend="eager", background=True)
        with pytest.warns(framejit.exc.FramejitWarning, match="no thread can be started"):
            assert torch.equal(compiled(x), function(x))
        assert framejit.wait(compiled, timeout=MINUTES)
        other = framejit.compile(function, backend="eager", package=path)
        assert torch.equal(other(x), function(x))
        assert path.exists()  # nobody would write it a moment later
    assert torch.equal(compiled(x), function(x))
