"""Builtin functions in programs: eager and compiled agree."""

from __future__ import annotations

import collections.abc
import enum
import functools
import itertools
import math
import numbers
import operator

import pytest
import torch

import framejit
from checking import CountingBackend, check


class Color(enum.Enum):
    RED = 1
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Base:
    label = "base"

    def __init__(self, value):
        self.value = value

    @property
    def double(self):
        return self.value * 2

    def __len__(self):
        return 7


class Derived(Base):
    def __bool__(self):
        return False

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return name[4:]
        raise AttributeError(f"no {name}")


class Meta(type):
    def __instancecheck__(cls, instance):
        return getattr(instance, "is_special", False)


class Special(metaclass=Meta):
    pass


class Thing:
    is_special = True


class Item:
    def __init__(self, rank):
        self.rank = rank

    def __lt__(self, other):
        return self.rank < other.rank


class Two:
    def __index__(self):
        return 2

    def __int__(self):
        return 22

    def __float__(self):
        return 2.5

    def __abs__(self):
        return "abs"

    def __round__(self, n=None):
        return ("round", n)


def isinstance_of_many_classes(x):
    return (
        isinstance(x, torch.Tensor), isinstance(x, torch.nn.Parameter), isinstance(1, int),
        isinstance(True, int), isinstance("a", (int, str)),
        isinstance([], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping), isinstance(1.0, numbers.Number),
        isinstance(None, type(None)), isinstance(1, int | None), isinstance(x, (list, (tuple,))),
        isinstance(Derived(1), Base), issubclass(Derived, Base), issubclass(bool, (str, int)),
        isinstance(len, collections.abc.Callable), isinstance(Color.RED, Color),
    )  # fmt: skip


def instancecheck_of_a_metaclass(x):
    return isinstance(Thing(), Special), isinstance(3, Special), x


def getattr_and_setattr(x):
    d = Derived(3)
    setattr(d, "extra", x)
    out = [getattr(d, "value"), getattr(d, "double"), getattr(d, "dyn_abc"), getattr(d, "zz", 0)]
    out += [hasattr(d, "extra"), hasattr(d, "nothing"), hasattr(x, "shape"), hasattr(x, "zzz")]
    delattr(d, "extra")
    out += [hasattr(d, "extra"), d.label, type(d).label]
    try:
        d.missing
    except AttributeError as error:
        out.append(str(error))
    return out


def texts_of_attribute_errors(x):
    out = []
    for action in (
        lambda: Base(1).nope,
        lambda: (1).nope,
        lambda: [].nope,
        lambda: Base.nope,
        lambda: getattr(Base(1), "double_", None),
    ):
        try:
            out.append(action())
        except AttributeError as error:
            out.append(str(error))
    return x, out


def questions_of_type(x):
    return type(x) is torch.Tensor, type(1), type([]), type(Base(1)) is Base, type(None), type(int)


def len_and_bool_of_objects(x):
    return len(x), len("abc"), len(Base(1)), bool(Base(1)), bool(Derived(1)), not [], bool({1: 2})


def arithmetic_of_numbers(x):
    return (
        abs(-3), round(2.567, 2), round(2.5), divmod(7, 2), pow(2, 5), pow(2, 5, 3), int("12"),
        int(3.9), float("1.5"), float(2), complex(1, 2), bool("x"), hex(255), bin(5), oct(8),
        int("ff", 16), round(-0.5), sum([1, 2.5]), min(3, 1), max([1, 5, 2]), min("b", "a"), x,
    )  # fmt: skip


def arithmetic_with_tensors(x):
    return abs(x - 2), sum([x, x]), pow(x, 2), max(1, 2) * x, sum([x], x)


def methods_of_text(x):
    return (
        str(5), repr("a"), str([1, "b"]), f"{3.14159:.2f}", format(255, "x"), ord("a"), chr(98),
        str(x.dtype), str(Color.RED), repr(Level.LOW), f"{x.shape}", str(None), ascii("é"),
        str({"a": (1,)}), f"{Base.__name__!r:>8}", "a" "b".upper(), str((1,)), x,
    )  # fmt: skip


