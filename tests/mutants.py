"""``python tests/mutants.py [--count N] [--seed S]``: is a wrong rule found?

Each mutant is framejit with one rule made wrong at a random place: a guard that is dropped, an
effect that is lost, operands or branches that are swapped. The fuzzer runs first, then the tests
that are named below; what both let pass is for a reader to judge (a mutant may be equal to the
original). Runs in copies of the tree; nothing here is changed.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("values", "interpreter", "codegen", "guards")
#: First to last; a mutant is found by the first that fails.
CHECKS = (
    *[
        ("fuzzer", f"python -W ignore tests/fuzz {first} {first + 50} --stop")
        for first in (1_000_000, 100_000, 3_000_220, 4_000_000, 5_000_000)
    ],
    ("tests", "python -m pytest -x -q -p no:cacheprovider tests/guards tests/values tests/shapes"),
    ("tests", "python -m pytest -x -q -p no:cacheprovider tests/language tests/graph"),
)  # fmt: skip
SECONDS = 900

Edit = tuple[ast.AST, str]


def dropped(tree: ast.AST, wanted: str) -> Iterator[Edit]:
    """Statements that are calls of a method with this in its name, left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and wanted in ast.unparse(function):
                yield node, "pass"


def swapped_operands(tree: ast.AST) -> Iterator[Edit]:
    """``a - b`` to ``b - a``, ``a < b`` to ``b < a``, and the first two arguments of calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Mod, ast.FloorDiv)):
            other = ast.BinOp(node.right, node.op, node.left)
            yield node, f"({ast.unparse(other)})"
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.Gt, ast.LtE)):
            if len(node.ops) == 1:
                other_way = ast.Compare(node.comparators[0], node.ops, [node.left])
                yield node, f"({ast.unparse(other_way)})"
        elif isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
            if not any(isinstance(arg, ast.Starred) for arg in node.args):
                yield node, ast.unparse(ast.Call(node.func, node.args[::-1], []))


def other_branch(tree: ast.AST) -> Iterator[Edit]:
    """``if c`` to ``if not c``, ``and`` to ``or``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp)):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            yield node, f"({ast.unparse(ast.BoolOp(ast.Or(), node.values))})"


def off_by_one(tree: ast.AST) -> Iterator[Edit]:
    """Small numbers, one more."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1, 2):
            yield node, str(node.value + 1)


KINDS = {
    "guard dropped": lambda tree: dropped(tree, "guard"),
    "effect lost": lambda tree: dropped(tree, "effects"),
    "statement lost": lambda tree: dropped(tree, "."),
    "operands swapped": swapped_operands,
    "other branch": other_branch,
    "off by one": off_by_one,
}


def mutant(rng: random.Random) -> tuple[str, Path, str]:
    """A kind of mutation, the file, and its new text."""
    files = sorted(p for room in ROOMS for p in (ROOT / "src/framejit" / room).rglob("*.py"))
    while True:
        kind = rng.choice(sorted(KINDS))
        path = rng.choice(files)
        text = path.read_text()
        edits = [e for e in KINDS[kind](ast.parse(text)) if _in_function(ast.parse(text), e[0])]
        if edits:
            return kind, path, replaced(text, *rng.choice(edits))


def _in_function(tree: ast.Module, node: ast.AST) -> bool:
    """Is the node inside a function, and no message of an error?"""
    line = node.lineno  # type: ignore[attr-defined]
    inside = [
        n for n in ast.walk(tree)
        if isinstance(n, (ast.FunctionDef, ast.Raise, ast.Assert))
        and n.lineno <= line <= (n.end_lineno or 0)
    ]  # fmt: skip
    return bool(inside) and all(isinstance(n, ast.FunctionDef) for n in inside)


def replaced(text: str, node: ast.AST, new: str) -> str:
    """``text`` with other source in the place of a node."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = text.encode()
    start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
    end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
    return (data[:start] + new.encode() + data[end:]).decode()


def found_by_checks(changed: Path | None, text: str) -> str:
    """What finds a file's new text, in a copy of the tree; empty if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", "__pycache__", ".?*"))
        if changed is not None:
            (copy / changed).write_text(text)
        return first_failure(copy)


def first_failure(folder: Path) -> str:
    """The first check that fails in this tree; empty if none does."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    for name, command in CHECKS:
        arguments = [sys.executable, *command.split()[1:]]
        try:
            done = subprocess.run(
                arguments, cwd=folder, env=environment, timeout=SECONDS, capture_output=True,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{name} (it never ends)"
        if done.returncode:
            last = done.stdout.decode(errors="replace").strip().splitlines()[-2:] or ["crash"]
            return f"{name}: {last[0][:100]}"
    return ""


def main() -> int:
    """Make mutants and print what found each; the result is the number that survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if finder := found_by_checks(None, ""):
        sys.exit(f"the tree without a mutation fails, so nothing can be said: {finder}")
    survived = 0
    for number in range(options.count):
        kind, path, text = mutant(random.Random(f"{options.seed} {number}"))
        name = path.relative_to(ROOT)
        diff = difflib.unified_diff(
            path.read_text().splitlines(), text.splitlines(), str(name), "mutant", "", "", 1, ""
        )
        started = time.monotonic()
        finder = found_by_checks(name, text)
        survived += not finder
        seconds = time.monotonic() - started
        print(f"{number} {kind} in {name}: {finder or 'NOT FOUND'} ({seconds:.0f} s)", flush=True)
        print("\n".join(line for line in list(diff)[2:] if line[:1] in "+-"))
    print(f"{options.count - survived} of {options.count} mutants found")
    return survived


if __name__ == "__main__":
    sys.exit(main())
