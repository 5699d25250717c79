"""Operations that programs seldom use: what they do, or refuse, in the middle of one graph."""

from __future__ import annotations

import abc
import enum
import functools
import inspect
import itertools
import operator
import types
import typing
from collections import deque
from typing import Any

import pytest
import torch

from checking import check


def said(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What it returns, or the exception's class and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


def check_inside(program: Any, graphs: int = 1) -> None:
    """Check a program between two operations: in one graph if nothing breaks."""

    def run(x):
        y = x + 1
        return program(x), y * 2

    check(run, torch.tensor([1.0, 2.0, 3.0]), graphs=graphs)


# -- deques and iterators --------------------------------------------------------------------------


class Two:
    def __index__(self):
        return 2


def multiplied(x):
    many, none = deque([x, 1, 2], 4), deque([x, 1])
    first = many
    many *= 2
    none *= 0
    return list(many), many is first, none


def refused(x):
    empty, full = deque(), deque([x, 2], 2)
    return (
        said(empty.pop), said(empty.popleft), said(full.insert, 0, 3), list(full),
        said(deque, [1], Two()), said(deque, [1], 2.0), deque([1, 2, 3], True),
    )  # fmt: skip


def their_own(x):
    iterators = [
        iter([1, 2]), iter("ab"), iter({1: 2}), iter({3}), reversed([1, 2]), iter(range(3)),
        zip([1], [2], strict=True), map(abs, [1]), enumerate([5]), iter(BySize()),
    ]  # fmt: skip
    return [(one.__iter__() is one, list(one)) for one in iterators]


def how_many(x):
    table, line = {1: 2, 3: 4}, deque([1, x, 3])
    out = []
    for one in (
        iter([1, 2, 3]), iter((1, 2, 3)), iter("abc"), iter(range(4)), iter(table),
        iter(table.items()), reversed([1, 2]), iter(line), reversed(line), iter(b"ab"),
    ):  # fmt: skip
        out += [one.__length_hint__(), next(one) is x, operator.length_hint(one, 9)]
        out += [len(list(one)), one.__length_hint__()]
    return out


def changed_meanwhile(x):
    table, some, items = {1: 2, 3: 4}, {1, 2}, [1, 2]
    over_table, over_set, over_list = iter(table), iter(some), iter(items)
    next(over_set)
    table[5] = 6
    some.add(3)
    items.append(3)
    return (
        over_list.__length_hint__(), said(next, over_table), said(next, over_set),
        said(next, over_set), operator.length_hint(over_list),
    )  # fmt: skip


def ended(x):
    items, some = [1, 2, 3], {1, 2}
    called, over_set = iter(items.pop, 1), iter(some)
    chained, numbers = itertools.chain.from_iterable([[1], [2]]), iter([1, 2, 3, 4, 5])
    part = itertools.islice(numbers, 1, 3)
    out = [list(called), list(over_set), list(chained), list(part)]
    items.append(7)
    some.add(9)
    return out, [next(one, "end") for one in (called, over_set, chained, part)], list(numbers)


class ByIndex:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index * 2


class BySize(ByIndex):
    def __len__(self):
        return 3


def by_index(x):
    plain, sized = iter(ByIndex()), iter(BySize())
    out = [next(plain), next(sized), plain.__length_hint__(), sized.__length_hint__()]
    return out, list(sized), sized.__length_hint__(), operator.length_hint(sized)


class Hinting:
    def __init__(self, answer):
        self.answer = answer

    def __iter__(self):
        return iter([1, 2])

    def __length_hint__(self):
        print("asked")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class HintingAfter(Hinting):
    def __len__(self):
        raise TypeError("no length")


class NeverHinting(Hinting):
    def __len__(self):
        raise KeyError("no length")


def hinted(x):
    answers = [TypeError("a"), ValueError("b"), 5, -1, "a", NotImplemented, True]
    return [
        said(function, cls(answer)) for function in (list, operator.length_hint)
        for cls in (Hinting, HintingAfter, NeverHinting) for answer in answers
    ]  # fmt: skip


def hinted_otherwise(x):
    return (
        said(operator.length_hint, Hinting(TypeError("t")), 4), said(operator.length_hint, 3, 7),
        said(operator.length_hint, 3, "7"), said(operator.length_hint, [1], "7"),
        said(operator.length_hint, 3, True), operator.length_hint(zip([1], strict=True), 9),
    )  # fmt: skip


# -- generators and functions ----------------------------------------------------------------------


def raises_at_close():
    try:
        yield 1
    except GeneratorExit:
        raise ValueError("other")


def returns_at_close():
    try:
        yield 1
    except GeneratorExit:
        return


def closed(x):
    raising, returning = raises_at_close(), returns_at_close()
    out = [raising.__iter__() is raising, next(raising), next(returning)]
    try:
        raising.close()
    except ValueError as error:
        out += [error.args, type(error.__context__)]
    return out, returning.close(), next(raising, "end"), next(returning, "end"), raising.close()


def cells(x):
    def inner():
        return x

    cell = inner.__closure__[0]
    return cell.__class__, said(getattr, cell, "other"), cell.cell_contents


def without_attributes(x):
    def inner():
        return x

    inner.a = 1
    del inner.a
    return said(delattr, inner, "a"), said(delattr, said, "zz")


class Plain:
    def m(self):
        return 1

    def n(self):
        return 2


def compared_methods(x):
    plain, items = Plain(), [1]
    return (
        said(operator.lt, plain.m, plain.n), plain.m == plain.m, plain.m == plain.n, plain.m != 1,
        said(operator.lt, items.append, items.pop), items.append == items.append,
        items.append == [1].append, items.append != items.pop, items.append == 3,
    )  # fmt: skip


def made_methods(x):
    make = types.MethodType
    return (
        said(make, 1), said(make), said(make, len, None), said(make, 3, 4), said(make, 3, None),
        said(make, len, 1, 2), said(make, len, instance=1), make(lambda one: one, 4)(),
        make(len, [1])(),
    )  # fmt: skip


class Callable:
    def __call__(self, a, b=2):
        pass


def asked_about(x):
    return str(inspect.signature(Callable())), torch.cond(True, torch.sin, torch.cos, (x,))


class Raising:
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
        said(getattr, Raising(), "value", 1), said(hasattr, Raising(), "value"),
        said(getattr, Raising(), "missing", 1), hasattr(Raising(), "missing"),
        said(vars, RaisingNamespace()), said(vars, 3),
    )  # fmt: skip


