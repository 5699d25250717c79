"""The thread and the process that compile in the background: one of each, started when needed.

In: tasks. Out: each is done in the order in which it came, by one thread, which mostly waits for
the other process. A process that forks starts over: its child has neither. Next: deferred.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, Protocol

#: Seconds.
_SWITCH_INTERVAL = 0.0002
#: How often a job is given to a new process after the one that had it has died.
_TRIES = 2


@contextlib.contextmanager
def giving_way() -> Iterator[None]:
    """A block of Python code that other threads interrupt sooner than usual: each operation of
    theirs lets go of the interpreter, and waits that long until it has it again."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SWITCH_INTERVAL))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """A block whose errors are shown as those of a thread are, which goes on. They are those of
    filters that turn warnings into errors, and of whoever is told of events."""
    try:
        yield
    except BaseException as error:
        shown = type(error), error, error.__traceback__, threading.current_thread()
        threading.excepthook(threading.ExceptHookArgs(shown))


class Task(Protocol):
    """What the thread does. ``owner`` is whom `wait` may wait for; None: everybody."""

    owner: object

    def run(self, crew: Crew) -> None:
        """Do it; must not raise."""


class Crew:
    """Tasks in a row."""

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque()
        self._current: Task | None = None
        self._changed = threading.Condition()
        #: That which works, once there was something to do.
        self.thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def add(self, task: Task) -> bool:
        """Have ``task`` done; False if there is no thread for it, and none can be started."""
        with self._changed:
            if self.thread is None:
                thread = threading.Thread(
                    target=self._work, name="framejit background", daemon=True
                )
                try:
                    thread.start()
                except RuntimeError:  # there are too many, or the process ends
                    return False
                self.thread = thread
            self._tasks.append(task)
            self._changed.notify_all()
        return True

    def wait(self, owner: object = None, timeout: float | None = None) -> bool:
        """Wait until nothing is left to do, for ``owner`` if given; False if ``timeout`` seconds
        were not enough."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self._is_busy(owner):
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _is_busy(self, owner: object) -> bool:
        tasks = [*self._tasks, *([] if self._current is None else [self._current])]
        return any(owner is None or task.owner in (owner, None) for task in tasks)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._current = None
                self._changed.notify_all()
                while not self._tasks:
                    self._changed.wait()
                self._current = self._tasks.popleft()
            with giving_way(), _told():
                self._current.run(self)

    # -- the other process -------------------------------------------------------------------------

    def ask(self, message: bytes) -> Any:
        """What the other process makes of a job. Raises OSError when it dies over it."""
        for _ in range(_TRIES):
            try:
                pipe = self._connected()
                pipe.send_bytes(message)
                return pickle.loads(pipe.recv_bytes())
            except (EOFError, OSError):
                self.dismiss()
        raise OSError("the process that compiles in the background has died")

    def _connected(self) -> Connection:
        if self._pipe is None:
            ours, theirs = multiprocessing.Pipe()
            path = [one for one in sys.path if isinstance(one, str) and one]
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "framejit.background.worker", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
                )
            self._pipe = ours
            ours.send_bytes(pickle.dumps(sys.path))
        return self._pipe

    def dismiss(self) -> None:
        """End the other process."""
        pipe, self._pipe = self._pipe, None
        process, self._process = self._process, None
        if pipe is not None:
            pipe.close()
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()


_crew = Crew()


def crew() -> Crew:
    """That of this process."""
    return _crew


def _after_fork() -> None:
    """A child has neither the thread nor a pipe of its own."""
    global _crew
    _crew = Crew()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _crew.dismiss())
