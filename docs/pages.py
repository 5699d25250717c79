"""Writes a generated page, or checks that it is up to date; for the make_*.py scripts beside it."""

import sys
from pathlib import Path


def write_or_check(path: Path, text: str) -> int:
    """The script's exit status: 1 if ``--check`` was given and the page says something else."""
    if "--check" in sys.argv:
        return int(not path.exists() or path.read_text() != text)
    path.write_text(text)
    return 0
