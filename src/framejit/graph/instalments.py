"""Captures in instalments: a call lends a capture some of its time, and then goes on without it.

In: the thread of a capture, and calls that lend it time. Out: `pause`, which a capture calls
between two instructions. Where nobody has lent time for it, it waits there, and the program goes
on. While it works, the call that lends the time waits: within an instruction nothing changes, as in
a capture that a call makes itself. `apart` is called by what depends on the thread. Used by
interpreter, values and capture. Next: background.captures.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from typing import Any

import torch

from . import global_state

#: Seconds that a call waits longer for a capture to pause than it has lent it, at most: one that
#: waits for something that only the call would do must not keep it for ever.
_OVERTIME = 2.0
#: Seconds after which a capture that nobody lends time is given up: it holds the objects of a call.
_PATIENCE = 10.0
#: Seconds that a lender leaves to a capture that is about to end.
_MOMENT = 0.001


class Abandoned(BaseException):
    """The capture has no use any more, or what it relies on has changed. No error of the program's:
    no handler may see it."""


class OnlyInCall(BaseException):
    """What is captured depends on the thread that calls, or on all that happens in a call. No error
    of the program's either."""


_mine: ContextVar[Instalments | None] = ContextVar("framejit instalments", default=None)


class Instalments:
    """The time of one capture. ``unchanged`` is asked when it goes on: is what it relies on beside
    the guards as it was?"""

    def __init__(self, unchanged: Callable[[], bool]) -> None:
        self._unchanged = unchanged
        self._shared = global_state.shared()
        self._go, self._back = Lock(), Lock()
        self._go.acquire()
        self._back.acquire()
        self._until = 0.0
        #: What the lender's context has that the capture's own must have, too.
        self._adopt: Callable[[], None] = lambda: None
        #: It ends at its next pause: somebody wants that, or a lender has gone on before that.
        self.abandoned = False
        self.over = False
        #: How often it has paused, and for how long.
        self.pauses = 0
        self.paused_for = 0.0

    # -- for lenders

    def lend(self, seconds: float, adopt: Callable[[], None] = lambda: None) -> None:
        """Have the capture go on for so long, and wait meanwhile. One thread at a time."""
        if self.over:
            return
        if self.abandoned:  # it is on its way to its next pause, where it ends
            time.sleep(min(seconds, _MOMENT))
            return
        try:
            self._until, self._adopt = time.perf_counter() + seconds, adopt
            self._go.release()
            if not self._back.acquire(timeout=min(seconds + _OVERTIME, 1e6)):
                self.abandoned = True
        except BaseException:  # of a handler of signals: nobody knows which of these were done
            self.abandon()
            raise

    def abandon(self) -> None:
        """Have it give up as soon as it can; not waited for."""
        self.abandoned = True
        with contextlib.suppress(RuntimeError):  # it has been told already
            self._go.release()

    # -- for the capture's thread

    def work(self, task: Callable[[], None]) -> None:
        """Run the task when somebody lends time for the first time."""
        token = _mine.set(self)
        try:
            self._wait()
            task()
        except Abandoned:
            pass
        finally:
            self.over = True
            _mine.reset(token)
            self._give_back()

    def pause(self) -> None:
        """Between two instructions. Raises Abandoned."""
        if self.abandoned:
            raise Abandoned
        if time.perf_counter() < self._until:
            return
        self.pauses += 1
        began = time.perf_counter()
        self._give_back()
        self._wait()
        self.paused_for += time.perf_counter() - began

    def _give_back(self) -> None:
        with contextlib.suppress(RuntimeError):  # a lender was interrupted before it took it
            self._back.release()

    def _wait(self) -> None:
        if not self._go.acquire(timeout=_PATIENCE) or self.abandoned:
            raise Abandoned
        self._adopt()
        if self._shared != global_state.shared() or not self._unchanged():
            raise Abandoned


def going_on() -> Instalments | None:
    """The instalments in which this thread captures, if it does."""
    return _mine.get()


def pause() -> None:
    """Let the program go on, unless a call has lent time for more. Raises Abandoned."""
    mine = _mine.get()
    if mine is not None:
        mine.pause()


def paused() -> bool:
    """Has the program gone on since the capture began?"""
    mine = _mine.get()
    return mine is not None and mine.pauses > 0


def apart(why: str) -> None:
    """The capture is about to look at something that another thread sees otherwise. Raises
    OnlyInCall."""
    if _mine.get() is not None:
        raise OnlyInCall(why)


def clock() -> float:
    """Seconds, without those in which the capture of this thread was paused."""
    mine = _mine.get()
    return time.perf_counter() - (0.0 if mine is None else mine.paused_for)


def like_caller(state: Any, threads: int) -> bool:
    """Is torch in this thread set to what it is in the one that calls? ``state``: its
    ``native.GlobalState``."""
    return bool(state.check()) and torch.get_num_threads() == threads and sys.exception() is None
