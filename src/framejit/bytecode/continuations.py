"""Functions that go on in the middle of another function: its original bytes after a prefix.

In: a `FramePoint` and the globals. Out: a resume function (restores the frame's state and jumps to
the point) or a break function (restores the state, executes one instruction natively under its
original exception handlers, and hands the new state to the next continuation).
All jumps are relative since CPython 3.11, so the original bytes are never touched: the exception
and line tables are shifted. Next room: codegen.
"""

from __future__ import annotations

import dis
import inspect
import weakref
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

from framejit import native
from framejit.bytecode import exception_table
from framejit.bytecode.assemble import (
    emit,
    emit_all,
    emit_call,
    emit_callable,
    emit_jump,
    with_location,
    without_location,
)
from framejit.bytecode.exception_table import Entry
from framejit.bytecode.frame_point import (
    FramePoint,
    caught,
    check,
    successors,
    successors_of_call,
)
from framejit.bytecode.model import CodeInfo, Handler, Instruction
from framejit.bytecode.release import tables

_DROPPED_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_NESTED

# What complains of an empty cell otherwise when it is a free variable.
_FREE = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "DELETE_DEREF")

# Keyed by the id of a resume function's code object, dropped when that dies.
_points: dict[int, tuple[weakref.ref[CodeType], FramePoint]] = {}

# The slots of a continuation's code, and what `locals()` and `super()` require of them
#
#   every slot of the original | stack values | (thunk) | temporaries || (next) ... | (read ones)
#   ------------------------ parameters ---------------                ---- free variables ------
#
# The original's slots keep their indices, so its bytes stay valid. Its cells and free variables
# arrive as cell objects in parameters that are *declared* as cells: CPython then looks through them
# in `locals()`, provided that it finds a MAKE_CELL for the slot in front of the running instruction
# (it never runs: it would wrap the cell once more). Everything added is emptied before user code
# runs, so `locals()` does not show it. Zero-argument `super()` looks for a real free variable
# `__class__`, and an instruction that finds a free variable empty complains of it as such: the
# prefix copies the parameter there. The continuations to call next are kept in closure cells,
# because the garbage collector does not look into `co_consts` and a loop makes a cycle; those cells
# are fetched only after the user's instruction.


