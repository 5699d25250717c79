"""Random programs behave the same compiled: results, state, output, exceptions, gradients.

A failure prints the program made small; ``python tests/fuzz SEED SEED+1 --shrink 1`` does it again.
"""

from __future__ import annotations

from collections import Counter

import pytest
from program_writer import FIRST_WITH_IDIOMS, Program
from runner import MODES, run
from shrinker import shrink
from snapshots import Snapshot
from training_programs import FIRST_AUTOCAST, FIRST_WHOLE

from programs import (
    FIRST_CHANGED_PROGRAM,
    FIRST_PROGRAM_OF_ALIASES,
    FIRST_PROGRAM_OF_CALLS,
    FIRST_PROGRAM_OF_COMPUTING_REPEATS,
    FIRST_PROGRAM_OF_FEATURES,
    FIRST_PROGRAM_OF_OBJECTS,
    FIRST_PROGRAM_OF_OPERATORS,
    FIRST_PROGRAM_OF_REPEATS,
    FIRST_PROGRAM_OF_REPLACING,
    FIRST_PROGRAM_OF_TRAINING,
    FIRST_STATE_PROGRAM,
    program_of,
)

#: A function that runs no PyTorch at all, called between two graphs, has nothing to capture.
NOTHING_TO_CAPTURE = "it runs no PyTorch operation"
PIECE = 1000


def run_piece(first: int, count: int, mode: str) -> None:
    """Run programs of consecutive seeds; assert that all agree and nearly all are captured."""
    captured = late = 0
    reasons: Counter[str] = Counter()
    for seed in range(first, first + count):
        program = program_of(seed)
        report = run(program, mode, seed)
        if report.failure:
            pytest.fail(f"seed {seed}, mode {mode}\n{shrink(program, mode, seed).text}")
        late += report.late
        skipped = [reason for reason in report.skipped if reason != NOTHING_TO_CAPTURE]
        reasons.update(skipped)
        captured += not skipped
    assert late <= 1 + count // 100, f"{late} programs end in an error after a write"
    assert captured >= 0.95 * count, f"{captured} of {count} are captured fully: {reasons}"


@pytest.mark.parametrize("mode, first, count", [
    ("plain", 0, 60), ("plain", FIRST_STATE_PROGRAM, 30), ("cut", FIRST_STATE_PROGRAM + 5000, 10),
    ("plain", FIRST_PROGRAM_OF_CALLS + 220, 30), ("plain", FIRST_PROGRAM_OF_FEATURES, 15),
    ("plain", FIRST_PROGRAM_OF_REPEATS, 10), ("plain", FIRST_PROGRAM_OF_TRAINING, 20),
    ("plain", FIRST_PROGRAM_OF_ALIASES, 15), ("plain", FIRST_PROGRAM_OF_COMPUTING_REPEATS, 15),
    ("plain", FIRST_PROGRAM_OF_OPERATORS, 20), ("aot", FIRST_PROGRAM_OF_OPERATORS + 20, 20),
    ("plain", FIRST_PROGRAM_OF_REPLACING, 20), ("aot", FIRST_PROGRAM_OF_REPLACING + 150, 20),
    ("aot", FIRST_AUTOCAST, 15),
])  # fmt: skip
def test_a_few_programs(mode: str, first: int, count: int) -> None:
    run_piece(first, count, mode)


