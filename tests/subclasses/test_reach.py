"""The code of a tensor's class sees what the program has changed before, wherever it looks for it;
what it does not look at may change without a break."""

from __future__ import annotations

import pytest
import torch
from comparing import same

FACTOR = 1.0
FACTORS = {"all": 1.0}


class Settings:
    factor = 1.0


SETTINGS = Settings()
OTHERS = {"all": 1.0}


def factors():
    return FACTOR * FACTORS["all"] * SETTINGS.factor


class Looking(torch.Tensor):
    """Multiplies the results of operations by what is written in many places."""

    factor = 1.0

    @staticmethod
    def __new__(cls, content, tags):
        return torch.Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype)

    def __init__(self, content, tags):
        self.content, self.tags = content, tags

    def __tensor_flatten__(self):
        return ["content"], ",".join(f"{key}={value}" for key, value in self.tags.items())

    @classmethod
    def __tensor_unflatten__(cls, inner, tags, size, stride):
        pairs = [tag.split("=") for tag in tags.split(",")]
        return cls(inner["content"], {key: float(value) for key, value in pairs})

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        tags = next(one.tags for one in args if isinstance(one, cls))
        plain = [one.content if isinstance(one, cls) else one for one in args]
        result = func(*plain, **(kwargs or {}))
        return cls(result * sum(tags.values()) * cls.factor * factors(), tags)


class Counter:
    calls = 0


def make():
    global FACTOR
    FACTOR = FACTORS["all"] = SETTINGS.factor = Looking.factor = 1.0
    tags = {"a": 1.0}
    return Looking(torch.ones(3), tags), tags, Counter()


def a_global(x, tags, counter):
    global FACTOR
    FACTOR = 3.0
    return x * 2


def a_dict(x, tags, counter):
    FACTORS["all"] = 4.0
    return x * 2


def an_object(x, tags, counter):
    SETTINGS.factor = 5.0
    return x * 2


def the_class(x, tags, counter):
    Looking.factor = 6.0
    return x * 2


def an_attribute(x, tags, counter):
    x.tags["b"] = 7.0
    return x * 2


def the_same_by_another_way(x, tags, counter):
    tags["b"] = 8.0
    return x * 2


def between_operations(x, tags, counter):
    y = x * 2
    tags["b"] = 9.0
    return y * 2


def out_of_reach(x, tags, counter):
    OTHERS["all"] = 2.0
    y = x * 2
    counter.calls += 1
    return y * 2


@pytest.mark.parametrize(
    "program", [a_global, a_dict, an_object, the_class, an_attribute, the_same_by_another_way]
)
def test_changes_in_reach_come_first(program):
    same(program, make, graphs=0, fullgraph=False)


def test_results_may_reach_what_operands_do():
    same(between_operations, make, graphs=1, ops=1, fullgraph=False)


def test_other_changes_are_no_breaks():
    same(out_of_reach, make, graphs=1, ops=2)
