"""A package is used only for what it was made for; everything else is one clear PackageError."""

import copy
import functools
import types
import warnings
import weakref

import pytest
import torch
from torch import nn

import framejit
from framejit.exc import FramejitWarning, NothingFits, PackageError
from framejit.package import Reader, files, identity, package_file
from framejit.report import events

SOURCE = """
import torch

def third(x):
    return x + {constant}

def second(x):
    return third(x) * 2

def first(x):
    return second(x).sin()

def foo(x, y=1):
    return first(x) + y

def bar(x, y=1):
    return first(x) + y
"""


def module_of(constant=1, source=SOURCE):
    """A module of its own; its name is the same each time, as after an edit."""
    import sys

    module = types.ModuleType("package_victim")
    sys.modules["package_victim"] = module
    exec(source.replace("{constant}", str(constant)), vars(module))
    return module


X = torch.ones(3)


@pytest.fixture
def saved(tmp_path):
    """The package of `foo`."""
    compiled = framejit.compile(module_of().foo, backend="eager")
    compiled(X)
    compiled.save_package(tmp_path / "foo")
    return tmp_path / "foo"


def loaded(function, path, backend="eager", **options):
    return framejit.compile(function, backend=backend).load_package(path, **options)


def test_it_is_used_for_what_it_was_made_for(saved):
    compiled = loaded(module_of().foo, saved)
    with events.recording(events.CaptureStart) as captured:
        torch.testing.assert_close(compiled(X), module_of().foo(X))
    assert captured == []


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda: module_of().bar, {}, "made for the function package_victim.foo, not for"),
        (
            lambda: module_of(source=SOURCE.replace("foo(x, y=1)", "foo(x, z=1, y=1)")).foo, {},
            r"foo\(x, y\), which is foo\(x, z, y\) now",
        ),
        (lambda: module_of(2).foo, {}, r"another source: third \(<string>:\d+\) changed"),
        (lambda: module_of().foo, {"backend": "aot_eager"}, "backend='eager', not 'aot_eager'"),
        (lambda: module_of().foo, {"key": b"secret"}, "is not signed, but a key was given"),
    ],
)  # fmt: skip
def test_another_program_is_refused(saved, make, options, message):
    function = make()
    backend = options.pop("backend", "eager")
    compiled = framejit.compile(function, backend=backend)
    with pytest.raises(PackageError, match=message):
        compiled.load_package(saved, **options)
    torch.testing.assert_close(compiled(X), function(X))  # it can be compiled still


@pytest.mark.parametrize("what", sorted(identity._WORDS))
def test_another_environment_is_refused(saved, what, monkeypatch):
    now = identity.environment()
    monkeypatch.setattr(identity, "environment", lambda: now | {what: "something else"})
    compiled = framejit.compile(module_of().foo, backend="eager")
    if what == "gpu":  # the package has no code for one
        compiled.load_package(saved)
        return
    with pytest.raises(PackageError, match=f"{identity._WORDS[what]}.*has 'something else'"):
        compiled.load_package(saved)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            {"python": "cpython 3.99", "bytecode": "ff0f0d0a", "torch": "2.99.1"},
            "the package {path} was made with Python 'cpython 3.99'; this process has '{python}'",
        ),
        (
            {"torch": "2.99.1"},
            "the package {path} was made with torch '2.99.1'; this process has '{torch}'",
        ),
    ],
    ids=["python", "torch"],
)
def test_a_package_of_another_release_is_refused_in_one_sentence(
    tmp_path, other, sentence, monkeypatch
):
    """The file itself says so; another release of Python has other bytecode, and maybe torch."""
    now = identity.environment()
    path = tmp_path / "foo"
    compiled = framejit.compile(module_of().foo, backend="eager")
    compiled(X)
    with monkeypatch.context() as patch:
        for module in (identity, files):
            patch.setattr(module, "environment", lambda: now | other)
        compiled.save_package(path)
    function = module_of().foo
    compiled = framejit.compile(function, backend="eager")
    for skip_source_check in (False, True):  # that is no matter of the source
        with pytest.raises(PackageError) as refused:
            compiled.load_package(path, skip_source_check=skip_source_check)
        assert str(refused.value).partition(" [")[0] == sentence.format(path=path, **now)
        assert "\n" not in str(refused.value)
    torch.testing.assert_close(compiled(X), function(X))  # it can be compiled still


