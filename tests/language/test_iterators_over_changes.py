"""Loops with a break over containers that were changed before, or are changed meanwhile."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque

import pytest
import torch

from checking import check

x = torch.ones(2)


class UserDict(dict):
    pass


class Bag:
    pass


def letters():
    return {"a": 1, "b": 2, "c": 3}


def list_that_is_popped(x, d):
    d.pop("a")
    for v in d.values():
        if x.sum() > 0:
            x = x + v
    return x


def list_that_is_added_to(x, d):
    d["k"] = 1
    for k in d:
        print(k)
        x = x + 1
    return x


def old_value_is_kept(x, d):
    old = d["a"]
    d["a"] = 7
    for i, (k, v) in enumerate(d.items()):
        print(i, k, v, old)
        x = x + v
    d["z"] = old
    return x, old


def deque_that_changes(x, d):
    d.append(3)
    for v in d:
        print(v)
        x = x + v
    return x


def set_that_grows(x):
    s = {1}
    try:
        for v in s:
            s.add(v + 1)
            print(v)
    except RuntimeError as error:
        print(error)
    return x + 1, s


def dict_that_grows(x):
    d = {1: 1}
    try:
        for v in d:
            d[v + 1] = 1
            print(v)
    except RuntimeError as error:
        print(error)
    return x + 1, d


def deque_that_grows(x):
    d = deque([1])
    try:
        for v in d:
            d.append(2)
            print(v)
    except RuntimeError as error:
        print(error)
    return x + 1, d


def attributes_that_change(x, bag):
    bag.a = 1
    bag.b = x.shape[0]
    for k, v in vars(bag).items():
        print(k)
        x = x + v
    return x


def iterator_that_is_held(x, d):
    d["q"] = 1
    it = iter(d.items())
    print("p")
    return x + 1, list(it)


def zip_over_lists_that_change(x, d):
    del d["a"]
    d.update(b=3, c=4)
    pairs = zip(range(9), d.items(), strict=False)
    print("go")
    for i, (k, v) in pairs:
        x = x + i * v
        print(k)
    return x


def generator_over_a_list_that_changes(x, d):
    old = d["a"]
    d["a"] = 5
    g = ((k, v, old) for k, v in d.items())
    print(next(g))
    x = x * 2
    print(list(g))
    return x


def modules_that_change(x, m):
    m.append(torch.nn.Tanh())
    for name, child in m.named_children():
        print(name)
        x = child(x)
    return x


def what_came_before_the_error(x):
    found = [[], set(), deque(), {}]
    for one in found:
        pairs = ((i, 1 / (1 - i)) for i in range(3))
        try:
            one.update(pairs) if hasattr(one, "update") else one.extend(pairs)
        except ZeroDivisionError as error:
            print(error)
    try:
        found[0] += (1 / (1 - i) for i in range(3))
    except ZeroDivisionError:
        pass
    return x + 1, found


def one_more_is_asked_for(x):
    asked = []

    def numbers():
        for i in range(5):
            asked.append(i)
            yield i

    try:
        a, b = numbers()
    except ValueError as error:
        print(error)
    a, b = (i for i in range(2))
    return x + 1, asked, a, b


def elements_that_look_at_the_list(x):
    numbers, last = [], deque(maxlen=2)
    numbers.extend(len(numbers) for _ in range(3))
    last.extend(i for i in range(4))
    last.extendleft(i for i in range(3))
    numbers.extend(numbers)
    return x + 1, numbers, last


PROGRAMS = [
    (what_came_before_the_error, None, 1),
    (one_more_is_asked_for, None, 1),
    (elements_that_look_at_the_list, None, 1),
    (list_that_is_popped, letters, 3),
    (list_that_is_popped, lambda: Counter(letters()), 3),
    (list_that_is_added_to, lambda: OrderedDict(a=1), 2),
    (list_that_is_added_to, lambda: defaultdict(int, a=1), 2),
    (list_that_is_added_to, lambda: UserDict(a=1), 2),
    (old_value_is_kept, letters, 3),
    (deque_that_changes, lambda: deque([1]), 2),
    (set_that_grows, None, 1),
    (dict_that_grows, None, 1),
    (deque_that_grows, None, 1),
    (attributes_that_change, Bag, 2),
    (iterator_that_is_held, letters, 1),
    (zip_over_lists_that_change, letters, 2),
    (generator_over_a_list_that_changes, letters, 1),
    (modules_that_change, lambda: torch.nn.Sequential(torch.nn.ReLU()), 2),
]


@pytest.mark.parametrize(("program", "made", "graphs"), PROGRAMS)
def test_program(program, made, graphs) -> None:
    check(program, x, *([made()] if made else []), graphs=graphs)


@pytest.mark.parametrize("at", ["a", "b", "c"])
@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_an_ordered_dict_that_grows_is_looked_at_one_key_ahead(kind, at):
    def grow(x, d):
        seen = []
        try:
            for key in d:
                seen.append(key)
                if key == at:
                    d["new"] = x + 1
        except RuntimeError:
            seen.append("changed")
        return seen, d

    check(grow, x, kind(letters()), graphs=1, ops=1)
