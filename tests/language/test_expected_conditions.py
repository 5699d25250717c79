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


def p01_raise(x):
    y = x + 1
    if (y < 0).any():
        raise ValueError(f"negative: {y.min()}")
    return y * 2


def p02_assert(x):
    assert (x >= 0).all(), "negative"
    return x * 2


def p03_inlined(x):
    return require(require(x, "x") * 2, "twice x") + 1


def p04_inside_with(x):
    with Ctx(), torch.no_grad():
        y = x * 2
        if not torch.isfinite(y).all():
            raise Invalid("infinite", worst=None)
        return y + 1


def p05_either(x):
    if (x < -1).any() or (x > 100).any():
        message = "low" if (x < -1).any() else "high"
        raise ValueError(message)
    return x.relu()


def p06_the_other_way_round(x):
    if (x >= 0).all():
        return x * 2
    raise ValueError("negative")


def p07_distribution(x):
    d = torch.distributions.Normal(x, torch.ones_like(x), validate_args=True)
    return d.log_prob(x + 1).sum(), d.entropy()


def p08_state_before_and_behind(x):
    log = ["start"]
    y = x + len(log)
    log.append("checked")
    assert y.min() >= 0
    log.append("behind")
    return y, log


def p09_random_numbers(x):
    torch.manual_seed(1)
    y = torch.nn.functional.dropout(x + 1)
    if y.sum() < 0:
        raise ValueError("negative")
    return y, torch.rand(2)


def p10_caught_here(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        return x - 1
    except ValueError:
        return x + 1


def p11_ends_a_loop(x):
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


def p12_error_through_a_generator(x):
    def parts():
        for part in x:
            if part.sum() > 1000:
                raise ValueError("too large")
            yield part * 2

    return list(parts())


def p13_a_number_in_the_graph_only(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x.shape


def p14_written_input(x):
    x.add_(1)
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2


#: (program, graphs, operations captured)
PROGRAMS = [
    (p01_raise, 1, 4), (p02_assert, 1, 3), (p03_inlined, 1, 6), (p04_inside_with, 1, 6),
    (p05_either, 1, 5), (p06_the_other_way_round, 1, 3), (p07_distribution, 1, 23),
    (p08_state_before_and_behind, 1, 3), (p09_random_numbers, 1, 5), (p10_caught_here, 2, 3),
    (p11_ends_a_loop, 2, 4), (p12_error_through_a_generator, 1, 9),
    (p13_a_number_in_the_graph_only, 1, 2), (p14_written_input, 2, 4),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


@pytest.mark.parametrize("function", [p[0] for p in PROGRAMS])
@pytest.mark.parametrize("start", [-10.0, 2000.0, float("nan"), float("inf")])
def test_errors_are_those_of_plain_python(function, start):
    check(function, X + start)


def test_an_error_is_the_users_own():
    compiled = framejit.api.compile(p03_inlined, backend="eager")
    compiled(X)
    with pytest.raises(Invalid, match="twice x is too large: 1200") as caught:
        compiled(X + 595)
    assert caught.value.worst == 1200.0
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [entry.name for entry in caught.traceback][-2:] == ["p03_inlined", "require"]


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
    compiled = framejit.api.compile(p01_raise, backend=backend)
    assert torch.equal(compiled(X), p01_raise(X))
    for _ in range(4):
        with pytest.raises(ValueError):
            compiled(X - 10)
    assert sum(framejit.counters["deoptimised"].values()) == 2
    assert torch.equal(compiled(X), p01_raise(X))
    assert len(backend.graphs) == 4


def test_fullgraph_takes_conditions_for_granted():
    compiled = framejit.api.compile(p04_inside_with, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), p04_inside_with(X))
    with pytest.raises(Invalid):
        compiled(X * float("inf"))
