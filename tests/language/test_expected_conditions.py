"""Conditions that depend on data and lead to an error of the program: they are taken for granted,
and checked after the graph. When one is not as expected the code runs as plain Python.

PYTEST_DONT_REWRITE: the programs' own assertions are tested.
"""

from __future__ import annotations

import pytest
import torch

import framejit
import framejit.api
from checking import CountingBackend, Ctx, check

X = torch.arange(6.0).reshape(2, 3)


class Invalid(Exception):
    def __init__(self, message, worst):
        super().__init__(message)
        self.worst = worst


def require(x, what):
    if (x > 1000).any():
        raise Invalid(f"{what} is too large: {x.max():.1f}", worst=float(x.max()))
    return x


def condition_that_raises(x):
    y = x + 1
    if (y < 0).any():
        raise ValueError(f"negative: {y.min()}")
    return y * 2


def condition_of_an_assert(x):
    assert (x >= 0).all(), "negative"
    return x * 2


def condition_of_an_inlined_function(x):
    return require(require(x, "x") * 2, "twice x") + 1


def is_small(x):
    return bool((x < 1000).all())


def is_large(x):
    return not is_small(x)


def condition_that_a_function_decides(x):
    if not is_small(x):
        raise Invalid("too large", worst=None)
    y = x + 1
    assert bool((y >= 0).all()), "negative"
    if is_large(y):
        raise Invalid("y is too large", worst=float(y.max()))
    return y * 2


def condition_of_a_function_that_is_used_otherwise(x):
    return x * 2, is_small(x)


def condition_inside_with(x):
    with Ctx(), torch.no_grad():
        y = x * 2
        if not torch.isfinite(y).all():
            raise Invalid("infinite", worst=None)
        return y + 1


def either_of_two_conditions(x):
    if (x < -1).any() or (x > 100).any():
        message = "low" if (x < -1).any() else "high"
        raise ValueError(message)
    return x.relu()


def condition_the_other_way_round(x):
    if (x >= 0).all():
        return x * 2
    raise ValueError("negative")


def arguments_of_a_distribution(x):
    d = torch.distributions.Normal(x, torch.ones_like(x), validate_args=True)
    return d.log_prob(x + 1).sum(), d.entropy()


def state_before_and_after_a_condition(x):
    log = ["start"]
    y = x + len(log)
    log.append("checked")
    assert y.min() >= 0
    log.append("behind")
    return y, log


def random_numbers_before_a_condition(x):
    torch.manual_seed(1)
    y = torch.nn.functional.dropout(x + 1)
    if y.sum() < 0:
        raise ValueError("negative")
    return y, torch.rand(2)


def error_that_is_caught_here(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        return x - 1
    except ValueError:
        return x + 1


def condition_that_ends_a_loop(x):
    class Until:
        def __init__(self):
            self.x = x

        def __iter__(self):
            return self

        def __next__(self):
            self.x = self.x + 1
            if not self.x.sum() < 30:
                raise StopIteration
            return self.x

    return [y * 2 for y in Until()]


def error_through_a_generator(x):
    def parts():
        for part in x:
            if part.sum() > 1000:
                raise ValueError("too large")
            yield part * 2

    return list(parts())


def a_number_in_the_graph_only(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x.shape


def written_input(x):
    x.add_(1)
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2


#: (program, graphs, operations captured)
PROGRAMS = [
    (condition_that_raises, 1, 4), (condition_of_an_assert, 1, 3),
    (condition_of_an_inlined_function, 1, 6), (condition_inside_with, 1, 6),
    (either_of_two_conditions, 1, 5), (condition_the_other_way_round, 1, 3),
    (condition_that_a_function_decides, 1, 8),
    (condition_of_a_function_that_is_used_otherwise, 1, 3),
    (arguments_of_a_distribution, 1, 21), (state_before_and_after_a_condition, 1, 3),
    (random_numbers_before_a_condition, 1, 5), (error_that_is_caught_here, 2, 3),
    (condition_that_ends_a_loop, 2, 4), (error_through_a_generator, 1, 9),
    (a_number_in_the_graph_only, 1, 2), (written_input, 2, 4),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


@pytest.mark.parametrize("function", [p[0] for p in PROGRAMS])
@pytest.mark.parametrize("start", [-10.0, 2000.0, float("nan"), float("inf")])
def test_errors_are_those_of_plain_python(function, start):
    assert check(function, X + start).ops > 1


def test_an_error_is_the_users_own():
    compiled = framejit.api.compile(condition_of_an_inlined_function, backend="eager")
    compiled(X)
    with pytest.raises(Invalid, match="twice x is too large: 1200") as caught:
        compiled(X + 595)
    assert caught.value.worst == 1200.0
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [entry.name for entry in caught.traceback][-2:] == [
        "condition_of_an_inlined_function",
        "require",
    ]


def test_nothing_has_happened_when_a_condition_fails():
    log = []

    def program(x):
        log.append("before")
        y = torch.rand(3) + x
        if y.sum() < 0:
            raise ValueError("negative")
        log.append("behind")
        return y

    compiled = framejit.api.compile(program, backend="eager")
    compiled(torch.zeros(3))
    states = []
    for function in (program, compiled):
        log.clear()
        torch.manual_seed(3)
        with pytest.raises(ValueError):
            function(torch.full((3,), -5.0))
        states.append((list(log), torch.get_rng_state().tolist()))
    assert states[0] == states[1] and states[0][0] == ["before"]


def test_errors_that_are_usual_are_no_errors():
    """From the third time on the condition is a branch like others: nothing runs twice."""
    backend = CountingBackend()
    compiled = framejit.api.compile(condition_that_raises, backend=backend)
    assert torch.equal(compiled(X), condition_that_raises(X))
    for _ in range(4):
        with pytest.raises(ValueError):
            compiled(X - 10)
    assert sum(framejit.counters["deoptimised"].values()) == 2
    assert torch.equal(compiled(X), condition_that_raises(X))
    assert len(backend.graphs) == 4


def test_fullgraph_takes_conditions_for_granted():
    compiled = framejit.api.compile(condition_inside_with, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), condition_inside_with(X))
    with pytest.raises(Invalid):
        compiled(X * float("inf"))


def test_distributions():
    def program(x):
        normal = torch.distributions.Normal(x, x.exp(), validate_args=False)
        choice = torch.distributions.Categorical(logits=x, validate_args=False)
        return normal.log_prob(x + 1), choice.entropy(), normal.mean

    check(program, torch.ones(2, 3), graphs=1, fullgraph=True, ops=19)
