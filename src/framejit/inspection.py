"""What users may know about compiled objects: their guards, and what happened in a call.

In: what `compile` returned, or something to compile and call. Out: plain data with a readable text.
Next room: api.
"""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from framejit.callables import CompiledFrame, compile_callable, compiled_function_of
from framejit.guards.plan import Guard
from framejit.native import set_dispatch_enabled
from framejit.report import events
from framejit.report.explanation import Explanation
from framejit.settings import Backend, Settings


class EntryGuards(NamedTuple):
    """The guards of one entry: what has to hold for its code to be used."""

    frame: str  # the function's qualified name; continuations end in __resume_at_<offset>
    place: str  # file.py:12
    number: int  # of the entry within its frame, from 0
    hits: int  # how often its code was run
    guards: list[Guard]

    def __str__(self) -> str:
        head = f"{self.frame} ({self.place}), entry {self.number}, used {self.hits} times"
        return "\n".join([f"{head}, {len(self.guards)} guards", *(f"  {g}" for g in self.guards)])


class GuardList(list[EntryGuards]):
    """One element per entry, functions before their continuations; prints all guards."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "nothing is compiled yet"

    __repr__ = __str__


def guards(compiled: Any) -> GuardList:
    """The guards of everything compiled for ``compiled``, with the user's line after each.

    ``compiled``: what `framejit.compile` returned, or a function decorated with ``optimize``.
    ``print(framejit.guards(f))`` shows one guard a line: ``local 'x' TENSOR_MATCH Tensor float32[4]
    on cpu  # model.py:12: y = x + 1``. Raises TypeError for anything else.
    """
    frame = compiled_function_of(compiled)
    if frame is None:
        raise TypeError(
            "guards() needs what framejit.compile returned, not "
            f"{'a module' if isinstance(compiled, torch.nn.Module) else repr(compiled)} [FJ0214]"
        )
    found = GuardList()
    for one in frame.compiler.frames():
        target = one.target
        place = f"{target.code.co_filename.rpartition('/')[2]}:{target.line}"
        for number, entry in enumerate(one.entries):
            plan = one.plans.get(id(entry))
            lines = [] if plan is None else plan.guards()
            found.append(EntryGuards(target.name, place, number, entry.hits, lines))
    return found


class Explainer:
    """What `explain` returns: call it as the function itself; the result says what happened.

    ``compiled`` is the compiled function, so further calls use what earlier ones compiled: that is
    in the result, too, with ``reused`` set.
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Explanation:
        explanation, before = Explanation(), _memory()
        frame = compiled_function_of(self.compiled)
        frames = [] if frame is None else frame.compiler.frames()
        hits = [(one, entry, entry.hits) for one in frames for entry in one.entries]
        with following(explanation, everywhere=False), _asked(frames):
            explanation.result = self.compiled(*args, **kwargs)
        for one, entry, known in hits:
            origin = one.origins.get(id(entry))
            if entry.hits > known and origin is not None:
                explanation.add(one.described(entry), reused=True)
                if origin.broke is not None:
                    explanation.add(origin.broke)
        if frame is not None and not (explanation.entries or explanation.skips):
            explanation.add(_why_nothing(frame))
        explanation.memory = max(_memory() - before, 0)
        return explanation


@contextlib.contextmanager
def _asked(frames: list[CompiledFrame]) -> Iterator[None]:
    """In this block frames say why they capture nothing more."""
    silent = [frame for frame in frames if not frame.ask_always]
    for frame in silent:
        frame.ask_always = True
    try:
        yield
    finally:
        for frame in silent:
            frame.ask_always = False


def _why_nothing(frame: CompiledFrame) -> events.Event:
    """A call of ``frame`` has told nothing at all."""
    enabled = set_dispatch_enabled(True)
    set_dispatch_enabled(enabled)
    reason = "the call ended before its frame began"
    if not enabled:
        reason = "nothing compiled is used inside framejit.disable()"
    return events.CallSkipped(**frame.target.shown, reason=reason, identifier="FJ0306")


@contextlib.contextmanager
def following(explanation: Explanation, everywhere: bool = True) -> Iterator[None]:
    """Everything that happens in this block, in all threads or in this one, goes into
    ``explanation``, captured lines included."""
    thread = threading.get_ident()

    def note(event: events.Event) -> None:
        if everywhere or threading.get_ident() == thread:
            explanation.add(event)

    unsubscribe = events.subscribe(note)
    try:
        with events.following():
            yield
    finally:
        unsubscribe()


def explain(
    model: Any,
    *,
    backend: str | Backend = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Explainer:
    """Say what becomes of a call, in its own thread: ``print(framejit.explain(f)(x))``.

    The result of the call is an `Explanation`: graphs, breaks with reason, line and remedy, guards,
    recompiles, times, and why there is no graph where there is none; it prints well in terminals
    and notebooks, and ``to_html(path)`` writes a page. ``model`` is a function or module, which is
    compiled with ``backend`` and the other settings as by `compile`, or something compiled already,
    which is called as it is: graphs that an earlier call has compiled, and this one uses, are in
    the result, with ``reused`` set. Errors of the call pass through.
    """
    settings = Settings(
        backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options
    )
    if isinstance(model, Explainer):
        return model
    return Explainer(model if compiled_function_of(model) else compile_callable(model, settings))


def report() -> Explanation:
    """Everything that framejit did in this process so far, as far as it is remembered.

    `reset` forgets it. Lines without a tensor operation are marked as captured only if
    ``framejit run --report`` or `explain` was there when they were captured.
    """
    return Explanation(events.history(events.Event))


def _memory() -> int:
    """Bytes: the most that this process, and its GPU, ever used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak + (torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0)
