"""Children of a process whose threads compile, or have something locked, when it forks."""

import os
import threading
import time

import pytest
import torch
from calling import MINUTES

import framejit
from framejit import forks

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
