"""Writes random programs from a grammar of templates: what a family of programs is made of is data.

In: `Grammar` (expressions and statements per kind of variable) and a seed. Out: statements of one
function. A template is a text with holes; lines are separated by ``|``, and ``¦`` stands for a bar:

- ``{num}``: an expression of this kind; ``{name=num}``: an existing variable of it, from then on
  ``{name}``; ``{name+num}``: a new variable of this kind, known to what follows;
- ``{body}`` on a line of its own: a few random statements, whose variables end with the block;
- ``{a/b/c}``: one of these texts.

A template whose existing variable is missing is not used.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

_HOLE = re.compile(r"\{(?:(\w+)([=+]))?(\w+)\}|\{([^{}|]*/[^{}|]*)\}")
#: What needs no brackets around it.
_ATOM = re.compile(r"[A-Za-z_]\w*$")


@dataclass(frozen=True)
class Grammar:
    """Templates: ``leaves`` and ``expressions`` by kind, ``statements`` with weights by family."""

    leaves: dict[str, list[str]]
    expressions: dict[str, list[str]]
    statements: dict[str, list[str]]


class NoVariable(Exception):
    """A template needs a variable that does not exist."""


@dataclass
class Scope:
    """The variables that a place of the program can read, with their kinds."""

    variables: list[tuple[str, str]] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[str]:
        """Their names, the newest last."""
        return [name for name, its in self.variables if its == kind]


class TemplateWriter:
    """Fills templates."""

    def __init__(self, grammar: Grammar, seed: int, families: list[str]) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.families = families
        self.count = 0
        self.budget = 0

    def fresh(self, kind: str) -> str:
        """A name that no other variable of the program has."""
        self.count += 1
        return f"{kind}{self.count}"

    def expression(self, scope: Scope, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        known = scope.of_kind(kind)[-5:]
        if depth <= 0 or kind not in self.grammar.expressions or self.random.random() < 0.3:
            if known and self.random.random() < 0.85:
                return self.random.choice(known)
            leaf = self.random.choice(self.grammar.leaves[kind])
            return f"({leaf})" if leaf[0].isdigit() else leaf
        for _ in range(4):
            template = self.random.choice(self.grammar.expressions[kind])
            try:
                text = self.fill(template, scope, {}, depth - 1)
                return text if _ATOM.match(text) else f"({text})"
            except NoVariable:
                continue
        return self.expression(scope, kind, 0)

    def fill(
        self, template: str, scope: Scope, names: dict[str, str], depth: int,
        made: list[tuple[str, str]] | None = None,
    ) -> str:  # fmt: skip
        """``template`` with its holes filled; ``names`` are those of the template's variables, new
        ones are added to ``made``."""

        def hole(match: re.Match[str]) -> str:
            name, sign, kind, choices = match.groups()
            if choices is not None:
                return self.random.choice(choices.split("/"))
            if sign is None:
                return names[kind] if kind in names else self.expression(scope, kind, depth)
            if sign == "=":
                known = scope.of_kind(kind)
                if not known:
                    raise NoVariable(kind)
                names[name] = self.random.choice(known[-4:])
            else:
                names[name] = self.fresh(kind)
                if made is not None:
                    made.append((names[name], kind))
            return names[name]

        return _HOLE.sub(hole, template)

    def statement(self, scope: Scope, indent: int) -> list[str]:
        """The lines of one statement, or of a few that belong together."""
        for _ in range(20):
            family = self.random.choice(self.families)
            template = self.random.choice(self.grammar.statements[family])
            if "{body}" in template and (indent > 3 or self.budget <= 0):
                continue
            try:
                return self._lines(template, scope, indent)
            except NoVariable:
                continue
        return ["    " * indent + "pass"]

    def _lines(self, template: str, scope: Scope, indent: int) -> list[str]:
        lines: list[str] = []
        names: dict[str, str] = {}
        outside: list[tuple[str, str]] = []
        block: list[tuple[str, str]] = []
        for text in template.split("|"):
            inner = len(text) - len(text.lstrip())
            made: list[tuple[str, str]] = []
            if text.strip() == "{body}":
                nested = Scope([*scope.variables, *outside, *block])
                lines += self.block(nested, indent + inner // 4, self.random.randint(1, 3))
                continue
            visible = Scope([*scope.variables, *outside, *(block if inner else [])])
            filled = self.fill(text, visible, names, 2, made)
            lines.append("    " * indent + filled.replace("¦", "|"))
            opens = inner or text.rstrip().endswith(":")
            (block if opens else outside).extend(made)
        scope.variables += outside
        return lines

    def block(self, scope: Scope, indent: int, statements: int) -> list[str]:
        """Some statements."""
        lines: list[str] = []
        for _ in range(statements):
            if self.budget <= 0 and lines:
                break
            self.budget -= 1
            lines += self.statement(scope, indent)
        return lines or ["    " * indent + "pass"]
