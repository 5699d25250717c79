"""What a run prints on ``sys.stdout`` and ``sys.stderr``.

In: the two streams of the program. Out: the texts that one thread writes to them in a block, which
are let through or kept back. The streams stay the same objects: their ``write`` is replaced.
Warnings, and what framejit itself writes, are not the program's text. Next: script.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
import warnings
from typing import Any

from framejit.values.core import polyfills

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Printed:
    """Listens to this thread from `start` to `stop`."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.texts: dict[str, list[Any]] = {"stdout": [], "stderr": []}
        #: Nothing of the program's reaches the streams; ``closed``: nothing at all.
        self.silent = self.closed = False
        self._undo = contextlib.ExitStack()
        self.stop = self._undo.close

    def start(self) -> None:
        for name in self.texts:
            stream = getattr(sys, name)
            if stream is not None:
                self._listen(name, stream)
        self._keep_warnings_back()

    def _keep_warnings_back(self) -> None:
        """Whoever shows or records the program's warnings has those of the compiled run."""
        plain = warnings._showwarnmsg  # type: ignore[attr-defined]

        def receiver() -> Any:
            return warnings.showwarning, warnings._showwarnmsg_impl  # type: ignore[attr-defined]

        outside = receiver()

        def show(message: Any) -> None:
            ours = self.silent and threading.get_ident() == self.thread
            if not ours or receiver() != outside:
                plain(message)

        warnings._showwarnmsg = show  # type: ignore[attr-defined]
        self._undo.callback(setattr, warnings, "_showwarnmsg", plain)

    def _listen(self, name: str, stream: Any) -> None:
        plain = stream.write

        def write(text: Any) -> Any:
            if threading.get_ident() != self.thread:
                return plain(text)
            kind = _writer(sys._getframe(1))
            if kind == "program":
                self.texts[name].append(text)
            quiet = self.closed or (self.silent and kind != "framejit")
            return len(text) if quiet else plain(text)

        had = "write" in getattr(stream, "__dict__", ())
        try:
            stream.write = write
        except (AttributeError, TypeError):  # what it writes is seen twice
            return
        if had:
            self._undo.callback(setattr, stream, "write", plain)
        else:
            self._undo.callback(stream.__dict__.pop, "write", None)

    def taken(self) -> dict[str, str]:
        """What was written since the last time, by stream."""
        taken = {name: "".join(map(str, texts)) for name, texts in self.texts.items()}
        for texts in self.texts.values():
            texts.clear()
        return taken


def _writer(frame: types.FrameType | None) -> str:
    """Who writes: "program", "warning", or "framejit"."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file == warnings.__file__:
            return "warning"
        if file.startswith(_OURS) and file != polyfills.__file__:  # they run for the program
            return "program" if frame.f_code.co_name == "run_here" else "framejit"
        frame = frame.f_back
    return "program"
