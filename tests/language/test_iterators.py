"""Iterators, generators and itertools in programs: eager and compiled agree."""

from __future__ import annotations

import functools
import itertools
import operator

import pytest
import torch

import framejit
from checking import check


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Sequence:
    def __getitem__(self, i):
        if i >= 3:
            raise IndexError
        return i * 2

    def __len__(self):
        return 3


def for_loops(x):
    total = x
    for i in range(3):
        total = total + i
    for i in range(10, 0, -4):
        total = total * i
    for letter in "ab":
        total = total + ord(letter)
    return total


def enumerate_and_zip(x):
    out = []
    for i, (a, b) in enumerate(zip([1, 2, 3], (x, x + 1)), start=5):
        out.append((i, a, b))
    return out, list(zip()), list(zip("ab", range(9), strict=False))


def zip_strict(x):
    out = []
    for lists in (([1], [1, 2]), ([1, 2], [1]), ([1], [1], [1, 2])):
        try:
            out.append(list(zip(*lists, strict=True)))
        except ValueError as error:
            out.append(str(error))
    return x, out


def map_and_filter(x):
    doubled = map(lambda t: t * 2, [x, x + 1])
    odd = filter(lambda n: n % 2, range(6))
    both = map(operator.add, [1, 2], [3, 4, 5])
    return list(doubled), list(odd), list(both), list(filter(None, [0, 1, "", "a"]))


def reversed_sequences(x):
    return list(reversed([x, 1, 2])), tuple(reversed(range(3))), [*reversed("abc")]


def list_that_grows_while_iterated(x):
    items = [1, 2]
    seen = []
    for item in items:
        seen.append(item)
        if item < 4:
            items.append(item + 2)
    return seen, x


def next_default(x):
    it = iter([1, x])
    a, b, c = next(it), next(it), next(it, "end")
    try:
        next(it)
    except StopIteration:
        d = "stopped"
    return a, b, c, d


def iter_with_sentinel(x):
    values = [3, 2, 1, 0, 5]
    return list(iter(lambda: values.pop(0), 0)), values, x


def half_consumed_iterators(x):
    it = iter([1, 2, 3, 4])
    first = [next(it), next(it)]
    rest = list(it)
    again = list(it)
    return first, rest, again, x


def iterators_that_are_returned(x):
    it = iter([1, 2, 3])
    next(it)
    pairs = zip([1, 2], "ab")
    next(pairs)
    return it, pairs, enumerate([7, 8], 3), reversed([1, 2]), iter(range(3)), x


def map_of_argument(x, items):
    return [y + x for y in map(lambda v: v * 2, items)]


def itertools_chain(x):
    chained = itertools.chain([1], (x,), "ab")
    nested = itertools.chain.from_iterable([[1, 2], [3]])
    return list(chained), list(nested)


def islice_count(x):
    return (
        list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.islice("abcdefg", 1, 6, 2)),
        list(zip(itertools.count(), "ab")),
        x,
    )


def product_combinations(x):
    return (
        list(itertools.product([0, 1], "ab")),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        [a + b for a, b in itertools.combinations([x, x + 1, x + 2], 2)],
        list(itertools.combinations_with_replacement("ab", 2)),
    )


def accumulate_of_numbers_and_tensors(x):
    return (
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([x, x, x], lambda a, b: a * b + 1)),
        list(itertools.accumulate([1, 2], initial=10)),
    )


def while_iterators(x):
    small = lambda v: v < 3  # noqa: E731
    return (
        list(itertools.takewhile(small, [1, 2, 3, 1])),
        list(itertools.dropwhile(small, [1, 2, 3, 1])),
        list(itertools.filterfalse(small, [1, 2, 3, 1])),
        x,
    )


def groupby_of_lists(x):
    words = ["apple", "avocado", "bean", "cherry", "corn"]
    return [(k, list(g)) for k, g in itertools.groupby(words, key=lambda w: w[0])], x


def other_functions_of_itertools(x):
    return (
        list(itertools.zip_longest([1, 2, 3], "a", fillvalue=None)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.compress("abcd", [1, 0, 1, 1])),
        list(itertools.islice(itertools.cycle([1, 2]), 5)),
        list(itertools.repeat(x, 2)),
    )


def tee_of_an_iterator(x):
    a, b = itertools.tee(iter([1, x]))
    return list(a), list(b)


def reduce_of_lists(x):
    total = functools.reduce(lambda a, b: a + b, [x, x * 2, x * 3])
    with_start = functools.reduce(operator.mul, [1, 2, 3], 10)
    try:
        functools.reduce(operator.add, [])
    except TypeError as error:
        return total, with_start, str(error)
    return None


