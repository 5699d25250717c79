"""Dataclasses, and subclasses of builtin types, in programs."""

from __future__ import annotations

import collections
import dataclasses
from dataclasses import dataclass, field, replace

import torch

from checking import check

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


@dataclass
class Config:
    t: torch.Tensor
    n: int = 2
    items: list = field(default_factory=list)
    total: int = field(init=False, default=0)

    def __post_init__(self):
        self.total = self.n + len(self.items)


@dataclass(frozen=True)
class Frozen:
    a: int
    b: str = "b"


@dataclass(order=True)
class Version:
    major: int
    minor: int = 0


@dataclass
class Child(Config):
    extra: str = "e"


@dataclass(slots=True)
class Slots:
    a: int
    t: object = None


class MyList(list):
    def append(self, item):
        super().append(("mine", item))

    def __getitem__(self, i):
        return super().__getitem__(i) if i != 99 else "ninety-nine"

    def total(self):
        return len(self) * 10


class MyDict(dict):
    def __setitem__(self, key, value):
        super().__setitem__("k" + key, value)

    def __missing__(self, key):
        return "missing " + key


class MyTuple(tuple):
    def first(self):
        return self[0]


class MySet(set):
    def add(self, item):
        super().add(item * 2)


class MyStr(str):
    def shout(self):
        return self.upper() + "!"


class MyInt(int):
    def double(self):
        return self * 2


class WithAttr(list):
    def __init__(self, items, tag):
        super().__init__(items)
        self.tag = tag


def test_dataclass_made_inside():
    def f(a):
        c = Config(a, n=3, items=[1])
        return c.t * c.total, c, c.items

    one(f, x)


def test_factories_are_fresh():
    def f(a):
        c, d = Config(a), Config(a)
        c.items.append(1)
        return a + len(d.items), c.items is d.items

    one(f, x)


def test_replace_and_fields():
    def f(a):
        c = Config(a, 3)
        d = replace(c, n=9)
        return (
            d.t + d.n,
            d.total,
            [g.name for g in dataclasses.fields(c)],
            dataclasses.is_dataclass(c),
        )

    check(f, x, ops=1, graphs=1)


def test_asdict_and_astuple():
    def f(c, a):
        d = dataclasses.asdict(c)
        return a + d["a"], d, dataclasses.astuple(c)

    check(f, Frozen(1), x, graphs=1, ops=1)


def test_frozen_dataclass():
    def f(a):
        z = Frozen(2)
        try:
            z.a = 3
        except dataclasses.FrozenInstanceError as error:
            text = str(error)
        return a * z.a, text, z == Frozen(2), z != Frozen(3)

    one(f, x)


def test_frozen_as_key():
    def f(a):
        d = {Frozen(1): a, Frozen(2, "c"): a * 2}
        return d[Frozen(1)] + d[Frozen(2, "c")], Frozen(7) in d

    check(f, x, graphs=1, ops=2)  # hashes of strings differ from process to process


def test_ordered_dataclass():
    def f(a):
        v, w = Version(1, 2), Version(1, 3)
        return (
            a + (v < w),
            v <= w,
            v > w,
            max(v, w).minor,
            sorted([w, v])[0] is v,
            v == Version(1, 2),
        )

    one(f, x)


def test_order_of_another_class():
    def f(a):
        try:
            Version(1) < 3
        except TypeError as error:
            return a + 1, str(error), Version(1) == 3

    one(f, x)


def test_inherited_fields():
    one(lambda a: (Child(a, 1, extra="q").t + 1, Child(a).extra, isinstance(Child(a), Config)), x)


def test_repr_of_a_dataclass():
    check(
        lambda a: (a + 1, repr(Frozen(1)), str(Version(2, 3)), f"{Frozen(3)}"), x, graphs=1, ops=1
    )


def test_existing_dataclass_is_written():
    def f(c, a):
        c.t = c.t + a
        c.items.append(a)
        c.n += 1
        return c.n

    one(f, Config(x, 3), x)


def test_dataclass_with_slots():
    def f(s, a):
        s.a += 1
        s.t = a * s.a
        return Slots(s.a, a), s.t

    one(f, Slots(4), x)


def test_wrong_arguments_of_a_dataclass():
    def f(a):
        try:
            Frozen()
        except TypeError as error:
            return a + 1, str(error)

    one(f, x)


def test_list_subclass():
    def f(a):
        m = MyList([1])
        m.append(a)
        m.extend([5])
        m += [6]
        return (
            a + 1,
            m,
            m[99],
            m[0],
            m.total(),
            len(m),
            type(m).__name__,
            isinstance(m, list),
            [*m][1][0],
            m == [1],
            m[1:2],
        )

    one(f, x)


def test_list_subclass_argument():
    def f(m, a):
        m.append(a)
        m[0] = 7
        return a + m.total(), m.pop()

    one(f, MyList([1, 2]), x)


def test_unchanged_subclass_is_not_rebuilt():
    one(lambda m, a: (a + len(m), m), MyList([1, 2]), x)


def test_dict_subclass():
    def f(a):
        d = MyDict(z=1)
        d["a"] = a
        d.update(q=3)
        return a + 1, d, d["nope"], d.get("nope"), "ka" in d, list(d), len(d), {**d}

    one(f, x)


def test_dict_subclass_argument():
    def f(d, a):
        d["b"] = a
        del d["ka"]  # stored by its own method when the argument was copied
        return a + 1, d["zz"], d.pop("kb") is a

    check(f, MyDict(a=1), x, graphs=1, ops=1)


def test_tuple_subclass():
    def f(a, t):
        m = MyTuple([a, 2])
        return m.first() + t.first(), m, m + (3,), len(m), m[1], isinstance(m, tuple), t[0], m == m

    one(f, x, MyTuple((5, 6)))


def test_set_subclass():
    def f(s, a):
        s.add(5)
        t = MySet([1])
        t.add(3)
        return a + len(s), sorted(t), 10 in s, sorted(s | {1}), type(t).__name__

    one(f, MySet([1]), x)


def test_str_subclass():
    check(
        lambda a, s: (a + len(s), s.shout(), s + "z", s == "ab", {s: 1}["ab"]),
        x,
        MyStr("ab"),
        graphs=1,
        ops=1,
    )


def test_str_subclass_made():
    check(
        lambda a: (a + 1, MyStr("q").shout(), MyStr("z") + "y", type(MyStr("u")).__name__),
        x,
        graphs=1,
        ops=1,
    )


def test_int_subclass():
    check(
        lambda a, n: (a + n, n.double(), n + 1, MyInt(4).double(), n == 3, [0, 1, 2, 3][n]),
        x,
        MyInt(3),
        graphs=1,
        ops=1,
    )


def test_attributes_and_content():
    def f(w, a):
        w.tag = "new"
        w.append(a)
        v = WithAttr([a], 5)
        v.more = 1
        return a + len(w), v

    one(f, WithAttr([1], "t"), x)


def test_collections_subclasses():
    class Count(collections.Counter):
        pass

    class Default(collections.defaultdict):
        def extra(self):
            return len(self)

    def f(a, d):
        d["k"].append(a)
        return a + d.extra(), dict(d)

    check(f, x, Default(list), graphs=1, ops=1)


def test_mutation_across_break():
    def f(m, a):
        m.append(1)
        print(len(m))
        m.append(a + 1)
        return m

    check(f, MyList([0]), x, graphs=1, ops=1)