def conversions_of_values(x):
    return (
        list("abc"), tuple([1, 2]), dict(a=1), set([1]), frozenset([2]), list(range(3)),
        list({"a": 1}), tuple({"a": 1}.items()), dict([(1, 2)]), list(x.shape), tuple(x.size()),
    )  # fmt: skip


def min_and_max_by_keys(x):
    words = ["bb", "a", "ccc"]
    return min(words, key=len), max(words, key=lambda w: -len(w)), max([], default="none"), x


def errors_of_builtin_functions(x):
    out = []
    for action in (
        lambda: len(5),
        lambda: int("x"),
        lambda: float("x"),
        lambda: max([]),
        lambda: sum(["a"]),
        lambda: [1] + 1,
        lambda: 1 + "a",
        lambda: "a" + 1,
        lambda: next(5),
        lambda: iter(5),
        lambda: range(1.5),
        lambda: chr(-1),
        lambda: math.sqrt(-1),
        lambda: 1 / 0,
        lambda: {}["a"],
        lambda: (1).real.nope,
        lambda: isinstance(1, 1),
        lambda: len(),
        lambda: [].append(),
        lambda: int.nope,
        lambda: sorted([1, "a"]),
        lambda: Color("green"),
        lambda: (lambda: None)()(),
        lambda: -"a",
        lambda: [] < {},
    ):
        try:
            out.append(action())
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return x, out


def any_and_all(x):
    calls = []

    def probe(v):
        calls.append(v)
        return v > 1

    return any(probe(v) for v in [1, 2, 3]), all(probe(v) for v in [2, 1, 0]), calls, x


def callable_of_values(x):
    return callable(len), callable(5), callable(Base), callable(Base(1)), callable(lambda: 0), x


def functions_of_operator(x):
    pair = operator.itemgetter(0, 2)([x, 1, 2])
    attr = operator.attrgetter("shape")(x)
    low = operator.methodcaller("upper")("abc")
    return (
        pair, attr, low, operator.add(x, 1), operator.getitem([1, 2], 1), operator.neg(x),
        operator.eq(1, 1), operator.contains([1], 1), operator.not_([]), operator.is_(None, None),
        operator.iadd([1], [2]), operator.matmul(x, x.T), operator.index(3), operator.truth("a"),
    )  # fmt: skip


def functions_of_math(x):
    return (
        math.sqrt(4), math.ceil(1.2), math.floor(-1.2), math.pi, math.prod([2, 3]), math.gcd(4, 6),
        math.isinf(math.inf), math.log2(8), math.prod(x.shape), x * math.exp(0), math.fsum([1, 2]),
    )  # fmt: skip


def partial_made_inside(x):
    add = functools.partial(torch.add, x, alpha=2)
    power = functools.partial(pow, 2)
    nested = functools.partial(add, other=x)
    return add(x), power(5), nested(), add.args[0].shape, add.keywords, nested.func is torch.add


def partial_as_an_argument(x, f):
    return f(x), f.args, f.keywords


def enums_and_their_members(x):
    return (
        Color.RED, Color("blue"), Color["RED"], Color.RED.value, Color.BLUE.name, Level.HIGH > 1,
        Level.LOW + 1, [c for c in Color], len(Color), Color.RED is Color.RED,
        {Color.RED: 1}[Color.RED],
        Color.RED == 1, Level(2), isinstance(Level.LOW, int), x * Level.HIGH,
    )  # fmt: skip


def vars_and_dict_of_objects(x):
    b = Base(1)
    b.other = x
    return vars(b)["value"], list(b.__dict__), "other" in vars(b), b.__dict__.get("no", 5)


def slices_of_lists(x):
    s = slice(0, 1)
    return (
        x[s],
        x[:, s],
        [1, 2, 3][slice(None, None, 2)],
        s.start,
        s.stop,
        s.indices(5),
        s == slice(0, 1),
    )


def hashes_of_values(x):
    return hash(5), hash((1, 2.5)), x


