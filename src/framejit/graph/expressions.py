"""Expressions over symbolic sizes as plain data, and what they become.

In: sympy expressions (of `torch.SymInt` and friends). Out: nested tuples such as
``("mul", ("load", "s77"), ("int", 2))``, which the native guard check evaluates in postfix form,
which generated code and graphs compute, and which messages print. Only `from_sympy` knows sympy.
Next: symbols.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

#: ("load", symbol's name) | ("int", number) | ("float", number) | (operation, operand, ...)
Tree = tuple[Any, ...]


class NotExpressible(Exception):
    """An expression contains a function that has no plain form."""


class Operation(NamedTuple):
    """One row: how an operation is computed and written."""

    compute: Callable[..., Any]  # on Python numbers
    record: Callable[..., Any]  # the target in a graph, which takes SymInts as well
    text: str  # with {0} ... for the operands
    binding: int = 9  # precedence; operands that bind less get brackets


def _where(condition: Any, then: Any, other: Any) -> Any:
    return then if condition else other


def _single(number: float) -> float:
    return ctypes.c_float(number).value


OPERATIONS: dict[str, Operation] = {
    "add": Operation(operator.add, operator.add, "{0} + {1}", 5),
    "sub": Operation(operator.sub, operator.sub, "{0} - {1}", 5),
    "mul": Operation(operator.mul, operator.mul, "{0} * {1}", 6),
    "floordiv": Operation(operator.floordiv, operator.floordiv, "{0} // {1}", 6),
    "mod": Operation(operator.mod, operator.mod, "{0} % {1}", 6),
    "truediv": Operation(operator.truediv, operator.truediv, "{0} / {1}", 6),
    "pow": Operation(operator.pow, operator.pow, "{0} ** {1}", 8),
    "min": Operation(min, torch.sym_min, "min({0}, {1})"),
    "max": Operation(max, torch.sym_max, "max({0}, {1})"),
    "neg": Operation(operator.neg, operator.neg, "-{0}", 7),
    "abs": Operation(abs, abs, "abs({0})"),
    "eq": Operation(operator.eq, operator.eq, "{0} == {1}", 3),
    "ne": Operation(operator.ne, operator.ne, "{0} != {1}", 3),
    "lt": Operation(operator.lt, operator.lt, "{0} < {1}", 3),
    "le": Operation(operator.le, operator.le, "{0} <= {1}", 3),
    "gt": Operation(operator.gt, operator.gt, "{0} > {1}", 3),
    "ge": Operation(operator.ge, operator.ge, "{0} >= {1}", 3),
    "and": Operation(lambda a, b: bool(a and b), operator.and_, "{0} and {1}", 1),
    "or": Operation(lambda a, b: bool(a or b), operator.or_, "{0} or {1}", 0),
    "not": Operation(operator.not_, torch.sym_not, "not {0}", 2),
    "where": Operation(_where, torch.sym_ite, "({1} if {0} else {2})"),
    "floor": Operation(math.floor, math.floor, "floor({0})"),
    "ceil": Operation(math.ceil, math.ceil, "ceil({0})"),
    "trunc": Operation(math.trunc, torch.sym_int, "int({0})"),
    "round": Operation(round, round, "round({0})"),
    "to_float": Operation(float, torch.sym_float, "float({0})"),
    "lshift": Operation(operator.lshift, operator.lshift, "{0} << {1}", 4),
    "rshift": Operation(operator.rshift, operator.rshift, "{0} >> {1}", 4),
    "bitand": Operation(operator.and_, operator.and_, "{0} & {1}", 4),
    "bitor": Operation(operator.or_, operator.or_, "{0} | {1}", 4),
    "bitxor": Operation(operator.xor, operator.xor, "{0} ^ {1}", 4),
    "sqrt": Operation(math.sqrt, torch.sym_sqrt, "sqrt({0})"),  # type: ignore[attr-defined]
    # Only Python computes these (`Symbols.derive`).
    "exp": Operation(math.exp, math.exp, "exp({0})"),
    "log": Operation(math.log, math.log, "log({0})"),
    "log10": Operation(math.log10, math.log10, "log10({0})"),
    "round_to": Operation(round, round, "round({0}, {1})"),
    # Only guards compute it: what a tensor of single precision makes of a number.
    "single": Operation(_single, _single, "float32({0})"),
}

#: Functions of one float, with the range in which they raise nothing.
FUNCTIONS: dict[Callable[[float], float], tuple[float, float]] = {
    math.sin: (-1e300, 1e300), math.cos: (-1e300, 1e300), math.tan: (-1e300, 1e300),
    math.sinh: (-700.0, 700.0), math.cosh: (-700.0, 700.0), math.tanh: (-1e300, 1e300),
    math.asin: (-1.0, 1.0), math.acos: (-1.0, 1.0), math.atan: (-1e300, 1e300),
    math.log2: (1e-300, 1e300),
}  # fmt: skip
OPERATIONS |= {
    function.__name__: Operation(
        function, getattr(torch, f"_sym_{function.__name__}"), f"{function.__name__}({{0}})"
    )
    for function in FUNCTIONS
}

#: Names of sympy's and torch's expression classes that are one operation.
_DIRECT = {
    "FloorDiv": "floordiv", "CleanDiv": "floordiv", "Mod": "mod", "PythonMod": "mod",
    "IntTrueDiv": "truediv", "FloatTrueDiv": "truediv", "PowByNatural": "pow", "FloatPow": "pow",
    "Equality": "eq", "Unequality": "ne", "StrictLessThan": "lt", "LessThan": "le",
    "StrictGreaterThan": "gt", "GreaterThan": "ge", "Not": "not", "Where": "where",
    "TruncToInt": "trunc", "FloorToInt": "floor", "CeilToInt": "ceil", "RoundToInt": "round",
    "ToFloat": "to_float", "LShift": "lshift", "RShift": "rshift", "Abs": "abs",
    "BitwiseFn_bitwise_and": "bitand", "BitwiseFn_bitwise_or": "bitor",
    "BitwiseFn_bitwise_xor": "bitxor", "OpaqueUnaryFn_sqrt": "sqrt",
    **{f"OpaqueUnaryFn_{function.__name__}": function.__name__ for function in FUNCTIONS},
}  # fmt: skip
#: Those with any number of operands.
_FOLDED = {"Add": "add", "Mul": "mul", "Min": "min", "Max": "max", "And": "and", "Or": "or"}


def from_sympy(expression: Any) -> Tree:
    """The plain form of a sympy expression. Raises NotExpressible."""
    kind = type(expression).__name__
    if kind == "Symbol":
        return ("load", expression.name)
    if expression.is_Integer:
        return ("int", int(expression))
    if expression.is_Float:
        return ("float", float(expression))
    if kind in ("BooleanTrue", "BooleanFalse"):
        return ("int", int(kind == "BooleanTrue"))
    if expression.is_Rational:
        return ("truediv", ("int", int(expression.p)), ("int", int(expression.q)))
    operands = [from_sympy(argument) for argument in expression.args]
    if kind in _DIRECT:
        return (_DIRECT[kind], *operands)
    if kind == "Mul" and operands[0] == ("int", -1):
        return ("neg", _fold("mul", operands[1:]))
    if kind == "Add":
        return _sum(operands)
    if kind == "Mul":
        operands.sort(key=lambda o: o[0] in ("int", "float"))
    if kind in _FOLDED:
        return _fold(_FOLDED[kind], operands)
    if kind == "Pow":
        base, exponent = operands
        if exponent[0] == "int" and exponent[1] < 0:
            return ("truediv", ("int", 1), ("pow", base, ("int", -exponent[1])))
        return ("pow", base, exponent)
    if kind == "ModularIndexing":
        return ("mod", ("floordiv", operands[0], operands[1]), operands[2])
    if kind == "CeilDiv":
        return ("neg", ("floordiv", ("neg", operands[0]), operands[1]))
    if kind == "Identity":
        return operands[0]
    raise NotExpressible(kind)


def _fold(operation: str, operands: list[Tree]) -> Tree:
    tree = operands[0]
    for operand in operands[1:]:
        tree = (operation, tree, operand)
    return tree


def _sum(operands: list[Tree]) -> Tree:
    """Numbers last and differences as such: ``s0 - 1``, not ``-1 + s0``."""
    numbers = [o for o in operands if o[0] in ("int", "float")]
    rest = [o for o in operands if o[0] not in ("int", "float")]
    rest.sort(key=lambda o: _is_negative(o))
    tree, *others = rest + numbers
    for operand in others:
        tree = ("sub", tree, _negated(operand)) if _is_negative(operand) else ("add", tree, operand)
    return tree


def _is_negative(tree: Tree) -> bool:
    return tree[0] == "neg" or (tree[0] in ("int", "float") and tree[1] < 0)


def _negated(tree: Tree) -> Tree:
    return tree[1] if tree[0] == "neg" else (tree[0], -tree[1])  # type: ignore[no-any-return]


def ordered(tree: Tree) -> Tree:
    """One form for computations that round alike: operands of + and * in a fixed order,
    differences as sums, numbers as floats."""
    kind = tree[0]
    if kind == "load":
        return tree
    if kind in ("int", "float"):
        return ("float", repr(float(tree[1])))
    operands = [ordered(operand) for operand in _without_conversions(tree)]
    if kind == "neg":
        return _product(operands[0], _MINUS_ONE)
    if kind == "sub":
        kind, operands[1] = "add", _product(operands[1], _MINUS_ONE)
    if kind == "mul":
        return _product(*operands)
    if kind == "add":
        operands.sort(key=repr)
    return (kind, *operands)


def _without_conversions(tree: Tree) -> list[Tree]:
    """The operands, where an int beside a float becomes one by itself."""
    kind, *operands = tree
    if kind not in _OF_FLOATS and not (kind in _ARITHMETIC and any(map(_is_float, operands))):
        return operands
    bare = [o[1] if o[0] == "to_float" else o for o in operands]
    return bare if kind in _OF_FLOATS or any(map(_is_float, bare)) else operands


def _is_float(tree: Tree) -> bool:
    kind = tree[0]
    sure = kind in ("float", "truediv", "to_float") or kind in _OF_FLOATS
    return sure or (kind in _ARITHMETIC and any(map(_is_float, tree[1:])))


_ARITHMETIC = frozenset({"add", "sub", "mul", "truediv", "neg"})
_OF_FLOATS = {"sqrt", *[function.__name__ for function in FUNCTIONS]}
_ONE, _MINUS_ONE = ("float", "1.0"), ("float", "-1.0")


def _product(left: Tree, right: Tree) -> Tree:
    left, right = sorted((left, right), key=repr)
    if _ONE in (left, right):
        return right if left == _ONE else left
    if left[0] == right[0] == "float":
        return ("float", repr(float(left[1]) * float(right[1])))
    if left == _MINUS_ONE and right[0] == "mul" and right[1][0] == "float":
        return ("mul", ("float", repr(-float(right[1][1]))), right[2])  # signs do not round
    return ("mul", left, right)


def replaced(tree: Tree, by: Mapping[str, Tree]) -> Tree:
    """The expression with others in place of some symbols."""
    if tree[0] == "load":
        return by.get(tree[1], tree)
    if tree[0] in ("int", "float") or not by:
        return tree
    return (tree[0], *[replaced(operand, by) for operand in tree[1:]])


def steps(tree: Tree) -> int:
    """How many numbers and operations there are in an expression."""
    return 1 if tree[0] in ("load", "int", "float") else 1 + sum(map(steps, tree[1:]))


def same(one: Tree, two: Tree) -> bool:
    """Are two expressions written alike? Numbers that are equal may differ: zeros have signs."""
    return one == two and repr(one) == repr(two)


def is_machine_sized(tree: Tree) -> bool:
    """Do the whole numbers in an expression fit 64 bits?"""
    if tree[0] == "int":
        return bool(-(1 << 63) <= tree[1] < 1 << 63)
    return tree[0] in ("load", "float") or all(map(is_machine_sized, tree[1:]))


def symbols_of(tree: Tree) -> list[str]:
    """The names of the symbols in an expression, each once, in order."""
    if tree[0] == "load":
        return [tree[1]]
    if tree[0] in ("int", "float"):
        return []
    return list(dict.fromkeys(name for operand in tree[1:] for name in symbols_of(operand)))


def evaluate(tree: Tree, values: Mapping[str, Any]) -> Any:
    """The value on Python numbers."""
    kind = tree[0]
    if kind == "load":
        return values[tree[1]]
    if kind in ("int", "float"):
        return tree[1]
    return OPERATIONS[kind].compute(*[evaluate(operand, values) for operand in tree[1:]])


def postfix(tree: Tree, position: Mapping[str, int]) -> list[Any]:
    """The form that the native check takes; ``position`` numbers the symbols."""
    kind = tree[0]
    if kind == "load":
        return [("load", position[tree[1]])]
    if kind in ("int", "float"):
        return [tree]
    return [step for operand in tree[1:] for step in postfix(operand, position)] + [kind]


def written(tree: Tree, names: Mapping[str, str]) -> str:
    """The expression in Python's notation, with readable names for the symbols."""
    return _written(tree, names)[0]


def _written(tree: Tree, names: Mapping[str, str]) -> tuple[str, int]:
    kind = tree[0]
    if kind == "load":
        return names.get(tree[1], tree[1]), 9
    if kind in ("int", "float"):
        return repr(tree[1]), 9 if tree[1] >= 0 else 7
    row = OPERATIONS[kind]
    parts = []
    for place, operand in enumerate(tree[1:]):
        text, binding = _written(operand, names)
        weaker = binding < row.binding or (binding == row.binding and place > 0)
        parts.append(f"({text})" if row.binding < 9 and weaker else text)
    return row.text.format(*parts), row.binding
