"""The least that sizes must be, said once for each.

In: what a capture assumed of its symbols. Out: assumptions that mean the same, with one lower bound
for each size in place of the many ways in which `ShapeEnv` says it: a size that is not 0, as a
product with others shows, and not 1 is at least 2. Next: symbols.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .expressions import Tree


class Assumption(NamedTuple):
    """Something that must hold of the symbols. ``line``: the user's (file, line) that needs it."""

    tree: Tree
    line: tuple[str, int] | None


def with_bounds(assumptions: list[Assumption], lowest: dict[str, int]) -> list[Assumption]:
    """``lowest``: what sizes and strides are at least, by the names of their symbols; not below 0.
    Bounds take the place of the first assumption about their symbol, the given ones come last."""
    low = dict(lowest)
    while True:
        before = dict(low)
        for assumption in assumptions:
            _raise_bounds(assumption.tree, low)
        if low == before:
            break
    said: dict[str, Assumption | None] = {name: None for name, bound in low.items() if bound > 0}
    out: list[Assumption] = []
    for assumption in assumptions:
        tree = assumption.tree
        if not _implied(tree, low):
            out.append(assumption)
        elif tree[1][0] == "load" and said.get(tree[1][1], assumption) is None:
            name = tree[1][1]
            said[name] = Assumption(("ge", ("load", name), ("int", low[name])), assumption.line)
            out.append(said[name])  # type: ignore[arg-type]
    for name, bound in said.items():
        if bound is None:
            out.append(Assumption(("ge", ("load", name), ("int", low[name])), None))
    return out


def _least(tree: Tree, low: dict[str, int]) -> tuple[list[str], int] | None:
    """Symbols that have a bound, and n, where the assumption is that their product is >= n."""
    if tree[0] not in ("ge", "gt") or tree[2][0] != "int":
        return None
    factors = _factors(tree[1])
    if factors is None or any(name not in low for name in factors):
        return None
    return factors, int(tree[2][1]) + (tree[0] == "gt")


def _factors(tree: Tree) -> list[str] | None:
    """The symbols of a product of symbols."""
    if tree[0] == "load":
        return [tree[1]]
    if tree[0] != "mul":
        return None
    left, right = _factors(tree[1]), _factors(tree[2])
    return None if left is None or right is None else left + right


def _raise_bounds(tree: Tree, low: dict[str, int]) -> None:
    if tree[0] == "ne" and tree[1][0] == "load" and tree[2] == ("int", low.get(tree[1][1])):
        low[tree[1][1]] += 1
    found = _least(tree, low)
    if found is None:
        return
    factors, least = found
    if len(factors) == 1:
        low[factors[0]] = max(low[factors[0]], least)
    elif least >= 1:
        for name in factors:
            low[name] = max(low[name], 1)


def _implied(tree: Tree, low: dict[str, int]) -> bool:
    """Whether the bounds alone make this true."""
    if tree[0] == "ne" and tree[1][0] == "load" and tree[2][0] == "int":
        return bool(tree[2][1] < low.get(tree[1][1], 0))
    found = _least(tree, low)
    return found is not None and math.prod(low[name] for name in found[0]) >= found[1]
