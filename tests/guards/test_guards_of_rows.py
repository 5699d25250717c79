"""What the rows of the soundness table are guarded on is what ``guards_of_rows.txt`` says."""

import difflib
import functools

import pytest
from guards_of_rows import FILE, guards_of, written
from soundness import ROWS

_written = functools.cache(written)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_guards_of_row(row):
    for name, lines in zip((row.name, f"{row.name}, changed"), guards_of(row), strict=True):
        known = _written().get(name, [])
        if lines != known:
            diff = list(difflib.unified_diff(known, lines, FILE.name, "now", "", "", 0, ""))
            again = "If that is right: python tests/guards/guards_of_rows.py writes the file"
            pytest.fail("\n".join([f"[{name}] is guarded otherwise", *diff, again]), pytrace=False)


def test_all_that_is_written_is_there():
    names = {row.name for row in ROWS}
    assert {name.removesuffix(", changed") for name in _written()} == names
