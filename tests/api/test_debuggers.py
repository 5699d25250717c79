"""Debuggers: pdb steps from the user's code into generated code and back; breakpoint() stops in the
user's own line with the user's locals; a trace function may look at every frame."""

import io
import pdb
import subprocess
import sys

import pytest
import torch

import framejit
from checking import check


def spoken(x, n):
    y = x + n
    print("spoken")
    z = y * 2
    return z


def caller(compiled, x):
    a = 1
    r = compiled(x, 3)
    return r + a


def debug(function, *args, commands):
    """The lines that pdb shows for these commands, and the result."""
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out, nosigint=True,
                       readrc=False)  # fmt: skip
    debugger.use_rawinput = False
    result = debugger.runcall(function, *args)
    return out.getvalue(), result


@pytest.mark.parametrize("calls_before", [0, 1])
def test_pdb_steps_through_generated_code_and_back(calls_before, tmp_path, capsys):
    compiled = framejit.compile(spoken, backend="eager")
    with framejit.config.patch(code_folder=str(tmp_path) if calls_before else ""):
        for _ in range(calls_before):
            compiled(torch.ones(2), 3)
    shown, result = debug(
        caller, compiled, torch.ones(2),
        commands=["n", "s", "n", "p x, n", "n", "n", "n", "s", "p y", "n", "n", "s", "c"],
    )  # fmt: skip
    torch.testing.assert_close(result, torch.full((2,), 9.0))
    lines = shown.splitlines()
    stops = [line[2:] for line in lines if line.startswith("->")]
    assert stops[:2] == [" a = 1", " r = compiled(x, 3)"]
    assert " def spoken(x, n):" in stops and " result_add, = fj_graph(x)" in stops
    assert "(Pdb) (tensor([1., 1.]), 3)" in lines
    assert ' print("spoken")' in stops, "back in the user's own line"
    assert "tensor([4., 4.])" in shown, "with the user's locals"
    assert any("test_debuggers.spoken" in line and ".py(" in line for line in lines)
    assert not any("compiler.py" in line for line in lines), "nobody wants to see that"
    assert capsys.readouterr().out == "spoken\n" * (calls_before + 1)


def test_files_have_stable_names_and_readable_text(tmp_path):
    names = []
    for folder in ("one", "two"):
        with framejit.config.patch(code_folder=str(tmp_path / folder)):
            compiled = framejit.compile(spoken, backend="eager")
            torch.testing.assert_close(compiled(torch.ones(2), 3), torch.full((2,), 8.0))
        names.append(sorted(path.name for path in (tmp_path / folder).iterdir()))
    assert names[0] == names[1] and len(names[0]) == 2
    for path in (tmp_path / "one").iterdir():
        text = path.read_text()
        compile(text, str(path), "exec")
        assert text.startswith("# What framejit runs for spoken (") and "fj_graph(" in text


@pytest.mark.parametrize("function", [spoken, lambda x, n: [x + n, n][0] * 2])
def test_steppable_functions_do_the_same(function, tmp_path):
    with framejit.config.patch(code_folder=str(tmp_path)):
        check(function, torch.ones(3), 2, graphs=2 if function is spoken else 1, ops=2)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    with framejit.config.patch(code_folder=str(tmp_path / "file")):
        check(spoken, torch.ones(3), 2, graphs=2, ops=2)


def outer(x):
    k = x * 2
    unused = 7

    def inner(z):
        breakpoint()
        return z + k

    return inner(x + 1)


def test_breakpoint_stops_in_the_users_line_with_the_users_locals(monkeypatch):
    seen = []

    def stop(*args):
        for depth in (1, 2):
            frame = sys._getframe(depth)
            seen.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))
            break

    monkeypatch.setattr(sys, "breakpointhook", stop)
    compiled = framejit.compile(outer, backend="eager")
    torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 4.0))
    ((filename, line, variables),) = seen
    first = outer.__code__.co_firstlineno
    assert (filename, line) == (__file__, first + 5)
    assert variables.keys() == {"z", "k"}
    torch.testing.assert_close(variables["z"], torch.full((2,), 2.0))


TRACED = """
import sys, torch, framejit

def f(x, flag):
    cell = x + 1
    read = lambda: cell
    with torch.no_grad():
        try:
            print("spoken")
            y = read() * 2
            if flag:
                raise ValueError(flag)
        except ValueError:
            print("caught")
            y = y + 1
    return y

seen = []
def trace(frame, event, arg):
    if frame.f_globals.get("__name__") == "__main__":
        dict(frame.f_locals)
        seen.append((frame.f_code.co_name, frame.f_lineno, event))
    return trace

compiled = framejit.compile(f, backend="eager")
for _ in range(2):
    sys.settrace(trace)
    for flag in (0, 1):
        compiled(torch.ones(2), flag)
    sys.settrace(None)
assert all(line for _, line, _ in seen), seen
print({line for name, line, event in seen if event == "line"} >= {9, 14})
"""


def test_a_trace_function_may_look_at_the_variables_of_every_frame():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACED], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"
