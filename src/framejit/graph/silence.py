"""Keeps from the user what torch logs and warns of while something is found out.

In: a block. Out: nothing of it is told, and what would have been told once is told when the program
does the same. Next: fakes.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch


class _OfThread:
    """What a filter of warnings matches names of modules with: all of them, in one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def match(self, module: str) -> bool:
        return threading.get_ident() == self.thread


@contextlib.contextmanager
def unwarned(message: str | None = None) -> Iterator[None]:
    """A block in which this thread warns of nothing, or of nothing that ``message`` matches.

    Not by `warnings.catch_warnings`: after it the program would be warned again of what it was
    warned of before, and meanwhile other threads would miss warnings.
    """
    pattern = None if message is None else re.compile(message)
    filters: Any = warnings.filters
    rule = ("ignore", pattern, Warning, _OfThread(), 0)
    filters.insert(0, rule)
    try:
        yield
    finally:
        filters.remove(rule)


class _Remembering(threading.local):
    """Blocks in which what this thread does to the filters of warnings makes Python forget nothing
    of what it has warned of: `warnings.catch_warnings`, which AOTAutograd enters, and the import of
    modules with filters of their own (sympy). The program would be warned once more."""

    blocks = 0


_remembering = _Remembering()


@functools.cache
def _watch_filters() -> None:
    """From now on Python forgets when the filters change outside such blocks."""
    name = "_filters_mutated_lock_held"  # what all others call from CPython 3.14 on
    if not hasattr(warnings, name):
        name = "_filters_mutated"
    forget: Callable[[], None] | None = getattr(warnings, name, None)
    if forget is None:
        return

    def forget_unless_remembering() -> None:
        if not _remembering.blocks:
            forget()

    setattr(warnings, name, forget_unless_remembering)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """A block of this thread after which the program is warned of nothing again. Filters that
    modules add when they are imported stay."""
    _watch_filters()
    _remembering.blocks += 1
    try:
        yield
    finally:
        _remembering.blocks -= 1


class _Quiet(threading.local):
    """A block in which this thread warns of nothing and torch logs no errors: what runs in it finds
    something out. The program may catch these errors, and is warned when the operation runs for it,
    also of what torch warns of once in a process."""

    blocks = 0

    def __enter__(self) -> None:
        if not self.blocks:
            self.always = torch.is_warn_always_enabled()
            torch.set_warn_always(True)
            self.unwarned = unwarned()
            self.unwarned.__enter__()
        self.blocks += 1

    def __exit__(self, *_: object) -> None:
        self.blocks -= 1
        if not self.blocks:
            self.unwarned.__exit__(None, None, None)
            torch.set_warn_always(self.always)

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.blocks


quiet = _Quiet()
logging.getLogger("torch._subclasses.fake_tensor").addFilter(quiet.filter)
