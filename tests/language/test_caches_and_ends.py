"""State that Python keeps beside a program: caches of functions, values of enum members, builtins
that somebody replaces, and objects that do something when they go."""

from __future__ import annotations

import builtins
import enum
import functools
from unittest import mock

import pytest
import torch

import framejit
from checking import CountingBackend, check

X = torch.arange(3.0)


def cached(maxsize=2, typed=False):
    """A cached function, and the list of what it was called with."""
    calls = []

    @functools.lru_cache(maxsize=maxsize, typed=typed)
    def twice(n, *more, **named):
        calls.append(n)
        return n * 2

    return twice, calls


def evicted_results(wrap):
    twice, calls = cached()
    call = wrap(lambda x, n: x + twice(n))
    return [call(X, n) for n in (1, 1, 2, 3, 1, 1, 3, 2)], calls, twice.cache_info()


def function_that_reads_nothing(wrap):
    @functools.lru_cache(maxsize=2)
    def twice(n):
        return n * 2

    call = wrap(lambda x, n: x + twice(n))
    return [call(X, n) for n in (1, 1, 2, 3, 1, 1, 3, 2)], twice.cache_info()


def identity_after_eviction(wrap):
    @functools.lru_cache(maxsize=1)
    def boxed(n):
        return [n]

    call = wrap(lambda x, n: (x + 1, boxed(n)[0]))
    call(X, 1)
    first = boxed(1)
    call(X, 2)
    call(X, 1)
    return boxed(1) is first, boxed.cache_info()


def keywords_and_types(wrap):
    twice, calls = cached(maxsize=8, typed=True)
    other, others = cached(maxsize=8)

    def program(x):
        return x + twice(1) + twice(1.0) + twice(1, k=2) + other(True) + other(1.0) + other(1)

    call = wrap(program)
    return call(X), call(X), calls, others, twice.cache_info(), other.cache_info()


def order_of_hits(wrap):
    twice, calls = cached()
    twice(1), twice(2)
    call = wrap(lambda x: x + twice(1))
    call(X), twice(3), call(X), twice(2)
    return calls, twice.cache_info()


def recursive_function(wrap):
    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    call = wrap(lambda x: x + fib(10))
    return call(X), call(X), fib.cache_info()


def cache_made_inside(wrap):
    calls = []

    def program(x):
        @functools.lru_cache(maxsize=1)
        def twice(n):
            calls.append(n)
            return n * 2

        return x + twice(1) + twice(1) + twice(2) + twice(1)

    return wrap(program)(X), calls


def cache_made_inside_and_returned(wrap):
    calls = []

    def program(x):
        @functools.cache
        def twice(n):
            calls.append(n)
            return n * 2

        return x + twice(1), twice

    result, twice = wrap(program)(X)
    return result, twice(1), calls, twice.cache_info()


def printing_function(wrap):
    @functools.cache
    def loud(n):
        print("computed", n)
        return n

    call = wrap(lambda x: (x + 1) * loud(2) + 1)
    return call(X), call(X), loud.cache_info()


def tensor_arguments(wrap):
    calls = []

    @functools.lru_cache(maxsize=4)
    def noted(t):
        calls.append("called")
        return t * 2

    same = torch.ones(3)
    call = wrap(lambda x: noted(x) + 1)
    return call(same), call(same), call(torch.zeros(3)), calls


def tensor_result(wrap):
    table = functools.lru_cache(lambda n: torch.ones(3) * n)

    def program(x):
        one, two = table(2), table(2)
        return x + one, one is two

    call = wrap(program)
    return call(X), call(X), table.cache_info(), table(2) is table(2)


def cache_cleared_between(wrap):
    twice, calls = cached()
    call = wrap(lambda x: x + twice(1))
    call(X), twice.cache_clear(), call(X)
    return calls, twice.cache_info()


def result_that_changes(wrap):
    @functools.lru_cache(maxsize=2)
    def boxed(n, *, k):
        return [n, k]

    def program(x, n):
        box = boxed(n, k=0)
        box.append(3)
        return x + 1, len(boxed(n, k=0))

    call = wrap(program)
    return [call(X, n) for n in (3, 2, 3, 5, 2)], boxed(2, k=0), boxed.cache_info()


