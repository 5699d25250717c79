"""Subclasses of int, float, str, tuple, list, dict and set: made, looked at, changed, kept."""

from __future__ import annotations

import collections
import copy

import pytest
import torch

import framejit
from checking import check

X = torch.arange(6.0).reshape(2, 3)


class S(str):
    def shout(self):
        return self.upper() + "!"

    def __len__(self):
        return 3


class Int(int):
    def double(self):
        return self * 2

    def __add__(self, o):
        return Int(int(self) + o)


class F(float):
    pass


class T(tuple):
    def first(self):
        return self[0]

    def __new__(cls, *a):
        return super().__new__(cls, a)


class L(list):
    def __getitem__(self, i):
        return super().__getitem__(i) * 2

    def append(self, v):
        super().append(v)
        self.n = len(self)


class D(dict):
    def __missing__(self, k):
        return k * 2

    def __setitem__(self, k, v):
        super().__setitem__(k, v)
        self.last = k


class St(set):
    def addall(self, *a):
        for v in a:
            self.add(v)
        return self


s0 = S("abc")
i0 = Int(4)
f0 = F(2.5)
d0 = D(q=1)


def str_subclass(x):
    s = S("hey")
    more = s + "b", s[0], type(s).__name__
    return x + len(s), s.shout(), s == "hey", {s: 1}["hey"], more


def existing_str_subclass(x):
    return x + len(s0), s0.shout(), s0.upper(), f"{s0}-{s0!r}"


def int_subclass(x):
    i = Int(3)
    more = list(range(i)), [1, 2, 3, 4][i], i == 3, isinstance(i, int)
    return x + i.double(), i + 2, type(i + 2).__name__, x * i, i * 2, more


def existing_int_subclass(x):
    return x * i0 + i0.double(), i0 + 1


def float_subclass(x):
    return x * F(2.5) + f0, F(1.5) + 1


def tuple_subclass(x):
    t = T(x, 2)
    return t.first() + t[1], len(t), t


def list_subclass(x):
    l = L([x, 2])
    l.append(3)
    return l[0], l[1], l, l.n, sum(list.__iter__(l))


def dict_subclass(x):
    d = D(a=x)
    d["b"] = 3
    return d["a"], d["zz"], d.last, d


def set_subclass(x):
    s = St([1])
    s.addall(2, 3)
    return x + len(s), s, 2 in s


def list_subclass_over_a_break(x):
    l = L([x, 2])
    l.append(x + 1)
    print(l.n)
    l.append(5)
    return l[2] + l.n, l


def str_subclass_over_a_break(x):
    s = S("q")
    y = x + 1
    print(s)
    return y * 2, s.shout(), s


def int_subclass_over_a_break(x):
    s = Int(2)
    y = x + s
    print(s)
    return y * s, s.double(), s


def torch_takes_an_int_subclass(x):
    return (
        torch.zeros(Int(3)) + x.sum(dim=Int(0)),
        x.reshape((Int(3), 2)),
        x[Int(1)],
        x.repeat(Int(2), 1),
    )


def dispatch_on_a_str_subclass(x):
    table = {"abc": 2, "d": 3}
    found = [s0, "b"].index("abc"), "-".join([s0, S("z")])
    return x * table[s0], s0 in table, found, s0 < "b", "x" + s0


def sorting_and_sums_of_int_subclasses(x):
    values = [Int(3), Int(1), 2]
    more = min(Int(4), 9), abs(Int(-2)), round(Int(7)), divmod(Int(7), 2)
    return x + sum(values), sorted(values), max(values), more


def str_subclass_with_state(x):
    class Tagged(str):
        def __new__(cls, text, tag):
            made = super().__new__(cls, text)
            made.tag = tag
            return made

    t = Tagged("name", 4)
    print(t.upper(), t.tag)
    return x + t.tag, t == "name", t[1:], len(t), f"{t:>8}", t.split("a")


def int_subclass_changes(x):
    f0.note = 3
    i = Int(5)
    i.tag = x
    i2 = i + 1
    return i2, i.tag + i, bool(Int(0)), -i, i**2, int(i), float(i), i // 2, i % 3, i << 1, str(i)


def list_of_a_subclass_is_not_rebuilt(x):
    l = L([1, x])
    k = l
    k.append(x * 2)
    print(len(l))
    return l is k, l.n, l