@pytest.mark.generated
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode, first, count", [
    ("plain", 100, 100), ("breaks", 700, 50), ("hook", 800, 50), ("limit", 900, 50),
    ("plain", FIRST_WITH_IDIOMS, 50),
    ("plain", FIRST_STATE_PROGRAM + 60, 45), ("cut", FIRST_STATE_PROGRAM + 10_000, 40),
    ("hook", FIRST_STATE_PROGRAM + 20_000, 40), ("plain", FIRST_CHANGED_PROGRAM, 40),
    ("plain", FIRST_STATE_PROGRAM + 2000, 80), ("plain", FIRST_STATE_PROGRAM + 6000, 50),
    ("cut", FIRST_STATE_PROGRAM + 5020, 40),
    ("plain", FIRST_PROGRAM_OF_CALLS + 280, 20), ("plain", FIRST_PROGRAM_OF_CALLS + 1000, 40),
    ("plain", FIRST_PROGRAM_OF_FEATURES + 30, 30), ("plain", FIRST_PROGRAM_OF_OBJECTS, 120),
    ("again", FIRST_PROGRAM_OF_OBJECTS + 20_000, 40),
    ("plain", FIRST_PROGRAM_OF_REPEATS + 30, 30),
    ("plain", FIRST_PROGRAM_OF_COMPUTING_REPEATS + 30, 40),
    ("regions", FIRST_PROGRAM_OF_REPEATS, 15),
    ("plain", FIRST_PROGRAM_OF_TRAINING + 30, 40), ("aot", FIRST_WHOLE, 20),
    ("plain", FIRST_PROGRAM_OF_ALIASES + 20, 50),
    ("plain", FIRST_PROGRAM_OF_OPERATORS + 1000, 40),
    ("aot", FIRST_PROGRAM_OF_OPERATORS + 1100, 40),
    ("plain", FIRST_PROGRAM_OF_REPLACING + 1000, 40),
    ("aot", FIRST_PROGRAM_OF_REPLACING + 1100, 40),
    ("hook", FIRST_PROGRAM_OF_REPLACING + 1200, 20),
])  # fmt: skip
def test_some_programs(mode: str, first: int, count: int) -> None:
    run_piece(first, count, mode)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode, first", [
    *[("plain", 1000 + PIECE * number) for number in range(14)],
    *[("plain", FIRST_STATE_PROGRAM + PIECE * number) for number in range(20)],
    *[("cut", FIRST_STATE_PROGRAM + 100_000 + PIECE * number) for number in range(6)],
    *[("hook", FIRST_STATE_PROGRAM + 200_000 + PIECE * number) for number in range(2)],
    *[("plain", FIRST_CHANGED_PROGRAM + PIECE * number) for number in range(2)],
    *[("plain", FIRST_PROGRAM_OF_CALLS + 2000 + PIECE * number) for number in range(4)],
    *[("plain", FIRST_PROGRAM_OF_OBJECTS + 200 + PIECE * number) for number in range(2)],
    ("again", FIRST_PROGRAM_OF_OBJECTS + 60_000),
    *[("plain", FIRST_PROGRAM_OF_REPEATS + 1000 + PIECE * number) for number in range(5)],
    *[("plain", FIRST_PROGRAM_OF_COMPUTING_REPEATS + 1000 + PIECE * number) for number in range(2)],
    *[("plain", FIRST_PROGRAM_OF_TRAINING + 1000 + PIECE * number) for number in range(4)],
    *[("plain", FIRST_PROGRAM_OF_ALIASES + 1000 + PIECE * number) for number in range(3)],
    *[("plain", FIRST_PROGRAM_OF_OPERATORS + 2000 + PIECE * number) for number in range(3)],
    *[("aot", FIRST_PROGRAM_OF_OPERATORS + 10_000 + PIECE * number) for number in range(2)],
    ("plain", FIRST_PROGRAM_OF_REPLACING + 2000), ("aot", FIRST_PROGRAM_OF_REPLACING + 10_000),
    ("aot", FIRST_WHOLE + 1000), ("aot", FIRST_PROGRAM_OF_REPEATS + 10_000),
    ("regions", FIRST_PROGRAM_OF_REPEATS + 20_000),
    *[(mode, 20_000 + 2000 * at + PIECE * half) for at, mode in enumerate(MODES[1:])
      for half in range(2)],
    *[(mode, FIRST_WITH_IDIOMS + 1000 + PIECE * at) for at, mode in enumerate(("plain", "breaks"))],
])  # fmt: skip
def test_many_programs(mode: str, first: int) -> None:
    run_piece(first, PIECE, mode)


def test_a_wrong_answer_is_found_and_made_small() -> None:
    """The fuzzer itself: a program that can tell that it is compiled fails and shrinks."""
    source = program_of(3).source
    body = "import framejit\n    if framejit.is_compiling(): x = x + 1\n    y = [x]\n    return x"
    program = Program(
        f"{source}\ndef main(x, n):\n    {body}\n", ["main:(R(1), 2)", "main:(R(2), 3)"]
    )
    report = run(program)
    assert report.signature == "result"
    small = shrink(program, "plain", 0)
    assert small.report.signature == "result" and len(small.program.calls) == 1
    assert "y = " not in small.text and "class" not in small.text
    assert len(small.text.splitlines()) < 15


def test_lines_of_variables_without_a_value() -> None:
    """CPython says another line once it runs two instructions as one; the same for both sides."""
    body = "if i < 19:\n            late = i\n        else:\n            del late\n"
    loop = f"for i in range(20):\n        {body}        y = x\n        z = late"
    program = Program(f"{program_of(3).source}\ndef main(x, n):\n    {loop}\n", ["main:(R(1), 2)"])
    report = run(program)
    assert report.raised == 1 and not report.failure


def test_sets_of_classes_have_no_order() -> None:
    """Where a class is in a set is a matter of its address."""
    sets = [{type(f"C{i}", (), {}) for i in names} | {3} for names in (range(20), range(20)[::-1])]
    one, two = map(Snapshot().take, sets)
    assert one == two and one != Snapshot().take({*list(sets[0])[1:]})


def test_addresses_and_errors_without_a_text() -> None:
    """Printed addresses are not compared; an error's own ``__str__`` may fail."""
    kind = "class Odd(Exception):\n    def __str__(self): return 3"
    body = "print(object())\n    return Odd(), x + 1"
    source = f"{program_of(3).source}\n{kind}\ndef main(x, n):\n    {body}\n"
    report = run(Program(source, ["main:(R(1), 2)"]))
    assert not report.failure and report.graphs
