"""``python tests/fuzz/measure.py``: which lines of three rooms does the fuzzer alone reach?

Runs a mixture of all kinds of programs in all modes, combines what their processes reached, and
writes ``docs/fuzzing.md``: the share of each room, and how many lines of which functions were not
reached, sorted by what stands there.
"""

from __future__ import annotations

import argparse
import ast
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ROOMS = ("interpreter", "values", "codegen")
#: mode, first seed, how many.
PIECES = [
    ("plain", 0, 60), ("plain", 100_000, 90), ("breaks", 110_000, 40), ("plain", 1_000_000, 160),
    ("cut", 1_003_000, 40), ("limit", 1_005_000, 50), ("plain", 2_000_000, 50),
    ("plain", 3_000_000, 150), ("plain", 3_000_150, 60), ("plain", 4_000_000, 120),
    ("plain", 4_000_120, 120), ("breaks", 4_010_000, 25), ("hook", 4_020_000, 25),
    ("limit", 4_030_000, 25), ("cut", 4_050_000, 15), ("aot", 4_040_000, 8),
]  # fmt: skip

#: Why a line may not be reached, by what stands there or around it; the first that fits.
REASONS = {
    "debugger": "files for debuggers (`codegen/steppable.py`), which only runs under one",
    "device": "other devices",
    "frame": "graph breaks and captures that start again, each for a rare operand",
    "program": "errors of the program, with CPython's words",
    "internal": "what must not happen, and texts for people",
    "other": "everything else: ordinary behaviour of rare operands and combinations",
}
_BREAKS = ("GraphBreak", "Again", "Restart", "Unmaterialisable", "Unfinished", "FrameSeen")
_ERRORS = ("raise_error", "raise_real", "Raised", "refuse_surplus", "complain", "run_real")
_TEXTS = ("describe", "__repr__", "sample")


def measure(folder: str, piece: tuple[str, int, int]) -> str:
    """Run one piece; the result is its last lines."""
    mode, first, count = piece
    sources = ",".join(f"src/framejit/{room}" for room in ROOMS)
    command = [
        sys.executable, "-m", "coverage", "run", f"--data-file={folder}/{mode}.{first}",
        f"--source={sources}", "tests/fuzz", str(first), str(first + count), "--coverage",
        "--mode", mode,
    ]  # fmt: skip
    path = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    env = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    return "\n".join([f"{mode} {first}: {count} programs", *(line[:200] for line in lines)])


def report(folder: str) -> dict[str, Any]:
    """What all pieces together reached, by file."""
    tool = [sys.executable, "-m", "coverage"]
    data = f"--data-file={folder}/all"
    parts = [str(path) for path in Path(folder).iterdir()]
    subprocess.run([*tool, "combine", "-q", data, *parts], cwd=ROOT, check=True)
    subprocess.run([*tool, "json", "-q", data, "-o", f"{folder}/json"], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(Path(folder, "json").read_text())["files"]
    return found


def statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """All statements, outer ones first, with the name of the function or class that they are in."""

    def inside(node: ast.AST, name: str) -> Iterator[tuple[ast.stmt, str]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            inner = f"{name}.{child.name}".lstrip(".") if named else name  # type: ignore[attr-defined]
            if isinstance(child, ast.stmt):
                yield child, name
            yield from inside(child, inner)

    return inside(tree, "")


def reason(path: str, function: str, text: str) -> str:
    """Which of `REASONS` a statement is not reached for."""
    if path.endswith("steppable.py"):
        return "debugger"
    if "cuda" in text:
        return "device"
    if any(f"{name}(" in text for name in _BREAKS) or text.startswith("raise BreakHere"):
        return "frame"
    if any(f"{name}(" in text for name in _ERRORS) or text == "raise":
        return "program"
    texts = any(part in _TEXTS for part in function.split("."))
    if texts or "AssertionError" in text or "NotImplementedError" in text or "except" == text[:6]:
        return "internal"
    return "other"


def sort_lines(path: str, missing: list[int]) -> dict[str, list[tuple[str, int]]]:
    """Lines that were not reached, with their functions, by reason. A block is what it ends in."""
    source = (ROOT / path).read_text()
    owner: dict[int, tuple[ast.stmt, str]] = {}
    for statement, function in statements(ast.parse(source)):
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
            owner[line] = statement, function
    found: dict[str, list[tuple[str, int]]] = collections.defaultdict(list)
    why = "other"
    for line in sorted(missing, reverse=True):
        statement, function = owner[line]
        simple = not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try))
        text = ast.get_source_segment(source, statement) or ""
        below = line + 1 in missing and reason(path, function, "") == "other"
        own = reason(path, function, text if simple else text.splitlines()[0])
        why = why if own == "other" and below and why in ("frame", "program") else own
        found[why].append((function, line))
    return {why: lines[::-1] for why, lines in found.items()}


def page(files: dict[str, Any], programs: int) -> str:
    """The text of ``docs/fuzzing.md``."""
    totals: dict[str, list[int]] = {room: [0, 0] for room in ROOMS}
    sorted_lines: dict[str, dict[str, list[tuple[str, int]]]] = {key: {} for key in REASONS}
    for path, found in sorted(files.items()):
        counts = totals[path.removeprefix("src/framejit/").split("/")[0]]
        counts[0] += found["summary"]["covered_lines"]
        counts[1] += found["summary"]["num_statements"]
        for why, lines in sort_lines(path, found["missing_lines"]).items():
            sorted_lines[why][path.removeprefix("src/framejit/")] = lines
    reached, whole = (sum(column) for column in zip(*totals.values(), strict=True))
    text = [
        "# What random programs reach", "",
        f"Made by `python tests/fuzz/measure.py`; do not edit. {programs} random programs "
        "(`tests/fuzz`), in all modes, and nothing else, execute these shares of the lines:", "",
        "| room | reached | lines | |", "|---|---|---|---|",
    ]  # fmt: skip
    for room, (some, all_) in [*totals.items(), ("together", [reached, whole])]:
        text.append(f"| {room} | {some} | {all_} | {100 * some / all_:.1f} % |")
    text += ["", "Lines that were not reached, by what stands there:", ""]
    text += [
        f"- {sum(map(len, sorted_lines[why].values()))}: {words}" for why, words in REASONS.items()
    ]
    for why, words in REASONS.items():
        text += ["", f"## {words[0].upper()}{words[1:]}", ""]
        for path, lines in sorted_lines[why].items():
            counts_of = collections.Counter(function or "the module" for function, _ in lines)
            parts = [f"{name} {count}" for name, count in counts_of.items()]
            text.append(f"- `{path}`: {', '.join(parts)}")
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
            for done in pool.map(lambda piece: measure(folder, piece), PIECES):
                print(done, flush=True)
        text = page(report(folder), sum(count for _, _, count in PIECES))
    (ROOT / "docs/fuzzing.md").write_text(text)
    print(text.split("Lines that")[0])


if __name__ == "__main__":
    main()
