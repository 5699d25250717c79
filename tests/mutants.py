"""``python tests/mutants.py [--count N] [--seed S] [--reached FOLDER]``: is a wrong rule found?

Each mutant is framejit with one rule made wrong at a random place: a guard that is dropped, an
effect that is lost, operands or branches that are swapped. First the whole suite runs once, to
see which tests get to which blocks of framejit (`reaching`; a folder from an earlier time will do).
Then each mutant runs the tests that get to its place, quickest first, and what they let pass runs
the fuzzer. What both let pass is for a reader to judge (a mutant may be equal to the original).
Runs in copies of the tree; nothing here is changed.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reaching import PACKAGE, block_of, names

ROOT = Path(__file__).parents[1]
ROOMS = ("values", "interpreter", "codegen", "guards")
#: For mutants that the tests let pass.
FUZZED = (1_000_000, 100_000, 3_000_220, 4_000_000, 5_000_000)
#: Left out: what looks at the source, and what runs framejit in other processes only.
OPTIONS = ["-m", "not slow", "-p", "no:cacheprovider"]
SUITE = ["tests", "--ignore", "tests/rules", "--ignore", "tests/api", *OPTIONS]
#: Of the tests that get to a place so many seconds are run.
SECONDS = 300
LIMIT = 1200

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
            same = ast.unparse(node.func) in ("max", "min")  # whatever the order
            if not same and not any(isinstance(arg, ast.Starred) for arg in node.args):
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


def mutant(rng: random.Random) -> tuple[str, Path, int, str]:
    """A kind of mutation, the file, the line, and the file's new text."""
    files = sorted(p for room in ROOMS for p in (ROOT / "src/framejit" / room).rglob("*.py"))
    while True:
        kind = rng.choice(sorted(KINDS))
        path = rng.choice(files)
        text = path.read_text()
        edits = [e for e in KINDS[kind](ast.parse(text)) if _in_function(ast.parse(text), e[0])]
        if edits:
            node, new = rng.choice(edits)
            return kind, path, node.lineno, replaced(text, node, new)  # type: ignore[attr-defined]


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


class Suite:
    """What each test reaches, how long it takes, and whether it passes without a mutation."""

    def __init__(self, folder: Path) -> None:
        if not folder.exists():
            run(ROOT, f"-m pytest -n auto -q -p reaching --reaching {folder}".split() + SUITE)
        lines = [line for one in folder.glob("*.jsonl") for line in one.read_text().splitlines()]
        self.tests = [one for one in map(json.loads, lines) if one[3]]
        self.blocks = json.loads((folder / "blocks.json").read_text())
        self.imported = [reached for name, _, reached, _ in self.tests if not name]

    def that_reach(self, file: Path, line: int) -> list[str]:
        """The names of tests that get to a line, quickest first."""
        name, block = str(file.relative_to(PACKAGE)), names(file)[block_of(file, line)]
        known = self.blocks.get(name, [])
        number = known.index(block) if block in known else -1
        always = number < 0 or any(number in one.get(name, ()) for one in self.imported)
        reaching = [
            (seconds, test) for test, seconds, reached, _ in self.tests
            if test and (always or number in reached.get(name, ()))
        ]  # fmt: skip
        chosen, total = [], 0.0
        for seconds, test in sorted(reaching):
            total += seconds
            if total < SECONDS or not chosen:
                chosen.append(test)
        return chosen


def run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
    """Python with a tree's framejit."""
    path = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True,
        check=False, timeout=LIMIT if folder != ROOT else None,
    )  # fmt: skip


def found_by(suite: Suite, file: Path, line: int, text: str) -> str:
    """What finds a file's new text, in a copy of the tree; empty if nothing does."""
    tests = suite.that_reach(file, line)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", "__pycache__", ".?*"))
        (copy / file.relative_to(ROOT)).write_text(text)
        chosen = Path(folder) / "chosen.json"
        chosen.write_text(json.dumps(tests))
        files = sorted({test.partition("::")[0] for test in tests})
        options = ["-x", "-q", *OPTIONS, "-p", "reaching", "--chosen", str(chosen)]
        checks = [["-m", "pytest", *options, *files]] if tests else []
        checks += [["tests/fuzz", str(first), str(first + 50), "--stop"] for first in FUZZED]
        for arguments in checks:
            if failure := failure_of(copy, arguments):
                return failure
    return ""


def failure_of(folder: Path, arguments: list[str]) -> str:
    """Why a check fails in a tree; empty if it does not."""
    try:
        done = run(folder, arguments)
    except subprocess.TimeoutExpired:
        return "it never ends"
    if not done.returncode:
        return ""
    lines = done.stdout.decode(errors="replace").splitlines() or ["crash"]
    told = [line for line in lines if line.startswith(("FAILED", "ERROR", "seed"))] or lines[-1:]
    return told[0][:110]


def tried(suite: Suite, seed: int, number: int) -> tuple[bool, str]:
    """Make a mutant; was it found, and a text about it."""
    kind, path, line, text = mutant(random.Random(f"{seed} {number}"))
    name, reaching = path.relative_to(ROOT), len(suite.that_reach(path, line))
    started = time.monotonic()
    finder = found_by(suite, path, line, text)
    seconds = time.monotonic() - started
    diff = difflib.unified_diff(path.read_text().splitlines(), text.splitlines(), n=0, lineterm="")
    shown = [one for one in list(diff)[2:] if one[:1] in "+-"]
    told = f"{number} {kind} in {name}:{line}: {finder or 'NOT FOUND'}"
    return bool(finder), "\n".join([f"{told} ({reaching} tests, {seconds:.0f} s)", *shown])


def main() -> int:
    """Make mutants and print what found each; the result is the number that survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reached", type=Path, default=Path(tempfile.mkdtemp()) / "reached")
    options = parser.parse_args()
    suite, found = Suite(options.reached), 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(tried, suite, options.seed, n) for n in range(options.count)]
        for job in concurrent.futures.as_completed(jobs):
            was_found, told = job.result()
            found += was_found
            print(told, flush=True)
    print(f"{found} of {options.count} mutants found")
    return options.count - found


if __name__ == "__main__":
    sys.exit(main())
