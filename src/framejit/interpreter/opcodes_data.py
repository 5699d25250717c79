"""Opcodes that move and build values: variables, attributes, items, containers, operators.

In: a frame and an instruction. Out: the frame's new stack and slots. Next room: values.
"""

from __future__ import annotations

import itertools
from typing import Any

from framejit.bytecode.model import Instruction
from framejit.exc import GraphBreak
from framejit.interpreter.frame import NONE, Frame
from framejit.interpreter.registry import Handler, opcode
from framejit.values.containers.mappings import DictValue, known_pairs
from framejit.values.containers.sequences import ListValue, TupleValue, code_constant
from framejit.values.containers.sets import SetValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import NULL, CallRequest, Raised, Value, type_name
from framejit.values.core.constants import ConstantValue, constant_value
from framejit.values.core.methods import elements
from framejit.values.objects.cells import CellValue
from framejit.values.objects.functions import BoundBuiltin, FunctionValue
from framejit.values.objects.local_classes import ClassNames
from framejit.values.objects.text import format_value, joined

# -- variables -------------------------------------------------------------------------------------


@opcode("LOAD_FAST")
def load_fast(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.slots[instruction.arg]
    if value is None:
        name = instruction.value
        vm.space.raise_error(
            UnboundLocalError,
            f"cannot access local variable {name!r} where it is not associated with a value",
        )
    frame.stack.append(value)  # type: ignore[arg-type]


@opcode("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.slots[instruction.arg]
    frame.stack.append(NULL if value is None else value)
    frame.slots[instruction.arg] = None


@opcode("STORE_FAST")
def store_fast(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    frame.slots[instruction.arg] = None if value is NULL else value


@opcode("DELETE_FAST")
def delete_fast(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if frame.slots[instruction.arg] is None:
        load_fast(vm, frame, instruction)  # which raises
    frame.slots[instruction.arg] = None


@opcode("LOAD_CONST")
def load_const(vm: Any, frame: Frame, instruction: Instruction) -> None:
    made = code_constant if type(instruction.value) is tuple else constant_value
    frame.stack.append(made(vm.space, instruction.value))


@opcode("MAKE_CELL")
def make_cell(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.slots[instruction.arg] = CellValue(frame.slots[instruction.arg])


@opcode("COPY_FREE_VARS")
def nothing(vm: Any, frame: Frame, instruction: Instruction) -> None:
    pass


@opcode("LOAD_CLOSURE")
def load_closure(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.slots[instruction.arg]
    assert value is not None
    frame.stack.append(value)


def _cell(frame: Frame, instruction: Instruction) -> CellValue:
    cell = frame.slots[instruction.arg]
    assert cell is not None
    cell = cell.realize()
    if not isinstance(cell, CellValue):
        raise GraphBreak("FJ0142", "a closure cell of an unknown kind")
    return cell


@opcode("LOAD_DEREF")
def load_deref(vm: Any, frame: Frame, instruction: Instruction) -> None:
    cell = _cell(frame, instruction)
    if cell.contents is None:
        name = instruction.value
        if instruction.arg >= frame.info.free_start:
            vm.space.raise_error(
                NameError,
                f"cannot access free variable {name!r} where it is not associated with a value"
                " in enclosing scope",
                name=name,
            )
        vm.space.raise_error(
            UnboundLocalError,
            f"cannot access local variable {name!r} where it is not associated with a value",
        )
    frame.stack.append(cell.contents)  # type: ignore[arg-type]


@opcode("STORE_DEREF")
def store_deref(vm: Any, frame: Frame, instruction: Instruction) -> None:
    _cell(frame, instruction).store(vm.space, frame.stack.pop())


@opcode("DELETE_DEREF")
def delete_deref(vm: Any, frame: Frame, instruction: Instruction) -> None:
    cell = _cell(frame, instruction)
    if cell.contents is None:
        load_deref(vm, frame, instruction)
    cell.store(vm.space, None)


@opcode("LOAD_GLOBAL")
def load_global(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = vm.space.load_global(frame.globals, instruction.value)
    if instruction.arg:
        frame.stack.append(NULL)
    frame.stack.append(value)


@opcode("STORE_GLOBAL")
def store_global(vm: Any, frame: Frame, instruction: Instruction) -> None:
    vm.space.store_global(frame.globals, instruction.value, frame.stack.pop())


@opcode("DELETE_GLOBAL")
def delete_global(vm: Any, frame: Frame, instruction: Instruction) -> None:
    vm.space.load_global(frame.globals, instruction.value).realize()
    vm.space.store_global(frame.globals, instruction.value, None)


def _names(frame: Frame) -> dict[str, Value]:
    if frame.names is None:
        raise GraphBreak("FJ0142", "names are looked up dynamically")
    return frame.names


@opcode("LOAD_LOCALS")
def load_locals(vm: Any, frame: Frame, instruction: Instruction) -> None:
    """The names of a class body, for the cell of what looks names up there later."""
    _names(frame)
    frame.stack.append(ClassNames(vm.space.step))


@opcode("LOAD_NAME")
def load_name(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = _names(frame).get(instruction.value)
    frame.stack.append(value or vm.space.load_global(frame.globals, instruction.value))


@opcode("LOAD_CLASSDEREF")
def load_classderef(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = _names(frame).get(instruction.value)
    if value is None:
        load_deref(vm, frame, instruction)
    else:
        frame.stack.append(value)


@opcode("STORE_NAME")
def store_name(vm: Any, frame: Frame, instruction: Instruction) -> None:
    _names(frame)[instruction.value] = frame.stack.pop()


@opcode("DELETE_NAME")
def delete_name(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if _names(frame).pop(instruction.value, None) is None:
        name = instruction.value
        vm.space.raise_error(NameError, f"name {name!r} is not defined", name=name)


@opcode("SETUP_ANNOTATIONS")
def setup_annotations(vm: Any, frame: Frame, instruction: Instruction) -> None:
    _names(frame).setdefault("__annotations__", DictValue({}))


# -- the stack -------------------------------------------------------------------------------------


@opcode("POP_TOP")
def pop_top(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.pop()


@opcode("PUSH_NULL")
def push_null(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(NULL)


@opcode("COPY")
def copy(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(frame.stack[-instruction.arg])


@opcode("SWAP")
def swap(vm: Any, frame: Frame, instruction: Instruction) -> None:
    stack, n = frame.stack, instruction.arg
    stack[-1], stack[-n] = stack[-n], stack[-1]


# -- attributes and items --------------------------------------------------------------------------


def deliver(vm: Any, frame: Frame, result: Value | CallRequest) -> None:
    """Push a result, or the frame that will."""
    if type(result) is CallRequest:
        vm.push(result)
    else:
        frame.stack.append(result)  # type: ignore[arg-type]


@opcode("LOAD_ATTR")
def load_attr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    deliver(vm, frame, vm.space.getattr(frame.stack.pop(), instruction.value))


@opcode("LOAD_METHOD", "LOAD_ATTR_TO_CALL")
def load_method(vm: Any, frame: Frame, instruction: Instruction) -> None:
    method = vm.space.getattr_now(frame.stack.pop(), instruction.value)
    if type(method) is BoundBuiltin and method.source is None:
        method.is_operand = True
    if instruction.op == "LOAD_METHOD":
        frame.stack.append(NULL)
    frame.stack.append(method)


@opcode("STORE_ATTR")
def store_attr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    receiver = frame.stack.pop()
    vm.space.setattr(receiver, instruction.value, frame.stack.pop())


@opcode("DELETE_ATTR")
def delete_attr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    vm.space.delattr(frame.stack.pop(), instruction.value)


@opcode("BINARY_SUBSCR")
def binary_subscr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    key = frame.stack.pop()
    deliver(vm, frame, vm.space.getitem(frame.stack.pop(), key))


@opcode("STORE_SUBSCR")
def store_subscr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    key, container, value = (frame.stack.pop() for _ in range(3))
    vm.space.setitem(container, key, value)


@opcode("DELETE_SUBSCR")
def delete_subscr(vm: Any, frame: Frame, instruction: Instruction) -> None:
    key = frame.stack.pop()
    vm.space.delitem(frame.stack.pop(), key)


# -- operators -------------------------------------------------------------------------------------


@opcode("BINARY_OP")
def binary_op(vm: Any, frame: Frame, instruction: Instruction) -> None:
    right = frame.stack.pop()
    left = frame.stack.pop()
    deliver(vm, frame, vm.space.binary(instruction.value, left, right, bool(instruction.arg)))


@opcode("COMPARE_OP")
def compare_op(vm: Any, frame: Frame, instruction: Instruction) -> None:
    right = frame.stack.pop()
    deliver(vm, frame, vm.space.compare(instruction.value, frame.stack.pop(), right))


@opcode("IS_OP")
def is_op(vm: Any, frame: Frame, instruction: Instruction) -> None:
    right = frame.stack.pop()
    same = vm.space.is_(frame.stack.pop(), right)
    frame.stack.append(ConstantValue(same is not bool(instruction.arg)))


@opcode("CONTAINS_OP")
def contains_op(vm: Any, frame: Frame, instruction: Instruction) -> None:
    container = frame.stack.pop()
    found = vm.space.contains(container, frame.stack.pop())
    frame.stack.append(ConstantValue(found is not bool(instruction.arg)))


@opcode("UNARY_NOT")
def unary_not(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(ConstantValue(not vm.space.truth(frame.stack.pop())))


@opcode("TO_BOOL")
def to_bool(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(ConstantValue(vm.space.truth(frame.stack.pop())))


def _unary(operator: str) -> Handler:
    return lambda vm, frame, _: deliver(vm, frame, vm.space.unary(operator, frame.stack.pop()))


opcode("UNARY_NEGATIVE")(_unary("-"))
opcode("UNARY_POSITIVE")(_unary("+"))
opcode("UNARY_INVERT")(_unary("~"))


# -- building containers ---------------------------------------------------------------------------


def _take(frame: Frame, count: int) -> list[Value]:
    if count == 0:
        return []
    items = frame.stack[-count:]
    del frame.stack[-count:]
    return items


@opcode("BUILD_TUPLE")
def build_tuple(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(TupleValue(_take(frame, instruction.arg)))


@opcode("BUILD_LIST")
def build_list(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(ListValue(_take(frame, instruction.arg)))


@opcode("BUILD_SET")
def build_set(vm: Any, frame: Frame, instruction: Instruction) -> None:
    made = SetValue()
    for item in _take(frame, instruction.arg):
        made.call_method(vm.space, "add", [item], {})
    frame.stack.append(made)


@opcode("BUILD_MAP")
def build_map(vm: Any, frame: Frame, instruction: Instruction) -> None:
    parts = _take(frame, 2 * instruction.arg)
    frame.stack.append(_new_dict(vm, parts[::2], parts[1::2]))


def _new_dict(vm: Any, keys: list[Value], values: list[Value]) -> DictValue:
    made = DictValue({})
    for key, value in zip(keys, values, strict=True):
        made.setitem(vm.space, key, value)
    return made


@opcode("BUILD_CONST_KEY_MAP")
def build_const_key_map(vm: Any, frame: Frame, instruction: Instruction) -> None:
    keys = vm.space.items(frame.stack.pop())
    frame.stack.append(_new_dict(vm, keys, _take(frame, instruction.arg)))


@opcode("BUILD_STRING")
def build_string(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(joined(_take(frame, instruction.arg)))


@opcode("FORMAT_VALUE")
def format_field(vm: Any, frame: Frame, instruction: Instruction) -> None:
    spec = str(frame.stack.pop().realize().as_python()) if instruction.arg & 4 else ""
    conversion = (None, "s", "r", "a")[instruction.arg & 3]
    frame.stack.append(format_value(vm.space, frame.stack.pop(), conversion, spec))


@opcode("BUILD_SLICE")
def build_slice(vm: Any, frame: Frame, instruction: Instruction) -> None:
    parts = _take(frame, instruction.arg)
    frame.stack.append(SliceValue(parts[0], parts[1], parts[2] if len(parts) > 2 else NONE))


@opcode("LIST_TO_TUPLE")
def list_to_tuple(vm: Any, frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(TupleValue(list(vm.space.items(frame.stack.pop()))))


def _build_up(vm: Any, target: Value, method: str, item: Value) -> None:
    target = target.realize()
    if target.call_method is None:
        raise GraphBreak("FJ0137", f"building up a {target.describe()}")
    vm.space.now(target.call_method(vm.space, method, [item], {}))


def _in_place(method: str, handler_name: str) -> None:
    @opcode(handler_name)
    def handler(vm: Any, frame: Frame, instruction: Instruction) -> None:
        item = frame.stack.pop()
        _build_up(vm, frame.stack[-instruction.arg], method, item)


_in_place("append", "LIST_APPEND")
_in_place("add", "SET_ADD")
_in_place("update", "SET_UPDATE")


def never_iterable(value: Value) -> bool:
    """Whether CPython would refuse ``iter(value)`` for its class alone."""
    names = ("__iter__", "__getitem__")  # a metaclass may have them for itself
    return not any(name in vars(cls) for cls in value.python_type().__mro__ for name in names)


@opcode("LIST_EXTEND")
def list_extend(vm: Any, frame: Frame, instruction: Instruction) -> None:
    source = frame.stack.pop().realize()
    if never_iterable(source):
        kind = type_name(source.python_type())
        vm.space.raise_error(TypeError, f"Value after * must be an iterable, not {kind}")
    items = TupleValue(list(elements(vm.space, source)))
    _build_up(vm, frame.stack[-instruction.arg], "extend", items)


@opcode("MAP_ADD")
def map_add(vm: Any, frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    key = frame.stack.pop()
    vm.space.setitem(frame.stack[-instruction.arg], key, value)


def mapping_pairs(vm: Any, mapping: Value) -> list[tuple[Value, Value]]:
    """The items of anything with ``keys()``."""
    space = vm.space
    mapping = mapping.realize()
    if type(mapping) is DictValue and mapping.cls is dict:
        return list(mapping.items.values())
    content = mapping.container
    if content is not None and mapping.items_now(space) is not None:
        mapping = content  # CPython asks a dict for its keys() only if it has its own `__iter__`
    try:
        method = space.getattr_now(mapping, "keys")
    except Raised as error:
        if not error.is_a(AttributeError):
            raise
        kind = type_name(mapping.python_type())
        space.raise_error(TypeError, f"{kind!r} object is not a mapping")
    keys = space.items(space.call_now(method, []))
    return [(key, space.now(space.getitem(mapping, key))) for key in keys]


@opcode("DICT_UPDATE")
def dict_update(vm: Any, frame: Frame, instruction: Instruction) -> None:
    mapping, target = frame.stack.pop().realize(), frame.stack[-instruction.arg].realize()
    plain = known_pairs(vm.space, mapping)
    if plain is not None and isinstance(target, DictValue):
        target.merge(vm.space, plain)
        return
    for key, value in mapping_pairs(vm, mapping):
        vm.space.setitem(target, key, value)


@opcode("DICT_MERGE")
def dict_merge(vm: Any, frame: Frame, instruction: Instruction) -> None:
    if not hasattr(frame.stack[-1].realize().python_type(), "keys"):
        raise GraphBreak("FJ0137", "an argument after ** is not a mapping")
    pairs = mapping_pairs(vm, frame.stack.pop())
    target: Any = frame.stack[-instruction.arg].realize()
    for key, value in pairs:
        made = target.key(vm.space, key)
        if target.lookup(vm.space, made) is not None:
            raise GraphBreak(
                "FJ0137", f"multiple values for keyword argument {key.realize().as_python()!r}"
            )
        target.store(vm.space, made, key, value)


def _check_unpackable(vm: Any, value: Value) -> None:
    if never_iterable(value):
        kind = type_name(value.python_type())
        vm.space.raise_error(TypeError, f"cannot unpack non-iterable {kind} object")


@opcode("UNPACK_SEQUENCE")
def unpack_sequence(vm: Any, frame: Frame, instruction: Instruction) -> None:
    source = frame.stack.pop().realize()
    _check_unpackable(vm, source)
    items = vm.space.unpack(source, instruction.arg)
    frame.stack.extend(reversed(items))


@opcode("UNPACK_EX")
def unpack_ex(vm: Any, frame: Frame, instruction: Instruction) -> None:
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    source = frame.stack.pop().realize()
    _check_unpackable(vm, source)
    items = source.items_now(vm.space)
    if items is None:
        iterator = vm.space.iter(source)
        items = list(itertools.islice(iter(lambda: vm.space.next(iterator), None), before))
        if len(items) == before:
            items += elements(vm.space, iterator)
    if len(items) < before + after:
        vm.space.raise_error(
            ValueError,
            f"not enough values to unpack (expected at least {before + after}, got {len(items)})",
        )
    tail = items[len(items) - after :] if after else []
    middle = ListValue(items[before : len(items) - after])
    frame.stack.extend(reversed([*items[:before], middle, *tail]))


@opcode("MAKE_FUNCTION")
def make_function(vm: Any, frame: Frame, instruction: Instruction) -> None:
    code = frame.stack.pop().realize().as_python()
    flags = instruction.arg
    made = FunctionValue(code, frame.globals)
    made.cell_tuple = cells = frame.stack.pop() if flags & 8 else None
    made.closure = None if cells is None else [cell.realize() for cell in vm.space.items(cells)]
    annotate = frame.stack.pop() if flags & 16 else None
    annotations = frame.stack.pop() if flags & 4 else None
    made.kwdefaults = frame.stack.pop() if flags & 2 else None
    made.defaults = frame.stack.pop() if flags & 1 else None
    if annotations is not None:
        items = vm.space.items(annotations)
        made.attributes["__annotations__"] = _new_dict(vm, items[::2], items[1::2])
    if annotate is not None:
        made.attributes["__annotate__"] = annotate
    frame.stack.append(made)
