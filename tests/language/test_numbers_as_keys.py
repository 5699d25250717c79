"""Dicts whose keys are numbers that differ from call to call: hooks of modules, tables of slots."""

from collections import OrderedDict

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend

X = torch.arange(6.0).reshape(2, 3)


def hooked(number):
    """A module with a hook, which is registered under a number of its own."""
    made = nn.Linear(3, 3)
    made.register_forward_hook(lambda module, args, result: result + number)
    return made


def run(program, *calls):
    """Each call as plain Python and compiled; the graphs."""
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for args in calls:
        expected, got = program(*args), compiled(*args)
        assert repr(got) == repr(expected)
    return len(backend.graphs), backend.ops


def test_hooks_of_many_modules():
    hooks = [hooked(1) for _ in range(12)]
    assert run(lambda x, module: module(x) * 2, *[(X, one) for one in hooks]) == (2, 6)
    hooks[3].register_forward_hook(lambda module, args, result: result * 3)
    hooks[4]._forward_hooks.clear()
    assert run(lambda x, module: module(x), *[(X, one) for one in hooks[2:]]) == (4, 8)


def test_hooks_that_differ():
    def made(function):
        module = nn.Linear(3, 3)
        module.register_forward_hook(function)
        return module

    def adds(module, args, result):
        return result + 1

    def scales(module, args, result):
        return result * 2

    modules = [made(one) for one in (adds, adds, scales, adds, scales)]
    assert run(lambda x, module: module(x), *[(X, one) for one in modules]) == (3, 6)


def test_a_hook_that_wants_keyword_arguments():
    def made():
        module = nn.Linear(3, 3)
        module.register_forward_hook(lambda m, args, named, result: result * 2, with_kwargs=True)
        return module

    graphs, ops = run(lambda x, module: module(x), *[(X, made()) for _ in range(3)])
    assert ops == 2 * graphs


def values(x, table):
    return [x * value for value in table.values()]


def pairs(x, table):
    return [(key, x * value) for key, value in table.items()]


def sums(x, table):
    return [x + key for key in table]


def with_lookup(x, table):
    found = [x * value for value in table.values()]
    return found, table.get(2, 7), 2 in table, len(table)


def one_of_another(x, table):
    empty = {}
    return [x * value for key, value in table.items() if key not in empty and key != 9]


def changed(x, table):
    for key, value in list(table.items()):
        table[key] = value + 1
    return x * sum(table.values()), table


def compared(x, table):
    return x * sum(table.values()), table == {2: 3.0}, {**table}, list(table), dict(table)


def last_first(x, table):
    return [x * value for value in reversed(table.values())], next(iter(table), None)


TABLES = [{1: 2.0}, {2: 3.0}, {3: 4.0}, {2: 3.0}, {4: 5.0, 1: 1.0}, {1: 1.0, 4: 5.0}, {}]


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize(
    "program", [values, pairs, sums, with_lookup, one_of_another, changed, compared, last_first]
)
def test_tables(program, kind):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for _ in range(2):
        for table in TABLES:
            given, same = kind(table), kind(table)
            assert repr(compiled(X, given)) == repr(program(X, same))
            assert given == same
    # Nobody looks at the keys: those of one size are one graph.
    assert program is not values or len(backend.graphs) <= 5


def test_keys_that_nobody_looks_at_cost_no_graph():
    tables = [{number: torch.full((3,), number)} for number in range(12)]
    assert run(values, *[(X, table) for table in tables]) == (2, 2)
