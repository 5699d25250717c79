"""What Inductor's cache keys are made of is put into words for logs alone."""

import logging

import pytest
import torch
from torch._inductor import codecache
from torch._inductor.utils import fresh_cache

import framejit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("level", [logging.WARNING, logging.DEBUG])
def test_keys_are_described_when_somebody_reads_it(level, caplog, monkeypatch):
    pickled = []
    dumps = codecache.FxGraphCachePickler.dumps

    def counting(pickler, value):
        if type(pickler) is codecache.FxGraphCachePickler:
            pickled.append(value)
        return dumps(pickler, value)

    monkeypatch.setattr(codecache.FxGraphCachePickler, "dumps", counting)
    # Pytest listens to all that is traced.
    monkeypatch.setattr(torch._logging._internal.trace_log, "handlers", [])
    caplog.set_level(level, logger=codecache.log.name)
    framejit.reset()  # also what equal graphs were compiled to
    compiled = framejit.compile(lambda x, y: (x * y).sin(), backend="inductor")
    x = torch.randn(3, 4)
    with fresh_cache():
        torch.testing.assert_close(compiled(x, x + 1), (x * (x + 1)).sin())
    whole = [one for one in pickled if isinstance(one, codecache.FxGraphHashDetails)]
    assert len(whole) == 1
    assert (len(pickled) > 1) is (level == logging.DEBUG)
