"""A line in the terminal while a long compile runs: which function, which phase, how long.

In: events. Out: one line on standard error, only if that is a terminal, `config.progress` is on,
and a capture takes longer than two seconds; it is gone when the capture is over.
Next room: native.
"""

from __future__ import annotations

import sys
import threading
import time

from framejit import config
from framejit.report import events

#: Seconds before the line appears, and between its changes.
PATIENCE = 2.0
_STEP = 0.25


class Line:
    """The line. One thread shows it, started with the outermost capture."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[tuple[str, str, float]] = []  # what, phase, since when
        self._over = threading.Event()

    def note(self, event: events.Event) -> None:
        """Take in one event."""
        match event:
            case events.CaptureStart():
                if config.progress and sys.stderr is not None and sys.stderr.isatty():
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
        thread = threading.Thread(target=self._show, args=(self._over,), daemon=True)
        thread.start()

    def _show(self, over: threading.Event) -> None:
        if over.wait(PATIENCE):
            return
        width = 0
        while True:
            running = list(self._running)
            if running:
                what, phase, since = running[-1]
                text = f"framejit: {what}, {phase}, {time.monotonic() - since:.0f} s"[:110]
                sys.stderr.write("\r" + text.ljust(width))
                sys.stderr.flush()
                width = max(width, len(text))
            if over.wait(_STEP):
                break
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()


_line = Line()
events.subscribe(_line.note)
