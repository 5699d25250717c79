import pytest

import framejit


@pytest.fixture(autouse=True)
def scripts_go_away(tmp_path):
    """Scripts of mismatches go to a folder of the test."""
    with framejit.config.patch(audit_folder=str(tmp_path / "scripts")):
        yield
