"""``is`` and ``id()``: which object a value represents, while capturing and across graph breaks."""

from __future__ import annotations

import collections
import weakref

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes
from framejit import config

X = torch.arange(3.0)


class Thing:
    pass


ONE, OTHER = Thing(), Thing()
NUMBERED = {id(ONE): 1, "a": 2}
PAIRED = {(id(ONE), "k"): 3}
SEEN = {id(ONE), 5}

BY_ID = {
    "get": lambda x: (x + 1, NUMBERED.get(id(ONE)), NUMBERED.get(id(OTHER))),
    "in": lambda x: (x + 1, id(ONE) in NUMBERED, id(OTHER) in NUMBERED, id(ONE) in SEEN),
    "item": lambda x: (x + 1, NUMBERED[id(ONE)]),
    "tuple": lambda x: (x + 1, PAIRED.get((id(ONE), "k")), PAIRED.get((id(OTHER), "k"))),
    "set operations": lambda x: (
        x + 1, SEEN & {id(ONE), id(OTHER)} == {id(ONE)}, {id(ONE)} <= SEEN,
        SEEN.isdisjoint({id(ONE)}), frozenset(SEEN) >= {id(ONE)},
    ),
    "views": lambda x: (
        x + 1, NUMBERED.keys() & {id(ONE)} == {id(ONE)}, NUMBERED.keys().isdisjoint([id(ONE)]),
        NUMBERED.keys() == {id(ONE), "a"},
    ),
    "dicts": lambda x: (x + 1, NUMBERED == {id(ONE): 1, "a": 2}, len(NUMBERED | {id(ONE): 3})),
    "numbers that are none": lambda x: (x + 1, {1: 1}.get(id(ONE), 5), {id(ONE): 1}.get(2, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_ID)
def test_an_address_as_a_key(name):
    check(BY_ID[name], X, ops=1, graphs=1)


def both(make, *calls, ops=None):
    """Calls what ``make`` makes eagerly and compiled, with the very same arguments."""
    backend = CountingBackend()
    eager = make()
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(make(), backend=backend)
        for args in calls:
            compare_outcomes(Outcome(eager, args, {}), Outcome(compiled, args, {}))
    if ops is not None:
        assert backend.ops == ops


def test_an_address_stored_in_an_existing_dict():
    def make():
        known = {id(ONE): 7}

        def f(x):
            known[id(ONE)] = 8
            first = len(known)
            known.setdefault(id(OTHER), 9)
            return x + 1, first, list(known.values()), known.pop(id(x), None)

        return f

    both(make, (X,), (X,), ops=1)


def test_addresses_remembered_from_call_to_call():
    def make():
        memo = collections.defaultdict(list)

        def f(x, one):
            known = id(one) in memo
            memo[id(one)].append(known)
            return x + 1, len(memo[id(one)]), known, list(memo.values())

        return f

    both(make, (X, ONE), (X, OTHER), (X, ONE), (X, ONE), (X, OTHER))


# -- is --------------------------------------------------------------------------------------------

NAN = float("nan")
MISSING = ("missing",)
NT = collections.namedtuple("NT", "a b")
#: An object and another one that is equal.
EQUAL = {
    "tuple": (MISSING, tuple(["missing"])),
    "nested": (((1,), 2), (tuple([1]), 2)),
    "of tensors": ((X,), tuple([X])),
    "named": (NT(1, 2), NT(1, 2)),
    "size": (torch.Size([1, 2]), torch.Size([1, 2])),
    "slice": (slice(1, 2), slice(1, 2)),
    "frozenset": (frozenset([1, 2]), frozenset([2, 1])),
    "int": (1000, int("1000")),
    "long": (10**30, int("1" + "0" * 30)),
    "float": (1.5, float("1.5")),
    "complex": (1 + 2j, complex(1, 2)),
    "text": ("two words", " ".join(["two", "words"])),
    "bytes": (b"two words", b" ".join([b"two", b"words"])),
    "range": (range(3), range(3)),
    "device": (torch.device("cpu"), torch.device("cpu")),
    "nan": (NAN, float("nan")),
    "tuple of nan": ((NAN,), (float("nan"),)),
}


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_objects_are_told_apart(kind):
    one, other = EQUAL[kind]

    def f(x, a, b):
        return x + 1, a is b, a is not b, [a][0] is b

    calls = [(X, one, one), (X, one, other), (X, other, other), (X, one, one)]
    both(lambda: f, *calls)


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_objects_after_a_break(kind):
    one, other = EQUAL[kind]

    def f(x, a, b):
        known = [a], {"k": b}, a == a
        print(end="")
        return x + 1, a is b, known[0][0] is a, known[1]["k"] is b, known[0][0] is b

    if kind == "of tensors":
        one, other = (X, X), (X, X)
    both(lambda: f, (X, one, one), (X, one, other), (X, one, one))


@pytest.mark.parametrize("kind", EQUAL)
def test_containers_compare_identities_first(kind):
    one, other = EQUAL[kind]

    def f(x, a, b):
        found = a in [b], [b].count(a), (a,) == (b,), {"k": a} == {"k": b}, a in {1: b}.values()
        keys = (a in {b: 1}, len({a, b}), {a: 1}.get(b)) if type(a) is not slice else None
        return x + 1, found, keys

    if kind != "of tensors":
        both(lambda: f, (X, one, one), (X, one, other), (X, one, one))


def test_a_sentinel_stays_itself():
    def f(x, table):
        found = table.get("k", MISSING)
        print(end="")
        return x + 1, found is MISSING, found == MISSING

    both(lambda: f, (X, {}), (X, {"k": MISSING}), (X, {"k": tuple(["missing"])}), (X, {}))


def test_results_are_the_objects_that_came_in():
    def f(a, b):
        return (a, b) if a == b else (b, a)

    compiled = framejit.compile(f, backend="eager")
    for one, other in EQUAL.values():
        if not isinstance(one, tuple):
            result = compiled(one, other)
            assert result[0] is f(one, other)[0] and result[1] is f(one, other)[1]


def with_default(x, given=MISSING, *, other=("a", "b")):
    return given is MISSING, given is with_default.__defaults__[0], other


def test_constants_of_code_and_defaults():
    def f(x):
        a, b, c, d, e = (1, 2), (1, 2), (1, 2, 3)[:2], 1000, 1000
        sums = d + 0, "two " + "words"[:5], 1.5 * 1.0
        first = a is b, a is c, d is e, d is sums[0], with_default(x)[:2], with_default(x, a)[:2]
        print(end="")
        later = a is b, a is c, d is e, d is sums[0], "two words" is sums[1], 1.5 is sums[2]  # noqa: F632
        return x + 1, first, later, with_default(x)[2] is with_default(x)[2]

    both(lambda: f, (X,), (X,), ops=1)


KEEP = {
    "tuple": lambda t: (tuple(t), t[:], t + (), () + t, t * 1, (*t,), t[::1], t[1:] + t[:1]),
    "text": lambda t: (str(t), t[:], t.strip(), t + "", "" + t, t * 1, t.upper(), t.lower()),
    "frozenset": lambda t: (frozenset(t), t.copy(), t | set(), t & t, t.union(), t - set()),
    "extremes": lambda t: (max(t, t[:1]), min([t]), sorted([t, t])[0], next(iter([t])), t or 1),
    "int": lambda t: (+t, t + 0, int(t), abs(t), max(t, 0), -(-t)),
}  # fmt: skip
KEPT = {"tuple": (1, 2), "text": "two words", "frozenset": frozenset([1]), "extremes": (3, 4),
        "int": 10**20}  # fmt: skip


@pytest.mark.parametrize("kind", KEEP)
def test_operations_that_return_their_operand(kind):
    operation = KEEP[kind]

    def f(x, a):
        made = operation(a)
        before = [one is a for one in made]
        print(end="")
        return x + 1, before, [one is a for one in made]

    both(lambda: f, (X, KEPT[kind]), (X, KEPT[kind]), ops=1)


def test_keys_and_elements_are_objects():
    key = tuple([1, 2])

    def f(x, d, s):
        first, keys = next(iter(d)), list(d)
        print(end="")
        items = list(d.items())
        return x + 1, first is key, keys[0] is first, list(s)[0] is key, items[0][0] is key

    both(lambda: f, (X, {key: 1}, {key}), (X, {(1, 2): 1}, {(1, 2)}), (X, {key: 1}, {key}))


def test_numbers_that_vary():
    def f(x, a, b):
        return x + 1, a is b, a is a

    same = [(X, n, n) for n in (1000, 2000, 3000, 5)]
    both(lambda: f, *same, (X, 7000, int("7000")), (X, 3, 4))


def test_nan_is_found_by_its_identity():
    def f(x):
        a, b = x.sum().item(), x.prod().item()
        values, table, pair = [a, 2.0], {a: 1}, (a, 1)
        print(end="")
        found = [n in values for n in (a, b)], values.index(a), values.count(b), pair == (a, 1)
        values.remove(a)
        return found, a in table, table.get(b), len({a, b}), (b,) == (a,), values, pair == (b, 1)

    check(f, torch.tensor([NAN, 1.0]), graphs=2, ops=2)


def two(shape, other=torch.long):
    return torch.empty(shape), torch.empty(shape, dtype=other)


def written_to(function, x, outputs, **options):
    """Which of the results are what was given as ``out=``?"""
    made = function(x, **options, out=outputs)
    return [one is other for one, other in zip(made, outputs, strict=True)], *made


#: Operations whose results may be operands.
RETURNS_OPERANDS = {
    "max": lambda x: written_to(torch.max, x, two(4), dim=1),
    "sort": lambda x: written_to(torch.sort, x, two((4, 4)), dim=1),
    "topk": lambda x: written_to(torch.topk, x, two((4, 2)), k=2),
    "kthvalue": lambda x: written_to(torch.kthvalue, x, two(4), k=2),
    "cummax": lambda x: written_to(torch.cummax, x, two((4, 4)), dim=0),
    "median": lambda x: written_to(torch.median, x, two(4), dim=1),
    "qr": lambda x: written_to(torch.linalg.qr, x, two((4, 4), torch.float32)),
    "aminmax": lambda x: written_to(torch.aminmax, x, two((), torch.float32)),
    "broadcast": lambda x: [y is x for y in torch.broadcast_tensors(x, x, x[:1], torch.ones(1))],
    "atleast": lambda x: [y is x for y in torch.atleast_1d(x, x[0])],
    "foreach": lambda x: torch._foreach_add_([x], 1)[0] is x,
    "operator": lambda x: torch.ops.aten.add_(x, 1) is x,
    "vmap": lambda x: (torch.vmap(lambda a: a)(x) is x, torch.vmap(lambda a: a + 0)(x) is x),
    "vmap of two": lambda x: [y is x for y in torch.vmap(lambda a: (a, a * 2))(x)],
    "vjp": lambda x: torch.func.vjp(lambda a: a, x)[0] is x,
    "aux": lambda x: torch.func.grad(lambda a: (a.sum(), a), has_aux=True)(x)[1] is x,
    "jvp": lambda x: [y is x for y in torch.func.jvp(lambda a: a, (x,), (x,))],
}


@pytest.mark.parametrize("name", RETURNS_OPERANDS)
@pytest.mark.parametrize("new", [False, True], ids=["input", "new"])
def test_results_that_are_operands(name, new):
    function = RETURNS_OPERANDS[name]
    check(lambda x: function(x * 2) if new else function(x), torch.randn(4, 4), graphs=1)


def test_results_inside_of_a_transform():
    """There each operation wraps its result, the operand as well."""

    def f(x):
        return torch.vmap(lambda a: a + 1 if torch.ops.aten.add_(a, 1) is a else a - 1)(x)

    check(f, torch.randn(4, 4), graphs=0, ops=0)
    check(
        lambda x: torch.vmap(lambda a: a.clone().add_(1) is a or a)(x),
        torch.ones(3),
        graphs=1,
        ops=7,
    )


# -- keys ------------------------------------------------------------------------------------------


def text():
    return "".join(["se", "nt"])


SENT, OTHER_SENT, LARGE, OTHER_LARGE = text(), text(), int("1000000"), int("1000000")
BY_KEYS = {
    "is": lambda x, c: (x + 1, [k is SENT for k in c], [k is LARGE for k in c]),
    "list": lambda x, c: (x + 1, [id(k) for k in list(c)]),
    "sorted": lambda x, c: (x + 1, [id(k) for k in sorted(c, key=str)]),
    "first": lambda x, c: (x + 1, id(next(iter(c)))),
    "in a new dict": lambda x, c: (x + 1, [id(k) for k in {k: x for k in c}]),
    "over a break": lambda x, c: (x + 1, [(print(end=""), id(k))[1] for k in [*c]]),
}
HOLDERS = {
    "dict": dict.fromkeys, "ordered": collections.OrderedDict.fromkeys, "set": set, "list": list,
    "with a gap": lambda keys: (made := {0: 0, **dict.fromkeys(keys)}, made.pop(0))[0],
}  # fmt: skip


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", BY_KEYS)
def test_equal_keys_that_are_other_objects(name, holder):
    sent, large = [SENT, OTHER_SENT], [LARGE, OTHER_LARGE]
    calls = [(X, HOLDERS[holder]([s, n])) for s in sent for n in large]
    both(lambda: BY_KEYS[name], *calls, calls[0])


def test_tuples_of_constants_are_made_anew():
    """CPython makes one object of equal tuples in a code; those that a program makes are many."""
    log = []

    def note(*event):
        log.append(event)

    def f(x):
        number, text = 2, "k"
        note(None, None)
        y = x + 1
        note(None, None)
        made = [(number, text), (number, (number, text)), tuple([text]), (-number, 1.5), (...,)]
        written = (1, 2), (1, (2, 3)), (), (number, text)[:0]
        return y, made, written

    def objects(function):
        log.clear()
        (_, *one), (_, *two) = function(torch.ones(2)), function(torch.ones(2))
        inner = [made[0][1][1] for made in (one, two)] + [made[1][1][1] for made in (one, two)]
        found = [*log, *one[0], *two[0], *one[1], *two[1], *inner]
        return [next(i for i, other in enumerate(found) if other is item) for item in found], found

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    assert objects(compiled) == objects(f)
    assert objects(f)[0][:9] == list(range(9))


def numbers_of(first, second, third):
    numbers: dict[int, int] = {}
    for one in (first, second, third):
        numbers.setdefault(id(one), len(numbers))
    return list(numbers.values()), [numbers[id(one)] for one in (first, second, third)]


def test_devices_are_read_anew():
    """Each read makes an object, as ``torch.device`` does; what is kept is one."""
    kept = torch.device("cpu")

    def program(x):
        device = x.device
        held = [device]
        return (
            x + 1, x.device is x.device, held[0] is device, device is kept, kept is kept,
            device == kept, torch.device("cpu") is torch.device("cpu"), x.dtype is x.dtype,
        )  # fmt: skip

    check(program, X, graphs=1, ops=1)


@pytest.mark.parametrize("kind", [tuple, list, lambda _: torch.ones(2)])
def test_arguments_that_are_one_object_have_one_address(kind) -> None:
    a, b, c = kind([1, []]), kind([1, []]), kind([1, []])
    compiled = framejit.compile(lambda x, *objects: (x + 1, numbers_of(*objects)), backend="eager")
    for objects in ((a, a, b), (a, b, c), (a, b, b), (a, a, a), (b, b, a)):
        assert compiled(torch.ones(1), *objects)[1] == numbers_of(*objects)
    assert framejit.counters["stats"]["unique_graphs"]


def with_a_finalizer(x):
    ended: list[int] = []
    box = Thing()
    finalizer = weakref.finalize(box, ended.append, 1)
    alive = finalizer.alive
    finalizer()
    return x + 1, alive, finalizer.alive, ended


def test_the_registry_of_finalizers_is_the_programs() -> None:
    framejit.compile(lambda x: x + 2, backend="eager")(torch.ones(1))
    before = {*weakref.finalize._registry}
    compiled = framejit.compile(with_a_finalizer, backend="eager")
    for _ in range(2):
        assert str(compiled(torch.ones(1))) == str(with_a_finalizer(torch.ones(1)))
    assert {*weakref.finalize._registry} <= before  # others may have ended


OPERANDS = {
    "set": lambda x: (len({x, x.contiguous()}), len({x, x.float(), x + 1}), x.float() in {x}),
    "dict": lambda x: ({x.cpu(): 1}[x], len({x: 1, nn.functional.dropout(x, 0.5, False): 2})),
    "ids": lambda x: (len({id(x), id(x.float())}), {id(x): 3}.get(id(x.contiguous()))),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_keys_that_operations_return_as_they_are(name):
    function = OPERANDS[name]
    check(lambda x: (x + 1, function(x)), X, graphs=1)
    assert framejit.compile(lambda x: function(x + 1), backend="eager")(X) == function(X + 1)


LAYER, OTHER_LAYER = nn.Linear(3, 3), nn.Linear(3, 3)
NUMBER = id(LAYER)


def test_an_address_that_is_a_number():
    def run(x, layer):
        known = id(layer) == NUMBER, id(layer) != NUMBER, NUMBER == id(nn.Linear), id(run) == 5
        return (x + 1 if known[0] else x * 2), known

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend, fullgraph=True)
    for layer in (LAYER, OTHER_LAYER, LAYER, OTHER_LAYER):
        got, expected = compiled(X, layer), run(X, layer)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]
    assert len(backend.graphs) == 2


def test_an_address_of_what_each_call_makes_anew():
    check(lambda x, thing: (x + 1, id(thing) == NUMBER), X, Thing(), graphs=1)


@pytest.mark.parametrize("dynamic", [None, True])
def test_each_read_of_a_size_makes_a_number(dynamic):
    def f(x, y):
        n, shape = x.shape[0], x.shape
        own = n is n, [n][0] is n, shape[0] is shape[0], int(n) is n, +n is n, (n or 1) is n
        reads = n is x.shape[0], n is shape[0], n is y.shape[0], n is x.size(0), n is len(x)
        return x + n, own, reads, x.numel() is x.numel(), x.nbytes is x.nbytes, n + 0 is n

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, dynamic=dynamic, fullgraph=True)
    for size in (300, 3, 300, 700, 256, 257):
        args = torch.ones(size), torch.ones(size)
        compare_outcomes(Outcome(f, args, {}), Outcome(compiled, args, {}))
    assert len(backend.graphs) == (3 if dynamic else 4)


def test_numbers_that_vary_are_compared_by_what_they_are():
    def f(x, n, scale):
        return x * scale + n, n is n, scale is scale, -scale is scale, n - 1 is n, (n > 3) is True

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for n, scale in ((3, 2.0), (400, 3.0), (500, 1.0), (5, 0.0)):
        args = torch.ones(2), n, scale
        compare_outcomes(Outcome(f, args, {}), Outcome(compiled, args, {}))
