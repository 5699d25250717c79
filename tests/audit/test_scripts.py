"""A mismatch comes with a script that shows it in another process."""

import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

import framejit
from framejit.audit import portable


def run(path):
    """Exit status and what was said."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path], cwd=path.parent, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def program(tmp_path, text):
    """Runs a program that has mismatches; its scripts."""
    path = tmp_path / "program.py"
    path.write_text("import framejit\nimport torch\n\n" + textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "framejit", "run", "--audit", path.name],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "mismatch" in done.stderr, done.stderr
    assert done.returncode == 1
    return sorted((tmp_path / "framejit_audit").glob("*.py"))


BAD = """
def bad(gm, example_inputs):
    def run(*args):
        return [out + 1 if isinstance(out, torch.Tensor) else out for out in gm(*args)]
    return run
"""

PROGRAMS = {
    "function": """
        SCALE = [2.0]

        def helper(x):
            return x * SCALE[0]

        @framejit.compile(backend=bad)
        def f(x, unused, y=None):
            return helper(x) + y

        f(torch.ones(4, 3), [1, 2], y=torch.ones(4, 1))
    """,
    "module": """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 3)
                self.tied = self.inner

            def forward(self, x):
                return self.inner(x) + self.tied(x)

        framejit.compile(Model(), backend=bad)(torch.ones(2, 3))
    """,
    "closure": """
        def make(n):
            def f(x, again=True):
                return f(x, False) if again else x * n
            return f

        framejit.compile(make(torch.ones(1)), backend=bad)(torch.ones(2, 3))
    """,
    "earlier": """
        def sticky(gm, example_inputs):
            first = []
            def run(*args):
                if not first:
                    first.append(gm(*args))
                return first[0]
            return run

        f = framejit.compile(lambda x: x + 1, backend=sticky)
        f(torch.ones(2))
        f(torch.zeros(2))
    """,
}  # fmt: skip


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_script_shows_the_mismatch(tmp_path, kind):
    (path,) = program(tmp_path, BAD + textwrap.dedent(PROGRAMS[kind]))
    status, said = run(path)
    assert status == 1 and "FJ0216" in said, said
    assert list(path.parent.rglob("*.py")) == [path], "it writes no other one"
    text = path.read_text()
    assert "result" in text and "placeholder" in text and "lambda x" in text + "lambda x"
    if kind == "function":
        assert "#     None" in text, "the argument that does not matter is gone"
        assert "float32[1, 3]" in text, "one row is enough"
    if kind == "earlier":
        assert "earlier calls" in text
        assert path.with_suffix(".safetensors").exists()


def test_there_is_one_script_for_each_place(tmp_path):
    def backend(gm, inputs):
        return lambda *args: [out + 1 for out in gm(*args)]

    compiled = framejit.compile(lambda x: x + 1, backend=backend)
    with warnings.catch_warnings(), framejit.audit(folder=tmp_path) as audit:
        warnings.simplefilter("ignore")
        for _ in range(4):
            compiled(torch.ones(2))
    assert len(audit.mismatches) == 4 and len(list(tmp_path.glob("*.py"))) == 1
    assert len({mismatch.script for mismatch in audit.mismatches}) == 1


def test_where_nothing_can_be_written_the_mismatch_is_said(tmp_path):
    def backend(gm, inputs):
        return lambda *args: [out + 1 for out in gm(*args)]

    compiled = framejit.compile(lambda x: x + 1, backend=backend)
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings(), framejit.audit(folder=tmp_path / "file" / "in") as audit:
        warnings.simplefilter("ignore")
        compiled(torch.ones(2))
    (mismatch,) = audit.mismatches
    assert mismatch.script == "" and not Path(tmp_path / "file").is_dir()


OTHER_STATUS = pytest.param("'no'", 1, marks=pytest.mark.slow)


@pytest.mark.parametrize("code, status", [(None, 1), (0, 1), (3, 3), OTHER_STATUS])
def test_the_exit_status_says_whether_calls_differ(tmp_path, code, status):
    call = "framejit.compile(lambda x: x * 2, backend=BACKEND)(torch.ones(2))"
    for backend, expected in (("bad", status), ("'eager'", code if type(code) is int else None)):
        text = f"import framejit, torch\n{BAD}\n{call}\nraise SystemExit({code})\n"
        (tmp_path / "program.py").write_text(text.replace("BACKEND", backend))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "framejit", "run", "--audit", "program.py"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        expected = (0 if code is None else 1) if expected is None else expected
        assert done.returncode == expected, done.stderr


def test_a_script_that_cannot_be_written_is_no_secret(tmp_path):
    import threading

    def bad(gm, example_inputs):
        return lambda *args: [out + 1 for out in gm(*args)]

    class Locked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

        def forward(self, x):
            return x * 2

    with pytest.warns(framejit.exc.FramejitWarning, match="No script could be written") as told:
        with framejit.audit(folder=tmp_path) as audit:
            framejit.compile(Locked(), backend=bad)(torch.ones(2))
    assert audit.mismatches[0].script == "" and "lock" in audit.mismatches[0].unwritten
    assert len(told) == 1


def test_tensors_in_scripts_are_as_they_were():
    base = torch.arange(6.0)
    leaf = torch.ones(3, requires_grad=True)
    result = leaf * 2
    module = torch.nn.Module()
    module.buffer = torch.nn.Buffer(base[1:])
    conjugate = torch.tensor([1 + 2j]).conj()
    given = [base, base.view(2, 3).t(), leaf, result, result, conjugate, module]
    data, tensors = portable.dump(given, [], {}, 1000, inside_live=True)
    got = portable.load(data, tensors, [])
    assert got[3] is got[4]
    for one, two in zip(given[:-1], got):
        assert torch.equal(one, two) and one.stride() == two.stride()
        assert (one.requires_grad, one.is_leaf) == (two.requires_grad, two.is_leaf)
    assert isinstance(got[-1].buffer, torch.nn.Buffer)
    got[0].zero_()
    assert got[1].sum() == 0 == got[-1].buffer.sum()
    with pytest.raises(ValueError, match="the inputs have more than"):
        portable.dump(given, [], {}, 10)
