"""Text, ``match``, walrus, slices and unpacking in programs."""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter
from collections.abc import Sequence

import pytest
import torch

import framejit
from checking import check, check_between

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Named:
    __match_args__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"

    def __repr__(self):
        return f"Named({self.name!r})"


class Spec:
    def __format__(self, spec):
        return f"[{spec}]"


def classify(v):
    match v:
        case None:
            return "none"
        case True | False:
            return "bool"
        case 0:
            return "zero"
        case int(n) if n > 100:
            return f"big {n}"
        case int() | float():
            return "number"
        case "a" | "b" as letter:
            return letter
        case str(s):
            return s.upper()
        case []:
            return "empty"
        case [one_]:
            return ("one", one_)
        case [first, *rest, 9]:
            return (first, rest, "nine")
        case [Point(x=0), _]:
            return "point at zero first"
        case (a, b):
            return {"a": a, "b": b}
        case {"kind": "circle", "r": r, **more}:
            return ("circle", r, more)
        case {"kind": kind}:
            return kind
        case Point(0, y):
            return ("axis", y)
        case Point(x=px, y=py) if px == py:
            return "diagonal"
        case Point():
            return "point"
        case Named("bob"):
            return "bob"
        case Named(name=n):
            return n
        case torch.Tensor():
            return "tensor"
        case _:
            return "other"


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, 500, 5, 2.5, "a", "hello", [], [1], [1, 2, 3, 9], (1, 2),
        {"kind": "circle", "r": 2, "c": 1}, {"kind": "sq"}, {"z": 1}, Point(0, 3), Point(4, 4),
        Point(1, 2), Named("bob"), Named("al"), b"bytes", [Point(0), 5], (1, 2, 3), {1}, 3j,
    ],
)  # fmt: skip
def test_match_statement(value):
    one(lambda a, v: (a + 1, classify(v)), x, value)


def test_match_values_made_inside():
    def f(a):
        return a + 1, [classify(v) for v in ([a], (3, 4), {"kind": a}, Point(0, 1), Named("q"))]

    one(f, x)


def test_match_errors():
    def f(a):
        try:
            match Point(1, 2):
                case Point(1, 2, 3):
                    pass
        except TypeError as error:
            return a + 1, str(error)

    check(f, x, graphs=1, ops=1)


def test_assignment_expressions():
    def f(a):
        if (n := len(a)) > 2:
            a = a * n
        out = [m for i in range(5) if (m := i * 2) > 3]
        while (n := n - 1) > 0:
            a = a + n
        return a, out, m, n

    one(f, x)


def test_slices_of_texts_and_lists():
    def f(a):
        items = list(range(10))
        s = slice(1, 8, 2)
        items[2:4] = "xyz"
        del items[::3]
        text = "hello"
        return (
            a[1:] + a[:-1],
            items,
            items[s],
            items[::-1],
            text[::-2],
            text[-3:],
            (1, 2, 3)[:2],
            s.stop,
            a[None, ..., 0],
        )

    one(f, x)


def test_unpacking_of_sequences():
    def f(a):
        (p, q), *r, s = (1, 2), 3, 4, 5
        (*u,) = a, a + 1
        v = [*r, *"ab", *{1: 2}]
        w = {**{"k": 1}, "z": a}
        p, q = q, p
        t = 1, *v
        return p, q, r, s, u, v, w, t

    one(f, x)


def test_chained_comparisons():
    one(
        lambda a, n: (a + 1, 1 < n < 5, 1 < n > 2 != n, n == n == 3 != None, 0 < n <= 3 in [3]),
        x,
        3,
    )


def test_del_statement():
    def f(a):
        d = {"a": 1, "b": [1, 2, 3]}
        del d["a"], d["b"][0]
        b = a
        del a
        return b + 1, d

    one(f, x)


def test_f_strings():
    def f(a):
        n, w, v = 3.14159, 8, Named("v")
        return (a + 1, f"{n:.2f}", f"{n:{w}.{2}f}|", f"{w:>{w}}", f"{w!r:<4}|", f"{v}", f"{v!r:>12}",  # noqa: E501
                f"{v!s}", f"{w=}", f"{n:+e}", f"{w:08b}", f"{Spec():abc}", f"{[v, 1]}", f"{ {'k': v} }",  # noqa: E501
                f"{'é'!a}", f"{{}}{w}", f"{1000000:,}", f"{0.5:%}", f"{None}", f"{a.shape}", f"{a.dtype}")  # fmt: skip  # noqa: E501

    one(f, x)


def test_methods_of_texts():
    def f(a):
        s = " Hello, World "
        return (a + 1, s.strip().lower().split(", "), s.replace("l", "L", 2), "-".join(["a", "b"]), s.title(),  # noqa: E501
                s.find("W"), s.count("l"), "abc".startswith(("a", "x")), "a b".partition(" "), "x".center(5, "*"),  # noqa: E501
                "a\nb".splitlines(), "7".zfill(3), "abc".encode(), "%s".__mod__(3), "ab" * 2, "b" in "abc",  # noqa: E501
                "a.b".rsplit(".", 1), "abc".translate({97: "z"}), "Ab".swapcase(), "1".isdigit(), str(3), repr("q"))  # fmt: skip  # noqa: E501

    one(f, x)


def test_percent_formatting():
    def f(a):
        v = Named("v")
        return (
            a + 1,
            "%s %r" % (v, v),
            "%d %05.2f %x" % (3, 2.5, 255),
            "%(k)s" % {"k": v},
            "%s" % v,
            "%%" % (),
            "%-5s|" % "a",
        )

    one(f, x)


