"""Continuations: every program is left at every step and goes on natively, as if nothing had been.

The machine executes a program up to a step. From there it goes on in a resume function, or in a
chain of break functions, one per instruction. Result, log, exception and traceback must be those of
the plain run.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import random
import sys
import traceback

import bytecode_programs
import pytest
from bytecode_machine import _BINARY, _COMPARE, _INPLACE, NULL, Machine
from bytecode_programs import LOG, PROGRAMS, load
from test_bytecode_decode import MODULES, module_codes

from framejit.bytecode import decode
from framejit.bytecode.continuations import (
    build_break,
    build_resume,
    build_return,
    is_continuation,
    resume_point,
)
from framejit.bytecode.frame_point import FramePoint, caught, successors
from framejit.bytecode.release import tables

MAX_STEPS = 150  # per program; longer runs are sampled

# Without those that are slow, or behave differently while the caller handles an exception: a bare
# `raise` finds it, and CPython 3.11 then reports a repeated keyword argument as KeyError.
UNDER_A_HANDLER = sorted(
    PROGRAMS.keys() - {"raise_nothing", "call_duplicate_keyword", "many_locals", "very_long_jumps"}
)


class TailCall:
    def __init__(self, point, *state):
        self.point = point
        self.state = state


def describe(error):
    if error is None:
        return None
    return (
        type(error),
        str(error),
        describe(error.__cause__),
        describe(error.__context__),
        error.__suppress_context__,
    )


def outcome(run):
    """What a run did: result or exception, the log, and the program's own traceback entries."""
    handled = sys.exception()
    try:
        result = ("returned", run())
        lines = None
    except Exception as error:
        result = ("raised", describe(error))
        lines = [
            (entry.name, entry.lineno, entry.end_lineno, entry.colno, entry.end_colno)
            for entry in traceback.extract_tb(error.__traceback__)
            if entry.filename == bytecode_programs.__file__
        ]
    assert sys.exception() is handled
    return result, list(LOG), lines


def plain(name):
    function, args, kwargs = load(name)
    return outcome(lambda: function(*args, **kwargs))


def machine_at(name, steps):
    function, args, kwargs = load(name)
    machine = Machine(function, args, kwargs)
    machine.run(steps)
    return machine


def stops(name):
    """The numbers of steps to stop after: where a continuation can be built, sampled if many."""
    function, args, kwargs = load(name)
    machine = Machine(function, args, kwargs)
    found = []
    seen = {}
    steps = 0
    while not machine.finished:
        if machine.index >= machine.info.body_start:
            key = machine.index, machine.raised
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= 2:
                found.append(steps)
        try:
            machine.step()
        except Exception:
            break
        steps += 1
    if len(found) > MAX_STEPS:
        # Keep the ends, where most of the log is, and whatever is in a handler.
        chosen = random.Random(name).sample(found, MAX_STEPS - 40)
        found = sorted({*chosen, *found[:20], *found[-20:]})
    return found


def same(actual, expected, machine):
    # Exceptions that passed through the machine have its frames in their traceback, not ours.
    count = 2 if machine.raised else 3
    assert actual[:count] == expected[:count]


