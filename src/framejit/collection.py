"""The garbage collector while something is captured or loaded, and what imports leave to it.

In: nothing. Out: context managers around a capture. Next: capture.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import types
from collections.abc import Iterator

import torch

#: Fewer objects are looked at as always; more may grow old unseen, until there are so many.
_FEW_OBJECTS, _MOST_UNSEEN = 10_000, 700_000
_unseen_objects = _full_collections = 0


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """A capture, or a package that is loaded, makes many objects that live on; collecting among
    them (and among all of torch's) would take longer than the work itself."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _grow_old()
        gc.enable()


def _grow_old() -> None:
    """Let the collector take all objects for old ones, which costs nothing: it would walk what has
    just been made, and find that all of it is in use."""
    global _unseen_objects, _full_collections
    young = gc.get_count()[0]
    if young < _FEW_OBJECTS or gc.get_freeze_count():  # frozen ones would come back
        return
    before, _full_collections = _full_collections, gc.get_stats()[2]["collections"]
    if _full_collections != before:  # it has seen the earlier ones
        _unseen_objects = 0
    _unseen_objects += young
    gc.freeze()
    gc.unfreeze()
    if _unseen_objects > _MOST_UNSEEN:
        gc.collect()


@contextlib.contextmanager
def imports_end() -> Iterator[None]:
    """What a capture is the first to import must not keep the caller's objects: ``torch.fx.wrap``
    leaves its frame in a cycle, and with it those of whoever was importing."""
    modules = len(sys.modules)
    try:
        yield
    finally:
        if len(sys.modules) != modules:
            for frame in gc.get_referrers(torch.fx.wrap.__code__):
                if isinstance(frame, types.FrameType):
                    with contextlib.suppress(RuntimeError):  # another thread is in it
                        frame.clear()
