"""The driver: what happens when a call finds no entry, and what a graph break goes on with.

In: misses of the native dispatch. Out: entries (captured, compiled by the backend, guarded), break
functions and continuations, events for reports. One `Compiler` per ``compile()`` call or
``optimize()`` block; its entries and its limit are its own (D10). Next room: api.
"""

from __future__ import annotations

import threading
import time
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._C._dynamo.eval_frame import set_eval_frame

from framejit import config, native
from framejit.backends.compile import compile_graph
from framejit.bytecode.continuations import FramePoint, build_break, build_resume
from framejit.bytecode.decode import decode
from framejit.capture import Capture, Target, capture
from framejit.codegen.function import live_slots_of
from framejit.exc import BackendCompilerFailed, InternalError, Unsupported
from framejit.interpreter.frame import Frame
from framejit.interpreter.loop import Broken
from framejit.report import events, messages, printouts
from framejit.values import inline_policy
from framejit.values.base import NULL

_RAISES = "is raised and leaves the compiled function"


class CompiledFrame(native.CompiledFunction):
    """A compiled function or continuation: the native dispatch object and what it captures."""

    target: Target
    compiler: Compiler
    lock: threading.RLock
    plans: dict[int, Any]
    hooked: bool

    def setup(self, compiler: Compiler, target: Target, hooked: bool) -> None:
        """Fill in what the native constructor does not know."""
        self.compiler = compiler
        self.target = target
        self.lock = threading.RLock()
        self.plans = {}
        self.hooked = hooked

    def skip(self, reason: str, warn: bool = False) -> None:
        """Run as plain Python from now on."""
        target = self.target
        self.run_only = True
        events.emit(
            events.FrameSkipped(
                name=target.name, filename=target.code.co_filename, line=target.line, reason=reason
            )
        )
        if warn:
            messages.warn_skipped(target.name, target.code.co_filename, target.line, reason)


