"""Locks that the child of a process that forks finds free, whichever thread had them.

In: a lock that is taken for a moment. Out: the same, but in a child, where the threads that had it
are gone, it is not kept for ever; what the thread that forks has itself, it still has. Imports
nothing of framejit. Next: whoever shares something between threads.
"""

from __future__ import annotations

import os
import threading
import weakref


class Lock:
    """For ``with`` blocks, which may be nested."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def free(self) -> None:
        """In a child: a thread that is not there has it no longer."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


#: Those of this process.
_all: weakref.WeakSet[Lock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in [*_all]:
        lock.free()


os.register_at_fork(after_in_child=_after_fork)
