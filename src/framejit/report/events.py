"""The one event stream (D12): what happened while programs were captured and compiled.

In: `emit` of small records. Out: every subscriber sees each record in order; the last ones stay in
`history`. Explanations, logs, counters and tests read this stream; there is no second bookkeeping.
Next: counters.
"""

from __future__ import annotations

import collections
import contextlib
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from framejit.exc import warn
from framejit.forks import Lock


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class Event:
    """Base of all events. ``name`` is the frame's qualified name; ``filename`` and ``line`` are the
    user's; ``time`` is `time.perf_counter` in seconds."""

    name: str = ""
    filename: str = ""
    line: int = 0
    time: float = field(default_factory=time.perf_counter)

    @property
    def place(self) -> str:
        """``file.py:12``, or the frame's name when the place is not known."""
        if not self.filename:
            return self.name
        return f"{self.filename.rpartition('/')[2]}:{self.line}"


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class CaptureStart(Event):
    """A frame is about to be executed symbolically."""


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class CaptureEnd(Event):
    """Capturing a frame is over. ``outcome``: "compiled" or "failed"."""

    outcome: str
    seconds: float = 0.0
    steps: int = 0  # instructions executed symbolically
    backend_seconds: float = 0.0  # the backend's part of ``seconds``
    repeated: tuple[tuple[str, int], ...] = ()  # of which class how many calls were not executed


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class BackendStart(Event):
    """A graph is handed to the backend."""

    backend: str
    operations: int


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class GraphCompiled(Event):
    """The backend returned a compiled graph."""

    backend: str
    operations: int
    inputs: int
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class GraphPostponed(Event):
    """A graph runs as it is until it is compiled in the background."""

    backend: str
    operations: int


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class GraphReused(Event):
    """What the backend returned for a graph that is alike serves for this one."""

    backend: str
    operations: int


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class GraphBreak(Event):
    """An instruction could not be captured; a continuation goes on after it."""

    reason: str
    identifier: str = ""  # of the kind of break, see `problems`
    hint: str = ""
    code: str = ""  # the user's source line


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class StepAround(Event):
    """What torch does before or after a module that it distributes is left to Python, where that
    splits no graph: nothing was captured before it, or the module is all that is compiled."""

    reason: str
    identifier: str = ""


#: How a capture ends before its frame does.
Ended = GraphBreak | StepAround


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class Raises(Event):
    """The graph ends before an instruction that raises the program's own exception."""

    reason: str
    identifier: str = ""


class EntryDetail(NamedTuple):
    """What an entry consists of. Belongs to the entry and dies with it."""

    bytecode: types.CodeType  # of the original function
    graph: Any  # fx.GraphModule or None
    code: str  # the generated function
    guards: list[Any]  # guards.plan.Guard
    lines: dict[str, set[int]]  # per file: the user's lines that were captured, see `following`
    functions: list[tuple[str, int, str]]  # (file, first line, name) of all that was captured


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class EntryAdded(Event):
    """What was captured is in use. ``detail`` gives None when the entry is gone."""

    operations: int
    detail: Callable[[], EntryDetail | None]


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class Recompile(Event):
    """A frame that has entries is captured again. ``reasons``: one sentence per entry."""

    reasons: tuple[str, ...]
    identifiers: tuple[str, ...] = ()
    count: int = 0  # entries before this one


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class RecompileLimit(Event):
    """A frame has as many entries as allowed; other inputs run as plain Python from now on."""

    limit: int
    reason: str = ""
    identifier: str = "FJ0305"

    def sentence(self, reason: str = "") -> str:
        """What is the matter; ``reason``: why the best entry does not fit another call."""
        return f"the limit of {self.limit} entries is reached: {reason or self.reason}"


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class FrameSkipped(Event):
    """A frame runs as plain Python and is not looked at again."""

    reason: str
    identifier: str = ""


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class CallSkipped(Event):
    """A call runs as plain Python and nothing is captured. Only told if somebody `followed`."""

    reason: str
    identifier: str = ""


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class Deoptimised(Event):
    """A graph raised; its segment was run again as plain Python (D13)."""

    reason: str
    identifier: str = "FJ0307"


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class BackendFailed(Event):
    """A backend raised, or returned something that cannot be called."""

    backend: str
    reason: str


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class RegionsCompiled(Event):
    """A backend compiled repeated layers once. ``regions``: per region its name and how often the
    graph calls it. ``places``: per region and call the positions of its nodes in the graph."""

    backend: str
    regions: tuple[tuple[str, int], ...]
    places: tuple[list[list[int]], ...]


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class RegionsRefused(Event):
    """A backend raised for a graph whose repeated layers are calls of one subgraph; it compiled the
    graph without them."""

    backend: str
    reason: str


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class GraphRefused(Event):
    """AOTAutograd cannot trace a graph, or a part of one, which runs as it is."""

    backend: str
    reason: str


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class InternalFailure(Event):
    """A bug of framejit: the frame ran as plain Python."""

    reason: str
    identifier: str = "FJ0206"


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class Mismatch(Event):
    """An audited call did something other than plain Python. ``script`` shows it; if it is empty,
    ``unwritten`` says why there is none."""

    difference: str
    backend: str
    script: str = ""
    unwritten: str = ""
    identifier: str = "FJ0216"


@dataclass(slots=True, kw_only=True, eq=False, match_args=False)
class AuditSkipped(Event):
    """A call should have been audited and could not be; told once per frame and reason."""

    reason: str
    identifier: str = "FJ0309"


Subscriber = Callable[[Event], None]
E = TypeVar("E", bound=Event)

#: How many events are remembered.
HISTORY_LIMIT = 4096

_history: collections.deque[Event] = collections.deque(maxlen=HISTORY_LIMIT)
_subscribers: tuple[Subscriber, ...] = ()
_lock = Lock()


def emit(event: Event) -> None:
    """Hand an event to every subscriber. A subscriber that raises is reported, never propagated."""
    _history.append(event)
    for subscriber in _subscribers:
        try:
            subscriber(event)
        except Exception as error:
            warn(f"framejit: an event subscriber raised {type(error).__name__}: {error}")


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Call ``subscriber`` with every event from now on; the result of this call unsubscribes it."""
    global _subscribers
    with _lock:
        _subscribers = (*_subscribers, subscriber)

    def unsubscribe() -> None:
        global _subscribers
        with _lock:
            _subscribers = tuple(s for s in _subscribers if s is not subscriber)

    return unsubscribe


@contextlib.contextmanager
def recording(*kinds: type[Event]) -> Iterator[list[Any]]:
    """The events of a block as a list, optionally of some kinds only."""
    events: list[Event] = []
    wanted = kinds or (Event,)

    def note(event: Event) -> None:
        if isinstance(event, wanted):
            events.append(event)

    unsubscribe = subscribe(note)
    try:
        yield events
    finally:
        unsubscribe()


#: How many `following` blocks are open.
_followers = 0


@contextlib.contextmanager
def following() -> Iterator[None]:
    """In this block captures note every line that they execute, which takes a little longer, and
    calls that run as plain Python say why."""
    global _followers
    _followers += 1
    try:
        yield
    finally:
        _followers -= 1


def followed() -> bool:
    """Does anybody want to know which lines are captured, and which calls are not?"""
    return _followers > 0


def history(kind: type[E]) -> list[E]:
    """The remembered events of one kind (`Event`: of all kinds), oldest first."""
    return [event for event in list(_history) if isinstance(event, kind)]


def clear() -> None:
    """Forget the history; subscribers stay."""
    _history.clear()