# -- classes ---------------------------------------------------------------------------------------


class Own:
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


class OwnInit:
    def __init__(self, *args):
        super().__init__()


class Passing:
    def __init__(self, *args):
        super().__init__(*args)


class PassingNew:
    def __new__(cls, *args):
        return object.__new__(cls, *args)


class Both:
    def __new__(cls, *args):
        return object.__new__(cls)

    def __init__(self, *args):
        object.__init__(self, *args)


def arguments_of_object(x):
    out = []
    for cls in (Plain, Own, OwnInit, Passing, PassingNew, Both, object):
        for args in ((), (1,), (1, 2)):
            for call in (
                lambda cls=cls, args=args: type(object.__new__(cls, *args)).__name__,
                lambda cls=cls, args=args: type(cls(*args)).__name__,
                lambda cls=cls, args=args: object.__init__(object.__new__(cls), *args),
            ):
                out.append(said(call))
    return out, said(lambda: Plain(a=1)), said(lambda: object.__new__(Own, a=1))


class InitIsClass:
    __init__ = Plain


class InitIsPartial:
    __init__ = functools.partial(len, [1, 2])


class InitIsProperty:
    @property
    def __init__(self):
        return lambda *args: args or None


def returned_by_init(x):
    return (
        said(InitIsClass), said(InitIsPartial), type(InitIsProperty()).__name__,
        said(InitIsProperty, 1), type(Plain.__new__).__name__, Plain.__class__,
    )  # fmt: skip


class Meta(type):
    def __setattr__(cls, name, value):
        print("set", name)
        super().__setattr__(name, value + 1)

    def __delattr__(cls, name):
        print("del", name)
        super().__delattr__(name)

    def __iter__(cls):
        return iter([1, 2, 3])


class OfMeta(metaclass=Meta):
    pass


def written_classes(x):
    OfMeta.b = 3
    out = [OfMeta.b]
    OfMeta.b = 8
    out.append(OfMeta.b)
    del OfMeta.b
    type.__setattr__(OfMeta, "q", 4)
    out.append(OfMeta.q)
    type.__delattr__(OfMeta, "q")
    return out, hasattr(OfMeta, "b"), said(delattr, OfMeta, "zz"), hasattr(OfMeta, "q")


def searched_classes(x):
    return 2 in OfMeta, 7 in OfMeta, list(OfMeta)


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value):
        print("missing")
        return cls.RED if value == [5] else None


class Parts(enum.Flag):
    A = 1
    B = 2
    C = 4


class Described(enum.Enum):
    A = 1
    own = enum.property(operator.attrgetter("_value_"))
    long = enum.property(len)


