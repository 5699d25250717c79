"""Which slots the rest of a frame may still read: what a continuation has to be given.

In: a decoded code object and an instruction index. Out: the live slots there. Cells are always live
(closures may read them), and so is everything when the code may look at its own frame.
Next room: interpreter.
"""

from __future__ import annotations

import weakref
from types import CodeType

from framejit.bytecode.decode import decode
from framejit.bytecode.instruction_set import ENDS_FLOW, Trait, having
from framejit.bytecode.model import CodeInfo
from framejit.bytecode.release import tables

#: Names through which code can see all of its local variables.
_FRAME_READERS = frozenset({"locals", "vars", "eval", "exec", "dir", "_getframe", "breakpoint",
                            "set_trace"})  # fmt: skip
_WRITING, _READING = having(Trait.WRITES), having(Trait.READS)

_ASSIGN = frozenset({"STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR", "STORE_DEREF",
                     "DELETE_DEREF"})  # fmt: skip

_tables: weakref.WeakKeyDictionary[CodeInfo, list[frozenset[int]]] = weakref.WeakKeyDictionary()


def live_slots(info: CodeInfo, index: int) -> frozenset[int]:
    """The slots that may be read at or after instruction ``index``."""
    table = _tables.get(info)
    if table is None:
        table = _tables[info] = _analyse(info)
    return table[index]


def _analyse(info: CodeInfo) -> list[frozenset[int]]:
    instructions = info.instructions
    count = len(instructions)
    always = info.cell_slots
    names = info.code.co_names
    if _FRAME_READERS.intersection(names):
        return [frozenset(range(len(info.slot_names)))] * count
    if "super" in names and info.n_args:
        always = always | {0}  # zero-argument super() reads the first argument
    live: list[set[int]] = [set(always) for _ in range(count)]
    changed = True
    while changed:
        changed = False
        for i in range(count - 1, -1, -1):
            instruction = instructions[i]
            out: set[int] = set()
            if instruction.op not in ENDS_FLOW and i + 1 < count:
                out |= live[i + 1]
            if instruction.target >= 0:
                out |= live[instruction.target]
            if instruction.op in _WRITING:
                out.discard(instruction.arg)
            if instruction.op in _READING:
                out.add(instruction.arg)
            handler = info.handlers[i]
            if handler is not None:
                out |= live[handler.target]
            if not out <= live[i]:
                live[i] |= out
                changed = True
    return [frozenset(slots) for slots in live]


def _reachable(info: CodeInfo, index: int) -> set[int]:
    """The instructions that may run at or after instruction ``index``."""
    waiting, seen = [index], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(info.instructions):
            continue
        seen.add(at)
        instruction, handler = info.instructions[at], info.handlers[at]
        if instruction.op not in ENDS_FLOW:
            waiting.append(at + 1)
        waiting += [] if instruction.target < 0 else [instruction.target]
        waiting += [] if handler is None else [handler.target]
    return seen


def assigned_later(info: CodeInfo, index: int) -> set[int]:
    """The slots that the code at or after instruction ``index`` may assign to or delete."""
    instructions = [info.instructions[at] for at in _reachable(info, index)]
    return {instruction.arg for instruction in instructions if instruction.op in _ASSIGN}


def shares_locals(info: CodeInfo, index: int) -> bool:
    """May the dict that ``locals()`` gives at instruction ``index`` be given, or brought up to
    date, by the code after it, because a frame has one such dict?"""
    after = _reachable(info, index + 1) if tables.ONE_DICT_OF_LOCALS else ()
    return any(_reads_frame(info, at) for at in after)


def _reads_frame(info: CodeInfo, index: int) -> bool:
    name = info.instructions[index].value
    if type(name) is not str or name not in _FRAME_READERS:
        return False
    following = info.instructions[index + 1].op
    return name not in ("dir", "vars") or following == "CALL" or following.startswith("STORE")


def may_assign(info: CodeInfo, name: str, index: int = 0) -> bool:
    """May the code at or after instruction ``index``, or a function made in it, assign to this
    variable, which is a cell?"""
    if info.slot_names.index(name) in assigned_later(info, index):
        return True
    inner = [c for c in info.code.co_consts if isinstance(c, CodeType) and name in c.co_freevars]
    return any(may_assign(decode(code), name) for code in inner)
