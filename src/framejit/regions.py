"""Stretches of a thread's run in which framejit behaves differently: the context managers.

In: `with` blocks and decorated calls. Out: the native switches of this thread, set at the start and
put back at the end: which frames are looked at, whether anything new is compiled, whether anything
compiled is used at all. Next room: api.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from framejit import directives
from framejit.native import HookContext, set_context, set_dispatch_enabled, set_run_only

#: Puts back what a region changed.
Restore = Callable[[], object]


class Region:
    """A context manager that may be entered again, also by several threads at once."""

    def __init__(self) -> None:
        self._threads = threading.local()

    def __enter__(self) -> Any:
        restores = self._threads.__dict__.setdefault("restores", [])
        restores.append(self.start())
        return self

    def __exit__(self, *error: object) -> None:
        self._threads.restores.pop()()

    def start(self) -> Restore:
        """Change this thread's switches; the result puts them back."""
        raise NotImplementedError


def watch_frames(context: HookContext | None) -> Restore:
    """Every frame that starts from now on in this thread is shown to ``context``."""
    return functools.partial(set_context, set_context(context))


def compile_nothing_new(strict: bool = False) -> Restore:
    """What is compiled is used; everything else runs as plain Python, or raises if ``strict``."""
    return functools.partial(set_run_only, set_run_only(2 if strict else 1))


def use_nothing_compiled() -> Restore:
    """Everything runs as plain Python, compiled objects too."""
    context = set_context(None)
    enabled = set_dispatch_enabled(False)

    def restore() -> None:
        set_dispatch_enabled(enabled)
        set_context(context)

    return restore


def disabled_function(function: Callable[..., Any]) -> Any:
    """``function`` such that it and everything it calls run as plain Python."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        context = set_context(None)
        enabled = set_dispatch_enabled(False)
        try:
            return function(*args, **kwargs)
        finally:
            set_dispatch_enabled(enabled)
            set_context(context)

    directives.mark(call, "disable")
    return call


def run_only_function(function: Callable[..., Any], strict: bool = False) -> Any:
    """``function`` such that nothing new is compiled while it runs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        restore = compile_nothing_new(strict)
        try:
            return function(*args, **kwargs)
        finally:
            restore()

    directives.mark(call, "skip")
    return call