def room_is_made_after_hits(wrap):
    twice, calls = cached(maxsize=2)

    def program(x):
        for n in (1, 2, 1, 3, 1, 2):
            x = x + twice(n)
        return x

    call = wrap(program)
    return call(X), call(X), calls, twice.cache_info()


def keeps_its_arguments(wrap):
    calls = []

    class Scale:
        @functools.lru_cache(maxsize=8)  # noqa: B019
        def by(self, t, n):
            calls.append(n)
            return t * n

    kept = Scale()

    def program(x):
        a, b = kept.by(x, 2), kept.by(x, 2)
        return a + 1, a is b, kept.by(x + 1, 3), Scale().by(1, 2)

    call = wrap(program)
    return call(X), call(X), calls, Scale.by.cache_info()


def no_room_at_all(wrap):
    twice, calls = cached(maxsize=0)
    call = wrap(lambda x: x + twice(1) + twice(1))
    return call(X), call(X), calls, twice.cache_info()


def enum_value_changes(wrap):
    class Mode(enum.Enum):
        FAST = 1

    call = wrap(lambda x: x * Mode.FAST.value)
    before = call(X)
    Mode.FAST._value_ = 5
    return before, call(X)


def end_at_del(wrap):
    log = []

    class Noted:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    def program(x, n):
        noted = Noted(n)
        y = x + noted.n
        del noted
        log.append("after")
        return y * 2

    call = wrap(program)
    return call(X, 5), call(X, 5), log


def end_at_rebinding(wrap):
    log = []

    class Noted:
        def __del__(self):
            log.append("gone")

    def program(x):
        for i in range(3):
            noted = Noted()  # noqa: F841 - its end is what counts
            log.append(i)
            x = x + 1
        return x

    return wrap(program)(X), log


def end_of_a_callee(wrap):
    log = []

    class Noted:
        def __del__(self):
            log.append("gone")

    def inner(x):
        noted = [Noted()]  # noqa: F841 - its end is what counts
        return x + 1

    def program(x):
        y = inner(x)
        log.append("after")
        return y * 2

    return wrap(program)(X), log


def recursive_for_numbers_that_vary(wrap):
    @functools.lru_cache(maxsize=4)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    call = wrap(lambda x, n: x * fib(n) + fib(1))
    return [(call(X, n), fib.cache_info()) for n in (3, 6, 6, 9, 4)]


def nested_for_numbers_that_vary(wrap):
    @functools.cache
    def inner(n):
        return n + 1

    @functools.cache
    def outer(n):
        return inner(n) + inner(n) + inner(2)

    call = wrap(lambda x, n: x * outer(n) + inner(n) + inner(2) + outer(n))
    return [(call(X, n), outer.cache_info(), inner.cache_info()) for n in (3, 6, 6, 9, 4)]


def made_with_and_without_a_decorator(wrap):
    def program(x):
        made = functools.lru_cache(lambda n: n), functools.lru_cache(maxsize=3)(lambda n: n)
        return x + 1, [vars(f)["cache_parameters"].__qualname__ for f in made], made

    result, names, made = wrap(program)(X)
    after = [vars(f)["cache_parameters"].__qualname__ for f in made]
    return result, names, after, [f.cache_parameters() for f in made]


SCALES = [2]


def scaled(n):
    return n * len(SCALES)


def stale_for_numbers_that_vary(wrap):
    """A cache holds what its function read when it ran, at whatever depth."""
    SCALES[:] = [2]
    plain, read = functools.cache(lambda n: n + len(SCALES)), SCALES
    functions = [
        plain, functools.cache(scaled), functools.cache(lambda n, given=SCALES: n + len(given)),
        functools.cache(lambda n: n + len(read)), functools.cache(lambda n: plain(n) + 1),
        functools.cache(lambda n: (lambda: n + len(SCALES))()),
    ]  # fmt: skip
    found = []
    for function in functions:
        call = wrap(lambda x, n, f=function: (SCALES.append(n), x + f(n))[1])
        found += [(call(X, n), function.cache_info()) for n in (3, 4, 3, 5, 4)]
    return found