def test_the_source_check_can_be_skipped(saved):
    function = module_of(2).foo
    with pytest.warns(FramejitWarning, match="its source changed: third"):
        compiled = loaded(function, saved, skip_source_check=True)
    torch.testing.assert_close(compiled(X), function(X))  # the guards still see the change


def test_only_the_source_check_is_skipped(tmp_path):
    compiled = framejit.compile(make_closure(2), backend="eager")
    compiled(X)
    compiled.save_package(tmp_path / "closure")
    with pytest.raises(PackageError, match="was 2, now it is 3"):
        loaded(make_closure(3), tmp_path / "closure", skip_source_check=True)
    linear = framejit.compile(nn.Linear(3, 3), backend="eager")
    linear(X)
    linear.save_package(tmp_path / "linear")
    with pytest.raises(PackageError, match="had dtype float32"):
        loaded(nn.Linear(3, 3).double(), tmp_path / "linear", skip_source_check=True)


def make_closure(k):
    def closure(x):
        return x * k

    return closure


def test_a_changed_closure_constant_is_refused(tmp_path):
    compiled = framejit.compile(make_closure(2), backend="eager")
    compiled(X)
    compiled.save_package(tmp_path / "closure")
    loaded(make_closure(2), tmp_path / "closure")
    with pytest.raises(PackageError, match="was 2, now it is 3"):
        loaded(make_closure(3), tmp_path / "closure")


def test_another_dtype_of_a_parameter_is_refused(tmp_path):
    compiled = framejit.compile(nn.Linear(3, 3), backend="eager")
    compiled(X)
    compiled.save_package(tmp_path / "linear")
    framejit.compile(nn.Linear(3, 3), backend="eager").load_package(tmp_path / "linear")
    with pytest.raises(PackageError, match="had dtype float32, now it has float64"):
        framejit.compile(nn.Linear(3, 3).double(), backend="eager").load_package(
            tmp_path / "linear"
        )
    with pytest.raises(PackageError, match="not for the module"):
        framejit.compile(nn.Bilinear(3, 3, 3), backend="eager").load_package(tmp_path / "linear")


def test_signatures(tmp_path):
    compiled = framejit.compile(make_closure(2), backend="eager")
    compiled(X)
    compiled.save_package(tmp_path / "signed", key=b"secret")
    loaded(make_closure(2), tmp_path / "signed", key=b"secret")
    loaded(make_closure(2), tmp_path / "signed")
    with pytest.raises(PackageError, match="was not signed with this key"):
        loaded(make_closure(2), tmp_path / "signed", key=b"guess")


def test_a_signed_package_is_replaced_only_with_its_key(tmp_path):
    path = tmp_path / "signed"
    compiled = framejit.compile(make_closure(2), backend="eager")
    compiled(X)
    compiled.save_package(path, key=b"secret")
    for key in (None, b"other"):
        with pytest.raises(PackageError, match="signed with a key that was not given"):
            compiled.save_package(path, key=key)
    Reader(path, b"secret").verify()
    compiled(X.double())
    compiled.save_package(path, key=b"secret")
    assert len(Reader(path, b"secret").manifest["objects"][0]["frames"][0]["entries"]) == 2
    path.write_bytes(path.read_bytes()[:-1])  # cut off, but the key is right
    compiled.save_package(path, key=b"secret")


