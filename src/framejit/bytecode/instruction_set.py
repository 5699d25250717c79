"""The canonical instructions: operands, what they do to the stack, what they mean.

In: nothing. Out: `INSTRUCTIONS`, the one table that decoding, analysis, liveness, frame points and
the interpreter read; a module of tables per Python release says which units of its bytecode stand
for which of these. Next: the modules of this room.

The stack is written as in ``left right -- result``: what is taken, the top last, and what is put
there. ``name*arg`` are as many as the operand says. What an instruction leaves in place is not
mentioned. ``arg`` and ``value`` are those of `model.Instruction`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import NamedTuple


class Trait(enum.Flag):
    """What analyses ask about an instruction."""

    NONE = 0
    #: Never goes on to the next instruction.
    ENDS = enum.auto()
    #: Changes which exception is handled, or only makes sense at the start of a frame: it cannot be
    #: executed apart from its frame.
    FRAME = enum.auto()
    #: Stands before the first statement.
    PROLOGUE = enum.auto()
    #: Python does it on its own account; its line is that of something else.
    LINELESS = enum.auto()
    #: After it everything is held that was held before.
    KEEPS = enum.auto()
    #: The slot ``arg``: is looked at, gets a value, loses it.
    READS = enum.auto()
    WRITES = enum.auto()
    UNBINDS = enum.auto()


class Opcode(NamedTuple):
    """One row. ``taken`` and ``put`` are for what the text cannot say: how many for an operand."""

    stack: str
    meaning: str
    traits: Trait = Trait.NONE
    #: The stack when it jumps; empty if it does not, or the same.
    jump: str = ""
    taken: Callable[[int], int] | None = None
    put: Callable[[int], int] | None = None


_ENDS, _FRAME, _KEEPS = Trait.ENDS, Trait.FRAME, Trait.KEEPS
_START = Trait.PROLOGUE | Trait.LINELESS
_READS, _WRITES, _UNBINDS = Trait.READS, Trait.WRITES, Trait.UNBINDS

INSTRUCTIONS: dict[str, Opcode] = {
    # -- variables; arg: the slot, value: the name -------------------------------------------------
    "LOAD_FAST": Opcode("-- value", "a local variable", _READS | _KEEPS),
    "STORE_FAST": Opcode("value --", "assign to a local variable; NULL: it has no value", _WRITES),
    "DELETE_FAST": Opcode("--", "delete a local variable", _READS | _UNBINDS),
    "LOAD_CONST": Opcode("-- value", "the constant `value`", _KEEPS),
    "LOAD_FAST_AND_CLEAR": Opcode("-- value", "a local variable, or NULL; it has no value after it",
                                  _READS | _UNBINDS | _KEEPS),
    "LOAD_CLOSURE": Opcode("-- cell", "a cell", _READS),
    "LOAD_DEREF": Opcode("-- value", "what a cell holds", _KEEPS),
    "STORE_DEREF": Opcode("value --", "put into a cell"),
    "DELETE_DEREF": Opcode("--", "empty a cell"),
    "LOAD_CLASSDEREF": Opcode("-- value", "a name of a class body, or what a cell holds"),
    "LOAD_LOCALS": Opcode("-- names", "the names of a class body"),
    "LOAD_FROM_DICT_OR_DEREF": Opcode("names -- value", "a name, or what a cell holds"),
    "LOAD_FROM_DICT_OR_GLOBALS": Opcode("names -- value", "a name, a global or a builtin"),
    "LOAD_GLOBAL": Opcode(
        "-- null? value", "a global; NULL below it if arg is 1", _KEEPS, put=lambda arg: 1 + arg
    ),
    "STORE_GLOBAL": Opcode("value --", "assign to a global"),
    "DELETE_GLOBAL": Opcode("--", "delete a global"),
    "LOAD_NAME": Opcode("-- value", "a name of a class body, a global or a builtin"),
    "STORE_NAME": Opcode("value --", "assign to a name of a class body"),
    "DELETE_NAME": Opcode("--", "delete a name of a class body"),
    "SETUP_ANNOTATIONS": Opcode("--", "make `__annotations__`, if there is none"),
    "MAKE_CELL": Opcode("--", "make the cell of a slot", _READS | _WRITES | _START | _KEEPS),
    "COPY_FREE_VARS": Opcode("--", "put arg cells into their slots", _FRAME | _START | _KEEPS),
    # -- the stack ---------------------------------------------------------------------------------
    "POP_TOP": Opcode("value --", "drop the top"),
    "PUSH_NULL": Opcode("-- null", "for a call: there is no `self`", _KEEPS),
    "COPY": Opcode("-- value", "the value at position arg, from 1 at the top", _KEEPS),
    "SWAP": Opcode("--", "exchange the top and position arg", _KEEPS),
    # -- attributes and items; value: the name -----------------------------------------------------
    "LOAD_ATTR": Opcode("owner -- value", "`owner.name`"),
    "LOAD_METHOD": Opcode("owner -- method owner", "`owner.name` to be called: unbound with its "
                          "owner, or NULL and the value"),
    "LOAD_ATTR_TO_CALL": Opcode("owner -- value", "the same, without what is below or above it"),
    "CALL_SUPER": Opcode("function class owner -- super", "`super(class, owner)`, or `super()` if "
                         "arg is 0; `super` may be any function"),
    "STORE_ATTR": Opcode("value owner --", "`owner.name = value`"),
    "DELETE_ATTR": Opcode("owner --", "`del owner.name`"),
    "BINARY_SUBSCR": Opcode("owner key -- value", "`owner[key]`"),
    "STORE_SUBSCR": Opcode("value owner key --", "`owner[key] = value`"),
    "DELETE_SUBSCR": Opcode("owner key --", "`del owner[key]`"),
    # -- operators; value: the operator ------------------------------------------------------------
    "BINARY_OP": Opcode("left right -- result", "an operator; in place if arg is 1"),
    "COMPARE_OP": Opcode("left right -- result", "a comparison"),
    "IS_OP": Opcode("left right -- bool", "`is`; `is not` if arg is 1"),
    "CONTAINS_OP": Opcode("item container -- bool", "`in`; `not in` if arg is 1"),
    "UNARY_POSITIVE": Opcode("value -- result", "`+value`"),
    "UNARY_NEGATIVE": Opcode("value -- result", "`-value`"),
    "UNARY_INVERT": Opcode("value -- result", "`~value`"),
    "UNARY_NOT": Opcode("value -- bool", "`not value`"),
    "TO_BOOL": Opcode("value -- bool", "`bool(value)`"),
    # -- making containers and texts; arg: how many ------------------------------------------------
    "BUILD_TUPLE": Opcode("items*arg -- tuple", "a tuple", _KEEPS),
    "BUILD_LIST": Opcode("items*arg -- list", "a list", _KEEPS),
    "BUILD_SET": Opcode("items*arg -- set", "a set"),
    "BUILD_MAP": Opcode("pairs*2arg -- dict", "a dict of keys and values",
                        taken=lambda arg: 2 * arg),
    "BUILD_CONST_KEY_MAP": Opcode("values*arg keys -- dict", "a dict with a tuple of keys"),
    "BUILD_STRING": Opcode("texts*arg -- text", "joined texts"),
    "BUILD_TEMPLATE": Opcode("texts fields -- template", "a template string of two tuples"),
    "BUILD_INTERPOLATION": Opcode("value text format? -- field", "a field of a template string; "
                                  "arg & 1: with a format, arg >> 2: converted",
                                  taken=lambda arg: 2 + (arg & 1)),
    "BUILD_SLICE": Opcode("parts*arg -- slice", "a slice of two or three parts"),
    "FORMAT_VALUE": Opcode("value spec? -- text", "a field of an f-string; arg & 4: with a format, "
                           "arg & 3: converted by str, repr or ascii",
                           taken=lambda arg: 2 if arg & 4 else 1),
    "LIST_TO_TUPLE": Opcode("list -- tuple", "a list as a tuple"),
    "LIST_APPEND": Opcode("item --", "append to the list at position arg"),
    "LIST_EXTEND": Opcode("items --", "extend the list at position arg"),
    "SET_ADD": Opcode("item --", "add to the set at position arg"),
    "SET_UPDATE": Opcode("items --", "update the set at position arg"),
    "MAP_ADD": Opcode("key value --", "put into the dict at position arg"),
    "DICT_UPDATE": Opcode("mapping --", "update the dict at position arg"),
    "DICT_MERGE": Opcode("mapping --", "update the dict of keywords at position arg"),
    "UNPACK_SEQUENCE": Opcode("items -- item*arg", "exactly arg items, the first on top"),
    "UNPACK_EX": Opcode("items -- item* list item*", "items before and after a starred target: "
                        "arg & 255 and arg >> 8", put=lambda arg: (arg & 255) + 1 + (arg >> 8)),
    # -- calls and functions -----------------------------------------------------------------------
    "CALL": Opcode("callable*2 args*arg -- result", "a call; `value` names the last arguments",
                   taken=lambda arg: arg + 2),
    "CALL_FUNCTION_EX": Opcode("callable*2 args kwargs? -- result", "`f(*args, **kwargs)`; with "
                               "kwargs if arg is 1", taken=lambda arg: 3 + (arg & 1)),
    "MAKE_FUNCTION": Opcode("parts* code -- function", "a function; bits of arg: defaults, keyword "
                            "defaults, annotations, closure, what makes annotations",
                            taken=lambda arg: arg.bit_count() + 1),
    "LOAD_BUILD_CLASS": Opcode("-- function", "what `class` statements call"),
    "RETURN_VALUE": Opcode("value --", "return", _ENDS),
    # -- jumps; target: the index ------------------------------------------------------------------
    "JUMP": Opcode("--", "always", _ENDS | _KEEPS),
    "POP_JUMP_IF_TRUE": Opcode("value --", "if it is true"),
    "POP_JUMP_IF_FALSE": Opcode("value --", "if it is false"),
    "POP_JUMP_IF_NONE": Opcode("value --", "if it is None"),
    "POP_JUMP_IF_NOT_NONE": Opcode("value --", "if it is not None"),
    "JUMP_IF_TRUE_OR_POP": Opcode("value --", "if it is true; it stays then", jump="--"),
    "JUMP_IF_FALSE_OR_POP": Opcode("value --", "if it is false; it stays then", jump="--"),
    "GET_ITER": Opcode("iterable -- iterator", "`iter(iterable)`"),
    "FOR_ITER": Opcode("-- item", "the next item of the iterator below; jumps and drops it when "
                       "there is none", jump="iterator --"),
    # -- generators --------------------------------------------------------------------------------
    "RETURN_GENERATOR": Opcode("-- sent", "make the generator and return it; started with what "
                               "is sent", _START),
    "YIELD_VALUE": Opcode("value -- sent", "yield"),
    "GET_YIELD_FROM_ITER": Opcode("iterable -- iterator", "what `yield from` asks"),
    "SEND": Opcode("value -- yielded", "send to the iterator below; jumps with its result in their "
                   "place when it returns", jump="iterator value -- result"),
    "END_SEND": Opcode("receiver value -- value", "drop the iterator that has returned"),
    "CLEANUP_THROW": Opcode("receiver sent error -- none value", "the result of an iterator that "
                            "has returned when it was thrown into; raises again what is none"),
    "STOPITERATION_ERROR": Opcode("error -- error", "what leaves a generator for StopIteration"),
    # -- exceptions and `with` ---------------------------------------------------------------------
    "RAISE_VARARGS": Opcode("parts*arg --", "`raise`, with an exception, with a cause", _ENDS),
    "RERAISE": Opcode("exception --", "raise again; the line is at position arg", _ENDS),
    "PUSH_EXC_INFO": Opcode("exception -- previous exception", "a handler starts",
                            _FRAME | Trait.LINELESS),
    "POP_EXCEPT": Opcode("previous --", "a handler ends", _FRAME),
    "CHECK_EXC_MATCH": Opcode("exception classes -- exception bool", "`except classes`"),
    "CHECK_EG_MATCH": Opcode("group classes -- rest match", "`except* classes`"),
    "PREP_RERAISE_STAR": Opcode("group list -- exception", "what `except*` blocks left"),
    "LOAD_ASSERTION_ERROR": Opcode("-- class", "AssertionError"),
    "LOAD_COMMON_CONSTANT": Opcode("-- value", "the function or class `value`"),
    "BEFORE_WITH": Opcode("manager -- exit value", "`with`: the bound `__exit__`, what `__enter__` "
                          "returned"),
    "LOAD_SPECIAL": Opcode("owner -- method null", "a method of `with`, bound; `value`: its name"),
    "WITH_EXCEPT_START": Opcode("-- result", "call the `__exit__` at position 4 + arg with the "
                                "error"),
    # -- imports, patterns -------------------------------------------------------------------------
    "IMPORT_NAME": Opcode("level names -- module", "`import`"),
    "IMPORT_FROM": Opcode("-- value", "a name of the module below"),
    "IMPORT_STAR": Opcode("module --", "`from module import *`"),
    "GET_LEN": Opcode("-- length", "the length of the subject below"),
    "MATCH_MAPPING": Opcode("-- bool", "is the subject below a mapping?"),
    "MATCH_SEQUENCE": Opcode("-- bool", "is the subject below a sequence?"),
    "MATCH_KEYS": Opcode("-- values", "the values of the subject for the keys on top, or None"),
    "MATCH_CLASS": Opcode("subject class names -- attributes", "a tuple, or None; arg of them by "
                          "position"),
    "PRINT_EXPR": Opcode("value --", "what an interactive session does with an expression"),
    # -- type parameters, and what modules do ------------------------------------------------------
    "CALL_INTRINSIC_1": Opcode("value -- result", "a type parameter, `type`, `import *`"),
    "CALL_INTRINSIC_2": Opcode("first second -- result", "a type parameter with a bound"),
    # -- coroutines --------------------------------------------------------------------------------
    "GET_AWAITABLE": Opcode("value -- awaitable", "what `await` asks"),
    "GET_AITER": Opcode("value -- iterator", "`aiter(value)`"),
    "GET_ANEXT": Opcode("-- awaitable", "`anext()` of the iterator below"),
    "BEFORE_ASYNC_WITH": Opcode("manager -- exit awaitable", "`async with`"),
    "END_ASYNC_FOR": Opcode("iterator exception --", "the end of `async for`"),
    "ASYNC_GEN_WRAP": Opcode("value -- wrapped", "what an asynchronous generator yields"),
}  # fmt: skip


def having(*traits: Trait) -> frozenset[str]:
    """The opcodes with one of these traits."""
    wanted = functools.reduce(Trait.__or__, traits)
    return frozenset(name for name, row in INSTRUCTIONS.items() if row.traits & wanted)


#: They never go on to the next instruction.
ENDS_FLOW = having(Trait.ENDS)
#: They cannot be executed apart from their frame.
PART_OF_FRAME = having(Trait.FRAME)


@functools.cache
def stack_effect(op: str, arg: int) -> tuple[int, int]:
    """How the depth changes: when the instruction goes on, and when it jumps."""
    row = INSTRUCTIONS[op]
    fall = _change(row.stack, row, arg)
    return fall, _change(row.jump, row, arg) if row.jump else fall


def _change(text: str, row: Opcode, arg: int) -> int:
    taken, put = (part.split() for part in f" {text} ".split("--"))
    before = row.taken(arg) if row.taken is not None else _count(taken, arg)
    return (row.put(arg) if row.put is not None else _count(put, arg)) - before


def _count(names: list[str], arg: int) -> int:
    return sum(arg if name.endswith("*arg") else 1 for name in names)
