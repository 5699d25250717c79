"""Iterators, generators and itertools in programs: eager and compiled agree."""

from __future__ import annotations

import functools
import itertools
import operator

import pytest
import torch

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


def p01_for_loops(x):
    total = x
    for i in range(3):
        total = total + i
    for i in range(10, 0, -4):
        total = total * i
    for letter in "ab":
        total = total + ord(letter)
    return total


def p02_enumerate_zip(x):
    out = []
    for i, (a, b) in enumerate(zip([1, 2, 3], (x, x + 1)), start=5):
        out.append((i, a, b))
    return out, list(zip()), list(zip("ab", range(9), strict=False))


def p03_zip_strict(x):
    out = []
    for lists in (([1], [1, 2]), ([1, 2], [1]), ([1], [1], [1, 2])):
        try:
            out.append(list(zip(*lists, strict=True)))
        except ValueError as error:
            out.append(str(error))
    return x, out


def p04_map_filter(x):
    doubled = map(lambda t: t * 2, [x, x + 1])
    odd = filter(lambda n: n % 2, range(6))
    both = map(operator.add, [1, 2], [3, 4, 5])
    return list(doubled), list(odd), list(both), list(filter(None, [0, 1, "", "a"]))


def p05_reversed(x):
    return list(reversed([x, 1, 2])), tuple(reversed(range(3))), [*reversed("abc")]


def p06_list_grows_while_iterated(x):
    items = [1, 2]
    seen = []
    for item in items:
        seen.append(item)
        if item < 4:
            items.append(item + 2)
    return seen, x


def p07_next_default(x):
    it = iter([1, x])
    a, b, c = next(it), next(it), next(it, "end")
    try:
        next(it)
    except StopIteration:
        d = "stopped"
    return a, b, c, d


def p08_iter_with_sentinel(x):
    values = [3, 2, 1, 0, 5]
    return list(iter(lambda: values.pop(0), 0)), values, x


def p09_half_consumed(x):
    it = iter([1, 2, 3, 4])
    first = [next(it), next(it)]
    rest = list(it)
    again = list(it)
    return first, rest, again, x


def p10_returned_iterators(x):
    it = iter([1, 2, 3])
    next(it)
    pairs = zip([1, 2], "ab")
    next(pairs)
    return it, pairs, enumerate([7, 8], 3), reversed([1, 2]), iter(range(3)), x


def p11_map_of_argument(x, items):
    return [y + x for y in map(lambda v: v * 2, items)]


def p12_itertools_chain(x):
    chained = itertools.chain([1], (x,), "ab")
    nested = itertools.chain.from_iterable([[1, 2], [3]])
    return list(chained), list(nested)


def p13_islice_count(x):
    return (
        list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.islice("abcdefg", 1, 6, 2)),
        list(zip(itertools.count(), "ab")),
        x,
    )


def p14_product_combinations(x):
    return (
        list(itertools.product([0, 1], "ab")),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        [a + b for a, b in itertools.combinations([x, x + 1, x + 2], 2)],
        list(itertools.combinations_with_replacement("ab", 2)),
    )


def p15_accumulate(x):
    return (
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([x, x, x], lambda a, b: a * b + 1)),
        list(itertools.accumulate([1, 2], initial=10)),
    )


def p16_while_iterators(x):
    small = lambda v: v < 3  # noqa: E731
    return (
        list(itertools.takewhile(small, [1, 2, 3, 1])),
        list(itertools.dropwhile(small, [1, 2, 3, 1])),
        list(itertools.filterfalse(small, [1, 2, 3, 1])),
        x,
    )


def p17_groupby(x):
    words = ["apple", "avocado", "bean", "cherry", "corn"]
    return [(k, list(g)) for k, g in itertools.groupby(words, key=lambda w: w[0])], x


def p18_more_itertools(x):
    return (
        list(itertools.zip_longest([1, 2, 3], "a", fillvalue=None)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.compress("abcd", [1, 0, 1, 1])),
        list(itertools.islice(itertools.cycle([1, 2]), 5)),
        list(itertools.repeat(x, 2)),
    )


