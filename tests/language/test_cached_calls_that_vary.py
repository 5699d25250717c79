"""Functions under functools.lru_cache that are called with sizes: one graph serves all sizes after
the first, and caches hold, count and evict what they would in plain Python."""

from __future__ import annotations

import operator
from functools import cache, lru_cache, partial

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend, Outcome, captured_again, compare_outcomes
from framejit import config
from framejit.interpreter.forced import forced_break, noted

SIZES = (4, 6, 8, 6, 10, 4, 7, 9, 3)


class Recipe:
    """What a library makes of a pattern once, and hands to a function under a cache."""

    def __init__(self, order):
        self.order = order
        self.last = {"name": "last"}


class Shared:
    """What a program and its cached functions use."""

    def __init__(self, maxsize=None, typed=False):
        self.recipe, self.factor = Recipe([1, 0]), [2]
        self.norm = nn.BatchNorm1d(3).train()
        self.calls = 0

        @lru_cache(maxsize, typed)
        def lengths(recipe, shape, extra=()):
            found = [shape[place] for place in recipe.order]
            return found, recipe.order, {0: shape[0] * 2}, None, len(shape)

        @lru_cache(maxsize, typed)
        def half(n):
            return [n // 2, n - n // 2]

        @lru_cache(maxsize, typed)
        def scaled(n, by):
            return n * by * self.factor[0]

        @lru_cache(maxsize)
        def outer(n):
            return half(n)[0] + scaled(n, 3), (n, "n")

        self.lengths, self.half, self.scaled, self.outer = lengths, half, scaled, outer

    @property
    def infos(self):
        return [f.cache_info() for f in (self.lengths, self.half, self.scaled, self.outer)]


def read_only(s, x):
    sizes, order, added, nothing, count = s.lengths(s.recipe, x.shape)
    return x.permute(order).reshape(sizes) * added[0] * count, nothing


def handed_out(s, x):
    return x + 1, s.half(x.shape[0]), s.lengths(s.recipe, x.shape, extra=(x.shape[0], "n"))


def kept(s, x):
    s.kept = [s.half(x.shape[0]), s.half(x.shape[0])]
    return x * s.half(x.shape[0])[0], s.kept[0] is s.kept[1]


def nested(s, x):
    total, pair = s.outer(x.shape[0])
    return x * total, pair, s.half(x.shape[0])[1], s.outer(x.shape[0])[1] is pair


def in_order(s, x):
    """Calls with constants among those with sizes."""
    n = x.shape[0]
    return x * s.scaled(3, 2) * s.scaled(n, 2) * s.scaled(4, 2) * s.scaled(n + 1, 2)


def without_gradients(s, x):
    with torch.no_grad():
        y = x.detach() * s.half(x.shape[0])[0]
    return y + x


def after_writing_to_buffers(s, x):
    y = s.norm(x)
    s.calls += 1
    return y.permute(s.lengths(s.recipe, x.shape)[1]) * s.half(x.shape[0])[1], s.calls


def changed_later(s, x):
    y = x * s.scaled(x.shape[0], 2)
    s.factor.append(x.shape[0])
    return y


ONE = [
    (read_only, 4), (handed_out, 1), (kept, 1), (nested, 1), (in_order, 4),
    (without_gradients, 5), (after_writing_to_buffers, 4), (changed_later, 1),
]  # fmt: skip


def run(program, sizes=SIZES, between=lambda s, n: None, **options):
    """Both ways, on fresh caches: outcomes and caches are the same after each call."""
    plain, ours = Shared(**options), Shared(**options)
    backend = CountingBackend()
    compiled = framejit.compile(partial(program, ours), backend=backend)
    graphs = []
    with config.patch(raise_internal_errors=True):
        for n in sizes:
            x = torch.arange(n * 3.0).reshape(n, 3)
            for side in (plain, ours):
                between(side, n)
            expected = Outcome(partial(program, plain), (x.clone(),), {})
            compare_outcomes(expected, Outcome(compiled, (x.clone(),), {}))
            assert ours.infos == plain.infos
            graphs.append(len(backend.graphs))
    return graphs, backend, ours


@pytest.mark.parametrize(("program", "operations"), ONE, ids=lambda v: getattr(v, "__name__", ""))
def test_one_graph_for_all_sizes(program, operations):
    graphs, backend, _ = run(program)
    assert graphs == [1] + [2] * (len(SIZES) - 1)
    assert sum(n.op.startswith("call") for n in backend.graphs[0].graph.nodes) == operations


@pytest.mark.parametrize("program", [program for program, _ in ONE])
@pytest.mark.parametrize("maxsize", [1, 2, 3])
def test_caches_evict_what_they_would(program, maxsize):
    graphs, _, _ = run(program, maxsize=maxsize)
    assert graphs[-1] > 0


@pytest.mark.parametrize("program", [program for program, _ in ONE])
def test_captures_that_come_to_nothing_count_no_calls(program):
    with captured_again():
        run(program, SIZES[:5])


@pytest.mark.parametrize("program", [program for program, _ in ONE])
def test_calls_are_counted_once_wherever_the_frame_is_cut(program):
    with noted() as where:
        run(program, SIZES[:3])
    for index in list(where.executed[program.__code__])[::5]:
        with forced_break(program.__code__, index):
            run(program, SIZES[:3])


def test_results_are_the_objects_that_the_caches_hold():
    s = Shared()
    backend = CountingBackend()
    compiled = framejit.compile(partial(handed_out, s), backend=backend)
    for n in SIZES:
        x = torch.ones(n, 3)
        _, half, whole = compiled(x)
        assert half is s.half(n) and whole is s.lengths(s.recipe, x.shape, extra=(n, "n"))
        assert whole[1] is s.recipe.order
    assert len(backend.graphs) == 2


def stale(s, n):
    """Others have changed what the caches hold, for some sizes."""
    if n in (6, 7):
        s.half(n)[0] = 50
        s.lengths(s.recipe, torch.Size((n, 3)))[2][0] = 100


@pytest.mark.parametrize("program", [read_only, handed_out, kept, nested, after_writing_to_buffers])
def test_what_a_cache_holds_counts_and_not_what_would_be_computed(program):
    run(program, (4, 5, 8, 6, 10, 6, 7, 9, 7, 11), stale)


def rescaled(s, n):
    s.factor[0] = n % 4 + 1


@pytest.mark.parametrize("program", [nested, in_order])
def test_results_that_are_older_than_what_they_were_computed_of(program):
    run(program, (4, 5, 8, 4, 9, 5, 8, 12, 4), rescaled)


def test_results_of_equal_arguments_of_other_classes():
    def mixed(s, x):
        n = x.shape[0]
        return x * s.scaled(n, 2), s.scaled(n, 2.0), s.scaled(n, True)

    for typed in (False, True):
        run(mixed, typed=typed)

    def before(s, n):
        if n % 2:
            s.scaled(float(n), 3), s.half(float(n))

    run(nested, (4, 5, 6, 7, 8, 9), before)


def changes_a_result(s, x):
    found = s.half(x.shape[0])
    found.append(x.shape[0])
    s.lengths(s.recipe, x.shape)[2][1] = 5
    return x * found[0], len(found), s.lengths(s.recipe, x.shape)[2]


def changes_what_is_read(s, x):
    s.recipe.order = s.recipe.order[::-1]
    sizes = s.lengths(s.recipe, x.shape)[0]
    return x.permute(s.recipe.order), sizes


def changes_what_an_inner_one_reads(s, x):
    s.factor.append(x.shape[0])
    y = x * s.outer(x.shape[0])[0]
    s.factor.pop()
    s.factor[0] += 1
    return y, s.scaled(x.shape[0], 5)


def compares(s, x):
    n = x.shape[0]
    one, other = s.half(n), s.half(n + n - n)
    return x + 1, one is other, one is s.recipe.order, one is list(one), one == other


def raises(s, x):
    @cache
    def even(n):
        if n % 2:
            raise ValueError(n)
        return n // 2

    try:
        return x * s.half(x.shape[0] // (x.shape[0] % 7))[0] * even(4)
    except ZeroDivisionError as error:
        return x, str(error)


@pytest.mark.parametrize(
    "program",
    [changes_a_result, changes_what_is_read, changes_what_an_inner_one_reads, compares, raises],
)
@pytest.mark.parametrize("maxsize", [None, 2])
def test_where_the_graph_ends_rather_than_guess(program, maxsize):
    graphs, _, _ = run(program, maxsize=maxsize)
    assert graphs[-1] > 0


def test_a_graph_that_writes_to_its_inputs_runs_after_the_caches_were_asked():
    def program(s, x):
        sizes = s.half(x.shape[0])
        x.mul_(sizes[0])
        return x + sizes[1], s.norm(x)

    run(program, (4, 5, 8, 6, 10, 6, 7, 9), stale)


def test_gradients_are_let_go_of_after_the_caches_were_asked():
    def program(s, x):
        weight = s.norm.weight
        before = None if weight.grad is None else weight.grad * 2
        weight.grad = None
        loss = (x * weight * s.half(x.shape[0])[0]).sum()
        loss.backward()
        s.norm.running_mean.add_(1)
        return loss.detach(), before, weight.grad.clone()

    run(program, (4, 5, 8, 6, 10, 5, 7, 9, 11), stale)


def test_functions_that_raise_for_some_sizes():
    def make():
        @lru_cache(8)
        def chunk(n, by):
            if n % by:
                raise ValueError(f"{n} by {by}")
            return n // by

        def program(x):
            try:
                return x.reshape(2, -1) * chunk(x.shape[0], 2)
            except ValueError as error:
                return x + 1, str(error), type(error.__context__)

        return program, chunk

    (eager, one), (traced, other) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for n in (4, 6, 5, 8, 7, 9, 10):
        x = torch.ones(n)
        compare_outcomes(Outcome(eager, (x,), {}), Outcome(compiled, (x,), {}))
        assert one.cache_info() == other.cache_info()
    assert 2 <= len(backend.graphs) <= 5


def test_tuples_of_sizes_as_arguments():
    def make():
        @lru_cache
        def area(size, name):
            return size[0] * size[1], name

        return lambda x, size: (x * area(size, "n")[0], area(size, "n")), area

    (eager, one), (traced, other) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend, fullgraph=True)
    x = torch.ones(3)
    for n in (4, 6, 5, 8, 4):
        compare_outcomes(Outcome(eager, (x, (n, 3)), {}), Outcome(compiled, (x, (n, 3)), {}))
        assert one.cache_info() == other.cache_info()
    assert len(backend.graphs) == 2 and backend.ops == 3


CHANGES = {
    "append": lambda a, b: a.append(1), "pop": lambda a, b: a.pop(), "sort": lambda a, b: a.sort(),
    "reverse": lambda a, b: a.reverse(), "clear": lambda a, b: a.clear(),
    "setitem": lambda a, b: a.__setitem__(0, 5), "slice": lambda a, b: a.__delitem__(slice(1)),
    "iadd": lambda a, b: operator.iadd(a, [3]), "imul": lambda a, b: operator.imul(a, 2),
    "update": lambda a, b: b.update({4: 5}), "ior": lambda a, b: operator.ior(b, {4: 5}),
    "setdefault": lambda a, b: b.setdefault(7, a), "popitem": lambda a, b: b.popitem(),
    "through another name": lambda a, b: [a][0].extend(b),
    "copies": lambda a, b: (a[:].append(1), list(a).reverse(), b.copy().update({9: 9}), a + [1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_results_are_seen_by_later_calls(name):
    def program(s, x):
        found = s.lengths(s.recipe, x.shape)
        y = x * found[0][0]
        made = CHANGES[name](found[0], found[2])
        later = s.lengths(s.recipe, x.shape)
        return y + 1, found, later, later is found, made if type(made) is int else None

    graphs, _, _ = run(program, (4, 6, 8, 6, 4, 10))
    assert graphs[-1] >= 2 and (name != "copies" or graphs[-1] == 2)


def test_functions_that_look_at_numbers_are_called_between_graphs():
    def make():
        names = {n: n * 2 for n in range(40)}

        @cache
        def looked_up(n):
            return names[n]

        return lambda x: (x + 1) * looked_up(x.shape[0]), looked_up

    (eager, one), (traced, other) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for n in range(3, 12):
        x = torch.ones(n)
        compare_outcomes(Outcome(eager, (x,), {}), Outcome(compiled, (x,), {}))
        assert one.cache_info() == other.cache_info()
    assert len(backend.graphs) <= 5