def chained_comparison_of_values(x):
    return 1 < 2 < 3, 1 < 3 < 2, "a" <= "b", (1, 2) != [1, 2], 1 == 1.0, None is None, x


def calls_with_stars(x):
    def f(a, b=2, *args, c=3, **kwargs):
        return a, b, args, c, kwargs

    return f(1), f(1, 2, 3, 4), f(a=1, c=x), f(*[1, 2], **{"c": 3, "z": 4})


def defaults_of_lambdas(x):
    fs = [lambda y, i=i: y + i for i in range(3)]
    return [f(x) for f in fs]


def print_of_values(x):
    print("shape", tuple(x.shape))
    return x + 1


def break_at_item(x):
    n = int(x.sum())
    return x * n, float(x[0, 0]), bool(x.sum() > 1)


def breaks_at_id_and_hash(x):
    o = object()
    return id(o) == id(o), hash(o) == hash(o), x + 1


def dir_and_globals(x):
    return "Color" in globals(), "x" in locals(), "append" in dir([]), x + 1


def sorted_objects(x):
    items = [Item(r) for r in (3, 1, 2)]
    return [i.rank for i in sorted(items)], [i.rank for i in sorted(items, reverse=True)], x


def objects_as_indices(x):
    t = Two()
    return [1, 2, 3][t], int(t), float(t), list(range(t)), [0] * t, abs(t), round(t), round(t, 1), x


def lru_cache_of_a_local_function(x):
    @functools.lru_cache
    def square(n):
        return n * n

    return square(3), square(3), x


