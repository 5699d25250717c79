"""What a code object looks like to every other room: plain instructions, no release differences.

In: nothing. Out: `Instruction` (one canonical operation), `CodeInfo` (a decoded code object with
its stack depths and handlers) and `code_hash`. Opcode names are canonical: the same program decodes
to the same operations on every supported Python release as far as its compiler allows.
Next room: interpreter.
"""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

from framejit.bytecode.exception_table import Entry

Positions = tuple[int | None, int | None, int | None, int | None]
#: File, function, positions.
Place = tuple[str, str, Positions]


class Handler(NamedTuple):
    """Where an exception goes: unwind the stack to ``depth``, push, continue at ``target``.

    ``push_lasti`` says whether the raising instruction's offset is pushed before the exception.
    """

    target: int
    depth: int
    push_lasti: bool


@dataclass(slots=True, eq=False)
class Instruction:
    """One canonical operation of a code object.

    ``arg`` is the operand: a count, a flag, or a slot index; 0 where the operation has none.
    ``value`` is what the operand means: the constant, the name, the operator's text, the
    keyword names of a call (a tuple, maybe empty).
    ``target`` is the *index* of the instruction that a jump goes to, else -1.
    ``offset`` and ``end`` are byte offsets in ``co_code``: the first code unit (prefixes included)
    and the one after the last (caches included). A unit may stand for several instructions, which
    then have the same offsets (see `Part`).
    ``line`` is the source line; where the compiler gave none, the line of the instruction before.

    ``CALL`` pops ``arg`` + 2 values: two for the callable (the callable and NULL, in the order of
    the release, or an unbound method and ``self``), then the arguments, of which the last
    ``len(value)`` are keywords.
    ``LOAD_GLOBAL`` pushes NULL below the value when ``arg`` is 1; ``BINARY_OP`` is in-place when
    ``arg`` is 1; ``IS_OP`` and ``CONTAINS_OP`` are negated when ``arg`` is 1.
    """

    op: str
    arg: int
    value: Any
    target: int
    offset: int
    end: int
    line: int
    positions: Positions
    index: int

    @property
    def place(self) -> Positions:
        """What a traceback shows of it."""
        return self.positions if self.positions[0] is not None else (self.line, None, None, None)

    def __str__(self) -> str:
        target = f" -> {self.target}" if self.target >= 0 else ""
        value = "" if self.value is None else f" {self.value!r}"
        return f"{self.index}: {self.op} {self.arg}{value}{target}"


class Part(NamedTuple):
    """How an instruction is executed that is not just the bytes from ``offset`` to ``end``.

    ``alone`` are units (names and operands) that execute it and nothing else. A frame goes on
    before it with the units ``lead``, then at the byte offset ``goes_on``.
    """

    alone: tuple[tuple[str, int], ...]
    lead: tuple[tuple[str, int], ...]
    goes_on: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class CodeInfo:
    """A decoded code object. Made by `framejit.bytecode.decode.decode`; never changed.

    ``slot_names`` are the frame's slots in order: local variables, cells that are not locals, free
    variables (from ``free_start`` on). The first ``n_args`` slots are the arguments, ``*args`` and
    ``**kwargs`` included. ``cell_slots`` are the slots that hold cell objects; while a
    comprehension runs that is part of the function's code, one may hold a variable of it instead.
    ``index_of`` maps the byte offset of every unit to the index of the instruction found there or,
    for units that do nothing, of the next one.
    Per instruction index: ``handlers`` (None: an exception leaves the frame), ``depth`` (stack
    depth before it, -1 when it cannot be reached), ``exc_slots`` (stack positions of saved
    exception states, one per handler that is being executed).
    ``body_start`` is the first index after the prologue that makes the cells;
    ``exception_entries`` is the parsed exception table, and ``parts`` holds what is special about
    an instruction, by index; only splices need them.
    """

    code_ref: weakref.ref[CodeType]
    instructions: list[Instruction]
    index_of: dict[int, int]
    slot_names: tuple[str, ...]
    n_args: int
    cell_slots: frozenset[int]
    free_start: int
    handlers: list[Handler | None]
    depth: list[int]
    exc_slots: list[tuple[int, ...]]
    is_generator: bool
    body_start: int
    exception_entries: list[Entry]
    parts: dict[int, Part]

    @property
    def code(self) -> CodeType:
        """The code object; only weakly owned, so that the decode cache does not keep it alive."""
        code = self.code_ref()
        if code is None:
            raise ReferenceError("the code object of this CodeInfo is gone")
        return code


def code_hash(code: CodeType) -> str:
    """A hash of what the code does: not of its file, its lines or its address."""
    known = _code_hashes.get(code)
    if known is None:
        text = repr(_code_content(code)).encode()
        known = _code_hashes[code] = hashlib.sha256(text).hexdigest()[:32]
    return known


#: Equal code objects have equal hashes, so the dict may find another one that is equal.
_code_hashes: weakref.WeakKeyDictionary[CodeType, str] = weakref.WeakKeyDictionary()


def _code_content(code: CodeType) -> tuple[Any, ...]:
    return (
        code.co_name, code.co_qualname, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_flags, code.co_code, code.co_exceptiontable, code.co_names,
        code.co_varnames, code.co_freevars, code.co_cellvars,
        tuple([_constant_content(constant) for constant in code.co_consts]),
    )  # fmt: skip


def _constant_content(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return code_hash(constant)
    if isinstance(constant, tuple):
        return "tuple", tuple([_constant_content(item) for item in constant])
    if isinstance(constant, frozenset):
        return "frozenset", sorted([repr(_constant_content(item)) for item in constant])
    return type(constant).__name__, repr(constant)
