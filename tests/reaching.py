"""``pytest -p reaching --reaching FOLDER``: which tests reach which blocks of framejit?

framejit's modules are loaded with a mark before each block of statements. A file per process says
for each test how long it took and which blocks it reached, and with no name what the import did.
What framejit remembers between tests hides that a later one needs it, so this is a lower bound.

``pytest -p reaching --chosen FILE`` runs the tests that a file names, in its order.
"""

from __future__ import annotations

import ast
import bisect
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src/framejit"
ROOMS = ("values", "interpreter", "codegen", "guards")
#: Captures execute these symbolically: a mark would be part of what they capture.
SYMBOLIC = ("polyfills.py",)
MARKS = "__reached__"


def blocks(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Lists of statements in functions and where in them a block starts: at the first, and after
    each statement that has others inside, because that may leave."""
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for body in _bodies(function):
                first = 1 if body is function.body and _is_text(body[0]) else 0
                after = [at for at in range(first + 1, len(body)) if _bodies(body[at - 1], True)]
                yield from ((body, at) for at in (first, *after) if at < len(body))


def _bodies(node: ast.AST, nested: bool = False) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    bodies = [one for one in found if isinstance(one, list) and one]
    parts = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    bodies += [part.body for part in parts]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and nested:
        return []
    inner = [one for body in bodies for statement in body for one in _bodies(statement, True)]
    return bodies + inner


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def starts(path: Path) -> list[int]:
    """The lines at which blocks of a module start; their places are the numbers of the marks."""
    return sorted({body[at].lineno for body, at in blocks(ast.parse(path.read_text()))})


def names(path: Path) -> list[str]:
    """The names of the blocks of a module, which say the same when other functions have changed."""
    inside: dict[int, str] = {}
    for function, name in _functions(ast.parse(path.read_text()), ""):
        inside.update(dict.fromkeys(range(function.lineno, (function.end_lineno or 0) + 1), name))
    counted: Counter[str] = Counter()
    found = []
    for line in starts(path):
        counted[inside[line]] += 1
        found.append(f"{inside[line]}:{counted[inside[line]]}")
    return found


def _functions(tree: ast.AST, prefix: str) -> Iterator[tuple[ast.stmt, str]]:
    """Functions with their qualified names, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        name = f"{prefix}.{node.name}" if named else prefix  # type: ignore[attr-defined]
        if named and not isinstance(node, ast.ClassDef):
            yield node, name  # type: ignore[misc]
        yield from _functions(node, name)


def block_of(path: Path, line: int) -> int:
    """The number of the block that a line belongs to: the innermost one that starts before it."""
    tree = ast.parse(path.read_text())
    around = [
        (body[at].lineno, body[-1].end_lineno or 0) for body, at in blocks(tree)
        if body[at].lineno <= line <= (body[-1].end_lineno or 0)
    ]  # fmt: skip
    return bisect.bisect_left(starts(path), max(around)[0]) if around else -1


def marked(path: Path) -> ast.Module:
    """A module's tree with a mark before each block."""
    tree, numbers = ast.parse(path.read_text()), {line: n for n, line in enumerate(starts(path))}
    places: dict[int, tuple[list[ast.stmt], list[int]]] = {}
    for body, at in blocks(tree):
        known = places.setdefault(id(body), (body, []))[1]
        if at not in known:
            known.append(at)
    for body, at_all in places.values():
        for at in sorted(at_all, reverse=True):
            mark = ast.parse(f"{MARKS}[{numbers[body[at].lineno]}] = 1").body[0]
            for node in ast.walk(mark):
                ast.copy_location(node, body[at])
            body.insert(at, mark)
    return tree


class Marker:
    """Imports framejit's modules with marks, and reads and clears these."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        """Part of the import protocol: only modules of the rooms are ours."""
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        file = Path(spec.origin) if spec is not None and spec.origin else None
        if file is None or file.suffix != ".py" or file.name in SYMBOLIC:
            return None
        if not any((PACKAGE / room) in file.parents for room in ROOMS):
            return None
        spec.loader = _Loader(self, file)  # type: ignore[union-attr]
        return spec

    def take(self) -> dict[str, list[int]]:
        """The blocks that were reached since the last time."""
        reached = {}
        for name, marks in self.files.items():
            if any(marks):
                reached[name] = [number for number, mark in enumerate(marks) if mark]
                marks[:] = bytes(len(marks))
        return reached


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, marker: Marker, file: Path) -> None:
        super().__init__(file.stem, str(file))
        self.marker, self.file = marker, file

    def create_module(self, spec: Any) -> types.ModuleType | None:
        self.name = spec.name
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        marks = bytearray(len(starts(self.file)))
        self.marker.files[str(self.file.relative_to(PACKAGE))] = marks
        module.__dict__[MARKS] = marks
        exec(compile(marked(self.file), str(self.file), "exec"), module.__dict__)


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--reaching", help="the folder for what each test reaches")
    parser.addoption("--chosen", help="a file with the names of tests to run")


def pytest_configure(config: Any) -> None:
    folder = config.getoption("reaching")
    if folder and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(_Recorder(Path(folder)))


class _Recorder:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.marker, self.out = Marker(), (folder / f"{os.getpid()}.jsonl").open("a")
        sys.meta_path.insert(0, self.marker)
        assert "framejit.values" not in sys.modules, "framejit was imported before this plugin"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        failed = item.session.testsfailed
        if (imported := self.marker.take()) and self.out.tell() == 0:
            self.out.write(json.dumps(["", 0.0, imported, True]) + "\n")
            blocks = {name: names(PACKAGE / name) for name in self.marker.files}
            (self.folder / "blocks.json").write_text(json.dumps(blocks))
        started = time.monotonic()
        result = yield
        seconds = round(time.monotonic() - started, 3)
        passed = item.session.testsfailed == failed
        self.out.write(json.dumps([item.nodeid, seconds, self.marker.take(), passed]) + "\n")
        self.out.flush()
        return result


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if file := config.getoption("chosen"):
        order = {name: at for at, name in enumerate(json.loads(Path(file).read_text()))}
        items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])
