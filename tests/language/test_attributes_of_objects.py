"""Attributes that are read, written and deleted: by properties, hooks, metaclasses and C code."""

from __future__ import annotations

import io
import traceback
import typing

import pytest
import torch

import framejit
from checking import check, check_between, said

X = torch.arange(3.0)


class Read:
    @property
    def held(self):
        return 1

    @held.setter
    def held(self, value):
        pass

    @property
    def fixed(self):
        return 1


def errors_of_properties(x):
    class Inner(Read):
        own = property()

    seen = []
    for one in (Read(), Inner()):
        seen.append(said(setattr, one, "fixed", 1))
        seen.append(said(delattr, one, "held"))
    return x + 1, seen, said(getattr, Inner(), "own")


class Watching:
    """Notes what is read of it."""

    log: typing.ClassVar[list] = []

    def __init__(self):
        self.a = 1

    def __getattribute__(self, name):
        Watching.log.append(name)
        return object.__getattribute__(self, name)


WATCHED = Watching()


def own_getattribute_is_asked(x):
    Watching.log.clear()
    y = x + 1
    one = WATCHED
    print("break")
    y = y + one.a
    return y + Watching().a, isinstance(one, int), isinstance(one, Watching), list(Watching.log)


class Asking(type):
    log: typing.ClassVar[list] = []

    def __getattr__(cls, name):
        Asking.log.append(name)
        raise AttributeError(name)


class OfAsking(metaclass=Asking):
    a = 1


OF_ASKING = OfAsking()


def getattr_of_the_metaclass(x):
    Asking.log.clear()
    one, other = OfAsking(), OF_ASKING
    print("break")
    one.b = other.b = 3
    return x + one.b + OfAsking.a, list(Asking.log), hasattr(OfAsking, "nothing"), list(Asking.log)


class RaisingProperties:
    @property
    def value(self):
        raise ValueError("value")

    @property
    def missing(self):
        raise AttributeError("missing")


class RaisingNamespace:
    @property
    def __dict__(self):
        raise KeyError("namespace")


def raised_by_attributes(x):
    return (
        said(getattr, RaisingProperties(), "value", 1), said(hasattr, RaisingProperties(), "value"),
        said(getattr, RaisingProperties(), "missing", 1), hasattr(RaisingProperties(), "missing"),
        said(vars, RaisingNamespace()), said(vars, 3),
    )  # fmt: skip


class Noting(type):
    def __setattr__(cls, name, value):
        print("set", name)
        super().__setattr__(name, value + 1)

    def __delattr__(cls, name):
        print("del", name)
        super().__delattr__(name)

    def __iter__(cls):
        return iter([1, 2, 3])


class OfNoting(metaclass=Noting):
    pass


def classes_written_through_a_metaclass(x):
    OfNoting.b = 3
    out = [OfNoting.b]
    OfNoting.b = 8
    out.append(OfNoting.b)
    del OfNoting.b
    type.__setattr__(OfNoting, "q", 4)
    out.append(OfNoting.q)
    type.__delattr__(OfNoting, "q")
    return out, hasattr(OfNoting, "b"), said(delattr, OfNoting, "zz"), hasattr(OfNoting, "q")


def classes_searched_through_a_metaclass(x):
    return 2 in OfNoting, 7 in OfNoting, list(OfNoting)


class PlainA:
    a = 3


def methods_of_object(x):
    return (
        object.__getattribute__([1], "__class__"), said(object.__getattribute__, [1], "other"),
        object.__getattribute__("a", "upper")(), said(object.__setattr__, 3, "a", 4),
        said(object.__delattr__, [1], "a"), said(object.__setattr__, PlainA, "a", 4),
        said(object.__getattribute__, PlainA, "a"),
    )  # fmt: skip


class Setting:
    def __set__(self, obj, value):
        pass


class Deleting:
    def __delete__(self, obj):
        print("deleted")


class DescribedObject:
    __slots__ = ("__dict__", "slot")
    setting, deleting = Setting(), Deleting()

    @property
    def read(self):
        return 1


def attributes_that_cannot_be_deleted(x):
    one = DescribedObject()
    names = ("setting", "deleting", "slot", "read", "__class__", "other", "__doc__")
    return [said(delattr, one, name) for name in names]


class OwnProperty(property):
    def extra(self):
        return 3


def subclass_of_property(x):
    made = OwnProperty(len)
    return made.extra(), made.__get__([1, 2]), type(made.setter(len)).__name__, said(made.extra, 1)


class Falling:
    @property
    def read(self):
        return self.missing

    __getattr__ = lambda self, name: len(name)  # noqa: E731


class FallingTable(dict):
    @property
    def read(self):
        raise AttributeError("read")

    __getattr__ = dict.__getitem__


def getattr_after_a_property(x):
    return Falling().read, FallingTable(read=5).read


