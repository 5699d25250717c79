"""The shape part of an entry's guards: what must hold of the numbers that vary, and which of them
the generated function gets.

In: the assumptions of `graph.symbols` and the symbols that code uses. Out: the program that the
native `GuardTree` evaluates after its other checks, printed guards, and the reason for a failure.
Used by `plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from framejit.graph.bounds import Assumption
from framejit.graph.expressions import Tree, evaluate, postfix, symbols_of, written
from framejit.guards.texts import shown_name
from framejit.source import Source

if TYPE_CHECKING:
    from framejit.graph.symbols import Symbol, Symbols

#: (inputs (node, kind, dim), checks in postfix form, positions of the captured inputs)
Program = tuple[list[tuple[int, str, int]], list[list[Any]], list[int]]


class ShapePlan:
    """Checks on symbols. ``captured``: the symbols whose values the function gets, in order."""

    def __init__(
        self, symbols: dict[str, Symbol], checks: Sequence[Assumption], captured: Sequence[str]
    ) -> None:
        used = dict.fromkeys(captured)
        for check in checks:
            used.update(dict.fromkeys(symbols_of(check.tree)))
        self.inputs = [symbols[name] for name in symbols if name in used]
        self.checks = list(checks)
        self.captured = list(captured)
        #: How messages name the symbols: by what they represent.
        self.names = {s.name: _shown(s) for s in self.inputs}

    def assuming(self, trees: Sequence[Tree]) -> ShapePlan:
        """The same, and these checks after the others."""
        more = [Assumption(tree, None) for tree in trees]
        symbols = {symbol.name: symbol for symbol in self.inputs}
        return ShapePlan(symbols, [*self.checks, *more], self.captured)

    def program(self, node_of: Callable[[Source], int]) -> Program:
        """The native form; ``node_of`` gives the number of a source in the tree."""
        position = {symbol.name: i for i, symbol in enumerate(self.inputs)}
        return (
            [(node_of(s.source), s.kind, s.dim) for s in self.inputs],
            [postfix(check.tree, position) for check in self.checks],
            [position[name] for name in self.captured],
        )

    def text(self, tree: Tree) -> str:
        """``local 'x'.size(0) >= 2``"""
        return written(tree, self.names)

    def line(self, index: int) -> tuple[str, int] | None:
        """The user's line that needs check ``index``."""
        return self.checks[index].line if index < len(self.checks) else None

    def failure(self, index: int, load: Callable[[Source], tuple[bool, Any]]) -> str:
        """Why check ``index`` does not hold: what was assumed, and the numbers now."""
        if index >= len(self.checks):
            return "it was assumed that numbers which vary fit 64 bits, now one does not"
        tree = self.checks[index].tree
        values: dict[str, Any] = {}
        for symbol in self.inputs:
            found, value = load(symbol.source)
            if found and (part := _part(value, symbol)) is not None:
                values[symbol.name] = part
        names = symbols_of(tree)
        shown = [f"{self.names[n]} is {values[n]}" for n in names if n in values]
        if len(shown) == len(names) and not _fails(tree, values):
            return f"it was assumed that numbers fit 64 bits, now {' and '.join(shown)}"
        now = " and ".join(shown) or "there are no such numbers"
        return f"it was assumed that {self.text(tree)}, now {now}"


def make_shape_plan(symbols: Symbols | None, captured: Sequence[str]) -> ShapePlan | None:
    """The plan for one capture; None when nothing in it varies."""
    if symbols is None:
        return None
    return ShapePlan(symbols.known, symbols.assumptions(), captured)


def _shown(symbol: Symbol) -> str:
    name = shown_name(symbol.source)
    if symbol.kind in ("size", "stride"):
        return f"{name}.{symbol.kind}({symbol.dim})"
    return name


def _part(value: Any, symbol: Symbol) -> Any:
    """The number that a symbol represents; None where the value has none."""
    if symbol.kind not in ("size", "stride"):
        return value
    with torch._C.DisableTorchFunction():  # its class may have code of the program's for that
        if not issubclass(type(value), torch.Tensor) or symbol.dim >= value.dim():
            return None
        return getattr(value, symbol.kind)(symbol.dim)


def _fails(tree: Tree, values: dict[str, Any]) -> bool:
    try:
        return not evaluate(tree, values)
    except (ArithmeticError, ValueError, TypeError):
        return True
