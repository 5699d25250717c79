"""Effects around graph breaks: mutations, identity and order are eager's; loops do not pile up.

The last part are the programs that `torch.compile` is known to get wrong; what a break costs is in
`test_cost_of_a_break.py`.
"""

from __future__ import annotations

import collections
import sys

import pytest
import torch

import framejit
from checking import CountingBackend, check
from framejit.report import events

X = torch.arange(6.0).reshape(2, 3)


# -- 1 mutations -----------------------------------------------------------------------------------

COUNTER = 0
TABLE: dict = {}


def writes_to_a_list_argument(x, log):
    log.append(x + 1)
    print(len(log))
    log.append(log[0] * 2)
    log[0] = None
    print(len(log))
    return log[1]


def writes_to_a_dict_argument(x, d):
    d["a"] = x + 1
    print(sorted(d))
    del d["old"]
    d["b"] = d["a"] * 2
    print(sorted(d))
    return d.setdefault("c", x - 1)


def writes_to_a_set_argument(x, s):
    s.add("new")
    print(sorted(s))
    s.discard("old")
    return x + len(s)


def writes_to_attributes(x, box):
    box.value = x + 1
    print(hasattr(box, "value"))
    box.value = box.value * 2
    del box.old
    print(hasattr(box, "old"))
    box.count += 1
    return box.value


def identity_of_a_list(x, log):
    alias = log
    log.append(1)
    print("break")
    alias.append(2)
    return log is alias, log, x + 1


def new_object_kept_in_two_places(x, d):
    made = [x + 1]
    d["a"] = made
    print("break")
    made.append(x + 2)
    return d["a"] is made, made


def identity_of_tensors(x, d):
    y = x + 1
    d["y"] = y
    print("break")
    return d["y"] is y, d["x"] is x, y


def read_after_break(x, log):
    log.append("before")

    def show():
        print(log)

    show()
    log.append("after")
    return x + len(log)


def cycle_of_containers(x, log):
    log.append(log)
    print("break")
    return log[-1] is log, x + 1


def attributes_of_a_function(x, log):
    def f():
        return x

    f.calls = 1
    print("break")
    f.calls += 1
    return f.calls, f() + 1


def cell_written_on_both_sides(x, log):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    bump()
    print("break", n)
    bump()
    log.append(bump)
    print("break", n)
    return x * n, log[-1]() + n


def mutation_then_error(x, log):
    log.append("one")
    y = x + 1
    print("break")
    log.append(y)
    raise ValueError("three")


def order_of_effects(x, log):
    print("a", log)
    log.append(1)
    print("b", log)
    y = x + len(log)
    log.append(2)
    print("c", log)
    log.clear()
    print("d", log)
    return y


def tensor_written_in_place(x, log):
    x.add_(1)
    print(x.sum().item())
    x.mul_(2)
    log.append(x)
    return x + 1


def view_written_across_a_break(x, log):
    row = x[0]
    print("break")
    row.add_(1)
    log.append(row)
    return x * 2


def writes_to_a_deque_and_a_defaultdict(x, log):
    q = collections.deque([x], maxlen=2)
    d = collections.defaultdict(list)
    d["k"].append(x + 1)
    print("break")
    q.append(x * 2)
    q.append(x * 3)
    d["k"].append(x + 2)
    d["new"].append(1)
    return q, d


def sort_and_reverse(x, log):
    log.extend([3, 1, 2])
    log.sort()
    print(log)
    log.reverse()
    print(log)
    return x + log[0]


def exception_object_identity(x, log):
    try:
        raise ValueError(x + 1)
    except ValueError as error:
        log.append(error)
        print("break")
        same = log[-1] is error
    return same, x * 2


class Account:
    def __init__(self):
        self.old, self.count = 1, 0


