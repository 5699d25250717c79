"""The driver: captures and compiles what misses ask for, and makes what a graph break goes on with.

In: compiled frames, and calls that fit none of their entries. Out: entries (captured, compiled by
the backend, guarded), break functions and continuations, events for reports. One `Compiler` per
``compile()`` call or ``optimize()`` block; its entries and its limit are its own (D10). Next room:
api.
"""

from __future__ import annotations

import functools
import time
import types
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from framejit import config, directives, native, ranks
from framejit.backends import sharing
from framejit.backends.compile import as_recorded, compile_graph, reason_of, tell_refused
from framejit.bytecode.continuations import (
    FramePoint,
    build_break,
    build_resume,
    build_return,
    is_continuation,
)
from framejit.bytecode.decode import decode
from framejit.bytecode.frame_point import leaves_result
from framejit.capture import Capture, capture
from framejit.capture.target import Caller, Target
from framejit.capture.tracing import Driver
from framejit.codegen.function import call_point, hands_over
from framejit.codegen.runtime import Unexpected, new_object
from framejit.compiled_frame import CompiledFrame, Origin
from framejit.exc import (
    AROUND_MODULE,
    BackendCompilerFailed,
    ComptimeError,
    FramejitError,
    InternalError,
    MarkContradicted,
    NotYet,
    RanksDisagree,
    Unsupported,
)
from framejit.graph import global_state, instalments, slow_imports
from framejit.graph.errors import Late, WrongResult
from framejit.graph.global_state import under_hooks
from framejit.graph.lazy import operation_count
from framejit.graph.repeats import Region
from framejit.graph.stand_ins import StandIns
from framejit.guards.standing_in import expect
from framejit.interpreter.frame import Frame
from framejit.interpreter.outcomes import Broken
from framejit.interruptions import interrupts
from framejit.misses import Later, Turns, miss
from framejit.peer import is_machinery, keep_out, left_alone
from framejit.plain import has_blocks, meet, plain_function, unwatched
from framejit.report import events, messages
from framejit.shapes import profile
from framejit.strictness import is_strict, strictness
from framejit.values.core import inline_policy
from framejit.values.objects.exceptions import UNSEEN

if TYPE_CHECKING:
    from framejit.package.library import LoadedPackage

_NEW_OBJECT = Caller(None, {})
#: After so many errors of the program what leads to them is captured as any other branch.
REFUTED_LIMIT = 2
#: Methods that run around every single operation, of modes and of tensor subclasses.
_SEES_OPERATIONS = ("__torch_function__", "__torch_dispatch__")

native.set_unseen_files(UNSEEN | {left_alone.__code__.co_filename})


class Break(NamedTuple):
    """How a break function was made: it can be made again."""

    point: FramePoint
    namespace: dict[str, Any]
    variant: str  # of `build_break`
    #: Somebody looks at the frame: it goes on as plain Python.
    seen: bool