def existing_dict_subclass(x):
    d0["new"] = x
    y = d0["missing"]
    print(d0.last)
    del d0["new"]
    return y, len(d0), x + 1


#: (program, graphs, operations captured)
class NamedSet(set):
    pass


class NamedDeque(collections.deque):
    pass


class NamedDict(collections.OrderedDict):
    pass


class NamedDefaults(collections.defaultdict):
    pass


EXISTING = NamedSet([1]), NamedDeque([1], 4), NamedDict(a=1), NamedDefaults(None, {1: 2})


def texts_of_containers(x):
    class Frozen(frozenset):
        pass

    made = NamedSet(), NamedSet([2]), NamedDeque([3]), NamedDict(b=2), Frozen([4]), Frozen()
    one, two = EXISTING[:2]
    return x + 1, [repr(v) for v in (*EXISTING, *made)], str(one), set.__repr__(one), f"{two}"


PROGRAMS = [
    (str_subclass, 1, 1), (existing_str_subclass, 1, 1), (int_subclass, 1, 2),
    (existing_int_subclass, 1, 2), (float_subclass, 1, 2), (tuple_subclass, 1, 1),
    (list_subclass, 1, 4), (dict_subclass, 0, 0), (set_subclass, 1, 1),
    (list_subclass_over_a_break, 2, 3), (str_subclass_over_a_break, 2, 2),
    (int_subclass_over_a_break, 2, 2), (torch_takes_an_int_subclass, 1, 6),
    (dispatch_on_a_str_subclass, 1, 1), (sorting_and_sums_of_int_subclasses, 1, 1),
    (str_subclass_with_state, 1, 1), (int_subclass_changes, 1, 1),
    (list_of_a_subclass_is_not_rebuilt, 1, 1), (existing_dict_subclass, 1, 1),
    (texts_of_containers, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


class NoOverride(dict):
    pass


class ListOf(list):
    pass


class SetOf(set):
    pass


MAY_BE_EMPTY = [
    collections.defaultdict(int), collections.Counter(), collections.OrderedDict(), NoOverride(),
    ListOf(), SetOf(), collections.deque(),
]  # fmt: skip


@pytest.mark.parametrize("empty", MAY_BE_EMPTY, ids=lambda value: type(value).__name__)
def test_truth_of_an_existing_container(empty):
    def f(x, held):
        if held:
            held.pop(*(["a"] if isinstance(held, dict) else []))
            return x + 1, len(held), bool(held)
        return x - 1, len(held), not held

    full = copy.copy(empty)
    if isinstance(empty, dict):
        full["a"] = 1
    else:
        getattr(full, "add" if isinstance(empty, set) else "append")(1)
    check(f, X, empty, ops=1, graphs=1)
    if not isinstance(empty, set):
        check(f, X, full, ops=1, graphs=1)
    compiled = framejit.compile(lambda held: bool(held), backend="eager")
    assert [compiled(one) for one in (empty, full, empty)] == [False, True, False]


class Ring(collections.deque):
    pass


class Ordered(collections.OrderedDict):
    pass


class Defaults(collections.defaultdict):
    pass


class Row(list):
    pass


class Names(dict):
    pass


class Loud(collections.deque):
    def __init__(self, *args):
        print("made")
        super().__init__(*args)


def copies(x, given):
    made = type(given)(given) if not isinstance(given, dict) else given
    return x + 1, given.copy(), copy.copy(given), made


def sequence_operators(x, given):
    return x + 1, given + given, given * 2, 2 * given


def dict_operators(x, given):
    return x + 1, given | {"z": 1}, given.copy(), given


COPIED = [
    (copies, Ring([1, 2], maxlen=3)), (copies, Ordered(a=1)), (copies, Defaults(int, a=1)),
    (copies, Row([1])), (copies, Names(a=1)), (copies, Loud([1])),
    (sequence_operators, Ring([1], maxlen=2)), (sequence_operators, Row([1])),
    (dict_operators, Ordered(a=1)), (dict_operators, Defaults(list)), (dict_operators, Names(b=2)),
]  # fmt: skip


@pytest.mark.parametrize("function, given", COPIED)
def test_the_class_of_copies(function, given):
    """Some C-level methods make an object of the subclass, others one of the builtin class."""
    check(function, X, given, ops=1, graphs=1)


def test_items_that_are_containers_keep_their_class():
    class Items(tuple):
        pass

    class Row(list):
        pass

    class Table(dict):
        pass

    def f(x):
        items, row, table = Items([(1,), 2]), Row([[1], [2]]), Table(a={1: 2}, b={})
        row_items = row[0], row.pop(), row.pop(0)
        return x + 1, items[0], items[1:], row_items, table["a"], table.pop("a"), table.get("b")

    check(f, X, graphs=1, ops=1)


class Unkeyed(list):
    def __missing__(self, key):
        return key


class UnkeyedTuple(tuple):
    def __missing__(self, key):
        return key


@pytest.mark.parametrize("make", [Unkeyed, UnkeyedTuple])
def test_only_dicts_ask_for_missing_keys(make):
    def take(x):
        items = make([x + 1, x])
        try:
            items[5]
        except IndexError as error:
            return items[:1], items[0], str(error)

    check(take, torch.ones(2), graphs=1, ops=1)


def test_generic_aliases_are_called():
    def make(x):
        try:
            made = list[int]((1, 2)), dict[str, int](a=1)
        except TypeError as error:
            made = str(error)
        return x + 1, made

    check(make, torch.ones(2), graphs=1, ops=1)


class Kept(collections.OrderedDict):
    def __setitem__(self, key, value):
        print("store", key)
        super().__setitem__(key, value)


def test_existing_ordered_dicts_store_one_by_one():
    def program(x, kept):
        kept.update([(4, x)], k=2)
        kept.update(kept)
        return x + 1, list(kept)

    check(program, torch.ones(2), Kept(a=1), graphs=1, ops=1)


def _noted(base, *names):
    """A subclass of ``base`` whose methods of these names note that they are called."""

    def noting(name):
        def method(self, *args):
            ASKED.append(name)
            return getattr(base, name)(self, *args)

        return method

    return type("Noting", (base,), {name: noting(name) for name in names})


ASKED = []
NotingDeque = _noted(collections.deque, "__iter__")
NotingDict = _noted(dict, "__iter__", "keys")
PlainDeque, PlainList, PlainSet = (
    type("Plain", (base,), {}) for base in (collections.deque, list, set)
)
DEQUE, DICT = NotingDeque([1, 2]), NotingDict(b=2)


class Backwards(list):
    def __iter__(self):
        return reversed([*range(len(self))])


class Turned(set):
    def __iter__(self):
        return iter([7, 8])


def _changed(target, name, argument):
    getattr(target, name)(argument)
    return target


@pytest.mark.parametrize("ask, graphs", [
    (lambda: DEQUE == DEQUE.__class__([1, 2]), 2),
    (lambda: DEQUE == collections.deque([1, 2]), 2),
    (lambda: collections.deque([1, 3]) > DEQUE, 2),
    (lambda: list.__len__([*(collections.deque([1]) + DEQUE)]), 2),
    (lambda: len(DEQUE.copy()), 2),
    (lambda: len(DEQUE * 2), 2),
    (lambda: list(_changed(collections.deque([1]), "extend", DEQUE)), 1),
    (lambda: DICT | {}, 2),
    (lambda: {} | DICT, 1),
    (lambda: [*_changed(PlainList([1]), "extend", Backwards([4, 5]))], 1),
    (lambda: sorted(_changed(PlainSet([9]), "update", Backwards([4, 5]))), 1),
    (lambda: sorted(PlainSet([0]).union(Backwards([4, 5]))), 1),
    (lambda: sorted(PlainSet([0]).intersection(Backwards([4, 5]))), 1),
    (lambda: len(_changed({1}, "update", Turned([2]))), 1),
    (lambda: len(_changed(PlainSet([1]), "update", Turned([2]))), 1),
])  # fmt: skip
def test_c_code_iterates_as_the_subclass_says(ask, graphs):
    """Deques iterate over each other, lists and sets over other containers; sets take the content
    of sets."""

    def program(v):
        ASKED.clear()
        v = v + 1
        answer = ask()
        return v * 2, answer, list(ASKED)

    check(program, X, graphs=graphs, ops=2)
