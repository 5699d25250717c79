"""What C code does that looks like a detail: initialising again, comparing what is inside, refusing
objects of another class or arguments that do not fit."""

from __future__ import annotations

import functools
import heapq
import operator
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy
import pytest
import torch

from checking import check, said


class Items(list):
    def __init__(self, *args):
        super().__init__(*args)
        super().__init__(*args)


class Names(set):
    def __init__(self, *args):
        super().__init__(*args)
        super().__init__(*args)


class Table(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args)
        super().__init__(**kwargs)


class Queue(deque):
    pass


def initialised_again(x, items, names, table):
    items.__init__([7])
    names.__init__()
    table.__init__(b=2)
    made = Items([1, 2])
    made.__init__()
    return Items([1, 2]), Items(), Names("ab"), Table({1: 2}, c=3), made


def queues_initialised_again(x, queue, plain):
    queue.__init__([5])
    plain.__init__([6, 7], 1)
    return queue.maxlen, plain.maxlen


def cells(x):
    v, w, u = 3, 3, 4

    def f():
        return v

    def h():
        return u, w

    (one,), (other, same) = f.__closure__, h.__closure__
    return one == same, one != other, one == one, one == 3, f.__closure__ == (same,)


HOLDER = types.SimpleNamespace(inner=Items(), other=Names())
REFERENCE = weakref.ref(HOLDER.other)


def weak_references(x):
    made, again = weakref.ref(HOLDER.other), weakref.ref(HOLDER.other)
    return made is REFERENCE, made is again, made == REFERENCE, made != again, made == 3


def numbers():
    yield 1
    yield 2


def arguments_of_generators(x):
    one = numbers()
    return (
        said(one.__next__, 1), said(one.send), said(one.send, 1, 2), said(one.throw),
        said(one.close, 1), said(one.__iter__, 1), next(one), said(one.send, None),
    )  # fmt: skip


def named_as_parameters_of_the_compiler(x):
    def call(*args, **kwargs):
        try:
            return args[0](*args[1:], **kwargs)
        except TypeError as error:
            return str(error)

    return (
        call(functools.reduce, function=max, iterable=[1]), call(dict, function=3),
        call("{function}{self}".format, function=3, self=4), call("a".replace, function=2),
    )  # fmt: skip


class Foreign:
    upper = str.upper
    append = list.append
    __len__ = list.__len__


def methods_of_other_classes(x):
    one = Foreign()
    refused = [said(getattr, one, name) for name in ("upper", "append")]
    return refused, said(lambda: one.upper), said(len, one)


def cached_attributes(x):
    def function(a):
        return a

    cached = functools.lru_cache(function)
    function.mark = 2
    return (
        said(lambda: cached.mark), cached.__name__, cached.__wrapped__ is function,
        hasattr(cached, "__code__"), said(lambda: cached.__defaults__), cached.__module__,
    )  # fmt: skip


NAMESPACE = {"a": 1}
exec("def read(): return a\ndef write(v):\n global a\n a = v", NAMESPACE)
READ, WRITE = NAMESPACE["read"], NAMESPACE["write"]
BARE = {"a": 1}
READ_BARE = types.FunctionType(READ.__code__, BARE)


def globals_by_their_dict(x):
    out = [READ(), NAMESPACE["a"]]
    NAMESPACE["a"] = 2
    out += [READ(), READ.__globals__["a"]]
    READ.__globals__.update(a=3)
    out += [READ(), NAMESPACE["a"]]
    WRITE(1)
    return out, NAMESPACE["a"], READ.__globals__ is NAMESPACE


def globals_without_builtins(x):
    BARE["a"] = 2
    out = READ_BARE()
    BARE["a"] = 1
    return out


def hashes_of_object(x):
    one, text = 5, "abc"
    return object.__hash__(one) == one, object.__hash__(text) == hash(text)


def predicates(x):
    return (
        said(torch.cond, "a", torch.sin, torch.cos, (x,)),
        said(torch.cond, 3, torch.sin, torch.cos, (x,)),
        torch.cond(True, torch.sin, torch.cos, (x,)),
    )  # fmt: skip


class OwnModule(types.ModuleType):
    pass


MODULE = OwnModule("own")


def missing_in_modules(x):
    return said(delattr, MODULE, "other"), said(delattr, types, "other")


def lengths_of_scalars(x, a):
    return said(len, a.sum()), said(len, numpy.reshape(a.sum(), ())), len(a)


ARRAY = numpy.ones((2, 3))


@pytest.mark.parametrize(("program", "args", "graphs"), [
    (initialised_again, (Items([1]), Names([1]), Table(a=1)), 1),
    (queues_initialised_again, (Queue([1, 2], 4), deque([1], 3)), 2),
    (cells, (), 2),
    (weak_references, (), 2),
    (arguments_of_generators, (), 1),
    (named_as_parameters_of_the_compiler, (), 1),
    (methods_of_other_classes, (), 2),
    (cached_attributes, (), 1),
    (globals_by_their_dict, (), 1),
    (globals_without_builtins, (), 2),
    (hashes_of_object, (), 2),
    (predicates, (), 2),
    (missing_in_modules, (), 1),
    (lengths_of_scalars, (ARRAY,), 1),
], ids=lambda value: getattr(value, "__name__", None))  # fmt: skip
def test_between_two_operations(program, args, graphs):
    def run(x, *args):
        y = x + 1
        return program(x, *args), y * 2

    check(run, torch.ones(3), *args, graphs=graphs)


@pytest.mark.parametrize("function", [operator.eq, operator.lt, operator.ge])
def test_empty_cells(function):
    def run(x):
        return function(types.CellType(), types.CellType(1)), x + 1

    check(run, torch.ones(3), graphs=1, ops=1)


@pytest.mark.parametrize("decorator", [functools.lru_cache, functools.lru_cache(maxsize=2)])
def test_caches_copy_the_attributes_of_their_function(decorator):
    def run(x):
        def function(a):
            return a + 1

        function.mark = 1
        cached = decorator(function)
        function.mark = 2
        return cached.mark, cached(x)

    check(run, torch.ones(3), calls=1, graphs=1, ops=1)


COMPLAINTS = {
    "index of a size": lambda x: x.shape[5],
    "argument given twice": lambda x: enumerate([1], iterable=[2]),
    "too many arguments": lambda x: defaultdict(list, 2, 3),
    "pair of three": lambda x: OrderedDict([(1, 2, 3)]),
    "index that is a text": lambda x: [].pop("a"),
    "steps that are a text": lambda x: deque([1]).rotate("a"),
    "queue as a heap": lambda x: heapq.heappush(deque(), 1),
    "heap by name": lambda x: heapq.heappush(heap=[], item=1),
    "empty heap": lambda x: heapq.heappop([]),
    "empty heap with another": lambda x: heapq.heapreplace([], x),
    "special method with too many": lambda x: [].__len__(1),
}


@pytest.mark.parametrize("call", COMPLAINTS.values(), ids=COMPLAINTS)
def test_complaints_are_those_of_c_code(call: Any) -> None:
    check(lambda x: (said(call, x), x + 1), torch.ones(2), graphs=1, ops=1)


class Doubling(list):
    def append(self, item: Any) -> None:
        super().append(item)
        super().append(item)


def test_heaps_ask_no_methods_of_a_subclass() -> None:
    def run(x: torch.Tensor) -> Any:
        heap, plain = Doubling([2, 3]), Items([2, 3])
        heapq.heappush(heap, 1)
        heapq.heappush(plain, 1)
        return x + 1, heap, heapq.heappop(heap), plain, heapq.heappop(plain)

    check(run, torch.ones(2), ops=1)