def test_the_package_argument_has_a_key(tmp_path):
    path = tmp_path / "signed"
    compiled = framejit.compile(make_closure(2), backend="eager", package=path, key=b"secret")
    compiled(X)
    package_file(path).save_news()  # as when the process ends
    Reader(path, b"secret").verify()
    again = framejit.compile(make_closure(2), backend="eager", package=path)  # the key is known
    with events.recording(events.CaptureStart) as captured:
        again(X)
    assert captured == []
    with pytest.raises(TypeError, match="give package="):
        framejit.compile(make_closure(2), backend="eager", key=b"secret")


def test_nothing_to_save(tmp_path):
    with pytest.raises(PackageError, match="call the compiled object first"):
        framejit.compile(make_closure(2), backend="eager").save_package(tmp_path / "empty")
    assert list(tmp_path.iterdir()) == []


def test_other_inputs_are_compiled_as_usual_and_saved_again(tmp_path):
    path = tmp_path / "more"
    compiled = framejit.compile(make_closure(2), backend="eager", dynamic=False)
    compiled(X)
    compiled.save_package(path)
    again = loaded_static(path)
    with events.recording(events.CaptureStart) as captured:
        again(X)
        assert len(captured) == 0
        again(torch.ones(4))
        assert len(captured) == 1
    again.save_package(path)
    third = loaded_static(path)
    with events.recording(events.CaptureStart) as captured:
        torch.testing.assert_close(third(torch.ones(4)), torch.full((4,), 2.0))
        torch.testing.assert_close(third(X), X * 2)
    assert captured == []


def loaded_static(path):
    compiled = framejit.compile(make_closure(2), backend="eager", dynamic=False)
    return compiled.load_package(path)


def test_run_only_uses_a_package_and_compiles_nothing(saved):
    function = module_of().foo
    compiled = loaded(function, saved)
    with events.recording(events.CaptureStart) as captured, framejit.run():
        torch.testing.assert_close(compiled(X), function(X))
        torch.testing.assert_close(compiled(torch.ones(2, 2)), function(torch.ones(2, 2)))
    assert captured == []
    assert sum(entry.hits for entry in compiled.entries) == 1


def test_the_package_argument(tmp_path):
    path = tmp_path / "kept"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = framejit.compile(make_closure(2), backend="eager", package=path)
        compiled(X)
        assert compiled.compiler.compiled_anew
        compiled.save_package(path)
        again = framejit.compile(make_closure(2), backend="eager", package=path)
        again(X)
        assert not again.compiler.compiled_anew
    path.write_bytes(b"nonsense")
    with pytest.warns(FramejitWarning, match="is not a framejit package"):
        framejit.compile(make_closure(2), backend="eager", package=path)(X)


def outside(x):
    return x * 3


def calls_outside(x):
    print("between")
    return list(map(outside, [x]))[0] + 1


def test_run_only_uses_what_a_package_holds_for_functions_that_are_called_from_outside(tmp_path):
    framejit.disallow_in_graph(outside)
    saved = framejit.compile(calls_outside, backend="eager")
    with events.recording(events.CaptureStart) as captured:
        saved(X)
    assert "outside" in [event.name for event in captured]
    saved.save_package(tmp_path / "outside")
    for strict in (False, True):
        compiled = loaded(calls_outside, tmp_path / "outside")
        with events.recording(events.CaptureStart) as captured, framejit.run(strict=strict):
            torch.testing.assert_close(compiled(X), calls_outside(X))
        assert captured == []
        frames = {f.target.name: len(f.entries) for f in compiled.compiler.frames()}
        assert frames["outside"] == 1


def test_a_loaded_entry_keeps_no_argument_of_its_first_call(tmp_path):
    def adds(x, y):  # runs as plain nodes where they share memory
        x.add_(y)
        return x * 2

    saved = framejit.compile(adds, backend="eager")
    saved(torch.ones(3), X)
    saved.save_package(tmp_path / "arguments")
    compiled = loaded(adds, tmp_path / "arguments")
    x = torch.ones(3)
    compiled(x, X)
    assert not compiled.compiler.compiled_anew
    gone = weakref.ref(x)
    del x
    assert gone() is None