class Compiler:
    """A backend with its options, and every frame compiled for it."""

    def __init__(
        self,
        backend: Callable[..., Any],
        backend_name: str,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        later: Later | None = None,
        recompile_limit: int | None = None,
    ) -> None:
        self.backend = backend
        self.backend_name = backend_name
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.later = later
        self.recompile_limit = recompile_limit
        self.hook_context = native.HookContext(self._hooked_frame)
        self._continuations: dict[Any, CompiledFrame] = {}
        self._frames: list[CompiledFrame] = []
        #: How the break functions in entries were made.
        self.breaks: weakref.WeakKeyDictionary[Any, Break] = weakref.WeakKeyDictionary()
        #: What a package brought: entries that were compiled in another process and wait.
        self.library: LoadedPackage | None = None
        #: Whom it asks before it compiles, if other processes want the same.
        self.turns: Turns | None = None
        #: Under ``fullgraph``: the error for an operation that should have raised but has not.
        self._goes_on: Unsupported | None = None
        #: The operation at which the last capture ended, by code and index, that was to raise.
        self._raising: tuple[types.CodeType, int] | None = None

    # -- compiled objects --------------------------------------------------------------------------

    def compiled_function(
        self, function: types.FunctionType, kind: type[CompiledFrame] = CompiledFrame,
        hooked: bool = False,
    ) -> CompiledFrame:  # fmt: skip
        """The dispatch object of ``function``."""
        compiled = kind(function, miss, context=self.hook_context)
        label = function.__qualname__  # that of what it wraps, if it wraps something
        compiled.setup(
            self, Target(function.__code__, function.__globals__, None, label=label), hooked
        )
        self._frames.append(compiled)
        if self.library is not None:
            self.library.attach(compiled)
        return compiled

    def reset(self) -> None:
        """Forget everything that was compiled."""
        for frame in self.frames():
            frame.start_over()
        self._continuations.clear()
        self.library = None
        self.hook_context.ask_always = False
        self.hook_context.clear()

    def use_backend(self, backend: Callable[..., Any], name: str) -> Callable[[], None]:
        """Compile everything anew with another backend until the result is called; what is
        compiled now is kept meanwhile."""
        before = self.backend, self.backend_name, self.later
        kept = [frame.set_aside() for frame in self.frames()]
        known = {id(frame) for frame in self.frames()}
        self.backend, self.backend_name, self.later = backend, name, None

        def restore() -> None:
            self.backend, self.backend_name, self.later = before
            for frame in self.frames():
                if id(frame) not in known:
                    frame.start_over()
            for put_back in kept:
                put_back()

        return restore

    @property
    def captures_later(self) -> Later | None:
        """What calls lend the time for a capture, if no other rank waits for it."""
        return None if ranks.agreeing() else self.later

    @property
    def compiled_anew(self) -> int:
        """How many entries no package has brought, whose graphs are compiled."""
        return sum(
            isinstance(origin, Origin) and not origin.postponed
            for frame in self.frames()
            for origin in frame.origins.values()
        )

    def frames(self) -> list[CompiledFrame]:
        """The compiled functions and continuations, in the order in which they were made."""
        return [*self._frames, *self._continuations.values()]

    def _hooked_frame(self, function: types.FunctionType) -> native.CompiledFunction | None:
        """The frame hook sees ``function`` for the first time: compile it or leave it alone."""
        if global_state.builtins_are_replaced():
            return None
        if is_machinery(function) or function.__code__.co_name in _SEES_OPERATIONS:
            return left_alone(function)
        code, namespace = function.__code__, function.__globals__
        module = str(namespace.get("__name__") or "")
        if (
            # A disabled function's wrapper turns the hook off for what it calls.
            directives.mark_of(function) in ("disable", "skip")
            or code.co_name == "<module>"
            or inline_policy.refuses(code, namespace) is not None
            or not inline_policy.goes_on_alone(code)
            # Plain Python is what it is when it runs as a frame of its own.
            or inline_policy.is_own(module)
            or is_continuation(code)
            or ((module + ".").startswith("torch.") and not module.startswith("torch.nn.modules"))
            or inline_policy.is_library_of_python(module)
            or decode(code).is_generator
        ):
            return None
        if native.is_run_only():  # nothing new is captured, but a package may know the frame
            library = self.library
            if library is None or not library.has(Target(code, namespace, None)):
                return None
        return self.compiled_function(function, hooked=True)

    # -- breaks ------------------------------------------------------------------------------------

    def continuation(self, target: Target) -> CompiledFrame:
        """The compiled object that goes on at a point, and then in the callers of its frame."""
        point, callers = target.point, target.callers
        assert point is not None
        key = (point, id(target.namespace), tuple([caller.key for caller in callers]))
        known = self._continuations.get(key)
        if known is None:
            arity = point.arity + sum(caller.arity for caller in callers)
            known = CompiledFrame(None, miss, nslots=arity, context=self.hook_context)
            known.setup(self, target, False)
            known.fallback = self._fallback(target)
            self._continuations[key] = known
            if self.library is not None:
                self.library.attach(known)
        return known

    def _joined(self, callee: Any, caller: Caller) -> CompiledFrame:
        """The continuation that goes on in ``callee`` and then in its caller."""
        known = callee.joined.get(caller)
        if known is None:
            context = native.set_context(None)  # the frame hook must not see what runs here
            try:
                target = callee.target._replace(callers=(*callee.target.callers, caller))
                known = callee.joined[caller] = self.continuation(target)
            finally:
                native.set_context(context)
        return known

    def _break_function(self, frame: Frame, innermost: bool) -> Any:
        point = call_point(frame, innermost)
        variant = ("handed" if hands_over(frame) else "instruction") if innermost else "call"
        return self.break_function(Break(point, frame.globals, variant, frame.seen))

    def break_function(self, recipe: Break) -> Any:
        """The function that an entry calls for a frame of a break."""
        point, namespace, variant, seen = recipe
        if seen:
            made = (build_return if variant == "call" else build_resume)(point, namespace)
            keep_out(made.__code__)
        else:
            joins = variant == "call" and leaves_result(point)
            tail = self._joining_tail(Caller(point, namespace)) if joins else native.tail
            made = self._break_at(point, namespace, tail, variant)
        self.breaks[made] = recipe
        return made

    def _joining_tail(self, caller: Caller) -> Any:
        def tail(successor: Any, *state: Any) -> Any:
            inner = state[-1]
            if type(inner) is native.TailCall:  # the callee's operation is done, its rest is not
                joined = self._joined(inner.target, caller)
                return native.tail(joined, *inner.args, *state[:-1])
            return native.tail(successor, *state)

        return tail

    def _break_at(
        self, point: FramePoint, namespace: dict[str, Any], tail: Any, variant: str
    ) -> Any:
        def successor(after: FramePoint) -> CompiledFrame:
            return self.continuation(Target(after.code, namespace, after))

        made = build_break(point, namespace, tail, successor, variant)
        keep_out(made.__code__)
        return made

    def answer(self, thunk: Callable[[], Any], result: Any) -> Any:
        """Run a constructor's ``__init__``; the rest of it may still be to do afterwards."""
        inner = thunk()
        if type(inner) is native.TailCall:
            return native.tail(self._joined(inner.target, _NEW_OBJECT), *inner.args, result)
        return new_object(inner, result)

    # -- plain Python ------------------------------------------------------------------------------

    def _fallback(self, target: Target, error: BaseException | None = None) -> Callable[..., Any]:
        return plain_function(target, functools.partial(self._break_at, tail=native.tail), error)

    def raising(self, target: Target, error: BaseException) -> Any:
        """What raises ``error`` where ``target`` goes on, if a block of the program meets it."""
        goes_on = target.point is not None and has_blocks(target)
        return self._fallback(target, error) if goes_on else None

    def deoptimise(self, compiled: CompiledFrame, expected: bool = True) -> Callable[..., Any]:
        """What an entry calls when its graph raises: the segment runs again as plain Python.

        ``expected``: the graph has operations that may raise, or whose errors the program meets,
        or the text of a number may be too long. If not, and plain Python does not raise, then the
        backend is to blame, which is said once.
        """

        def deoptimise(error: Exception | Late, *slots: Any) -> Any:
            target, hooked = compiled.target, under_hooks()
            if isinstance(error, Unexpected):
                compiled.refuted += 1
                if compiled.refuted == REFUTED_LIMIT:  # errors of the program are usual here
                    compiled.drop_entries()
            elif isinstance(error, FramejitError) or (hooked and not has_blocks(target)):
                raise error  # hooks are the user's code and may have raised it
            elif isinstance(error, Late) or interrupts(error):
                return meet(self.raising(target, error), error, slots)
            reason = f"{type(error).__name__}: {error}"
            events.emit(events.Deoptimised(**target.shown, reason=reason))
            if compiled.plain is None:
                compiled.plain = self._fallback(target)
            fault = isinstance(error, WrongResult)
            if not fault and (expected or hooked or isinstance(error, Unexpected)):
                return native.tail(compiled.plain, *slots)
            return native.tail(blame, native.tail(compiled.plain, *slots), error)

        def blame(thunk: Callable[[], Any], error: Exception) -> Any:
            result = thunk()
            shown, name = compiled.target.shown, self.backend_name
            reason = f"what it compiled raised {type(error).__name__}: {error}"
            reason = str(error) if isinstance(error, WrongResult) else reason
            events.emit(events.BackendFailed(**shown, backend=name, reason=reason))
            messages.warn_backend(name, **shown, reason=reason)
            return result

        return deoptimise

    def _check_break(
        self, target: Target, met: list[events.Ended], broken: Broken, strict: bool
    ) -> None:
        """A break was met: an error under ``fullgraph``, an event, also in ``met``, otherwise."""
        frame = broken.blamed
        identifier, reason, hint = broken.identifier, broken.reason, broken.hint
        filename, line = frame.line
        last = broken.frames[-1]
        at_once = instalments.going_on() is None
        self._raising = (last.info.code, last.index) if broken.leaves and at_once else None
        if (self.fullgraph or strict) and identifier != AROUND_MODULE:
            place, *chain = [(*f.line, f.info.code.co_name) for f in (frame, *broken.frames)]
            error = messages.graph_break_error(identifier, reason, hint, place, chain)
            if not broken.raises:
                raise error
            self._goes_on = error
        known = {**target.shown, "filename": filename, "line": line}
        known |= {"identifier": identifier, "reason": reason}
        if broken.raises:
            events.emit(events.Raises(**known))
            return
        event: events.Ended = events.StepAround(**known)
        if broken.splits:
            code = messages.source_line(filename, line)
            event = events.GraphBreak(**known, hint=hint, code=code)
        met.append(event)
        events.emit(event)

    # -- misses ------------------------------------------------------------------------------------

    def compile_entry(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], before: Capture | None = None,
        stand_ins: StandIns | None = None,
    ) -> Any:  # fmt: skip
        """Capture this call and add an entry for it; None when it has to run as plain Python.
        ``before``: an earlier capture of it, of which a guard failed at once. ``stand_ins``: what
        the entry is for instead of the tensors without content."""
        if global_state.runs_foreign_code():
            compiled.left("FJ0306", "a mode or transform that sees every operation is active")
            return None
        if (replaced := global_state.what_is_replaced()) is not None:
            compiled.left("FJ0306", f"{replaced} is replaced, say by mock.patch")
            return None
        later = self.captures_later
        if later is not None and later.is_loading():
            compiled.left("FJ0306", "modules that captures need are being imported")
            return None
        target, emptied = compiled.target, compiled.emptied
        if target.point is not None:
            self._check_expected(target, target.point)
        if compiled.entries and not self._may_recompile(compiled, slots, stand_ins):
            return None
        met: list[events.Ended] = []
        try:
            with nullcontext() if later is None else slow_imports.refused():
                made = self._captured(compiled, slots, met, stand_ins)
        except slow_imports.NotLoaded as error:
            assert later is not None
            later.load()
            compiled.left("FJ0306", f"{error} is being imported in the background")
            return None
        except ranks.CompiledElsewhere as made_there:
            return made_there.entry
        except NotYet as reason:
            instalments.apart(str(reason))
            compiled.wait(str(reason))
            return unwatched(target)
        except (Unsupported, MarkContradicted, ComptimeError, RanksDisagree):
            raise
        except Exception as error:
            if instalments.going_on() is not None:  # it is said by the call that meets it again
                raise
            return self._not_captured(compiled, error)
        if instalments.paused():
            if compiled.emptied != emptied or not compiled.has_code_of(target):
                raise instalments.Abandoned
            for entry in compiled.entries:  # a call that lent no time may have been faster
                if entry.tree.check(slots) is not None:
                    return entry
        profile.learn(compiled.profile_key, compiled.policy.seen)
        if compiled.hooked and not isinstance(made.outcome, Broken) and not made.operations:
            compiled.skip("FJ0302", "it runs no PyTorch operation")
            return None
        if made.calls.missed:
            instalments.apart("cached functions are called")
        made.calls.make(None if before is None else before.calls)
        tree = self._guards_of(made, slots)
        if isinstance(tree, InternalError):
            if before is None:  # other threads run meanwhile, and objects end that nobody holds
                return self.compile_entry(compiled, slots, made, stand_ins)
            if instalments.going_on() is not None:
                raise instalments.Abandoned
            return self._internal_error(compiled, tree)
        if stand_ins is not None:
            expect(made.plan, stand_ins)
            tree = native.GuardTree(list(made.plan.nodes), made.state, made.plan.program)
        return self._add_entry(compiled, made, tree, met[-1] if met else None)

    def _not_captured(self, compiled: CompiledFrame, error: Exception) -> None:
        """A capture has raised what is no error of the program's, or has been interrupted."""
        if interrupts(first := error.__cause__ or error):
            raise first
        if isinstance(error, BackendCompilerFailed):
            self._backend_failed(compiled, error)
        elif isinstance(error, RecursionError):  # the user's code may still fit on the stack
            compiled.left("FJ0306", "the stack is nearly full (RecursionError)")
        elif isinstance(error, MemoryError):  # what is captured takes more room than what runs
            compiled.skip("FJ0139", "there is not enough memory to capture it")
        else:
            self._internal_error(compiled, error)

    def _check_expected(self, target: Target, point: FramePoint) -> None:
        """Errors if the operation before a continuation should have raised the user's own error: of
        ``fullgraph``, or, where it is asked for, that the capture was wrong."""
        if self._goes_on is not None and (self.fullgraph or is_strict(strictness.get())):
            raise self._goes_on
        raising, self._raising = self._raising, None
        if raising == (point.code, point.index - 1) and config.raise_internal_errors:
            raise InternalError(f"{target.name} follows an operation that was to raise an error")

    def _may_recompile(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], stand_ins: StandIns | None
    ) -> bool:
        """Is there room for one more entry? Says why those that are there do not fit."""
        shown, failures = compiled.target.shown, compiled.failures(slots, stand_ins)
        reasons = tuple([failure.sentence for failure in failures])
        count, limit = len(compiled.entries), self.recompile_limit or config.recompile_limit
        if config.error_on_recompile:
            raise messages.recompile_error(**shown, reasons=reasons)
        if count >= limit:
            told = {**shown, "limit": limit, "reason": reasons[-1] if reasons else ""}
            if config.error_on_recompile_limit:
                raise messages.recompile_error(**shown, reasons=reasons, limit=limit)
            compiled.skipped = events.RecompileLimit(**told)
            compiled.run_only = True
            events.emit(compiled.skipped)
            messages.warn_recompile_limit(**told)
            return False
        identifiers = tuple([failure.identifier for failure in failures])
        told = {**shown, "reasons": reasons, "identifiers": identifiers}
        events.emit(events.Recompile(**told, count=count))
        return True

    def _captured(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], met: list[events.Ended],
        stand_ins: StandIns | None,
    ) -> Capture:  # fmt: skip
        """A capture of this call, between the events that it begins and that it is over."""
        target = compiled.target
        events.emit(events.CaptureStart(**target.shown))
        started = instalments.clock()
        compiled.remember()
        driver = Driver(
            compile_graph=functools.partial(self.run_backend, target, later=self.later),
            make_break=self._break_function,
            answer=self.answer,
            check_break=functools.partial(self._check_break, target, met),
            deoptimise=functools.partial(self.deoptimise, compiled),
            may_expect=compiled.refuted < REFUTED_LIMIT,
            whole=self.fullgraph,
            may_wait=target.point is None and compiled.waited < REFUTED_LIMIT,
            stand_in=None if stand_ins is None else stand_ins.of,
        )
        outcome, steps, backend_seconds = "failed", 0, 0.0
        repeated: tuple[tuple[str, int], ...] = ()
        try:
            made = ranks.captured(capture, compiled, slots, driver, met)
            outcome, steps, backend_seconds = "compiled", made.steps, made.backend_seconds
            repeated = made.repeated
            return made
        finally:
            events.emit(
                events.CaptureEnd(
                    **target.shown, outcome=outcome, seconds=instalments.clock() - started,
                    steps=steps, backend_seconds=backend_seconds, repeated=repeated,
                )
            )  # fmt: skip

    def _add_entry(
        self, compiled: CompiledFrame, made: Capture, tree: native.GuardTree,
        broke: events.Ended | None,
    ) -> Any:  # fmt: skip
        target = compiled.target
        entry = native.Entry(tree, made.generated.function, made.generated.layout)
        made.plan.state, made.plan.backend = made.state, self.backend_name
        made.plan.line = (target.code.co_filename, target.line)
        made.plan.settle()
        compiled.plans[id(entry)] = made.plan
        compiled.origins[id(entry)] = Origin(
            made.call, made.executed, made.generated.text, made.lines, made.operations, broke,
            made.changes,
        )  # fmt: skip
        compiled.add_entry(entry)
        events.emit(compiled.described(entry))
        if self.later is not None:
            self.later.added(compiled, entry)
        return entry

    def _guards_of(self, made: Capture, slots: tuple[Any, ...]) -> Any:
        """The guards, which hold for the call that was captured; else the entry would never be
        used: an error, not a recompile."""
        tree = native.GuardTree(list(made.plan.nodes), made.state, made.plan.program)
        if tree.check(slots) is not None:
            return tree
        made.plan.state = made.state
        reason = made.plan.explain(tree, slots)
        return InternalError(f"a guard fails right after the capture: {reason}")

    def run_backend(
        self, target: Target, module: torch.fx.GraphModule, examples: list[torch.Tensor],
        later: Later | None = None,
    ) -> Callable[..., Any]:  # fmt: skip
        """Compile a graph of ``target``, captured here or in another process; or leave that to
        ``later``."""
        started = time.perf_counter()
        operations = operation_count(module)
        known = {**target.shown, "backend": self.backend_name, "operations": operations}
        if later is not None and not under_hooks() and later.postpone(target, module, examples):
            events.emit(events.GraphPostponed(**known))
            return as_recorded(module, examples)
        instalments.apart("a backend that compiles in the call")
        key = sharing.key_of(self.backend, module, examples)
        if (shared := sharing.find(key, self.backend, module)) is not None:
            events.emit(events.GraphReused(**known))
            return shared
        events.emit(events.BackendStart(**known))
        shown = {**target.shown, "backend": self.backend_name}

        def told(regions: list[Region], error: Exception | None) -> None:
            if error is not None:
                events.emit(events.RegionsRefused(**shown, reason=reason_of(error)))
                return
            counted = tuple([(region.name, len(region.calls)) for region in regions])
            places = tuple([[call[0] for call in region.calls] for region in regions])
            events.emit(events.RegionsCompiled(**shown, regions=counted, places=places))

        refused = functools.partial(tell_refused, module, shown)
        compiled = compile_graph(self.backend, self.backend_name, module, examples, told, refused)
        seconds = time.perf_counter() - started
        events.emit(events.GraphCompiled(**known, inputs=len(examples), seconds=seconds))
        sharing.keep(key, compiled, module)
        return compiled

    def _backend_failed(self, compiled: CompiledFrame, error: BackendCompilerFailed) -> None:
        """The backend has raised: the caller's error, or plain Python where that is asked for."""
        if not config.suppress_errors:
            raise error
        shown, cause = compiled.target.shown, error.__cause__ or error
        reason = f"it raised {type(cause).__name__}: {cause}"
        events.emit(events.BackendFailed(**shown, backend=self.backend_name, reason=reason))
        messages.warn_backend(self.backend_name, **shown, reason=reason)
        compiled.skip("FJ0207", reason)

    def _internal_error(self, compiled: CompiledFrame, error: Exception) -> None:
        """A bug of ours: the frame runs as plain Python, and says so once (D11)."""
        shown, reason = compiled.target.shown, f"{type(error).__name__}: {error}"
        events.emit(events.InternalFailure(**shown, reason=reason))
        if config.raise_internal_errors:
            name, filename, line = shown.values()
            raise InternalError(f"while capturing {name} ({filename}:{line}): {reason}") from error
        messages.warn_internal_error(error, **shown)
        compiled.skip("FJ0206", f"internal error: {reason}")
