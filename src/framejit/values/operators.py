"""Binary, unary and comparison operators: Python's rules for who is asked, reflected forms too.

In: two realized values and the names of the special methods. Out: a `Result`. Values of builtin
kinds compute in ``binary_op`` / ``compare_op``; user-defined classes through their special
methods, whose frames are pushed so that a graph break inside them can be continued.
Next room: interpreter.
"""

from __future__ import annotations

import itertools
import operator
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from framejit.exc import GraphBreak
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import CallRequest, Raised, Value, is_user_class, type_name
from framejit.values.core.constants import ConstantValue, OpaqueValue, answer_of, constant_value
from framejit.values.core.methods import ContainerValue, container_of, scalar_of, stand_in
from framejit.values.core.registry import (
    BINARY,
    BINARY_METHODS,
    COMPARE,
    COMPARE_METHODS,
    INPLACE,
    UNARY,
    UNARY_METHODS,
    Result,
)
from framejit.values.core.space import Space
from framejit.values.core.symbolic import compute, plain
from framejit.values.identity import identical
from framejit.values.torch.read_numbers import compute_read
from framejit.values.torch.subclasses import SubclassValue
from framejit.values.torch.tensors import TensorValue, check_unasked, tensor_operator


def binary(space: Space, op: str, left: Value, right: Value, inplace: bool) -> Result:
    """``left op right``."""
    plain_name, reflected_name, inplace_name = BINARY_METHODS[op]
    function = (INPLACE if inplace else BINARY)[op]
    if _fold_at_once(left, right):
        return _folded(space, function, left, right)
    left_type, right_type = left.python_type(), right.python_type()
    operands = left, right
    if left.is_read or right.is_read:
        read = _compute_read(space, BINARY[op], left, right)
        if read is not None:
            return read
    if left.is_symbolic or right.is_symbolic:
        known = compute(space, BINARY[op], [left, right])
        if known is not None:
            return known
        if not (left.is_tensor or right.is_tensor):
            return binary(space, op, plain(left), plain(right), inplace)
    if left.is_tensor or right.is_tensor:
        left, right = _beside_tensor(space, left, plain_name), _beside_tensor(space, right, "")
        names = BINARY_METHODS[op]
        if _are_plain(space, names, left, right):
            changes = inplace and left.is_tensor
            return tensor_operator(space, (INPLACE if changes else BINARY)[op], left, right)
    _check_scalars(left, right)
    if op == "%" and is_user_class(left_type) and issubclass(left_type, (str, bytes)):
        raise GraphBreak("FJ0155", f"`%` of a {type_name(left_type)}")
    own_name = plain_name
    if inplace and space.class_attribute(left_type, inplace_name) is not None:
        own_name = inplace_name
    concatenates = op in ("+", "*") and _is_of_sequence(space, left_type, own_name)
    if inplace and not concatenates:
        result = _attempt(space, left, inplace_name, op, right)
        if result is not None:
            return result
    reflected_first = right_type is not left_type and (
        (left_type in right_type.__mro__
         and _overrides(space, right_type, left_type, reflected_name))
        # Sequences are asked last: they have no slots of numbers.
        or (concatenates and _has_slot(space, right_type, reflected_name))
    )  # fmt: skip
    if reflected_first:
        result = _attempt(space, right, reflected_name, op, left)
        if result is not None:
            return result
    if inplace and op == "*" and not concatenates and issubclass(right_type, _SEQUENCES):
        raise GraphBreak("FJ0155", f"`*=` of a {type_name(left_type)} and a sequence")
    if concatenates and op == "*" and space.class_attribute(right_type, "__index__") is None:
        return _complain(space, function, *operands)
    own_name = own_name if concatenates else plain_name
    result = _attempt(space, left, own_name, op, right)
    if result is not None:
        return result
    if not (reflected_first or right_type is left_type) and not (
        concatenates and _is_of_sequence(space, right_type, reflected_name)
    ):
        result = _attempt(space, right, reflected_name, op, left)
        if result is not None:
            return result
    return _complain(space, function, *operands)


_SEQUENCES = (str, bytes, bytearray, list, tuple, deque)
#: What CPython says when one of these declines is known.
_PLAIN = frozenset({
    int, bool, float, complex, str, bytes, type(None), type(...), list, tuple, dict, set, frozenset,
    torch.Tensor, torch.nn.Parameter,
})  # fmt: skip


