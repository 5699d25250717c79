"""Every place that breaks the graph or raises at users names a kind of problem that is registered,
and every registered kind is used, and shown by an example that has it."""

import ast
import contextlib
import io
import linecache
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import framejit
from framejit import exc
from framejit.report import events
from framejit.report.problems import FAMILIES, problems

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "framejit"
IDENTIFIER = re.compile(r"FJ\d{4}")
BREAKS = {"GraphBreak", "PropagationError", "UntraceableHook", "unsupported"}
#: The modules whose functions users call: what they raise at users has an identifier.
FRONT = ("api.py", "settings.py", "callables.py", "config.py", "inspection.py", "shapes/marks.py",
         "backends/registry.py")  # fmt: skip
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
        assert problem.title and problem.cause and problem.fix, identifier
        assert "framejit" in problem.example, identifier


def test_the_page_is_current():
    status = subprocess.run([sys.executable, ROOT / "docs" / "make_problems.py", "--check"])
    assert status.returncode == 0, "run python docs/make_problems.py"


@pytest.mark.parametrize("identifier", problems())
def test_the_example_has_the_problem_that_it_shows(identifier, tmp_path, monkeypatch):
    problem = problems()[identifier]
    name = f"<{identifier}>"
    linecache.cache[name] = (1, None, problem.program.splitlines(True), name)
    code = compile(problem.program, name, "exec")
    framejit.reset()
    raised = ""
    with (
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