def members(x):
    return (
        [one.name for one in (Parts.A | Parts.C)], Described.A.own,
        said(getattr, Described.A, "long"),
    )  # fmt: skip


def missing_members(x):
    return Colour([5]), said(Colour, [1]), said(Colour, {})


# -- questions about classes -----------------------------------------------------------------------


class Hooked(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return "m" in other.__dict__ or NotImplemented


class OwnParameter(torch.nn.Parameter):
    pass


@typing.runtime_checkable
class HasMethod(typing.Protocol):
    def m(self): ...


@typing.runtime_checkable
class HasNumber(typing.Protocol):
    a: int


class Implementing(HasMethod):
    pass


class Numbered(HasNumber):
    pass


class Number:
    def __init__(self):
        self.a = 1
        self.m = None


class Typed(typing.TypedDict):
    a: int


PARAMETER = torch.nn.Parameter(torch.ones(3))
OWN_PARAMETER = OwnParameter(torch.ones(3))


def hooked(x):
    return isinstance(Plain(), Hooked), issubclass(int, Hooked), issubclass(Plain, (int, Hooked))


def parameters(x):
    return (
        isinstance(PARAMETER, torch.nn.Parameter), isinstance(OWN_PARAMETER, OwnParameter),
        isinstance(OWN_PARAMETER, torch.nn.Parameter), isinstance(PARAMETER, OwnParameter),
        isinstance(x, OwnParameter), isinstance(3, OwnParameter),
        isinstance(x, torch.FloatTensor), isinstance(x, torch.LongTensor),
        isinstance(x.long(), torch.LongTensor), issubclass(int, torch.FloatTensor),
    )  # fmt: skip


def protocols(x):
    return (
        isinstance(Plain(), HasMethod), isinstance(Number(), HasMethod),
        isinstance(Number(), HasNumber), isinstance(Plain(), HasNumber),
        isinstance(Implementing(), HasMethod), isinstance(Plain(), Implementing),
        isinstance(Number(), Numbered), isinstance(Number(), (int, Numbered)),
        isinstance(3, Implementing), isinstance(Implementing(), Implementing),
    )  # fmt: skip


def typed_dicts(x):
    return (
        said(isinstance, {}, Typed),
        said(isinstance, {"a": 1}, Typed),
        said(isinstance, 3, Typed),
    )


# -- exceptions ------------------------------------------------------------------------------------


def stored(x):
    error, text, made = OSError(1, "a"), UnicodeDecodeError("utf8", b"a", 0, 1, "r"), ImportError()
    out = [
        said(setattr, error, "characters_written", "q"), said(setattr, text, "start", "q"),
        said(setattr, text, "start", 1 << 70),
    ]  # fmt: skip
    error.errno, text.reason, made.name = "x", "z", [1]
    out += [said(getattr, error, "characters_written"), said(setattr, error, "__cause__", 3)]
    return out, error.errno, str(text), text.start, made.name


def stored_in_an_existing_one(x):
    error = RuntimeError(0)
    print(end="")
    error.args, error.__cause__, error.__suppress_context__ = (1, 2), ValueError(3), False
    out = [said(setattr, error, "__cause__", 3), said(setattr, error, "args", 3)]
    error.args = [4]
    return out, error.args, repr(error.__cause__)


def stored_tensor(x):
    return said(setattr, BlockingIOError(1, "b"), "characters_written", x)


@pytest.mark.parametrize("program", [
    arguments_of_object, multiplied, their_own, changed_meanwhile, ended, by_index,
    closed, cells, without_attributes, made_methods,
    asked_about, raised_by_attributes, returned_by_init, members,
    parameters, searched_classes,
    typed_dicts,
], ids=lambda program: program.__name__)  # fmt: skip
def test_in_one_graph(program):
    check_inside(program)


@pytest.mark.parametrize("program", [
    compared_methods, hinted, hinted_otherwise, how_many, protocols, refused,
    written_classes, missing_members, hooked, stored, stored_tensor, stored_in_an_existing_one,
], ids=lambda program: program.__name__)  # fmt: skip
def test_around_a_break(program):
    check_inside(program, graphs=2)


def test_an_existing_error_names_the_attribute():
    def run(x, error):
        class Missing:
            def __getattr__(self, name):
                raise error

        out, one = [x + 1], Missing()
        for name in ("first", "second"):
            try:
                getattr(one, name)
            except AttributeError as caught:
                out += [caught is error, caught.name, caught.obj is one]
        return out

    check(run, torch.ones(3), AttributeError("mine"), graphs=1)