def while_handling(test, *args):
    """Run ``test`` while the caller handles an exception: it must stay the one handled."""
    try:
        raise OSError("outer")
    except OSError:
        test(*args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_resume_everywhere(name):
    resume_everywhere(name)


@pytest.mark.parametrize("name", UNDER_A_HANDLER)
def test_resume_everywhere_while_the_caller_handles_an_exception(name):
    while_handling(resume_everywhere, name)


def resume_everywhere(name):
    expected = plain(name)
    for steps in stops(name):
        machine = machine_at(name, steps)
        point = machine.point()
        function = build_resume(point, machine.globals)
        assert function.__name__ == f"__resume_at_{point.offset}"
        state = machine.state()
        assert len(state) == point.arity == function.__code__.co_argcount
        assert resume_point(function.__code__) is point
        machine.stack.clear()
        same(outcome(lambda: function(*state)), expected, machine)


class Chain:
    """A trampoline that breaks at every instruction; break functions are cached per point."""

    def __init__(self, globals, calls):
        self.globals = globals
        self.calls = calls
        self.functions = {}
        self.handled = sys.exception()

    def run(self, point, state):
        while True:
            op = point.info.instructions[point.index].op
            if op == "PUSH_EXC_INFO":
                point, state = push_exc_info(point, state)
            elif op == "POP_EXCEPT":
                point, state = pop_except(point, state)
            else:
                function, state = self.next_function(point, list(state))
                result = function(*state)
                assert sys.exception() is self.handled
                if not isinstance(result, TailCall):
                    return result
                point, state = result.point, result.state
            assert len(state) == point.arity

    def next_function(self, point, state):
        if self.calls:
            replaced = as_call(point, state)
            if replaced is not None:
                point, state = replaced
                return self.function(point, "call"), state
        return self.function(point, "instruction"), state

    def function(self, point, variant):
        found = self.functions.get((point, variant))
        if found is None:
            made = []

            def make_next(successor):
                made.append(successor)
                return successor

            found = build_break(point, self.globals, TailCall, make_next, variant)
            assert found.__code__.co_name == point.code.co_name
            assert found.__code__.co_qualname == point.code.co_qualname
            if variant == "instruction":
                wanted = (*successors(point), caught(point))
                assert made == [s for s in wanted if s is not None]
            self.functions[point, variant] = found
        return found


def push_exc_info(point, state):
    """[..., error] -> [..., saved, error]: the saved slot is passed as the error."""
    return FramePoint(point.code, point.index + 1, point.bound, point.nulls), [*state, state[-1]]


def pop_except(point, state):
    """The exception state is popped, or a copy of it: then the one below becomes a plain value."""
    state = list(state)
    slot = point.exc_slots[-1]
    if slot != point.depth - 1:
        state[len(point.info.slot_names) + point.stack_positions.index(slot)] = state[-1]
    return FramePoint(point.code, point.index + 1, point.bound, point.nulls), state[:-1]


OPERANDS = {
    "BINARY_OP": 2, "COMPARE_OP": 2, "BINARY_SUBSCR": 2, "LOAD_ATTR": 1, "LOAD_METHOD": 1,
    "LOAD_ATTR_TO_CALL": 1,
    "STORE_ATTR": 2, "STORE_SUBSCR": 3, "DELETE_SUBSCR": 2, "POP_JUMP_IF_TRUE": 1,
    "POP_JUMP_IF_FALSE": 1, "GET_ITER": 1, "UNARY_NOT": 1,
}  # fmt: skip


def set_item(value, container, key):
    container[key] = value


def delete_item(container, key):
    del container[key]


def operation(instruction):
    value, arg = instruction.value, instruction.arg
    return {
        "BINARY_OP": lambda: (_INPLACE if arg else _BINARY)[value],
        "COMPARE_OP": lambda: _COMPARE[value],
        "BINARY_SUBSCR": lambda: lambda container, key: container[key],
        "LOAD_ATTR": lambda: lambda owner: getattr(owner, value),
        "LOAD_METHOD": lambda: lambda owner: getattr(owner, value),
        "LOAD_ATTR_TO_CALL": lambda: lambda owner: getattr(owner, value),
        "STORE_ATTR": lambda: lambda new, owner: setattr(owner, value, new),
        "STORE_SUBSCR": lambda: set_item,
        "DELETE_SUBSCR": lambda: delete_item,
        "POP_JUMP_IF_TRUE": lambda: bool,
        "POP_JUMP_IF_FALSE": lambda: bool,
        "GET_ITER": lambda: iter,
        "UNARY_NOT": lambda: lambda operand: not operand,
    }[instruction.op]()


def as_call(point, state):
    """The point with the operands consumed and the state with a thunk, or None."""
    state = list(state)
    instruction = point.info.instructions[point.index]
    keywords = ()
    if instruction.op == "CALL":
        count = instruction.arg + 2
        keywords = instruction.value
    elif instruction.op in OPERANDS:
        count = OPERANDS[instruction.op]
    else:
        return None
    depth = point.depth - count
    operands = []
    for position in reversed(range(depth, point.depth)):
        operands.append(NULL if position in point.nulls else state.pop())
    operands.reverse()
    if instruction.op == "CALL":
        function, *args = [operand for operand in operands if operand is not NULL]
        if function in (super, locals, sys.exc_info, sys.exception):
            return None
        split = len(args) - len(keywords)
        kwargs = dict(zip(keywords, args[split:]))
        thunk = lambda: function(*args[:split], **kwargs)
    else:
        function = operation(instruction)
        thunk = lambda: function(*operands)
    nulls = frozenset(position for position in point.nulls if position < depth)
    return FramePoint(point.code, point.index, point.bound, nulls, depth), [*state, thunk]


@pytest.mark.parametrize("calls", [False, True], ids=["instruction", "call"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_break_everywhere(name, calls):
    break_everywhere(name, calls)


@pytest.mark.parametrize("name", PROGRAMS)
def test_return_everywhere(name):
    """After a call that was made elsewhere the original goes on natively."""
    if name == "very_long_jumps":
        pytest.skip("tested at chosen points below")
    expected = plain(name)
    function, _, _ = load(name)
    for steps in stops(name):
        machine = machine_at(name, steps)
        point, state = machine.point(), machine.state()
        machine.stack.clear()
        replaced = as_call(point, state)
        if replaced is not None and machine.code is function.__code__:
            behind, state = replaced
            call = build_return(behind, function.__globals__)
            assert is_continuation(call.__code__)
            same(outcome(lambda: call(*state)), expected, machine)


@pytest.mark.parametrize("name", UNDER_A_HANDLER)
def test_break_everywhere_while_the_caller_handles_an_exception(name):
    while_handling(break_everywhere, name, False)


def break_everywhere(name, calls):
    if name == "very_long_jumps":
        pytest.skip("tested at chosen points below")
    expected = plain(name)
    function, _, _ = load(name)
    chain = Chain(function.__globals__, calls)
    for steps in stops(name):
        machine = machine_at(name, steps)
        if machine.code is not function.__code__:
            chain.functions.clear()
        point, state = machine.point(), machine.state()
        machine.stack.clear()
        same(outcome(lambda: chain.run(point, state)), expected, machine)
    assert chain.functions


def test_break_with_very_long_jumps():
    name = "very_long_jumps"
    expected = plain(name)
    function, _, _ = load(name)
    info = decode(function.__code__)
    assert max(i.end for i in info.instructions) > 65536 * 2
    chosen = [
        steps
        for steps in stops(name)
        if machine_at(name, steps).instruction.op in ("FOR_ITER", "POP_JUMP_IF_FALSE", "CALL")
    ]
    assert chosen
    for steps in chosen[:12]:
        machine = machine_at(name, steps)
        point, state = machine.point(), machine.state()
        machine.stack.clear()

        def run():
            function = build_break(point, machine.globals, TailCall, lambda p: p)
            result = function(*state)
            while isinstance(result, TailCall):
                function = build_resume(result.point, machine.globals)
                result = function(*result.state)
            return result

        same(outcome(run), expected, machine)


@pytest.mark.parametrize("name", PROGRAMS)
def test_static_layout_is_the_real_one(name):
    """`successors` predicts bound slots and NULLs of every step that does not raise."""
    function, args, kwargs = load(name)
    machine = Machine(function, args, kwargs)
    while not machine.finished:
        before = machine.index
        point = machine.point()
        raised = machine.raised
        op = machine.instruction.op
        try:
            machine.step()
        except Exception:
            break
        prologue = before < machine.info.body_start
        if machine.finished or machine.raised > raised or prologue or "EXC" in op:
            continue
        while machine.instruction.op == "JUMP":  # no continuation begins there
            machine.step()
        actual = machine.point()
        assert actual in successors(point)
        assert actual.depth == len(machine.stack)


@pytest.mark.parametrize("module", MODULES[:8])
def test_splices_are_well_formed(module):
    """Decoding a splice checks its depths; its tables must be the original's, moved."""
    for code in module_codes(module)[:60]:
        info = decode(code)
        if info.is_generator or not code.co_flags & inspect.CO_OPTIMIZED:
            continue
        original_positions = list(code.co_positions())
        bound = frozenset(range(len(info.slot_names)))
        for instruction in info.instructions[info.body_start :: 3]:
            if info.depth[instruction.index] < 0:
                continue
            point = FramePoint(code, instruction.index, bound)
            functions = [build_resume(point, {})]
            try:
                functions.append(build_break(point, {}, TailCall, lambda p: p))
            except ValueError:
                assert instruction.op in ("PUSH_EXC_INFO", "POP_EXCEPT")
            for function in functions:
                spliced = function.__code__
                new = decode(spliced)
                assert max(new.depth) <= spliced.co_stacksize
                shift = (len(spliced.co_code) - len(code.co_code)) // 2
                positions = list(spliced.co_positions())
                assert positions[shift:] == original_positions
                moved = new.index_of[instruction.offset + 2 * shift]
                first = info.index_of[instruction.offset]  # a unit may be several instructions
                assert new.instructions[moved].op == info.instructions[first].op
            copies = [p for p in positions[:shift] if p[2] is not None]
            if len(functions) == 2 and instruction.positions[2] is not None:
                assert set(copies) == {instruction.positions}


def test_equal_points():
    def f(a):
        return a + 1

    point = FramePoint(f.__code__, 2, frozenset({0}))
    assert point == FramePoint(f.__code__, 2, frozenset({0}))
    assert hash(point) == hash(FramePoint(f.__code__, 2, frozenset({0})))
    assert point != FramePoint(f.__code__.replace(), 2, frozenset({0}))
    assert point != FramePoint(f.__code__, 2, frozenset())
    assert point != 3


def test_refusals():
    def generator():
        yield 1

    def cells(a):
        return lambda: a

    def handler():
        try:
            pass
        except ValueError:
            pass

    with pytest.raises(ValueError, match="generator"):
        build_resume(FramePoint(generator.__code__, 3, frozenset()), {})
    with pytest.raises(ValueError, match="cells"):
        build_resume(FramePoint(cells.__code__, 0, frozenset()), {})
    with pytest.raises(ValueError, match="class body"):
        build_resume(FramePoint(compile("x = 1", "m", "exec"), 0, frozenset()), {})
    point = FramePoint(inspect_me.__code__, 1, frozenset(), frozenset({7}))
    with pytest.raises(ValueError, match="NULL"):
        build_resume(point, {})
    info = decode(inspect_me.__code__)
    for instruction in info.instructions:
        if instruction.op in ("PUSH_EXC_INFO", "POP_EXCEPT"):
            point = FramePoint(info.code, instruction.index, frozenset())
            with pytest.raises(ValueError, match="apart from its frame"):
                build_break(point, {}, TailCall, lambda p: p)


def inspect_me():
    try:
        return len("")
    except ValueError:
        return 0


def test_generated_state_does_not_show_in_locals():
    def user(a, b):
        seen = (lambda: a) and locals()
        return seen

    info = decode(user.__code__)
    (call,) = [i for i in info.instructions if i.op == "CALL"]
    cell = (lambda x: lambda: x)(5).__closure__[0]
    null = int(tables.NULL_ABOVE)
    point = FramePoint(user.__code__, call.index, frozenset({0, 1}), frozenset({null}))
    function = build_break(point, {}, TailCall, lambda p: p)
    result = function(cell, 2, None, locals)
    assert result.state[-1] == {"a": 5, "b": 2}


def test_cycle_of_breaks_is_collected():
    """A break in a loop refers to itself through its continuation; no cache, no leak."""
    import gc
    import weakref

    def loop(n):
        for _ in range(n):
            print(n)

    info = decode(loop.__code__)
    (call,) = [
        i for i in info.instructions if i.op == "CALL" and i.line > info.code.co_firstlineno + 1
    ]
    null = 1 + tables.NULL_ABOVE
    point = FramePoint(loop.__code__, call.index, frozenset({0, 1}), frozenset({null}))

    class Next:
        pass

    holder = Next()
    next_point = [holder]
    holder.function = build_break(point, {}, TailCall, lambda p: next_point.pop())
    dead = weakref.ref(holder)
    del holder
    gc.collect()
    assert dead() is None


@contextlib.contextmanager
def without_frame_hooks():
    """torch's stays after some errors; a call under a hook keeps its arguments to its end."""
    api, pointer = ctypes.pythonapi, ctypes.c_void_p
    for function in (api.PyInterpreterState_Get, api._PyInterpreterState_GetEvalFrameFunc):
        function.restype = pointer
    interpreter = pointer(api.PyInterpreterState_Get())
    before = pointer(api._PyInterpreterState_GetEvalFrameFunc(interpreter))
    default = ctypes.cast(api._PyEval_EvalFrameDefault, pointer)
    api._PyInterpreterState_SetEvalFrameFunc(interpreter, default)
    try:
        yield
    finally:
        api._PyInterpreterState_SetEvalFrameFunc(interpreter, before)


def test_references_are_not_kept():
    """Stack values leave the parameters when they go to the stack: POP_TOP frees them."""

    class Thing:
        def __del__(self):
            LOG.append("freed")

    def user():
        make()  # noqa: F821
        return list(log)  # noqa: F821

    info = decode(user.__code__)
    pop = next(i for i in info.instructions if i.op == "POP_TOP")
    point = FramePoint(user.__code__, pop.index, frozenset())
    function = build_resume(point, {"log": LOG})
    LOG.clear()
    with without_frame_hooks():
        result = function(Thing())  # not inside the assert: that would keep the argument
    assert result == ["freed"]
