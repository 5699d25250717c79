"""Stack depths and live handlers of every instruction, found by walking the control flow once.

In: canonical instructions with their stack effects and handlers. Out: the depth before each
instruction and the stack positions that hold saved exception states. Next room: interpreter, which
trusts both, and continuations.
"""

from __future__ import annotations

from framejit.bytecode.instruction_set import ENDS_FLOW
from framejit.bytecode.model import CodeInfo, Handler, Instruction

#: Exceptions that tell a loop to end.
_SIGNALS = frozenset({"StopIteration", "StopAsyncIteration", "GeneratorExit"})


def analyse(
    instructions: list[Instruction],
    effects: list[tuple[int, int]],
    handlers: list[Handler | None],
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return ``(depth, exc_slots)``, both per instruction index; see `CodeInfo`.

    ``effects`` holds the stack effect per index: of going on, and of jumping.
    Raises ValueError when two ways to an instruction disagree on the depth (no compiler's output).
    """
    depths = [-1] * len(instructions)
    exc_slots: list[tuple[int, ...]] = [()] * len(instructions)
    work: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    while work:
        index, depth, saved = work.pop()
        while depths[index] < 0:
            depths[index] = depth
            exc_slots[index] = saved
            handler = handlers[index]
            if handler is not None and depths[handler.target] < 0:
                outer = tuple([position for position in saved if position < handler.depth])
                work.append((handler.target, handler.depth + handler.push_lasti + 1, outer))
            instruction = instructions[index]
            op = instruction.op
            if op == "JUMP":
                index = instruction.target
                continue
            if op in ENDS_FLOW:
                break
            fall, jump = effects[index]
            if op == "PUSH_EXC_INFO":
                saved = (*saved, depth - 1)
            elif op == "POP_EXCEPT":
                saved = saved[:-1]
            elif op == "SWAP" and saved:
                # `return` inside a handler moves the saved state above the returned value.
                top, other = depth - 1, depth - instruction.arg
                exchanged = {top: other, other: top}
                saved = tuple([exchanged.get(position, position) for position in saved])
            elif instruction.target >= 0:
                work.append((instruction.target, depth + jump, saved))
            depth += fall
            index += 1
        else:
            if depths[index] != depth:
                raise ValueError(f"instruction {index}: stack depth {depths[index]} or {depth}")
    return depths, exc_slots


def usual_truth(info: CodeInfo, index: int) -> bool | None:
    """Of the condition of the jump at ``index``: the truth value that does not end in an error of
    the program, if the other one always does."""
    instruction = info.instructions[index]
    jumps, goes_on = _always_raises(info, instruction.target), _always_raises(info, index + 1)
    if jumps is goes_on or instruction.op not in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
        return None
    return jumps is not (instruction.op == "POP_JUMP_IF_TRUE")


def _always_raises(info: CodeInfo, start: int) -> bool:
    """Does every way from here end in ``raise``, without a loop and in no handler?"""
    seen: set[int] = set()
    work = [start]
    while work:
        index = work.pop()
        if index in seen:
            continue
        seen.add(index)
        instruction = info.instructions[index]
        op = instruction.op
        signal = op == "LOAD_GLOBAL" and instruction.value in _SIGNALS
        if signal or op in ("RETURN_VALUE", "RERAISE", "YIELD_VALUE", "FOR_ITER"):
            return False
        if 0 <= instruction.target <= index:
            return False
        if op == "RAISE_VARARGS":
            if instruction.arg == 0:
                return False
            continue
        if instruction.target >= 0:
            work.append(instruction.target)
        if op != "JUMP":
            work.append(index + 1)
    return True


def handler_of_program(info: CodeInfo, index: int) -> int:
    """Where the handler around ``index`` starts; -1 if there is none. (That of a comprehension that
    is part of the code only puts variables back.)"""
    handler = info.handlers[index]
    while handler is not None and info.instructions[handler.target].op == "SWAP":
        handler = info.handlers[handler.target]
    return -1 if handler is None else handler.target


def only_passes_through(info: CodeInfo, index: int) -> bool:
    """Would an exception at ``index`` meet nothing but ``with`` blocks in this frame?"""
    start = handler_of_program(info, index)
    return start < 0 or info.instructions[start + 1].op == "WITH_EXCEPT_START"


def may_be_caught(info: CodeInfo, index: int) -> bool:
    """May this frame go on after an exception at ``index``? (What ``with`` blocks and ``finally``
    do with it ends in raising it again.)"""
    start = handler_of_program(info, index)
    while start >= 0:
        if info.instructions[start].op == "PUSH_EXC_INFO" and _goes_on(info, start):
            return True
        start = _handler_outside(info, start)
    return False


def _goes_on(info: CodeInfo, start: int) -> bool:
    """Does the handler that starts there come to an end at which the exception is forgotten?"""
    code = info.instructions
    if code[start + 1].op == "WITH_EXCEPT_START":
        return False
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        index = waiting.pop()
        if index in seen or index >= len(code):
            continue
        seen.add(index)
        op, target = code[index].op, code[index].target
        if op == "POP_EXCEPT":
            return True
        if target >= 0:
            waiting.append(target)
        if op != "JUMP" and op not in ENDS_FLOW:
            waiting.append(index + 1)
    return False


def _handler_outside(info: CodeInfo, start: int) -> int:
    """Where the handler around another one starts; -1 if there is none. (In between is what takes
    back that an exception is being handled.)"""
    handler = info.handlers[start]
    while handler is not None and info.instructions[handler.target].op != "PUSH_EXC_INFO":
        handler = info.handlers[handler.target]
    return -1 if handler is None else handler.target


#: What they put on the stack is never NotImplemented: operators turn that into a TypeError.
_NEVER_DECLINES = (
    "BINARY_OP", "COMPARE_OP", "UNARY_", "BUILD_", "CONTAINS_OP", "IS_OP", "LOAD_CONST",
    "FORMAT_VALUE", "LIST_TO_TUPLE",
)  # fmt: skip


def never_declines(info: CodeInfo) -> bool:
    """Does every ``return`` come right after something that cannot give NotImplemented?"""
    targets = {instruction.target for instruction in info.instructions}
    return all(
        info.instructions[i - 1].op.startswith(_NEVER_DECLINES) and i not in targets
        for i, instruction in enumerate(info.instructions)
        if instruction.op == "RETURN_VALUE" and info.depth[i] >= 0
    )
