"""A fuzzer for guards: anything that a program reads may change between two calls.

Hypothesis picks changes of modules, globals, arguments and modes; after each one the compiled
program must do what plain Python does, through a new capture or through guards that hold.
"""

import contextlib

import pytest
import torch
from fuzzed_world import CHANGES, World, outcome
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import framejit
from checking import Comparison, CountingBackend

NAMES = sorted(CHANGES)
STEPS = 50


class Machine(RuleBasedStateMachine):
    """Two worlds, changed alike."""

    steps = 0
    captures = 0

    def __init__(self):
        super().__init__()
        self.patch = framejit.config.patch(recompile_limit=100, raise_internal_errors=True)
        self.patch.__enter__()
        self.eager, self.world = World(), World()
        self.backend = CountingBackend()
        self.compiled = framejit.compile(self.world.main, backend=self.backend)
        self.call()

    def call(self):
        expected = outcome(self.eager, self.eager.main)
        got = outcome(self.world, self.compiled)
        Comparison().compare(expected, got, "outcome")

    def apply(self, name, number):
        for world in (self.eager, self.world):
            torch.manual_seed(0)
            with contextlib.suppress(AttributeError, TypeError):  # impossible, in both
                CHANGES[name](world, number)

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 11))
    def change(self, name, number):
        self.apply(name, number)
        self.call()
        Machine.steps += 1

    @rule(name=st.sampled_from(NAMES), other=st.sampled_from(NAMES), number=st.integers(0, 11))
    def change_twice(self, name, other, number):
        """Two changes before the next call; then the first one once more."""
        self.apply(name, number)
        self.apply(other, number + 1)
        self.call()
        self.change(name, number + 1)

    @rule()
    def call_again(self):
        before = len(self.backend.graphs)
        self.call()
        assert len(self.backend.graphs) == before, "captured again though nothing has changed"
        Machine.steps += 1

    def teardown(self):
        self.patch.__exit__(None, None, None)


def fuzz(examples):
    Machine.steps = 0
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(300)
def test_changes_are_noticed():
    fuzz(5)
    assert Machine.steps >= 120


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_ten_thousand_steps():
    fuzz(230)
    assert Machine.steps >= 10_000
