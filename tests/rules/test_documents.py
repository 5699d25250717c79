"""What the documents say is so: the README's code runs and prints what is printed there."""

import linecache
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import framejit
from framejit.report import events

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text for kind, text in BLOCK.findall(README) if kind == language]


@pytest.fixture
def toy(tmp_path, monkeypatch, capsys):
    """All of the README's Python run as one file ``toy.py``: (its names, stdout, stderr)."""
    first, *rest = blocks("python")
    names = {"model": torch.nn.Linear(2, 2), "__name__": "toy"}
    exec(compile(first, "README.md", "exec"), names)
    assert torch.is_tensor(names["model"].forward(torch.ones(2)))
    program = "\n".join(rest)
    path = tmp_path / "toy.py"
    path.write_text(program)
    monkeypatch.chdir(tmp_path)
    framejit.reset()
    framejit.counters.clear()
    with framejit.config.patch(logs=frozenset({"guards"})):
        exec(compile(program, "toy.py", "exec"), names)
    out, err = capsys.readouterr()
    return names, out, err


def test_the_code_of_the_readme_runs_and_prints_what_it_says(toy):
    names, out, err = toy
    # Three graphs in 100 calls; the call with another dtype adds one for each function it reaches.
    recorded = events.history(events.GraphCompiled)
    assert [event.operations for event in recorded[:3]] in ([5, 2, 1], [5, 1, 2])
    assert len(recorded) == 5
    for name in ("abs_1", "add", "truediv", "sum_1", "lt", "mul", "mul_1"):
        assert re.search(rf"^call_\w+ +{name} ", out, re.MULTILINE), name
    guards, error = blocks("")[1:]
    printed = [line.strip() for line in err.splitlines()]
    count = guards.count("\n")
    start = printed.index(f"[framejit] {count} guards of toy_example") + 1
    assert printed[start : start + count] == guards.splitlines()
    assert error in out
    sentence = " ".join(re.search(r"such as `(.*?)`, ", README, re.DOTALL).group(1).split())
    assert any(line.startswith(sentence) for line in out.splitlines())


def names_of_the_readme():
    table = README.partition("## What there is")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([a-z_]+)(?!\w|\.[a-z]*_)", row)]


def test_the_names_of_the_readme_exist():
    names = names_of_the_readme()
    assert len(names) > 12
    assert [name for name in names if not hasattr(framejit, name)] == []


def test_the_readme_has_every_public_name():
    assert set(framejit.__all__) - {"__version__"} - set(names_of_the_readme()) == set()


def test_the_targets_of_the_readme_exist_and_explain_themselves():
    makefile = (ROOT / "Makefile").read_text()
    explained = re.findall(r"^([a-z-]+):.*## .", makefile, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE).group(1).split()
    assert sorted(explained) == sorted(phony)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= set(explained)
    for script in re.findall(r"\S+/\w+\.py", makefile):
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


SELF_CONTAINED = ["getting-started.md", "troubleshooting.md"]


@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_the_code_of_the_guide_runs(name, tmp_path, monkeypatch, capsys):
    """The Python of each page, as one program; shell blocks name commands that exist."""
    text = (ROOT / "docs" / name).read_text()
    found = BLOCK.findall(text)
    program = "\n".join(code for kind, code in found if kind == "python")
    path = tmp_path / "model.py"
    path.write_text(program)
    monkeypatch.chdir(tmp_path)
    framejit.reset()
    linecache.checkcache()
    exec(compile(program, str(path), "exec"), {"__name__": "guide"})
    printed = capsys.readouterr().out
    for kind, block in found:
        if kind == "text":  # what the program prints
            assert block.strip() in printed, block
    commands = {"doctor", "run", "explain", "report", "package", "profile", "autotune"}
    for kind, block in found:
        if kind == "sh":
            for line in block.splitlines():
                if line.startswith("framejit "):
                    assert line.split()[1] in commands, line
