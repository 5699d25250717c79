"""Modules that are loaded are known while capturing, however the program asks for them."""

import importlib
import sys
import types

import pytest
import torch

import framejit
from checking import CountingBackend, check

X = torch.arange(3.0)


def statement(x):
    import os.path as loaded

    return (x + 1) * len(loaded.sep), loaded


def called(x):
    loaded = importlib.import_module("os.path")
    return (x + 1) * len(loaded.sep), loaded


def named(x):
    loaded = importlib.import_module(name="collections.abc")
    return (x + 1) * len(loaded.__name__), loaded


def relative(x):
    loaded = importlib.import_module(".path", "os")
    return (x + 1) * len(loaded.__name__), loaded


def package(x):
    loaded = __import__("os.path")
    return (x + 1) * len(loaded.path.sep), loaded


@pytest.mark.parametrize("function", [statement, called, named, relative, package])
def test_loaded_modules(function):
    check(function, X, graphs=1, ops=2, fullgraph=True)


@pytest.mark.parametrize(
    "name, package", [(".path", None), ("..path", "os"), ("no_such", None), ("", None), (3, None)]
)
def test_names_that_cannot_be_imported(name, package):
    def program(x):
        y = x + 1
        try:
            importlib.import_module(name, package)
        except Exception as error:
            return y * 2, type(error), str(error)

    check(program, X, graphs=2)


@pytest.mark.parametrize("way", ["statement", "call"])
def test_a_module_that_is_exchanged_between_calls(way, monkeypatch):
    def by_statement(x):
        import exchanged

        return x + exchanged.number

    def by_call(x):
        return x + importlib.import_module("exchanged").number

    def module(number):
        made = types.ModuleType("exchanged")
        made.number = number
        return made

    backend = CountingBackend()
    program = by_statement if way == "statement" else by_call
    compiled = framejit.compile(program, backend=backend)
    monkeypatch.setitem(sys.modules, "exchanged", module(1))
    assert torch.equal(compiled(X), X + 1)
    sys.modules["exchanged"].number = 2
    assert torch.equal(compiled(X), X + 2)
    monkeypatch.setitem(sys.modules, "exchanged", module(3))
    assert torch.equal(compiled(X), X + 3)
    assert len(backend.graphs) == 3
    monkeypatch.setitem(sys.modules, "exchanged", None)  # importing it fails
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="None in sys.modules"):
            compiled(X)
    monkeypatch.setitem(sys.modules, "exchanged", module(1))
    assert torch.equal(compiled(X), X + 1)


def test_a_module_that_is_missing_from_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "missing_library", None)

    def program(x):
        y = x + 1
        try:
            import missing_library
        except ImportError as error:
            return y, str(error)
        return y * 2, missing_library

    check(program, X, graphs=1)
