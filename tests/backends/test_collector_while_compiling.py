"""The garbage collector looks less often while Inductor compiles, and as before afterwards.

Programs that have switched it off are left alone, by captures as well.
"""

import gc
import weakref

import pytest
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

import framejit
from framejit import collection
from framejit.collection import no_collection, rare_collection

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Looking(CustomGraphPass):
    """What the collector does while each graph is compiled."""

    def __init__(self, error=None):
        self.seen, self.error = [], error

    def __call__(self, graph):
        self.seen.append((gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0))
        if self.error is not None:
            raise self.error

    def uuid(self):
        return None


def taken(*thresholds):
    """CPython 3.14.0 ignores a third threshold."""
    gc.set_threshold(*thresholds)
    return gc.get_threshold()


@pytest.fixture(autouse=True)
def collector():
    before = gc.get_threshold()
    gc.set_threshold(800, 11, 1200)
    gc.unfreeze()
    gc.collect()  # framejit counts what is frozen once after each
    yield
    gc.unfreeze()
    gc.enable()
    gc.set_threshold(*before)


def state():
    return gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0


def trained(looking):
    """A forward graph and, when backward comes, a backward graph."""
    x = torch.randn(3, 4, requires_grad=True)
    options = {"post_grad_custom_pre_pass": looking}
    compiled = framejit.compile(lambda x: x.sin() * x.exp(), backend="inductor", options=options)
    before = state()
    y = compiled(x)
    assert state() == before
    y.sum().backward()
    assert state() == before
    torch.testing.assert_close(x.grad, (x.cos() + x.sin()).detach() * x.exp().detach())


@pytest.mark.parametrize(
    "own, meanwhile",
    [
        ((800, 9, 1200), (10_000, 10, 1200)),  # torch 2.15 sets 1000, where that is more
        ((50_000, 11, 1200), (50_000, 11, 1200)),
    ],
)  # fmt: skip
def test_it_looks_less_often_and_not_at_what_was_there_before(own, meanwhile):
    meanwhile = taken(*meanwhile)
    taken(*own)
    looking = Looking()
    trained(looking)
    assert looking.seen == [(True, meanwhile, True)] * 2


@pytest.mark.parametrize("switch_off", [gc.disable, lambda: gc.set_threshold(0)])
def test_programs_that_have_switched_it_off_are_left_alone(switch_off):
    switch_off()
    expected = state()
    looking = Looking()
    trained(looking)
    assert looking.seen == [expected] * 2


def test_what_programs_have_frozen_stays_so():
    gc.freeze()
    expected = state()
    looking = Looking()
    trained(looking)
    assert looking.seen == [expected] * 2
    assert gc.get_freeze_count() > 0


def test_errors_leave_it_as_it_was():
    looking = Looking(RuntimeError("not this graph"))
    compiled = framejit.compile(
        lambda x: x + 1, backend="inductor", options={"post_grad_custom_pre_pass": looking}
    )
    before = state()
    with pytest.raises(framejit.exc.BackendCompilerFailed, match="not this graph"):
        compiled(torch.ones(2))
    assert state() == before
    assert looking.seen


def test_thresholds_that_others_set_meanwhile_stay():
    with rare_collection():
        set_by_others = taken(123, 4, 5)
    assert gc.get_threshold() == set_by_others
    assert gc.get_freeze_count() == 0


class Cycle:
    def __init__(self):
        self.own = self


def test_garbage_goes_meanwhile_and_what_was_garbage_before_goes_afterwards():
    early = weakref.ref(Cycle())
    with rare_collection():
        late = weakref.ref(Cycle())
        gc.collect()
        assert late() is None
        assert early() is not None
    gc.collect()
    assert early() is None


def test_what_is_frozen_is_counted_once_after_each_full_collection(monkeypatch):
    gc.freeze()
    counted = []
    count = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())
    made = []
    for _ in range(3):
        with no_collection():
            made += [[] for _ in range(20_000)]
    assert len(counted) == 1
    gc.unfreeze()
    gc.collect()
    with no_collection():
        made += [[] for _ in range(20_000)]
    assert gc.get_count()[0] < 1_000  # they have grown old


@pytest.mark.parametrize(
    "switch_off, collected",
    [(lambda: None, True), (gc.disable, False), (lambda: gc.set_threshold(0), False)],
)
def test_captures_collect_only_where_the_collector_is_on(switch_off, collected, monkeypatch):
    """They do so after many objects that nobody has looked at."""
    monkeypatch.setattr(collection, "_MOST_UNSEEN", 0)
    gc.collect()
    switch_off()
    garbage = weakref.ref(Cycle())
    with no_collection():
        made = [[] for _ in range(20_000)]
    assert (garbage() is None) is collected
    assert len(made) == 20_000
