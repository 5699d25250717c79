"""Numbers that vary from call to call: sizes of inputs, ints and floats that are not built in.

In: `torch.SymInt`, `SymFloat`, `SymBool`, and existing numbers and tensors that the shapes room
says vary. Out: `SymbolicValue`: arithmetic gives symbolic values again; a decision is made as it
comes out now and assumed from then on; whatever needs the number itself fixes its value, which is
assumed too. Next room: interpreter.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from framejit import config
from framejit.exc import GraphBreak
from framejit.graph.expressions import FUNCTIONS, OPERATIONS, NotExpressible, Tree, ordered
from framejit.graph.metadata import Example
from framejit.graph.ragged import is_ragged_size
from framejit.source import Source
from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue, constant_value, wrap_literal
from framejit.values.core.registry import Result, makes, wraps
from framejit.values.core.space import Space

SYMBOLIC_TYPES = (torch.SymInt, torch.SymFloat, torch.SymBool)
_PYTHON = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
_HINT = (
    "Pass the size as an argument, use torch._check to say what is known of it, or move this line "
    "out of the compiled function."
)


class SymbolicValue(Value):
    """An int, float or bool that is not known while capturing. ``sym`` is PyTorch's symbolic
    number; ``exact`` the computation in the program's own order, where that counts (floats);
    ``shared``: another value may be the very same object."""

    __slots__ = ("exact", "shared", "sym")
    is_symbolic = True

    def __init__(self, sym: Any, exact: Tree | None = None) -> None:
        self.sym = sym
        self.exact = exact
        self.shared = False
        self.source = None

    def python_type(self) -> type:
        return _PYTHON[type(self.sym)]

    def tree(self, space: Space) -> Tree:
        """What generated code and graphs compute. Raises GraphBreak if it cannot be written."""
        if self.exact is not None:
            return self.exact
        try:
            return space.builder.symbols.tree(self.sym)  # type: ignore[no-any-return]
        except NotExpressible as problem:
            raise GraphBreak(
                "FJ0104", f"a size is computed with {problem}, which framejit cannot write"
            )

    def as_python(self) -> Any:
        """The number as it is now; assumed to stay that."""
        if type(self.sym) is torch.SymFloat:
            tree = self._known_tree()
            value = tree and symbols_behind(self.sym).assume_value(tree)
            if value is not None:
                return value
        return _decided(lambda: self.python_type()(self.sym))

    def now(self) -> Any:
        """The number at capture; None if it depends on data."""
        tree = self._known_tree()
        return None if tree is None else symbols_behind(self.sym).now(tree)

    def _known_tree(self) -> Tree | None:
        """The computation, for decisions as IEEE arithmetic makes them; None: it is of data."""
        symbols = symbols_behind(self.sym)
        try:
            tree = self.exact or symbols.tree(self.sym)
        except NotExpressible:
            return None
        return _known(symbols, tree)

    def fixed(self) -> ConstantValue:
        """The same as a constant."""
        return ConstantValue(self.as_python())

    def iter(self, space: Space) -> Value:
        kind = self.python_type().__name__
        return space.raise_error(TypeError, f"{kind!r} object is not iterable")

    def truth(self, space: Space) -> bool:
        if type(self.sym) is torch.SymFloat:
            tree = self._known_tree()
            if tree is not None:
                return symbols_behind(self.sym).decide(("ne", tree, ("float", 0.0)))
        answer = bool(_decided(lambda: bool(self.sym)))
        space.builder.symbols.poll()
        return answer

    def getattr(self, space: Space, name: str) -> Result:
        kind = self.python_type()
        if kind is not bool and (name == "real" or (name == "numerator" and kind is int)):
            return self
        if kind is not bool and (name == "imag" or (name == "denominator" and kind is int)):
            return ConstantValue(kind(name != "imag"))
        return self.fixed().getattr(space, name)

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        return self.fixed().call_method(space, name, args, kwargs)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        return self.fixed().call(space, args, kwargs)

    def to_fx(self, space: Space) -> Any:
        """The graph node that computes it."""
        builder = space.builder
        return builder.symbol_nodes.argument(self.tree(space), builder.symbols)

    def __repr__(self) -> str:
        return f"<symbolic {self.sym}>"


def symbols_behind(number: Any) -> Any:
    """The `Symbols` that a symbolic number belongs to."""
    return number.node.shape_env.symbols


def _decided(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:
        if type(error).__name__ == "GuardOnDataDependentSymNode":  # its module imports sympy
            raise GraphBreak(
                "FJ0104", "a number that depends on the data of a tensor is looked at", _HINT
            )
        raise


@makes(*SYMBOLIC_TYPES)
def symbolic_value(space: Space, number: Any, exact: Tree | None = None) -> Value:
    """The value of a symbolic number, or of a plain one that came out of symbolic arithmetic."""
    if isinstance(number, SYMBOLIC_TYPES):
        node = number.node
        if is_ragged_size(number):
            raise GraphBreak("FJ0104", "the size of a ragged dimension is the result of a call")
        if node.expr.is_number:
            # What Python computed, if that is known: sympy's floats do not overflow.
            known = node.hint if node.has_hint() else number
            return ConstantValue(_PYTHON[type(number)](known))
        return SymbolicValue(number, exact)
    return constant_value(space, number)


# -- from outside ----------------------------------------------------------------------------------


def wrap_number(space: Space, source: Source, obj: int | float) -> Value | None:
    """An existing number, if it varies; its class is guarded."""
    if not number_varies(space, source, obj):
        return None
    _check_whose_symbols(space)
    space.guard(source, "TYPE_MATCH", type(obj))
    value = symbolic_value(space, space.builder.symbols.number(source, obj))
    if isinstance(value, SymbolicValue):
        value.shared = source.accessor != "call"  # what a call returns is new
    return value


def number_varies(space: Space, source: Source, obj: int | float) -> bool:
    """Does an existing number vary? Who asks gets to know it once."""
    root = source.root
    if root.accessor == "const" and root.label.startswith("const "):
        return False  # such labels are not unique
    if space.task.alone:
        space.numbers_asked[source] = obj
    if _is_scheduled(space, source):
        space.policy.seen.tell_number(source.name, type(obj).__name__)
    policy = space.policy
    argument = policy.dynamic and root.accessor == "slot" and _is_part_of_argument(space, source)
    return policy.number(source.name, obj, bool(argument))


def _is_scheduled(space: Space, source: Source) -> bool:
    """Is it a learning rate that a scheduler changes? Schedulers note in the same dict what it was
    at first."""
    if source.accessor != "item" or source.key != "lr" or source.base is None:
        return False
    group = space.preloaded(source.base)
    held = None if group is None else group.realize().obj
    return type(held) is dict and "initial_lr" in held


def _check_whose_symbols(space: Space) -> None:
    """A symbol belongs to one place of the program: none is made for all calls of a function."""
    if space.task.alone:
        raise GraphBreak("FJ0104", "a number or size varies from call to call of a function")


def is_argument(source: Source) -> bool:
    """An argument or part of a container that is one; attributes of objects are not."""
    step: Source | None = source
    while step is not None and step.accessor in ("index", "item", "slot"):
        step = step.base
    return step is None


def _is_part_of_argument(space: Space, source: Source) -> bool:
    """An argument, or part of a container or an object that is one. What modules are made with
    stays what it is, unless the program says otherwise."""
    step: Source | None = source
    while step is not None and step.accessor in ("index", "item", "slot", "dict", "attr"):
        if step.accessor in ("dict", "attr") and not config.vary_module_numbers:
            holder = space.class_at(step.base)
            if holder is None or issubclass(holder, torch.nn.Module):
                return False
        step = step.base
    return step is None


def wrap_length(space: Space, source: Source, kind: Any, obj: Any) -> Value:
    """How many elements an existing container has; a program that only adds to it meets another
    number each time."""
    length = kind.__len__(obj)
    asked = source.child("call", kind.__len__)
    known = space.preloaded(asked) or wrap_number(space, asked, length)
    if known is None:
        space.guard(source, "LEN_MATCH", length)
        return constant_value(space, length)
    space.preload(asked, known)
    return known


def fix_length(space: Space, source: Source, kind: Any) -> None:
    """All elements of the container are looked at: its length is no symbol, now and later."""
    asked = source.child("call", kind.__len__)
    known = space.preloaded(asked)
    if known is not None:
        known.as_python()
        space.policy.seen.fixed.add(asked.name)


def wrap_sizes(space: Space, source: Source, obj: torch.Tensor) -> Example | None:
    """What is known of an existing tensor some of whose sizes vary; None if none does."""
    base = source.base
    fixed = type(obj) is torch.nn.Parameter or (base is not None and base.key == "_parameters")
    shape = space.policy.tensor(source.name, obj, fixed)
    if shape is None:
        return None
    _check_whose_symbols(space)
    there = space.task.expected(obj)
    space.builder.world.check_varying(there)
    symbols = space.builder.symbols
    sizes, strides = symbols.tensor(source, obj, shape.dims, shape.strides, shape.histories)
    for dim in shape.marked:
        symbols.must_vary.append(sizes[dim])
    free_sizes = tuple(i for i, size in enumerate(sizes) if isinstance(size, torch.SymInt))
    free_strides = tuple(i for i, step in enumerate(strides) if isinstance(step, torch.SymInt))
    if not (free_sizes or free_strides):  # what would vary follows from what does not
        return None
    example: Example = space.builder.world.symbolic_example(there, sizes, strides)
    space.guard(source, "TENSOR_MATCH", (obj, 0, free_sizes, free_strides))
    for dim in free_strides:
        symbols.require(source, "stride", dim, strides[dim])
    return example


# -- operators -------------------------------------------------------------------------------------


def _square_root(number: Any) -> Any:
    if not number >= 0:
        raise ValueError("math domain error")
    return torch.sym_sqrt(number)  # type: ignore[attr-defined]


def _function(function: Callable[[float], float]) -> Callable[[Any], Any]:
    low, high = FUNCTIONS[function]
    symbolic = OPERATIONS[function.__name__].record

    def apply(number: Any) -> Any:
        if not (number >= low and number <= high):
            raise ValueError("math domain error")
        return symbolic(number)

    return apply


_FUNCTIONS = {function: _function(function) for function in FUNCTIONS}
_INFINITE: Tree = ("float", math.inf)
#: What is decided as it comes out now.
_TESTS: dict[Any, Callable[[Tree], Tree]] = {
    math.isnan: lambda tree: ("ne", tree, tree),
    math.isinf: lambda tree: ("eq", ("abs", tree), _INFINITE),
    math.isfinite: lambda tree: ("lt", ("abs", tree), _INFINITE),
}
#: Functions that only Python computes, with the range in which they raise nothing.
_ONLY_DERIVED: dict[Any, tuple[float, float]] = {
    math.exp: (-700.0, 700.0), math.log: (1e-300, 1e300), math.log10: (1e-300, 1e300),
    round: (-1e300, 1e300),
}  # fmt: skip


def _int(number: Any) -> Any:
    return number if isinstance(number, torch.SymInt) else torch.sym_int(number)


_EXACT: dict[Any, str] = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "truediv",
    operator.floordiv: "floordiv", operator.mod: "mod", operator.pow: "pow", operator.neg: "neg",
    operator.lt: "lt", operator.le: "le", operator.eq: "eq", operator.ne: "ne", operator.gt: "gt",
    operator.ge: "ge", abs: "abs", math.floor: "floor", math.ceil: "ceil", torch.sym_int: "trunc",
    math.trunc: "trunc", torch.sym_float: "to_float", torch.sym_max: "max", torch.sym_min: "min",
    _square_root: "sqrt", _int: "trunc", min: "min", max: "max", round: "round",
    math.exp: "exp", math.log: "log", math.log10: "log10",
    **{symbolic: function.__name__ for function, symbolic in _FUNCTIONS.items()},
}  # fmt: skip
#: Functions that return an int as it is.
_ROUNDING = (math.floor, math.ceil, math.trunc, torch.sym_int)
#: Functions that may return an operand.
_CHOOSING = (abs, min, max, torch.sym_max, torch.sym_min)
#: Powers that are written as products.
_MOST_FACTORS = 8
_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
_DIVISIONS = (operator.truediv, operator.floordiv, operator.mod)


#: Guards and generated code compute with machine numbers; ints from here on are not put into them.
_MACHINE_LIMIT = 1 << 62


def _number(value: Value) -> Any:
    """The number to compute with, or None for other kinds of values."""
    if isinstance(value, SymbolicValue):
        return value.sym
    if type(value) is ConstantValue and type(value.value) in (int, float, bool):
        number = value.value
        if isinstance(number, int):  # beside a number that varies, a bool is an int
            return None if abs(number) >= _MACHINE_LIMIT else int(number)
        return number
    return None


def compute(space: Space, function: Any, operands: list[Value]) -> Value | None:
    """``function`` of numbers at least one of which is symbolic; None if it has to be done on the
    numbers themselves."""
    numbers = [_number(operand) for operand in operands]
    if any(number is None for number in numbers):
        return None
    if any(type(number) is torch.SymBool for number in numbers):
        return None
    if function in _DIVISIONS and not _decided(lambda: bool(numbers[1] != 0)):
        return None  # raises
    if function in _DIVISIONS and type(numbers[0]) is torch.SymInt:
        numbers[0] = _expanded(numbers[0])
    floats = any(isinstance(number, (float, torch.SymFloat)) for number in numbers)
    if floats and _EXACT.get(function) in _COMPARISONS:
        answer = _compared(space, _EXACT[function], operands)
        if answer is not None:
            return answer
    if function is torch.sym_float and operands[0].python_type() is float:
        return operands[0]
    if function in _TESTS:
        tree = _known(space.builder.symbols, _tree(space, operands[0]))
        if tree is None:
            return None
        return ConstantValue(space.builder.symbols.decide(_TESTS[function](tree)))
    if function is round and isinstance(numbers[0], (int, torch.SymInt)):
        whole = len(numbers) == 1 or (type(numbers[1]) is int and numbers[1] >= 0)
        return operands[0] if whole else None
    if function in _ROUNDING and type(numbers[0]) is torch.SymInt:
        return operands[0]
    if function in _ONLY_DERIVED:
        return _only_derived(space, function, operands)
    if floats and function in (operator.floordiv, operator.mod):
        return _derived(space, _EXACT[function], operands)  # the sign of zero, and rounding
    if function is operator.pow and floats and _whole_power(numbers[1]):
        return _derived(space, "pow", operands)
    if function is operator.pow and not floats and _few_times(numbers):
        return _multiplied(space, operands)
    if function is operator.pow and not _plain_power(numbers, floats):
        return None
    if floats and any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
        return None
    try:
        result = _decided(lambda: function(*numbers))
    except GraphBreak:
        raise
    except Exception:
        return None  # no symbolic form
    finally:
        space.builder.symbols.poll()
    for operand, number in zip(operands, numbers, strict=True):
        if result is number:
            return operand
    exact = None
    if type(result) is torch.SymInt and result.node.has_hint():
        if abs(result.node.hint) >= _MACHINE_LIMIT:
            return None
    if isinstance(result, SYMBOLIC_TYPES):
        traced = any(isinstance(o, SymbolicValue) and o.exact is not None for o in operands)
        if floats or traced or isinstance(result, torch.SymFloat):
            name = _EXACT.get(function)
            if name is None:
                return None
            exact = (name, *[_tree(space, operand) for operand in operands])
            if isinstance(result, torch.SymInt) and space.builder.symbols.takes_floats(exact):
                # Compilers take floats as tensors, and would have to read the number out of one.
                return _derived(space, name, operands)
            if not _is_as_written(space, result, exact):
                return _derived(space, name, operands)
    elif floats:
        return _derived(space, _EXACT[function], operands) if function in _EXACT else None
    value = symbolic_value(space, result, exact)
    if isinstance(value, SymbolicValue):
        value.shared = function in _CHOOSING
    return value


def _expanded(number: torch.SymInt) -> torch.SymInt:
    """The same with products of sums written as sums: of others, such as ``t * (2 * s + 2) / 6``,
    sympy may say that they are whole numbers when they are not."""
    node = number.node
    expression = node.expr.expand()
    if expression == node.expr or not node.has_hint():
        return number
    return node.shape_env.create_symintnode(expression, hint=node.hint)  # type: ignore[no-any-return]


def _only_derived(space: Space, function: Any, operands: list[Value]) -> Value | None:
    symbols = space.builder.symbols
    tree = _tree(space, operands[0])
    low, high = [("float", bound) for bound in _ONLY_DERIVED[function]]
    if not symbols.are_inputs(tree):
        return None
    if not symbols.decide(("and", ("ge", tree, low), ("le", tree, high))):
        return None
    return _derived(space, _EXACT[function] if len(operands) == 1 else "round_to", operands)


def _compared(space: Space, name: str, operands: list[Value]) -> Value | None:
    """A comparison with floats, as it comes out now: sympy takes floats for real numbers, of which
    none differs from itself and one more is always greater. None if it depends on data."""
    symbols = space.builder.symbols
    tree = _known(symbols, (name, *[_tree(space, operand) for operand in operands]))
    return None if tree is None else ConstantValue(symbols.decide(tree))


def _known(symbols: Any, tree: Tree) -> Tree | None:
    """The computation, unless it depends on data."""
    return tree if symbols.are_inputs(tree) else None


def _derived(space: Space, name: str, operands: list[Value]) -> Value | None:
    """What sympy would round differently or cannot say: Python computes it, the graph takes it as
    an input. None if that cannot be."""
    number = space.builder.symbols.derive((name, *[_tree(space, operand) for operand in operands]))
    return None if number is None else symbolic_value(space, number)


def _is_as_written(space: Space, result: Any, exact: Tree) -> bool:
    """Whether sympy has kept the order of a computation with floats, which decides how it is
    rounded: compilers compute what sympy made of it."""
    try:
        made = space.builder.symbols.tree(result)
    except NotExpressible:
        return False
    return ordered(made) == ordered(exact)


def _whole_power(exponent: Any) -> bool:
    """Whether any float has a power of this exponent."""
    return isinstance(exponent, (int, float)) and exponent >= 0 and exponent % 1 == 0


def _few_times(numbers: list[Any]) -> bool:
    """Is it the power of a whole number, of whatever sign, that depends on data?"""
    base, exponent = numbers
    if type(exponent) is not int or not 1 <= exponent <= _MOST_FACTORS:
        return False
    return type(base) is torch.SymInt and not base.node.has_hint()


def _multiplied(space: Space, operands: list[Value]) -> Value | None:
    """A power as products."""
    result: Value | None = operands[0]
    for _ in range(operands[1].as_python() - 1):
        result = None if result is None else compute(space, operator.mul, [result, operands[0]])
    return result


def _plain_power(numbers: list[Any], floats: bool) -> bool:
    """Whether a power is a real number that needs no case distinction."""
    base, exponent = numbers
    if floats:
        return bool(_decided(lambda: bool(base > 0)))
    return bool(_decided(lambda: bool(exponent >= 0) and bool(base >= 0)))


def _tree(space: Space, operand: Value) -> Tree:
    if isinstance(operand, SymbolicValue):
        return operand.tree(space)
    number = _number(operand)
    return ("float" if isinstance(number, float) else "int", number)


def plain(value: Value) -> Value:
    """``value``, with its number fixed if it is symbolic."""
    return value.fixed() if isinstance(value, SymbolicValue) else value


def check(space: Space, condition: SymbolicValue) -> bool:
    """``torch._check``: assume a condition, or have the graph check what depends on data."""
    symbols = space.builder.symbols
    if symbols.are_inputs(condition.tree(space)):
        return condition.truth(space)
    torch._check(condition.sym)
    space.builder.call_effect(torch._check, (condition.to_fx(space),), {})
    return True


@wraps(int, float)
def _wrap_number(space: Space, source: Source, obj: int | float) -> Value:
    return wrap_number(space, source, obj) or wrap_literal(space, source, obj)
