"""The shape programs: like eager at every size, few captures, guards that hold exactly as far."""

import random
from pathlib import Path

import pytest
import torch
from shape_programs import PROGRAMS

import framejit
from checking import Outcome, compare_outcomes


def compare(compiled, name, n, m):
    entry = PROGRAMS[name]
    torch.manual_seed(n * 100 + m)
    args = entry.make(n, m)
    torch.manual_seed(n * 100 + m)
    again = entry.make(n, m)
    compare_outcomes(Outcome(entry.function, again, {}), Outcome(compiled, args, {}))


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_sizes_are_enough(name):
    compiled = framejit.compile(PROGRAMS[name].function, backend="eager", fullgraph=True)
    for n, m in [(4, 3), (6, 5), (4, 3), (6, 5)]:
        compare(compiled, name, n, m)
    assert len(compiled.entries) == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_size_is_like_eager(name):
    """The property: whatever passes the guards gives what eager gives."""
    numbers = random.Random(name)
    compiled = framejit.compile(PROGRAMS[name].function, backend="eager", fullgraph=True)
    for n, m in [(4, 3), (6, 5)]:
        compare(compiled, name, n, m)
    for _ in range(12):
        compare(compiled, name, numbers.randint(2, 12), numbers.randint(2, 12))


def test_the_table_in_the_docs_lists_every_program():
    page = (Path(__file__).parents[2] / "docs" / "shapes.md").read_text()
    assert len(PROGRAMS) >= 60
    assert all(f"| {name} | " in page for name in PROGRAMS)
