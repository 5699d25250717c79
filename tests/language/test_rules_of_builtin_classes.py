"""What builtin classes refuse, and in which words: arguments, iterables, live dicts, getters."""

import enum
import functools
import operator
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque

import pytest
import torch

from checking import check


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def outcomes(*calls):
    return [outcome(call) for call in calls]


class Plain:
    pass


class Derived(dict):
    pass


class RaisesValueError:
    def __iter__(self):
        raise ValueError("iter")


class RaisesTypeError:
    def __iter__(self):
        raise TypeError("its own")


class NoIteration:
    __iter__ = None


class ReturnsThree:
    def __iter__(self):
        return 3


def keywords_of_dicts(x):
    """Only an ordered dict's methods take keywords."""
    d = {1: 2}
    o = OrderedDict(a=1, b=2)
    return x + 1, d, o, outcomes(
        lambda: d.pop(1, default=3), lambda: d.popitem(last=True), lambda: d.popitem(False),
        lambda: defaultdict(int).pop(1, default=3), lambda: Counter(a=1).pop("z", default=4),
        lambda: Derived(a=1).popitem(last=True), lambda: Derived().pop("z", default=3),
        lambda: o.pop("z", default=3), lambda: o.pop(key="z", default=3), lambda: o.pop(key="a"),
        lambda: o.pop(default=3), lambda: o.popitem(last=False), lambda: o.setdefault(key="c"),
        lambda: o.move_to_end(key="c", last=False), lambda: d.setdefault("b", default=3),
        lambda: o.pop("c", key="c"), lambda: d.get("a", default=3), lambda: {}.update(1, 2),
    )  # fmt: skip


def class_methods_of_dicts(x):
    return x + 1, outcomes(
        lambda: OrderedDict.fromkeys(iterable=[1], value=3), lambda: OrderedDict.fromkeys([1], 4),
        lambda: OrderedDict.fromkeys([1], value=3), lambda: OrderedDict.fromkeys("ab"),
        lambda: OrderedDict.fromkeys(), lambda: OrderedDict.fromkeys(value=3),
        lambda: OrderedDict.fromkeys([1], iterable=[2]), lambda: dict.fromkeys([1], value=3),
        lambda: dict.fromkeys([1], 2, 3), lambda: dict.fromkeys(3), lambda: dict.fromkeys("ab", 0),
        lambda: defaultdict.fromkeys([1], 2), lambda: dict.fromkeys(),
    )  # fmt: skip


def arguments_that_do_not_fit(x):
    numbers = [3, 1, 2]
    return x + 1, numbers, outcomes(
        lambda: {1}.union(other=[2]), lambda: set().add(1, 2),
        lambda: [1].append(), lambda: [1].pop(index=0), lambda: [1].index(value=1),
        lambda: numbers.sort(lambda v: v, reverse=True), lambda: numbers.sort(key=None, foo=1),
        lambda: deque().popleft(1), lambda: deque([1]).rotate(n=1), lambda: {}.keys(1),
        lambda: {}.keys().isdisjoint(a=1), lambda: (1,).index(), lambda: range(3).index(),
        lambda: slice(1).indices(), lambda: slice(1).indices(len=3), lambda: slice(None).foo,
    )  # fmt: skip


def getters(x):
    item, attribute = operator.itemgetter(1), operator.attrgetter("a.b", "c")
    method = operator.methodcaller("get", 1, 5)
    kinds = type(item) is operator.itemgetter, isinstance(attribute, operator.itemgetter)
    return x + 1, kinds, outcomes(
        item, attribute, method, lambda: item([1], k=1), lambda: attribute(1, 2),
        lambda: method(obj={}), lambda: item([1, 2]), lambda: method({}),
    )  # fmt: skip


SORT = operator.methodcaller("sort", reverse=True, key=abs)
FORMAT = operator.methodcaller("format", 1, a=2)


def existing_getters(x):
    numbers = [1, -3, 2]
    SORT(numbers)
    return x + 1, numbers, FORMAT("{0} {a}")


def what_is_no_iterable(x):
    """The complaint takes the place of a TypeError of ``__iter__`` and of no other error."""
    numbers, found = [1, 2, 3, 4], []
    makers = (RaisesValueError, RaisesTypeError, NoIteration, ReturnsThree, int, "ab".upper)
    for make in makers:
        found += outcomes(
            lambda: operator.setitem(numbers, slice(0, 1), make()),
            lambda: operator.setitem(numbers, slice(0, 4, 2), make()),
            lambda: ",".join(make()),
            lambda: dict([make()]),
            lambda: {}.update(["ab", make()]),
            lambda: functools.reduce(max, make()),
        )
    return x + 1, found, numbers


