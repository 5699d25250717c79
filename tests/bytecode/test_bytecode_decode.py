"""Decoding: against `dis`, against the compiler's stack sizes, against CPython's own behaviour."""

from __future__ import annotations

import dis
import gc
import importlib.util
import types
import weakref

import pytest
from bytecode_machine import Machine
from bytecode_programs import LOG, PROGRAMS, load

from framejit.bytecode import OPCODES, decode
from framejit.bytecode.exception_table import encode, parse
from framejit.bytecode.release import tables
from framejit.bytecode.units import PIECES

MODULES = """argparse ast asyncio.base_events asyncio.streams contextlib dataclasses decimal inspect
    logging pickle re._parser subprocess tarfile typing unittest.mock zipfile""".split()

FOLDED = {"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL", "KW_NAMES", "END_FOR",
          "NOT_TAKEN"}  # fmt: skip
#: With them start handlers that are no program's.
OWN = {"CLEANUP_THROW", "STOPITERATION_ERROR"}
#: They are one instruction with the unit before them, or with that after them.
JOINED = {"CALL_KW", "SET_FUNCTION_ATTRIBUTE", "LOAD_FROM_DICT_OR_DEREF", "TO_BOOL",
          "LOAD_LOCALS", "LOAD_CONST", "MAKE_FUNCTION", "PUSH_NULL"}  # fmt: skip


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def module_codes(name):
    path = importlib.util.find_spec(name).origin
    with open(path, encoding="utf8") as file:
        return list(code_objects(compile(file.read(), path, "exec")))


def same_value(instruction, raw, keywords):
    """What `dis` says about the operand of ``raw``, in canonical form."""
    op, value = instruction.op, instruction.value
    if op == "CALL":
        return instruction.arg == raw.arg and value == keywords
    if op == "LOAD_GLOBAL":
        return value == raw.argrepr.removeprefix("NULL + ").removesuffix(" + NULL")
    if op == "BINARY_OP":
        return raw.argrepr == value + ("=" if instruction.arg else "")
    if op == "COMPARE_OP":
        return raw.argrepr in (value, f"bool({value})")
    if op == "LOAD_CONST":
        return value is raw.argval
    if op == "LOAD_COMMON_CONSTANT":
        return value.__name__ in raw.argrepr
    if op == "CALL_FUNCTION_EX" and raw.arg is None:
        return instruction.arg == (instruction.offset == raw.offset)
    if value is not None:
        return value in raw.argrepr
    if tables.OPERAND_KIND[raw.opcode] == PIECES or raw.opname in JOINED:
        return True
    if instruction.target >= 0 or raw.arg is None:
        return instruction.arg == 0
    return instruction.arg == raw.arg


def keywords_of(code, raws):
    """The names of keywords by the offset of the call, whatever says them before it."""
    found, named, constant = {}, (), None
    for raw in raws:
        if raw.opname == "KW_NAMES":
            named = code.co_consts[raw.arg]
        elif raw.opname == "LOAD_CONST":
            constant = raw.argval
        elif raw.opname == "CALL":
            found[raw.offset], named = named, ()
        elif raw.opname == "CALL_KW":
            found[raw.offset] = constant
    return found


@pytest.mark.parametrize("module", MODULES)
def test_agrees_with_dis_and_stack_size(module):
    for code in module_codes(module):
        info = decode(code)
        # One more where a constant is returned by one unit.
        assert max(info.depth) <= code.co_stacksize + ("RETURN_CONST" in dis.opmap)
        raws = list(dis.get_instructions(code))
        last = {}  # the unit that ends at an offset
        for raw in raws:
            last[raw.offset + 2 + 2 * tables.CACHE_UNITS[raw.opcode]] = raw
        keywords = keywords_of(code, raws)
        met = {instruction.end for instruction in info.instructions}
        for end, raw in last.items():
            assert end in met or raw.opname in FOLDED | JOINED, raw
        for index, instruction in enumerate(info.instructions):
            raw = last[instruction.end]
            assert instruction.op in OPCODES
            assert instruction.index == index
            assert instruction.offset <= raw.offset < instruction.end
            first = info.index_of[instruction.offset]
            assert first <= index and info.instructions[first].offset == instruction.offset
            assert instruction.positions == tuple(raw.positions)
            assert same_value(instruction, raw, keywords.get(raw.offset)), (instruction, raw)
            if raw.opcode in dis.hasjrel:
                target = info.instructions[instruction.target]
                start = raw.argval + 2 * tables.SKIPPED.get(instruction.op, 0)
                # Only units without effect lie between the byte that is meant and the unit.
                skipped = [r.opname for r in raws if start <= r.offset < target.offset]
                assert target.offset >= start or target.op in tables.JOINED | {"CALL"}
                assert set(skipped) <= FOLDED
            else:
                assert instruction.target == -1