def build_resume(point: FramePoint, globals: dict[str, Any]) -> FunctionType:
    """A function that goes on at ``point``; ``point.arity`` positional parameters.

    Its arguments are a value for every slot (None where unbound, the cell object where the slot is
    a cell or free variable), then the values of ``point.stack_positions``.
    """
    check(point)
    info = point.info
    code = info.code
    layout = _Layout(info, point, has_thunk=False)
    lead, offset = _goes_on(point)
    function = layout.spliced(
        f"__resume_at_{point.offset}",
        globals,
        info.instructions[point.index],
        (layout.restore_state(), lead, emit("JUMP_FORWARD", offset // 2)),
        _unit_of(layout.handler, info),
        stack_size=code.co_stacksize + 1,
        constants=code.co_consts,
        next_cells=(),
    )
    key = id(function.__code__)
    _points[key] = (weakref.ref(function.__code__, lambda _: _points.pop(key, None)), point)
    return function


def _goes_on(point: FramePoint) -> tuple[bytes, int]:
    """What comes first when a frame goes on at ``point``, and the offset of what comes then."""
    part = point.info.parts.get(point.index)
    return (b"", point.offset) if part is None else (emit_all(part.lead), part.goes_on)


def _unit_of(handler: Handler | None, info: CodeInfo) -> int:
    """The first code unit of a handler, if there is one."""
    return 0 if handler is None else info.instructions[handler.target].offset // 2


def build_generator(point: FramePoint, globals: dict[str, Any]) -> FunctionType:
    """A generator function whose generators, after one ``next()``, are at ``point``: right
    after a YIELD_VALUE, before the value that is sent is on the stack (``explicit_depth``).

    Parameters as in `build_resume`. What is sent or thrown into such a generator arrives where the
    original would get it: the prefix ends in a yield of its own, which has the handler of the
    original one.
    """
    check(point, generator=True)
    info = point.info
    code = info.code
    layout = _Layout(info, point, has_thunk=False)
    start = emit("RETURN_GENERATOR") + emit("POP_TOP") + layout.restore_state()
    start += emit("LOAD_CONST", len(code.co_consts))
    suspended = info.instructions[point.index - 1]
    if suspended.op != "YIELD_VALUE" or code.co_code[suspended.end] != dis.opmap["RESUME"]:
        raise ValueError("the frame does not stand after a yield")
    # Its operand says whether a `yield from` waits here: throw() goes to the inner one then. Once
    # that has ended, throw() itself jumps (in 3.11) as far as the unit in front of the yield says:
    # over the loop that sends, or raises in front of there.
    resume = code.co_code[suspended.end + 1]
    waits = resume & 3 >= 2
    behind = emit("JUMP_FORWARD", point.offset // 2)
    if waits:
        following = info.instructions[point.index]
        send = info.instructions[following.target] if following.op == "JUMP" else following
        done = emit("JUMP_FORWARD", info.instructions[send.target].offset // 2)
        behind = emit("JUMP_FORWARD", (point.offset + len(done)) // 2)
        loop = emit("SEND", 2 + len(behind) // 2)
        start += emit("JUMP_FORWARD", len(loop) // 2) + loop
    head = start + emit("YIELD_VALUE", suspended.arg) + emit("RESUME", resume) + behind
    covered = 2 + len(behind) // 2
    if waits:
        head += done
    shift, entries = len(head) // 2, []
    # Not what `handlers` says: CPython may have handlers of its own there.
    entry = exception_table.covering(info.exception_entries, suspended.offset // 2)
    if entry is not None:
        entries.append(entry.moved(shift)._replace(start=len(start) // 2, length=covered))
    line = suspended.positions
    function = layout.function(
        code.co_name,
        globals,
        _Head(
            head,
            entries,
            without_location(len(start) // 2)
            + with_location(shift - len(start) // 2 - 1, line, code.co_firstlineno)
            + with_location(1, (code.co_firstlineno, None, None, None), line[0] or 0),
        ),
        stack_size=code.co_stacksize + 2,
        constants=(*code.co_consts, None),
        next_cells=(),
    )
    function.__qualname__ = code.co_qualname
    return function


def build_return(point: FramePoint, globals: dict[str, Any]) -> FunctionType:
    """A function that goes on after the call at ``point``, natively.

    Parameters as in `build_break` with ``variant="call"``: the thunk is called in place of the
    operation, under its original handlers.
    """
    info = point.info
    code = info.code
    instruction = info.instructions[point.index]
    outcomes = [found for found in successors_of_call(point) if found is not None]
    layout = _Layout(info, point, has_thunk=True)
    ways: list[bytes] = []
    for outcome in reversed(outcomes):  # over the ways after it and the unit that leads back
        lead, offset = _goes_on(outcome)
        if lead and info.handlers[outcome.index] != info.handlers[point.index]:
            raise ValueError("two instructions of one unit have the same handler")
        distance = offset // 2 + 1 + sum(map(len, ways)) // 2
        ways.insert(0, lead + emit("JUMP_FORWARD", distance))
    operation = layout.call_thunk(instruction)
    if len(outcomes) > 1:
        operation += emit_jump(instruction.op, len(ways[0]) // 2)
    return layout.spliced(
        f"__return_to_{instruction.offset}",
        globals,
        instruction,
        (layout.restore_state(), operation + b"".join(ways), emit("NOP")),
        _unit_of(layout.handler, info),
        stack_size=code.co_stacksize + 3,
        constants=code.co_consts,
        next_cells=(),
    )


def build_raise(point: FramePoint, globals: dict[str, Any], error: BaseException) -> FunctionType:
    """A function that raises ``error`` at ``point``, under the handlers there; where a handler
    begins, instead of what it handles.

    Parameters as in `build_resume`.
    """
    info = point.info
    instruction = info.instructions[point.index]
    layout = _Layout(info, point, has_thunk=False)
    constants = info.code.co_consts
    leave = _leave_handlers(point)
    if instruction.op == "PUSH_EXC_INFO":
        layout.handler, leave = Handler(point.index, point.depth - 1, False), emit("POP_TOP")
    operation = emit("LOAD_CONST", len(constants)) + emit("RAISE_VARARGS", 1)
    return layout.spliced(
        f"__raise_at_{instruction.offset}",
        globals,
        instruction,
        (layout.restore_state() + leave, operation, emit("NOP")),
        _unit_of(layout.handler, info),
        stack_size=info.code.co_stacksize + 1,
        constants=(*constants, error),
        next_cells=(),
    )


def _leave_handlers(point: FramePoint) -> bytes:
    """Ends the handlers that the frame is at the end of: where nothing can raise any more, no entry
    of the table says that what they handle is over."""
    handler = point.info.handlers[point.index]
    left = range(0 if handler is None else handler.depth, point.depth)
    if set(left).isdisjoint(point.exc_slots) or not set(left).isdisjoint(point.nulls):
        return b""
    ends = ["POP_EXCEPT" if position in point.exc_slots else "POP_TOP" for position in left]
    return b"".join(map(emit, reversed(ends)))


def _lines(instruction: Instruction, code: CodeType, start: int, shift: int) -> bytes:
    """The line table of a head: the prefix has no lines but for its RESUME, the rest is the
    instruction's, and the last unit leads back to the first line, which the function's own table
    goes on from."""
    first = code.co_firstlineno
    line = instruction.positions[0]
    return (
        without_location(start - 1)
        + with_location(shift - start, instruction.positions, first)
        + with_location(1, (first, None, None, None), first if line is None else line)
    )


def is_continuation(code: CodeType) -> bool:
    """Is this the code of a resume or break function? (Its frame is part of another one.)"""
    added = any(name.startswith("fj:") for name in (*code.co_freevars, *code.co_varnames))
    return added or resume_point(code) is not None


def resume_point(code: CodeType) -> FramePoint | None:
    """The point that a resume function's code goes on at; None for any other code.

    The interpreter starts there, in the original code, instead of executing the prefix; a
    continuation of a continuation is then made from the original code too and does not grow.
    """
    found = _points.get(id(code))
    return found[1] if found is not None and found[0]() is code else None


def build_break(
    point: FramePoint,
    globals: dict[str, Any],
    tail: Callable[..., Any],
    make_next: Callable[[FramePoint], Any],
    variant: str = "instruction",
) -> FunctionType:
    """A function that executes the instruction at ``point`` and hands over to what comes next.

    Parameters as in `build_resume`. Per outcome (going on, jumping) ``make_next`` is called
    once with the next point; the function returns ``tail(next, *slots, *stack_values)``. Raising
    is one more outcome if a handler of the user's function covers the instruction: the next point
    is then the handler's, with the exception on the stack. An exception that no handler covers
    leaves the function.

    With ``variant="call"`` one more last argument, ``thunk``, is called without arguments in place
    of the operation, and its result takes the place of the operation's: pushed, dropped when the
    operation pushes nothing, or tested by a conditional jump. ``point.explicit_depth`` says where
    the operands that the operation consumes began. With ``variant="handed"``, for a CALL, the
    function that is called is the only one to hold its arguments.

    Raises ValueError for instructions that cannot be executed apart from their frame.
    """
    is_call = variant == "call"
    fall, jump = successors_of_call(point) if is_call else successors(point)
    info = point.info
    code = info.code
    instruction = info.instructions[point.index]
    outcomes = [outcome for outcome in (fall, jump, caught(point)) if outcome is not None]
    handler = info.handlers[point.index]
    layout = _Layout(info, point, is_call, outcomes)
    place = len(code.co_consts)
    constants = (*code.co_consts, tail, None, instruction.offset // 2)
    epilogues = [
        layout.hand_over(outcome, next_index, place) for next_index, outcome in enumerate(outcomes)
    ]
    prefix = layout.restore_state()
    if is_call:
        copy = layout.call_thunk(instruction)
    elif variant == "handed":
        constants += (native.call_handed, instruction.value)
        copy = layout.call_handed(instruction, place + 3)
    elif instruction.op == "LOAD_SPECIAL":
        constants += (native.bound_method,)
        copy = layout.load_special(instruction, place + 3)
    else:
        copy = layout.copy(instruction)
    if fall is not None and jump is not None:
        copy += emit_jump(instruction.op, len(epilogues[0]) // 2)
        if instruction.op == "FOR_ITER":
            epilogues[1] = emit_all(tables.LOOP_END) + epilogues[1]
    back = emit("NOP")
    if handler is not None and handler.push_lasti:
        # Where the original raised, instead of where this function does.
        raised = emit("SWAP", 2) + emit("POP_TOP") + emit("LOAD_CONST", place + 2)
        epilogues[-1] = raised + emit("SWAP", 2) + epilogues[-1]
    return layout.spliced(
        f"__break_at_{instruction.offset}",
        globals,
        instruction,
        (prefix, copy, *epilogues, back),
        0 if handler is None else -1 - len(epilogues[-1]) // 2,
        stack_size=max(code.co_stacksize + 3, layout.n_slots + len(info.slot_names) + 8),
        constants=constants,
        next_cells=[CellType(make_next(outcome)) for outcome in outcomes],
    )


class _Head(NamedTuple):
    """What is put in front of the original code: with its exception and line tables."""

    code: bytes
    entries: list[Entry]
    lines: bytes


class _Layout:
    """Where everything lies in the frame of one continuation; see the comment above."""

    def __init__(
        self, info: CodeInfo, point: FramePoint, has_thunk: bool,
        outcomes: Sequence[FramePoint] = (),
    ) -> None:  # fmt: skip
        self.info = info
        self.point = point
        #: What meets the errors of the operation.
        self.handler = info.handlers[point.index]
        self.stack_positions = point.stack_positions
        n_original = len(info.slot_names)
        self.thunk_slot = n_original + len(self.stack_positions) if has_thunk else -1
        self.n_parameters = n_original + len(self.stack_positions) + has_thunk
        # Temporaries are only needed to hand over.
        n_temporaries = max((outcome.depth for outcome in outcomes), default=0)
        self.n_slots = self.n_parameters + n_temporaries
        self.n_next = len(outcomes)
        self.free_names = tuple([f"fj:next {index}" for index in range(self.n_next)])
        if "__class__" in info.slot_names[info.free_start :]:
            self.free_names += ("__class__",)
        instruction = info.instructions[point.index]
        if outcomes and instruction.op in _FREE and instruction.arg >= info.free_start:
            name = info.slot_names[instruction.arg]
            if name not in self.free_names:
                self.free_names += (name,)

    def spliced(
        self, name: str, globals: dict[str, Any], instruction: Instruction,
        parts: tuple[bytes, ...], target: int, **details: Any,
    ) -> FunctionType:  # fmt: skip
        """The function with these parts in front: the prefix, the operation, what follows it.

        What the operation raises goes to the unit ``target``, counted from the original's first.
        """
        handler, entries = self.handler, []
        if handler is not None and parts[1]:
            # What a call raises that has no C frame counts, in 3.13, for the unit before it.
            parts = (parts[0], emit("NOP") + parts[1], *parts[2:])
        head = b"".join(parts)
        start, units, shift = [len(part) // 2 for part in (*parts[:2], head)]
        if handler is not None and units:
            entries.append(Entry(start, units, shift + target, handler.depth, handler.push_lasti))
        lines = _lines(instruction, self.info.code, start, shift)
        return self.function(name, globals, _Head(head, entries, lines), **details)

    def restore_state(self) -> bytes:
        """The prefix: from arguments to the frame's slots and stack."""
        info, point = self.info, self.point
        units = []
        if info.cell_slots:
            declarations = b"".join([emit("MAKE_CELL", slot) for slot in sorted(info.cell_slots)])
            units += [emit("JUMP_FORWARD", len(declarations) // 2), declarations]
        for index in range(self.n_next):  # empty, so that `locals()` does not show it
            units.append(emit("MAKE_CELL", self.n_slots + index))
        for index, name in enumerate(self.free_names[self.n_next :], self.n_slots + self.n_next):
            units.append(emit("LOAD_FAST", info.slot_names.index(name, info.free_start)))
            units.append(emit("STORE_FAST", index))
        n_original = len(info.slot_names)
        for slot in range(n_original):
            if slot not in point.bound:
                units.append(emit("DELETE_FAST", slot))
        parameter = n_original
        exc_slots, nulls = point.exc_slots, point.nulls
        for position in range(point.depth):
            if position in nulls:
                units.append(emit("PUSH_NULL"))
                continue
            units.append(emit("LOAD_FAST", parameter))
            units.append(emit("DELETE_FAST", parameter))
            if position in exc_slots:  # enter the handler: saves the state outside of it here
                units.append(emit("PUSH_EXC_INFO"))
                units.append(emit("POP_TOP"))
            parameter += 1
        if info.instructions[point.index].op == "POP_EXCEPT" and point.depth - 1 not in exc_slots:
            # It pops a *copy* of the innermost saved state; the one saved here is the right one.
            units.append(emit("POP_TOP") + emit("COPY", point.depth - 1 - exc_slots[-1]))
        # Debuggers are told of the call here: before, looking at the slots would crash.
        units.append(emit("RESUME"))
        return b"".join(units)

    def copy(self, instruction: Instruction) -> bytes:
        """The bytes that do what the instruction does, without the jump when it is conditional."""
        if instruction.target >= 0:
            return b""
        part = self.info.parts.get(instruction.index)
        if part is not None:
            return emit_all(part.alone)
        if instruction.op in _FREE and instruction.arg >= self.info.free_start:
            place = self.free_names.index(self.info.slot_names[instruction.arg])
            return emit(instruction.op, self.n_slots + place)
        return self.info.code.co_code[instruction.offset : instruction.end]

    def call_thunk(self, instruction: Instruction) -> bytes:
        """Call the thunk; leave on the stack what the instruction would leave there."""
        thunk = emit("LOAD_FAST", self.thunk_slot) + emit("DELETE_FAST", self.thunk_slot)
        units = emit_callable(thunk) + emit_call(0)
        if instruction.op == "LOAD_METHOD":
            return units + emit("PUSH_NULL") + emit("SWAP", 2)
        pushes = self.info.depth[self.point.index + 1] > self.point.depth
        return units if pushes or instruction.target >= 0 else units + emit("POP_TOP")

    def call_handed(self, instruction: Instruction, constant: int) -> bytes:
        """A call after which the function that is called is the only one to hold its arguments, as
        in plain Python: under a frame hook, CPython keeps them on the caller's stack."""
        count, nulls = instruction.arg, self.point.nulls
        bottom = self.point.depth - count - 2
        function, names = emit("LOAD_CONST", constant), emit("LOAD_CONST", constant + 1)
        if bottom + 1 in nulls:  # the callable, NULL, the arguments
            made = (("BUILD_TUPLE", count), ("SWAP", 3), ("BUILD_LIST", 1), ("SWAP", 3))
            units = emit_all((*made, ("LIST_EXTEND", 2))) + function + emit("SWAP", 3)
        elif bottom in nulls:
            units = emit("BUILD_LIST", count + 1) + function + emit("SWAP", 2)
        else:
            units = emit("BUILD_LIST", count + 2) + emit_callable(function)
            units += emit("SWAP", 2) + emit("SWAP", 3)
        return units + names + emit_call(2)

    def load_special(self, instruction: Instruction, constant: int) -> bytes:
        """The method and NULL, whether CPython binds it or leaves that to the call."""
        units = emit("LOAD_SPECIAL", instruction.arg) + emit("LOAD_CONST", constant)
        return units + emit("SWAP", 3) + emit_call(1) + emit("PUSH_NULL")

    def hand_over(self, outcome: FramePoint, next_index: int, tail_constant: int) -> bytes:
        """The epilogue of one outcome: pack the state, return ``tail(next, *state)``."""
        none_constant = tail_constant + 1
        exc_slots = outcome.exc_slots
        units = []
        for position in reversed(range(outcome.depth)):
            temporary = self.n_parameters + position
            if position in exc_slots:
                # Leave the handler, keeping the exception that it handles: entering a dummy
                # handler pushes that exception, leaving it restores the state saved outside.
                units += [emit("LOAD_CONST", none_constant), emit("PUSH_EXC_INFO")]
                units += [emit("POP_TOP"), emit("STORE_FAST", temporary), emit("POP_EXCEPT")]
            else:
                units.append(emit("STORE_FAST", temporary))
        for index in range(len(self.free_names)):
            units.append(emit("DELETE_FAST", self.n_slots + index))
        units.append(emit("COPY_FREE_VARS", len(self.free_names)))
        units.append(emit_callable(emit("LOAD_CONST", tail_constant)))
        units.append(emit("LOAD_DEREF", self.n_slots + next_index))
        bound, cell_slots = outcome.bound, self.info.cell_slots
        for slot in range(len(self.info.slot_names)):
            if slot in bound:
                units.append(emit("LOAD_FAST", slot))
            else:
                units.append(emit("LOAD_CONST", none_constant))
        for position in outcome.stack_positions:
            units.append(emit("LOAD_FAST", self.n_parameters + position))
        units.append(emit_call(1 + outcome.arity))
        # The frame may live on in a traceback: it must not keep what the function may let go.
        for position in outcome.stack_positions:
            units.append(emit("DELETE_FAST", self.n_parameters + position))
        if outcome == caught(self.point):
            units += [emit("DELETE_FAST", slot) for slot in sorted(bound - cell_slots)]
        units.append(emit("RETURN_VALUE"))
        return b"".join(units)

    def function(
        self,
        name: str,
        globals: dict[str, Any],
        head: _Head,
        *,
        stack_size: int,
        constants: tuple[Any, ...],
        next_cells: Sequence[CellType],
    ) -> FunctionType:
        """The function of ``head`` followed by the original code."""
        info = self.info
        code = info.code
        shift = len(head.code) // 2
        cells = [info.slot_names[slot] for slot in sorted(info.cell_slots)]
        added = [f"fj:stack {index}" for index in range(self.n_slots - len(info.slot_names))]
        spliced = code.replace(
            co_code=head.code + code.co_code,
            co_argcount=self.n_parameters,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_nlocals=self.n_slots,
            co_varnames=(*info.slot_names, *added),
            co_cellvars=tuple(cells),
            co_freevars=self.free_names,
            co_consts=constants,
            co_flags=code.co_flags & ~_DROPPED_FLAGS,
            co_stacksize=stack_size,
            co_linetable=head.lines + code.co_linetable,
            co_exceptiontable=exception_table.encode(
                head.entries + [entry.moved(shift) for entry in info.exception_entries]
            ),
        )
        # The cell of `__class__` is put into its slot by the prefix, not taken from the closure.
        closure = (*next_cells, *[CellType() for _ in self.free_names[len(next_cells) :]])
        return FunctionType(spliced, globals, name, None, closure or None)