def p19_tee(x):
    a, b = itertools.tee(iter([1, x]))
    return list(a), list(b)


def p20_reduce(x):
    total = functools.reduce(lambda a, b: a + b, [x, x * 2, x * 3])
    with_start = functools.reduce(operator.mul, [1, 2, 3], 10)
    try:
        functools.reduce(operator.add, [])
    except TypeError as error:
        return total, with_start, str(error)
    return None


def p21_generator_expression(x):
    return sum(x * i for i in range(3)), any(i > 1 for i in range(3)), max(i for i in [1, 3, 2])


def p22_generator_function(x):
    def steps(n):
        for i in range(n):
            received = yield x + i
            assert received is None

    return list(steps(3)), [*steps(2)], tuple(steps(0))


def p23_user_iterator(x):
    return [x + n for n in Countdown(3)], sum(Countdown(2))


def p24_getitem_protocol(x):
    s = Sequence()
    return list(s), [v for v in s], list(reversed(s)), len(s)


def p25_tensor_iteration(x):
    return [row.sum() for row in x], list(zip(x, range(2))), len(x)


def p26_unpack_tensor(x):
    a, b = x
    return a + b


def p27_in_iterator(x):
    it = iter([1, 2, 3])
    return 2 in it, list(it), x


def p28_zip_partial_consumption(x):
    a, b = iter([1, 2, 3]), iter([4])
    return list(zip(a, b)), list(a), x


def p29_module_list(x):
    layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
    for layer in layers:
        x = layer(x) + 1
    return x, len(layers)


def p30_not_iterable(x):
    out = []
    for value in (5, None):
        try:
            for _ in value:
                pass
        except TypeError as error:
            out.append(str(error))
    return x, out


def p31_break_and_else(x):
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


def p32_nested_functions_as_keys(x):
    table = {name: functools.partial(torch.mul, other=n) for n, name in enumerate("ab", 1)}
    return [table[key](x) for key in sorted(table)]


def p33_break_inside_loop(x):
    total = x
    for i, (name, value) in enumerate({"a": 1, "b": 2}.items()):
        total = total + value
        print(name, i)
    return total


def p34_break_with_live_iterators(x):
    it = zip([1, 2, 3], map(lambda v: v + 1, [4, 5, 6]))
    first = next(it)
    print("break")
    return first, list(it), x + 1


def p35_break_in_key_function(x):
    def key(v):
        print("key", v)
        return -v

    return sorted([1, 3, 2], key=key), x + 1


def p36_cmp_to_key(x):
    return sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)), x


CASES = [
    p01_for_loops, p02_enumerate_zip, p03_zip_strict, p04_map_filter, p05_reversed,
    p06_list_grows_while_iterated, p07_next_default, p08_iter_with_sentinel, p09_half_consumed,
    p10_returned_iterators, (p11_map_of_argument, [1, 2]), p12_itertools_chain, p13_islice_count,
    p14_product_combinations, p15_accumulate, p16_while_iterators, p17_groupby,
    p18_more_itertools, p19_tee, p20_reduce, p21_generator_expression, p22_generator_function,
    p23_user_iterator, p24_getitem_protocol, p25_tensor_iteration, p26_unpack_tensor,
    p27_in_iterator, p28_zip_partial_consumption, p30_not_iterable, p31_break_and_else,
    p32_nested_functions_as_keys, p36_cmp_to_key,
]  # fmt: skip
BREAKS = [
    p29_module_list, p33_break_inside_loop, p34_break_with_live_iterators,
    p35_break_in_key_function,
]  # fmt: skip


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: (c[0] if isinstance(c, tuple) else c).__name__
)
def test_program(case) -> None:
    function, args = (case[0], case[1:]) if isinstance(case, tuple) else (case, ())
    check(function, torch.arange(6.0).reshape(2, 3), *args, fullgraph=True)


@pytest.mark.parametrize("function", BREAKS, ids=lambda f: f.__name__)
def test_program_with_breaks(function) -> None:
    check(function, torch.arange(6.0).reshape(2, 3))


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
