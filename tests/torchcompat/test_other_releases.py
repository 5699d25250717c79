"""With a torch that framejit does not know, programs run: eagerly, or as far as it goes."""

import importlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import framejit
from framejit import __main__, callables, eager_only
from framejit.report import messages
from framejit.torchcompat import releases

#: What needs nothing of torch that could be missing.
ALWAYS = {"__version__", "config", "counters", "exc"}


@pytest.fixture
def untested(monkeypatch):
    messages.forget_warnings()
    for module in (releases, callables, eager_only):
        monkeypatch.setattr(module, "is_tested", lambda: False)
    yield
    messages.forget_warnings()


def test_releases_are_those_that_the_package_asks_for():
    asked = f"torch>={'.'.join(map(str, releases.OLDEST))},<2.{releases.NEWEST[1] + 1}"
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert project.read_text().count(f'"{asked}"') == 1


@pytest.mark.parametrize(
    ("version", "tested"),
    [("2.13.0", True), ("2.15.0+cu132", True), ("2.14.0a0+git12", True), ("2.12.9", False),
     ("2.16.0.dev20270101", False), ("3.0", False), ("unknown", False)],
)  # fmt: skip
def test_which_releases_are_tested(version, tested):
    assert releases.is_tested(version) is tested


def test_an_untested_torch_is_used_with_one_warning(untested):
    with pytest.warns(framejit.exc.FramejitWarning, match=r"not tested with .*FJ0310") as seen:
        first = framejit.compile(lambda x: x + 1, backend="eager")
        second = framejit.compile(lambda x: x + 2, backend="eager")
    assert len(seen) == 1
    assert torch.equal(first(torch.ones(2)) + 1, second(torch.ones(2)))
    assert framejit.counters["stats"]["unique_graphs"] == 2


def test_an_error_of_our_own_is_raised_with_a_tested_torch():
    with pytest.raises(AttributeError, match="gone"):
        eager_only.stand_in(AttributeError("gone"))


def test_every_public_name_is_there_where_an_untested_torch_lacks_something(untested, monkeypatch):
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    with pytest.warns(framejit.exc.FramejitWarning, match="AttributeError: gone") as seen:
        names = eager_only.stand_in(AttributeError("gone\nin C"))
    assert len(seen) == 1 and "\n" not in str(seen[0].message)
    assert names.keys() | ALWAYS == {*framejit.__all__, "autotune", "inspection"}
    assert sys.modules["framejit.autotune"] is names["autotune"]


@pytest.mark.parametrize("room", sorted(eager_only.MODULES))
def test_the_stand_in_of_a_module_holds_what_the_module_defines(room):
    module = importlib.import_module(f"framejit.{room}")
    defined = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
    assert set(eager_only.MODULES[room]) == set(getattr(module, "__all__", defined))
    made = eager_only.modules("it is another torch", eager_only.names("it is another torch"))
    assert vars(made[module.__name__]).keys() >= set(eager_only.MODULES[room])


PROGRAM = """
import sys, warnings
import torch
torch.__version__ = "2.99.1"
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import framejit
    from framejit import compile

    @framejit.compile
    def first(x):
        return x + 1

    @framejit.compile(backend="eager", dynamic=True)
    @framejit.skip
    def second(x):
        framejit.graph_break()
        return x + 2

    @framejit.register_backend
    def mine(module, inputs):
        return module

    @framejit.optimize("eager")
    def third(x):
        return x + 3

    @framejit.disable()
    def fourth(x):
        return x + 4

    linear = torch.nn.Linear(2, 2)
    assert framejit.compile(linear) is linear
    assert framejit.load_package("nowhere", linear) is linear
    with framejit.optimize("eager"), framejit.run(), framejit.disable(), framejit.install():
        x = torch.ones(1)
        print([float(f(x)) for f in (first, framejit.run(second), third, fourth)])
    framejit.comptime.print_graph()
    framejit.mark_dynamic(x, 0)
    assert not framejit.is_compiling()
    import framejit.audit, framejit.autotune, framejit.inspection
    from framejit.audit import audit
    from framejit.autotune import record, tune
    from framejit.comptime import ComptimeContext, comptime
    from framejit.report import events
    assert (audit, comptime, record) == (framejit.audit, framejit.comptime, framejit.record)
    assert framejit.autotune.tune is tune and not isinstance(x, ComptimeContext)
    for refused in (lambda: framejit.explain(first), lambda: framejit.inspection.guards(first),
                    lambda: tune("nowhere"), lambda: ComptimeContext()):
        try:
            refused()
        except framejit.exc.FramejitError as error:
            print(error)
(warning,) = [str(one.message) for one in seen if "framejit" in str(one.message)]
assert "\\n" not in warning
print(warning)
"""


def test_a_wheel_for_another_torch_says_so_in_one_line_and_everything_runs_eagerly():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    results, *errors, warning = done.stdout.splitlines()
    assert results == "[2.0, 3.0, 4.0, 5.0]"
    built = ".".join(torch.__version__.split(".")[:2])
    text = f"its C++ part was built for torch {built} (torch 2.99.1 is installed) [FJ0310]"
    assert warning.endswith(text) and errors == [warning] * 4


def installed_folder(tmp_path, *built):
    """A folder for ``PYTHONPATH`` with framejit's sources, and the files ``built`` as its C++
    part."""
    shutil.copytree(
        Path(framejit.__file__).parent, tmp_path / "framejit",
        ignore=shutil.ignore_patterns("_C.*.so", "__pycache__"),
    )  # fmt: skip
    for name in built:
        (tmp_path / "framejit" / "native" / name).touch()
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_a_wheel_for_another_python_says_so_in_one_line_and_everything_runs_eagerly(tmp_path):
    program = "import framejit, torch; print(framejit.compile(lambda x: x + 1)(torch.ones(1)))"
    environment = installed_folder(tmp_path, "_C.cpython-399-x86_64-linux-gnu.so")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "tensor([2.])\n"
    (warning,) = [line for line in done.stderr.splitlines() if "FJ0310" in line]
    here = f"CPython {platform.python_version()}"
    assert warning.endswith(
        f"its C++ part was built for cpython-399-x86_64-linux-gnu (this is {here}) [FJ0310]"
    )
    done = subprocess.run([sys.executable, "-m", "framejit"], capture_output=True, env=environment)
    assert done.returncode == 1


def test_sources_that_are_not_built_are_an_error_that_says_so(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import framejit"],
        capture_output=True, text=True, env=installed_folder(tmp_path),
    )  # fmt: skip
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: framejit's C++ part is not built: install framejit with pip"


def test_the_command_ends_where_the_native_part_is_for_another_torch(monkeypatch):
    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "framejit.cli":
                raise releases.OtherBuild("its C++ part was built for torch 2.13")

    monkeypatch.delitem(sys.modules, "framejit.cli", raising=False)
    monkeypatch.delattr(framejit, "cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    assert __main__.main() == 1
