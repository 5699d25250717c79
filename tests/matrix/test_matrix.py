"""The tools of ``make matrix``: interpreters, requirements, reports, and the page they make."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import environments
import pytest
import results
import torch

ROOT = Path(__file__).parents[2]
SUITE = """
import pytest

def test_passes(): pass
@pytest.mark.parametrize("number", [1, 2])
def test_fails(number): assert number == 1
def test_is_skipped(): pytest.skip("no such syntax")
@pytest.fixture
def broken(): raise ValueError("no")
def test_cannot_start(broken): pass
"""


def test_a_report_is_read_whole(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "--junitxml=report.xml"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", *options, "test_suite.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert results.parse(tmp_path / "report.xml") == {
        "passed": 2,
        "failures": ["test_suite::test_fails[2]", "test_suite::test_cannot_start"],
        "skipped": {"no such syntax": 1},
    }


def make_releases(*options):
    script = ROOT / "docs" / "make_releases.py"
    return subprocess.run([sys.executable, script, *options], capture_output=True).returncode


def test_the_page_of_releases_is_current():
    assert make_releases("--check") == 0


def test_the_page_names_what_fails_and_why_tests_are_skipped(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = __import__("make_releases").page
    guards = {"passed": 1511, "failures": ["t::test_a"], "skipped": {"no watchers": 3}}
    native = {"passed": 7, "failures": [], "skipped": {}}
    outcome = {"commit": "abc", "date": "2026-01-31", "columns": {"guards": guards, "C++": native}}
    lines = page({"3.12/2.13.0": outcome}).splitlines()
    assert "| 3.12 | 2.13.0 | 1,511, **1 fail** | 7 | abc | 2026-01-31 |" in lines
    guards["commit"] = "def"
    again = page({"3.12/2.13.0": outcome}).splitlines()
    assert "| 3.12 | 2.13.0 | 1,511, **1 fail** | 7 | abc; guards: def | 2026-01-31 |" in again
    assert "- guards: 3 skipped: no watchers" in lines
    assert "- guards: `t::test_a`" in lines


def test_an_interpreter_that_is_there_is_used(tmp_path):
    found, made_in = environments.find_interpreter(sys.executable, tmp_path)
    assert found == Path(sys.executable) and made_in is None


def test_an_interpreter_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(SystemExit, match="PYTHON=pythonic: no such interpreter"):
        environments.find_interpreter("pythonic", tmp_path)


def test_requirements_are_those_of_the_project_with_another_torch():
    packages, pins = environments.requirements("2.15.0")
    assert packages[0] == "torch==2.15.0" and "pytest>=8" in packages
    assert not any(pin.startswith(("torch==", "torchvision==")) for pin in pins)
    assert any(pin.startswith("numpy==") for pin in pins)


def test_a_build_asks_for_the_torch_that_is_installed(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    backend = __import__("build_backend")
    release = torch.__version__.partition("+")[0]
    assert backend.get_requires_for_build_wheel() == [f"torch=={release}"]
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert backend.get_requires_for_build_editable() == [backend.ANY_TORCH]
    assert f'"{backend.ANY_TORCH}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_of_the_sources_works_without_a_compiler(tmp_path):
    """The wheel is built from the archive of the sources, so nothing is missing in that."""
    pytest.importorskip("build")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    (sources,) = tmp_path.glob("*.tar.gz")
    release = ".".join(torch.__version__.split(".")[:2])
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert f"+torch{release}-{tag}-{tag}-" in wheel.name
    with tarfile.open(sources) as archive:
        assert any(name.endswith("/native/hook.cpp") for name in archive.getnames())
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "-qq", "install", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True)
    program = (
        "import torch, framejit; print(framejit.__file__); f = framejit.compile(lambda x: x + 1, "
        "backend='eager'); print(f(torch.ones(1)).item(), framejit.counters['stats'])"
    )
    empty = tmp_path / "bin"
    empty.mkdir()
    settings = os.environ | {"PYTHONPATH": str(site), "PATH": str(empty)}
    assert shutil.which("gcc", path=settings["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-c", program], env=settings, capture_output=True, text=True, cwd=tmp_path
    )
    assert str(site) in done.stdout and "2.0" in done.stdout, done.stderr
    assert "'unique_graphs': 1" in done.stdout


def test_a_column_that_is_tested_again_keeps_the_others(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "RESULTS", tmp_path / "releases.json")
    monkeypatch.setattr(results.subprocess, "run", lambda *args, **options: None)
    passed = [{"passed": count, "failures": []} for count in (1, 2, 3)]
    for name, cells in (
        ("3.12/2.13.0", {"guards": passed[0], "native": passed[1]}),
        ("3.12/2.13.0", {"guards": passed[2]}),
        ("3.13/2.13.0", {"guards": passed[2]}),  # of which there is no row yet
    ):
        monkeypatch.setattr(results, "_commit", lambda cells=cells: f"commit {len(cells)}")
        results.keep(name, cells, 2, ("3.12/2.13.0", "3.13/2.13.0"))
    (row,) = json.loads(results.RESULTS.read_text()).values()
    assert row["commit"] == "commit 2"
    assert row["columns"] == {"guards": {**passed[2], "commit": "commit 1"}, "native": passed[1]}
