"""Captures that no call waits for: calls lend them time, a little each, and run as plain Python.

In: a call that nothing fits. Out: its entry, once enough time was lent; at once if little is
needed. A capture has a thread of its own, which works only while a call that lends it time waits,
or somebody waits for the capture. What depends on the calling thread, or raises, is captured in a
call after all. Next: deferred.
"""

from __future__ import annotations

import atexit
import contextvars
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from framejit import config, native
from framejit.backends.compile import is_watched
from framejit.backends.exclusive import exclusive, working_for_holder
from framejit.backends.saved_hooks import active_hooks
from framejit.collection import no_collection
from framejit.compiled_frame import CompiledFrame
from framejit.graph import global_state, instalments
from framejit.graph.instalments import Instalments, OnlyInCall
from framejit.strictness import is_strict, strictness
from framejit.values.core.ends import search_what_is_seen

#: Seconds that calls lend at most without a pause, and the share of all time that they lend.
_MOST_LENT, _SHARE_LENT = 0.015, 0.25
#: Less is not worth the change of threads.
_LEAST_LENT = 0.002
#: Each holds the objects of a call.
_MOST_CAPTURES = 16
#: How often a capture of a frame may come to nothing, as the program changes what it looks at.
_TRIES = 3
#: What the program goes on with while a capture is paused, or what says who runs.
_MOVING = (
    BaseException, types.TracebackType, types.FrameType, types.GeneratorType, types.CoroutineType,
    types.AsyncGeneratorType,
)  # fmt: skip


class _Capture:
    """One capture, and the thread that it is made in. ``make`` adds the entry."""

    def __init__(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], make: Callable[[], Any]
    ) -> None:
        self.compiled, self.slots = compiled, slots
        self._make: Callable[[], Any] = make
        self._state, self._threads = native.GlobalState(), torch.get_num_threads()
        self._settings, self._devices = global_state.current(), global_state.default_devices()
        self._options = _options()
        #: Has `_make` come to an end? Else the capture was given up.
        self.is_made = False
        self.entry: Any = None
        #: Why it must be made in a call.
        self.problem: BaseException | None = None
        self.time = Instalments(self._unchanged)
        self.thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self.time.work, self._work),
            name="framejit capture", daemon=True,
        )  # fmt: skip
        self.thread.start()

    def _unchanged(self) -> bool:
        """Is everything as it was that no guard says?"""
        return _options() == self._options and global_state.what_is_replaced() is None

    def _work(self) -> None:
        sys.settrace(None)  # those of debuggers and profilers for all threads
        sys.setprofile(None)
        try:
            with self._settings.applied():
                global_state.set_default_devices(self._devices)
                if not instalments.like_caller(self._state, self._threads):
                    raise OnlyInCall("torch's state in the thread that calls")
                self.entry = self._make()
            self.is_made = True
        except (OnlyInCall, Exception) as error:
            self.problem = error.with_traceback(None)

    def let_go(self) -> None:
        """It is over: hold nothing of the call any more."""
        self.slots, self._make = (), lambda: None


