"""The command: each subcommand, its help, its exit status."""

import subprocess
import sys

import pytest
import torch

import framejit
from framejit import cli
from framejit.report.problems import problems

SCRIPT = """
import sys
import torch

@torch.compile(backend="eager")
def f(x):
    print("spoken")
    return x + 1

print(f(torch.ones(2)).tolist(), sys.argv[1:], __name__)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return str(path)


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "framejit", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == f"framejit {framejit.__version__}"


@pytest.mark.parametrize(
    "command", ["", "doctor", "run", "explain", "report", "package", "package show",
                "package verify", "profile", "profile merge", "autotune"],
)  # fmt: skip
def test_the_help_says_enough(command, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([*command.split(), "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: framejit") and len(text.splitlines()) >= 4
    if not command:
        for name in ("doctor", "explain", "run", "report", "package", "profile", "autotune"):
            assert f"\n    {name} " in text


def test_doctor_tries_it(capsys):
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    for part in (torch.__version__, "gives the right result", "eager:", "inductor:", "C++"):
        assert part in text
    assert "None" not in text and ("a GPU (" in text) != torch.cuda.is_available()


def test_a_script_runs_as_it_would_alone(script, capsys):
    assert cli.main(["run", script, "--report", "x"]) == 0
    assert capsys.readouterr().out == "spoken\n[2.0, 2.0] ['--report', 'x'] __main__\n"


def test_explain_prints_what_happened(script, capsys):
    assert cli.main(["explain", "--backend", "eager", script]) == 0
    out = capsys.readouterr().out
    assert "1 graph, 1 graph break" in out and "[FJ0130] program.py:7" in out


def test_report_writes_a_page(script, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert cli.main(["report", "-o", str(page), script]) == 0
    assert "program.py" in page.read_text()
    assert "page.html" in capsys.readouterr().err


def test_the_report_is_written_although_the_script_fails(tmp_path, capsys):
    path, page = tmp_path / "bad.py", tmp_path / "page.html"
    path.write_text(
        "import torch\ntorch.compile(lambda x: x + 1, backend='eager')"
        "(torch.ones(2))\nraise KeyError('mine')\n"
    )
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "--report", str(page), str(path)])
    assert left.value.code == 1 and "KeyError: 'mine'" in capsys.readouterr().err
    assert "<b>1</b>graph" in page.read_text()


@pytest.mark.parametrize(
    "error",
    [
        "OSError(2, 'lost')",
        pytest.param("ConnectionError('lost')", marks=pytest.mark.slow),
        "framejit.exc.PackageError('lost')",
        pytest.param("ValueError('lost')", marks=pytest.mark.slow),
    ],
)
def test_errors_of_a_script_are_shown_as_python_shows_them(error, tmp_path, monkeypatch):
    path = tmp_path / "bad.py"
    path.write_text(
        f"import os, framejit\nos.chdir('/')\nassert os.path.exists(__file__)\n"
        f"def fail():\n    raise {error}\nfail()\n"
    )
    said = [
        subprocess.run(
            [sys.executable, *command, path.name], cwd=tmp_path, capture_output=True, text=True
        )
        for command in ([], ["-m", "framejit", "run", "--report", "page.html"])
    ]
    plain, ours = said
    assert ours.returncode == plain.returncode == 1 and "lost" in plain.stderr
    assert ours.stderr.splitlines()[:-1] == plain.stderr.splitlines()
    assert (tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.parametrize("page", ["missing/page.html", "."])
def test_a_page_that_cannot_be_written_is_told_before(page, script, tmp_path, capsys):
    assert cli.main(["run", "--report", str(tmp_path / page), script]) == 2
    out, error = capsys.readouterr()
    assert out == "" and len(error.splitlines()) == 1


AS_PYTHON_DOES = """
import atexit, pickle, sys, threading, time, torch

class Kept:
    pass

def bye():
    print("bye", type(pickle.loads(pickle.dumps(Kept()))) is Kept)

def deepest(depth=0):
    try:
        return deepest(depth + 1)
    except RecursionError:
        return depth

atexit.register(bye)
print(deepest() if "MODULE" not in sys.argv else "", sys.getrecursionlimit())  # runpy's frames
sys.setrecursionlimit(1500)
print(deepest() > 1490)
names = ("__name__", "__package__", "__file__", "__cached__", "__annotations__", "__doc__")
print({name: globals()[name] for name in names}, type(__loader__).__name__, __builtins__)
print(__spec__ and __spec__.name, sys.argv, sys.path[0])
relu = torch.compile(torch.relu, backend="eager")
late = lambda: (time.sleep(0.1), print("late", relu(torch.ones(1))))
threading.Thread(target=late).start()
print("end")
if sys.argv[-1] == "fail":
    raise KeyError("mine")
sys.exit("said" if sys.argv[-1] == "exit" else None)
"""


@pytest.mark.parametrize(
    "command",
    [
        "program.py a --b",
        "program.py fail",
        pytest.param("program.py exit", marks=pytest.mark.slow),
        "-m parts.program MODULE",
        pytest.param("-m parts MODULE", marks=pytest.mark.slow),
        "parts MODULE",
    ],
)
def test_a_script_is_run_as_python_does(command, tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("program.py", "parts/program.py", "parts/__main__.py"):
        (tmp_path / name).write_text(AS_PYTHON_DOES)
    plain, ours = (
        subprocess.run([sys.executable, *start, *command.split()], cwd=tmp_path,
                       capture_output=True, text=True)
        for start in ([], ["-m", "framejit", "run"])
    )  # fmt: skip
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
    assert ours.returncode == plain.returncode and "late tensor([1.])\nbye True" in ours.stdout


def test_explain_knows_every_identifier(capsys):
    for identifier, problem in problems().items():
        assert cli.main(["explain", identifier.lower()]) == 0
        assert problem.title in capsys.readouterr().out
    assert cli.main(["explain", "FJ9999"]) == 1
    assert "FJ0101" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path, capsys):
    for command in (
        ["run"],
        ["explain"],
        ["report", "-o", str(tmp_path / "page.html")],
        ["package", "show"],
        ["profile", "show"],
        ["profile", "merge", "out"],
    ):
        assert cli.main([*command, "/no/such.py"]) == 2
        out, error = capsys.readouterr()
        (line,) = error.splitlines()
        assert out == "" and line.startswith("framejit: /no/such.py") and "No such file" in line
    assert list(tmp_path.iterdir()) == []


def test_profiles_are_shown(tmp_path, capsys):
    (tmp_path / "odd").write_text("odd")
    assert cli.main(["profile", "show", str(tmp_path / "odd")]) == 2
    assert capsys.readouterr().err.startswith(f"framejit: {tmp_path}/odd is no profile: ")
    path = str(tmp_path / "p.json")
    framejit.save_profile(path)
    assert cli.main(["profile", "show", path]) == 0
    assert cli.main(["profile", "merge", str(tmp_path / "q.json"), path]) == 0
    assert (tmp_path / "q.json").exists()


def test_the_table_of_switches(capsys):
    assert cli.main(["doctor", "--switches"]) == 0
    said = capsys.readouterr().out
    assert "  yes  torch._dynamo.config.recompile_limit: framejit.config.recompile_limit\n" in said
    assert "  no   torch._dynamo.config.optimize_ddp: " in said and "`" not in said
