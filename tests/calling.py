"""Calls of what is compiled in the background, until it is there."""

import time
from collections.abc import Callable
from typing import Any

import pytest

#: Seconds. The machine may be busy.
MINUTES = 300


def until(holds: Callable[[], Any], call: Callable[[], Any]) -> None:
    """Make calls until something holds. How many it takes is not known: while another thread puts
    in place what was compiled, calls run as plain Python and lend captures no time."""
    end = time.monotonic() + MINUTES
    while not holds():
        if time.monotonic() > end:
            pytest.fail("many calls, and it does not hold yet")
        call()
