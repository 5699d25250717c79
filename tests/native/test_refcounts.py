"""Every path of a call leaves all reference counts and the number of allocated blocks as they were.

A reference lost per call is a crash later; one too many is a leak. Both show after many calls.
"""

import gc
import sys

import pytest
import torch
from native_helpers import GlobalState, GuardTree, compiled_of

from framejit import native
from framejit.native import CompiledFunction, Entry, tail


class Box:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def hit():
    box = Box(x=torch.ones(2), k=3)
    nodes = [
        (-1, "slot", 0, [("type", Box)], -1),
        (0, "dict", None, [], -1),
        (1, "item", "x", [("tensor", box.x, 0)], 0),
        (1, "item", "k", [("equals", 3)], 1),
        (1, "item", "gone", [("absent",)], -1),
        (-1, "slot", 1, [("tensor", box.x, 0)], -1),
    ]
    compiled = CompiledFunction(lambda box, x: None, None)
    compiled.add_entry(Entry(GuardTree(nodes, GlobalState()), lambda box, x, held, k: held))
    fresh = torch.zeros(2)
    return lambda: compiled(box, fresh), [box, box.x, fresh, compiled, 3, compiled.entries[0].tree]


def hit_with_a_tuple_of_inputs():
    box = Box(x=torch.ones(2), y=torch.ones(3), z=torch.ones(4))
    nodes = [(-1, "slot", 0, [("type", Box)], -1), (0, "dict", None, [], -1)]
    nodes += [(1, "item", k, [("tensor", box.__dict__[k], 0)], i) for i, k in enumerate("xyz")]
    compiled = CompiledFunction(lambda box, x: None, None)
    layout = (1,), (-2, 0, 1, -2, 1)  # z is left out, y and the slot come more than once
    compiled.add_entry(Entry(GuardTree(nodes), lambda box, x, y, inputs: inputs[1:], layout))
    refusing = CompiledFunction(lambda box: None, None)
    refusing.add_entry(Entry(GuardTree(nodes), lambda *args: None, ((), (0, -3))))
    fresh = torch.zeros(2)

    def run():
        compiled(box, fresh)
        with pytest.raises(TypeError, match="names a slot"):
            refusing(box)

    return run, [box, box.x, box.y, box.z, fresh, compiled]


def objects_made():
    box, value = Box(k=1), object()

    def run():
        made = native.new_object(Box, object)
        native.set_attributes(made, ("a", "b"), value, value)
        native.set_attributes(made, ("a", "c"), native.DELETED, native.DELETED)
        gone = native.DELETED
        native.write_dict(made.__dict__, ("d", value, "b", gone, "e", gone))
        native.with_hashes((box, 1, value, 2), set.update, {value}, [(box, value), box, value])
        native.with_hashes((box, 1), native.write_dict, {box: box}, (box, value, "b", gone))
        native.restore_cpu_random_state(native.cpu_random_state())

    return run, [box, value, native.DELETED]


def hit_with_late_steps():
    box = Box(inner=Box(k=1))
    nodes = [
        (-1, "slot", 0, [], -1),
        (0, "call", lambda b: b.inner, [("type", Box)], 0),
        (1, "dict", None, [], -1),
        (2, "item", "k", [("equals", 1)], 1),
    ]
    compiled = CompiledFunction(lambda box: None, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda box, inner, k: inner))
    return lambda: compiled(box), [box, box.inner, compiled]


def repaired_record():
    box = Box(k=3, other=0)
    nodes = [
        (-1, "slot", 0, [("type", Box)], -1),
        (0, "dict", None, [], -1),
        (1, "item", "k", [("equals", 3)], 0),
    ]
    compiled = CompiledFunction(lambda box: None, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda box, k: k))

    def run():
        box.other = not box.other
        compiled(box)

    return run, [box, compiled, compiled.entries[0].tree, box.__dict__]


def new_record_each_time():
    nodes = [
        (-1, "slot", 0, [("type", list)], -1),
        (0, "index", 0, [("type", Box)], -1),
        (1, "dict", None, [], -1),
        (2, "item", "k", [("equals", 3)], 0),
    ]
    compiled = CompiledFunction(lambda things: None, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda things, k: k))
    return lambda: compiled([Box(k=3)]), [compiled, Box, compiled.entries[0].tree]


def keywords_and_defaults():
    default, extra = object(), object()

    def function(a, /, b=default, *rest, c=default, **more):
        return None

    nodes = [(-1, "slot", i, [], -1) for i in range(5)]
    compiled = CompiledFunction(function, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda a, b, c, rest, more: (a, b, c, rest, more)))

    def run():
        compiled(extra)
        compiled(extra, extra, extra, c=extra, d=extra)

    return run, [default, extra, compiled, function]


