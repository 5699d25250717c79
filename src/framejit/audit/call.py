"""One call that is audited: the compiled run, plain Python from the same state, and the comparison.

In: what the native dispatch shows of a call. Out: its steps: after the compiled run, the state goes
back and the same call is made as plain Python; where the two differ, a second plain run tells
whether the program repeats itself at all. In the end everything is as the compiled run left it.
Next: the room's front door.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import torch

from framejit.audit import script
from framejit.audit.comparison import Comparison, Tolerance, differences
from framejit.audit.contents import NotSaveable
from framejit.audit.printed import Printed
from framejit.audit.snapshot import Moment, Snapshot
from framejit.callables import Compiler
from framejit.exc import FramejitError
from framejit.native import set_dispatch_enabled

#: Backends that compute what PyTorch computes, operation by operation.
EXACT_BACKENDS = ("eager",)
#: Backends that draw random numbers in a way of their own.
_OWN_RANDOM = ("inductor", "autotuned", "cudagraphs", "onnxrt", "tvm")

PlainCall = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


@dataclasses.dataclass
class Outcome:
    """What one run did: result or error, printed text, the state after it, gradients."""

    result: Any
    error: BaseException | None
    printed: dict[str, str]
    moment: Moment
    gradients: Any = None


class IsCompiling:
    """Whether plain runs ask `torch.compiler.is_compiling`, and what they are told."""

    def __init__(self) -> None:
        self.asked = self.says = False
        self._undo = contextlib.ExitStack()
        self.stop = self._undo.close

    def start(self) -> None:
        self.stop()
        for owner in (torch.compiler, sys.modules.get("torch._dynamo")):
            for name in ("is_compiling", "is_dynamo_compiling"):
                if name in getattr(owner, "__dict__", ()):
                    self._undo.callback(setattr, owner, name, getattr(owner, name))
                    setattr(owner, name, self._answer)

    def _answer(self) -> bool:
        self.asked = True
        return self.says


class CallAudit:
    """The steps of one call; `step` is what the native dispatch calls. Raises NotSaveable.

    ``quiet``: somebody here wants to know how it differs, and nobody else.
    """

    def __init__(
        self, auditor: Any, compiled: Any, function: Any, args: Any, kwargs: Any,
        quiet: bool = False,
    ) -> None:  # fmt: skip
        self.auditor, self.compiled, self.quiet = auditor, compiled, quiet
        self.call = plain_call(function, args, kwargs)
        self.tolerance: Tolerance = auditor.tolerance_for(compiled)
        self.snapshot = Snapshot(_roots(*self.call))
        self.seen: list[Outcome] = []
        #: How the compiled run differs; None as long as nothing does.
        self.difference: str | None = None
        #: Why nothing was compared, if so.
        self.skipped = ""
        #: What ended the audit, if so.
        self.problem: Exception | None = None
        self.fell_back = False
        #: When the compiled run was over.
        self.since = 0.0
        #: Keeps what runs make apart from what earlier ones made, and dropped.
        self.held: list[Any] = []
        self.script = ""
        #: Why there is no script, if so.
        self.unwritten = ""
        self.known = len(auditor.earlier(compiled))
        self.anew: int = compiled.compiler.compiled_anew
        self.asked = IsCompiling()
        self.printed = Printed()
        self.printed.start()

    def step(self, result: Any, error: BaseException | None, fell_back: bool) -> PlainCall | None:
        """A run is over: what is to be run next? None: nothing."""
        again: PlainCall | None = None
        self.since = self.since or time.process_time()
        try:
            again = self._next(result, error, fell_back)
        except Exception as problem:
            self.problem = problem
        if again is None:
            try:
                self._leave()
            except Exception as problem:
                self.problem = self.problem or problem
            if not self.quiet:
                self.auditor.done(self, time.process_time() - self.since)
        return again

    def _next(self, result: Any, error: BaseException | None, fell_back: bool) -> PlainCall | None:
        if fell_back:
            self.fell_back = True
            return None
        if error is not None and not isinstance(error, Exception):
            self.skipped = f"the call was ended by {type(error).__name__}"
            return None
        if not self.seen and isinstance(error, FramejitError):
            self.skipped = f"it was not compiled: {type(error).__name__}"
            return None
        outcome = self._outcome(result, error)
        self.seen.append(outcome)
        run = len(self.seen)
        if run == 2:
            self.difference = self.compared(outcome, self.seen[0])
        elif run == 3:
            self._repeats(outcome)
        elif run == 4 and self.compared(outcome, self.seen[0]) is None:
            self.difference, self.skipped = None, "it asks torch.compiler.is_compiling()"
        differs = self.difference is not None
        if run == 1 or (differs and (run == 2 or (run == 3 and self.asked.asked))):
            return self._again(run, outcome.moment)
        if differs:
            self._write(outcome.moment)
        return None

    def _outcome(self, result: Any, error: BaseException | None) -> Outcome:
        printed, gradients = self.printed.taken(), None
        if self.auditor.gradients and error is None:
            gradients = gradients_of(result, self.snapshot)
        return Outcome(result, error, printed, self.snapshot.now(), gradients)

    def _again(self, run: int, now: Moment) -> PlainCall:
        """Back to the start, for a plain run. The third one is told that it is compiled."""
        self.printed.silent = True
        self.asked.start()
        self.asked.says = run == 3
        self.snapshot.put({}, now)
        self.held = _held_memory()
        if run == 1 and not self.quiet and self.compiled.compiler.compiled_anew > self.anew:
            self._keep()
        return self._plain()

    def _plain(self) -> PlainCall:
        function, args, kwargs = self.call
        if self.compiled.stands_for_call and args:  # the class may have another one by now
            function = type(args[0]).__call__
        return function, args, kwargs

    def _repeats(self, again: Outcome) -> None:
        """Two plain runs differ: so does any other one."""
        if (found := self.compared(self.seen[1], again)) is not None:
            self.difference = None
            self.skipped = f"plain Python does something else each time ({found})"
        elif (
            self.compiled.compiler.backend_name in _OWN_RANDOM
            and "random" not in str(self.difference)
            and self.snapshot.drew(self.seen[1].moment)
        ):
            self.difference = None
            self.skipped = "it draws random numbers, which the backend does in a way of its own"

    def _keep(self) -> None:
        """This call has compiled something that later ones use."""
        known = self.auditor.earlier(self.compiled)
        if len(known) < script.EARLIER_CALLS:
            _, args, kwargs = self.call
            with contextlib.suppress(Exception):  # then scripts do without
                known.append(script.Earlier(args, kwargs, script.namespaces(self.snapshot)))

    def _write(self, now: Moment) -> None:
        """One script for each place in a function's results and state."""
        written = self.auditor.written
        key = (*self.compiled.target.shown.values(), _place(str(self.difference)))
        if self.quiet or not self.auditor.writes:
            return
        if key not in written:
            self.snapshot.put({}, now)
            self.asked.stop()
            self.printed.closed = True
            written[key] = ""
            try:
                earlier = self.auditor.earlier(self.compiled)[: self.known]
                reduced = script.Reduced(self, self._shows, earlier)
                written[key] = script.write(self, reduced)
            except Exception as error:  # the mismatch is reported all the same
                self.unwritten = f"{type(error).__name__}: {error}"
        self.script = written[key]

    def _shows(self, earlier: list[Any], args: Any, kwargs: Any) -> bool:
        """Does a new compilation, after these calls, show the difference at the same place?"""
        old = self.compiled.compiler
        compiler = Compiler(
            old.backend, old.backend_name, fullgraph=old.fullgraph, dynamic=old.dynamic,
        )  # fmt: skip
        compiled = compiler.compiled_function(self.call[0])
        compiled.stands_for_call = self.compiled.stands_for_call
        try:
            for one in earlier:
                with contextlib.suppress(Exception):
                    run_here(compiled, *one.call())
            self.snapshot.put_settings()
            found = difference_of(compiled, self.call[0], args, kwargs, self.auditor)
        finally:
            self.snapshot.put({}, self.snapshot.now())
        return found is not None and _place(found) == _place(str(self.difference))

    def compared(self, right: Outcome, other: Outcome) -> str | None:
        """The first difference of the second outcome."""
        same = self.snapshot.comparison(self.tolerance)
        # Sums of gradients have no fixed order.
        near = Comparison(Tolerance(self.tolerance.rtol or None, self.tolerance.atol or None))
        return (
            differences([("result", right.result, other.result)], same)
            or _error_difference(right.error, other.error, same)
            or self.snapshot.difference(right.moment, other.moment, same)
            or _printed_difference(right.printed, other.printed)
            or differences([("gradients", right.gradients, other.gradients)], near)
        )

    def _leave(self) -> None:
        """Back to what the compiled run left, once more after what plain runs made is gone: its
        end may have effects."""
        self.asked.stop()
        try:
            if len(self.seen) > 1 or (self.seen and (self.skipped or self.problem)):
                first = self.seen[0]
                self.snapshot.put(first.moment, self.snapshot.now())
                del self.seen[1:]
                self.snapshot.put(first.moment, self.snapshot.now())
        finally:
            self.printed.stop()