def computed_for_numbers_that_vary(wrap):
    """What reads nothing is computed in the graph."""

    @functools.cache
    def mixed(n):
        return max(n, 2) * 2

    call = wrap(lambda x, n: x + mixed(n) - mixed(n))
    return [(call(X, n), mixed.cache_info()) for n in (3, 5, 3, 7)]


#: (program, graphs, operations) of all calls together
PROGRAMS = [
    (evicted_results, 3, 3), (function_that_reads_nothing, 2, 3), (identity_after_eviction, 2, 2),
    (keywords_and_types, 6, 12), (order_of_hits, 1, 1), (recursive_function, 1, 1),
    (cache_made_inside, 1, 4), (cache_made_inside_and_returned, 1, 1), (printing_function, 3, 6),
    (tensor_arguments, 2, 2), (tensor_result, 1, 1), (cache_cleared_between, 1, 1),
    (enum_value_changes, 2, 2), (end_at_del, 2, 2), (end_at_rebinding, 3, 3),
    (end_of_a_callee, 2, 2), (result_that_changes, 3, 3),
    (room_is_made_after_hits, 4, 6), (keeps_its_arguments, 3, 4),
    (no_room_at_all, 2, 2), (recursive_for_numbers_that_vary, 6, 8),
    (nested_for_numbers_that_vary, 2, 11), (made_with_and_without_a_decorator, 1, 1),
    (stale_for_numbers_that_vary, 13, 13), (computed_for_numbers_that_vary, 2, 6),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs", "ops"), PROGRAMS)
def test_caches_and_ends_of_objects(program, graphs, ops) -> None:
    """The program says what it saw; the whole of it is compared."""
    counting = CountingBackend()

    def plainly():
        return program(lambda function: function)

    def compiled():
        return program(framejit.compile(backend=counting))

    with framejit.config.patch(raise_internal_errors=True):
        compared(plainly, compiled)
    assert (len(counting.graphs), counting.ops) == (graphs, ops)


def compared(plainly, compiled) -> None:
    from checking import Outcome, compare_outcomes

    compare_outcomes(Outcome(plainly, (), {}), Outcome(compiled, (), {}))


@pytest.mark.parametrize("name", ["len", "isinstance", "sorted", "abs", "tuple", "getattr"])
def test_a_builtin_is_replaced(name) -> None:
    """While somebody else's function replaces a builtin, plain Python runs what is not captured
    yet; what was captured is used again afterwards."""
    programs = {
        "len": lambda x: x * len([1, 2]), "isinstance": lambda x: x * isinstance(x, int),
        "sorted": lambda x: x * sorted([2, 1])[0], "abs": lambda x: x * abs(-2),
        "tuple": lambda x: x * tuple([3])[0], "getattr": lambda x: x * getattr(x, "q", 2),
    }  # fmt: skip
    program, counting = programs[name], CountingBackend()
    compiled, new = (
        framejit.compile(program, backend=counting),
        framejit.compile(lambda x: x + len((1, 2)), backend=counting),
    )
    answers = {"isinstance": lambda *_: True, "sorted": lambda *_: [7], "tuple": lambda *_: [9]}
    with framejit.config.patch(raise_internal_errors=True):
        before = compiled(X)
        with mock.patch.object(builtins, name, answers.get(name, lambda *_: 50)):
            expected, got = program(X), compiled(X)
            new_result = new(X)
        assert torch.equal(before, program(X)) and torch.equal(expected, got)
        assert torch.equal(compiled(X), before) and len(counting.graphs) == 1
        assert torch.equal(new_result, X + (50 if name == "len" else 2))
        assert torch.equal(new(X), X + 2) and len(counting.graphs) == 2


def test_print_may_be_replaced() -> None:
    """What framejit does not use itself is traced through like any other global."""
    lines = []
    counting = CountingBackend()

    def program(x):
        print("seen", x.shape[0])
        return x + 1

    compiled = framejit.compile(program, backend=counting)
    with mock.patch.object(builtins, "print", lambda *parts: lines.append(parts)):
        compiled(X)
    assert lines == [("seen", 3)] and len(counting.graphs) == 1
    check(program, X, graphs=1, ops=1)