def test_strict_run_only_raises_and_says_why(saved):
    function = module_of().foo
    compiled = loaded(function, saved)
    with framejit.run(strict=True):
        with pytest.raises(NothingFits, match="no compiled entry of foo fits this call") as raised:
            compiled(torch.ones(2, 2))  # the entry waits still
        assert "'x'" in str(raised.value) and "[2, 2]" in str(raised.value)
        torch.testing.assert_close(compiled(X), function(X))
        with pytest.raises(NothingFits, match="'x'"):
            compiled(X.double())
        with framejit.run():
            torch.testing.assert_close(compiled(X.double()), function(X.double()))
        with pytest.raises(NothingFits):
            compiled(X.double())
    torch.testing.assert_close(compiled(X.double()), function(X.double()))
    strict = framejit.run(compiled, strict=True)
    torch.testing.assert_close(strict(X.double()), function(X.double()))
    with pytest.raises(NothingFits):
        strict(X.int())
    other = framejit.compile(make_closure(2), backend="eager")
    with pytest.raises(NothingFits, match="it has none"), framejit.run(strict=True):
        other(X)


def captures(compiled, x, plain=None):
    with events.recording(events.CaptureStart) as captured:
        torch.testing.assert_close(compiled(x), (plain or compiled.__wrapped__)(x))
    return len(captured)


class Holder:
    def __init__(self):
        self.k = 2

    def method(self, x):
        return x * self.k

    def __call__(self, x):
        return x + self.k


@pytest.mark.parametrize(
    "make",
    [
        lambda: functools.partial(torch.add, torch.ones(3)), lambda: functools.partial(outside),
        lambda: Holder().method, lambda: Holder(),
    ],
)  # fmt: skip
def test_every_kind_of_callable_can_be_saved_and_is_given_back_by_load(tmp_path, make):
    path = tmp_path / "callable"
    compiled = framejit.compile(make(), backend="eager")
    assert captures(compiled, X, make()) == 1
    compiled.save_package(path)
    again = framejit.compile(make(), backend="eager").load_package(path)
    assert type(again) is type(compiled)
    assert captures(again, X, make()) == 0
    if type(again) is functools.partial:
        copied = copy.deepcopy(framejit.compile(make(), backend="eager"))
        assert captures(copied.load_package(path), X, make()) == 0


def test_load_package_leaves_a_compiled_object_as_it_is(tmp_path):
    path = tmp_path / "linear"
    saved = framejit.compile(nn.Linear(3, 3), backend="eager", dynamic=True)
    saved(torch.ones(2, 3))
    saved.save_package(path)
    compiled = framejit.compile(nn.Linear(3, 3), backend="eager", dynamic=True)
    assert framejit.load_package(path, compiled) is compiled
    assert captures(compiled, torch.ones(5, 3)) == 0
    plain = nn.Linear(3, 3)
    assert framejit.load_package(path, plain, disable=True) is plain
    with pytest.raises(TypeError, match="the path comes first"):
        framejit.load_package(compiled, path)


def test_paths_in_the_home_directory_and_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    compiled = framejit.compile(make_closure(2), backend="eager")
    compiled(X)
    compiled.save_package("~/kept")
    assert (tmp_path / "kept").is_file()
    assert captures(loaded(make_closure(2), "~/kept"), X) == 0
    again = framejit.compile(make_closure(2), backend="eager", package="~/kept")
    assert captures(again, X) == 0
    for use in (
        lambda: framejit.packaged(tmp_path).__enter__(),
        lambda: framejit.compile(make_closure(2), backend="eager", package="~"),
    ):
        with pytest.raises(PackageError, match="not a regular file"):
            use()
