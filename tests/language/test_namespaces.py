"""Globals, dicts of classes and modules: read, written and searched."""

from __future__ import annotations

import math
import types

import pytest
import torch

import framejit
from checking import check, check_between, said

X = torch.arange(3.0)


class Known:
    known = 1


class Key:
    """Equals a text."""

    def __init__(self, text):
        self.text = text

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        return isinstance(other, str) and other == self.text


def keys_of_namespaces(x):
    namespace = vars(Known)
    return (
        namespace.get(Key("known")), Key("known") in namespace, Key("unknown") in namespace,
        namespace[Key("known")], Key("Key") in globals(),
        types.MappingProxyType({"q": 1})[Key("q")],
    )  # fmt: skip


def test_all_globals_are_deleted():
    def make():
        namespace = {"name": 1, "other": 2}
        lines = ("names = globals()", "names.clear()", "names['q'] = 3", "return x + 1, names")
        source = "def run(x):\n" + "".join(f"    {line}\n" for line in lines)
        exec(source, namespace)
        return namespace["run"]

    check(make(), torch.ones(2), make=make, graphs=1, ops=1, calls=1)


class PlainA:
    a = 3


def written_namespaces(x):
    PlainA.b = 4
    del PlainA.a
    names, shown = list(PlainA.__dict__), PlainA.__dict__
    out = "a" in names, "b" in names, shown.get("b"), shown.get("a")
    PlainA.a = 3
    del PlainA.b
    return out, "b" in list(PlainA.__dict__)


SHOWN = PlainA.__dict__


def namespaces_by_two_ways(x):
    out = [SHOWN.get("a"), PlainA.__dict__["a"], "other" in SHOWN]
    PlainA.a = 5
    out += [SHOWN["a"], vars(PlainA)["a"]]
    PlainA.a = 3
    return out


def keys_of_globals(x):
    return 3 in globals(), globals().get(3), "PlainA" in globals(), len(globals()) > 3


class OwnModule(types.ModuleType):
    @property
    def read(self):
        return 5

    def method(self):
        return 6

    def __getattr__(self, name):
        if name == "lazy":
            return 9
        raise AttributeError(name)


MODULE = OwnModule("own")


def module_subclasses(x):
    out = [MODULE.read, MODULE.method(), MODULE.lazy, said(getattr, MODULE, "other")]
    return out, hasattr(torch.ops, "other"), said(getattr, torch, "other")


class Switch:
    """A data descriptor: it comes before what the module has under its name."""

    def __get__(self, module, cls):
        return module.__dict__["kept"]

    def __set__(self, module, value):
        module.__dict__["kept"] = value * 2

    def __delete__(self, module):
        module.__dict__["kept"] = 0


class ModuleOfSwitches(types.ModuleType):
    switch = Switch()

    def __setattr__(self, name, value):
        super().__setattr__(name, ("set", value) if name == "by_hook" else value)


SWITCHES = ModuleOfSwitches("switches")
SWITCHES.__dict__.update(kept=1, switch="hidden", plain=2)


def module_with_switches(x):
    SWITCHES.switch = 3
    out = [SWITCHES.switch, SWITCHES.plain]
    SWITCHES.switch = 4
    out.append(SWITCHES.switch)
    SWITCHES.by_hook = 5
    out.append(SWITCHES.by_hook)
    del SWITCHES.switch
    out += [SWITCHES.switch, sorted(SWITCHES.__dict__)[-4:], SWITCHES.__dict__["switch"]]
    return out


class Annotated:
    a: int = 1


def test_annotations_are_those_of_the_class_itself():
    def make():
        class Inherits(Annotated):
            pass

        return lambda x: (x + 1, Annotated.__annotations__, Inherits.__annotations__, x * 2)

    check(make(), X, make=make, graphs=2, ops=2, calls=1)


def methods_of_none(x):
    method = None.__eq__
    return method, method(None), method.__self__, None.__str__


def class_methods_of_object(x):
    return Annotated().__subclasshook__, Annotated().__subclasshook__(int)


def test_switches_of_torch_backends_are_set():
    """They are C functions behind descriptors of a class of modules."""
    cudnn = torch.backends.cudnn

    def run(x):
        y = x + 1
        before = cudnn.benchmark
        cudnn.benchmark = not before
        cudnn.deterministic = not cudnn.deterministic
        return y * 2, before, cudnn.benchmark, cudnn.deterministic

    states = [torch._C._get_cudnn_benchmark(), torch._C._get_cudnn_deterministic()]
    compiled = framejit.compile(run, backend="eager")
    try:
        for call in range(4):
            result = (run if call % 2 else compiled)(X)
            states = [not state for state in states]
            now = [torch._C._get_cudnn_benchmark(), torch._C._get_cudnn_deterministic()]
            assert now == states == list(result[2:])
            assert result[1] is not result[2]
            assert torch.equal(result[0], (X + 1) * 2)
    finally:
        torch._C._set_cudnn_benchmark(False)
        torch._C._set_cudnn_deterministic(False)
    assert "benchmark" not in vars(cudnn)


def test_a_name_that_is_looked_at_for_nothing_must_exist():
    namespace = {}
    exec("def p04(x):\n    flag\n    return x + 1\n", namespace)
    namespace["flag"] = 1
    compiled = framejit.compile(namespace["p04"], backend="eager")
    compiled(torch.zeros(1))
    del namespace["flag"]
    with pytest.raises(NameError, match="flag"):
        compiled(torch.zeros(1))


def vars_of_a_module(x):
    return x + len(vars(math)) * 0 + math.__dict__["pi"]


G = 1


def global_is_rebound(x):
    global G
    G = G + 1
    try:
        return x + G
    finally:
        G = 1


#: (program, graphs, operations captured)
PROGRAMS = [
    (vars_of_a_module, 1, 2), (global_is_rebound, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (written_namespaces, 1, 2), (namespaces_by_two_ways, 1, 2), (keys_of_globals, 2, 2),
    (module_subclasses, 2, 2), (module_with_switches, 2, 2), (keys_of_namespaces, 1, 2),
    (methods_of_none, 2, 2), (class_methods_of_object, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
