"""Whole models through Inductor: what one process compiled runs in another, gradients included."""

import package_models
import pytest
from test_second_process import process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    saved = process("save", directory, "inductor", script=package_models.__file__)
    assert all(row["right"] and len(row["captured"]) == 1 for row in saved.values()), saved
    return process("load", directory, "inductor", script=package_models.__file__)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", package_models.PROGRAMS)
def test_the_second_process_traces_nothing(loaded, name):
    row = loaded[name]
    assert row["right"]
    assert row["captured"] == [] and row["compiled"] == 0
