"""One thread of a process captures and compiles at a time; the others wait, or run what there is.

In: a block. Out: the same, while no other thread is in such a block. Tracing in PyTorch replaces
``torch.nn.Module.__call__`` and changes other things that all threads share. Next: compile.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

#: How many frames are added to the limit of recursion for the time of a compilation.
_FRAMES = 2000
_lock = threading.RLock()
#: What the thread that compiles has in its context; autograd's threads run backward graphs in it.
_holder: object = None
_mine: ContextVar[object] = ContextVar("framejit compiles", default=None)


def works_for_holder() -> bool:
    """Is this the thread that compiles, or one of autograd's that it waits for?"""
    return _holder is not None and _mine.get() is _holder


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Wait until no other thread is in such a block. It may be entered again inside."""
    if works_for_holder():
        yield
        return
    with _lock, _held():
        yield


@contextlib.contextmanager
def exclusive_if_free() -> Iterator[bool]:
    """The same without waiting: False where another thread is in such a block."""
    lock = _lock
    if works_for_holder():
        yield True
    elif not lock.acquire(blocking=False):
        yield False
    else:
        try:
            with _held():
                yield True
        finally:
            lock.release()


@contextlib.contextmanager
def _held() -> Iterator[None]:
    global _holder
    before, _holder = _holder, object()
    token = _mine.set(_holder)
    try:
        with _room_on_the_stack():
            yield
    finally:
        _holder = before
        _mine.reset(token)


def working_for_holder() -> Callable[[], None]:
    """Inside such a block: what another thread calls that is to work for this one meanwhile."""
    holder = _holder

    def work() -> None:
        _mine.set(holder)

    return work


@contextlib.contextmanager
def _room_on_the_stack() -> Iterator[None]:
    """Compiling needs more frames than what is compiled: a call near the limit of recursion must
    do what it does in plain Python, which does not get the frames that are added here."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _FRAMES)
    try:
        yield
    finally:
        if sys.getrecursionlimit() == limit + _FRAMES:  # else somebody has set another one
            sys.setrecursionlimit(limit)


def _after_fork() -> None:
    """A child has only the thread that forked; one that was compiling then never ends."""
    global _lock, _holder
    if not works_for_holder():
        _lock, _holder = threading.RLock(), None


os.register_at_fork(after_in_child=_after_fork)
