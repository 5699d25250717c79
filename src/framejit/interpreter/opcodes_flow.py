"""Opcodes that decide what runs next: jumps, loops, calls, returns, exceptions, ``with``,
generators.

In: a frame and an instruction. Out: the frame's position, new frames, raised exceptions.
Next room: values.
"""

from __future__ import annotations

import builtins
import importlib.util
import types
from typing import Any

from framejit.bytecode.analysis import only_passes_through, usual_truth
from framejit.bytecode.model import Instruction
from framejit.exc import GraphBreak
from framejit.interpreter.frame import NONE, Frame, HandledValue
from framejit.interpreter.opcodes_data import deliver, mapping_pairs, never_iterable
from framejit.interpreter.outcomes import Yielded
from framejit.interpreter.registry import opcode, unsupported
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import complaints
from framejit.values.core.base import NULL, Raised, Value
from framejit.values.core.constants import ConstantValue, PythonModuleValue
from framejit.values.core.methods import elements_for_tuple
from framejit.values.objects.cells import CellValue
from framejit.values.objects.classes import ClassValue, make_super
from framejit.values.objects.exceptions import matches
from framejit.values.objects.generators import GeneratorValue
from framejit.values.objects.matching import match_class, match_keys, match_mapping, match_sequence
from framejit.values.stdlib.imports import loaded_module

# -- jumps -----------------------------------------------------------------------------------------


