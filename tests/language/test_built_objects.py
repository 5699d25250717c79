"""What a generated function builds: keys with methods of their own, iterators over lists that get
their content later, things that refer to each other, values that are one object.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools

import pytest
import torch

import framejit
from checking import check, check_between

X = torch.ones(1)
LOG: list = []


class Key:
    """Hashes collide, and what is asked is noted."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        LOG.append(f"h{self.n}")
        return self.n % 2

    def __eq__(self, other):
        LOG.append(f"e{self.n}{getattr(other, 'n', other)}")
        return self.n == (other.n if isinstance(other, Key) else other)

    def __repr__(self):
        return f"Key({self.n})"


class Long:
    """Its hash is as long as hashes get."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return 2**62 + self.n

    def __eq__(self, other):
        return isinstance(other, Long) and self.n == other.n


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: int = 0


class Thing:
    pass


class Stored(collections.OrderedDict):
    def __setitem__(self, key, value):
        LOG.append(f"{key} is stored")
        super().__setitem__(key, value)


class ListOf(list):
    pass


class DictOf(dict):
    pass


class SetOf(set):
    pass


class FrozenOf(frozenset):
    pass


class TupleOf(tuple):
    pass


# -- keys with a __hash__ and an __eq__ of their own -----------------------------------------------


def dict_over_a_break(x):
    d = {Key(1): 1, Key(3): 2, Key(1): x}
    print(LOG)
    return d, list(d.values()), len(LOG)


def dict_is_changed(x):
    d = {Key(1): 1}
    d[Key(3)] = 2
    d.pop(Key(1))
    d.setdefault(Key(7), 1)
    d.setdefault(Key(7), 2)
    d.update({Key(3): 5})
    d.get(Key(9))
    print(LOG, Key(3) in d)
    return d, x + 1


def equal_keys_over_a_break(x):
    d = {Key(1): 1, Key(3): 2}
    print(end="")
    d.update({Key(3): 5, Key(5): 6})
    print(LOG)
    return d | {Key(1): 7}, x + 1


def gaps_over_a_break(x, given, kind):
    gap, circle, other = {Key(1): 1, Key(3): 2, Key(5): x}, kind(), {}
    del gap[Key(3)]
    gap[Key(7)] = 2
    copied, empty = gap.copy(), gap.copy()
    empty.clear()
    circle.update({Key(1): 1, Key(3): circle})
    circle.pop(Key(1))
    other[Key(1), 1], other[Key(3), 1] = 1, 2
    del other[Key(1), 1]
    for d in (empty, given):
        d[Key(1)] = d[Key(3)] = d[Key(5)] = 1
        del d[Key(1)]
        d[Key(1)] = 2
    dicts = gap, copied, empty, circle, given
    print(end="")
    LOG.clear()
    for d in dicts:
        d[Key(9)] = 1
        d.get(Key(11))
    other[Key(5), 1] = 1
    other.get((Key(7), 1))
    print(LOG)
    return [list(d) for d in (*dicts, other)], x + 1


def dict_argument(x, d):
    d[Key(1)] = x
    d[Key(3)] = 1
    d[Key(1)] = x + 1
    del d[Key(3)]
    print(LOG, len(d))
    return list(d.items())


def plain_keys_that_are_equal(x, d):
    d[Key(2)] = x
    d[Key(5)] = 1
    print(LOG)
    return list(d.items())


def sets_of_objects(x, s):
    s.add(Key(1))
    s.add(Key(3))
    s.add(Key(1))
    s.discard(Key(3))
    s.update([Key(5), Key(1)])
    s.discard(Key(11))
    t = {Key(1), Key(3)}
    print(LOG)
    return s, t, len(t), x + 1


def operations_on_sets(x):
    a, b = {Key(1), Key(3)}, {Key(3), Key(5)}
    made = a | b, a & b, a - b, a ^ b, a <= b, a == b, a.isdisjoint(b), a.copy(), frozenset(a)
    kept = [k for k in a if any(k is other for other in made[1])]
    print(LOG, len(kept))
    return made, x + 1


def sets_of_arguments(x, s):
    s |= {Key(1), Key(7)}
    s -= {Key(7)}
    s ^= {Key(1), Key(9)}
    s &= {Key(9), 1}
    print(LOG)
    return s, x + 1


def inside_tuples_and_frozensets(x):
    k = Key(1)
    d = {(k, 1): x, (Key(3), k): 2, frozenset([Key(1)]): 3}
    print(LOG)
    return d[Key(1), 1], d[frozenset([Key(1)])], len(d)


def frozen_dataclasses(x):
    d = {Frozen(1): "a", Frozen((Frozen(2), 2)): x}
    s = {Frozen(1), Frozen(3)}
    print(end="")
    return d[Frozen(1)], d[Frozen((Frozen(2), 2))], Frozen(3) in s, d, s


def keys_that_know_their_containers(x):
    thing, k = Thing(), Frozen(1)
    d = {k: thing, Frozen((k, 2)): k}
    thing.d, thing.k = d, k
    thing.s = frozenset([k])
    print(end="")
    return d[Frozen(1)] is thing, d[Frozen((Frozen(1), 2))] is k, thing.d is d, k in thing.s


def hash_changes_later(x):
    k = Key(1)
    d = {k: x}
    k.n = 5
    print(end="")
    return d.get(Key(1)), list(d)[0].n


def long_hashes(x):
    d, s = {Long(1): 1, Long(2**62): 2}, {Long(3), Long(4)}
    print(end="")
    return d[Long(1)], d[Long(2**62)], Long(4) in s, len(d)


def subclasses_of_containers_with_keys(x):
    a, b, c, e = ListOf([1]), DictOf({Key(1): 2}), SetOf([Key(1), Key(3)]), FrozenOf([Key(1)])
    f = TupleOf((a, b))
    a.append(a)
    b["self"] = b
    a.append(f)
    print(LOG)
    return b, c, e, f[0] is a, a[1] is a, a[2] is f, b["self"] is b


def other_kinds_of_dicts(x):
    ordered, lists = collections.OrderedDict(), collections.defaultdict(list)
    ordered[Key(1)] = 1
    ordered[Key(3)] = 2
    ordered.move_to_end(Key(1))
    lists[Key(1)].append(1)
    lists[Key(1)].append(2)
    counts = collections.Counter([Frozen(1), Frozen(1), Frozen(2)])
    print(LOG)
    return ordered, lists, counts


def search_in_a_graph(x):
    seen, todo = set(), [Key(k) for k in (1, 3, 5)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        if state.n == 3:
            print(end="")
        if state.n < 4:
            todo.append(Key(state.n + 2))
    return sorted(state.n for state in seen)


def existing_frozenset(x):
    f = frozenset([Key(1), Key(3)])
    print(LOG)
    found = Key(3) in f
    print(LOG)
    return found


def returned_at_once(x):
    return {Key(1): x, Key(3): 1}, {Key(1), Key(3)}, len(LOG)


def dicts_take_the_hashes_of_dicts(x):
    a = {Key(1): 1, Key(2): 2}
    b = {**a, Key(3): 3, **a}
    print(end="")
    return b, {**b}, list(LOG)


def ordered_dicts_store_one_by_one(x):
    a = {Key(2): 1}
    b = collections.OrderedDict(a)
    c = Stored({1: 2}, k=3)
    c.update([(4, x)])
    c.update(c)
    return a, b, c, list(LOG)


def views_ask_keys_in_an_order_of_their_own(x):
    a, b = {Key(2): 1, 3: 2}, {Key(2), 5}
    x = x + 1
    found = a.keys() - b, b & a.keys(), a.keys() == {Key(2): 0, 3: 1}.keys()
    return x, found, list(LOG)


def order_of_sets_that_did_not_grow_one_by_one(x):
    made = {Frozen(1), (1, 2)}.union({1, 2, 8})
    other = {Frozen(i) for i in range(7)}
    other.discard(Frozen(1))
    other.update([Frozen(9), Frozen(1)])
    print(end="")
    return list(made), list(other), frozenset(other), made


#: (program, graphs, operations, more arguments)
KEYS = [
    (dict_over_a_break, 2, 2), (dict_is_changed, 2, 3), (dict_argument, 2, 3, {}),
    (equal_keys_over_a_break, 2, 3), (gaps_over_a_break, 2, 3, {}, dict),
    (gaps_over_a_break, 2, 3, {1: 2, 5: 6}, DictOf),
    (plain_keys_that_are_equal, 2, 2, {"a": 1, 2: 3}), (sets_of_objects, 2, 3, set()),
    (operations_on_sets, 2, 3), (sets_of_arguments, 2, 3, {1, 2}),
    (inside_tuples_and_frozensets, 2, 2), (frozen_dataclasses, 2, 2),
    (keys_that_know_their_containers, 2, 2), (hash_changes_later, 2, 2),
    (long_hashes, 2, 2), (subclasses_of_containers_with_keys, 2, 2),
    (other_kinds_of_dicts, 2, 2), (search_in_a_graph, 2, 2),
    (existing_frozenset, 2, 2), (returned_at_once, 1, 2),
    (dicts_take_the_hashes_of_dicts, 2, 2), (ordered_dicts_store_one_by_one, 1, 2),
    (views_ask_keys_in_an_order_of_their_own, 2, 3),
    (order_of_sets_that_did_not_grow_one_by_one, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case[0].__name__)
def test_keys_with_methods_of_their_own(case):
    program, graphs, ops, *args = case

    def cleared(x, *rest):
        LOG.clear()
        return program(x, *rest)

    check_between(cleared, X, *args, graphs=graphs, ops=ops)


def test_methods_of_keys_are_captured():
    def build(x):
        d = {Frozen(1): x + 1, Frozen(2): x}
        s = {Frozen(3), Frozen(3)}
        return d, d[Frozen(1)] * 2, len(s), s

    check(build, X, graphs=1, ops=2, fullgraph=True)

    def change(x, d, s):
        d[Frozen(1)] = x + 1
        s.add(Frozen(2))
        s.discard(Frozen(3))
        return d[Frozen(1)] * 2

    check(change, X, {}, set(), graphs=1, ops=2, fullgraph=True)


def test_sets_of_dicts_and_of_attributes():
    def collect(x, box, d):
        names = {"z"}
        names |= set(box.__dict__)
        names.update(d)
        return x + len(names), sorted(names), set(d) - {"a"}

    box = Thing()
    box.first, box.second = 1, 2
    check(collect, X, box, {"a": 1, "b": 2}, graphs=1, ops=1, fullgraph=True)


class Ending:
    def __del__(self):
        LOG.append({Key(8): 8}[Key(8)])


def test_what_a_dict_loses_ends_after_its_keys_are_stored():
    def replace(x, d):
        d["old"] = x + 1
        d[Key(1)] = x
        return len(d)

    def run(function):
        LOG.clear()
        d = {"old": Ending()}
        function(X, d)
        return sorted(map(str, LOG)), list(d)[0]

    assert run(framejit.compile(replace, backend="eager")) == run(replace)


# -- iterators -------------------------------------------------------------------------------------


def list_between_two_breaks(x):
    out = []
    for k in (x * torch.tensor([0, 1, 0])).tolist():
        out.append(k)
    parts = []
    for m in out:
        parts.append(m)
        if m:
            print(end="")
    return parts


def over_an_argument_that_grows(x, l):
    l.append(1)
    l.append(2)
    it = iter(l)
    next(it)
    print(end="")
    return list(it)


def beyond_a_list_that_shrank(x):
    l = [1, 2, 3, 4]
    it, back = iter(l), reversed(l)
    next(it), next(it), next(it)
    l.clear()
    print(end="")
    l.extend(range(6))
    return list(it), list(back)


def shared_by_others(x, l):
    l.extend([1, 2, 3, 4, 5, 6])
    it = iter(l)
    next(it)
    pairs, numbered, rest = zip(it, it), enumerate(it), map(str, it)
    back = reversed(l)
    next(back)
    n = [it, it]
    print(end="")
    return next(pairs), next(numbered), next(back), list(rest), n[0] is n[1]


def kept_in_attributes_and_slots(x, d):
    d["k"], d["m"] = 1, 2
    it = enumerate(d.items())
    thing = Thing()
    thing.it = it
    print(end="")
    next(it)
    return list(thing.it), thing.it is it


def dict_that_holds_its_iterators(x, d):
    d["a"], d["b"] = 1, 2
    it = iter(d.items())
    next(it)
    d["a"] = it
    values, back = iter(d.values()), reversed(d)
    next(values)
    print(end="")
    return next(it)[0], list(values), list(back), d["a"] is it


def deque_that_holds_its_iterator(x, q):
    q.append(2)
    it = iter(q)
    next(it)
    q[0] = it
    kept = [it]
    print(end="")
    return next(kept[0]), q[0] is it


def containers_that_hold_their_iterators(x):
    l = [1, 2, 3]
    it = iter(l)
    l.append(it)
    next(it)
    d = {"a": 1}
    d["a"] = iter(d)
    thing = Thing()
    thing.it, thing.n = None, 1
    names = iter(thing.__dict__)
    next(names)
    thing.it = names
    print(end="")
    return l[3] is it, next(it), next(d["a"]), next(thing.it), thing.it is names


def over_subclasses(x):
    l, d, s = ListOf([1, 2, 3]), DictOf(a=1, b=2), SetOf([1, 2])
    it, keys, rest = iter(l), iter(d), iter(s)
    next(it), next(keys), next(rest)
    print(end="")
    l.append(4)
    d["a"] = 5
    found = list(it), next(keys), next(rest)
    try:
        d["c"] = 1
        next(keys)
    except RuntimeError as error:
        return found, str(error)


def iterators_of_groupby(x):
    out = []
    for key, group in itertools.groupby((x * torch.tensor([0, 0, 1, 1, 0])).tolist()):
        out.append((key, len(list(group))))
        if key:
            print(end="")
    return out


def iterators_of_itertools(x):
    l = [3, 1, 2]
    it = iter(l)
    first, second = itertools.tee(it)
    next(first)
    chained, part, pairs = itertools.chain(l, it), itertools.islice(l, 1, None), None
    next(chained)
    pairs = itertools.product(l, [1, 2])
    next(pairs)
    l.append(9)
    print(end="")
    return list(first)[:2], list(second)[:3], list(chained), list(part), list(pairs)


def nested_loops(x):
    out, seen = [], []
    for name, other in zip("ab", reversed(["c", "d"]), strict=True):
        out.append(name + other)
    for a in out:
        for b in out:
            seen.append(a + b)
            if b == "bc":
                print(a)
    return seen


#: (program, graphs, operations, more arguments)
ITERATORS = [
    (list_between_two_breaks, 2, 4), (over_an_argument_that_grows, 2, 2, []),
    (beyond_a_list_that_shrank, 2, 2), (shared_by_others, 2, 2, []),
    (kept_in_attributes_and_slots, 2, 2, {}), (dict_that_holds_its_iterators, 2, 2, {}),
    (deque_that_holds_its_iterator, 2, 2, collections.deque([1])),
    (containers_that_hold_their_iterators, 2, 2), (over_subclasses, 2, 2),
    (iterators_of_groupby, 2, 4), (iterators_of_itertools, 2, 2),
    (nested_loops, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("case", ITERATORS, ids=lambda case: case[0].__name__)
def test_iterators_over_breaks(case):
    program, graphs, ops, *args = case
    check_between(program, X, *args, graphs=graphs, ops=ops)


def test_assigning_to_a_deque_does_not_disturb_iterators():
    def assign(x, q, it):
        q[1] = x + 1
        q[-1] = 5
        return x

    def run(function):
        q = collections.deque([1, 2, 3])
        it = iter(q)
        next(it)
        function(X, q, it)
        return list(it)

    assert run(framejit.compile(assign, backend="eager")) == run(assign)


# -- things that refer to each other, and values that are one object -------------------------------


def tuples_in_their_parts(x):
    a, c, thing, q = [], {}, Thing(), collections.deque()
    b = (a,)
    a.append(b)
    d = (c, b)
    c["d"] = d
    e = (thing,)
    thing.e = e
    f = (q,)
    q.append(f)
    if x is not None:
        print(end="")
    return a[0] is b, b[0] is a, c["d"] is d, d[0] is c, thing.e is e, q[0] is f, d[1] is b


def cycles_that_are_returned(x):
    p, thing = [], Thing()
    made = functools.partial(max, p)
    error, method, pair = ValueError(p), p.append, zip(p, p)
    p += [made, error, method, pair, (thing,)]
    thing.p = p
    return p[0] is made, p[1] is error, p[2] is method, p[3] is pair, thing.p is p


def functions_in_their_defaults(x):
    d = {}

    def f(a=d):
        return a

    d["f"] = f
    l = [f]
    l.append(l)

    def g():
        return l

    l.append(g)
    print(end="")
    return f() is d, d["f"] is f, l[2]() is l, l[1] is l


def existing_list_of_its_own_exception(x, given=None):
    p = [1] if given is None else given
    print(end="")
    error = ValueError(p)
    p.append(error)
    return p[-1] is error, error.args[0] is p, x + 1


@pytest.mark.parametrize("program, graphs", [
    (tuples_in_their_parts, 2), (cycles_that_are_returned, 1), (functions_in_their_defaults, 2),
])  # fmt: skip
def test_things_that_refer_to_each_other(program, graphs):
    check_between(program, X, graphs=graphs, ops=2)


def test_an_exception_in_the_list_that_it_was_made_with():
    check(existing_list_of_its_own_exception, X, graphs=1, ops=1)
    check(existing_list_of_its_own_exception, X, [2], graphs=1, ops=1)


def test_values_are_made_once():
    def made(x):
        t, f, s = (1, [2]), [].append, slice(1, 2)
        parts = [t, f, s, t.index, Key(1).__eq__, torch.Size([1]), frozenset([Key(2)]), range(3)]
        return parts, list(parts), x + 1

    first, second, _ = framejit.compile(made, backend="eager")(X)
    assert [a is b for a, b in zip(first, second, strict=True)] == [True] * 8


# -- subclasses with methods of their own ----------------------------------------------------------


class Loud:
    """Prints what it is asked."""

    def __iter__(self):
        print("iter")
        return super().__iter__()

    def __len__(self):
        print("len")
        return super().__len__()

    def __setitem__(self, *args):
        print("setitem")
        super().__setitem__(*args)

    def __delitem__(self, *args):
        print("delitem")
        super().__delitem__(*args)

    def clear(self):
        print("clear")
        super().clear()

    def extend(self, items):
        print("extend")
        super().extend(items)

    def append(self, item):
        print("append")
        super().append(item)

    def add(self, item):
        print("add")
        super().add(item)

    def update(self, *items):
        print("update")
        super().update(*items)

    def keys(self):
        print("keys")
        return super().keys()


class LoudList(Loud, list):
    pass


class LoudDeque(Loud, collections.deque):
    pass


class LoudDict(Loud, dict):
    pass


class LoudOrdered(Loud, collections.OrderedDict):
    pass


class LoudDefault(Loud, collections.defaultdict):
    pass


class LoudCounter(Loud, collections.Counter):
    pass


class LoudSet(Loud, set):
    pass


def _content(obj):
    base = next(b for b in type(obj).__mro__[2:] if b.__module__ in ("builtins", "collections"))
    return list(base.__iter__(obj)) if not isinstance(obj, dict) else list(dict.items(obj))


@pytest.mark.parametrize("kind", [LoudDict, LoudOrdered, LoudDefault, LoudCounter])
def test_dicts_are_written_by_the_base_class(kind):
    def change(x, d):
        d["b"] = x + 1
        del d["a"]
        d["c"] = 1
        print("done")

    def run(function):
        d = kind()
        dict.update(d, a=1)
        if isinstance(d, collections.OrderedDict):
            collections.OrderedDict.__setitem__(d, "a", 1)
        function(X, d)
        return _content(d)

    compiled = framejit.compile(change, backend="eager")
    assert run(compiled) == run(change)


@pytest.mark.parametrize("kind", [LoudList, LoudDeque, LoudSet, LoudDict])
def test_only_the_program_calls_overridden_methods(kind, capsys):
    def change(x, c):
        if isinstance(c, dict):
            dict.__setitem__(c, "b", 1)
            dict.__delitem__(c, "a")
            dict.clear(c)
            dict.__setitem__(c, "d", x + 1)
        elif isinstance(c, set):
            set.add(c, 5)
            set.discard(c, 1)
        else:
            base = list if isinstance(c, list) else collections.deque
            base.append(c, 2)
            base.clear(c)
            base.append(c, 3)
        print("done")
        return x + 1

    def run(function):
        c = kind([("a", 1)]) if issubclass(kind, dict) else kind([1])
        capsys.readouterr()
        function(X, c)
        return _content(c), capsys.readouterr().out

    assert run(framejit.compile(change, backend="eager")) == run(change)