#: (program, operations, more arguments)
CASES = [
    (isinstance_of_many_classes, 0), (instancecheck_of_a_metaclass, 0), (getattr_and_setattr, 0),
    (texts_of_attribute_errors, 0), (questions_of_type, 0), (len_and_bool_of_objects, 0),
    (arithmetic_of_numbers, 0), (arithmetic_with_tensors, 7), (methods_of_text, 0),
    (conversions_of_values, 0), (min_and_max_by_keys, 0), (errors_of_builtin_functions, 0),
    (any_and_all, 0), (callable_of_values, 0), (functions_of_operator, 4), (functions_of_math, 1),
    (partial_made_inside, 2),
    (partial_as_an_argument, 1, functools.partial(torch.add, alpha=3, other=2)),
    (enums_and_their_members, 1), (vars_and_dict_of_objects, 0), (slices_of_lists, 2),
    (hashes_of_values, 0), (chained_comparison_of_values, 0), (calls_with_stars, 0),
    (defaults_of_lambdas, 3), (sorted_objects, 0), (objects_as_indices, 0),
]  # fmt: skip
#: (program, graphs, operations)
BREAKS = [
    (print_of_values, 1, 1), (break_at_item, 3, 5), (breaks_at_id_and_hash, 1, 1),
    (dir_and_globals, 1, 1), (lru_cache_of_a_local_function, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_program(case) -> None:
    function, ops, *args = case
    x = torch.arange(6.0).reshape(2, 3)
    check(function, x, *args, graphs=int(ops > 0), ops=ops, fullgraph=True)
    assert not framejit.counters["skipped"]


@pytest.mark.parametrize("function, graphs, ops", BREAKS, ids=[row[0].__name__ for row in BREAKS])
def test_program_with_breaks(function, graphs, ops) -> None:
    # Addresses and numbers read from tensors are new each time: one call is enough.
    check(function, torch.arange(6.0).reshape(2, 3), calls=1, graphs=graphs, ops=ops)


REFUSED_CALLS = [
    lambda x: functools.partial(x[1:], 1), lambda x: functools.partial([1]),
    lambda x: operator.itruediv("a", "b"), lambda x: operator.iadd("a", 2),
    lambda x: math.log(collections.deque([1])), lambda x: math.sqrt([1]),
    lambda x: operator.attrgetter("a", 5), lambda x: operator.methodcaller([1]),
]  # fmt: skip
UNBOUND_METHODS = [
    lambda x: list.append(None, 1), lambda x: dict.get([1], 2), lambda x: list.__len__({}),
    lambda x: str.join(5, "a"), lambda x: set.add({}, 1), lambda x: tuple.__getitem__([1], 0),
    lambda x: list.append(x, 1), lambda x: int.bit_length(True), lambda x: str.upper("a"),
    lambda x: dict.get(collections.OrderedDict(a=1), "a"), lambda x: type.mro(int)[0],
]  # fmt: skip


@pytest.mark.parametrize("actions", [REFUSED_CALLS, UNBOUND_METHODS])
def test_errors_name_what_was_asked_for(actions):
    def ask(x):
        found = []
        for action in actions:
            try:
                found.append(action(x))
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(ask, torch.ones(3), graphs=1, fullgraph=True)


def test_parts_of_partials_are_one_object_each():
    def program(x, given):
        keywords = given.keywords
        made = functools.partial(dict, k=1)
        same = given.keywords is keywords, given.args is given.args, made.keywords is made.keywords
        before = given()
        keywords["b"] = 2
        return x + 1, same, before, given(), list(keywords)

    check(program, torch.ones(2), functools.partial(dict, a=1), graphs=1, ops=1)


def test_operator_functions_that_are_stricter_than_operators():
    def program(x, flag):
        found = [operator.index(flag), operator.concat([1], [2])]
        for left, right in ((x, x), (1, 2)):
            try:
                found.append(operator.concat(left, right))
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(program, torch.ones(2), True, graphs=1, ops=1)


#: C code reads numbers before it asks for an iterator, or after that.
ORDER_OF_COMPLAINTS = [
    lambda n: itertools.islice(n, ""), lambda n: itertools.islice([1], 1, []),
    lambda n: itertools.islice(n, 1, 2, 0), lambda n: itertools.islice([1], -1),
    lambda n: itertools.count(""), lambda n: itertools.count(1, []), lambda n: itertools.tee(n, ""),
    lambda n: itertools.tee([1], -1), lambda n: itertools.tee(n, -1),
    lambda n: itertools.product([1], rep=2), lambda n: itertools.product(n, repeat=-1),
    lambda n: itertools.combinations(n, ""), lambda n: itertools.combinations(n, -1),
    lambda n: itertools.combinations([1], None), lambda n: itertools.permutations(n, ""),
    lambda n: itertools.permutations([1], ""), lambda n: enumerate(n, ""), lambda n: sum(n, ""),
    lambda n: sum([n], Text()), lambda n: sorted([1], key=n, reverse=""), lambda n: divmod(n, ""),
    lambda n: sorted([2, 1], reverse=None), lambda n: [2, 1].sort(reverse=1.5),
    lambda n: sorted(n, reverse=""), lambda n: functools.reduce(n, n), lambda n: divmod(1j, n),
]  # fmt: skip


class Text(str):
    pass


def test_arguments_are_complained_about_in_the_order_of_c_code():
    def ask(x, n):
        found = []
        for action in ORDER_OF_COMPLAINTS:
            try:
                action(n)
            except (TypeError, ValueError) as error:
                found.append((type(error), str(error)))
        return x + 1, found

    check(ask, torch.ones(3), 2, graphs=1, fullgraph=True, ops=1)
    compiled = framejit.compile(ask, backend="eager", fullgraph=True)
    for n in (2, 3, 4):
        assert compiled(torch.ones(3), n)[1] == ask(torch.ones(3), n)[1]


def test_keywords_of_a_partial_are_changed_after_a_break():
    def program(x, given):
        keywords = given.keywords
        made = functools.partial(dict, k=1)
        also = made.keywords
        print(end="")
        keywords["b"], also["c"] = 2, 3
        return x + 1, given(), made(), list(keywords), given.keywords is keywords

    found = [
        function(torch.ones(2), functools.partial(dict, a=1))[1:]
        for function in (program, framejit.compile(program, backend="eager"))
    ]
    assert found[0] == found[1]


class _Sized:
    def __init__(self, size, hint):
        self.size, self.hint = size, hint

    def __len__(self):
        if self.size is None:
            raise TypeError("no size")
        return self.size

    def __length_hint__(self):
        if isinstance(self.hint, type):
            raise self.hint("no hint")
        return self.hint


@pytest.mark.parametrize("make, default", [
    (lambda: 3, 2.5), (lambda: 3, True), (lambda: None, None), (lambda: [1], "a"),
    (lambda: type("C", (complex,), {})(1j), 4), (lambda: _Sized(None, 7), 4),
    (lambda: _Sized(None, TypeError), 4), (lambda: _Sized(None, ValueError), 4),
    (lambda: _Sized(None, NotImplemented), 4), (lambda: _Sized(None, -1), 4),
    (lambda: _Sized(2, 7), 4),
])  # fmt: skip
def test_length_hints(make, default):
    """A TypeError of either method means that it is not known; the default must be an index."""
    value = make()

    def program(v):
        try:
            return v + 1, operator.length_hint(value, default)
        except (TypeError, ValueError) as error:
            return v + 2, str(error)

    check(program, torch.ones(2), graphs=1, fullgraph=True)


def test_keys_made_of_a_comparison():
    def program(x):
        key = functools.cmp_to_key(lambda a, b: a[0] - b[0])
        found = []
        for a, b in itertools.product(((1, 2), (1, 3), (2, 0)), repeat=2):
            p, q = key(a), key(b)
            found.append((p < q, p > q, p <= q, p >= q, p == q, p != q))
        for refused in (lambda: key((1,)) < 5, lambda: key((1,)) == 5, lambda: hash(key((1,)))):
            try:
                found.append(refused())
            except TypeError as error:
                found.append(type(error))
        return x + 1, found, key((1, 2)).obj

    check(program, torch.ones(2), graphs=1, ops=1)


@pytest.mark.parametrize("count", [-1, 0, 1, 3])
def test_tee_of_any_number(count):
    def program(x):
        try:
            made = itertools.tee([1, 2, 3], count)
        except ValueError as error:
            return x + 1, str(error)
        return x + 1, [list(one) for one in made], type(made)

    check(program, torch.ones(2), graphs=1, ops=1)


@pytest.mark.parametrize("given", [(5,), (), ("upper", 1), (b"x",)], ids=str)
def test_what_methodcaller_refuses(given):
    def program(x):
        try:
            operator.methodcaller(*given)
        except TypeError as error:
            return x + 1, str(error)
        return x + 1

    check(program, torch.ones(2), graphs=1, ops=1)


class SaysInt:
    __class__ = property(lambda self: int)


class SaysMore:
    def __getattribute__(self, name):
        return str if name == "__class__" else object.__getattribute__(self, name)


class Inherits(SaysInt):
    pass


@pytest.mark.parametrize("cls", [SaysInt, SaysMore, Inherits])
def test_objects_that_say_what_they_are(cls):
    given = cls()

    def program(x):
        kinds = (int, str, cls, SaysInt)
        return x + 1, [[isinstance(one, kind) for kind in kinds] for one in (given, cls())]

    check(program, torch.ones(2), graphs=1, ops=1)


class AddsItself:
    def __radd__(self, other):
        return other * 2


@pytest.mark.parametrize(
    "program, graphs",
    [
        (lambda x, n, q: sum([1e100, 1.0, -1e100, n]), 3), (lambda x, n, q: sum([q] * 10), 3),
        (lambda x, n, q: sum((i / 10 for i in range(11)), n), 3),
        (lambda x, n, q: sum([0.1, AddsItself(), q, 0.7]), 2),
        (lambda x, n, q: sum([n, n + 1], n), 2), (lambda x, n, q: sum([n, q]), 2),
        (lambda x, n, q: sum([q * 1j] * 10), 3), (lambda x, n, q: sum([], q), 2),
    ],
)  # fmt: skip
def test_sums_of_numbers_that_vary(program, graphs):
    backend = CountingBackend()
    compiled = framejit.compile(lambda x, n, q: (x + n, program(x, n, q)), backend=backend)
    for n, q in ((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.7)):
        assert compiled(torch.ones(1), n, q)[1] == program(None, n, q), n
    # Without what was lost, CPython 3.11 adds numbers that vary one by one.
    assert 1 < len(backend.graphs) <= graphs + 1