STREAM = type("Stream", (io.StringIO,), {})()


def attributes_of_c_objects(x):
    STREAM.a = 1
    out = STREAM.a
    del STREAM.a
    return out, said(delattr, STREAM, "a"), hasattr(STREAM, "a")


class Box:
    def __init__(self, n=0):
        self.n = n


def test_an_attribute_deleted_again_needs_not_exist():
    def program(x, box):
        box.extra = 1
        del box.extra
        return x + box.n

    check(program, torch.ones(2), Box(2), graphs=1, ops=1)
    with_extra = Box(2)
    with_extra.extra = 5
    compiled = framejit.compile(program, backend="eager")
    compiled(torch.ones(2), with_extra)
    assert not hasattr(with_extra, "extra")
    compiled(torch.ones(2), with_extra)


def test_a_deleted_attribute_must_exist():
    def program(x, box):
        del box.n
        return x + 1

    box_eager, box = Box(), Box()
    compiled = framejit.compile(program, backend="eager")
    for run, target in ((program, box_eager), (compiled, box)):
        run(torch.ones(2), target)
        with pytest.raises(AttributeError, match="n") as caught:
            run(torch.ones(2), target)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert last.line == "del box.n"


def test_hasattr_of_what_is_removed_later():
    def program(x, box):
        return x + (1 if hasattr(box, "n") else 2)

    box = Box()
    compiled = framejit.compile(program, backend="eager")
    assert compiled(torch.zeros(1), box).item() == 1
    del box.n
    assert compiled(torch.zeros(1), box).item() == 2


def test_an_attribute_that_tensors_do_not_have():
    def program(x):
        try:
            return x.names
        except AttributeError:
            return x + 1

    check(program, torch.ones(2), graphs=1, ops=1)


class CachedProperty(property):
    def __init__(self, function):
        property.__init__(self, function)


def test_a_subclass_of_property_made_and_asked_for_its_class():
    def program(x):
        made = CachedProperty(lambda self: 3)
        if isinstance(made, CachedProperty) and isinstance(made, property):
            x = x + 1
        return x * 2

    check(program, torch.ones(2), graphs=1, ops=2, fullgraph=True)

    def kept(x):
        y = x + 1
        return type(CachedProperty(lambda self: 3)), [CachedProperty(lambda self: 3)][0].fget(0), y

    check(kept, torch.ones(2), graphs=1, ops=1)


class WithTotal:
    def __setattr__(self, name, value):
        self.__dict__[name] = value

    @property
    def total(self):
        return 0


def test_the_order_of_attributes_that_a_property_writes():
    def program(x, box):
        box.total += 2
        box.extra = x + 1
        return x * 2

    check(program, torch.ones(2), WithTotal(), graphs=1, ops=2)
    compiled, box = framejit.compile(program, backend="eager"), WithTotal()
    compiled(torch.ones(2), box)
    assert list(vars(box)) == ["total", "extra"]


class TwoNumbers:
    def __init__(self, n, w):
        self.n, self.w = n, w


def test_an_attribute_that_is_deleted_and_written_again():
    def program(x, pair):
        before = list(vars(pair))
        del pair.n
        pair.n = x + 1
        pair.new = 1
        del pair.new
        pair.new = 2
        return before, list(vars(pair)), x * 2

    check(program, torch.ones(2), TwoNumbers(1, 2), graphs=1, ops=2)
    compiled, pair = framejit.compile(program, backend="eager"), TwoNumbers(1, 2)
    compiled(torch.ones(2), pair)
    assert list(vars(pair)) == ["w", "n", "new"]


def getattr_setattr_and_delattr(x):
    class A:
        def __getattr__(self, n):
            return len(n)

        def __setattr__(self, n, v):
            object.__setattr__(self, n, v * 2)

        def __delattr__(self, n):
            object.__delattr__(self, n)

    a = A()
    a.q = x
    r = a.q + a.hello
    del a.q
    return r, a.q


def getattribute_that_knows_a_name(x):
    class A:
        v = 1

        def __getattribute__(self, n):
            return object.__getattribute__(self, n) if n != "w" else 9

    return x + A().v + A().w


#: (program, graphs, operations captured)
PROGRAMS = [
    (errors_of_properties, 1, 1), (own_getattribute_is_asked, 2, 3),
    (getattr_of_the_metaclass, 1, 2), (getattr_setattr_and_delattr, 1, 2),
    (getattribute_that_knows_a_name, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (raised_by_attributes, 1, 2), (classes_written_through_a_metaclass, 2, 2),
    (classes_searched_through_a_metaclass, 1, 2), (methods_of_object, 2, 2),
    (attributes_that_cannot_be_deleted, 2, 2), (subclass_of_property, 2, 2),
    (getattr_after_a_property, 1, 2), (attributes_of_c_objects, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
