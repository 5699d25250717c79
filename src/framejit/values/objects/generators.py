"""Generators made by the captured program: suspended symbolic frames.

In: the request that would start the generator's frame. Out: an iterator value whose ``next`` runs
that frame to its next ``yield`` (the interpreter supplies the running). A generator that has been
started cannot be built for real; if one is needed, its creation is not captured.
Next room: interpreter.
"""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.core.base import (
    Args,
    CallRequest,
    Declared,
    Kwargs,
    Raised,
    Unmaterialisable,
    Value,
    type_name,
)
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import count_error
from framejit.values.core.registry import Result
from framejit.values.core.space import Space


class GeneratorValue(Declared):
    """``frame`` is the interpreter's frame once started; ``finished`` when it has returned."""

    request: CallRequest
    step: int
    frame: Any = None
    started: bool = False
    finished: bool = False
    #: It was closed because nothing seemed to hold it any more.
    dropped: bool = False
    returned: Value | None = None
    kind = types.GeneratorType

    def iter(self, space: Space) -> Value:
        return self

    def next(self, space: Space) -> Value | None:
        return self.resume(space, ConstantValue(None), None)

    def resume(self, space: Space, sent: Value, thrown: Value | None) -> Value | None:
        """Run to the next yield: the yielded value, or None when the generator returned."""
        if self.dropped:
            raise Unmaterialisable(self.step, "when a generator is dropped is not known")
        if self.finished:
            self.returned = None  # only the request that ends it gets what it returned
            if thrown is not None:
                raise Raised(thrown)
            return None
        if not self.started and thrown is not None:
            self.finished = True
            raise Raised(thrown)
        self.started = True
        running = self.frame is not None and self.frame.parent is not None
        try:
            value = space.running.resume_generator(self, sent, thrown)
        except Raised as error:
            if running:  # by itself; it goes on
                raise
            self.finished = True
            if error.is_a(StopIteration):
                self._stopped(space, error.value)
            raise
        if value is None:
            self.finished = True
        return value

    def _stopped(self, space: Space, stop: Value) -> None:
        """StopIteration must not leave a generator."""
        text = ConstantValue("generator raised StopIteration")
        error = space.new_exception(RuntimeError, [text])
        error.attributes["__cause__"] = error.attributes["__context__"] = stop
        error.attributes["__suppress_context__"] = ConstantValue(True)
        raise Raised(error)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        low, high = _PARAMETERS.get(name, (0, 0))
        if name in _PARAMETERS and (kwargs or not low <= len(args) <= high):
            count_error(space, lambda: getattr(_nothing(), name), args, kwargs)
        if name == "__iter__":
            return self
        if name == "close":
            return self._close(space)
        if name == "throw":
            thrown: Value | None = _exception(space, args)
        elif name in ("send", "__next__"):
            thrown = None
        else:
            raise GraphBreak("FJ0158", f"generator.{name}()")
        sent = args[0] if name == "send" else ConstantValue(None)
        if not self.started and not self.finished and thrown is None:
            if not sent.is_none():
                space.raise_error(
                    TypeError, "can't send non-None value to a just-started generator"
                )
        value = self.resume(space, sent, thrown)
        if value is None:
            returned = self.returned
            is_none = returned is None or returned.is_none()
            return space.raise_error(StopIteration, *([] if is_none else [returned]))
        return value

    def _close(self, space: Space) -> Value:
        if not self.started or self.finished:
            self.finished = True
            return ConstantValue(None)
        try:
            value = self.resume(space, ConstantValue(None), space.new_exception(GeneratorExit, []))
        except Raised as error:
            if error.is_a(GeneratorExit, StopIteration):
                return ConstantValue(None)
            raise
        if value is not None:
            space.raise_error(RuntimeError, "generator ignored GeneratorExit")
        return self.returned or ConstantValue(None) if _CLOSING_RETURNS else ConstantValue(None)

    def drop(self, space: Space) -> None:
        """Close it because its last reference is gone."""
        try:
            self._close(space)
        except Raised as error:
            kind = error.value.python_type().__name__
            raise GraphBreak("FJ0158", f"{kind} is raised in a generator that is dropped")
        self.dropped = True


#: How many arguments the methods take.
_PARAMETERS = {
    "__iter__": (0, 0), "__next__": (0, 0), "close": (0, 0), "send": (1, 1), "throw": (1, 3),
}  # fmt: skip


def _nothing() -> Generator[None, None, None]:
    yield


def _closed() -> Generator[None, None, bool]:
    try:
        yield
    except GeneratorExit:
        return True
    return False


def _closing_returns() -> bool:
    """Does ``close()`` return what the generator returns? It does from CPython 3.13 on."""
    generator = _closed()
    next(generator)
    returned: Any = generator.close()  # type: ignore[func-returns-value]
    return returned is True


_CLOSING_RETURNS = _closing_returns()


def _exception(space: Space, args: list[Value]) -> Value:
    """The exception of ``throw(exception)`` or ``throw(class, value, traceback)``."""
    none = ConstantValue(None)
    value, given, trace = [*(arg.realize() for arg in args), none, none][:3]
    if not trace.is_none() and (given is none or trace.exception is not given):
        raise GraphBreak("FJ0158", "generator.throw() with another traceback")
    kind = given.python_type()
    cls = getattr(value, "cls", object)
    if issubclass(value.python_type(), type) and issubclass(cls, BaseException):
        if issubclass(kind, cls):
            return given
        parts = space.items(given) if issubclass(kind, tuple) else [given]
        made = space.call_now(value, [] if given.is_none() else parts)
        if not issubclass(made.python_type(), BaseException):
            raise GraphBreak("FJ0158", "generator.throw() of a class that makes no exception")
        return made
    if not issubclass(value.python_type(), BaseException):
        named = type_name(value.python_type())
        text = "exceptions must be classes or instances deriving from BaseException"
        space.raise_error(TypeError, f"{text}, not {named}")
    if not given.is_none():
        space.raise_error(TypeError, "instance exception may not have a separate value")
    return value
