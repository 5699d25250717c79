"""What the documents say is so: every block of code in every page runs and prints what is printed
there.

The blocks of a page are one program. ``python`` runs; ``text`` is what has been printed since the
page began; each line of ``sh`` runs in the same folder (``make`` targets and scripts of this
repository are only looked up: other tests run them). A comment ``<!-- python ...-->`` runs, too:
readers do not see it. ``<!-- file NAME -->`` begins another file, whose lines count from 1. Blocks
without a language are drawings.
"""

import linecache
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import framejit
from framejit import cli
from framejit.report import events
from framejit.report.problems import problems

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PART = re.compile(
    r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$|^<!-- python\n(?P<hidden>.*?)^-->$"
    r"|^<!-- file (?P<file>\S+) -->$",
    re.MULTILINE | re.DOTALL,
)
#: Made by scripts from the registry, whose examples tests/rules/test_identifiers.py runs.
GENERATED = {"problems.md", "messages.md"}
#: Pages that compile with Inductor.
SLOW = {"packages.md", "autotune.md"}
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z-]+):.*## .", MAKEFILE, re.MULTILINE)


class Page:
    """Runs the blocks of a document in the current folder; ``printed`` is all that they print."""

    def __init__(self, document, capsys):
        self.parts = list(PART.finditer(document.read_text()))
        self.names = {"__name__": "page"}
        self.printed = ""
        self.capsys = capsys
        self.file, self.lines = "model.py", 0

    def run(self):
        for part in self.parts:
            kind = part["kind"]
            if part["file"]:
                self.file, self.lines = part["file"], 0
            elif part["hidden"] is not None:
                exec(compile(part["hidden"], "<hidden>", "exec"), self.names)
            elif kind == "python":
                self.python(part["text"])
            elif kind == "sh":
                for line in part["text"].replace("\\\n", " ").splitlines():
                    self.command(shlex.split(line, comments=True))
            elif kind == "text":
                self.collect()
                wanted = [line.strip() for line in part["text"].splitlines()]
                assert contains(self.printed, wanted), f"{part['text']}\nin\n{self.printed}"
            else:
                assert kind == "", f"what is a block of {kind!r}?"
        self.collect()
        return self

    def python(self, code):
        path = Path(self.file)
        before = path.read_text() if self.lines else ""
        path.write_text(f"{before}{code}\n")
        linecache.checkcache(self.file)
        exec(compile("\n" * self.lines + code, self.file, "exec"), self.names)
        self.lines += code.count("\n") + 1

    def command(self, words):
        settings = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            settings[name] = value
        if words[0] == "make":
            assert words[1] in TARGETS
        elif words[:1] == ["framejit"] and not settings:
            assert cli.main(words[1:]) == 0, words
        elif words[0] == "torchrun" and (ROOT / words[-1]).exists():
            assert not settings
        elif words[0] == "python" and (ROOT / words[1]).exists():
            assert not settings, "say how it is tested"
        else:
            start = {"python": [sys.executable], "framejit": [sys.executable, "-m", "framejit"]}
            done = subprocess.run(
                [*start[words[0]], *words[1:]], env=os.environ | settings, capture_output=True,
                text=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            self.printed += done.stdout + done.stderr

    def collect(self):
        out, err = self.capsys.readouterr()
        self.printed += out + err


def contains(printed, wanted):
    """Do these lines occur somewhere in the text, one below the other?"""
    lines = [line.strip() for line in printed.splitlines()]
    starts = range(len(lines) - len(wanted) + 1)
    return any(lines[i : i + len(wanted)] == wanted for i in starts)


def run_page(document, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAMEJIT_WINNERS", str(tmp_path / "winners.json"))
    framejit.reset()
    framejit.counters.clear()
    with framejit.config.patch():
        return Page(document, capsys).run()


def with_blocks():
    for document in DOCUMENTS:
        if document.name not in {*GENERATED, "README.md"} and PART.search(document.read_text()):
            marks = [pytest.mark.slow] if document.name in SLOW else []
            yield pytest.param(document, marks=marks, id=document.name)


@pytest.mark.parametrize("document", with_blocks())
def test_the_code_of_the_page_runs_and_prints_what_it_says(document, tmp_path, monkeypatch, capsys):
    run_page(document, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_the_code_of_generated_pages_is_that_of_the_registry(name):
    text = (ROOT / "docs" / name).read_text()
    known = {text for p in problems().values() for text in (p.program, p.example)}
    found = [m["text"] for m in PART.finditer(text) if m["kind"] in PROGRAMS]
    assert len(found) > 10 and set(found) <= known
    assert len(found) == len(problems()) or name == "messages.md"


PROGRAMS = ("python", 'text title="the program"')


def test_the_code_of_the_readme_runs_and_prints_what_it_says(tmp_path, monkeypatch, capsys):
    printed = run_page(ROOT / "README.md", tmp_path, monkeypatch, capsys).printed
    # Three graphs in 100 calls; the call with another dtype adds one for each function it reaches.
    recorded = [e for e in events.history(events.GraphCompiled) if e.backend == "my_compiler"]
    assert [event.operations for event in recorded[:3]] in ([5, 2, 1], [5, 1, 2])
    assert len(recorded) == 5
    for name in ("abs_1", "add", "truediv", "sum_1", "lt", "mul", "mul_1"):
        assert re.search(rf"^call_\w+ +{name} ", printed, re.MULTILINE), name
    sentence = " ".join(re.search(r"such as `(.*?)`, ", README, re.DOTALL).group(1).split())
    assert any(line.startswith(sentence) for line in printed.splitlines())


def names_of_the_readme():
    table = README.partition("## What there is")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [
        name
        for row in rows
        for name in re.findall(r"`(?!compiled\.)([a-z_]+)(?!\w|\.[a-z]*_)", row)
    ]


def test_the_names_of_the_readme_exist():
    names = names_of_the_readme()
    assert len(names) > 12
    assert [name for name in names if not hasattr(framejit, name)] == []


def test_the_readme_has_every_public_name():
    assert set(framejit.__all__) - {"__version__"} - set(names_of_the_readme()) == set()


def test_the_targets_of_the_readme_exist_and_explain_themselves():
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE).group(1).split()
    assert sorted(TARGETS) == sorted(phony)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= set(TARGETS)
    for script in re.findall(r"\S+/\w+\.py", MAKEFILE):
        if "*" not in script:
            assert (ROOT / script).exists(), script


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_tour_runs():
    """docs/tour.py: every chapter checks what it says."""
    tour = ROOT / "docs" / "tour.py"
    assert len(tour.read_text().splitlines()) < 800
    done = subprocess.run([sys.executable, "-W", "ignore", tour], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        str(number) for number in range(1, 15)
    ]