def _held_memory() -> list[Any]:
    """Memory of all small sizes: what is made next has another address than what was made last,
    so that a program which looks at addresses is seen to do something else each time."""
    return [object(), [], {}, *[bytes(size) for size in range(0, 1024, 8)]]


def run_here(function: Any, args: Any, kwargs: Any) -> Any:
    """A call of the program's, made from here."""
    return function(*args, **kwargs)


def difference_of(compiled: Any, function: Any, args: Any, kwargs: Any, auditor: Any) -> str | None:
    """How a compiled call differs from plain Python, with the state as it was."""
    audit = CallAudit(auditor, compiled, function, args, kwargs, quiet=True)
    call: PlainCall | None = (compiled, args, kwargs)
    while call is not None:
        plain = len(audit.seen) > 0
        enabled = set_dispatch_enabled(not plain)
        result = error = None
        try:
            result = run_here(*call)
        except Exception as raised:
            error = raised
        finally:
            set_dispatch_enabled(enabled)
        call = audit.step(result, error, False)
    if audit.problem is not None and not isinstance(audit.problem, NotSaveable):
        raise audit.problem
    return None if audit.skipped or audit.problem else audit.difference


def _place(difference: str) -> str:
    return difference.partition(":")[0]


def _error_difference(
    right: BaseException | None, other: BaseException | None, same: Comparison
) -> str | None:
    if (right is None) != (other is None):
        return f"raised {other!r}, not {right!r}"
    return differences([("the exception", right, other)], same)


