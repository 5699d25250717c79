"""A place where execution can go on, and where one instruction leads from there.

In: a code object, an instruction index, and which slots and stack positions are empty. Out: the
layout of a continuation's parameters, and the points after the instruction. Static data only: the
values themselves travel as arguments. Next room: continuations, codegen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType

from framejit.bytecode.decode import decode
from framejit.bytecode.instruction_set import ENDS_FLOW, PART_OF_FRAME, Trait, having
from framejit.bytecode.model import CodeInfo

_BINDING, _UNBINDING = having(Trait.WRITES), having(Trait.UNBINDS)


@dataclass(frozen=True, slots=True, eq=False)
class FramePoint:
    """The static part of a frame's state before an instruction.

    ``bound`` holds the slots that have a value or a cell object. ``nulls`` holds the stack
    positions (0 is the bottom) that are NULL.
    ``explicit_depth``, unless -1, replaces the stack depth of the instruction: the state is then
    the one in the middle of it, when its operands have been consumed (see `build_break`).

    Points are equal when they are in the same (not an equal) code object with the same layout.
    """

    code: CodeType
    index: int
    bound: frozenset[int]
    nulls: frozenset[int] = frozenset()
    explicit_depth: int = -1
    info: CodeInfo = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", decode(self.code))

    @property
    def depth(self) -> int:
        """The stack depth; -1 where the instruction cannot be reached."""
        return self.explicit_depth if self.explicit_depth >= 0 else self.info.depth[self.index]

    @property
    def offset(self) -> int:
        """The byte offset of the instruction in ``co_code``."""
        return self.info.instructions[self.index].offset

    @property
    def exc_slots(self) -> tuple[int, ...]:
        """Stack positions of saved exception states, the outermost handler first.

        The argument for such a position is the exception that is being handled at that level.
        """
        depth = self.depth
        return tuple([slot for slot in self.info.exc_slots[self.index] if slot < depth])

    @property
    def stack_positions(self) -> tuple[int, ...]:
        """The stack positions that are passed as arguments, in order: all that are not NULL."""
        nulls = self.nulls
        return tuple([position for position in range(self.depth) if position not in nulls])

    @property
    def arity(self) -> int:
        """The number of parameters of a resume function: every slot, then the stack values."""
        return len(self.info.slot_names) + len(self.stack_positions)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FramePoint):
            return NotImplemented
        return self.code is other.code and self._layout() == other._layout()

    def __hash__(self) -> int:
        return hash((id(self.code), self._layout()))

    def _layout(self) -> tuple[int, frozenset[int], frozenset[int], int]:
        return self.index, self.bound, self.nulls, self.explicit_depth

    def __repr__(self) -> str:
        instruction = self.info.instructions[self.index]
        return f"<FramePoint {self.code.co_qualname}:{instruction.line} before {instruction}>"


def check(point: FramePoint, generator: bool = False) -> None:
    """Raise ValueError unless a continuation can be built for ``point``."""
    info = point.info
    if info.is_generator and not generator:
        raise ValueError("a generator's frame cannot be continued by a function")
    if not info.code.co_flags & 1:  # CO_OPTIMIZED
        raise ValueError("a module's or a class body's frame cannot be continued by a function")
    if point.index < info.body_start:
        raise ValueError("the frame has not made its cells yet: call the function itself")
    depth = point.depth
    if depth < 0:
        raise ValueError(f"unreachable: {point!r}")
    if any(position >= depth for position in point.nulls):
        raise ValueError(f"a NULL above the stack: {point!r}")


def successors(point: FramePoint) -> tuple[FramePoint | None, FramePoint | None]:
    """The points after the instruction at ``point``: when it goes on, and when it jumps.

    None where that cannot happen; an instruction that always raises or returns has no successor.
    Raises ValueError for instructions that cannot be executed apart from their frame.
    """
    check(point)
    info = point.info
    instruction = info.instructions[point.index]
    op, arg = instruction.op, instruction.arg
    depth = info.depth[point.index]
    if op in PART_OF_FRAME:
        raise ValueError(f"{op} cannot be executed apart from its frame")
    if point.depth != depth:
        raise ValueError("the operands of the instruction have been consumed already")
    if op in ENDS_FLOW and instruction.target < 0:
        return None, None
    bound, nulls = point.bound, point.nulls
    if op == "STORE_FAST" and depth - 1 in nulls:
        bound, nulls = bound - {arg}, nulls - {depth - 1}
    elif op in _BINDING:
        bound |= {arg}
    elif op in _UNBINDING:
        if op == "LOAD_FAST_AND_CLEAR" and arg not in bound:
            nulls |= {depth}
        bound -= {arg}
    elif op == "PUSH_NULL" or (op == "LOAD_GLOBAL" and arg):
        nulls |= {depth}
    elif op == "LOAD_METHOD":  # executed so that the layout is known: NULL, value
        nulls |= {depth - 1}
    elif op == "LOAD_SPECIAL":  # executed so that the layout is known: bound, NULL
        nulls |= {depth}
    elif op == "SWAP":
        top, other = depth - 1, depth - arg
        exchanged = {top: other, other: top}
        nulls = frozenset([exchanged.get(position, position) for position in nulls])
    elif op in ("CALL", "CALL_FUNCTION_EX"):
        # The NULL below the callable, if any, is where the result will be.
        result = info.depth[point.index + 1] - 1
        nulls = frozenset([position for position in nulls if position < result])
    elif op == "POP_TOP":  # in 3.14 also what `with` keeps beside its method
        nulls -= {depth - 1}
    fall = jump = None
    if op not in ENDS_FLOW:
        fall = FramePoint(point.code, _after_jumps(info, point.index + 1), bound, nulls)
    if instruction.target >= 0:
        jump = FramePoint(point.code, _after_jumps(info, instruction.target), bound, nulls)
    return fall, jump


def _after_jumps(info: CodeInfo, index: int) -> int:
    """Where the frame goes on without a condition: one continuation for all that jump there."""
    instructions, jumps = info.instructions, set[int]()
    while index < len(instructions) and instructions[index].op == "JUMP" and index not in jumps:
        jumps.add(index)
        index = instructions[index].target
    return index


def caught(point: FramePoint) -> FramePoint | None:
    """Where the frame goes on, with the exception on the stack, when the instruction raises; None
    where it is left then."""
    handler = point.info.handlers[point.index]
    if handler is None:
        return None
    nulls = frozenset([position for position in point.nulls if position < handler.depth])
    return FramePoint(point.code, handler.target, point.bound, nulls)


def leaves_result(point: FramePoint) -> bool:
    """Does a call in place of the operation at ``point`` leave its result on top of the stack?

    Not where the result is dropped or tested by the instruction itself.
    """
    info, instruction = point.info, point.info.instructions[point.index]
    if instruction.target >= 0 or point.index + 1 >= len(info.depth):
        return False
    return instruction.op == "LOAD_METHOD" or info.depth[point.index + 1] == point.depth + 1


def successors_of_call(point: FramePoint) -> tuple[FramePoint | None, FramePoint | None]:
    """The same when the operation is replaced by a call without arguments (see `build_break`)."""
    check(point)
    info = point.info
    instruction = info.instructions[point.index]
    after = _after_jumps(info, point.index + 1)
    fall = FramePoint(point.code, after, point.bound, point.nulls)
    if instruction.op in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
        target = _after_jumps(info, instruction.target)
        jump = FramePoint(point.code, target, point.bound, point.nulls)
        if fall.depth == point.depth:
            return fall, jump
    elif instruction.op == "LOAD_METHOD":
        if fall.depth == point.depth + 2:
            nulls = point.nulls | {point.depth}
            return FramePoint(point.code, point.index + 1, point.bound, nulls), None
    elif instruction.target < 0 and instruction.op not in ENDS_FLOW | PART_OF_FRAME:
        if fall.depth in (point.depth, point.depth + 1):
            return fall, None
    raise ValueError(f"a call cannot stand for {instruction} at stack depth {point.depth}")
