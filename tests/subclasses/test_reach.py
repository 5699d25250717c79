"""The code of a tensor's class sees what was changed before, by the program or between calls,
wherever it looks; what it does not look at may change without a break."""

from __future__ import annotations

import pytest
import torch
from comparing import same

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend

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

    def __repr__(self):
        return "Looking"

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
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(result, tags)
        return cls(result * sum(tags.values()) * cls.factor * factors(), tags)


class Counting(Looking):
    """Its own code changes what it looks at."""

    calls = 0

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        cls.calls += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


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


def sets_a_global(value):
    global FACTOR
    FACTOR = value


SETTERS = {
    "a global": sets_a_global,
    "a dict": lambda value: FACTORS.update(all=value),
    "an object": lambda value: setattr(SETTINGS, "factor", value),
    "the class": lambda value: setattr(Looking, "factor", value),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("place", SETTERS)
def test_changes_between_calls_compile_again(place, backend):
    inner, counting = lookup_backend(backend), CountingBackend()
    program = torch.nn.functional.relu
    compiled = framejit.compile(
        program, backend=lambda m, e: inner(counting(m, e), e), fullgraph=True
    )
    for value in (2.0, 2.0, 3.0, 4.0, 2.0):
        x, *_ = make()
        SETTERS[place](value)
        assert torch.equal(compiled(x).content, program(x).content)
    make()
    assert len(counting.graphs) == counting.ops == 3


def test_what_its_own_code_changes_is_no_reason_to_compile_again():
    counting = CountingBackend()
    compiled = framejit.compile(torch.nn.functional.relu, backend=counting, fullgraph=True)
    make()
    for _ in range(4):
        compiled(Counting(torch.ones(3), {"a": 1.0}))
    assert len(counting.graphs) == counting.ops == 1
