"""Audits: calls of compiled objects are also run as plain Python, and compared.

In: calls of the native dispatch, all or a sample. Out: one `events.Mismatch` for each difference,
with a script that shows it, and counts. The compiled run is the program's; the plain one starts
from the same state and leaves no trace. Next room: api.
"""

from __future__ import annotations

import atexit
import collections
import functools
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch

from framejit import config, directives, native
from framejit.audit.comparison import Tolerance
from framejit.callables import CompiledFrame
from framejit.exc import AuditMismatch, InternalError
from framejit.graph.global_state import runs_foreign_code
from framejit.regions import Region, Restore
from framejit.report import events, messages

#: One call of the process is audited at a time; its state goes back and forth.
_busy = threading.Lock()


class audit(Region):
    """Run calls of compiled objects as plain Python as well, and say where the two differ.

    ``with framejit.audit(): ...`` or ``@framejit.audit()``, for the calls of this thread and,
    meanwhile, of threads without such a block of their own. The environment variable
    ``FRAMEJIT_AUDIT=0.01``, ``framejit.config.audit = 0.01`` and ``framejit run --audit=0.01
    script.py`` are for the whole run.

    The compiled call is made first and is the program's: its result, its effects. Then everything
    reachable (arguments, closures, globals and class attributes that the code names, parameters,
    buffers, tensors' memory, torch's settings, generators of random numbers) is put back in place,
    the call is made as plain Python, and results (types, strides, values, which parts are the same
    object or memory), changed state, printed text, exceptions and random numbers are compared.
    Then all is as the compiled call left it. Calls inside an audited call belong to it.

    Args:
        rate: The share of calls, above 0 and up to 1; each call has the same chance.
        budget: The share of the processor time that audits may take, above 0; 1 or more: any. Calls
            whose turn comes while earlier audits are not yet paid for are left out. By default five
            times the rate: 0.5 % at a rate of 0.001.
        gradients: Compare the gradients of the sum of floating-point results, too.
        on_mismatch: "warn" (FJ0216), or "raise" (`exc.AuditMismatch`, instead of the result).
        rtol, atol: By how much floating-point numbers may differ. By default, as for
            `torch.testing.assert_close`, by dtype; 0 for ``backend="eager"``.
        folder: Where scripts that show a mismatch are written: ``config.audit_folder`` if not
            given, else a folder ``framejit_audit`` in the current one.

    Attributes: ``calls`` (compared), ``mismatches`` (a list of `events.Mismatch`), ``skipped`` (how
    many calls were not compared, by reason: a generator, file or tensor subclass cannot be put
    back; a program that does something else each time cannot be compared).

    Raises:
        TypeError, ValueError: For bad arguments, which are named.
    """

    def __init__(
        self,
        rate: float = 1.0,
        *,
        budget: float | None = None,
        gradients: bool = False,
        on_mismatch: str = "warn",
        rtol: float | None = None,
        atol: float | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__()
        self.rate = checked_rate(rate)
        if on_mismatch not in ("warn", "raise"):
            raise ValueError(f'on_mismatch must be "warn" or "raise", not {on_mismatch!r} [FJ0210]')
        budget = 5 * self.rate if budget is None else budget
        self.budget = _checked(budget, "budget", "above 0", lambda number: number > 0, " or None")
        if type(gradients) is not bool:
            raise TypeError(f"gradients must be True or False, not {gradients!r} [FJ0210]")
        self.gradients = gradients
        self.on_mismatch = on_mismatch
        tolerances = _checked_tolerance(rtol, "rtol"), _checked_tolerance(atol, "atol")
        self.tolerance = None if tolerances == (None, None) else Tolerance(*tolerances)
        self.folder = None if folder is None else messages.checked_path(folder, "folder")
        self.calls = 0
        self.mismatches: list[events.Mismatch] = []
        self.skipped: collections.Counter[str] = collections.Counter()
        self._earlier: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        #: Are scripts written? Those themselves, which show a mismatch, need none.
        self.writes = True
        #: The scripts, by frame and place of the difference.
        self.written: dict[Any, str] = {}
        self._told: set[tuple[str, str, int, str]] = set()
        #: At which processor time what audits took so far is paid for.
        self._paid = 0.0

    def __call__(self, function: Callable[..., Any]) -> Any:
        """``function`` such that the calls of compiled objects inside it are audited."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        directives.mark(call, "skip")
        return call

    def start(self) -> Restore:
        before = native.set_auditor(self._begin, self.rate, False)
        _blocks.append(self)
        _audit_others()

        def restore() -> None:
            native.set_auditor(*before, False)
            _blocks.remove(self)
            _audit_others()

        return restore

    def __repr__(self) -> str:
        return f"<framejit.audit: {self.summary()}>"

    def summary(self) -> str:
        """What was found, in one line."""
        text = f"{self.calls} calls compared, {len(self.mismatches)} mismatches"
        skipped = sum(self.skipped.values())
        if skipped:
            text += f", {skipped} not compared ({self.skipped.most_common(1)[0][0]})"
        return text

    # -- one call ----------------------------------------------------------------------------------

    def _begin(self, compiled: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """What the native dispatch asks first: None, or the steps of an audit."""
        if not isinstance(compiled, CompiledFrame) or config.disable:
            return None
        if compiled.run_only and not compiled.entries:
            return None  # plain Python; what it calls counts
        if runs_foreign_code() or torch._C._len_torch_dispatch_stack():
            self._skip(compiled, "a mode or transform that sees every operation is active")
            return None
        from framejit.audit.call import CallAudit  # only where something is audited

        began = time.process_time()
        if began < self._paid:
            return None
        if not _busy.acquire(blocking=False):
            self._skip(compiled, "a call of another thread is being audited")
            return None
        try:
            call = CallAudit(self, compiled, function, args, kwargs)
        except Exception as problem:
            _busy.release()
            self._give_up(compiled, problem)
            return None
        self._spent(time.process_time() - began)
        return call.step

    def _spent(self, seconds: float) -> None:
        """Audits took this long."""
        if self.budget < 1:
            self._paid = max(self._paid, time.process_time()) + seconds / self.budget

    def _skip(self, compiled: Any, reason: str) -> None:
        self.skipped[reason] += 1
        shown = compiled.target.shown
        key = (*shown.values(), reason)
        if key not in self._told:
            self._told.add(key)
            events.emit(events.AuditSkipped(**shown, reason=reason))

    def _give_up(self, compiled: Any, problem: Exception) -> None:
        """The call is not compared, as not everything can be put back; or for a bug of ours."""
        from framejit.audit.contents import NotSaveable

        if isinstance(problem, NotSaveable):
            self._skip(compiled, f"{problem} cannot be put back")
            return
        text = f"{type(problem).__name__}: {problem}"
        if config.raise_internal_errors:
            raise InternalError(f"while auditing: {text}") from problem
        self._skip(compiled, f"the auditor failed ({text})")

    def earlier(self, compiled: Any) -> list[Any]:
        """The calls of this object that compiled something, as far as they are remembered."""
        return self._earlier.setdefault(compiled, [])

    def tolerance_for(self, compiled: Any) -> Tolerance:
        """What was asked for, or what the backend promises."""
        from framejit.audit.call import EXACT_BACKENDS

        exact = compiled.compiler.backend_name in EXACT_BACKENDS
        return self.tolerance or (Tolerance(0, 0) if exact else Tolerance())

    def done(self, call: Any, seconds: float) -> None:
        """All runs of a call were made, which took so long since the compiled one. Raises
        AuditMismatch."""
        _busy.release()
        self._spent(seconds)
        compiled = call.compiled
        if call.problem is not None:
            self._give_up(compiled, call.problem)
        elif call.skipped:
            self._skip(compiled, call.skipped)
        elif not call.fell_back:
            self.calls += 1
            if call.difference is not None:
                self._mismatch(compiled, call)

    def _mismatch(self, compiled: Any, call: Any) -> None:
        event = events.Mismatch(
            **compiled.target.shown, difference=call.difference,
            backend=compiled.compiler.backend_name, script=call.script, unwritten=call.unwritten,
        )  # fmt: skip
        self.mismatches.append(event)
        events.emit(event)
        if self.on_mismatch == "raise":
            raise AuditMismatch(messages.mismatch_text(event))
        messages.warn_mismatch(event)


def checked_rate(rate: Any) -> float:
    """A share above 0 and up to 1."""
    return _checked(rate, "rate", "above 0 and at most 1", lambda number: 0 < number <= 1)


def _checked(
    value: Any, name: str, limits: str, fits: Callable[[float], bool], or_none: str = ""
) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number{or_none}, not {value!r} [FJ0210]")
    if not fits(value):
        raise ValueError(f"{name} must be {limits}, not {value!r} [FJ0210]")
    return float(value)


def _checked_tolerance(value: float | None, name: str) -> float | None:
    if value is None:
        return None
    return _checked(value, name, "0 or more", lambda number: number >= 0, " or None")


# -- all threads -----------------------------------------------------------------------------------

_everywhere: audit | None = None
#: The blocks that are being executed, the latest last.
_blocks: list[audit] = []


def _audit_others() -> None:
    """Threads without a block of their own belong to the latest one, else to the whole run's."""
    chosen = [_everywhere, *_blocks][-1]
    if chosen is None:
        native.set_auditor(None, 1.0, True)
    else:
        native.set_auditor(chosen._begin, chosen.rate, True)


def audit_everywhere(rate: float) -> audit | None:
    """Audit a share of the calls of all threads; 0: no longer."""
    global _everywhere
    _everywhere = audit(rate) if rate else None
    _audit_others()
    return _everywhere


@atexit.register
def audit_summary() -> int:
    """Say what the audit of all threads has found, if there is one; how many calls differ."""
    if _everywhere is not None and (_everywhere.calls or _everywhere.skipped) and sys.stderr:
        print(f"framejit.audit: {_everywhere.summary()}", file=sys.stderr)
    return 0 if _everywhere is None else len(_everywhere.mismatches)


config.watch("audit", audit_everywhere)