def pairs_of_dicts(x):
    found = []
    for wrong in ([()], [("a",)], [("a", 1, 2)], ["ab", "c"], ["abc"], [3]):
        for kind in (OrderedDict, dict):
            made = kind()
            found += outcomes(lambda: kind(wrong), lambda: made.update(wrong))
            found.append(made)
    return x + 1, found


def factories(x):
    d = defaultdict(list)
    found = [d.default_factory is list, defaultdict().default_factory, d == d, d != d]
    d["a"].append(1)
    d.default_factory = None
    found += outcomes(lambda: d["b"], lambda: setattr(d, "foo", 1), lambda: d.foo)
    d.default_factory = int
    found.append(d["c"])
    other = defaultdict(int, a=1)
    both = other | {"b": 1}
    found += [both["q"], other.copy()["z"], defaultdict().copy().default_factory, d]
    return x + 1, found


def attributes(x):
    d, o = {}, OrderedDict(a=1)
    o.foo = 2
    found = [o.foo, o.__dict__.copy(), o == o, {} == {}]
    del o.foo
    found += outcomes(
        lambda: setattr(d, "a", 1), lambda: delattr(d, "keys"), lambda: setattr(d, "keys", 1),
        lambda: d.a, lambda: o.foo, lambda: delattr(o, "foo"), lambda: delattr(o, "keys"),
    )  # fmt: skip
    return x + 1, found


def formats(x):
    found = []
    made = (deque([1]), OrderedDict(a=1), defaultdict(int), types.MappingProxyType({}), {}.keys(),
            slice(1), Plain(), [1], torch.Size([1]), iter([1]), Derived())  # fmt: skip
    for one in made:
        found += outcomes(lambda: format(one, ">30"), lambda: f"{one:3}")
        found += outcomes(lambda: one.__format__("x"))
    return x + 1, found, [1].__format__(""), slice(1).__format__("")


def sets_and_views(x):
    d = {"a": 1, "b": 2}
    changed = {1, 2}
    same = changed
    found = [
        {1, 2} > {1}, {1} > {1}, {1} > {1, 2}, frozenset([1, 2]) > {2}, {"a"} > d.keys(),
        {"a", "b", "c"} > d.keys(), {("a", 1)} <= d.items(), {"a", "c"} - d.keys() == {"c"},
        d.values() == d.values(), d.keys() == d.keys(), d.values() != d.values(),
    ]  # fmt: skip
    changed.__init__([3, 4])
    found.append(sorted(same))
    changed.__init__()
    found.append(sorted(same))
    found += outcomes(
        lambda: changed.__init__(3), lambda: changed.__init__(1, 2), lambda: {1} > [1],
        lambda: d.values() < d.values(), lambda: {1} | d.values(),
        lambda: frozenset([1]).__init__(),
    )  # fmt: skip
    return x + 1, found


def proxies(x):
    own = {"a": 1}
    shown = types.MappingProxyType(own)
    found = [bool(shown), shown.copy(), shown | {"b": 2}, shown == {"a": 1}, {**shown}]
    own["b"] = 2
    found += [list(shown.items()), bool(types.MappingProxyType({})), shown.copy() is own]
    found += outcomes(
        lambda: operator.delitem(shown, "a"), lambda: operator.setitem(shown, "a", 3),
        lambda: shown.update(a=1), lambda: shown.get(), lambda: shown["zz"], lambda: hash(shown),
    )  # fmt: skip
    return x + 1, found


class Named:
    a = 1
    b = 2


def dict_of_a_class(x):
    """A class's dict shows what has been written in its own order."""
    shown = Named.__dict__
    found = [bool(shown), list(shown)[:3]]
    Named.c = 5
    found += [list(shown)[-1], len(shown), "c" in shown]
    del Named.c
    found += [list(shown)[-1], len(shown), "c" in shown]
    Named.a = 7
    found.append(shown["a"])
    Named.a = 1
    found += outcomes(lambda: operator.delitem(shown, "a"), lambda: shown.pop("a"))
    return x + 1, found, [name for name in shown if name[0] != "_"]