#: (program, what it changes, graphs, operations)
MUTATIONS = [
    (writes_to_a_list_argument, [], 2, 2), (writes_to_a_dict_argument, {"old": 1}, 3, 3),
    (writes_to_a_set_argument, {"old"}, 1, 1), (writes_to_attributes, Account(), 2, 2),
    (identity_of_a_list, [], 1, 1), (new_object_kept_in_two_places, {}, 2, 2),
    (identity_of_tensors, {"x": None}, 1, 1), (read_after_break, [], 1, 1),
    (cycle_of_containers, [], 1, 1), (attributes_of_a_function, [], 1, 1),
    (cell_written_on_both_sides, [], 1, 1), (mutation_then_error, [], 1, 1),
    (order_of_effects, [], 1, 1), (tensor_written_in_place, [], 2, 4),
    (view_written_across_a_break, [], 2, 3), (writes_to_a_deque_and_a_defaultdict, [], 2, 4),
    (sort_and_reverse, [], 1, 1), (exception_object_identity, [], 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "function, target, graphs, ops", MUTATIONS, ids=[row[0].__name__ for row in MUTATIONS]
)
def test_mutation(function, target, graphs, ops):
    check(function, X, target, graphs=graphs, ops=ops)


def test_identity_of_arguments():
    def function(x, log, box):
        log.append(x)
        print(end="")
        box.value = log
        print(end="")
        return x, log, box

    log, box = [], Account()
    compiled = framejit.compile(function, backend="eager")
    for n in range(3):
        got = compiled(X, log, box)
        assert got[0] is X and got[1] is log and got[2] is box and box.value is log
        assert len(log) == n + 1 and log[-1] is X


def test_globals_on_both_sides_of_a_break():
    def function(x):
        global COUNTER
        COUNTER += 1
        TABLE["x"] = x + COUNTER
        print(COUNTER)
        COUNTER += 10
        return TABLE["x"] * COUNTER

    global COUNTER
    results = []
    for target in (function, framejit.compile(function, backend="eager")):
        COUNTER = 0
        TABLE.clear()
        results.append([target(X) for _ in range(3)] + [COUNTER, TABLE["x"]])
    for one, two in zip(*results, strict=True):
        assert torch.equal(torch.as_tensor(one), torch.as_tensor(two))


def test_order_of_prints_and_calls_into_c():
    def function(x, log):
        y = x + 1
        log.append("first")
        sys.stdout.write(f"{log}\n")
        log.append("second")
        print(log)
        sorted([2, 1], key=lambda n: log.append(n) or n)
        print(log)
        return y * len(log)

    check(function, X, [], graphs=2, ops=2)


# -- 2 long loops ----------------------------------------------------------------------------------


def loop_range(x, n):
    for _ in range(n):
        x = x + 1
        print(end="")
    return x


def loop_while(x, n):
    steps = torch.zeros(())
    while steps.item() < n:
        steps = steps + 1
        x = x + 1
    return x, steps


def loop_helper(x, n):
    def step(x):
        y = x + 1
        print(end="")
        return y * 1

    for _ in range(n):
        x = step(x)
    return x


def loop_list(x, n):
    out = []
    for item in [None] * n:
        out.append(item)
        print(end="")
        x = x + 1
    return x, len(out)


def loop_counter(x, n):
    i = 0
    while i < n:
        x = x + 1
        print(end="")
        i += 1
    return x


def loop_try(x, n):
    for _ in range(n):
        try:
            x = x + 1
            print(end="")
        finally:
            x = x * 1
    return x


def loop_raise(x, n):
    caught = 0
    for _ in range(n):
        try:
            x = x + 1
            int("abc" if x is not None else "1", 10 if print(end="") is None else 8)
        except ValueError:
            caught += 1
    return x, caught


@pytest.mark.parametrize(
    "function, captures",
    [
        (loop_range, 4), (loop_helper, 4), (loop_try, 4),
    ],
)  # fmt: skip
def test_loop_with_2000_breaks(function, captures):
    """No growth of the stack, and no capture per iteration."""
    backend = CountingBackend()
    with events.recording(events.CaptureStart) as seen:
        got = framejit.compile(function, backend=backend)(X, 2000)
    torch.testing.assert_close(got, function(X, 2000))
    assert len(seen) <= captures
    assert not framejit.counters["recompile_limit"]


@pytest.mark.filterwarnings("ignore:framejit compiled")
@pytest.mark.parametrize("function", [loop_list, loop_counter, loop_raise, loop_while])
def test_loop_with_2000_breaks_and_growing_state(function):
    """The state forces recompiles: the limit ends them, and nothing else changes."""
    with events.recording(events.CaptureStart) as seen:
        got = framejit.compile(function, backend="eager")(X, 2000)
    torch.testing.assert_close(got, function(X, 2000))
    assert len(seen) < 100


# -- 3 iterators that are partly consumed before and after -----------------------------------------


ITERATORS = {
    "list": lambda: iter([1, 2, 3, 4, 5]),
    "tuple": lambda: iter((1, 2, 3, 4, 5)),
    "dict": lambda: iter({1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}),
    "items": lambda: iter({1: 1, 2: 2, 3: 3, 4: 4, 5: 5}.items()),
    "values": lambda: iter({1: 1, 2: 2, 3: 3, 4: 4, 5: 5}.values()),
    "enumerate": lambda: enumerate([1, 2, 3, 4, 5]),
    "zip": lambda: zip([1, 2, 3, 4, 5], "abcde"),
    "reversed list": lambda: reversed([1, 2, 3, 4, 5]),
    "reversed range": lambda: reversed(range(5)),
    "iter of reversed": lambda: iter(reversed([1, 2, 3, 4, 5])),
    "range": lambda: iter(range(5)),
    "str": lambda: iter("abcde"),
    "map": lambda: map(lambda n: n + 1, [1, 2, 3, 4, 5]),
    "filter": lambda: filter(None, [1, 2, 0, 4, 5, 6]),
    "generator": lambda: (n for n in [1, 2, 3, 4, 5]),
    "zip of enumerate": lambda: zip(enumerate("abcde"), reversed("abcde")),
}


@pytest.mark.parametrize("kind", ITERATORS)
@pytest.mark.parametrize("outside", [False, True], ids=["made inside", "passed in"])
def test_iterator_across_a_break(kind, outside):
    make = ITERATORS[kind]

    def consume(x, iterator):
        a = next(iterator)
        y = x + 1
        print(a)
        b = next(iterator)
        print(b)
        rest = []
        for c in iterator:
            rest.append(c)
            if len(rest) == 2:
                break
        print("rest")
        return y, a, b, rest, next(iterator), next(iterator, "end")

    def function(x):
        return consume(x, make())

    if outside:
        compiled = framejit.compile(consume, backend="eager")
        for _ in range(2):
            torch.testing.assert_close(compiled(X, make())[0], X + 1)
            assert compiled(X, make())[1:] == consume(X, make())[1:]
    else:
        check(function, X, graphs=1, ops=1)


# -- 4 programs that torch.compile is known to get wrong -------------------------------------------


def local_class_writes_a_closure(x):
    seen, table = [], {}

    class Recorder:
        def note(self, item):
            seen.append(item)
            table[len(seen)] = item
            return self

    Recorder().note(1)
    print(seen, table)
    Recorder().note(2)
    print(seen, table)
    return x + len(seen), table


def identity_of_a_mutable_key(x):
    a = [1]
    b = (a, {"a": a})
    print("break")
    a.append(2)
    return b[0] is b[1]["a"], b, x + 1


def mutation_is_read_afterwards(x):
    d = {}
    d["k"] = x + 1
    print(list(d))
    d["l"] = d["k"] * 2
    print(list(d))
    return d


@pytest.mark.parametrize("function, graphs", [
    (local_class_writes_a_closure, 1),
    (identity_of_a_mutable_key, 1),
    (mutation_is_read_afterwards, 2),
])  # fmt: skip
def test_state_over_breaks(function, graphs):
    check(function, X, calls=1, graphs=graphs, ops=graphs)


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def test_subclass_is_passed_through():
    def function(x, t):
        y = x + 1
        print(end="")
        return y, t, [t]

    t = torch.ones(3).as_subclass(Tagged)
    got = framejit.compile(function, backend="eager")(X, t)
    assert got[1] is t and got[2][0] is t


def test_subclass_operation():
    def function(x, t):
        print(end="")
        z = t * 2
        return x + 1, z

    t = torch.ones(3).as_subclass(Tagged)
    got = framejit.compile(function, backend="eager")(X, t)
    assert type(got[1]) is Tagged and torch.equal(got[1], function(X, t)[1])


def test_hook_added_after_the_first_call():
    seen = []
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    compiled = framejit.compile(module, backend="eager")
    torch.testing.assert_close(compiled(X), module(X))
    handle = module[0].register_forward_hook(lambda m, args, out: seen.append(1) or out * 2)
    torch.testing.assert_close(compiled(X), module(X))
    assert len(seen) == 2
    handle.remove()
    torch.testing.assert_close(compiled(X), module(X))
    assert len(seen) == 2