def _is_of_sequence(space: Space, cls: type, name: str) -> bool:
    found = space.class_attribute(cls, name)
    return found is not None and found.owner in (*_SEQUENCES, torch.Size)


def _has_slot(space: Space, cls: type, name: str) -> bool:
    """Has the class the method in a slot of numbers?"""
    found = space.class_attribute(cls, name)
    return found is not None and found.owner not in _SEQUENCES


def _complain(space: Space, function: Callable[[Any, Any], Any], left: Value, right: Value) -> Any:
    """No operand handles it: raise what CPython raises; a graph break if it may have a result."""
    repeats = function in (operator.mul, operator.imul)
    for value in (left, right):
        cls = value.python_type()
        known = cls in _PLAIN or is_user_class(cls) or isinstance(value, ContainerValue)
        counts = repeats and not issubclass(cls, (int, bool))
        if counts and space.class_attribute(cls, "__index__") is not None:
            raise GraphBreak("FJ0155", f"a {type_name(cls)} may say how often to repeat")
        if not known or cls is types.MappingProxyType:
            raise GraphBreak("FJ0155", f"an operator of a {type_name(cls)}")
    space.run_real(function, stand_in(left), stand_in(right))
    raise GraphBreak("FJ0137", "operands that framejit does not know together")


def _fold_at_once(left: Value, right: Value) -> bool:
    """Are both constants? Tuples compute it themselves, as they keep their elements."""
    if type(left) is TupleValue:
        return False
    if type(right) is TupleValue and left.python_type() not in (str, bytes):
        return False
    return left.is_constant and right.is_constant


