"""The three families of exceptions (docs/architecture.md, D11).

In: whatever goes wrong while a frame is captured or a graph is compiled. Out: one clear exception.
The user's own exceptions pass through untouched; a graph break (`GraphBreak`) is expected and
turned into a continuation, or into `Unsupported` under ``fullgraph=True``; `InternalError` is a bug
of ours. Imports nothing of framejit. Next room: config.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

#: Files whose lines no user has written.
_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, contextlib.__file__)


class FramejitWarning(UserWarning):
    """Every warning of framejit has this class, so that one filter catches them all."""


def warn(text: str, category: type[FramejitWarning] = FramejitWarning) -> None:
    """Warn at the user's line: the innermost one outside of framejit."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)


class FramejitError(RuntimeError):
    """Base class of every error that framejit itself raises at its users.

    ``identifier`` names its kind in `report.problems`; it ends the first line of the message.
    """

    identifier = ""

    def __init__(self, message: str, identifier: str = "") -> None:
        self.identifier = identifier or self.identifier
        first, newline, rest = message.partition("\n")
        mark = f" [{self.identifier}]" if self.identifier else ""
        RuntimeError.__init__(self, f"{first}{mark}{newline}{rest}")  # whatever other bases it gets


class Unsupported(FramejitError):
    """A graph break was met under ``fullgraph=True`` / ``nopython=True``."""


class BackendCompilerFailed(FramejitError):
    """The backend raised, or returned something that cannot be called.

    ``backend_name`` is the backend's name; ``__cause__`` is what the backend raised, if it did.
    """

    identifier = "FJ0201"

    def __init__(self, backend_name: str, message: str, identifier: str = "") -> None:
        super().__init__(message, identifier)
        self.backend_name = backend_name


class MarkContradicted(FramejitError):
    """A dimension is marked as dynamic, and the code allows one size of it only."""

    identifier = "FJ0203"


class ComptimeError(FramejitError):
    """Something that the program says at compile time (`comptime`) does not hold, or raised."""

    identifier = "FJ0208"


class UnknownBackend(FramejitError):
    """A backend was asked for by a name that is not registered."""

    identifier = "FJ0204"


class PackageError(FramejitError):
    """A package cannot be written, is damaged, or does not belong to what it is loaded for."""

    identifier = "FJ0205"


class NothingFits(FramejitError):
    """No compiled entry fits a call, and nothing new may be compiled: ``run(strict=True)``."""

    identifier = "FJ0209"


class ExportError(FramejitError):
    """A program cannot be exported: it does something that a graph cannot."""

    identifier = "FJ0229"


class PrepareError(FramejitError):
    """A call cannot be compiled ahead: it runs as plain Python, or its tensors cannot be had."""

    identifier = "FJ0230"


class RecompileRefused(FramejitError):
    """Something would be compiled again, or once too often, where that is an error."""

    identifier = "FJ0217"


class RanksDisagree(FramejitError):
    """Processes of one group compile different things: ``config.ranks_agree``."""

    identifier = "FJ0233"


class AuditMismatch(FramejitError):
    """An audited call did something other than plain Python: ``audit(on_mismatch="raise")``."""

    identifier = "FJ0216"


class InternalError(FramejitError):
    """A bug of framejit. Raised only with ``config.raise_internal_errors``; else reported once."""

    identifier = "FJ0206"


class GraphBreak(Exception):
    """Internal control flow: the current instruction cannot be captured. Never reaches a user.

    ``identifier`` is the kind of the break in `report.problems`; ``reason`` completes the sentence
    "framejit cannot capture this, because ..."; ``hint`` says what the user can do about it, where
    that is more than what the registry says about the whole kind. ``raises``: the instruction is
    expected to raise when it is executed, so the error is the user's own.
    """

    raises = False
    #: Somebody looks at the running frames: they go on as plain Python, with all their variables;
    #: the outer ones, as many as ``unseen``, do not.
    seen = False
    unseen = 0
    #: The graph that ends here is run in eager mode: AOTAutograd's would not do for what follows.
    as_it_is = False

    def __init__(self, identifier: str, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.identifier = identifier
        self.reason = reason
        self.hint = hint


#: The kind of break at what torch does around a module that it distributes. The module's own code
#: may be whole all the same, which is what ``fullgraph`` asks for.
AROUND_MODULE = "FJ0126"


class NotYet(BaseException):
    """This call runs as plain Python, after which the next one can be captured whole. No error of
    the program's: no handler may see it."""


class DifferentiatedTwice(GraphBreak):
    """The gradients of what was captured are differentiated again, which AOTAutograd cannot do."""

    as_it_is = True


class CaptureTooLong(GraphBreak):
    """A limit of what one capture may do is reached: the running frames go on as plain Python."""

    seen = True

    def __init__(self, reason: str) -> None:
        super().__init__("FJ0139", reason)


class FrameKept(GraphBreak):
    """An error that stays alive keeps the frame that has caught it."""

    seen = True

    def __init__(self, unseen: int) -> None:
        reason = "an error keeps the variables of a frame that catches it and goes on"
        super().__init__("FJ0146", reason)
        self.unseen = unseen


class FrameSeen(GraphBreak):
    """The instruction gives somebody the running frames: a debugger, or the program itself."""

    seen = True