@pytest.mark.parametrize("module", MODULES)
def test_units_and_handlers_cover_the_code(module):
    for code in module_codes(module):
        info = decode(code)
        table = parse(code.co_exceptiontable)
        assert encode(table) == code.co_exceptiontable
        for before, after in zip(info.instructions, info.instructions[1:], strict=False):
            same_unit = (before.offset, before.end) == (after.offset, after.end)
            assert before.end <= after.offset or same_unit
        for instruction, handler in zip(info.instructions, info.handlers, strict=True):
            part = info.parts.get(instruction.index)
            if part is not None and part.lead == (("TO_BOOL", 0),):  # as the comparison before it
                instruction = info.instructions[instruction.index - 1]
            unit = instruction.offset // 2
            entries = [e for e in table if e.start <= unit < e.start + e.length]
            while entries and info.instructions[info.index_of[2 * entries[0].target]].op in OWN:
                unit = entries[0].target  # CPython's own handler: that around it counts
                entries = [e for e in table if e.start <= unit < e.start + e.length]
            if handler is None:
                assert not entries
                continue
            (entry,) = entries
            assert info.index_of[2 * entry.target] == handler.target
            assert (handler.depth, handler.push_lasti) == (entry.depth, entry.push_lasti)
            if info.depth[instruction.index] >= 0:
                expected = handler.depth + handler.push_lasti + 1
                assert info.depth[handler.target] == expected
                assert info.depth[instruction.index] >= handler.depth


def test_slots():
    def outer(cell_argument, a, /, b, *rest, c, **others):
        local = cell_argument
        own_cell = 1

        def inner():
            return own_cell, cell_argument, inner

        return inner

    info = decode(outer.__code__)
    arguments = ("cell_argument", "a", "b", "c", "rest", "others")
    assert info.slot_names[:7] == (*arguments, "local")
    assert set(info.slot_names[7:]) == {"inner", "own_cell"}
    assert info.n_args == 6
    assert {info.slot_names[slot] for slot in info.cell_slots} == {
        *("cell_argument", "own_cell", "inner"),
    }
    assert info.free_start == len(info.slot_names)
    assert not info.is_generator
    assert [i.op for i in info.instructions[: info.body_start]] == ["MAKE_CELL"] * 3
    free = decode(next(c for c in outer.__code__.co_consts if isinstance(c, types.CodeType)))
    assert free.free_start == 0
    assert free.cell_slots == {0, 1, 2}


def test_generator():
    def generator(n):
        yield from range(n)

    info = decode(generator.__code__)
    assert info.is_generator
    unreached = {i.op for i, depth in zip(info.instructions, info.depth, strict=True) if depth < 0}
    assert unreached <= {*OWN, "END_SEND", "RERAISE", "JUMP"}
    assert info.handlers == [None] * len(info.handlers)


def test_cache_is_by_identity_and_weak():
    source = "def f():\n    return 1\n"
    spaces = {}, {}
    for space in spaces:
        exec(source, space)
    first, second = (space["f"].__code__ for space in spaces)
    assert first == second
    assert decode(first) is decode(first)
    assert decode(first) is not decode(second)
    info = decode(first)
    dead = weakref.ref(first)
    assert info.code is first
    spaces[0].clear()
    del first
    gc.collect()
    assert dead() is None
    with pytest.raises(ReferenceError):
        info.code


def test_specialised_code_decodes_the_same():
    def hot(a):
        s = 0
        for i in range(a):
            s += i
        return s

    before = [str(i) for i in decode(hot.__code__).instructions]
    for _ in range(100):
        hot(20)
    copy = hot.__code__.replace()
    assert [str(i) for i in decode(copy).instructions] == before


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreting_decoded_code_is_the_same_as_running_it(name):
    function, args, kwargs = load(name)
    expected = outcome(lambda: function(*args, **kwargs))
    function, args, kwargs = load(name)
    machine = Machine(function, args, kwargs)
    assert outcome(machine.run) == expected


def outcome(run):
    try:
        result = ("returned", run())
    except Exception as error:
        result = ("raised", type(error), str(error))
    return result, list(LOG)


def test_every_opcode_is_met():
    """The programs and modules above contain (nearly) every opcode of the release."""
    met = set()
    for module in MODULES:
        for code in module_codes(module):
            met |= {i.op for i in decode(code).instructions}
    for function, _, _ in PROGRAMS.values():
        met |= {i.op for i in decode(function.__code__).instructions}
    assert met <= OPCODES
    missing = OPCODES - met
    rare = """BUILD_INTERPOLATION BUILD_TEMPLATE CALL_INTRINSIC_1 CALL_INTRINSIC_2 LOAD_LOCALS
        LOAD_FROM_DICT_OR_GLOBALS TO_BOOL
        LOAD_FROM_DICT_OR_DEREF ASYNC_GEN_WRAP CHECK_EG_MATCH DELETE_DEREF DELETE_GLOBAL GET_AITER
        END_ASYNC_FOR GET_ANEXT IMPORT_STAR LOAD_CLASSDEREF MATCH_CLASS MATCH_KEYS MATCH_MAPPING
        PREP_RERAISE_STAR PRINT_EXPR SETUP_ANNOTATIONS SET_UPDATE UNPACK_EX"""
    assert missing <= set(rare.split())
