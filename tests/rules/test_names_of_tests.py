"""Tests are documentation: names say what a test shows, checks say what is captured, and nothing
depends on how fast a machine is."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
#: Left out: programs that are kept as they were written.
FILES = sorted(path for path in TESTS.rglob("*.py") if path.parent != TESTS / "programs")
#: Shapes and models, whose names are numbers.
NAMES_WITH_NUMBERS = {"x23", "x34", "f32", "i64", "t5"}
#: How a test was found, or where it stands in a list, and not what it shows.
_NO_NAME = re.compile(
    r"^(test_)?_?[a-z]{0,2}\d+(_|$)|(^|_)(case|program|issue|bug)_?\d"
    r"|found_by_fuzz|details_of|rarely_taken|mixed_programs|regression"
)
_CLOCKS = {"perf_counter", "monotonic", "process_time", "thread_time", "time", "perf_counter_ns"}


def relative(path):
    return path.relative_to(TESTS).as_posix()


def calls_of(tree, names):
    """The calls of what has one of these names, or of a member of ``time`` that has one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            of_time = getattr(getattr(node.func, "value", None), "id", None) == "time"
            if getattr(node.func, "attr" if of_time else "id", None) in names:
                yield node


def test_modules_have_names_of_their_own():
    """Folders of tests are no packages: of two equal names, all import whichever came first."""
    counts = Counter(path.stem for path in FILES if path.stem not in ("conftest", "__main__"))
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_names_say_what_is_shown(path):
    nodes = ast.walk(ast.parse(path.read_text()))
    names = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    found = [name for name in {path.stem, *names} - NAMES_WITH_NUMBERS if _NO_NAME.search(name)]
    assert not found, found


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_checks_say_what_is_captured(path):
    """How many graphs or operations; otherwise a program of which nothing is captured passes."""
    tree = ast.parse(path.read_text())
    if not any(
        isinstance(node, ast.ImportFrom) and node.module == "checking" for node in ast.walk(tree)
    ):
        return
    found = []
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for call in calls_of(tree, {"check", "check_between"}):
        if id(call) not in alone:
            continue  # something is asked about what it returns
        stated = [word for word in call.keywords if word.arg in ("graphs", "ops", None)]
        if all(
            isinstance(word.value, ast.Constant) and word.value.value is None for word in stated
        ):
            found.append(call.lineno)
    assert not found, [f"{relative(path)}:{line}" for line in found]


def readings(node):
    """The names in this function that hold what a clock says."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and any(calls_of(inner.value, _CLOCKS)):
            for name in ast.walk(inner.targets[0]):
                if isinstance(name, ast.Name):
                    yield name.id


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_nothing_is_asserted_about_seconds(path):
    found = []
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            measured = set(readings(function))
            for node in ast.walk(function):
                if isinstance(node, ast.Assert):
                    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                    if names & measured or any(calls_of(node, _CLOCKS)):
                        found.append(f"{relative(path)}:{node.lineno}")
    assert not found, found
