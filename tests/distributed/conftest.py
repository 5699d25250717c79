"""The processes that the tests of this folder share."""

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def ranks():
    """Two processes in one group."""
    started = Ranks(2)
    yield started
    started.close()


@pytest.fixture(scope="session")
def four_ranks():
    """Four processes in one group."""
    started = Ranks(4)
    yield started
    started.close()
