"""Iterators that run the program's code or wrap others: itertools' classes, and those over
objects that have only ``__getitem__``. Their class, what they take and when, and where they are
after a break match those of plain Python."""

from __future__ import annotations

import itertools as it
from collections import deque, namedtuple

import pytest
import torch

import framejit
from checking import check

x = torch.tensor([1.0, -2.0])
Pair = namedtuple("Pair", "a b")


class Numbers:
    def __init__(self):
        self.n, self.log = 3, []

    def __len__(self):
        self.log.append("len")
        return self.n

    def __getitem__(self, i):
        self.log.append(i)
        if i >= self.n:
            raise IndexError
        return i * 10


class Fails(Numbers):
    def __getitem__(self, i):
        if i == 1:
            raise ValueError(i)
        return i


class NoReversed(Numbers):
    __reversed__ = None


class NoIter(Numbers):
    __iter__ = None


class NoLen:
    def __getitem__(self, i):
        return i


class Doubled(tuple):
    __slots__ = ()

    def __getitem__(self, i):
        return tuple.__getitem__(self, i) * 2


class Calls(deque):
    def clear(self):
        print("clear")
        super().clear()

    def extend(self, items):
        print("extend")
        super().extend(items)


class Unsized:
    def __init__(self, error):
        self.error = error

    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        raise self.error


class Hinted:
    def __init__(self):
        self.log = []

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append("next")
        if len(self.log) > 5:
            raise StopIteration
        return 1

    def __length_hint__(self):
        self.log.append("hint")
        return 2


def outcome(function, *args):
    """What a call gives, or the error's text."""
    try:
        return function(*args)
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"


# -- by __getitem__ --------------------------------------------------------------------------------


def reversed_is_lazy(x, s):
    r = reversed(s)
    a = next(r)
    s.log.append("between")
    return x + a, next(r), s.log


def reversed_that_shrinks(x, s):
    r = reversed(s)
    a = next(r)
    s.n = 1
    return x + a, r.__length_hint__(), list(r), next(r, 7), s.log


def reversed_over_a_break(x, s):
    r = reversed(s)
    a = next(r)
    print("break")
    return x + a, type(r) is reversed, list(r), s.log


def reversed_is_left_early(x, s):
    for n in reversed(s):
        x = x + n
        if n == 10:
            break
    return x, s.log


def errors_of_reversed(x):
    seen = []
    for make in (reversed, iter):
        iterator = make(Fails())
        seen += [outcome(next, iterator, None) for _ in range(4)]
    return x + 1, seen


def what_cannot_be_iterated(x):
    objects = [NoReversed(), NoIter(), NoLen(), 3, {1}]
    return x + 1, [type(outcome(f, o)).__name__ for f in (reversed, iter) for o in objects]


def iterator_by_index(x, s):
    i = iter(s)
    a = next(i)
    kind = type(i)
    print("break")
    return x + a, kind, type(i), list(i), s.log


def reversed_of_subclasses(x):
    a, b = reversed(Pair(1, 2)), reversed(Doubled([1, 2]))
    first = next(a), next(b)
    print("break")
    return x + 1, first, list(a), list(b), type(a)


def existing_reversed(x, r):
    return x + next(r), list(r)


def sizes_are_asked_for(x):
    calls = [list, tuple, sorted, lambda o: [*o], lambda o: [].extend(o), lambda o: max(*o), set]
    errors = [NotImplementedError(), TypeError()]
    return x + 1, [[outcome(f, Unsized(e)) for e in errors] for f in calls]


def hints_of_lengths(x):
    seen = []
    for f in (list, tuple, sorted, set, sum, lambda o: [*o], lambda o: [n for n in o]):
        o = Hinted()
        seen.append((f(o), o.log))
    return x + 1, seen


# -- deques ----------------------------------------------------------------------------------------


def reversed_deque(x, q):
    r = reversed(q)
    a = next(r)
    print("break")
    return x + a, type(r), list(r), r


def reversed_deque_that_changed(x, q):
    changes = [
        lambda: q.append(3), lambda: q.rotate(0), q.reverse, lambda: q.__setitem__(0, 5),
        lambda: q.extend([]), q.popleft, q.clear, q.clear,
    ]  # fmt: skip
    seen = []
    for change in changes:
        iterators = [iter(q), reversed(q)]
        change()
        seen.append([outcome(next, i, None) for i in iterators])
    return x + 1, seen, list(q)