SHOWN = 3


def global_names(x):
    names = globals()
    found = [bool(names), "SHOWN" in names]
    before = len(names)
    names["ADDED"] = 1
    found += ["ADDED" in list(names), list(names)[-1], len(names) - before]
    del names["ADDED"]
    found += ["ADDED" in list(names), len(names) - before, names.setdefault("SHOWN", 8)]
    return x + 1, found


class HashIsText:
    def __hash__(self):
        return "a"


class HashIsTrue:
    def __hash__(self):
        return True


class HashIsAddress:
    def __hash__(self):
        return id(self)


def hashes(x):
    made = HashIsAddress()
    found = [hash(made) == id(made), hash(made) == hash(made), 3 if id(made) else 4, not id(made)]
    true = HashIsTrue()
    found += [{true: 1}[true], hash(true)]
    found += outcomes(lambda: {HashIsText(): 1}, lambda: hash(HashIsText()), lambda: {slice(1)})
    found += outcomes(lambda: sys.intern(3), lambda: sys.intern("a" + "b"))
    return x + 1, found


def copies_for_pickling(x):
    return x + 1, (1, 2).__getnewargs__(), x.shape.__getnewargs__(), "a".__getnewargs__()


class Hint:
    def __init__(self, value):
        self.value = value

    def __length_hint__(self):
        return self.value


def hints(x):
    found = []
    for value in (3, NotImplemented, -1, "a"):
        made = Hint(value)
        found += outcomes(lambda: operator.length_hint(made), lambda: operator.length_hint(made, 7))
    return x + 1, found, operator.length_hint(Plain()), operator.length_hint(Plain(), 9)


def partials(x):
    return x + 1, outcomes(
        functools.partial, lambda: functools.partial(3), lambda: functools.partial(func=max),
        lambda: functools.partial(max, 1)(2), lambda: functools.reduce(max, [], 3),
    )  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        keywords_of_dicts, class_methods_of_dicts, arguments_that_do_not_fit, getters,
        existing_getters, what_is_no_iterable, pairs_of_dicts, factories, attributes, formats,
        sets_and_views, proxies, dict_of_a_class, global_names, hashes, copies_for_pickling, hints,
        partials,
    ],
)  # fmt: skip
def test_what_builtin_classes_refuse(function):
    check(function, torch.ones(2), graphs=1, ops=1)


class Moving(OrderedDict):
    def keys(self):
        return super().keys()

    def __setitem__(self, key, value):
        OrderedDict.__setitem__(self, key, value + 1)


class Level(enum.IntEnum):
    LOW = 1


def moved():
    made = OrderedDict(a=1, b=2)
    made.move_to_end("a")
    return made


@pytest.mark.parametrize(
    ("method", "made", "breaks"),
    [
        (lambda d: list(dict.keys(d)), moved(), True),
        (lambda d: list(dict.items(d)), moved(), True),
        (lambda d: list(dict.__iter__(d)), moved(), True),
        (lambda d: list(dict.keys.__get__(d)()), moved(), True),
        (lambda d: list(OrderedDict.keys(d)), moved(), False),
        (lambda d: (Moving(d), list(Moving(d).keys())), moved(), False),
        (lambda d: type(dict.copy(d)), defaultdict(int, a=1), True),
        (lambda d: dict.get(d, "b"), defaultdict(int, a=1), False),
        (lambda b: int.__repr__(b), True, True),
        (lambda b: int.__and__(b, b), True, True),
        (lambda b: int.__add__(b, b), True, False),
        (lambda level: int.__repr__(level), Level.LOW, True),
        (lambda level: int.__add__(level, 1), Level.LOW, False),
        (lambda error: Exception.__str__(error), KeyError("a"), True),
        (lambda error: KeyError.__str__(error), KeyError("a"), False),
    ],
)
def test_methods_of_a_base_in_c_are_not_those_of_the_class(method, made, breaks):
    check(lambda x, d: (x + 1, method(d), x + 2), torch.ones(2), made, graphs=1 + breaks, ops=2)


def test_a_dict_of_no_pairs_asks_for_keys_first():
    class Numbers(list):
        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    asked = []

    def program(x):
        asked.clear()
        try:
            dict(Numbers([3, 1]))
        except TypeError as error:
            return x + 1, str(error), list(asked)

    check(program, torch.ones(2), ops=1, graphs=1)
