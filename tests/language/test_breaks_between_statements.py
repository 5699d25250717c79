"""The same programs with a graph break after every statement: all state crosses every break."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable

import pytest
import test_builtins
import test_containers
import test_iterators
import torch

from checking import check

#: Programs in which a value crosses a break that cannot exist for real then (see docs).
CASES = [
    (module, case)
    for module in (test_containers, test_iterators, test_builtins)
    for case in module.CASES
]


class InsertBreaks(ast.NodeTransformer):
    """Puts ``print(n)`` after every statement of the outermost function and of its blocks."""

    def __init__(self) -> None:
        self.count = 0
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        if self.depth == 1:
            self.generic_visit(node)
        self.depth -= 1
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and not isinstance(node, ast.Module):
                setattr(node, name, [part for s in block for part in self.with_break(s)])
        return node

    def with_break(self, statement: ast.stmt) -> list[ast.stmt]:
        self.count += 1
        call = ast.Call(ast.Name("print", ast.Load()), [ast.Constant(self.count)], [])
        return [statement, ast.Expr(call)]


def with_breaks(function: Callable) -> Callable:
    """A copy of ``function`` with a break after every statement."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree = ast.fix_missing_locations(InsertBreaks().visit(tree))
    namespace = dict(function.__globals__)
    exec(compile(tree, f"<{function.__name__} with breaks>", "exec"), namespace)
    return namespace[function.__name__]


@pytest.mark.parametrize(
    "module, case",
    CASES,
    ids=[case[0].__name__ for _, case in CASES],
)
def test_program(module, case) -> None:
    function, ops, *args = case
    check(with_breaks(function), torch.arange(6.0).reshape(2, 3), *args, calls=3, ops=ops)