class Compiler:
    """A backend with its options, and every frame compiled for it."""

    def __init__(
        self,
        backend: Callable[..., Any],
        backend_name: str,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        **options: Any,
    ) -> None:
        self.backend = backend
        self.backend_name = backend_name
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.options = options
        self.hook_context = native.HookContext(self._hooked_frame)
        self._continuations: dict[FramePoint, CompiledFrame] = {}
        self._frames: list[CompiledFrame] = []

    # -- compiled objects --------------------------------------------------------------------------

    def compiled_function(
        self, function: types.FunctionType, kind: type[CompiledFrame] = CompiledFrame,
        hooked: bool = False,
    ) -> CompiledFrame:  # fmt: skip
        """The dispatch object that stands for ``function``."""
        compiled = kind(function, _miss, context=self.hook_context)
        compiled.setup(
            self, Target(function.__code__, function.__globals__, None), hooked
        )
        if decode(function.__code__).is_generator:
            compiled.skip("generators and coroutines run as plain Python")
        self._frames.append(compiled)
        return compiled

    def reset(self) -> None:
        """Forget everything that was compiled."""
        for frame in [*self._frames, *self._continuations.values()]:
            frame.clear_entries()
            frame.plans.clear()
            frame.run_only = False
        self._continuations.clear()
        self.hook_context.clear()

    def frames(self) -> list[CompiledFrame]:
        """The compiled functions and continuations, in the order in which they were made."""
        return [*self._frames, *self._continuations.values()]

    def _hooked_frame(self, function: types.FunctionType) -> CompiledFrame | None:
        """The frame hook sees ``function`` for the first time: compile it or leave it alone."""
        code, namespace = function.__code__, function.__globals__
        module = str(namespace.get("__name__") or "")
        if inline_policy.refuses(code, namespace) is not None or code.co_name == "<module>":
            return None
        if module.startswith("torch.") and not module.startswith("torch.nn.modules"):
            return None
        if inline_policy.is_library_of_python(module) or decode(code).is_generator:
            return None
        return self.compiled_function(function, hooked=True)

    # -- breaks ------------------------------------------------------------------------------------

    def continuation(self, point: FramePoint, namespace: dict[str, Any]) -> CompiledFrame:
        """The compiled object that goes on at ``point``."""
        known = self._continuations.get(point)
        if known is None:
            known = CompiledFrame(None, _miss, nslots=point.arity, context=self.hook_context)
            known.setup(self, Target(point.code, namespace, point), False)
            known.fallback = build_resume(point, namespace)
            self._continuations[point] = known
        return known

    def _break_function(self, frame: Frame, innermost: bool) -> Any:
        info = frame.info
        stack = frame.before if innermost else frame.stack
        point = FramePoint(
            info.code,
            frame.index,
            live_slots_of(frame),
            frozenset(i for i, value in enumerate(stack) if value is NULL),
            len(stack),
        )
        namespace = frame.globals
        return build_break(
            point,
            namespace,
            native.tail,
            lambda successor: self.continuation(successor, namespace),
            "instruction" if innermost else "call",
        )

    def _check_break(self, target: Target, broken: Broken) -> None:
        """A break was met: an error under ``fullgraph``, an event otherwise."""
        frame = _blamed(broken)
        filename, line = frame.line
        if broken.reason.endswith(_RAISES):
            return
        if self.fullgraph:
            raise messages.graph_break_error(
                broken.reason, broken.hint, filename, line, frame.info.code.co_name
            )
        events.emit(
            events.GraphBreak(
                name=target.name, filename=filename, line=line, reason=broken.reason,
                hint=broken.hint, code=messages.source_line(filename, line),
            )
        )  # fmt: skip

    # -- misses ------------------------------------------------------------------------------------

    def compile_entry(self, compiled: CompiledFrame, slots: tuple[Any, ...]) -> Any:
        """Capture this call and add an entry for it; None when it has to run as plain Python."""
        target = compiled.target
        filename, line = target.code.co_filename, target.line
        entries = compiled.entries
        if entries:
            reasons = tuple(
                plan.explain(entry.tree, slots)
                for entry in entries
                if (plan := compiled.plans.get(id(entry))) is not None
            )
            if len(entries) >= config.recompile_limit:
                reason = reasons[-1] if reasons else ""
                events.emit(
                    events.RecompileLimit(
                        name=target.name, filename=filename, line=line,
                        limit=config.recompile_limit, reason=reason,
                    )
                )  # fmt: skip
                messages.warn_recompile_limit(
                    target.name, filename, line, config.recompile_limit, reason
                )
                compiled.run_only = True
                return None
            events.emit(
                events.Recompile(
                    name=target.name, filename=filename, line=line, reasons=reasons,
                    count=len(entries),
                )
            )  # fmt: skip
        events.emit(events.CaptureStart(name=target.name, filename=filename, line=line))
        started = time.perf_counter()
        try:
            made = capture(
                target, slots, self._backend_for(target), self._break_function,
                lambda broken: self._check_break(target, broken),
            )  # fmt: skip
        except (Unsupported, BackendCompilerFailed):
            events.emit(self._end(target, "failed", started, 0))
            raise
        except Exception as error:
            return self._internal_error(compiled, error, started)
        events.emit(self._end(target, "compiled", started, made.steps))
        if compiled.hooked and not isinstance(made.outcome, Broken) and not made.operations:
            compiled.skip("it runs no PyTorch operation")
            return None
        problem = self._add_entry(compiled, made, slots)
        if isinstance(problem, InternalError):
            return self._internal_error(compiled, problem, started)
        return problem

    def _add_entry(self, compiled: CompiledFrame, made: Capture, slots: tuple[Any, ...]) -> Any:
        target = compiled.target
        tree = native.GuardTree(made.plan.nodes, made.state)
        if tree.check(slots) is None:  # it would never be used: a bug, not a recompile
            return InternalError(
                f"a guard fails right behind the capture: {made.plan.explain(tree, slots)}"
            )
        entry = native.Entry(tree, made.function)
        printouts.show_bytecode(target.code)
        if made.graph is not None:
            printouts.show_graph(target.name, made.graph)
        printouts.show_code(target.name, made.text)
        if printouts.wanted("guards"):
            printouts.show_guards(target.name, made.plan.guards())
        made.plan.settle()
        compiled.plans[id(entry)] = made.plan
        compiled.add_entry(entry)
        return entry

    def _backend_for(
        self, target: Target
    ) -> Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]:
        def run_backend(
            module: torch.fx.GraphModule, examples: list[torch.Tensor]
        ) -> Callable[..., Any]:
            started = time.perf_counter()
            compiled = compile_graph(
                self.backend, self.backend_name, module, examples, **self.options
            )
            events.emit(
                events.GraphCompiled(
                    name=target.name, filename=target.code.co_filename, line=target.line,
                    backend=self.backend_name, inputs=len(examples),
                    operations=sum(n.op.startswith("call") for n in module.graph.nodes),
                    seconds=time.perf_counter() - started,
                )
            )  # fmt: skip
            return compiled

        return run_backend

    def _end(self, target: Target, outcome: str, started: float, steps: int) -> events.CaptureEnd:
        return events.CaptureEnd(
            name=target.name, filename=target.code.co_filename, line=target.line, outcome=outcome,
            seconds=time.perf_counter() - started, steps=steps,
        )  # fmt: skip

    def _internal_error(
        self, compiled: CompiledFrame, error: Exception, started: float
    ) -> None:
        """A bug of ours: the frame runs as plain Python, and says so once (D11)."""
        target = compiled.target
        events.emit(self._end(target, "failed", started, 0))
        events.emit(
            events.InternalFailure(
                name=target.name, filename=target.code.co_filename, line=target.line,
                reason=f"{type(error).__name__}: {error}",
            )
        )  # fmt: skip
        if config.raise_internal_errors:
            raise InternalError(
                f"while capturing {target.name} ({target.code.co_filename}:{target.line}): "
                f"{type(error).__name__}: {error}"
            ) from error
        messages.warn_internal_error(error, target.name, target.code.co_filename, target.line)
        compiled.skip(f"internal error: {type(error).__name__}: {error}")


def _blamed(broken: Broken) -> Frame:
    """The frame whose line a break is reported at: the innermost one of the user's own code."""
    for frame in reversed(broken.frames):
        module = str(frame.globals.get("__name__") or "")
        if not inline_policy.is_library(module):
            return frame
    return broken.frames[-1]


def _miss(compiled: Any, slots: tuple[Any, ...]) -> Any:
    """Called by the native dispatch, once per call that fits no entry."""
    if config.disable:
        return None
    # Called from inside torch.compile: its frame hook must not see the capture's own frames.
    other_hook = set_eval_frame(None)
    try:
        with compiled.lock:
            for entry in compiled.entries:  # another thread may have been faster
                if entry.tree.check(slots) is not None:
                    return entry
            return compiled.compiler.compile_entry(compiled, slots)
    finally:
        set_eval_frame(other_hook)
