"""``__getattr__``, ``__setattr__`` and friends: any callable may be there, and a property that
raises AttributeError is not the end of the lookup."""

from __future__ import annotations

import enum
import functools

import pytest
import torch
from torch import nn

from checking import check

x = torch.tensor([1.0, -2.0])


class ItemsAsAttributes(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class Defaults(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


class Stack(list):
    push = list.append
    __lshift__ = list.append
    size = list.__len__

    def append(self, item):
        raise RuntimeError("not this one")


class Shout:
    def __call__(self, name):
        return name.upper()


class Callables:
    __getattr__ = Shout()


class Static:
    __getattr__ = staticmethod(lambda name: name + "!")


class Partial:
    __getattr__ = functools.partialmethod(lambda self, first, name: (first, name), 1)


class Explicit:
    __getattr__ = object.__getattribute__


class Missing:
    def __get__(self, obj, kind):
        raise AttributeError("descriptor")


class Reading:
    @property
    def reads(self):
        return self.absent

    @property
    def printed(self):
        print("in printed")
        return self.absent + 1


class Hooked(Reading):
    described = Missing()

    @property
    def raises(self):
        raise AttributeError("inner")

    def __getattr__(self, name):
        return x * len(name)


class Refusing:
    described = Missing()

    def __getattr__(self, name):
        raise AttributeError("refused " + name)


class Noted:
    asked: list = []  # noqa: RUF012

    def __getattribute__(self, name):
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            Noted.asked.append(name)
            raise

    def __getattr__(self, name):
        return name + "!"


class Net(Reading, nn.Module):
    pass


class Wrapper(nn.Module):
    """As adapters around models do it."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def __getattr__(self, name):
        if name == "first":
            return 5
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


def text_of(read):
    """What the program says when the attribute is missing."""
    try:
        return read()
    except AttributeError as error:
        return str(error)


def items_as_attributes(x):
    d = ItemsAsAttributes(a=x)
    d.b = d.a * 2
    d["c"] = d.b + 1
    del d.a
    return dict(d), d.c, vars(d)


def default_for_missing(x):
    d = Defaults()
    d.k = x * 2
    return d.k, d.absent, len(d), hasattr(d, "other")


def missing_item(x):
    try:
        return ItemsAsAttributes().zz
    except KeyError as error:
        return x * 2, str(error)


def any_callable(x):
    return x * 2, Callables().foo, Static().foo, Partial().foo


def methods_under_other_names(x):
    stack = Stack()
    stack.push(x)
    stack << x * 2  # noqa: B018
    return stack, stack.size()


def explicit_getattribute_asks_nobody(x):
    return (
        x * 2,
        text_of(lambda: Explicit().absent),
        text_of(lambda: object.__getattribute__(Hooked(), "absent")),
    )


def property_that_raises(x):
    h = Hooked()
    return x * 2, h.raises, h.reads, h.described, getattr(h, "raises", None)


def hook_that_raises(x):
    r = Refusing()
    return x * 2, text_of(lambda: r.described), getattr(r, "described", 7), hasattr(r, "q")


def getattribute_then_getattr(x):
    Noted.asked.clear()
    return x * 2, Noted().foo, list(Noted.asked)


def property_of_a_module(x):
    m = NET
    return x * 2, text_of(lambda: m.reads), hasattr(m, "reads")


def module_that_wraps_another(x):
    m = WRAPPER
    return m.inner(x), m.first, m.in_features, text_of(lambda: m.absent)


NET, WRAPPER = Net(), Wrapper()
CAPTURED = [
    (items_as_attributes, 2),
    (default_for_missing, 1),
    (missing_item, 1),
    (any_callable, 1),
    (methods_under_other_names, 1),
    (explicit_getattribute_asks_nobody, 1),
    (property_that_raises, 5),
    (hook_that_raises, 1),
    (getattribute_then_getattr, 1),
    (property_of_a_module, 1),
    (module_that_wraps_another, 1),
]


@pytest.mark.parametrize(("program", "ops"), CAPTURED)
def test_program(program, ops) -> None:
    check(program, x, fullgraph=True, graphs=1, ops=ops)


def break_before_the_error(x):
    y = Hooked().printed + x
    return y * 2


def break_before_the_error_of_a_module(x):
    return x * 2, text_of(lambda: NET.printed)


@pytest.mark.parametrize(
    ("program", "graphs"),
    [(break_before_the_error, 2), (break_before_the_error_of_a_module, 1)],
)
def test_break(program, graphs) -> None:
    """A continuation of the property would not ask ``__getattr__``: the read itself breaks."""
    check(program, x, graphs=graphs)


class Slotted:
    __slots__ = ("a",)


def empty_slot(x):
    try:
        del Slotted().a
    except AttributeError as error:
        return x * 2, str(error)
    return x


def test_empty_slot() -> None:
    check(empty_slot, x, fullgraph=True, graphs=1, ops=1)


class Asked(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value):
        print("missing", value)
        return cls.A


def missing_member(x):
    return x + Asked(7).value + Asked(1).value


def test_missing_member_is_asked_for_each_time() -> None:
    check(missing_member, x, graphs=1, ops=2)
