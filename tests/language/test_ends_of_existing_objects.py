"""Objects that exist already and whose end is seen: generators that were started before a break,
objects with a ``__del__`` or a weak reference. The program drops them when plain Python does."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque

import pytest
import torch

import framejit
from checking import check

x = torch.tensor([1.0, -2.0])


class Box:
    def __init__(self, value=None):
        self.value = value


class Slotted:
    __slots__ = ("value",)


class Loud:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def __del__(self):
        self.log.append(("end", self.name))


def numbers(log, n=0):
    try:
        yield n
        yield n + 1
    finally:
        log.append(("closed", n))


def chained(log):
    try:
        yield from numbers(log)
    finally:
        log.append("outer")


def entered(log):
    with contextlib.suppress(KeyError), Noted(log):
        yield 1
        yield 2


class Noted:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return self

    def __exit__(self, cls, *rest):
        self.log.append(cls)


# -- generators ------------------------------------------------------------------------------------


def variable_is_deleted(x, log):
    a = numbers(log)
    next(a)
    print("break")
    del a
    log.append("after")
    return x + 1


def variable_is_rebound(x, log):
    a = chained(log)
    next(a)
    print("break")
    a = None
    log.append("after")
    return x + 1, a


def returned_from_a_loop(x, log):
    def first():
        for n in numbers(log):
            print("break")
            return n

    n = first()
    log.append("after")
    return x + n


def left_a_loop(x, log):
    for n in numbers(log):
        x = x + n
        print("break")
        break
    log.append("after")
    return x


def loop_left_by_an_error(x, log):
    try:
        for n in numbers(log):
            print("break")
            raise ValueError(n)
    except ValueError:
        log.append("caught")
    log.append("after")
    return x + 1


def thrown_into(x, log):
    def g():
        try:
            try:
                yield 1
            except KeyError:
                log.append("key")
            yield 2
        finally:
            log.append("closed")

    a = g()
    next(a)
    print("break")
    log.append(a.throw(KeyError))
    del a
    log.append("after")
    return x + 1


def popped_from_a_list(x, log):
    made = [numbers(log, 1), numbers(log, 2)]
    for a in made:
        next(a)
    del a
    print("break")
    made.pop()
    log.append("one")
    made.clear()
    log.append("two")
    return x + 1


def callee_returns(x, log):
    def f():
        a = numbers(log)
        next(a)
        print("break")
        log.append("in")

    f()
    log.append("after")
    return x + 1


def under_other_iterators(x, log):
    z = zip(map(abs, numbers(log, 7)), [1, 2, 3])
    next(z)
    print("break")
    z = None
    log.append("after")
    return x + 1, z


def left_a_with(x, log):
    a = entered(log)
    next(a)
    print("break")
    a = None
    log.append("after")
    return x + 1, a


def held_by_two_variables(x, log):
    a, b = numbers(log, 1), numbers(log, 2)
    next(a), next(b)
    print("break")
    c = a
    a, b = b, a
    log.append("swapped")
    a = None
    log.append("b ended")
    b = None
    log.append("a is c")
    c = None
    return x + 1, a, b, c


def ended_before(x, log):
    a = numbers(log)
    total = sum(a)
    print("break")
    a = None
    log.append("after")
    return x + total, a


def order_at_the_end(x, log):
    def f():
        a, b = numbers(log, 1), numbers(log, 2)
        next(a), next(b)
        print("break")
        return 1

    f()
    log.append("after")
    return x + 1


def order_is_not_known(x, log):
    def f(n):
        a, b = numbers(log, 1), numbers(log, 2)
        print("break")
        next(a), next(b)
        return n

    n = f(1)
    log.append("after")
    return x + n


def started_by_a_break(x, log):
    def f():
        a = numbers(log, 1)
        print("break", next(a))
        log.append("in")
        return 1

    f()
    log.append("after")
    return x + 1


def under_a_generator_expression(x, log):
    inner = started(log)
    a = (n for n in inner)
    inner = None
    next(a)
    log.append("started")
    a = None
    log.append("after")
    return x + 1, inner, a


def in_a_variable_of_two_functions(x, log):
    a = started(log)

    def h():
        for n in a:
            print("break")
            return n

    log.append(h())
    a = None
    log.append("after")
    return x + 1


def kept_by_a_traceback(x, log):
    def f():
        a = numbers(log)
        next(a)
        print("break")
        raise ValueError(a is None)

    try:
        f()
    except ValueError:
        log.append("caught")
    log.append("after")
    return x + 1


@framejit.disable
def started(log):
    """A generator that has not given its last number."""
    return numbers(log, 3)


# -- what existing objects held --------------------------------------------------------------------


@framejit.disable
def held(kind, log, depth=0):
    """A container or object that holds an object whose end is written to ``log``."""
    item = Box()
    weakref.finalize(item, log.append, "gone").atexit = False
    for _ in range(depth):
        item = [item]
    if kind in (list, tuple, set):
        return kind([item])
    if kind is deque:
        return deque([item, 1], maxlen=2)
    if kind is dict:
        return {"k": item, "l": 1}
    made = kind()
    made.value = item
    return made


def list_item_replaced(x, log):
    box = held(list, log)
    box[0] = None
    log.append("after")
    return x + 1


def list_slice_replaced(x, log):
    box = held(list, log)
    box[:] = [1]
    log.append("after")
    return x + 1


def dict_item_replaced(x, log):
    box = held(dict, log)
    box["k"] = 2
    log.append("after")
    return x + 1


def dict_items_updated(x, log):
    box = held(dict, log)
    box.update(k=3)
    log.append("after")
    return x + 1


def attribute_replaced(x, log):
    box = held(Box, log)
    box.value = None
    log.append("after")
    return x + 1


def attribute_deleted(x, log):
    box = held(Box, log)
    del box.value
    log.append("after")
    return x + 1


def slot_replaced(x, log):
    box = held(Slotted, log)
    box.value = None
    log.append("after")
    return x + 1


def full_deque(x, log):
    box = held(deque, log)
    box.append(5)
    log.append("after")
    return x + 1


def set_element_removed(x, log):
    box = held(set, log)
    box &= {1}
    log.append("after")
    return x + 1


def deep_below_what_is_dropped(x, log):
    box = held(dict, log, depth=2)
    box["k"][0].pop()
    log.append("after")
    return x + 1


def whole_container_is_dropped(x, log):
    box = held(dict, log, depth=2)
    inner = box.pop("k")
    log.append("popped")
    inner = inner[0]
    log.append("inner")
    inner = None
    log.append("after")
    return x + 1, inner


def element_is_taken_out(x, log):
    box = held(list, log)
    item = box.pop()
    log.append("popped")
    other, item = item, None
    log.append("moved")
    other = None
    log.append("after")
    return x + 1, item, other


def weak_set(x, log):
    made = [Box(), Box()]
    weak = weakref.WeakSet(made)
    print("break")
    made.pop()
    return x + 1, len(weak)


def weak_values(x, log):
    made = [Box(1), Box(2)]
    weak = weakref.WeakValueDictionary(enumerate(made))
    print("break")
    before = len(weak)
    made.pop()
    return x + 1, before, sorted(weak)


def finalizers_of_weakref(x, log):
    made = [Loud(1, log), Loud(2, log)]
    print("break")
    made.pop(0)
    log.append("one")
    made[0] = None
    log.append("two")
    return x + 1


def object_is_not_dropped(x, log):
    box, other = held(list, log), []
    other.append(box[0])
    box.clear()
    log.append("moved")
    return x + 1, len(other)


#: (program, graphs)
PROGRAMS = [
    (variable_is_deleted, 1), (variable_is_rebound, 1), (returned_from_a_loop, 1), (left_a_loop, 1),
    (loop_left_by_an_error, 1), (thrown_into, 1), (popped_from_a_list, 1), (callee_returns, 1),
    (under_other_iterators, 1), (left_a_with, 1), (held_by_two_variables, 1), (ended_before, 1),
    (order_at_the_end, 1), (order_is_not_known, 1), (started_by_a_break, 1),
    (under_a_generator_expression, 1), (in_a_variable_of_two_functions, 1),
    (kept_by_a_traceback, 1), (list_item_replaced, 1), (list_slice_replaced, 1),
    (dict_item_replaced, 1), (dict_items_updated, 1), (attribute_replaced, 1),
    (attribute_deleted, 1), (slot_replaced, 1), (full_deque, 1), (set_element_removed, 1),
    (deep_below_what_is_dropped, 1), (whole_container_is_dropped, 1), (element_is_taken_out, 1),
    (weak_set, 1), (weak_values, 1), (finalizers_of_weakref, 1), (object_is_not_dropped, 1),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs"), PROGRAMS)
def test_program(program, graphs) -> None:
    check(program, x, [], graphs=graphs, ops=1)


KEPT = Box()


def replaces_a_global(x, log):
    global KEPT
    KEPT = held(list, log)
    print("break")
    KEPT = None
    log.append("after")
    return x + 1


def test_global() -> None:
    check(replaces_a_global, x, [], graphs=1, ops=1)
