"""Existing scripts that call torch.compile give the same under ``framejit run``, with a report."""

import contextlib
import importlib.util
import inspect
import io
import runpy
import sys
from pathlib import Path

import pytest
import torch

import framejit
from framejit import cli
from framejit.dropin.compiling import compile_like_torch
from framejit.report import events

SCRIPTS = Path(__file__).parent / "scripts"
NEEDS = {"lightning_module": "lightning", "generation": "transformers", "trainer": "accelerate"}
ORIGINAL = {
    name: getattr(torch.compiler, name)
    for name in ("reset", "disable", "allow_in_graph", "assume_constant_result", "list_backends",
                 "set_default_backend", "get_default_backend", "set_stance", "substitute_in_graph",
                 "nested_compile_region")
}  # fmt: skip


@pytest.fixture(autouse=True)
def fresh():
    framejit.reset()
    torch_compile = torch.compile
    yield
    torch.compiler.reset()
    assert torch.compile is torch_compile, "everything is put back"
    assert all(getattr(torch.compiler, name) is old for name, old in ORIGINAL.items())


def printed_by(function):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function()
    lines = out.getvalue().splitlines()
    return "\n".join(line for line in lines if "runtime" not in line)  # Trainer's timings


def as_plain_python(path, monkeypatch):
    """What the script prints when torch.compile compiles nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(torch, "compile", lambda model=None, **_: model if model else lambda m: m)
        patch.setattr(sys, "argv", [str(path), "a", "--b"])
        return printed_by(lambda: runpy.run_path(str(path), run_name="__main__"))


@pytest.mark.parametrize("script", sorted(p.stem for p in SCRIPTS.glob("*.py")))
def test_scripts_give_the_same_and_a_report(script, tmp_path, monkeypatch):
    path = SCRIPTS / f"{script}.py"
    if importlib.util.find_spec(NEEDS.get(script, "torch")) is None:  # the import patches torch
        pytest.skip(f"needs {NEEDS[script]}")
    expected = as_plain_python(path, monkeypatch)
    page = tmp_path / "out.html"
    with events.recording(events.GraphCompiled, events.InternalFailure) as seen:
        got = printed_by(lambda: cli.main(["run", "--report", str(page), str(path), "a", "--b"]))
    if script == "controls":  # captured code knows that it is
        expected = expected.replace("[35., 35.]", "[36., 36.]").replace(
            "[35., 35., 35., 35., 35.]", "[36., 36., 36., 36., 36.]"
        )
    assert got == expected
    graphs = [event for event in seen if isinstance(event, events.GraphCompiled)]
    assert graphs and len(graphs) == len(seen)
    text = page.read_text()
    assert f"<b>{len(graphs)}</b>graph" in text
    if script in ("functions", "controls"):  # the others compile code of libraries only
        assert path.name in text and 'class="captured"' in text


def test_installing_is_reversible_and_counts():
    original = torch.compile
    framejit.uninstall()
    framejit.install()
    with framejit.install():
        compiled = torch.compile(lambda x: x + 1, backend="eager")
    assert torch.compile is not original
    framejit.uninstall()
    assert torch.compile is original
    with events.recording(events.GraphCompiled) as seen:
        compiled(torch.ones(2))
    assert len(seen) == 1, "what was compiled stays compiled"


def test_a_backend_for_everything():
    with framejit.install("eager"), events.recording(events.GraphCompiled) as seen:
        torch.compile(lambda x: x + 1, mode="reduce-overhead")(torch.ones(2))
    assert [event.backend for event in seen] == ["eager"]
    with pytest.raises(framejit.exc.UnknownBackend):
        framejit.install("egaer")


def test_the_arguments_of_torch_compile_are_understood():
    with framejit.install():

        def f(x):
            return x + 1

        made = torch.compile(
            f, backend="eager", name="f", recompile_limit=3, isolate_recompiles=True,
            options={"guard_filter_fn": lambda entries: [True] * len(entries)},
        )  # fmt: skip
        torch.testing.assert_close(made(torch.ones(2)), torch.full((2,), 2.0))
        assert torch.compile(f, disable=True) is f
        torch.compiler.set_default_backend("eager")
        try:
            assert torch.compiler.get_default_backend() == "eager"
            with events.recording(events.GraphCompiled) as seen:
                torch.compile(f)(torch.ones(2))
            assert [event.backend for event in seen] == ["eager"]
        finally:
            torch.compiler.set_default_backend("inductor")
        with pytest.raises(ValueError, match="stance must be one of"):
            torch.compiler.set_stance("no_such")
        for options in ({"mode": "reduce-overhead"}, {"mode": "default"}, {"options": {"a": 1}}):
            made = torch.compile(f, backend="eager", **options)  # which takes no such thing
            torch.testing.assert_close(made(torch.ones(2)), torch.full((2,), 2.0))

        @torch.compiler.nested_compile_region
        def region(x):
            return x * 2

        with events.recording(events.GraphCompiled) as seen:
            torch.compile(lambda x: region(x) + region(x), backend="eager")(torch.ones(2))
        assert [event.operations for event in seen] == [3]
        torch.compiler.set_stance("force_eager")
    with events.recording(events.GraphCompiled) as seen:  # a stance ends with what understood it
        framejit.compile(f, backend="eager")(torch.ones(2))
    assert len(seen) == 1


def test_every_argument_of_this_torch_is_accepted():
    theirs = inspect.signature(torch.compile).parameters
    assert theirs.keys() <= inspect.signature(compile_like_torch).parameters.keys()
    spec = {name: {"x": None} for name in ("dynamic_shapes", "shapes_spec") if name in theirs}
    with framejit.install():
        made = torch.compile(lambda x: x + 1, backend="eager", **spec)
        assert [float(made(torch.ones(n)).sum()) for n in (2, 3, 5)] == [4, 6, 10]


def test_a_wrong_argument_names_what_the_program_called():
    with framejit.install(), pytest.raises(TypeError, match=r"^torch.compile\(\) got an"):
        torch.compile(print, bakend="x")
