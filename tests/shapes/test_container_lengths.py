"""Lengths of containers that grow from call to call are numbers that vary."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit import config


class Log(list):
    """A user's list."""


def appended(x, log):
    log.append(x.sum())
    return x * len(log), len(log)


def asked_before_and_behind(x, log):
    before = len(log)
    log.append(before)
    log.append(2)
    return x + before, len(log), len(log) > before, -len(log), (len(log) + 1) / 2


def decided(x, log):
    log.append(1)
    return x + 1 if len(log) % 2 else x - 1


def sizes(x, log):
    log.append(1)
    return torch.zeros(len(log)) + x[0], x.new_ones(len(log) * 2).sum()


def looked_at(x, log):
    total, count = x * 0, len(log)
    for item in log:
        total = total + item
    log.append(1.0)
    return total / max(count, 1)


def of_a_dict(x, table):
    table["last"] = 3
    del table["last"]
    return x + len(table), len(table)


def calls(program, make, grow=None, count=8):
    """The number of graphs after each of several calls; compared with plain Python."""
    backend, seen = CountingBackend(), []
    one, two = make(), make()
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(program, backend=backend)
        for number in range(count):
            x = torch.full((2,), float(number))
            expected, got = program(x, one), compiled(x, two)
            torch.testing.assert_close(got, expected)
            assert repr(two) == repr(one)
            if grow is not None:
                grow(one, number)
                grow(two, number)
            seen.append(len(backend.graphs))
    return seen


@pytest.mark.parametrize("make", [list, Log])
@pytest.mark.parametrize("program", [appended, asked_before_and_behind])
def test_a_list_that_grows_costs_one_recompile(program, make):
    assert calls(program, make) == [1] + [2] * 7


def test_each_decision_about_a_length_is_one_entry():
    assert calls(decided, list)[-3:] == [3] * 3


def test_lengths_can_be_sizes():
    assert calls(sizes, lambda: [0, 0])[-3:] == [2] * 3


def test_what_looks_at_all_elements_keeps_the_length():
    """... and is not captured with a symbol again and again for nothing."""
    assert calls(looked_at, list, count=5) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("make", [dict, OrderedDict])
def test_lengths_of_dicts(make):
    grow = lambda table, number: table.update({number: number})  # noqa: E731
    assert calls(of_a_dict, make, grow) == [1] + [2] * 7


def test_lengths_of_sets():
    grow = lambda known, number: known.add(number)  # noqa: E731
    assert calls(lambda x, known: (x + len(known), len(known)), set, grow) == [1] + [2] * 7


def test_an_optimizer_with_a_schedule_compiles_twice():
    """The learning rate takes part in ``1 - lr * weight_decay`` as the program writes it."""
    model = torch.nn.Linear(3, 2)
    twin = copy.deepcopy(model)
    backend, counts = CountingBackend(), []

    def training(model, compile):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step = compile(optimizer.step)
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).pow(2).sum().backward()
            step()
            schedule.step()
            counts.append(len(backend.graphs))

    training(model, lambda step: framejit.compile(step, backend=backend))
    assert counts[3:] == counts[3:4] * 5
    training(twin, lambda step: step)
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, two)