def _printed_difference(right: dict[str, str], other: dict[str, str]) -> str | None:
    for name, text in right.items():
        if other[name] != text:
            return f"{name}: printed {other[name]!r:.200}, not {text!r:.200}"
    return None


def gradients_of(result: Any, snapshot: Snapshot) -> Any:
    """By name, the gradients of all floating-point results' sum, for what required them before.

    ``.grad`` stays as it is; what autograd saved stays for the program.
    """
    outputs = [
        t for t in _tensors(result) if t.requires_grad and (t.is_floating_point() or t.is_complex())
    ]
    inputs = {
        snapshot.path(key): snapshot.objects[key][0]
        for key in snapshot.tensors
        if snapshot.objects[key][0].requires_grad
    }
    if not outputs or not inputs:
        return {}
    try:
        found = torch.autograd.grad(
            outputs, list(inputs.values()), [torch.ones_like(t) for t in outputs],
            retain_graph=True, allow_unused=True,
        )  # fmt: skip
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return dict(zip(inputs, found, strict=True))


def _tensors(value: Any, depth: int = 0) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth < 10:
        return [tensor for part in value for tensor in _tensors(part, depth + 1)]
    if hasattr(value, "__dict__") and depth < 3 and not isinstance(value, (type, types.ModuleType)):
        return _tensors(list(vars(value).values()), depth + 1)
    return []


def plain_call(function: Any, args: Any, kwargs: Any) -> PlainCall:
    """The same call as plain Python. Without ``kwargs``, ``args`` are the slots of a frame."""
    if kwargs is not None:
        return function, args, kwargs
    code: types.CodeType = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    given, named = (
        args[:count],
        dict(zip(code.co_varnames[count : count + only], args[count:], strict=False)),
    )
    position = count + only
    if code.co_flags & inspect.CO_VARARGS:
        given += args[position]
        position += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named |= args[position]
    return function, given, named


def _roots(function: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """What a call can reach, with the names of its parameters."""
    code = function.__code__
    names = [*code.co_varnames[: code.co_argcount]]
    names += [f"argument {i}" for i in range(len(names), len(args))]
    return [*zip(names, args, strict=False), *kwargs.items(), (function.__qualname__, function)]