def changed_after_the_end(x, q):
    i = iter(q)
    items = list(i)
    q.append(3)
    return x + 1, items, outcome(next, i, None)


def existing_iterator_goes_on(x, both):
    q, i = both
    q[0] = 5
    y = x + next(iter(q))
    print("break")
    return y, list(i)


def overridden_methods(x, q):
    q.append(2)
    return x + 1, list(q), q.maxlen


# -- itertools -------------------------------------------------------------------------------------


def fails_at_two(a, *rest):
    if a == 2:
        raise ValueError(a)
    return a < 5


def failing():
    yield 1
    raise ValueError("failing")


MAKERS = [
    lambda: it.accumulate([1, 2, 3, 4]),
    lambda: it.accumulate([1, 2, 3], lambda a, b: a * b, initial=5),
    lambda: it.accumulate(["a", [1]], lambda a, b: None),
    lambda: it.compress("abcdef", [1, 0, 1, 1, 0, 1]),
    lambda: it.cycle([1, 2, 3]),
    lambda: it.cycle([1]),
    lambda: it.cycle([]),
    lambda: it.dropwhile(lambda v: v < 2, [1, 2, 1, 3]),
    lambda: it.takewhile(lambda v: v < 3, [1, 2, 3, 1]),
    lambda: it.takewhile(lambda v: v < 2, [1, 2, 1]),
    lambda: it.pairwise([1, 2, 3, 4]),
    lambda: it.pairwise([1, 2]),
    lambda: it.zip_longest([1, 2, 3], "ab", [7], fillvalue=0),
    lambda: it.zip_longest(),
    lambda: it.starmap(pow, [(1, 2), [2, 3], (3, 2)]),
    lambda: it.filterfalse(None, [0, 1, "", 2, None]),
    lambda: it.groupby([1, 1, 2, 3, 3], key=lambda v: v // 2),
]


def shown(item):
    """An element with its group's content."""
    return (
        (item[0], list(item[1]))
        if type(item) is tuple and len(item) == 2 and hasattr(item[1], "__next__")
        else item
    )


@pytest.mark.parametrize("taken", [0, 1, 2])
@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_over_a_break(number, taken):
    make = MAKERS[number]

    def program(x):
        iterator = make()
        kinds = [type(iterator)]
        items = [shown(next(iterator, None)) for _ in range(taken)]
        print("break")
        kinds.append(type(iterator))
        return x + 1, kinds, items, [shown(item) for item in it.islice(iterator, 4)]

    check(program, x, graphs=1, ops=1)


@pytest.mark.parametrize("number", range(len(MAKERS) - 1))
def test_given_back(number):
    make = MAKERS[number]

    def program(x):
        iterator = make()
        first = next(iterator, None)
        return x + 1, first, it.islice(iterator, 4), type(iterator), isinstance(iterator, it.cycle)

    check(program, x, graphs=1, ops=1, fullgraph=True)


def what_is_taken_and_called(x):
    source, seen = iter(range(20)), []

    def note(name, v):
        seen.append((name, v))
        return v

    made = [
        it.accumulate(source), it.compress(source, it.cycle([0, 1])),
        it.dropwhile(lambda v: note("d", v) < 6, source),
        it.takewhile(lambda v: note("t", v) < 9, source), it.pairwise(source),
        it.zip_longest(source, [1]), it.starmap(lambda v: note("s", v), zip(source)),
        map(lambda v: note("m", v), source), filter(lambda v: note("f", v) % 2, source),
    ]  # fmt: skip
    for _ in range(2):
        seen += [next(iterator, None) for iterator in made]
        print("break")
    return x + 1, seen, next(source, None)


def groups_by_keys(x):
    g = it.groupby([1, 1, 1, 2, 2, 3])
    k, a = next(g)
    first = next(a)
    print("break")
    second = next(a)
    k2, b = next(g)
    print("break")
    return x + k, first, second, k2, list(a), list(b), [(k, list(v)) for k, v in g]


def a_group_read_ahead(x):
    g = it.groupby([1, 1, 1, 2, 2, 3], key=lambda v: v // 2)
    a = next(g)[1]
    b = next(g)[1]
    items = list(b)
    print("break")
    return x + 1, items, list(a), list(b), [(k, list(v)) for k, v in g]


def keys_by_identity(x):
    n = float("nan")
    return x + 1, [len(list(g)) for _, g in it.groupby([n, n, 1.0])]


def errors_in_what_is_called(x):
    seen = []
    for kind in (it.takewhile, it.dropwhile):
        iterator = kind(fails_at_two, [1, 2, 3, 7, 8])
        seen += [outcome(next, iterator, None) for _ in range(6)]
    for iterator in (it.zip_longest(failing(), [1, 2, 3]), it.pairwise(failing())):
        seen += [outcome(next, iterator, None) for _ in range(3)]
    return x + 1, seen


def breaks_in_what_is_called(x):
    def loud(v):
        print(v)
        return v

    taken = list(it.takewhile(lambda v: loud(v) < 3, [1, 2, 3, 4]))
    summed = list(it.accumulate([1, 2, 3], lambda a, b: loud(a + b)))
    groups = [(k, list(g)) for k, g in it.groupby([1, 1, 2], loud)]
    return x + 1, taken, summed, groups


def attributes_of_iterators(x):
    c = it.compress([1], [1])
    return x + 1, [hasattr(c, name) for name in ("data", "__dict__", "__next__")]


def iterators_as_arguments(x):
    calls = [
        lambda: it.cycle(iterable=[1]), lambda: it.pairwise(), lambda: it.compress(1, 2),
        lambda: it.zip_longest([1], foo=2), lambda: list(it.starmap(3, [()])),
    ]  # fmt: skip
    return x + 1, [outcome(f) for f in calls]


def existing_iterators_that_call(x, iterators):
    a, b, c = iterators
    return x + next(a), next(b), next(c), list(a), list(b), list(c)


class Counted:
    """An iterator that notes what is asked of it."""

    def __init__(self, *items):
        self.items, self.log = list(items), []

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        if not self.items:
            raise StopIteration
        return self.items.pop(0)

    def __length_hint__(self):
        self.log.append("hint")
        return len(self.items)


TAKERS = {
    "zip": lambda a: zip(a, [5, 6, 7]), "map": lambda a: map(str, a), "enumerate": enumerate,
    "filter": lambda a: filter(None, a), "accumulate": it.accumulate, "cycle": it.cycle,
    "started": lambda a: it.accumulate(a, initial=3), "compress": lambda a: it.compress("abcd", a),
    "chain": lambda a: it.chain([0], a, [9]), "islice": lambda a: it.islice(a, 1, None),
    "takewhile": lambda a: it.takewhile(bool, a), "starmap": lambda a: it.starmap(abs, zip(a)),
    "pairwise": it.pairwise, "longest": lambda a: it.zip_longest(a, "a"), "groupby": it.groupby,
    "tee": lambda a: it.tee(a)[0], "from_iterable": lambda a: it.chain.from_iterable(zip(a, a)),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_an_iterator_that_others_take_from(name, taken) -> None:
    def program(x):
        numbers = Counted(1, 2, 3, 4, 5)
        taker = TAKERS[name](numbers)
        before = [next(taker) for _ in range(taken)]
        print(end="")
        following = next(taker)
        return x + 1, before, following, numbers.log, numbers.items

    check(program, x, graphs=1, ops=1)


def starred(a):
    first, *rest = a
    return first, rest


def assigned(a):
    made = [1, 2, 3]
    made[1:] = a
    return made


def initialised(a):
    made = [1]
    made.__init__(a)
    return made


HINTS = {
    "starred": starred, "slice": assigned, "init": initialised,
    "product": lambda a: [*it.product(a)],
    "permutations": lambda a: [*it.permutations(a, 2)], "join": lambda a: "".join(map(str, a)),
    "joined": lambda a: "-".join(a), "dict": lambda a: dict([a]), "set": set, "deque": deque,
    "subclass": lambda a: OfTwo(a), "extended": lambda a: deque().extend(a),
    "call": lambda a: max(*a),
}  # fmt: skip


class OfTwo(tuple):
    pass


@pytest.mark.parametrize("name", HINTS)
def test_who_asks_how_many_there_will_be(name) -> None:
    def program(x):
        numbers = Counted(*("ab" if name == "joined" else (1, 2)))
        return x + 1, HINTS[name](numbers), numbers.log

    check(program, x, ops=1, graphs=1)


def types_of_methods(x):
    iterators = [iter(c) for c in ([1], (1,), {1: 2}, {1}, "a", range(2), deque([1]))]
    iterators += [zip(), map(len, ()), enumerate([]), (a for a in ()), reversed([1]), it.count()]
    return x + 1, [(type(i.__next__), type(i.__iter__)) for i in iterators], type([].append)


#: (program, arguments, graphs)
PROGRAMS = [
    (types_of_methods, list, 1),
    (reversed_is_lazy, lambda: [Numbers()], 1),
    (reversed_that_shrinks, lambda: [Numbers()], 1),
    (reversed_over_a_break, lambda: [Numbers()], 1),
    (reversed_is_left_early, lambda: [Numbers()], 1),
    (errors_of_reversed, list, 1),
    (what_cannot_be_iterated, list, 1),
    (iterator_by_index, lambda: [Numbers()], 1),
    (reversed_of_subclasses, list, 1),
    (existing_reversed, lambda: [reversed((1, 2, 3))], 1),
    (sizes_are_asked_for, list, 1),
    (hints_of_lengths, list, 1),
    (reversed_deque, lambda: [deque([1, 2, 3])], 1),
    (reversed_deque_that_changed, lambda: [deque([1, 2, 3])], 1),
    (changed_after_the_end, lambda: [deque([1, 2, 3])], 1),
    (existing_iterator_goes_on, lambda: [existing_deque()], 1),
    (overridden_methods, lambda: [Calls([1], 5)], 1),
    (what_is_taken_and_called, list, 1),
    (groups_by_keys, list, 1),
    (a_group_read_ahead, list, 1),
    (keys_by_identity, list, 1),
    (errors_in_what_is_called, list, 1),
    (breaks_in_what_is_called, list, 1),
    (attributes_of_iterators, list, 1),
    (iterators_as_arguments, list, 1),
]  # fmt: skip


def existing_deque():
    q = deque([1, 2, 3])
    return q, iter(q)


@pytest.mark.parametrize(("program", "arguments", "graphs"), PROGRAMS)
def test_program(program, arguments, graphs) -> None:
    check(program, x, *arguments(), graphs=graphs)


def test_existing_iterators_that_call() -> None:
    """They are not copied, which CPython 3.14 cannot do."""

    def make():
        pairs, letters = it.starmap(pow, [(1, 2), (2, 3)]), it.compress("abc", [1, 0, 1])
        iterators = [pairs, letters, it.filterfalse(None, [0, 1, 0])]
        return lambda x: existing_iterators_that_call(x, iterators)

    check(make(), x, make=make, calls=1, graphs=1, ops=1)


def test_guards_run_no_code_of_the_program() -> None:
    """An entry for a reversed tuple is asked about a reversed object of the program's."""
    compiled = framejit.compile(existing_reversed, backend="eager")
    compiled(x, reversed((1, 2, 3)))
    numbers = Numbers()
    assert compiled(x, reversed(numbers))[1] == [10, 0]
    assert numbers.log == ["len", 2, "len", 1, 0]


class Indexed:
    def __init__(self, log):
        self.log = log

    def __getitem__(self, index):
        self.log.append(index)
        if index > 4:
            raise IndexError
        return index * 10


class Iterated:
    def __init__(self, log):
        self.log = log

    def __iter__(self):
        for number in range(0, 50, 10):
            self.log.append(number)
            yield number


class Compared:
    def __init__(self, log):
        self.log = log

    def __eq__(self, other):
        self.log.append(("equal", other))
        return other == 20

    __hash__ = None


@pytest.mark.parametrize("kind", [Indexed, Iterated])
@pytest.mark.parametrize("wanted", [20, 25, Compared])
def test_in_asks_no_further_than_the_match(kind, wanted):
    def f(x):
        log = []
        item = wanted(log) if wanted is Compared else wanted
        return x + 1, item in kind(log), item not in kind(log), log

    check(f, torch.ones(2), graphs=1, ops=1)