class Captures:
    """Those of this process, in the order in which they began. Used by one thread at a time, inside
    `exclusive`."""

    def __init__(self) -> None:
        self._going: list[_Capture] = []
        self._left, self._since = _MOST_LENT, time.perf_counter()
        #: Frames of which nothing is compiled now, and so nothing that they call.
        self._resting: list[weakref.ref[CompiledFrame]] = []
        #: Frame -> how often it was forgotten, and how often a capture came to nothing since.
        self._tries: weakref.WeakKeyDictionary[CompiledFrame, tuple[int, int]] = (
            weakref.WeakKeyDictionary()
        )

    # -- calls

    def entry_for(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], make: Callable[[], Any]
    ) -> Any:
        """The entry for a call; None: it runs as plain Python."""
        compiled.context = compiled.compiler.hook_context
        self._clear()
        while True:
            capture = self._of(compiled)
            if capture is None:
                if self._tried(compiled) >= _TRIES or _must_be_in_call(compiled, slots):
                    return make()
                if not self._may_begin(compiled):
                    break
                try:
                    capture = _Capture(compiled, slots, make)
                except RuntimeError:  # no thread can be started
                    return make()
                self._going.append(capture)
            own = capture.slots is slots
            self._lend()
            if capture in self._going:
                break
            if self._tried(compiled) >= _TRIES:
                return make()
            for entry in compiled.entries:
                if entry.tree.check(slots) is not None:
                    return entry
            if own:
                return None
        compiled.left("FJ0306", "it is being captured, bit by bit")
        self.rest(compiled)
        return None

    def _may_begin(self, compiled: CompiledFrame) -> bool:
        """Frames that were met by a frame hook wait until what calls them has been captured, and
        continuations until their captures can begin at once: these ask who holds their objects."""
        others = [one.compiled.compiler for one in self._going]
        if compiled.target.point is not None and (others or self._lendable() < _LEAST_LENT):
            return False
        hooked = compiled.hooked and compiled.compiler in others
        return len(others) < _MOST_CAPTURES and not hooked

    def _of(self, compiled: CompiledFrame) -> _Capture | None:
        found = [one for one in self._going if one.compiled is compiled]
        return found[0] if found else None

    def _tried(self, compiled: CompiledFrame) -> int:
        emptied, count = self._tries.get(compiled, (0, 0))
        return count if emptied == compiled.emptied else 0

    def rest(self, compiled: CompiledFrame) -> None:
        """The frame hook leaves alone what it calls."""
        compiled.context = None
        self._resting.append(weakref.ref(compiled))

    def wake(self) -> None:
        """What rests is looked at again."""
        resting, self._resting = self._resting, []
        for reference in resting:
            compiled = reference()
            if compiled is not None:
                compiled.context = compiled.compiler.hook_context

    # -- time

    def _lend(self) -> None:
        """Lend what this call may lend."""
        if self._lendable() < _LEAST_LENT:
            return
        begun = self._since
        try:
            self._work_until(begun + self._left, [*self._going])
        finally:
            self._since = time.perf_counter()
            self._left -= self._since - begun

    def _lendable(self) -> float:
        """How many seconds calls may lend now."""
        now = time.perf_counter()
        gained = (now - self._since) * _SHARE_LENT
        self._left, self._since = min(self._left + gained, _MOST_LENT), now
        return self._left

    def _work_until(self, until: float, captures: list[_Capture]) -> None:
        for capture in captures:
            left = until - time.perf_counter()
            if left <= 0:
                return
            with no_collection(part=True):
                capture.time.lend(left, working_for_holder())
            self._clear()

    def _clear(self) -> None:
        """Forget the captures that are over."""
        for capture in [one for one in self._going if one.time.over]:
            self._going.remove(capture)
            self._settle(capture)
            capture.let_go()
            self.wake()

    def _settle(self, capture: _Capture) -> None:
        compiled = capture.compiled
        tried = self._tried(compiled)
        if capture.problem is not None or not _fits_here(capture):
            tried = _TRIES
        elif not capture.is_made:
            tried += 1
        else:
            return
        self._tries[compiled] = compiled.emptied, tried

    # -- those who wait

    def is_done(self, owner: object = None) -> bool:
        """Is none going on, for a compiler if given?"""
        return not any(owner in (None, one.compiled.compiler) for one in self._going)

    def finish(self, owner: object = None, until: float | None = None) -> bool:
        """Make all of them now, or those for a compiler; False where the time was up before."""
        while not self.is_done(owner):
            left = float("inf") if until is None else until - time.monotonic()
            if left <= 0:
                return False
            with exclusive():
                wanted = [one for one in self._going if owner in (None, one.compiled.compiler)]
                with config.advised():  # as in the calls that have begun them
                    self._work_until(time.perf_counter() + left, wanted)
        return True

    def end(self) -> None:
        """The process ends."""
        for capture in self._going:
            capture.time.abandon()
        for capture in self._going:
            capture.thread.join(1.0)


def _options() -> dict[str, Any]:
    """The options that captures look at."""
    return {name: value for name, value in config.options().items() if name != "eager_first"}


def _must_be_in_call(compiled: CompiledFrame, slots: tuple[Any, ...]) -> bool:
    """Is the call one that another thread could not capture, or whose objects must not be held?"""
    moving = compiled.target.point is not None and any(map(_is_moving, slots))
    return bool(
        moving
        or sys.exception() is not None
        or is_strict(strictness.get())
        or is_watched()
        or active_hooks() is not None
        or torch.autograd._profiler_enabled()
        or global_state.runs_foreign_code()
        or global_state.dispatch_modes()
        or any(search_what_is_seen(slot, ()) is not False for slot in slots)
    )


def _is_moving(slot: Any) -> bool:
    cls = type(slot)
    return issubclass(cls, _MOVING) or hasattr(cls, "__next__")


def _fits_here(capture: _Capture) -> bool:
    """Does the new entry fit its call in a thread of the program, too? If not it is taken out."""
    entry, compiled = capture.entry, capture.compiled
    if entry is None or entry.tree.state is None or not entry.tree.state.check():
        return True
    if entry.tree.check(capture.slots) is not None:
        return True
    entries = [one for one in compiled.entries if one is not entry]
    compiled.clear_entries()
    for one in entries:
        compiled.add_entry(one)
    compiled.plans.pop(id(entry), None)
    compiled.origins.pop(id(entry), None)
    return False


_captures = Captures()


def captures() -> Captures:
    """Those of this process."""
    return _captures


def _after_fork() -> None:
    """A child has none of the threads."""
    global _captures
    before, _captures = _captures, Captures()
    before.wake()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _captures.end())