@opcode("JUMP")
def jump(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.pc = instruction.target


def _truth(vm: Any, frame: Frame, value: Value, index: int) -> bool:
    """The truth value of a condition, which is on the stack from ``index`` on. One that depends on
    data, where the other case is an error of the program, is taken to be the usual one."""
    try:
        return bool(vm.space.truth(value))
    except GraphBreak:
        usual = _usual(frame, index)
        if usual is None or not _leaves(vm, frame) or not vm.space.expect(value, usual):
            raise
        return usual


def _usual(frame: Frame, index: int) -> bool | None:
    """`usual_truth` of the jump that decides: that may be one of the function's caller."""
    level, negated = frame, False
    while True:
        op = level.info.instructions[index].op
        if op.startswith("POP_JUMP_IF"):
            usual = usual_truth(level.info, index)
            return None if usual is None else usual is not negated
        if op in ("TO_BOOL", "UNARY_NOT"):
            negated ^= op == "UNARY_NOT"
            index += 1
        elif op == "RETURN_VALUE" and level.parent is not None:
            level = level.parent
            if level.instruction.op != "CALL":
                return None
            index = level.index + 1
        else:
            return None


#: How often one condition is taken for granted in a capture: a loop must not be unrolled without an
#: end because only an exception leaves it.
_EXPECTED_LIMIT = 64


def _leaves(vm: Any, frame: Frame) -> bool:
    """Would an exception here end the captured program?"""
    place = frame.info.code, frame.index
    count = vm.expected_at[place] = vm.expected_at.get(place, 0) + 1
    return count <= _EXPECTED_LIMIT and all(
        only_passes_through(outer.info, outer.index) for outer in frame.chain()
    )


@opcode("POP_JUMP_IF_TRUE")
def pop_jump_if_true(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if _truth(vm, frame, frame.stack.pop(), frame.index):
        frame.pc = instruction.target


@opcode("POP_JUMP_IF_FALSE")
def pop_jump_if_false(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if not _truth(vm, frame, frame.stack.pop(), frame.index):
        frame.pc = instruction.target


@opcode("POP_JUMP_IF_NONE")
def pop_jump_if_none(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if frame.stack.pop().is_none():
        frame.pc = instruction.target


@opcode("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if not frame.stack.pop().is_none():
        frame.pc = instruction.target


@opcode("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if vm.space.truth(frame.stack[-1]):
        frame.pc = instruction.target
    else:
        frame.stack.pop()


@opcode("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if vm.space.truth(frame.stack[-1]):
        frame.stack.pop()
    else:
        frame.pc = instruction.target


# -- iteration -------------------------------------------------------------------------------------


@opcode("GET_ITER")
def get_iter(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(vm.space.iter(frame.stack.pop()))


@opcode("FOR_ITER")
def for_iter(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = vm.space.next(frame.stack[-1])
    if value is None:
        frame.stack.pop()
        frame.pc = instruction.target
    else:
        frame.stack.append(value)


# -- calls -----------------------------------------------------------------------------------------


@opcode("CALL")
def call(vm: Any, frame: Frame, instruction: Instruction) -> None:
    stack, count = frame.stack, instruction.arg
    args = stack[-count:] if count else []
    if count:
        del stack[-count:]
    function = _callable(stack, args)
    kwargs: dict[str, Value] = {}
    names = instruction.value
    if names:
        kwargs = dict(zip(names, args[-len(names) :], strict=True))
        del args[-len(names) :]
    _call(vm, frame, function, args, kwargs)


def _callable(stack: list[Value], args: list[Value]) -> Value:
    """What is called; ``args`` get the receiver of an unbound method."""
    above = stack.pop()
    below = stack.pop()
    if below is NULL:
        return above
    if above is not NULL:
        args.insert(0, above)
    return below


def _call(
    vm: Any, frame: Frame, function: Value, args: list[Value], kwargs: dict[str, Value]
) -> None:
    function = function.realize()
    cls = function.cls if type(function) is ClassValue else None
    if cls is super and not args and not kwargs:
        frame.stack.append(_zero_argument_super(vm, frame))
    elif cls is bool and len(args) == 1 and not kwargs:
        frame.stack.append(ConstantValue(_truth(vm, frame, args[0], frame.index + 1)))
    else:
        deliver(vm, frame, function.call(vm.space, args, kwargs))


def _zero_argument_super(vm: Any, frame: Frame) -> Value:
    names, space = frame.info.slot_names, vm.space
    receiver = frame.slots[0] if frame.info.code.co_argcount else None
    if receiver is not None and isinstance(receiver := receiver.realize(), CellValue):
        receiver = receiver.contents
    wrong = ""
    if not frame.info.code.co_argcount:
        wrong = "no arguments"
    elif receiver is None:
        wrong = "arg[0] deleted"
    elif "__class__" not in names:
        wrong = "__class__ cell not found"
    if wrong:
        space.raise_error(RuntimeError, f"super(): {wrong}")
    cell: Any = frame.slots[names.index("__class__")]
    if cell.realize().contents is None:
        space.raise_error(RuntimeError, "super(): empty __class__ cell")
    assert receiver is not None
    return make_super(space, [cell.realize().contents, receiver])


@opcode("CALL_FUNCTION_EX")
def call_function_ex(vm: Any, frame: Frame, instruction: Instruction) -> None:
    kwargs: dict[str, Value] = {}
    if instruction.arg & 1:
        for key, value in mapping_pairs(vm, frame.stack.pop()):
            text = key.realize().as_python()
            if not isinstance(text, str):
                raise GraphBreak("FJ0137", "keywords that are not strings")
            kwargs[text] = value
    sequence = frame.stack.pop().realize()
    if never_iterable(sequence):
        raise GraphBreak("FJ0137", "an argument after * is not iterable")
    args = list(elements_for_tuple(vm.space, sequence))
    _call(vm, frame, _callable(frame.stack, args), args, kwargs)


@opcode("CALL_SUPER")
def call_super(vm: Any, frame: Frame, instruction: Instruction) -> None:
    receiver, cls, function = (frame.stack.pop().realize() for _ in range(3))
    if type(function) is ClassValue and function.cls is super:
        frame.stack.append(make_super(vm.space, [cls, receiver]))
    else:
        args = [cls, receiver] if instruction.arg else []
        deliver(vm, frame, function.call(vm.space, args, {}))


@opcode("RETURN_VALUE")
def return_value(vm: Any, frame: Frame, instruction: Instruction) -> Any:
    return vm.leave(frame, frame.stack.pop())


# -- exceptions ------------------------------------------------------------------------------------


@opcode("RAISE_VARARGS")
def raise_varargs(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if instruction.arg == 0:
        if vm.handled is None:
            vm.space.raise_error(RuntimeError, "No active exception to reraise")
        raise Raised(vm.handled.realize())
    cause = frame.stack.pop() if instruction.arg == 2 else None
    value = _instance(vm, frame.stack.pop())
    if cause is not None:
        cause = cause if cause.is_none() else _instance(vm, cause, "exception causes")
        vm.space.setattr(value, "__cause__", cause)
    vm.raise_steps.pop(value, None)
    raise Raised(value)


def _instance(vm: Any, value: Value, what: str = "exceptions") -> Value:
    value = value.realize()
    if isinstance(value, ClassValue) and issubclass(value.cls, BaseException):
        value = vm.space.call_now(value, []).realize()
    if not issubclass(value.python_type(), BaseException):
        vm.space.raise_error(TypeError, f"{what} must derive from BaseException")
    return value


@opcode("RERAISE")
def reraise(vm: Any, frame: Frame, instruction: Instruction) -> None:
    raise Raised(frame.stack.pop().realize())


@opcode("PUSH_EXC_INFO")
def push_exc_info(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop().realize()
    frame.stack.append(HandledValue(value, vm.handled))
    frame.stack.append(value)
    vm.handled = value


@opcode("POP_EXCEPT")
def pop_except(vm: Any, frame: Frame, instruction: Instruction) -> None:
    saved = frame.stack.pop()
    assert isinstance(saved, HandledValue)
    vm.handled = saved.previous


@opcode("CHECK_EXC_MATCH")
def check_exc_match(vm: Any, frame: Frame, instruction: Instruction) -> None:
    classes = frame.stack.pop()
    found = matches(vm.space, frame.stack[-1].realize(), classes)
    frame.stack.append(ConstantValue(found))


@opcode("LOAD_COMMON_CONSTANT")
def load_common_constant(vm: Any, frame: Frame, instruction: Instruction) -> None:
    function, space = instruction.value, vm.space
    frame.stack.append(space.load(space.const_source(function, function.__qualname__), function))


@opcode("LOAD_ASSERTION_ERROR")
def load_assertion_error(vm: Any, frame: Frame, instruction: Instruction) -> None:
    space = vm.space
    frame.stack.append(space.class_value(AssertionError))


unsupported(
    "FJ0144", "exception groups are handled by CPython", "CHECK_EG_MATCH", "PREP_RERAISE_STAR"
)

# -- with ------------------------------------------------------------------------------------------


def _manager_method(vm: Any, manager: Value, name: str) -> Value:
    method = vm.space.special_method(manager, name)
    if method is None:
        vm.space.raise_error(TypeError, complaints.no_context_manager(manager.python_type()))
    return method


@opcode("BEFORE_WITH")
def before_with(vm: Any, frame: Frame, instruction: Instruction) -> None:
    manager = frame.stack.pop().realize()
    enter = _manager_method(vm, manager, "__enter__")
    frame.stack.append(_manager_method(vm, manager, "__exit__"))
    deliver(vm, frame, vm.space.call(enter, [], {}))


@opcode("LOAD_SPECIAL")
def load_special(vm: Any, frame: Frame, instruction: Instruction) -> None:
    manager = frame.stack.pop().realize()
    frame.stack += [_manager_method(vm, manager, instruction.value), NULL]


@opcode("WITH_EXCEPT_START")
def with_except_start(vm: Any, frame: Frame, instruction: Instruction) -> None:
    space, stack = vm.space, frame.stack
    value = stack[-1].realize()
    leave = stack[-4 - instruction.arg]
    cls = space.class_value(value.python_type())
    traceback = space.getattr_now(value, "__traceback__")
    deliver(vm, frame, space.call(leave, [cls, value, traceback], {}))


# -- generators ------------------------------------------------------------------------------------


@opcode("RETURN_GENERATOR")
def return_generator(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if frame.generator is None:
        raise GraphBreak("FJ0158", "a generator runs as plain Python")
    frame.stack.append(NONE)


@opcode("YIELD_VALUE")
def yield_value(vm: Any, frame: Frame, instruction: Instruction) -> Any:
    return Yielded(frame.stack.pop())


@opcode("GET_YIELD_FROM_ITER")
def get_yield_from_iter(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if not isinstance(frame.stack[-1].realize(), GeneratorValue):
        frame.stack.append(vm.space.iter(frame.stack.pop()))


@opcode("SEND")
def send(vm: Any, frame: Frame, instruction: Instruction) -> None:
    sent = frame.stack.pop()
    receiver = frame.stack[-1].realize()
    if isinstance(receiver, GeneratorValue):
        value = receiver.resume(vm.space, sent, None)
        returned = receiver.returned or NONE
    elif sent.is_none():
        value = vm.space.next(receiver)
        returned = NONE
    else:
        raise GraphBreak("FJ0158", "send() to an iterator that is not a generator")
    if value is None:
        frame.stack[-1] = returned
        frame.pc = instruction.target
    else:
        frame.stack.append(value)


@opcode("END_SEND")
def end_send(vm: Any, frame: Frame, instruction: Instruction) -> None:
    del frame.stack[-2]


unsupported("FJ0158", "CPython ends a generator", "CLEANUP_THROW", "STOPITERATION_ERROR")
unsupported(
    "FJ0138", "coroutines run as plain Python",
    "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH", "END_ASYNC_FOR",
    "ASYNC_GEN_WRAP",
)  # fmt: skip

# -- imports, classes, pattern matching ------------------------------------------------------------


@opcode("IMPORT_NAME")
def import_name(vm: Any, frame: Frame, instruction: Instruction) -> None:
    space, name = vm.space, instruction.value
    names = frame.stack.pop().realize().as_python()
    level = int(frame.stack.pop().realize().as_python())
    if level:
        package = frame.globals.get("__package__") or ""
        full = importlib.util.resolve_name("." * level + name, package)
    else:
        full = name
    shown = full if names or level else full.partition(".")[0]
    frame.stack.append(loaded_module(space, full, names, shown))


@opcode("IMPORT_FROM")
def import_from(vm: Any, frame: Frame, instruction: Instruction) -> None:
    module = frame.stack[-1].realize()
    name = instruction.value
    if isinstance(module, PythonModuleValue) and not hasattr(module.module, name):
        raise GraphBreak("FJ0140", f"importing {module.module.__name__}.{name}")
    deliver(vm, frame, vm.space.getattr(module, name))


unsupported("FJ0142", "`import *` changes all names", "IMPORT_STAR")


@opcode("LOAD_BUILD_CLASS")
def load_build_class(vm: Any, frame: Frame, instruction: Instruction) -> None:
    scope = frame.globals.get("__builtins__", builtins)
    scope = vars(scope) if isinstance(scope, types.ModuleType) else scope
    frame.stack.append(vm.space.load_global(scope, "__build_class__"))


@opcode("GET_LEN")
def get_len(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(vm.space.len(frame.stack[-1]))


@opcode("MATCH_SEQUENCE")
def opcode_match_sequence(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(ConstantValue(match_sequence(vm.space, frame.stack[-1].realize())))


@opcode("MATCH_MAPPING")
def opcode_match_mapping(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(ConstantValue(match_mapping(vm.space, frame.stack[-1].realize())))


@opcode("MATCH_KEYS")
def opcode_match_keys(vm: Any, frame: Frame, instruction: Instruction) -> None:
    found = match_keys(vm.space, frame.stack[-2], frame.stack[-1])
    frame.stack.append(NONE if found is None else TupleValue(found))


@opcode("MATCH_CLASS")
def opcode_match_class(vm: Any, frame: Frame, instruction: Instruction) -> None:
    names = frame.stack.pop()
    cls = frame.stack.pop()
    subject = frame.stack.pop()
    found = match_class(vm.space, subject, cls, instruction.arg, names)
    frame.stack.append(NONE if found is None else TupleValue(found))


unsupported("FJ0142", "the interactive prompt's expressions", "PRINT_EXPR")
unsupported("FJ0142", "type parameters", "CALL_INTRINSIC_1", "CALL_INTRINSIC_2")
unsupported("FJ0142", "template strings", "BUILD_TEMPLATE", "BUILD_INTERPOLATION")
unsupported(
    "FJ0142", "names are looked up dynamically",
    "LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS",
)  # fmt: skip
