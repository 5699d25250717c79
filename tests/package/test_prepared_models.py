"""Models that are compiled on meta in one process run with real weights in another one."""

import prepared_models
import pytest
from test_second_process import process

#: Those of the default suite, without a backend.
SOME = ("bert", "llama", "resnet18")


def rows(directory, backend, names):
    """What happened in the process that loads."""
    script = prepared_models.__file__
    prepared = process("prepare", directory, backend, names, script)
    assert all(row["captured"] == row["compiled"] == 1 for row in prepared.values()), prepared
    return process("load", directory, backend, names, script)


def check(loaded, names):
    expected = {"right": True, "captured": 0, "compiled": 0}
    assert loaded == {name: {"name": name, **expected} for name in names}


@pytest.mark.timeout(600)
def test_some_models(tmp_path):
    check(rows(tmp_path, "eager", SOME), SOME)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_all_models(tmp_path, backend):
    assert len(prepared_models.NAMES) == 12
    check(rows(tmp_path, backend, ()), prepared_models.NAMES)
