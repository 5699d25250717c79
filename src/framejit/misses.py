"""A call that fits no entry: what it runs, and who says why nothing is compiled for it.

In: a compiled frame and the slots of a call, from the native dispatch. Out: an entry, None for
plain Python, or an error. Next room: compiler.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from framejit import config, native
from framejit.backends.exclusive import exclusive, exclusive_if_free, works_for_holder
from framejit.exc import FramejitError, InternalError, NothingFits
from framejit.graph.silence import remembering
from framejit.interruptions import carried
from framejit.report import events
from framejit.values.core import inline_policy

if TYPE_CHECKING:  # a release without tables has no captures
    from framejit.capture.target import Target


class Later(Protocol):
    """What does in the background what a call would have to wait for."""

    def entry_for(self, compiled: Any, slots: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """A new entry for a call, from ``make``, if that is not put off; else None."""

    def rest(self, compiled: Any) -> None:
        """A call runs as plain Python for now, and so does what it calls."""

    def postpone(self, target: Target, module: torch.fx.GraphModule, examples: list[Any]) -> bool:
        """May the graph run as it is until it is compiled?"""

    def added(self, compiled: Any, entry: Any) -> None:
        """There is a new entry, perhaps with such a graph."""

    def load(self) -> None:
        """Import what takes long, of which a capture was in need."""

    def is_loading(self) -> bool:
        """Is that still going on?"""

    def is_done(self, compiler: Any) -> bool:
        """Is nothing left to do for it?"""


class Turns(Protocol):
    """How processes that share a package compile what it lacks: one after the other."""

    def begin(self, wait: bool) -> bool:
        """Is it this process's turn? What others have compiled is there then. False if another
        process has it and this one is not to ``wait``."""

    def leave(self, used: bool) -> None:
        """What the call needed is there. ``used``: it was compiled."""


_DISABLED = "framejit.config.disable is on"


def _nothing_fits(compiled: Any, slots: tuple[Any, ...]) -> NothingFits:
    """The error for a call under ``run(strict=True)``."""
    reasons = [failure.sentence for failure in compiled.failures(slots)]
    library = compiled.compiler.library
    if library is not None:
        reasons += library.explain(compiled, slots)
    listed = "".join(f"\n  {reason}" for reason in reasons) or "\n  it has none"
    return NothingFits(
        f"no compiled entry of {compiled.target.name} fits this call, and nothing new may be "
        f"compiled here:{listed}"
    )


def _why_nothing_new(compiled: Any, slots: tuple[Any, ...]) -> tuple[str, str]:
    """Identifier and reason: nothing more is captured of this frame, or anywhere."""
    if isinstance(compiled.skipped, events.RecompileLimit):
        best = [failure.sentence for failure in compiled.failures(slots)][-1:]
        return "FJ0305", compiled.skipped.sentence(*best)
    if compiled.skipped is not None:
        return compiled.skipped.identifier, compiled.skipped.reason
    return "FJ0306", "nothing new is compiled inside framejit.run(), and nothing compiled fits"


def _waiting_entry(compiled: Any, slots: tuple[Any, ...]) -> Any:
    """What another process has compiled for the call, if this one has it."""
    library = compiled.compiler.library
    return None if library is None else library.entry_for(compiled, slots)


def _compiled_in_turn(compiled: Any, slots: tuple[Any, ...]) -> Any:
    """A new entry, unless another process has made it meanwhile, or is about to."""
    compiler = compiled.compiler
    turns: Turns | None = compiler.turns
    if turns is None:
        return compiler.compile_entry(compiled, slots)
    if not turns.begin(wait=compiler.captures_later is None):
        compiled.left("FJ0306", "another process compiles what the package lacks")
        return None
    used = False
    try:
        entry = _waiting_entry(compiled, slots)
        if entry is None:
            used = True
            entry = compiler.compile_entry(compiled, slots)
        return entry
    finally:
        turns.leave(used)


@contextlib.contextmanager
def _alone(later: Later | None) -> Iterator[bool]:
    """While no other thread captures or compiles; False where a call would have to wait for one and
    is not to."""
    if later is None:
        with exclusive():
            yield True
    else:
        with exclusive_if_free() as free:
            yield free


def miss(compiled: Any, slots: tuple[Any, ...]) -> Any:
    """Called by the native dispatch, once per call that fits no entry."""
    if config.disable:
        compiled.left("FJ0306", _DISABLED)
        return None
    # Called from inside torch.compile: its frame hook must not see the capture's own frames.
    other_hook = set_eval_frame(None)
    later: Later | None = None if works_for_holder() else compiled.compiler.captures_later
    try:
        with remembering(), _alone(later) as alone, config.advised():
            if not alone and later is not None:
                compiled.left("FJ0306", "another thread captures or compiles")
                later.rest(compiled)
                return None
            if config.disable:
                compiled.left("FJ0306", _DISABLED)
                return None
            function = compiled.function
            if function is not None and not compiled.target.is_start_of(function):
                compiled.recode(function)
                if compiled.run_only:
                    return None
            if function is not None and inline_policy.has_other_builtins(function):
                compiled.left("FJ0306", "its builtins are not those of its globals")
                return None
            for entry in compiled.entries:  # another thread may have been faster
                if entry.tree.check(slots) is not None:
                    return entry
            if (entry := _waiting_entry(compiled, slots)) is not None:
                return entry
            if config.eager_first and not (compiled.met or compiled.entries):
                compiled.meet(slots)
                return None
            if compiled.run_only or native.is_run_only():
                full = isinstance(compiled.skipped, events.RecompileLimit)
                if native.is_run_only() == 2 and (full or compiled.skipped is None):
                    raise _nothing_fits(compiled, slots)
                compiled.left(*_why_nothing_new(compiled, slots))
                return None  # asked for the library, or by `explain`
            make = functools.partial(_compiled_in_turn, compiled, slots)
            return carried(
                make if later is None else lambda: later.entry_for(compiled, slots, make)
            )
    except RecursionError:  # the stack is nearly full: the user's code may still fit
        return None
    except BaseException as error:
        if isinstance(error, FramejitError) and not (
            config.verbose or isinstance(error, InternalError)
        ):
            error.with_traceback(None)  # raised by our caller: users see their own frames
        return compiled.compiler.raising(compiled.target, error) or error
    finally:
        set_eval_frame(other_hook)
