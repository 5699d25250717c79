"""Operations on classes, objects and namespaces that programs seldom use, or that CPython refuses:
what they do in the middle of other operations, which stay in graphs."""

from __future__ import annotations

import collections
import copy
import enum
import functools
import inspect
import io
import itertools
import operator
import types
import typing
from collections import deque
from typing import Any

import pytest
import torch

import framejit
from checking import check


def said(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What it returns, or the exception's class and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


# -- classes ---------------------------------------------------------------------------------------


class Plain:
    a = 3


class Derived(Plain):
    def assign(self):
        super().a = 3

    def made(self):
        return said(super, 3, self), said(getattr, super(), "other"), said(super, Plain, 3)


def questions_of_type(x):
    return (
        said(type.__subclasscheck__, int, bool), said(int.__subclasscheck__, 3),
        int.__instancecheck__(3), said(type.__subclasscheck__, Plain, int | None),
    )  # fmt: skip


def supers(x):
    one = Derived()
    return said(one.assign), one.made()


def new_of_super(x):
    make = super(Derived, Derived).__new__
    return type(make), make.__class__, type(make(Derived)), said(make), said(make, 3)


def news_of_values(x):
    return (
        said(lambda: list.__new__(Plain)), said(lambda: object.__new__(dict)),
        said(lambda: object.__new__(3)), said(lambda: object.__new__()),
        said(lambda: object.__new__([x])),
    )  # fmt: skip


@framejit.compile(backend="eager")
def compiled(a, b=2):
    return a * b


def compiled_functions(x):
    return (
        compiled.__call__(x), compiled.__wrapped__(x), compiled.__name__, compiled.__defaults__,
        compiled.__get__(x)(), said(lambda: compiled + 1),
        said(lambda: compiled[0]), said(len, compiled),
    )  # fmt: skip


class Point:
    __match_args__ = ("a", "missing", "raising")
    a = 1

    @property
    def raising(self):
        raise KeyError("raising")


def matched(x):
    out = []
    match Point():
        case Point(1, 2):
            out.append(1)
        case Point(missing=3):
            out.append(2)
        case Point(1):
            out.append(3)
    try:
        match Point():
            case Point(raising=3):
                out.append(4)
    except KeyError as error:
        out.append(str(error))
    return out


def match_refused(x):
    out = []
    for value in (Point(), Plain()):
        try:
            match value:
                case Point(1, 2, 3, 4):
                    out.append(5)
                case Plain(1):
                    out.append(6)
        except TypeError as error:
            out.append(str(error))
    return out


def match_of_no_class(x):
    try:
        match Plain():
            case x.shape():
                return 1
    except TypeError as error:
        return str(error)


def methods_of_object(x):
    return (
        object.__getattribute__([1], "__class__"), said(object.__getattribute__, [1], "other"),
        object.__getattribute__("a", "upper")(), said(object.__setattr__, 3, "a", 4),
        said(object.__delattr__, [1], "a"), said(object.__setattr__, Plain, "a", 4),
        said(object.__getattribute__, Plain, "a"),
    )  # fmt: skip


def subclasses_told(x):
    return (
        said(object.__init_subclass__, a=3), said(Plain.__init_subclass__, a=3),
        Plain.__init_subclass__(), Plain.__subclasshook__(int),
    )  # fmt: skip


class FoundByLength:
    __getattribute__ = len

    def __len__(self):
        return 3


class Setting:
    def __set__(self, obj, value):
        pass


class Deleting:
    def __delete__(self, obj):
        print("deleted")


class Described:
    __slots__ = ("__dict__", "slot")
    setting, deleting = Setting(), Deleting()

    @property
    def read(self):
        return 1


def deleted(x):
    one = Described()
    names = ("setting", "deleting", "slot", "read", "__class__", "other", "__doc__")
    return [said(delattr, one, name) for name in names]


class NextRaises:
    def __iter__(self):
        return self

    def __next__(self):
        raise KeyError("next")


def next_refused(x):
    return (
        said(lambda: FoundByLength().other), said(next, NextRaises()), said(next, Plain()),
        said(lambda: [1 for _ in NextRaises()]), said(list, zip(NextRaises())),
    )  # fmt: skip


class OwnProperty(property):
    def extra(self):
        return 3


def own_properties(x):
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


def falling_back(x):
    return Falling().read, FallingTable(read=5).read


# -- class statements ------------------------------------------------------------------------------


def descriptors_in_the_body(x):
    class Made:
        def get(self):
            return 1

        one, empty = property(get), property()
        alone, bound = staticmethod(get), classmethod(get)
        called = alone(3)
        parts = one.fget is get, one.fset, one.fdel, empty.fget, alone.__func__ is get
        wrapped = alone.__wrapped__ is get, bound.__wrapped__ is get
        refused = said(bound, 3), said(one), said(property, 1, 2, 3, 4, 5), said(staticmethod)
        texts = one.__doc__, alone.__name__, said(getattr, one, "other")

    return Made.called, Made.parts, Made.wrapped, Made.refused, Made.texts, Made().one


def names_in_the_body(x):
    v = 3

    class Made:
        if x.dim() == 1:
            v = 4
        w = v
        try:
            del missing
        except NameError as error:
            text = str(error)

    def inner():
        class Inner:
            z = v

        return Inner.z

    return Made.w, Made.text, inner()


def super_in_the_body(x):
    class Made:
        def method(self):
            return super().__repr__

        text = said(method, 3)

    return Made.text


class MetaA(type):
    pass


class MetaB(type):
    pass


class WithA(metaclass=MetaA):
    pass


class WithB(metaclass=MetaB):
    pass


def bases_refused(x):
    out = []
    try:

        class Mixed(typing.NamedTuple, Plain):
            a: int
    except TypeError as error:
        out.append(str(error))
    try:

        class OfLength(Plain, metaclass=len):
            pass
    except TypeError as error:
        out.append(str(error))
    try:

        class Both(WithA, WithB):
            pass
    except TypeError as error:
        out.append(str(error))

    class One(Plain, WithA):
        pass

    return out, type(One).__name__


def computed_slots(x):
    names = ["a", "b"]

    class Made:
        __slots__ = names

    one = Made()
    one.a = 1
    return one.a, said(getattr, one, "other")


def classes_of_parts(x):
    return (
        said(type, "A", (), {}, 3), said(type, "A"), type("B", (Plain,), {"z": 1}).z,
        said(type, "C", (), [("a", 1)]), said(type),
    )  # fmt: skip


def names_that_are_numbers(x):
    return vars(type("C", (), {1: 2}))[1]


# -- namespaces, modules, enums --------------------------------------------------------------------


def written_namespaces(x):
    Plain.b = 4
    del Plain.a
    names, shown = list(Plain.__dict__), Plain.__dict__
    out = "a" in names, "b" in names, shown.get("b"), shown.get("a")
    Plain.a = 3
    del Plain.b
    return out, "b" in list(Plain.__dict__)


SHOWN = Plain.__dict__


def namespaces_by_two_ways(x):
    out = [SHOWN.get("a"), Plain.__dict__["a"], "other" in SHOWN]
    Plain.a = 5
    out += [SHOWN["a"], vars(Plain)["a"]]
    Plain.a = 3
    return out


def keys_of_globals(x):
    return 3 in globals(), globals().get(3), "Plain" in globals(), len(globals()) > 3


STREAM = type("Stream", (io.StringIO,), {})()


def attributes_of_c_objects(x):
    STREAM.a = 1
    out = STREAM.a
    del STREAM.a
    return out, said(delattr, STREAM, "a"), hasattr(STREAM, "a")


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


def modules(x):
    out = [MODULE.read, MODULE.method(), MODULE.lazy, said(getattr, MODULE, "other")]
    return out, hasattr(torch.ops, "other"), said(getattr, torch, "other")


class Doubling(enum.Enum):
    A = 1

    def __getattr__(self, name):
        return name * 2


def members(x):
    return Doubling.A.foo, Doubling.A.value


# -- functions and generators ----------------------------------------------------------------------


def methods_of_functions(x):
    def f(a=1):
        return a

    f.__defaults__ = (4,)
    out = f()
    del f.__defaults__
    return out, f.__defaults__, f.__get__(3)(), f.__get__(None, int) is f, said(f.__get__)


def thrown(x):
    def numbers():
        try:
            yield 1
        except ValueError:
            yield 2

    one, other = numbers(), numbers()
    return (
        said(one.throw, ValueError("x")), next(one, "end"), next(other),
        other.throw(ValueError("q")), next(other, "end"), said(other.throw, ValueError("r")),
    )  # fmt: skip


def thrown_into_an_inner_one(x):
    def inner():
        try:
            yield 1
        except ValueError:
            return 5

    def outer():
        yield (yield from inner())
        yield from [1, 2, 3]

    one = outer()
    return next(one), one.throw(ValueError("q")), next(one), said(one.send, 5)


def many_keywords(first, *rest, k=1, **named):
    yield first
    yield sorted(named.items()), rest, k


def generators_over_a_break(x):
    one, other = many_keywords(1, 2, k=3, z=4), many_keywords(5, y=1)
    print(end="")
    return list(one), list(other)


def filled_and_emptied():
    value = 1

    def read():
        return value

    def delete():
        nonlocal value
        del value

    return read, delete


class ByIndex:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index


class BySize(ByIndex):
    def __len__(self):
        return 3


def iterators_over_a_break(x):
    started, ended, back = iter(ByIndex()), iter(ByIndex()), reversed(BySize())
    ended_back, part = reversed(BySize()), itertools.islice([1, 2, 3], 1)
    next(started), list(ended), next(back), list(ended_back), list(part)
    many = itertools.repeat(3, 2)
    print(end="")
    return [list(one) for one in (started, ended, back, ended_back, part, many)]


# -- the standard library --------------------------------------------------------------------------


class Keyed:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return key * 2


class KeysRaise:
    @property
    def keys(self):
        raise KeyError("keys")


def merged(x):
    return {**Keyed(), "c": 1}, said(lambda: {**KeysRaise()}), said(lambda: {**3}), dict(Keyed())


def slices_compared(x):
    one = slice(1, 2)
    return slice(1, 2) < slice(1, 3), one == slice(1, 2), one != 3, said(operator.lt, one, 3)


def removed(x):
    line = deque([1, x])
    return said(line.remove, [1]), said(line.remove, 7), len(line)


def reduced(x):
    return (
        said(functools.reduce), said(functools.reduce, max), said(functools.reduce, max, [1], 2, 3),
        said(operator.methodcaller), functools.reduce(max, [1, 2], 5), said("".join),
        said(",".join, ["a"], 1),
    )  # fmt: skip


@functools.singledispatch
def dispatched(a):
    return "any"


@dispatched.register(int)
def _of_int(a):
    return "int"


def dispatched_on_new_classes(x):
    class Local:
        pass

    return dispatched(3), dispatched("a"), dispatched(Local())


Pair = collections.namedtuple("Pair", "a b")


def copied(x):
    one, other = Pair([1], 2), Pair(1, 2)
    deep = copy.deepcopy(one)
    return deep, deep.a is one.a, copy.deepcopy(other) is other, type(deep).__name__


class Partial:
    __call__ = functools.partial(lambda a, b: 3, 1)


def signatures(x):
    return str(inspect.signature(Partial())), said(inspect.signature, Plain, follow_wrapped=True)


class Copied:
    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __copy__(self):
        return Copied()


def teed(x):
    one, other = itertools.tee(Copied(), 2)
    return next(one), next(other), said(isinstance, [1], list[int])


@functools.lru_cache
def cached(a):
    return a * 2


cached.mark = 1


def marks_of_caches(x):
    cached.mark = 5
    out = cached.mark
    cached.mark = 1
    made = functools.lru_cache(lambda a: a + 1)
    made.mark = 3
    return out, said(getattr, cached, "other"), made(1), made.mark, said(lambda: made.other)


PART = functools.partial(dict, a=1)


def attributes_of_partials(x):
    new = functools.partial(len)
    return said(setattr, new, "func", max), said(setattr, PART, "args", ()), PART()


class Word(str):
    pass


class Row(tuple):
    pass


def operators_of_subclasses(x):
    return (
        () + Row([1]), type(() + Row([1])).__name__, said(operator.mul, "a", Word("b")),
        said(operator.add, b"a", Word("a")), said(divmod, [1], 2), said(divmod, "a", x.dim()),
    )  # fmt: skip


def keys_that_come_and_go(x):
    class Key:
        def __hash__(self):
            return 3

        def __eq__(self, other):
            return self is other

    table, key = {}, Key()
    for turn in range(70):
        table[key] = turn
        del table[key]
    return table


PROGRAMS: list[tuple[Any, int]] = [
    (questions_of_type, 2),
    (supers, 2),
    (new_of_super, 1),
    (news_of_values, 2),
    (compiled_functions, 2),
    (matched, 1),
    (match_refused, 2),
    (match_of_no_class, 2),
    (methods_of_object, 2),
    (subclasses_told, 1),
    (deleted, 2),
    (next_refused, 2),
    (own_properties, 2),
    (falling_back, 1),
    (descriptors_in_the_body, 2),
    (names_in_the_body, 1),
    (super_in_the_body, 1),
    (bases_refused, 2),
    (computed_slots, 1),
    (classes_of_parts, 2),
    (names_that_are_numbers, 2),
    (written_namespaces, 1),
    (namespaces_by_two_ways, 1),
    (keys_of_globals, 2),
    (attributes_of_c_objects, 1),
    (modules, 2),
    (members, 1),
    (methods_of_functions, 2),
    (thrown, 1),
    (thrown_into_an_inner_one, 2),
    (generators_over_a_break, 2),
    (iterators_over_a_break, 2),
    (merged, 1),
    (slices_compared, 1),
    (removed, 2),
    (reduced, 2),
    (dispatched_on_new_classes, 2),
    (copied, 2),
    (signatures, 2),
    (teed, 2),
    (marks_of_caches, 1),
    (attributes_of_partials, 2),
    (operators_of_subclasses, 2),
    (keys_that_come_and_go, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "graphs"), PROGRAMS, ids=[program.__name__ for program, _ in PROGRAMS]
)
def test_between_two_operations(program, graphs):
    def run(x):
        y = x + 1
        return program(x), y * 2

    check(run, torch.tensor([1.0, 2.0, 3.0]), graphs=graphs)


def test_cells_are_emptied():
    def make():
        read, delete = filled_and_emptied()
        return lambda x: (delete(), said(read), said(delete), x + 1)

    check(make(), torch.ones(3), make=make, graphs=1, ops=1)
