"""Makes a failing program small: delta debugging on the syntax tree.

In: a `Program` that fails. Out: the smallest program found that fails with the same signature, and
its text as a script. Statements are removed in pieces, blocks replace their statements, parts of
expressions replace the whole, calls are left out.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from program_writer import Program
from runner import Report, run, split_call

TRIES = 2500
_CONSTANTS = (0, 1, None)


@dataclass
class Small:
    """A program that was made small."""

    program: Program
    report: Report

    @property
    def text(self) -> str:
        """The program without what all have in common, its calls and what is wrong."""
        calls = "\n".join("{}(*{})".format(*split_call(call)) for call in self.program.calls)
        return f"{self.program.own}\n{calls}\n--- {self.report.failure}\n"


def shrink(program: Program, mode: str, seed: int) -> Small:
    """The smallest program that still fails in the same way."""
    return _Shrinker(program, mode, seed).result()


class _Shrinker:
    def __init__(self, program: Program, mode: str, seed: int) -> None:
        self.mode, self.seed = mode, seed
        self.report = run(program, mode, seed)
        self.signature = self.report.signature
        self.whole = program
        self.prelude = program.prelude
        self.tree = ast.parse(program.own)
        self.calls = program.calls
        self.tries = 0

    def program(self, tree: ast.AST, calls: list[str]) -> Program:
        text = ast.unparse(ast.fix_missing_locations(tree))
        return dataclasses.replace(self.whole, source=f"{self.prelude}{text}\n", calls=calls)

    def result(self) -> Small:
        changed = True
        while changed and self.tries < TRIES:
            changed = self.fewer_calls() | self.pass_over(statements) | self.pass_over(expressions)
        return Small(self.program(self.tree, self.calls), self.report)

    def fails(self, tree: ast.AST, calls: list[str]) -> bool:
        """Whether this program still fails in the same way; it becomes the current one then."""
        self.tries += 1
        if self.tries > TRIES:
            return False
        try:
            report = run(self.program(tree, calls), self.mode, self.seed, seconds=3)
        except Exception:  # noqa: BLE001 - not a program any more
            return False
        if not report.failure or report.signature != self.signature:
            return False
        self.tree, self.calls, self.report = tree, calls, report
        return True

    def fewer_calls(self) -> bool:
        changed = False
        for index in reversed(range(len(self.calls))):
            if len(self.calls) > 1:
                changed |= self.fails(self.tree, self.calls[:index] + self.calls[index + 1 :])
        return changed

    def pass_over(self, changes: object) -> bool:
        """Try every change once; changes are numbered, and those after an accepted one move up."""
        changed, index = False, 0
        while self.tries <= TRIES:
            tree = copy.deepcopy(self.tree)
            change = next((c for i, c in enumerate(changes(tree)) if i == index), None)
            if change is None:
                return changed
            change()
            if self.fails(tree, self.calls):
                changed = True
            else:
                index += 1
        return changed


def statements(tree: ast.AST) -> Iterator[object]:
    """Changes that remove statements or unwrap blocks."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block:
                continue
            size = len(block)
            while size:
                for start in range(0, len(block), size):
                    yield lambda b=block, n=name, s=start, z=size: remove(b, n, s, z)
                size //= 2
            for index, statement in enumerate(block):
                for inner in ("body", "orelse", "finalbody"):
                    if getattr(statement, inner, None) and isinstance(statement, ast.stmt):
                        yield lambda b=block, i=index, n=inner: unwrap(b, i, n)


def remove(block: list[ast.AST], name: str, start: int, size: int) -> None:
    del block[start : start + size]
    if not block and name == "body":
        block.append(ast.Pass())


def unwrap(block: list[ast.AST], index: int, name: str) -> None:
    block[index : index + 1] = getattr(block[index], name)


def expressions(tree: ast.AST) -> Iterator[object]:
    """Changes that put a part of an expression, or a constant, in the place of the whole."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                yield from replacements(value, lambda new, o=node, n=name: setattr(o, n, new))
            elif isinstance(value, list):
                for index, part in enumerate(value):
                    if isinstance(part, ast.expr):
                        yield lambda v=value, i=index: v.pop(i)
                        yield from replacements(
                            part, lambda new, v=value, i=index: v.__setitem__(i, new)
                        )


def replacements(old: ast.expr, put: object) -> Iterator[object]:
    if isinstance(old, (ast.Constant, ast.Name)) or isinstance(
        getattr(old, "ctx", None), (ast.Store, ast.Del)
    ):
        return
    for part in ast.walk(old):
        if part is not old and isinstance(part, ast.expr) and not isinstance(part, ast.Starred):
            if isinstance(getattr(part, "ctx", ast.Load()), ast.Load):
                yield lambda part=part: put(part)
    for constant in _CONSTANTS:
        yield lambda constant=constant: put(ast.Constant(constant))