def generator_expression(x):
    return sum(x * i for i in range(3)), any(i > 1 for i in range(3)), max(i for i in [1, 3, 2])


def generator_function(x):
    def steps(n):
        for i in range(n):
            received = yield x + i
            assert received is None

    return list(steps(3)), [*steps(2)], tuple(steps(0))


def user_iterator(x):
    return [x + n for n in Countdown(3)], sum(Countdown(2))


def getitem_protocol(x):
    s = Sequence()
    return list(s), [v for v in s], list(reversed(s)), len(s)


def tensor_iteration(x):
    return [row.sum() for row in x], list(zip(x, range(2))), len(x)


def unpack_tensor(x):
    a, b = x
    return a + b


def membership_in_an_iterator(x):
    it = iter([1, 2, 3])
    return 2 in it, list(it), x


def zip_partial_consumption(x):
    a, b = iter([1, 2, 3]), iter([4])
    return list(zip(a, b)), list(a), x


def module_list(x):
    layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
    for layer in layers:
        x = layer(x) + 1
    return x, len(layers)


def iteration_over_what_is_not_iterable(x):
    out = []
    for value in (5, None):
        try:
            for _ in value:
                pass
        except TypeError as error:
            out.append(str(error))
    return x, out


def break_and_else(x):
    out = []
    for i in range(5):
        if i == 2:
            continue
        if i == 4:
            break
        out.append(i)
    else:
        out.append("no")
    for _ in []:
        pass
    else:
        out.append("else")
    return x, out


def nested_functions_as_keys(x):
    table = {name: functools.partial(torch.mul, other=n) for n, name in enumerate("ab", 1)}
    return [table[key](x) for key in sorted(table)]


def break_inside_loop(x):
    total = x
    for i, (name, value) in enumerate({"a": 1, "b": 2}.items()):
        total = total + value
        print(name, i)
    return total


def break_with_live_iterators(x):
    it = zip([1, 2, 3], map(lambda v: v + 1, [4, 5, 6]))
    first = next(it)
    print("break")
    return first, list(it), x + 1


def break_in_key_function(x):
    def key(v):
        print("key", v)
        return -v

    return sorted([1, 3, 2], key=key), x + 1


def cmp_to_key(x):
    return sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)), x


#: (program, operations, more arguments)
CASES = [
    (for_loops, 8), (enumerate_and_zip, 1), (zip_strict, 0), (map_and_filter, 3),
    (reversed_sequences, 0), (list_that_grows_while_iterated, 0), (next_default, 0),
    (iter_with_sentinel, 0), (half_consumed_iterators, 0), (iterators_that_are_returned, 0),
    (map_of_argument, 2, [1, 2]), (itertools_chain, 0), (islice_count, 0),
    (product_combinations, 5), (accumulate_of_numbers_and_tensors, 4), (while_iterators, 0),
    (groupby_of_lists, 0), (other_functions_of_itertools, 0), (tee_of_an_iterator, 0),
    (reduce_of_lists, 4), (generator_expression, 6), (generator_function, 5), (user_iterator, 3),
    (getitem_protocol, 0), (tensor_iteration, 8), (unpack_tensor, 4),
    (membership_in_an_iterator, 0), (zip_partial_consumption, 0),
    (iteration_over_what_is_not_iterable, 0), (break_and_else, 0), (nested_functions_as_keys, 2),
    (cmp_to_key, 0),
]  # fmt: skip
#: (program, graphs, operations)
BREAKS = [
    (module_list, 1, 2), (break_inside_loop, 2, 2), (break_with_live_iterators, 1, 1),
    (break_in_key_function, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_program(case) -> None:
    function, ops, *args = case
    x = torch.arange(6.0).reshape(2, 3)
    check(function, x, *args, graphs=int(ops > 0), ops=ops, fullgraph=True)
    assert not framejit.counters["skipped"]


@pytest.mark.parametrize("function, graphs, ops", BREAKS, ids=[row[0].__name__ for row in BREAKS])
def test_program_with_breaks(function, graphs, ops) -> None:
    check(function, torch.arange(6.0).reshape(2, 3), graphs=graphs, ops=ops)


def test_classes_of_iterators_at_their_end():
    def finish(x):
        made = [
            iter(lambda: 0, 0), iter({1, 2}), iter({1: 2}), reversed([1]), iter({}.values()),
            reversed({1: 2}), iter(range(2)), iter("ab"), iter((1,)), map(abs, [1]),
        ]  # fmt: skip
        for iterator in made:
            list(iterator)
        print(end="")
        return x + 1, [type(iterator).__name__ for iterator in made]

    check(finish, torch.ones(2), graphs=1, ops=1)
