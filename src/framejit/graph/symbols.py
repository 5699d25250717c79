"""Symbols for sizes and numbers that vary: which there are, what they represent, what is assumed.

In: tensors and numbers whose values must not be built in, with their sources. Out: fake tensors
with symbolic sizes, `torch.SymInt`s, and at the end the assumptions, as plain data, that PyTorch's
`ShapeEnv` gathered about them. The algebra is PyTorch's; names come from a hash of the source's
name, so every process finds the same. Made only when something varies: it imports sympy.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import linecache
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

import torch
from torch._guards import GuardSource
from torch._guards import Source as TorchSource
from torch._subclasses.fake_tensor import FakeTensorMode

from .. import config
from ..exc import MarkContradicted
from ..source import Source
from .bounds import Assumption, with_bounds
from .expressions import (
    NotExpressible,
    Tree,
    evaluate,
    from_sympy,
    is_machine_sized,
    replaced,
    same,
    steps,
    symbols_of,
    written,
)
from .metadata import Limits

#: Bounds at or beyond this are none.
_FAR = 1 << 62
#: No more numbers than this are computed before a graph, none of more steps than this.
_MOST_DERIVED, _MOST_STEPS = 64, 200


class Symbol(NamedTuple):
    """What one symbol represents: a part of the value at ``source``."""

    name: str  # s77
    source: Source
    kind: str  # size | stride | int | float
    dim: int

    @property
    def text(self) -> str:
        """``L['x'].size(0)``"""
        if self.kind in ("size", "stride"):
            return f"{self.source.name}.{self.kind}({self.dim})"
        return self.source.name


@dataclasses.dataclass(frozen=True)
class _Named(TorchSource):
    """A source as `ShapeEnv` wants it: little more than a name."""

    text: str

    @property
    def _name_template(self) -> str:
        return self.text.replace("{", "{{").replace("}", "}}")

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.text

    @property
    def guard_source(self) -> GuardSource:  # type: ignore[override]
        return GuardSource.LOCAL


@functools.cache
def _environment() -> type[Any]:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    _mend_sums()

    class Environment(ShapeEnv):
        """PyTorch's, with names from a wider range: an input that varies in one run only must not
        push aside the names of others, which are part of the keys of caches on disk."""

        symbols: Symbols

        def _generate_unique_id(self, source_name: str) -> int:
            return unique_number(source_name, self.unique_ids)

        def _get_user_frame(self) -> FrameType:
            """For its log only. PyTorch leaves out files of its own, and to know which these are it
            imports torch.export, AOTAutograd and Inductor: a second."""
            return sys._getframe(1)

    return Environment


def _mend_sums() -> None:
    """A symbolic number of PyTorch's remembers that it was made as a sum of different symbols, and
    goes on saying so when one of them is known to be something else by now: `n + z` would be `z`
    once `n = x + y` is a number. It is true only as long as the expression is what it was."""
    from torch.fx.experimental.sym_node import SymNode

    flag = "_optimized_summation"
    if getattr(SymNode, flag, None) is not False:
        return  # patched already, here or there

    def get(node: Any) -> bool:
        return bool(vars(node).get(flag)) and node.expr == node._expr

    def set_(node: Any, value: bool) -> None:
        vars(node)[flag] = value

    setattr(SymNode, flag, property(get, set_))


def unique_number(source_name: str, taken: set[int]) -> int:
    """The number in a symbol's name: a hash of its source's name, or the next one that is free."""
    number = int(hashlib.sha256(source_name.encode()).hexdigest(), 16) % 10_000
    while number in taken:
        number += 1
    taken.add(number)
    return number


class Symbols:
    """All symbols of one capture."""

    def __init__(self) -> None:
        # Slow: imports sympy.
        self.env = _environment()(
            duck_shape=False,  # equal sizes at capture need not be equal later
            allow_scalar_outputs=config.capture_scalar_outputs,
            allow_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops,
        )
        self.env.symbols = self
        self.known: dict[str, Symbol] = {}
        #: The user's line for each guard of `env`, by position.
        self._lines: list[tuple[str, int] | None] = []
        self.line: Callable[[], tuple[str, int] | None] = lambda: None
        #: Symbols for what Python computes before the graph, because sympy would round it
        #: differently or cannot say it: the computations, of inputs alone.
        self.derived: dict[str, Tree] = {}
        self._numbers: dict[str, Any] = {}
        self._required: list[Assumption] = []
        #: Sizes that a user marked as dynamic.
        self.must_vary: list[Any] = []
        self._first: dict[str, Limits] = {}
        #: By what a size was in earlier captures.
        self._by_history: dict[Any, Any] = {}
        #: What only guards load -> its value at capture.
        self._looked_at: dict[str, int | float] = {}

    def attach(self, mode: FakeTensorMode) -> FakeTensorMode:
        """Let fake tensors of ``mode`` have symbolic sizes."""
        mode.shape_env = self.env
        mode.static_shapes = False
        return mode

    # -- making symbols

    def tensor(
        self,
        source: Source,
        tensor: torch.Tensor,
        dims: dict[int, Limits],
        strides: frozenset[int] = frozenset(),
        histories: Mapping[int, Any] = MappingProxyType({}),
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Sizes and strides of an input: ``dims`` vary, ``strides`` vary independently of them.
        Sizes with equal ``histories`` are one symbol, and must be equal."""
        shape: list[Any] = list(tensor.shape)
        for dim, limits in dims.items():
            history = histories.get(dim)
            known = self._by_history.get(history)
            if known is not None:
                shape[dim] = known
                name = f"{source.name}.size({dim})"
                self.known[name] = Symbol(name, source, "size", dim)
                self._require(("eq", ("load", name), ("load", known.node._expr.name)))
                continue
            shape[dim] = made = self._size(source, "size", dim, shape[dim], limits)
            if history is not None and isinstance(made, torch.SymInt):
                self._by_history[history] = made
        return tuple(shape), self._strides(source, tensor, shape, strides)

    def _strides(
        self, source: Source, tensor: torch.Tensor, shape: list[Any], free: frozenset[int]
    ) -> tuple[Any, ...]:
        """A stride that is a product of sizes now is one always; the native check sees to it."""
        real_shape, real = tensor.shape, tensor.stride()
        made: dict[int, Any] = {}
        products: dict[int, Any] = {}
        for dim in sorted(range(len(real)), key=lambda d: (real[d], -d)):
            stride = real[dim]
            inner = dim + 1 < len(real) and stride == real_shape[dim + 1] * real[dim + 1]
            if stride in products and (stride > 1 or inner):
                made[dim] = products[stride]
            elif dim in free and stride > 1:
                made[dim] = self._size(source, "stride", dim, stride, Limits())
            else:
                made[dim] = stride
            products[stride * real_shape[dim]] = made[dim] * shape[dim]
        return tuple(made[dim] for dim in range(len(real)))

    def _size(self, source: Source, kind: str, dim: int, value: int, limits: Limits) -> Any:
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        named = _Named(f"{source.name}.{kind}({dim})")
        # Size 1 is excluded by a guard where the program looks at the difference.
        symbol = self.env.create_symbol(
            value, named, dynamic_dim=DimDynamic.DYNAMIC, do_not_specialize_zero_one=True
        )
        made = self._bind(symbol, Symbol("", source, kind, dim), value, named)
        if limits.low is not None:
            torch._check(made >= limits.low)
        if limits.high is not None:
            torch._check(made <= limits.high)
        self.poll()
        return made

    def number(self, source: Source, value: int | float) -> Any:
        """A `torch.SymInt` or `torch.SymFloat` for a Python number."""
        named = _Named(source.name)
        symbol = self._unspecified(value, named)
        kind = "int" if type(value) is int else "float"
        return self._bind(symbol, Symbol("", source, kind, 0), value, named)

    def derive(self, tree: Tree) -> Any:
        """A number that is computed for the graph, which takes it as an input; None if it cannot
        be: it depends on data, is no finite number now, or is too long."""
        if not self.are_inputs(tree) or len(self.derived) >= _MOST_DERIVED:
            return None
        try:
            value = self.now(tree)
        except (ArithmeticError, ValueError):
            return None
        if abs(value) >= _FAR if type(value) is int else not math.isfinite(value):
            return None
        tree = replaced(tree, self.derived)
        if steps(tree) > _MOST_STEPS:
            return None
        named = _Named(written(tree, {name: what.text for name, what in self.known.items()}))
        for name, known in self.derived.items():
            if same(known, tree):
                return self._numbers[name]
        symbol = self._unspecified(value, named)
        self.derived[symbol.name] = tree
        return self._made(symbol, value, named)

    def _unspecified(self, value: int | float, named: _Named) -> Any:
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        return self.env.create_unspecified_symbol(value, named, dynamic_dim=DimDynamic.DYNAMIC)

    def are_inputs(self, tree: Tree) -> bool:
        """Whether a computation is one of inputs alone: nothing in it depends on data."""
        return all(name in self.known or name in self.derived for name in symbols_of(tree))

    def takes_floats(self, tree: Tree) -> bool:
        """Whether a float that varies is in it."""
        return any(type(self._numbers.get(name)) is torch.SymFloat for name in symbols_of(tree))

    def _bind(self, symbol: Any, what: Symbol, value: Any, named: _Named) -> Any:
        if symbol.is_number:  # 0 and 1 are special to PyTorch
            return value
        name = symbol.name
        self.known[name] = what._replace(name=name)
        self._first[name] = self._bounds(symbol)
        return self._made(symbol, value, named)

    def _made(self, symbol: Any, value: int | float, named: _Named) -> Any:
        make = self.env.create_symintnode
        if type(value) is float:
            make = self.env.create_symfloatnode  # type: ignore[assignment]
        number = self._numbers[symbol.name] = make(symbol, hint=value, source=named)
        return number

    def again(self, what: Symbol, value: int | float) -> Any:
        """The number for a symbol of an earlier capture, which had this value then."""
        if what.kind in ("size", "stride"):
            return self._size(what.source, what.kind, what.dim, int(value), Limits())
        return self.number(what.source, value)

    @property
    def values(self) -> dict[str, int | float]:
        """What every symbol was at capture."""
        return {name: self.value(name) for name in self._numbers}

    def tree(self, number: Any) -> Tree:
        """The expression of a SymInt, SymFloat or SymBool. Raises NotExpressible."""
        return from_sympy(number.node.expr)

    def example(self, name: str) -> Any:
        """The SymInt or SymFloat of one symbol."""
        return self._numbers[name]

    # -- what is assumed

    def require(self, source: Source, kind: str, dim: int, expected: Any) -> None:
        """A size or stride ("size" or "stride") that the native check does not compare itself,
        because it is a symbol or follows from others."""
        tree = self.tree(expected)
        if tree[0] == "load" and self.known[tree[1]][1:] == (source, kind, dim):
            return
        name = f"{source.name}.{kind}({dim})"
        self.known[name] = Symbol(name, source, kind, dim)
        self._require(("eq", ("load", name), tree))

    def decide(
        self, tree: Tree, numbers: Mapping[Source, int | float] = MappingProxyType({})
    ) -> bool:
        """Whether a condition holds now, in Python's own arithmetic; assumed from then on.
        ``numbers`` are in it under the names of their sources, and in nothing else."""
        for source, value in numbers.items():
            self.known[source.name] = Symbol(source.name, source, type(value).__name__, 0)
            self._looked_at[source.name] = value
        answer = bool(self.now(tree))
        self._require(tree if answer else ("not", tree))
        return answer

    def _require(self, tree: Tree) -> None:
        for checked in self._checked(replaced(tree, self.derived)):
            self._required.append(Assumption(checked, self.line()))

    def assume_value(self, tree: Tree) -> float:
        """What a float is now, assumed to stay that."""
        value = float(self.now(tree))
        self._require(("eq", tree, ("float", value)) if value == value else ("ne", tree, tree))
        if value == 0:  # the sign counts as well
            for same_value in _as_now(self, symbols_of(replaced(tree, self.derived))):
                self._require(same_value)
        return value

    def _checked(self, tree: Tree) -> list[Tree]:
        """The assumption if the native check can compute it, else that all in it stays as it is."""
        return [tree] if is_machine_sized(tree) else _as_now(self, symbols_of(tree))

    def now(self, tree: Tree) -> Any:
        """What a computation gives at capture, in Python's own arithmetic."""
        tree = replaced(tree, self.derived)  # sympy's zero has no sign
        return evaluate(tree, {name: self.value(name) for name in symbols_of(tree)})

    def poll(self) -> None:
        """Remember the user's line for the guards that came since the last call."""
        self.env.pending_fresh_unbacked_symbols.clear()  # `SymbolNodes` has their nodes
        missing = len(self.env.guards) - len(self._lines)
        if missing > 0:
            self._lines += [self.line()] * missing

    def _bounds(self, symbol: Any) -> Limits:
        known = self.env.var_to_range.get(symbol)
        ends = (known.lower, known.upper) if known is not None else ()
        return Limits(*[int(n) if n.is_Integer and abs(int(n)) < _FAR else None for n in ends])

    def fixed(self, name: str) -> int | float | None:
        """The value that the program forces a symbol to have, if it does."""
        known = self.env.replace(self.symbol(name))
        return _plain(known) if known.is_number else None

    def symbol(self, name: str) -> Any:
        """The sympy symbol of this name."""
        import sympy  # slow; loaded by `ShapeEnv`

        for symbol in self.env.var_to_range:
            if symbol.name == name:
                return symbol
        return sympy.Symbol(name)

    def value(self, name: str) -> Any:
        """A symbol's value at capture."""
        if name in self._looked_at:
            return self._looked_at[name]
        return _plain(self.env.backed_var_to_val[self.symbol(name)])

    def assumptions(self) -> list[Assumption]:
        """Everything that `ShapeEnv` relied on, as weak as it can be said, in a fixed order."""
        self.poll()
        found: dict[Tree, Assumption] = {}

        def add(tree: Tree, line: tuple[str, int] | None) -> None:
            found.setdefault(tree, Assumption(tree, line))

        for guard, line in zip(self.env.guards, self._lines, strict=True):
            for part in guard.expr.args if type(guard.expr).__name__ == "And" else (guard.expr,):
                self._add_guard(part, line, add)
        self._check_marks(found)
        for required in self._required:
            add(*required)
        lowest: dict[str, int] = {}
        for name, what in self.known.items():
            low, high = self._first.get(name, Limits())
            if any(t[0] == "eq" and t[1] == ("load", name) and t[2][0] == "int" for t in found):
                continue
            if low is not None and what.kind in ("size", "stride"):
                # Sizes are positive for `ShapeEnv`, and compilers read the last element of a
                # dimension without asking whether there is one.
                lowest[name] = max(1, low)
            if high is not None:
                add(("le", ("load", name), ("int", high)), None)
        return with_bounds(list(found.values()), lowest)

    def _check_marks(self, found: dict[Tree, Assumption]) -> None:
        for size in self.must_vary:
            name = size.node._expr.name  # as it was made, whatever is known of it by now
            value = self.fixed(name)
            if value is None:
                continue
            lines = [a.line for a in found.values() if name in symbols_of(a.tree) and a.line]
            where = "the code"
            if lines:
                filename, line = lines[-1]
                code = linecache.getline(filename, line).strip()
                where = f"{filename}:{line} ({code})"
            symbol = self.known[name]
            raise MarkContradicted(
                f"dimension {symbol.dim} of {symbol.source.name} is marked as dynamic, but {where} "
                f"works for size {value} only. Write that line so that it works for any size, or "
                "use maybe_mark_dynamic(), which gives this size its own code."
            )

    def _add_guard(
        self, expression: Any, line: tuple[str, int] | None, add: Callable[..., None]
    ) -> None:
        names = sorted(symbol.name for symbol in expression.free_symbols)
        if not names or not all(name in self.known or name in self.derived for name in names):
            return  # about data: checked by the graph itself
        try:
            trees = [_normal(from_sympy(expression))]
        except NotExpressible:  # rare: all that is in it keeps its value
            trees = _as_now(self, names)
        for tree in trees:
            for checked in self._checked(replaced(tree, self.derived)):
                add(checked, line)


def _as_now(symbols: Symbols, names: Iterable[str]) -> list[Tree]:
    """That symbols have the values that they have at capture."""
    values = {name: symbols.value(name) for name in names}
    return [("eq", ("load", n), (type(v).__name__, v)) for n, v in values.items()]


def _normal(tree: Tree) -> Tree:
    """``4 == s0`` is ``s0 == 4``."""
    turned = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
    if tree[0] in turned and tree[1][0] in ("int", "float"):
        return (turned[tree[0]], tree[2], tree[1])
    return tree


def _plain(number: Any) -> int | float:
    return int(number) if number.is_Integer else float(number)
