"""The garbage collector while something is captured or loaded, and what imports leave to it.

In: nothing. Out: context managers around a capture. Next: capture.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import torch

#: Fewer objects are looked at as always; more may grow old unseen, until there are so many.
_FEW_OBJECTS, _MOST_UNSEEN = 10_000, 700_000
#: The same for a part of a capture.
_FEW_OF_PART = 700
#: The collector's thresholds while a compiler works, at least.
_WHILE_COMPILING = (10_000, 10, 10)
_unseen_objects = _full_collections = 0
#: How many full collections there had been when frozen objects were last counted, and were there.
_frozen_at = -1


@contextlib.contextmanager
def no_collection(part: bool = False) -> Iterator[None]:
    """A capture, or a package that is loaded, makes many objects that live on; collecting among
    them (and among all of torch's) would take longer than the work itself. ``part``: of a capture;
    whoever waits for it does not wait for a collection either."""
    if not _is_on():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _grow_old(_FEW_OF_PART if part else _FEW_OBJECTS)
        gc.enable()


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """A compiler makes many objects and garbage in cycles, too, so the collector goes on; but it
    looks less often, and not at what was there before, all of torch and the models."""
    if not _is_on() or _are_some_frozen():
        yield
        return
    global _frozen_at
    before = gc.get_threshold()
    gc.freeze()
    _frozen_at = gc.get_stats()[2]["collections"]  # no need to count these
    gc.set_threshold(*map(max, before, _WHILE_COMPILING))
    meanwhile = gc.get_threshold()  # CPython 3.14.0 has no third one
    try:
        yield
    finally:
        if gc.get_threshold() == meanwhile:
            gc.set_threshold(*before)
        gc.unfreeze()
        _frozen_at = -1


class ImportsGrowOld(importlib.abc.MetaPathFinder):
    """In a block, what the modules that this thread imports are made of grows old at once: other
    threads would wait for a collection of all of it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(ValueError):  # somebody else has taken it out
            sys.meta_path.remove(self)

    def find_spec(self, *module: Any) -> None:
        """Asked before each module; others find it."""
        if threading.get_ident() == self._thread and _is_on():
            _grow_old(0)


def _is_on() -> bool:
    """A first threshold of zero switches the collector off as well."""
    return gc.isenabled() and gc.get_threshold()[0] > 0


def _grow_old(few: int) -> None:
    """Let the collector take all objects for old ones, which costs nothing: it would walk what has
    just been made, and find that all of it is in use."""
    global _unseen_objects, _full_collections
    if gc.get_count()[0] < few or _are_some_frozen():
        return
    before, _full_collections = _full_collections, gc.get_stats()[2]["collections"]
    if _full_collections != before:  # it has seen the earlier ones
        _unseen_objects = 0
    _unseen_objects += gc.get_count()[0]
    gc.freeze()
    gc.unfreeze()
    if _unseen_objects > _MOST_UNSEEN and few == _FEW_OBJECTS:
        gc.collect()


def _are_some_frozen() -> bool:
    """Has the program frozen objects, which would come back? Counting them takes longer than much
    of a capture where all that a server has loaded is frozen: once after each full collection."""
    global _frozen_at
    full = gc.get_stats()[2]["collections"]
    if full != _frozen_at:
        if not gc.get_freeze_count():  # takes no time then
            return False
        _frozen_at = full
    return True


@contextlib.contextmanager
def imports_end() -> Iterator[None]:
    """What a capture is the first to import must not keep the caller's objects: ``torch.fx.wrap``
    leaves its frame in a cycle, and with it those of whoever was importing."""
    code = torch.fx.wrap.__code__
    frames = sys.getrefcount(code)
    try:
        yield
    finally:
        if sys.getrefcount(code) > frames:
            for frame in gc.get_referrers(code):
                if isinstance(frame, types.FrameType):
                    with contextlib.suppress(RuntimeError):  # another thread is in it
                        frame.clear()
