"""Members of enums and flags: texts, properties, hooks, and metaclasses of their own."""

from __future__ import annotations

import copy
import enum
import operator

import pytest
import torch

import framejit
from checking import check, check_between, said

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


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


class DescribedMember(enum.Enum):
    A = 1
    own = enum.property(operator.attrgetter("_value_"))
    long = enum.property(len)


def members_of_flags_and_properties(x):
    return (
        [one.name for one in (Parts.A | Parts.C)], DescribedMember.A.own,
        said(getattr, DescribedMember.A, "long"),
    )  # fmt: skip


def missing_members_of_enums(x):
    return Colour([5]), said(Colour, [1]), said(Colour, {})


class Doubling(enum.Enum):
    A = 1

    def __getattr__(self, name):
        return name * 2


def members_with_getattr(x):
    return Doubling.A.foo, Doubling.A.value


class Light(enum.Enum):
    RED = 1
    GREEN = 2


class Access(enum.Flag):
    R = 1
    W = 2


def operators_of_flags(x):
    f = Access.R | Access.W
    return x + f.value, Access.R in f, list(Light)


def dir_of_an_enum(x):
    return x + 1, [n for n in dir(Light) if n == "RED"]


#: (program, graphs, operations captured)
PROGRAMS = [
    (operators_of_flags, 1, 1), (dir_of_an_enum, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, x, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (members_of_flags_and_properties, 1, 2), (missing_members_of_enums, 2, 2),
    (members_with_getattr, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, x, graphs=graphs, ops=ops)


class Color(enum.Enum):
    RED = 1
    BLUE = 2
    CRIMSON = 1

    @property
    def lower(self):
        return self.name.lower()

    def scaled(self, a):
        return a * self.value


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    X = enum.auto()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Name(str, enum.Enum):
    A = "a"


def test_enum_members():
    def f(a, c):
        return (c.scaled(a), c.name, c.value, c.lower, c is Color.RED, c == Color.BLUE, Color(2) is Color.BLUE,  # noqa: E501
                Color["RED"].value, [m.name for m in Color], len(Color), c in Color, Color.CRIMSON is Color.RED,  # noqa: E501
                {Color.RED: 1}[Color.RED], isinstance(c, Color), str(c), repr(c))  # fmt: skip

    one(f, x, Color.RED)


def test_enum_wrong_value():
    def f(a):
        try:
            Color(9)
        except ValueError as error:
            return a + 1, str(error)

    one(f, x)


def test_flags_and_their_operators():
    def f(a, p):
        q = p | Perm.W
        return a + 1, q, Perm.R in q, q & Perm.X, bool(q & Perm.X), ~q, q ^ Perm.R, q.value

    one(f, x, Perm.R)


def test_int_and_str_enums():
    one(
        lambda a, n: (
            a * Level.HIGH + n,
            n < Level.HIGH,
            Level.LOW + 1,
            Name.A == "a",
            Name.A.upper(),
            [5, 6][Level.LOW],
        ),
        x,
        Level.LOW,
    )


def test_match_of_enums():
    def f(a, c):
        match c:
            case Color.RED:
                return a + 1
            case Color.BLUE:
                return a * 2

    one(f, x, Color.BLUE)


def test_members_of_enums_ask_getattr():
    class Size(enum.Enum):
        SMALL = 1

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            return len(name)

    def f(a):
        return a + Size.SMALL.abc, getattr(Size.SMALL, "d", 7), hasattr(Size.SMALL, "_e")

    check(f, x, graphs=1, ops=1, fullgraph=True)


def test_members_of_enums_keep_attributes():
    class Counter(enum.Enum):
        CALLS = 1

    def f(a):
        Counter.CALLS.hits = getattr(Counter.CALLS, "hits", 0) + 1
        return a + Counter.CALLS.hits

    compiled = framejit.compile(f, backend="eager")
    assert [(compiled(x) - x)[0].item() for _ in range(4)] == [1, 2, 3, 4]


def test_operators_of_enums_are_captured():
    settings = {"loose": False}
    asked = []

    class Color(enum.Enum):
        RED = "red"
        GREEN = "green"

        def __eq__(self, other):
            asked.append(other)
            return settings["loose"] or self is other

        def __hash__(self):
            return hash(self.value)

        def __lt__(self, other):
            return settings["loose"]

        def __bool__(self):
            return settings["loose"]

        def __call__(self, a):
            return a * 2 if settings["loose"] else a

    def f(a):
        asked.clear()
        found = Color.RED == "RED", Color.RED in {Color.RED: 1}, Color.RED in ("a", "b")
        found += Color.RED < Color.GREEN, bool(Color.RED), [m.name for m in Color if m]
        return Color.GREEN(a) + 1, found, list(asked)

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for settings["loose"] in (False, True, False):
        assert repr(compiled(x)) == repr(f(x))
    assert len(compiled.entries) == 2


def test_texts_of_enums_are_captured():
    settings = {"suffix": 1}

    class Mode(str, enum.Enum):
        MEAN = "mean"
        SUM = "sum"

        def __str__(self):
            return f"{self.value}{settings['suffix']}"

    def f(a):
        loss = torch.nn.functional.mse_loss(a, a + 2, reduction=Mode.SUM)
        return loss, str(Mode.MEAN), f"{Mode.MEAN}", Mode.MEAN + "_", {"sum": 1}[Mode.SUM]

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for settings["suffix"] in (1, 2, 3):
        assert repr(compiled(x)) == repr(f(x))


def test_copies_of_members_are_their_own_methods():
    settings = {"deep": 1}

    class Shared(enum.Enum):
        A = 1

        def __copy__(self):
            return settings["deep"]

        def __deepcopy__(self, memo):
            return -settings["deep"]

    def f(a):
        return a + 1, copy.copy(Shared.A), copy.deepcopy(Shared.A), copy.deepcopy([Shared.A])

    compiled = framejit.compile(f, backend="eager")
    for settings["deep"] in (1, 2):
        assert repr(compiled(x)) == repr(f(x))


class Sized(enum.EnumMeta):
    k = 1

    def __len__(cls):
        return Sized.k

    def __iter__(cls):
        return iter([cls.A] * Sized.k)

    def __getitem__(cls, name):
        return Sized.k if name == "k" else super().__getitem__(name)

    def __call__(cls, value):
        return Sized.k if value == "k" else super().__call__(value)

    def __contains__(cls, item):
        return Sized.k > 1

    def __bool__(cls):
        return Sized.k > 1


class Odd(enum.Enum, metaclass=Sized):
    A = 1
    B = 2


class Judge(type):
    k = True

    def __instancecheck__(cls, instance):
        return Judge.k

    def __subclasscheck__(cls, other):
        return Judge.k


class Judged(metaclass=Judge):
    pass


@pytest.mark.parametrize(
    "operation",
    [
        lambda: len(Odd), lambda: [m.name for m in Odd], lambda: (Odd["k"], Odd["B"]),
        lambda: Odd("k"), lambda: "A" in Odd, lambda: bool(Odd), lambda: [*zip(Odd, "abc")],
    ],
)  # fmt: skip
def test_metaclasses_of_enums_with_operations_of_their_own(operation):
    f = lambda a: (a + 1, operation())
    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for Sized.k in (1, 2, 3):
        assert repr(compiled(x)) == repr(f(x))


def test_metaclasses_are_asked_about_subclasses_and_not_about_own_instances():
    judged = Judged()

    def f(a):
        answers = isinstance(judged, Judged), isinstance(judged, (int, Judged))
        return a + 1, answers, issubclass(Judged, Judged), isinstance(3, Judged)

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for Judge.k in (True, False):
        assert repr(compiled(x)) == repr(f(x))


class Scale(enum.Enum):
    ONE = torch.ones(3)

    @enum.property
    def doubled(self):
        return self.value * 2


def test_properties_of_members_are_computed_in_each_call():
    def f(a):
        return a * 2, Scale.ONE.doubled

    one(f, x, ops=2)
    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    first, second = compiled(x)[1], compiled(x)[1]
    assert first is not second
    with torch.no_grad():
        Scale.ONE.value.add_(1)
    assert torch.equal(compiled(x)[1], f(x)[1])
