"""The soundness table: what was read is guarded, what was not read is not (issue 4).

Each row is compiled, called, changed in one thing and called again. NEEDED: it has to be captured
anew; ALLOWED: it may be; FREE: it must not be. Results are always those of eager.
"""

import pytest
import soundness_arguments  # noqa: F401 - its rows
import soundness_contents  # noqa: F401
import soundness_identity  # noqa: F401
import soundness_modules  # noqa: F401
import soundness_objects  # noqa: F401
import soundness_state  # noqa: F401
import soundness_training  # noqa: F401
from soundness import REPEATED, ROWS, check_loaded_row, check_row

from framejit import config


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row):
    check_row(row)


@pytest.mark.parametrize("row", REPEATED, ids=lambda row: row.name)
def test_row_of_a_repeated_module(row):
    with config.patch(verify_recordings=True):
        check_row(row)


@pytest.mark.parametrize("row", [r for r in ROWS if r.packaged], ids=lambda row: row.name)
def test_row_from_a_package(row, tmp_path):
    check_loaded_row(row, tmp_path / "package")


def test_the_table_is_long():
    assert len(ROWS) >= 150
