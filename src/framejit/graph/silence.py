"""Keeps from the user what torch logs and warns of while something is found out.

In: a block. Out: nothing of it is told, and what would have been told once is told when the program
does the same. Next: fakes.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import warnings
from collections.abc import Iterator
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
