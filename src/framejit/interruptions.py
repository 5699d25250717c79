"""Errors of signal handlers, which arrive in the middle of anything: they are the program's.

A capture asks much that may fail and goes on without it. While it runs, an error that a handler of
signals raises travels as what no ``except Exception`` takes, torch's and sympy's included.

In: what a call is captured with, or an error. Out: the handler's own error, or whether it is one.
Next room: the driver (misses, compiler).
"""

from __future__ import annotations

import _signal  # signal.getsignal makes enumerations, 64 of them per capture
import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from framejit import native

T = TypeVar("T")


class Interrupted(BaseException):
    """A handler of signals has raised ``error`` during a capture."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Handler:
    """A handler of the program while something is captured; as the program's own at other times."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        try:
            return self.handler(number, frame)
        except Exception as error:
            error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
            if _carrying:
                raise Interrupted(error) from None
            raise


#: Does the main thread capture? No other runs handlers.
_carrying = False


def carried(function: Callable[[], T]) -> T:
    """``function()``. What handlers of signals raise meanwhile comes out as it was raised.

    A handler may raise between any two steps of this, too: ``_carrying`` is off before anything
    is called that may be left half done.
    """
    global _carrying
    if _carrying or threading.current_thread() is not threading.main_thread():
        return function()
    replaced = [number for number in range(1, signal.NSIG) if _may_be_taken(number)]
    for number in replaced:
        native.exchange_handler(number, _Handler(_signal.getsignal(number)))
    _carrying = True
    try:
        return function()
    except Interrupted as interrupted:
        error = interrupted.error
    finally:
        _carrying = False
        for number in replaced:  # unless a handler has put another in place
            if isinstance(instead := _signal.getsignal(number), _Handler):
                native.exchange_handler(number, instead.handler)
    raise error


def _may_be_taken(number: int) -> bool:
    """Has the program a handler whose errors may be caught? KeyboardInterrupt passes."""
    handler = _signal.getsignal(number)
    return callable(handler) and handler is not signal.default_int_handler


def interrupts(error: BaseException) -> bool:
    """Does a handler of signals, or a function that traces, raise it? It has nothing to do with
    what the program was doing then, which does not raise it again."""
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {_code_of(handler) for handler in (*handlers, sys.gettrace(), sys.getprofile())}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial | _Handler):
        handler = handler.handler if isinstance(handler, _Handler) else handler.func
    if not hasattr(handler, "__code__"):  # an object that can be called
        handler = vars(type(handler)).get("__call__")
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, CodeType) else None
