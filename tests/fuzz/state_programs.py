"""Writes programs of the families about state: two functions that share it, and calls of both.

In: a seed. Out: a `Program`. The seed decides on the family that leads, on names and on breaks.
"""

from __future__ import annotations

import random

import families_of_calls
import families_of_features
import families_of_objects
from families import FAMILIES, GRAMMAR, PRELUDE
from grammar import Grammar, Scope, TemplateWriter
from program_writer import Program
from transforms import with_break_places, with_other_names

#: What the functions of a program take: a size that varies, numbers and containers.
_ARGUMENTS = {
    "nums": ["[1, 2, 3]", "[0, 1, 0]", "[]", "[5, 1]"],
    "table": ["{'a': 1}", "{'b': 2, 'a': 0}", "G_TABLE", "{}"],
    "map": ["{Key(1): 1, (1, 2): 2}", "{1: 2}", "G_MEMO", "{id(G_NODE): 3}"],
    "bag": ["{0, 8}", "{8, 0}", "{Key(1), 2}", "set()"],
    "queue": ["collections.deque([1, 2])", "Ring([3])"],
    "node": ["Node(3)", "G_NODE", "Node(1, Node(2))"],
    "it": ["iter([1, 2, 3])", "countdown(3)", "reversed([1, 2])"],
    "pair": ["(1, 2)", "G_SENT", "('missing',)"],
    "rows": ["[R(3, 1), R(3, 2)]", "[]"],
    "row": ["R(3, 2)", "G_BUF", "R(2, 1)"],
    "fn": ["abs", "(lambda v: v * 2)", "G_NODE.visit"],
}


_CALLS = GRAMMAR.statements | families_of_calls.STATEMENTS
_FEATURES = families_of_features
_OBJECTS = families_of_objects
#: What a program is made of, by the kind of family that leads: grammar, prelude, families.
_MADE_OF = {
    "state": (GRAMMAR, PRELUDE, FAMILIES),
    "calls": (
        Grammar(GRAMMAR.leaves, GRAMMAR.expressions, _CALLS), PRELUDE + families_of_calls.PRELUDE,
        list(families_of_calls.STATEMENTS),
    ),
    "features": (
        Grammar(GRAMMAR.leaves | _FEATURES.LEAVES, GRAMMAR.expressions | _FEATURES.EXPRESSIONS,
                _CALLS | _FEATURES.STATEMENTS),
        PRELUDE + families_of_calls.PRELUDE + _FEATURES.PRELUDE, list(_FEATURES.STATEMENTS),
    ),
    "objects": (
        Grammar(GRAMMAR.leaves | _OBJECTS.LEAVES, GRAMMAR.expressions,
                GRAMMAR.statements | _OBJECTS.STATEMENTS),
        PRELUDE + _OBJECTS.PRELUDE, list(_OBJECTS.STATEMENTS),
    ),
}  # fmt: skip


def state_program(seed: int, kind: str = "state") -> Program:
    """The program of a seed; ``kind``: which families lead."""
    rng = random.Random(seed)
    grammar, prelude, leading_families = _MADE_OF[kind]
    if kind == "objects":
        prelude += _OBJECTS.classes(rng)
    leading = rng.choice(leading_families)
    others = rng.sample(FAMILIES, 2)
    others += ["consumers", "members"] if kind in ("calls", "features") else []
    families = ["make", "make", "flow", "flow", leading, leading, leading, *others]
    if kind == "objects":
        families = ["make", "flow", leading, leading, *leading_families]
    writer = TemplateWriter(grammar, seed, families)
    functions = {name: _function(writer, rng, name) for name in ("main", "other")}
    lines = [line for text, _ in functions.values() for line in text]
    source = prelude + "\n".join(lines) + "\n"
    if rng.random() < 0.6:
        source = with_other_names(source, prelude, seed)
    if rng.random() < 0.7:
        source = with_break_places(source, prelude, seed, rng.choice((0.02, 0.06, 0.15)))
    made = _calls(rng, {name: kinds for name, (_, kinds) in functions.items()})
    return Program(source, made, prelude)


def _function(writer: TemplateWriter, rng: random.Random, name: str) -> tuple[list[str], list[str]]:
    kinds = rng.sample(sorted(_ARGUMENTS), rng.randint(1, 3))
    parameters = [(writer.fresh(kind), kind) for kind in kinds]
    scope = Scope([("t0", "row"), ("m0", "mat"), ("n0", "num"), *parameters])
    head = ", ".join(["t0", "m0", "n0", *[p for p, _ in parameters]])
    writer.budget = rng.randint(5, 12)
    body = writer.block(scope, 1, rng.randint(4, 9))
    shown = [name for name, kind in scope.variables if kind != "it" or rng.random() < 0.5][-9:]
    extra = writer.expression(scope, rng.choice(("num", "row", "nums", "table", "flag")))
    return [f"def {name}({head}):", *body, f"    return ({', '.join([*shown, extra])},)"], kinds


def _calls(rng: random.Random, kinds: dict[str, list[str]]) -> list[str]:
    """Calls of the functions in turn: equal arguments, other values, other sizes."""
    calls: list[str] = []
    grad = rng.random() < 0.15
    for number in range(rng.randint(3, 5)):
        name = "main" if number < 2 or rng.random() < 0.6 else "other"
        rows = rng.choice((2, 2, 3, 4, 1))
        size = rng.choice((3, 3, 4, 2))
        parts = [f"R({size}, {rng.randint(0, 5)}, {grad})", f"M({rows}, {rng.randint(0, 5)})"]
        parts.append(str(rng.choice((2, 2, 3, 0))))
        parts += [rng.choice(_ARGUMENTS[kind]) for kind in kinds[name]]
        call = f"{name}:({', '.join(parts)},)"
        calls.append(call)
        if number == 0:
            calls.append(call)
    return calls
