"""Processes that share a package take turns: one compiles what the file lacks, then all have it.

In: calls that nothing fits, of objects with a package. Out: the right to compile for them, which
one process has at a time, and what the others have compiled meanwhile. It is given back, and what
was compiled is written, when nothing more was compiled for a moment. Next: several.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import IO

from framejit import ranks
from framejit.backends.exclusive import exclusive
from framejit.files import lock_file, unlock

#: Seconds without a compilation after which the others may go on.
_QUIET = 0.25
#: Seconds between two looks whether another process has finished compiling for this one.
_PAUSE = 0.05

#: Those of this process.
_all: weakref.WeakSet[Turn] = weakref.WeakSet()


class Turn:
    """The right to compile what the file at ``path`` lacks, and to write it.

    ``write`` adds to the file what was compiled; ``is_busy``: is something still being compiled?
    Every method is called inside `exclusive`.
    """

    def __init__(self, path: str, write: Callable[[], None], is_busy: Callable[[], bool]) -> None:
        self.path = path
        self._write = write
        self._is_busy = is_busy
        self._file: IO[str] | None = None
        #: Was anything compiled since it began?
        self._used = False
        self._quiet_at = 0.0
        self._thread: threading.Thread | None = None
        _all.add(self)

    @property
    def is_held(self) -> bool:
        """Is it this process's turn?"""
        return self._file is not None

    def begin(self, wait: bool) -> bool:
        """Have the turn; False if another process has it and this one is not to ``wait``."""
        if self._file is not None:
            return True
        self._used = False
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self._file = lock_file(self.path, wait=False)
            if self._file is None and wait:
                _end_all()  # who waits for one has no other: nobody waits in a circle
                self._file = lock_file(self.path, wait=True)
        except OSError:  # nobody can write there, so each compiles for itself
            return True
        return self._file is not None

    def leave(self, used: bool) -> None:
        """What this call needed is there. ``used``: it was compiled."""
        self._used = self._used or used
        if not (self._used and self.is_held):
            self.end()
            return
        self._quiet_at = time.monotonic() + _QUIET
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._watch, name="framejit package", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:  # there are too many, or the process ends
                self.end()

    def end(self) -> None:
        """Write what was compiled; the next process goes on. Nothing is raised: what cannot be
        written is told when the process ends."""
        if self._file is None:
            return
        try:
            if self._used:
                with contextlib.suppress(Exception):
                    self._write()
        finally:
            file, self._file = self._file, None
            unlock(file)

    def _watch(self) -> None:
        while True:
            time.sleep(max(self._quiet_at - time.monotonic(), _PAUSE))
            with exclusive():
                if self._file is None:
                    self._thread = None
                    return
                if time.monotonic() >= self._quiet_at and not self._is_busy():
                    self.end()

    def forget(self) -> None:
        """In a child of a process that forks: the turn stays with the parent."""
        file, self._file, self._thread = self._file, None, None
        if file is not None:
            file.close()  # not unlocked: that would be for both


def _end_all() -> None:
    for turn in [*_all]:
        turn.end()


def _after_fork() -> None:
    for turn in [*_all]:
        turn.forget()


os.register_at_fork(after_in_child=_after_fork)
ranks.before_waiting.append(_end_all)
