"""A line in the terminal while a long compile runs: which function, which phase, how long.

In: events. Out: one line on standard error, only if that is a terminal, `config.progress` is on,
and a capture takes longer than two seconds; it is gone when the capture is over. A process for
which others may wait writes lines that stay, more and more seldom, also where that is no terminal.
Next room: native.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import torch

from framejit import config
from framejit.forks import Lock
from framejit.report import events

#: Seconds before the line appears, and between its changes.
PATIENCE = 2.0
_STEP = 0.25
#: Seconds before the first line that stays; each takes twice as long as the one before.
_OTHERS_PATIENCE = 30.0


def _rank() -> int | None:
    """Which of several processes this is, if they work together."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        several = distributed.get_world_size() > 1
        return distributed.get_rank() if several else None
    told, count = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(told) if told.isdecimal() and count.isdecimal() and int(count) > 1 else None


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class Line:
    """The line. One thread shows it, started with the outermost capture."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: list[tuple[str, str, float]] = []  # what, phase, since when
        self._over = threading.Event()

    def note(self, event: events.Event) -> None:
        """Take in one event."""
        match event:
            case events.CaptureStart():
                wanted = config.progress and sys.stderr is not None
                if wanted and (_is_terminal() or _rank() is not None):
                    self._start(f"{event.name} ({event.place})")
            case events.BackendStart() if self._running:
                what, _, since = self._running[-1]
                self._running[-1] = (what, f"{event.backend}: {event.operations} operations", since)
            case events.CaptureEnd() if self._running:
                self._running.pop()
                if not self._running:
                    self._over.set()
            case _:
                pass

    def _start(self, what: str) -> None:
        with self._lock:
            self._running.append((what, "tracing", time.monotonic()))
            if len(self._running) > 1:
                return
            self._over = threading.Event()
        rank = _rank()
        shows, args = (self._show, ()) if rank is None else (self._tell, (rank,))
        threading.Thread(target=shows, args=(self._over, *args), daemon=True).start()

    def _text(self, told: str = "") -> str:
        running = list(self._running)
        if not running:
            return ""
        what, phase, since = running[-1]
        return f"framejit: {told}{what}, {phase}, {time.monotonic() - since:.0f} s"[:110]

    def _tell(self, over: threading.Event, rank: int) -> None:
        wait = _OTHERS_PATIENCE
        while not over.wait(wait):
            wait *= 2
            if text := self._text(f"rank {rank} is compiling "):
                sys.stderr.write(text + "\n")
                sys.stderr.flush()

    def _show(self, over: threading.Event) -> None:
        if over.wait(PATIENCE):
            return
        width = 0
        while True:
            if text := self._text():
                sys.stderr.write("\r" + text.ljust(width))
                sys.stderr.flush()
                width = max(width, len(text))
            if over.wait(_STEP):
                break
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()


_line = Line()
events.subscribe(_line.note)
