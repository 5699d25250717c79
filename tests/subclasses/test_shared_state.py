"""Results of operations have the very parts and objects that their class's code takes from
operands, as in plain Python, with every backend."""

from __future__ import annotations

import pytest
import torch
from comparing import same_when_broken

import framejit
from checking import CountingAround


class How:
    def __init__(self, factor):
        self.factor = factor

    def __repr__(self):
        return f"How({self.factor})"


class Sharing(torch.Tensor):
    """Its operations hand on options, objects and parts, copies of them, or new ones."""

    @staticmethod
    def __new__(cls, content, options, how=None):
        return torch.Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype)

    def __init__(self, content, options, how=None):
        self.content, self.options, self.how = content, options, how

    def __repr__(self):
        return "Sharing"

    def __tensor_flatten__(self):
        return ["content"], (self.options, self.how)

    @classmethod
    def __tensor_unflatten__(cls, inner, told, size, stride):
        return cls(inner["content"], *told)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        aten, one = torch.ops.aten, next(arg for arg in args if isinstance(arg, cls))
        if func is aten.relu.default:
            return one.content
        if func is aten.abs.default:
            return cls(func(one.content), dict(one.options), one.how)
        if func is aten.neg.default:
            return cls(one.content, one.options, one.how)
        if func is aten.sin.default:
            return cls(func(one.content), {"new": [1, 2]}, one.how)
        if func is aten.mul.Tensor and isinstance(args[1], torch.Tensor):
            return cls(args[1], one.options, one.how)
        if func is aten.add.Tensor and isinstance(args[1], cls):
            return cls(one.content + args[1].content, args[1].options, one.how)
        plain = [arg.content if isinstance(arg, cls) else arg for arg in args]
        return cls(func(*plain, **(kwargs or {})) * len(one.options), one.options, one.how)


class Slotted(Sharing):
    __slots__ = ("how",)


def make(number, cls=Sharing):
    """Two of them, which share their options in every other call, those, and a plain tensor."""
    options, how = {"a": 1, "inner": [1]}, How(2)
    others = options if number % 2 == 0 else {"a": 1, "inner": [1]}
    x, y = cls(torch.ones(3), options, how), cls(torch.ones(3) * 2, others, How(3))
    return x, y, torch.ones(3) * 3


def seen_in(value, found, objects):
    """What there is to see in a value: content, and which objects are one."""
    objects.append(value)
    if isinstance(value, Sharing):
        for part in (value.content, value.options, value.how):
            seen_in(part, found, objects)
    elif isinstance(value, torch.Tensor):
        found.append(value.tolist())
        objects.append(value.data_ptr())
    elif isinstance(value, How):
        found.append(value.factor)
    elif isinstance(value, (dict, list, tuple)):
        found.append(list(value) if isinstance(value, dict) else len(value))
        for part in value.values() if isinstance(value, dict) else value:
            seen_in(part, found, objects)
    else:
        found.append(value)


def shown(*values):
    found, objects = [], []
    seen_in(values, found, objects)
    numbers = {}
    return found, [
        numbers.setdefault(id(one) if not isinstance(one, int) else one, len(numbers))
        for one in objects
    ]


def one_of_several(x, y, t):
    return x + y


def handed_on(x, y, t):
    u = x * 2
    return u, u.options, u.options is x.options, u.how is x.how, (u * 2).how


def changed_afterwards(x, y, t):
    u = torch.abs(x)
    x.options["inner"].append(5)
    x.options["z"] = 3
    return u, u.options["inner"] is x.options["inner"], u.options is x.options


def replaced_afterwards(x, y, t):
    u = torch.abs(x)
    x.options["inner"] = [7]
    return u, x


def objects_changed(x, y, t):
    u = x * 2
    u.how.factor += 1
    return u


def made_up(x, y, t):
    u = torch.sin(x)
    v = torch.neg(u)
    u.options["more"] = 1
    return u, u.options, v, v.options is u.options, u.options["new"]


def made_with_options(x, y, t):
    options = {"a": [1]}
    u = Sharing(x.content, options)
    v = u * 2
    options["b"] = 2
    return u, v, v.options is options, options


def made_with_given_options(x, y, t):
    options = x.options
    u = Sharing(t, options) * 2
    options["b"] = 2
    return u, u.options


def used_when_changed(x, y, t):
    options = {"a": 1}
    v = Sharing(x.content, options) * 2
    options["b"] = 2
    return v * 2, v


def used_when_results_changed(x, y, t):
    u = torch.abs(x)
    w = u * 2
    u.options["b"] = 2
    return u * 2, w, u


def the_part_itself(x, y, t):
    u = torch.relu(x)
    u.add_(1)
    return u is x.content, u, x * 2


def parts_of_made(x, y, t):
    u = Sharing(t + 1, {})
    v = Sharing(x, {})
    return torch.relu(u) is u.content, torch.relu(v) is x, torch.relu(u), u


def parts_of_results(x, y, t):
    u = x * 2
    v = torch.relu(u)
    return v is u.content, u.content is u.content, v, u


def a_part_in_another(x, y, t):
    u = torch.neg(x)
    u.add_(1)
    return u, u.content is x.content, torch.neg(u).content


def an_operand_in_another(x, y, t):
    t = t + 1
    u = x * t
    return u, t, u.content is t, x * y.content


PROGRAMS = {
    one_of_several: (2, 2),
    handed_on: (1, 2),
    changed_afterwards: (1, 1),
    replaced_afterwards: (1, 1),
    objects_changed: (1, 1),
    made_up: (1, 2),
    made_with_options: (1, 3),
    made_with_given_options: (1, 2),
    used_when_changed: (1, 3),
    used_when_results_changed: (1, 2),
    the_part_itself: (1, 4),
    parts_of_made: (1, 6),
    parts_of_results: (1, 3),
    a_part_in_another: (1, 3),
    an_operand_in_another: (2, 8),
}


@pytest.mark.parametrize("cls", [Sharing, Slotted])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_shared_stays_shared(program, backend, cls):
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting)
    for number in range(4):
        given, same_given = make(number, cls), make(number, cls)
        assert shown(same_given, compiled(*same_given)) == shown(given, program(*given))
    assert (len(counting.graphs), counting.ops) == PROGRAMS[program]


@pytest.mark.parametrize(
    "program", [handed_on, made_up, made_with_options, the_part_itself, a_part_in_another],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_a_break_anywhere_changes_nothing(program):
    assert same_when_broken(program, lambda: make(1)) > 9