def _folded(space: Space, function: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    answer = space.run_real(function, left.as_python(), right.as_python())
    if isinstance(answer, numpy.ndarray):  # can be changed: a new one for each call
        raise _makes_array()
    return answer_of(space, answer, (left, right))


def _makes_array() -> GraphBreak:
    return GraphBreak("FJ0132", "numpy makes an array of a container beside one of its scalars")


def _check_scalars(left: Value, right: Value) -> None:
    """A graph break if one is a scalar of numpy, which takes containers for arrays."""
    for scalar, other in ((left, right), (right, left)):
        if scalar.is_constant and issubclass(scalar.python_type(), numpy.generic):
            if container_of(other, ContainerValue) is not None:
                raise _makes_array()
            if scalar_of(other) is not None:
                raise GraphBreak("FJ0132", "numpy's scalar beside an object of a number's subclass")


def _beside_tensor(space: Space, value: Value, name: str) -> Value:
    """An operand as a tensor takes it: plain, unless its class implements ``name`` itself."""
    inner = scalar_of(value)
    if not value.is_tensor and is_user_class(value.python_type()):
        check_unasked(space, value.python_type())
    if inner is None:
        return value
    found = space.class_attribute(value.python_type(), name) if name else None
    return value if found is not None and is_user_class(found.owner) else inner


def _compute_read(
    space: Space, function: Callable[[Any, Any], Any], left: Value, right: Value
) -> Value | None:
    """An operator on a number that is read out of a tensor; None beside one, or if it declines."""
    other = right if left.is_read else left
    if other.is_tensor or other.is_none():
        return None
    if is_user_class(other.python_type()) and scalar_of(other) is None:
        return None
    read = compute_read(space, function, [left, right])
    if read is None:
        raise GraphBreak("FJ0102", "an operator on a number that is read out of a tensor")
    return read


def _are_plain(space: Space, names: Sequence[str], *operands: Value) -> bool:
    """Does torch compute an operator of these on its own?"""
    if not all(_plain_operand(space, value, names) for value in operands):
        return False
    return not space.is_overridden(operands)


def _plain_operand(space: Space, value: Value, names: Sequence[str]) -> bool:
    if isinstance(value, SubclassValue):
        found = [space.class_attribute(value.cls, name) for name in names]
        return all(one is None or one.owner.__module__.startswith("torch") for one in found)
    if type(value) is TensorValue or value.is_symbolic or value.is_read:
        return True
    return value.is_constant and not issubclass(value.python_type(), (str, bytes, tuple))


def division(space: Space, left: Value, right: Value) -> Result:
    """``divmod(left, right)``."""
    left_type, right_type = left.python_type(), right.python_type()
    asked = [(left, "__divmod__", right), (right, "__rdivmod__", left)]
    if right_type is left_type:
        asked.pop()
    elif left_type in right_type.__mro__ and _overrides(
        space, right_type, left_type, "__rdivmod__"
    ):
        asked.reverse()
    for value, name, other in asked:
        cls = value.python_type()
        if not value.is_constant and not is_user_class(cls):
            if space.class_attribute(cls, name) is not None:
                raise GraphBreak("FJ0155", f"divmod() of a {value.describe()}")
            continue
        result = _attempt(space, value, name, "divmod", other)
        if result is not None:
            return result
    return _complain(space, divmod, left, right)


def _overrides(space: Space, cls: type, base: type, name: str) -> bool:
    own, inherited = space.class_attribute(cls, name), space.class_attribute(base, name)
    return own is not None and (inherited is None or own.raw is not inherited.raw)


#: Methods of the right operand, and those that may change the left one.
_REFLECTED = frozenset(["__rdivmod__", *[names[1] for names in BINARY_METHODS.values()]])
_INPLACE = frozenset(names[2] for names in BINARY_METHODS.values())


def _attempt(space: Space, value: Value, name: str, op: str, other: Value) -> Result | None:
    """Ask ``value`` for the operation by the method ``name``; None means NotImplemented."""
    reflected, inplace = name in _REFLECTED, name in _INPLACE
    cls = other.python_type()
    if value.is_constant or type(value) is TensorValue:
        other = scalar_of(other) or other
    if value.is_constant and other.is_constant and type(value) is not TupleValue:
        if space.class_attribute(value.python_type(), name) is None:
            return None
        given = other.as_python()
        try:
            result = space.run_real(getattr(value.as_python(), name), given)
        except Raised as error:
            if error.is_a(TypeError) and type(given) is not cls:  # the message names another one
                raise GraphBreak("FJ0155", f"`{op}` with a {type_name(cls)}")
            if op in "+*" and value.python_type() in _SEQUENCES:
                return None  # a sequence does not know the other's operator
            raise
        return None if result is NotImplemented else constant_value(space, result)
    plain_tensor = type(value) is TensorValue and not space.is_overridden([value, other])
    if not is_user_class(value.python_type()) or plain_tensor or value.own_operators:
        method = value.binary_op
        if method is None:
            _check_declines(space, value, name, other)
            return None
        result = method(space, op, other, reflected, inplace)
        if result is other and type(result) is TupleValue and cls is not tuple:
            raise GraphBreak("FJ0155", f"`{op}` that copies what is in a {type_name(cls)}")
        return result
    bound = space.special_method(value, name)
    if bound is None:
        return None
    try:
        return not_implemented(space, space.call(bound, [other], {}))
    except Raised as error:
        if error.is_a(TypeError) and not inplace:
            if _is_of_sequence(space, value.python_type(), name):
                return None  # the operator words it
        raise


def _check_declines(space: Space, value: Value, name: str, other: Value) -> None:
    """A graph break unless it is known that the class of a constant declines ``other``."""
    cls = value.python_type()
    if value.is_constant and space.class_attribute(cls, name) is not None:
        asks = name not in _COMPARISONS or issubclass(other.python_type(), tuple(_BUILTIN))
        asks = (asks and type(other) is OpaqueValue) or (cls, name) == (bytes, "__mod__")
        if asks or cls not in _BUILTIN:
            raise GraphBreak("FJ0155", f"`{name}` of a {type_name(cls)}")


#: Of these, what the builtin classes have asks for nothing but the other's class.
_COMPARISONS = frozenset(itertools.chain.from_iterable(COMPARE_METHODS.values()))
#: They decline everything that is no constant.
_BUILTIN = frozenset({
    int, bool, float, complex, str, bytes, tuple, frozenset, range, type(None), type(...),
})  # fmt: skip
_MAY_DECLINE = frozenset({"NotImplemented", "super"})


def not_implemented(space: Space, result: Result) -> Result | None:
    """None when the method returned NotImplemented. A pending frame must run to know that, unless
    it cannot return it: its code never mentions the name."""
    if type(result) is CallRequest:
        names = result.function.code.co_names
        if result.result is None and _MAY_DECLINE.isdisjoint(names):
            result.operator = True  # should it decline all the same, the interpreter breaks
            return result
        result = space.now(result)
    assert isinstance(result, Value)
    if type(result.realize()) is ConstantValue and result.realize().as_python() is NotImplemented:
        return None
    return result


def unary(space: Space, op: str, value: Value) -> Result:
    """``-x``, ``+x``, ``~x``."""
    value = value.realize()
    if value.is_constant:
        answer = space.run_real(UNARY[op], value.as_python())
        return answer_of(space, answer, (value,))
    if value.is_tensor and _are_plain(space, [UNARY_METHODS[op]], value):
        return tensor_operator(space, UNARY[op], value)
    if value.is_read:
        read = compute_read(space, UNARY[op], [value])
        if read is not None:
            return read
    if value.is_symbolic:
        known = compute(space, operator.neg, [value]) if op != "+" else None
        if op == "+" and value.python_type() is not bool:
            known = value
        elif op == "~" and known is not None:
            known = compute(space, operator.sub, [known, ConstantValue(1)])
        return known or unary(space, op, plain(value))
    method = space.special_method(value, UNARY_METHODS[op])
    if method is None:
        cls = type_name(value.python_type())
        return space.raise_error(TypeError, f"bad operand type for unary {op}: {cls!r}")
    return space.call(method, [], {})


def compare(space: Space, op: str, left: Value, right: Value) -> Result:
    """Rich comparison."""
    own_name, mirrored_name = COMPARE_METHODS[op]
    left, right = left.realize(), right.realize()
    if _fold_at_once(left, right):
        return _folded(space, COMPARE[op], left, right)
    left_type, right_type = left.python_type(), right.python_type()
    operands = left, right
    if left.is_read or right.is_read:
        read = _compute_read(space, COMPARE[op], left, right)
        if read is not None:
            return read
    if left.is_symbolic or right.is_symbolic:
        if op in ("==", "!=") and (left.is_none() or right.is_none()):
            return ConstantValue(op == "!=")
        known = compute(space, COMPARE[op], [left, right])
        if known is not None:
            return known
        if not (left.is_tensor or right.is_tensor):
            return compare(space, op, plain(left), plain(right))
    if left.is_tensor or right.is_tensor:
        left, right = _beside_tensor(space, left, own_name), _beside_tensor(space, right, "")
        if _are_plain(space, COMPARE_METHODS[op], left, right):
            if op in ("==", "!=") and (left.is_none() or right.is_none()):
                return ConstantValue(op == "!=")
            return tensor_operator(space, COMPARE[op], left, right)
    _check_scalars(left, right)
    if types.MappingProxyType in (left_type, right_type):
        if is_user_class(left_type) or is_user_class(right_type):  # the mapping asks once more
            raise GraphBreak("FJ0155", f"`{op}` of a mapping proxy and an object")
    order = [(left, own_name, right, op), (right, mirrored_name, left, MIRROR[op])]
    if right_type is not left_type and left_type in right_type.__mro__:
        order.reverse()
    for value, name, other, direction in order:
        result = _attempt_compare(space, value, name, direction, other)
        if result is not None:
            return result
    if op in ("==", "!="):
        return ConstantValue(identical(space, left, right) is (op == "=="))
    return _complain(space, COMPARE[op], *operands)


#: The operator that means the same with the operands exchanged.
MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def _attempt_compare(space: Space, value: Value, name: str, op: str, other: Value) -> Result | None:
    cls = value.python_type()
    own, inner = scalar_of(value), scalar_of(other)
    if own is not None or (value.is_constant and inner is not None):
        found = space.class_attribute(cls, name)
        if found is not None and not is_user_class(found.owner):
            left, right = own or value, inner or other
            if not right.is_constant:
                return None
            constant = left.as_python()
            answer = getattr(type(constant), name)(constant, right.as_python())
            return None if answer is NotImplemented else ConstantValue(answer)
    plain_tensor = type(value) is TensorValue and not space.is_overridden([value, other])
    if not is_user_class(cls) or plain_tensor or value.own_operators:
        method = value.compare_op
        if method is not None:
            return method(space, op, other)
        inherited = space.class_attribute(cls, name)
        if inherited is not None and inherited.owner is not object:
            _check_declines(space, value, name, other)
        return None
    found = space.class_attribute(cls, name)
    if found is None:
        return None
    if found.owner is object:
        if name == "__ne__":  # object.__ne__ inverts __eq__
            equal = _attempt_compare(space, value, "__eq__", "==", other)
            if equal is None:
                return None
            return ConstantValue(not space.truth(space.now(equal)))
        return None  # object.__eq__: identity, decided by the caller
    bound = space.now(space.bind_class_attribute(found, value, cls, name))
    return not_implemented(space, space.call(bound, [other], {}))
