"""Children of a test's process, which share packages with it."""

import os
from collections.abc import Callable, Iterable

from framejit.package import several


def child(work: Callable[[], bool]) -> int:
    """The id of a process that does ``work``, writes what it compiled, and ends well if ``work``
    returns True."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        several._files.clear()
        status = 0 if work() else 1
        several._save_all()
    finally:
        os._exit(status)


def ended(processes: Iterable[int]) -> list[int]:
    """How each ended: 0, or the signal that killed it."""
    return [os.waitpid(one, 0)[1] for one in processes]
