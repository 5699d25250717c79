"""What the code of a tensor's class looks at may change between calls, wherever it is: handlers in
registries, lists, variables of closures, objects in objects, methods, names that are bound anew."""

from __future__ import annotations

import functools
import types

import outside_module
import pytest
import torch

import framejit
from checking import CountingAround


class Inner:
    level = 1.0

    def __init__(self):
        self.scale = 1.0


class Options:
    def __init__(self):
        self.inner, self.scales = Inner(), [1.0]

    def total(self):
        return self.inner.scale * self.inner.level * self.scales[0] * getattr(self, "bonus", 1.0)


class Slots:
    __slots__ = ("scale",)


def keeping(scale):
    def read():
        return scale

    def write(value):
        nonlocal scale
        scale = value

    return read, write


def powered(value, exponent):
    return value**exponent


def usual(value):
    return value


def doubled(value):
    return value * 2


def with_default(value, scale=1.0):
    return value * scale


OPTIONS, SLOTS = Options(), Slots()
SLOTS.scale = 1.0
HANDLERS = {torch.ops.aten.relu.default: usual}
STEPS = [usual]
TABLE = {"scales": {"inner": (1.0, [1.0])}}
FLAGS = {"a"}
read_kept, write_kept = keeping(1.0)
PARTIAL = functools.partial(powered, exponent=1.0)
NAMED = usual
BOUND = OPTIONS.total
SPACE = types.SimpleNamespace(scale=1.0)


def looked_up(func, value):
    value = HANDLERS.get(func, usual)(value)
    for step in STEPS:
        value = step(value)
    value = value * OPTIONS.total() * SLOTS.scale * read_kept() * BOUND()
    value = with_default(NAMED(PARTIAL(value))) * SPACE.scale
    scale, scales = TABLE["scales"]["inner"]
    value = value * scale * scales[0] * len(FLAGS) * TABLE.get("added", 1.0)
    return outside_module.scaled(value) * globals().get("LATER", 1.0)


class Looking(torch.Tensor):
    @staticmethod
    def __new__(cls, content):
        return torch.Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype)

    def __init__(self, content):
        self.content = content

    def __repr__(self):
        return "Looking"

    def __tensor_flatten__(self):
        return ["content"], None

    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Looking(inner["content"])

    @classmethod
    def weight(cls):
        return 1.0

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        plain = [arg.content if isinstance(arg, cls) else arg for arg in args]
        value = func(*plain, **(kwargs or {}))
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(value)
        return cls(looked_up(func, value) * cls.weight() * getattr(cls, "late", 1.0))


class Heavier(Looking):
    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Heavier(inner["content"])


def patched(target, name, value):
    return lambda patch: patch.setattr(target, name, value, raising=False)


def stored(container, key, value):
    return lambda patch: patch.setitem(container, key, value)


CHANGES = {
    "a handler": stored(HANDLERS, torch.ops.aten.relu.default, doubled),
    "a step in a list": lambda patch: STEPS.__setitem__(0, doubled),
    "one more step": lambda patch: STEPS.append(doubled),
    "an object in an object": patched(OPTIONS.inner, "scale", 3.0),
    "another object in an object": lambda patch: patch.setattr(OPTIONS, "inner", other_inner()),
    "a list of an object": lambda patch: OPTIONS.scales.__setitem__(0, 3.0),
    "a class of an object": patched(Inner, "level", 3.0),
    "a new attribute": patched(OPTIONS, "bonus", 3.0),
    "a method": patched(Options, "total", lambda self: 3.0),
    "a slot": patched(SLOTS, "scale", 3.0),
    "a variable of a closure": lambda patch: write_kept(3.0),
    "what a partial calls with": stored(PARTIAL.keywords, "exponent", 3.0),
    "a deep entry": lambda patch: TABLE["scales"]["inner"][1].__setitem__(0, 3.0),
    "an entry of an inner dict": stored(TABLE["scales"], "inner", (3.0, [1.0])),
    "a new entry": stored(TABLE, "added", 3.0),
    "a set": lambda patch: FLAGS.add("b"),
    "a default": patched(with_default, "__defaults__", (3.0,)),
    "code": patched(usual, "__code__", doubled.__code__),
    "a namespace": patched(SPACE, "scale", 3.0),
    "a name": stored(globals(), "NAMED", doubled),
    "a new name": stored(globals(), "LATER", 3.0),
    "another module": patched(outside_module, "SCALE", 3.0),
    "a function of another module": patched(outside_module, "scaled", doubled),
    "a class method": patched(Looking, "weight", classmethod(lambda cls: 3.0)),
    "an inherited method": patched(Heavier, "weight", classmethod(lambda cls: 3.0)),
    "a new attribute of the class": patched(Looking, "late", 3.0),
}


def other_inner():
    made = Inner()
    made.scale = 3.0
    return made


@pytest.fixture
def patch(monkeypatch):
    """Undoes what was done to lists, sets and closures as well."""
    yield monkeypatch
    monkeypatch.undo()
    STEPS[:], OPTIONS.scales[:], TABLE["scales"]["inner"][1][:] = [usual], [1.0], [1.0]
    FLAGS.discard("b")
    write_kept(1.0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_compiles_again(change, backend, patch):
    counting = CountingAround(backend)
    compiled = framejit.compile(torch.nn.functional.relu, backend=counting, fullgraph=True)
    x = Heavier(torch.full((3,), 2.0))
    before = torch.nn.functional.relu(x).content
    for number in range(4):
        expected = torch.nn.functional.relu(x).content
        assert torch.equal(compiled(x).content, expected)
        assert torch.equal(expected, before) == (number < 2)
        assert len(counting.graphs) == counting.ops == 1 + (number > 1)
        if number == 1:
            CHANGES[change](patch)


KNOWN = {}
CALLS = []


class Remembering(Looking):
    """Its own code keeps what it has found out."""

    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Remembering(inner["content"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        CALLS.append(func)
        plain = [arg.content if isinstance(arg, cls) else arg for arg in args]
        key = func, plain[0].shape[0]
        if key not in KNOWN:
            KNOWN[key] = len(KNOWN)
        return cls(func(*plain, **(kwargs or {})))


def test_what_its_own_code_keeps_is_no_reason_to_compile_again():
    counting = CountingAround("eager")
    functions = [torch.relu, torch.sin, torch.cos]
    compiled = [
        framejit.compile(one, backend=counting, fullgraph=True, dynamic=False) for one in functions
    ]
    for _ in range(3):
        for one in compiled:
            for size in (2, 3):
                one(Remembering(torch.ones(size)))
    assert len(counting.graphs) == 6
