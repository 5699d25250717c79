"""Every place that breaks the graph or raises at users names a kind of problem that is registered,
and every registered kind is used, and shown by an example that has it."""

import ast
import contextlib
import io
import linecache
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
import torch

import framejit
from checking import own_modules
from framejit import exc
from framejit.report import events
from framejit.report.problems import FAMILIES, TEXTS, Problem, find, problems

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "framejit"
IDENTIFIER = re.compile(r"FJ\d{4}")
BREAKS = {"GraphBreak", "PropagationError", "UntraceableHook", "unsupported"}
#: The modules whose functions users call: what they raise at users has an identifier.
FRONT = ("api.py", "settings.py", "callables.py", "config.py", "inspection.py", "shapes/marks.py",
         "backends/registry.py")  # fmt: skip
#: What holds in a process that has just imported framejit.
LATER = """
assert "tomllib" not in sys.modules
find("FJ0101")
assert _read.cache_info().currsize == 1"""
PYTHONS_OWN = {"TypeError", "ValueError", "IndexError", "AttributeError"}


def calls():
    """(place, call, name of what is called) in the whole package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node, name


def test_every_graph_break_has_an_identifier():
    found = [(place, call) for place, call, name in calls() if name in BREAKS]
    found = [(place, call) for place, call in found if getattr(call.func, "value", None) is None]
    assert len(found) > 200
    bad = []
    for place, call in found:
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Name):  # handed through
            assert first.id == "identifier", place
        elif not (isinstance(first, ast.Constant) and IDENTIFIER.fullmatch(str(first.value))):
            bad.append(place)
    assert not bad, f'write GraphBreak("FJ0...", reason): {bad}'


def test_everything_raised_at_users_has_an_identifier():
    bad = []
    for place, call, name in calls():
        if name in PYTHONS_OWN and place.partition(":")[0] in FRONT:
            if not re.search(r"\[FJ\d{4}\]", ast.unparse(call)):
                bad.append(place)
    assert not bad, f"end the message with the identifier of a problem: {bad}"
    families = [cls for cls in vars(exc).values() if isinstance(cls, type)]
    families = [cls for cls in families if issubclass(cls, exc.FramejitError)]
    without = {cls.__name__ for cls in families if not cls.identifier}
    assert without == {"FramejitError", "Unsupported"}  # the latter has that of the break


def test_every_identifier_is_registered_and_every_registered_one_is_used():
    used = set()
    for path in PACKAGE.rglob("*.py"):
        if not path.name.startswith("problem"):
            used |= set(IDENTIFIER.findall(path.read_text()))
    assert used - problems().keys() == set(), "not in the registry"
    assert problems().keys() - used == set(), "in the registry, and nothing refers to it"


def test_the_registry_is_complete_and_readable():
    titles = [problem.title for problem in problems().values()]
    assert len(set(titles)) == len(titles)
    for identifier, problem in problems().items():
        assert IDENTIFIER.fullmatch(identifier) and identifier[:4] in FAMILIES
        assert "framejit" in problem.example, identifier


@pytest.mark.parametrize("path", sorted(TEXTS.iterdir()), ids=lambda path: path.name)
def test_the_texts_of_a_problem_have_every_field_and_no_other(path):
    assert path.suffix == ".toml"
    fields = tomllib.loads(path.read_text())
    assert list(fields) == [name for name in Problem._fields if name != "identifier"]
    assert all(type(text) is str and text.strip() for text in fields.values())
    assert "\n" not in fields["title"]
    assert max(map(len, path.read_text().splitlines())) <= 100


def test_texts_are_read_when_somebody_asks_and_only_those():
    script = "import framejit, sys; from framejit.report.problems import _read, find" + LATER
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert find("../problem_texts/FJ0101") is None and find("fj0101") is find("FJ0101")


def test_what_is_read_at_run_time_is_part_of_the_distribution():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = settings["package-data"]["framejit"]
    held = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    read = {path for path in PACKAGE.rglob("*") if path.suffix in (".toml", ".jinja")}
    assert len(read) > 80 and read <= held


def test_the_page_is_current():
    status = subprocess.run([sys.executable, ROOT / "docs" / "make_problems.py", "--check"])
    assert status.returncode == 0, "run python docs/make_problems.py"


def test_the_page_of_switches_is_current():
    status = subprocess.run([sys.executable, ROOT / "docs" / "make_switches.py", "--check"])
    assert status.returncode == 0, "run python docs/make_switches.py"


@pytest.mark.parametrize("identifier", problems())
def test_the_example_has_the_problem_that_it_shows(identifier, tmp_path, monkeypatch):
    problem = problems()[identifier]
    name = f"<{identifier}>"
    linecache.cache[name] = (1, None, problem.program.splitlines(True), name)
    code = compile(problem.program, name, "exec")
    framejit.reset()
    raised = ""
    with (
        own_modules(),
        framejit.config.patch(raise_internal_errors=False),
        events.recording() as seen,
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(io.StringIO()),
        torch.random.fork_rng(),
    ):
        warnings.simplefilter("always")
        try:
            exec(code, {"__name__": "example"})
        except Exception as error:
            raised = str(error)
            assert IDENTIFIER.search(raised), "an example may only raise what it is about"
    found = {getattr(event, "identifier", "") for event in seen}
    found |= {one for event in seen for one in getattr(event, "identifiers", ())}
    found |= set(IDENTIFIER.findall(raised + "".join(str(w.message) for w in warned)))
    assert identifier in found
    assert len(raised.splitlines()) <= 6