def test_format_and_its_specs():
    def f(a):
        v = Named("v")
        return (
            a + 1,
            "{} {!r}".format(v, v),
            "{0} {1} {0}".format(1, 2),
            "{k:>5}".format(k=3),
            "{:{}}".format(1, 4),
            "{[0]} {.name}".format([5], v),
            format(3.5, ".1f"),
            format(Spec(), "q"),
        )

    one(f, x)


def test_join_and_str_of_objects():
    def f(a):
        vs = [Named("a"), Named("b")]
        return (
            a + 1,
            ", ".join(str(v) for v in vs),
            "".join(map(repr, vs)),
            str(vs),
            repr((vs[0],)),
            str({"k": vs[1]}),
            str(None),
        )

    one(f, x)


def test_error_of_join():
    def f(a):
        try:
            ",".join(["a", 1])
        except TypeError as error:
            return a + 1, str(error)

    one(f, x)


def test_conditional_and_boolean_expressions():
    def f(a, n):
        return a + (1 if n else 2), n and "y", n or "z", not n, n and [] or {}, (n, None)[0] is None

    one(f, x, 0)
    one(f, x, 4)


def test_else_of_loops():
    def f(a, n):
        for i in range(n):
            if i == 3:
                break
        else:
            a = a * 2
        while n > 0:
            n -= 1
            if n == 5:
                break
        else:
            a = a + 1
        return a

    one(f, x, 2)
    check_between(f, x, 7, graphs=1, ops=2)


def test_match_in_loop():
    def f(a, commands):
        for c in commands:
            match c.split():
                case ["add", n]:
                    a = a + int(n)
                case ["mul", n] if n.isdigit():
                    a = a * int(n)
                case ["neg"]:
                    a = -a
                case [other, *_]:
                    return a, other
        return a, None

    one(f, x, ["add 2", "mul 3", "neg", "stop now"])


def test_print_breaks_in_order():
    def f(a):
        print(f"{a.shape}", end=";")
        b = a + 1
        print("two", len(b), sep="|")
        return b

    check(f, x, graphs=1, ops=1)


class LoudInt(int):
    def __repr__(self):
        return f"<{int(self)}>"


class LoudText(str):
    def __str__(self):
        return "loud"

    def __repr__(self):
        return "<loud>"


class Reversing(set):
    def __iter__(self):
        return iter(["other"])


class Counting(set):
    asked = []

    def __len__(self):
        self.asked.append("len")
        return super().__len__()


@pytest.mark.parametrize("value", [LoudInt(3), LoudText("quiet")])
def test_texts_of_numbers_and_texts_with_their_own_methods(value):
    def f(a, v):
        texts = [f"{v}", format(v), "{}".format(v), f"{v!r:>6}", "%s" % v, str(v)]  # noqa: UP032, UP031
        held = [v].__repr__(), (v,).__repr__(), {1: v}.__str__(), f"{[v]}", "%s" % [[v]]  # noqa: UP031
        return a + 1, texts, held, type(v)(v).__format__("")

    one(f, x, value, ops=1)


def test_texts_of_sets_that_iterate_differently():
    def f(a, values):
        Counting.asked.clear()
        return a + 1, str(values), [values].__repr__(), len(Counting.asked)

    for made in (Reversing({1}), Counting({1})):
        check(f, x, made, graphs=1, ops=1)


class Marked(abc.ABC):
    pass


def test_classes_registered_with_abstract_ones_after_the_first_call():
    class Pair:
        def __getitem__(self, index):
            return (1, 2)[index]

        def __len__(self):
            return 2

    def f(a, v):
        match v:
            case Marked():
                return a + 1
            case [_, _]:
                return a + 2
        return a - 1 if isinstance(v, Marked) else a * 3

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    values = "text", 2.5, None, Named(1), Pair()
    for base, cls in ((Marked, str), (Marked, float), (Marked, Named), (Sequence, Pair)):
        for value in values:
            assert torch.equal(compiled(x, value), f(x, value))
        base.register(cls)
        for value in values:
            assert torch.equal(compiled(x, value), f(x, value))


class Judge(type):
    def __instancecheck__(cls, value):
        return value == 2


def test_class_patterns_ask_the_metaclass():
    class Two(metaclass=Judge):
        pass

    def f(a, v):
        match v:
            case Two():
                return a + 1
        return a - 1

    for value in (1, 2):
        one(f, x, value, ops=1)


class Asked(Counter):
    def __getitem__(self, key):
        raise ValueError(key)

    __contains__ = __getitem__


class Letters:
    first = also_first = "a"


@pytest.mark.parametrize("subject", [Asked("ab"), Asked("a"), {"a": 1, "b": 2}, {"a": 1}, {}])
def test_mapping_patterns_ask_get_alone(subject):
    def program(v):
        match subject:
            case {"a": one, "b": two}:
                return v + one + two
            case {"a": one}:
                return v + one
            case {}:
                return v * 5
        return v

    one(program, x, ops=2 if len(subject) == 2 else 1)


def test_a_key_twice_in_a_mapping_pattern():
    def program(v):
        v = v + 1
        try:
            match {"a": 1}:
                case {Letters.first: one, Letters.also_first: two}:
                    return v, one, two
        except ValueError as error:
            return v, str(error)

    one(program, x, ops=1)
