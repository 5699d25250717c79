"""Every kind of guard goes through a package: it is there afterwards, it holds, and it still fails.

In `PROGRAMS` each kind has a program that needs it, and a change that only this guard notices.
"""

import pytest
import torch

import framejit
from framejit.guards.kinds import KINDS
from framejit.report import events

X = torch.ones(3)


class Thing:
    def __init__(self, **members):
        self.__dict__.update(members)


class OtherThing(Thing):
    pass


def plus(x):
    return x + 1


def minus(x):
    return x - 1


def caller():
    holder = Thing(function=plus)
    return lambda x, o: o.function(x), (X, holder), lambda: setattr(holder, "function", minus)


def identity_of_class():
    kinds = [Thing]

    def f(x, o):
        return x + 1 if kinds[0] is o else x - 1

    return f, (X, Thing), lambda: kinds.__setitem__(0, OtherThing)


def deleted():
    o = Thing(q=1)
    return lambda x, o: x + 1 if hasattr(o, "q") else x - 1, (X, o), lambda: delattr(o, "q")


def added():
    o = Thing()
    return (
        lambda x, o: x + 1 if hasattr(o, "q") else x - 1, (X, o), lambda: setattr(o, "q", 1),
    )  # fmt: skip


def same_object():
    def f(x, a, b):
        return x + 1 if a is b else x - 1

    one = Thing()
    return f, (X, one, one), lambda: (X, one, Thing())


def distinct():
    def f(x, a, b):
        return x + 1 if a is b else x - 1

    one = Thing()
    return f, (X, one, Thing()), lambda: (X, one, one)


def apart():
    one, two, three = [torch.ones(3, requires_grad=True) for _ in range(3)]
    for leaf in (one, two, three):
        leaf.grad = torch.zeros(3)

    def f(u, v, w):
        (u * v * w).sum().backward()
        found = [leaf.grad + 0 for leaf in (u, v, w)]
        for leaf in (u, v, w):
            leaf.grad.zero_()
        return found

    return f, (one, two, three), lambda: (one, two, one)


def leaf():
    w = torch.ones(3, requires_grad=True)
    hooked = torch.ones(3, requires_grad=True)
    hooked.register_hook(lambda gradient: gradient * 2)
    return lambda w: torch.autograd.grad((w * w).sum(), w)[0], (w,), lambda: (hooked,)


#: kind -> () -> (function, arguments, change); the change may return other arguments.
PROGRAMS = {
    "TYPE_MATCH": lambda: (
        lambda x, o: x + o.k, (X, Thing(k=1)), lambda: (X, OtherThing(k=1)),
    ),
    "ID_MATCH": identity_of_class,
    "EQUALS_MATCH": lambda: (lambda x, s: x + len(s), (X, "abc"), lambda: (X, "abcd")),
    "LEN_MATCH": lambda: (lambda x, items: x + len(items), (X, [1, 2]), lambda: (X, [1])),
    "DICT_KEYS": lambda: (
        lambda x, d: [x + 1 for k in d], (X, {"a": 1, "b": 2}), lambda: (X, {"b": 1, "a": 2}),
    ),
    "ABSENT": added,
    "PRESENT": deleted,
    "FUNCTION_MATCH": caller,
    "TENSOR_MATCH": lambda: (lambda x: x * 2, (X,), lambda: (X.double(),)),
    "SAME_OBJECT": same_object,
    "DISTINCT": distinct,
    "APART": apart,
    "LEAF": leaf,
    "BOOL_MATCH": lambda: (
        lambda x, items: x + 1 if items else x - 1, (X, [3]), lambda: (X, []),
    ),
}  # fmt: skip


def flat(value):
    return list(value) if isinstance(value, list) else [value]


def kinds_of(compiled):
    return {
        fact.kind
        for plan in compiled.plans.values()
        for facts in plan.checked
        for fact in facts
    }  # fmt: skip


def lines_of(compiled):
    return [line for plan in compiled.plans.values() for line in plan.describe()]


def test_every_kind_has_a_program():
    assert set(PROGRAMS) == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kind(kind, tmp_path):
    function, args, _ = PROGRAMS[kind]()
    saved = framejit.compile(function, backend="eager")
    saved(*args)
    assert kind in kinds_of(saved), "the program does not need such a guard"
    saved.save_package(tmp_path / "package")

    function, args, change = PROGRAMS[kind]()
    loaded = framejit.compile(function, backend="eager").load_package(tmp_path / "package")
    with events.recording(events.CaptureStart) as captured:
        for _ in range(2):
            for got, expected in zip(flat(loaded(*args)), flat(function(*args)), strict=True):
                torch.testing.assert_close(got, expected)
        assert captured == []
        assert kind in kinds_of(loaded)
        assert lines_of(loaded) == lines_of(saved)
        changed = change()
        args = changed if isinstance(changed, tuple) else args
        for got, expected in zip(flat(loaded(*args)), flat(function(*args)), strict=True):
            torch.testing.assert_close(got, expected)
        assert len(captured) == 1
