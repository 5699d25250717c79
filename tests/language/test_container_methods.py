"""Methods and operators of lists, dicts and sets, and of subclasses with methods of their own."""

from __future__ import annotations

import collections
import copy
import operator

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


def what_index_does_not_find(x):
    return x + 1, said(collections.deque([1]).index, 5), said([1].index, 5)


class LoudList(list):
    def __iter__(self):
        print("iter")
        return super().__iter__()

    def __reversed__(self):
        print("reversed")
        return super().__reversed__()


class LoudDict(dict):
    def __iter__(self):
        print("iter")
        return super().__iter__()

    def keys(self):
        print("keys")
        return super().keys()

    def items(self):
        print("items")
        return super().items()


class QuietDict(dict):
    def keys(self):
        print("keys")
        return super().keys()

    def __getitem__(self, key):
        print("item")
        return super().__getitem__(key)


def list_subclasses_with_their_own_iter(x):
    a, b = LoudList([1, 2])
    first, *rest = LoudList([1, 2])
    loop = [v for v in LoudList([3])]
    backwards = reversed(LoudList([1, 2, 3]))
    next(backwards)
    print("break")
    return x + a + b, first, rest, loop, list(backwards), tuple(LoudList([4]))


def dict_subclasses_with_their_own_keys(x):
    loud, quiet = LoudDict(a=1, b=2), QuietDict(a=1)
    walk = iter(loud)
    next(walk)
    print("break")
    made = {**loud}, {**quiet}, dict(**quiet), list(loud.items()), list(loud.keys())
    return x + 1, made, list(walk), [*loud]


class LoudSet(set):
    def __iter__(self):
        print("iter")
        return super().__iter__()


class LoudDeque(collections.deque):
    def __iter__(self):
        print("iter")
        return super().__iter__()


def existing_containers_are_looked_at(x, numbers, unique, queue):
    y = x + len(numbers) + len(unique) + len(queue)
    total = list.__getitem__(numbers, 0) + queue[0]
    for number in set.__iter__(unique):
        total = total + number
    walk = list.__iter__(numbers)
    next(walk)
    print("break")
    return y + total, next(walk)


def test_existing_containers_are_not_asked() -> None:
    check(
        existing_containers_are_looked_at,
        X,
        LoudList([1, 2]),
        LoudSet({1, 2}),
        LoudDeque([1, 2]),
        graphs=2,
        ops=4,
    )


def defaultdicts_without_a_factory(x):
    made = collections.defaultdict(list, a=[1]).fromkeys("ab", x)
    return x + 1, made, collections.defaultdict(None, {"b": 1}), collections.defaultdict(None)


class Keyed:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return key * 2


class KeysRaise:
    @property
    def keys(self):
        raise KeyError("keys")


def merged_mappings(x):
    return {**Keyed(), "c": 1}, said(lambda: {**KeysRaise()}), said(lambda: {**3}), dict(Keyed())


def slices_compared(x):
    one = slice(1, 2)
    return slice(1, 2) < slice(1, 3), one == slice(1, 2), one != 3, said(operator.lt, one, 3)


PairOfTwo = collections.namedtuple("PairOfTwo", "a b")


def copied_named_tuples(x):
    one, other = PairOfTwo([1], 2), PairOfTwo(1, 2)
    deep = copy.deepcopy(one)
    return deep, deep.a is one.a, copy.deepcopy(other) is other, type(deep).__name__


class Word(str):
    pass


class RowOf(tuple):
    pass


def operators_of_subclasses(x):
    return (
        () + RowOf([1]), type(() + RowOf([1])).__name__, said(operator.mul, "a", Word("b")),
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


def test_a_set_without_itself():
    def difference_update(x, seen):
        seen -= seen
        return x + len(seen), seen

    def symmetric_difference(x, seen):
        seen.symmetric_difference_update(seen)
        return x + len(seen), seen

    def intersection_and_union(x, seen):
        seen &= seen
        seen |= seen
        return x + len(seen), seen

    for function in (difference_update, symmetric_difference, intersection_and_union):
        check(function, torch.ones(2), {1, 2}, graphs=1, ops=1)


def setdefault_of_a_dict(x):
    d = {}
    d.setdefault("a", []).append(x)
    d.update(b=2)
    d.pop("b")
    return d, list(d.items())


#: (program, graphs, operations captured)
BETWEEN = [
    (merged_mappings, 1, 2), (keys_that_come_and_go, 2, 2), (copied_named_tuples, 2, 2),
    (slices_compared, 1, 2), (operators_of_subclasses, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (defaultdicts_without_a_factory, 1, 1), (what_index_does_not_find, 1, 1),
    (list_subclasses_with_their_own_iter, 1, 2), (dict_subclasses_with_their_own_keys, 1, 1),
    (setdefault_of_a_dict, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
