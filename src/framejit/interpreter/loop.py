"""The loop: executes instructions symbolically, pushes and pops frames, unwinds exceptions.

In: a root frame. Out: `Returned`, `Broken` or `Again`. A `GraphBreak` becomes `Broken` at the very
instruction when that instruction has left no trace; otherwise, and when a value cannot be built for
real, the capture starts again with that step marked. Next room: codegen.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Container
from typing import Any

from framejit import config
from framejit.bytecode.analysis import may_be_caught, never_declines
from framejit.bytecode.decode import decode
from framejit.bytecode.instruction_set import PART_OF_FRAME, Trait, having
from framejit.bytecode.model import CodeInfo, Instruction
from framejit.bytecode.release import tables
from framejit.exc import GraphBreak
from framejit.graph import instalments
from framejit.interpreter import doubtful, forced
from framejit.interpreter.attempts import Attempts
from framejit.interpreter.dropped import Existing, Roots
from framejit.interpreter.frame import NONE, CallChain, Frame
from framejit.interpreter.limits import Limits
from framejit.interpreter.onlookers import may_be_looked_at
from framejit.interpreter.outcomes import (
    Again,
    BreakHere,
    Broken,
    LeavingError,
    LookedAtError,
    Restart,
    Returned,
    Yielded,
)
from framejit.interpreter.registry import HANDLERS, Handler
from framejit.report import events
from framejit.values.core.base import CallRequest, Raised, Value, type_name
from framejit.values.core.inline_policy import check_builtins, goes_on_alone
from framejit.values.core.registry import Result
from framejit.values.core.space import Space
from framejit.values.objects.exceptions import ExceptionValue, note_read

#: Instructions after which everything is held that was held before.
_DROPS_NOTHING = having(Trait.KEEPS)
#: How many calls may run in the middle of each other's operations: each of them takes a dozen
#: frames of this interpreter's own on Python's stack.
_MOST_IN_OPERATIONS = 24


class Interpreter(Attempts):
    """Executes one capture. ``break_at`` maps step numbers to the reasons to break there."""

    def __init__(
        self,
        space: Space,
        break_at: dict[int, GraphBreak],
        before_saving: Callable[[], None] | None = None,
    ) -> None:
        self.space = space
        self.before_saving = before_saving
        self.changes = space.changes
        self.break_at = break_at
        self.next_break = 0
        self.limits = Limits(space.builder)
        self.steps = 0
        self.depth = 0
        #: How many operations are running frames in their middle (`run_request`, generators).
        self.level = 0
        #: The step of the instruction that the root level is executing.
        self.root_step = 0
        self.frame: Frame = None  # type: ignore[assignment]
        self.base: Frame = None  # type: ignore[assignment]
        #: The exception being handled (what a bare ``raise`` raises).
        self.handled: Value | None = None
        self.raise_steps: dict[Value, int] = {}
        #: How often the condition at (code, index) was taken for granted.
        self.expected_at: dict[tuple[Any, int], int] = {}
        #: By the id of the code, which is kept as well: its own hash takes long.
        self._programs: dict[int, tuple[CodeInfo, list[Any], Any]] = {}
        #: Every code object that was executed, with the name of its module.
        self.executed: dict[Any, str] = {}
        #: Was an operation recorded where a ``try`` or ``with`` of the program meets its errors?
        self.covered = False
        #: Per file: the lines that are executed, if somebody wants to know.
        self.lines: dict[str, set[int]] | None = {} if events.followed() else None
        #: Generators suspended where closing them runs code, and existing objects whose end is seen
        #: and which the program may drop -> how they were last seen to be held.
        self.suspended: dict[Any, Any] = {}
        self.roots = Roots(space)
        #: For every `run` that is going on: the step its frame was made at.
        self.run_steps: list[int] = []
        #: Calls that may be repeated, if any (`call_recordings.Recordings`).
        self.recordings = space.task.recordings
        #: May the program go on between two instructions?
        self.pauses = False
        space.begin(self)

    def beside(self, space: Space) -> Interpreter:
        """One for a call that is captured alone, in a space of its own."""
        made = Interpreter(space, {})
        made.recordings, made.depth = self.recordings, self.depth
        made._programs, made.executed, made.lines = self._programs, self.executed, self.lines
        return made

    # -- entry points ------------------------------------------------------------------------------

    def capture(self, root: Frame, innermost: Frame | None = None) -> Returned | Broken | Again:
        """Run from ``innermost`` (or ``root``) on until the root frame returns or breaks."""
        try:
            result = self.run(root, innermost=innermost)
        except Raised as error:
            step = self.raise_steps.get(error.value, self.steps)
            return Again(step, LeavingError(error.value))
        except (Restart, BreakHere) as unwound:
            return unwound.outcome
        assert isinstance(result, Returned)
        return result

    def make_frame(
        self, code: Any, slots: list[Value | None], namespace: dict[str, Any], parent: Frame | None
    ) -> Frame:
        """A frame at the start of ``code``."""
        known = self._programs.get(id(code))
        if known is None:
            info = decode(code)
            program = [(HANDLERS[i.op], i) for i in info.instructions]
            if self.lines is not None:
                seen = self.lines.setdefault(code.co_filename, set())
                program = [
                    (handler if i.op in _LINELESS else _noting(handler, seen), i)
                    for handler, i in program
                ]
            if forced.active is not None:
                program = forced.active.program(info, program)
            known = self._programs[id(code)] = (info, program, code)
            self.executed[code] = str(namespace.get("__name__"))
        frame = Frame(known[0], known[1], slots, namespace, parent)
        frame.entry_handled = self.handled
        frame.first_step = self.steps
        return frame

    def push(self, request: CallRequest) -> None:
        """Inline a call: the current frame waits for its result on top of its stack."""
        recordings, caller = self.recordings, self.frame
        if recordings is None:
            self.frame = self._frame_of(request)
            return
        instead = recordings.instead(self, request)
        if instead is not None:
            caller.stack.append(instead)
            return
        self.frame = self._frame_of(request)
        recordings.entered(self.frame, request, caller, self.space.builder)

    def _frame_of(self, request: CallRequest) -> Frame:
        """The frame of a call, one level deeper."""
        if self.depth >= config.inline_depth_limit:
            raise GraphBreak("FJ0139", "calls are nested too deeply to be inlined")
        check_builtins(request.function.function)
        self.depth += 1
        self.changes.note()
        function = request.function
        frame = self.make_frame(function.code, request.slots, function.globals, self.frame)
        frame.result, frame.names = request.result, request.names
        frame.operator_step = self.root_step if request.operator else 0
        frame.missing, frame.missing_step = request.missing, self.root_step
        frame.reads = request.reads
        return frame

    def run_request(self, request: CallRequest) -> Value:
        """Run a call in the middle of an operation (a break in it breaks the operation)."""
        frame = self._frame_of(request)
        self.level += 1
        try:
            result = self.run(frame)
        except Raised as error:
            if frame.missing is not None and error.is_a(AttributeError):
                instead = self._ask_getattr(frame.missing)
                if instead is not None:
                    return self.space.now(instead)
            if frame.reads is not None:
                note_read(self.space, error.value, *frame.reads)
            raise
        finally:
            self.level -= 1
            self.depth -= 1
        assert isinstance(result, Returned)
        return self._answer(frame, result.value)

    def _ask_getattr(self, missing: tuple[Any, str]) -> Result | None:
        """What ``__getattr__`` returns after an AttributeError, None if there is none."""
        value, name = missing
        answer: Result | None = value.missing_attribute(self.space, name)
        if isinstance(answer, CallRequest):
            answer.reads = missing
        return answer

    def _answer(self, frame: Frame, value: Value) -> Value:
        """What the caller of a frame that returned ``value`` gets."""
        instead = frame.result
        if instead is None and not frame.operator_step:
            return value
        constant = value.realize()
        if instead is not None:
            if not constant.is_constant or constant.as_python() is not None:
                kind = type_name(constant.python_type())
                self.space.raise_error(TypeError, f"__init__() should return None, not {kind!r}")
            return instead
        if constant.is_constant and constant.as_python() is NotImplemented:
            cause = GraphBreak(
                "FJ0141", "an operator's method returned NotImplemented from another function"
            )
            raise Restart(frame.operator_step, cause)
        return value

    def resume_generator(self, generator: Any, sent: Value, thrown: Value | None) -> Value | None:
        """Run a generator's frame to its next yield; None when it has returned."""
        frame: Frame = generator.frame
        self.changes.note()
        self.suspended.pop(generator, None)
        if frame is None:
            request = generator.request
            frame = generator.frame = self.make_frame(
                request.function.code, request.slots, request.function.globals, self.frame
            )
        elif frame is self.frame or generator in self._running():
            return self.space.raise_error(ValueError, "generator already executing")
        else:
            frame.parent = self.frame
        frame.generator = generator
        handled = frame.entry_handled = self.handled
        levels = [frame.stack[i] for i in frame.info.exc_slots[frame.pc] if i < len(frame.stack)]
        if levels:  # it is suspended in handlers of its own
            levels[0].previous = handled  # type: ignore[attr-defined]
            self.handled = levels[-1].handled  # type: ignore[attr-defined]
        self.roots.resumed.append(frame)
        try:
            if thrown is not None:
                thrown, answer = self._throw_inside(frame, thrown)
                if answer is not None:
                    self._suspend(generator)
                    return answer
            elif frame.pc:
                frame.stack.append(sent)
            self.level += 1
            self.depth += 1
            try:
                result = self.run(frame, thrown)
            finally:
                self.level -= 1
                self.depth -= 1
        finally:
            self.handled = handled
            frame.parent = frame.generator = None  # no cycle
            self.roots.resumed.pop()
        if isinstance(result, Yielded):
            self._suspend(generator)
            return result.value
        if tables.GENERATORS_KEEP_CALLERS:
            frame.parent = self.frame
        generator.returned = result.value
        return None

    def _suspend(self, generator: Any) -> None:
        frame = generator.frame
        if frame.info.handlers[frame.index] is not None:
            self.suspended[generator] = None

    def _throw_inside(self, frame: Frame, thrown: Value) -> tuple[Value | None, Value | None]:
        """Throw into the generator that ``frame`` waits for in a ``yield from``, if it does.

        Returns what is to be thrown into the frame itself, and what the inner generator yields.
        """
        instructions = frame.info.instructions
        following = instructions[frame.pc]  # a `yield from` goes back to its SEND
        send = instructions[following.target] if following.op == "JUMP" else following
        inner: Any = frame.stack[-1].realize() if send.op == "SEND" else None
        if inner is None or not hasattr(inner, "resume"):
            return thrown, None
        try:
            if issubclass(thrown.python_type(), GeneratorExit):
                inner.call_method(self.space, "close", [], {})
                return thrown, None
            value = inner.resume(self.space, NONE, thrown)
        except Raised as error:
            return error.value, None
        if value is None:
            frame.stack[-1] = inner.returned or NONE
            frame.pc = send.target
        return None, value

    def holds(self, value: Value) -> bool:
        return self.roots.holder(value, self.frame, (self.frame.before,), True) is not None

    def _close_dropped(
        self, frame: Frame | None, extra: tuple[Any, ...] = (), op: str = ""
    ) -> None:
        """Close the suspended generators that nothing holds any more. Existing objects must go as
        they go in plain Python: the last instruction is not captured."""
        roots, started = self.roots, self.run_steps[-1]
        while True:
            gone = []
            for generator, way in self.suspended.items():
                if getattr(generator, "step", 0) < started:
                    continue  # an operation in an outer run may hold it
                if not roots.still_holds(way, frame):
                    way = self.suspended[generator] = roots.holder(generator, frame, extra)
                    if way is None:
                        gone.append(generator)
            if not gone:
                return
            first = [
                generator for generator in gone
                if all(roots.holder(generator, None, (other,)) is None
                       for other in gone if other is not generator)
            ]  # fmt: skip
            seen = any(isinstance(value, Existing) for value in gone)
            step = self.root_step if self.level else self.steps
            try:
                if seen:
                    raise GraphBreak("FJ0153", "an object is dropped, and the program sees when")
                if len(first) != 1:
                    raise GraphBreak("FJ0158", "which of several generators is closed first")
                del self.suspended[first[0]]
                first[0].drop(self.space)
            except GraphBreak as cause:
                if op in PART_OF_FRAME and not self.level:  # no break can come there
                    step = step + 1 if seen else gone[0].step
                    if step in self.break_at:
                        return  # the next one finds the object gone
                raise Restart(step, cause)

    def _running(self) -> list[Any]:
        return [frame.generator for frame in self.frame.chain() if frame.generator is not None]

    def stack_trace(self) -> Any:
        """For graph nodes: the user's call chain, rendered when somebody reads it."""
        last = self.frame  # None: a value of the graph is asked for after the last instruction
        chain = last.chain() if last is not None else ()
        places = [(frame.info.code, frame.index, frame.info) for frame in chain]
        if not self.covered:
            self.covered = any(info.handlers[index] is not None for _, index, info in places)
        return CallChain(places)

    def trace_of_call(self) -> Callable[[Any], CallChain]:
        """What makes the call chains of operations of a call that is repeated here."""
        here = self.stack_trace()
        return lambda inner: CallChain(inner.all_places(), here)

    def repeated(self, covered: bool) -> None:
        """A call was repeated; ``covered``: with operations where something meets their errors."""
        self.covered = self.covered or covered
        self.changes.note()

    def executing(self) -> tuple[types.CodeType, int] | None:
        """The code being executed, and the line."""
        frame = self.frame
        return None if frame is None else (frame.info.code, frame.instruction.line)

    # -- the loop ----------------------------------------------------------------------------------

    def run(self, base: Frame, thrown: Value | None = None, innermost: Frame | None = None) -> Any:
        """Execute until ``base`` returns or yields; start in ``innermost`` if it is given."""
        if self.level > _MOST_IN_OPERATIONS:
            raise GraphBreak("FJ0139", "operations call functions that are nested too deeply")
        counted, effects, roots = self.changes, self.space.effects, self.roots
        outer_base, outer_frame = self.base, self.frame
        self.roots.bases.append(base)
        self.run_steps.append(base.first_step)
        instruction = base.program[0][1]
        self.base = base
        self.frame = base if innermost is None else innermost
        try:
            if thrown is not None:
                self.unwind(Raised(thrown))
            while True:
                changes = counted.count
                try:
                    while True:
                        frame = self.frame
                        if effects.count != roots.noted:
                            self.suspended.update(roots.changed_parts())
                        if self.suspended and instruction.op not in _DROPS_NOTHING:
                            self._close_dropped(frame, (), instruction.op)
                        index = frame.pc
                        frame.index = index
                        frame.pc = index + 1
                        frame.before = frame.stack.copy()
                        self.steps += 1
                        changes = counted.count
                        if self.level == 0:
                            self.root_step = self.steps
                        if self.steps >= self.next_break:
                            self._planned_break()
                        handler, instruction = frame.program[index]
                        result = handler(self, frame, instruction)
                        if result is not None:
                            if self.suspended:
                                self._leaving(result)
                            return result
                except Raised as error:
                    self._raised(error, changes)
                except GraphBreak as broken:
                    self._broken(broken, changes)
        finally:
            self.base, self.frame = outer_base, outer_frame
            self.roots.bases.pop()
            self.run_steps.pop()

    def _leaving(self, result: Any) -> None:
        """The base frame is left: its variables are dropped."""
        if not isinstance(result, Returned):
            return
        if self.base.parent is None:  # objects go when the generated function returns
            for value in [v for v in self.suspended if isinstance(v, Existing)]:
                del self.suspended[value]
                self.roots.keep_to_the_end(value, self.base)
        self._close_dropped(self.base.parent, (result.value,))

    def lost(self, built: Container[Any]) -> tuple[int, GraphBreak] | None:
        """The capture has ended: generators whose end does something must have been built, else
        their creation is not captured."""
        lost = [
            value.step for value in self.suspended
            if not isinstance(value, Existing) and value not in built and value.source is None
        ]  # fmt: skip
        if not lost:
            return None
        reason = "a generator that has been started is held by something that is not"
        return min(lost), GraphBreak("FJ0158", reason)

    def _planned_break(self) -> None:
        step = self.steps
        planned = self.break_at.get(step)
        limits = self.limits
        self.next_break = min([s for s in self.break_at if s > step] + [step + limits.every])
        if planned is not None:
            raise planned
        if not self.depth and self.frame.index < self.frame.info.body_start:
            self.next_break = step + 1  # nobody can go on here
            return
        limits.check(step)
        idle_since = limits.idle_since(step, self.root_step)
        if idle_since is not None:
            raise Restart(idle_since, limits.idle())
        if self.pauses and not self.level:
            instalments.pause()

    def _broken(self, cause: GraphBreak, changes: int) -> None:
        if self.level > 0:
            raise cause  # the operation that needed this result breaks
        if self.changes.count != changes:
            raise Restart(self.root_step, cause)
        chain = self.frame.chain()
        caught = False
        for frame in chain:  # a continuation does not know what its frame's result is for
            missing = frame.missing
            asks = frame.reads is not None and (  # an AttributeError names them
                caught or missing is None or missing[0].asks_getattr()
            )
            if asks or not (frame.parent is None or goes_on_alone(frame.info.code)):
                raise Restart(frame.missing_step, cause)
            if frame.operator_step and not never_declines(frame.info):
                raise Restart(frame.operator_step, cause)
            caught = caught or frame.info.handlers[frame.index] is not None
        raise BreakHere(Broken(chain, cause))

    def _raised(self, error: Raised, changes: int) -> None:
        value = error.value
        first = value not in self.raise_steps
        if first:
            self.raise_steps[value] = self.steps
            if value is self.space.made_up and doubtful.is_doubtful(error, self.frame):
                self._broken(GraphBreak("FJ0132", doubtful.REASON), changes)
            waits = self._handler_waits(error.is_a(AttributeError))
            if not waits and self.level == 0 and self.changes.count == changes:
                self._broken(LeavingError(value), changes)
            if waits and any(may_be_looked_at(frame) for frame in self.frame.chain()):
                self._broken(LookedAtError(value), changes)
            self._set_context(value)
        self.unwind(error)

    def _handler_waits(self, of_attribute: bool) -> bool:
        return any(
            frame.info.handlers[frame.index] is not None or (of_attribute and frame.missing)
            for frame in self.frame.chain()
        )

    def in_try(self) -> bool:
        """Is the user's own code inside a ``try`` that may end an error?"""
        for frame in self.frame.chain():
            if not str(frame.globals.get("__name__")).startswith("torch."):
                if may_be_caught(frame.info, frame.index):
                    return True
        return False

    def _set_context(self, value: Value) -> None:
        if self.handled is not None and isinstance(value, ExceptionValue):
            value.raised_while(self.space, self.handled)

    def unwind(self, error: Raised) -> None:
        """Go on at the handler of the innermost frame that has one; leave ``base`` otherwise."""
        frame = self.frame
        value = error.value
        # CPython's traceback gets an entry per frame, but none where it is raised once more.
        entered = frame.instruction.op == "RERAISE" or (
            frame.instruction.op == "RAISE_VARARGS" and frame.instruction.arg == 0
        )
        while True:
            if isinstance(value, ExceptionValue) and not entered:
                code = frame.info.code
                place = (code.co_filename, code.co_name, frame.instruction.place)
                value.passes(self.space, place)
            entered = False
            handler = frame.info.handlers[frame.index]
            if handler is not None:
                self.roots.leaves(value, frame)
                target, depth, push_lasti = handler
                del frame.stack[depth:]
                if push_lasti:
                    offset = frame.info.instructions[frame.index].offset // 2
                    frame.stack.append(self.space.constant(offset))
                frame.stack.append(value)
                frame.pc = target
                self.frame = frame
                return
            self.handled = frame.entry_handled
            if frame is self.base:
                frame.left = True
                self.roots.leaves(value, frame)
                raise Raised(value)  # a new one: its traceback will keep this frame
            assert frame.parent is not None
            self.depth -= 1
            frame.left = True
            frame.stack.clear()
            self.roots.leaves(value, frame)
            missing, step, reads = frame.missing, frame.missing_step, frame.reads
            frame = frame.parent
            if missing is not None and error.is_a(AttributeError):
                self.frame = frame
                try:
                    instead = self._ask_getattr(missing)
                except Raised as again:
                    error, value, instead = again, again.value, None
                except GraphBreak as cause:
                    raise Restart(step, cause)
                if isinstance(instead, CallRequest):
                    self.push(instead)
                    return
                if instead is not None:
                    frame.stack.append(instead)
                    return
            if reads is not None:
                note_read(self.space, value, *reads)

    def leave(self, frame: Frame, value: Value) -> Any:
        """The frame returns ``value``."""
        self.handled = frame.entry_handled
        frame.left = True
        if frame.kind is not None and self.recordings is not None:
            steps = self.steps - frame.first_step
            self.recordings.left(frame, steps, self.space.builder)
        if frame is self.base:
            return Returned(value)
        assert frame.parent is not None
        self.depth -= 1
        self.frame = frame.parent
        self.frame.stack.append(self._answer(frame, value))
        return None


#: What Python does on its own account; the line of these is that of something else.
_LINELESS = having(Trait.LINELESS)


def _noting(handler: Handler, seen: set[int]) -> Handler:
    """``handler`` that also notes the line of its instruction."""

    def note(vm: Interpreter, frame: Frame, instruction: Instruction) -> Any:
        seen.add(instruction.line)
        return handler(vm, frame, instruction)

    return note


__all__ = ["Again", "BreakHere", "Broken", "Interpreter", "Restart", "Returned", "Yielded"]