def closure_cells():
    value = object()
    compiled = CompiledFunction(lambda a: value, None)
    nodes = [(-1, "slot", 0, [], -1), (-1, "slot", 1, [], -1), (1, "cell", None, [], 0)]
    compiled.add_entry(Entry(GuardTree(nodes), lambda a, cell, held: held))
    return lambda: compiled(1), [value, compiled]


def miss_without_an_entry():
    argument = object()
    compiled = CompiledFunction(lambda a: a, lambda compiled, slots: None)
    nodes = [(-1, "slot", 0, [("equals", 5)], -1)]
    compiled.add_entry(Entry(GuardTree(nodes), lambda a: 5))
    return lambda: compiled(argument), [argument, compiled, compiled.miss, compiled.function]


def miss_that_makes_an_entry():
    argument = object()

    def miss(compiled, slots):
        compiled.clear_entries()
        entry = Entry(GuardTree([(-1, "slot", 0, [], -1)], GlobalState()), lambda a: a)
        compiled.add_entry(entry)
        return entry

    compiled = CompiledFunction(lambda a: a, miss)

    def run():
        compiled.clear_entries()
        assert compiled(argument) is argument

    return run, [argument, compiled, miss]


def exceptions():
    argument, error = object(), ValueError("stop")

    def fail(a):
        raise error.with_traceback(None)

    def failing_miss(compiled, slots):
        raise error.with_traceback(None)

    entry = compiled_of(lambda a: None, fail, slots=1)
    miss = CompiledFunction(lambda a: a, failing_miss)
    original = CompiledFunction(fail, None)

    def run():
        for compiled in (entry, miss, original):
            try:
                compiled(argument)
            except ValueError:
                error.__traceback__ = None
        for wrong in (lambda: entry(), lambda: entry(1, 2), lambda: entry(b=1)):
            try:
                wrong()
            except TypeError:
                pass

    return run, [argument, entry, miss, original, fail, failing_miss, ValueError]


def recursion():
    argument = object()
    nodes = [(-1, "slot", 0, [], -1), (-1, "slot", 1, [("type", int)], -1)]
    compiled = CompiledFunction(lambda a, n: None, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda a, n: n and compiled(a, n - 1)))
    return lambda: compiled(argument, 5), [argument, compiled]


def endless_recursion():
    """Ends in a RecursionError, which must leave nothing behind either."""
    argument = object()
    compiled = compiled_of(lambda a: None, lambda a: compiled(a), slots=1)

    def run():
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(120)
        try:
            compiled(argument)
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(limit)

    return run, [argument, compiled]


def tail_calls():
    argument, state = object(), [object() for _ in range(12)]
    last = CompiledFunction(None, None, nslots=13)
    last.add_entry(Entry(GuardTree([(-1, "slot", i, [], -1) for i in range(13)]), lambda *a: a[0]))

    def step(a, *rest):
        return tail(last, a, *rest)

    first = compiled_of(lambda a: None, lambda a: tail(step, a, *state), slots=1)
    return lambda: first(argument), [argument, *state, first, last, step]


def run_as_plain_python():
    argument = object()
    raw = CompiledFunction(None, None, nslots=2)
    raw.fallback = lambda a, b: tail(max, 1, 2)
    return lambda: raw(argument, 1), [argument, raw, raw.fallback, max]


def failing_guards():
    box = Box(x=torch.ones(2))
    nodes = [
        (-1, "slot", 0, [("type", Box)], 0),
        (0, "dict", None, [], -1),
        (1, "item", "x", [("tensor", torch.ones(3), 0)], 1),
    ]
    compiled = CompiledFunction(lambda box: box, None)
    compiled.add_entry(Entry(GuardTree(nodes), lambda box, *held: held))
    tree = compiled.entries[0].tree
    return lambda: (compiled(box), tree.explain((box,))), [box, box.x, compiled, tree]


PATHS = [
    hit, hit_with_a_tuple_of_inputs, objects_made, hit_with_late_steps, repaired_record,
    new_record_each_time, keywords_and_defaults, closure_cells, miss_without_an_entry,
    miss_that_makes_an_entry, exceptions, recursion, endless_recursion, tail_calls,
    run_as_plain_python, failing_guards,
]  # fmt: skip


def check(path, calls):
    run, objects = path()
    for _ in range(300):  # free lists fill, records settle
        run()
    gc.collect()
    counts, blocks = [sys.getrefcount(thing) for thing in objects], sys.getallocatedblocks()
    loop = iter(range(calls))
    for _ in loop:
        run()
    del loop
    gc.collect()
    now = [sys.getrefcount(thing) for thing in objects]
    # small integers and classes are shared with the whole process
    assert all(abs(a - b) <= 5 for a, b in zip(counts, now)), (counts, now)
    assert sys.getallocatedblocks() - blocks < min(200, calls / 10)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_a_thousand_calls(path):
    check(path, 3_000)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_a_million_calls(path):
    check(path, 20_000 if path is endless_recursion else 1_000_000)
