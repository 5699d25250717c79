"""Training BERT through Inductor writes the code of few graph modules."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_fifteen_times_fewer():
    pytest.importorskip("transformers")
    import recompiles

    plain, lazy = recompiles.measure("plain"), recompiles.measure("lazy")
    assert plain["recompiles"] >= 30
    assert plain["recompiles"] >= 15 * lazy["recompiles"]
