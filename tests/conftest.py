"""For all tests: counters start empty, bugs of framejit are errors, model libraries import."""

import gc
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import torchvision_operators  # noqa: E402, F401 - model libraries import

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # the processes share the machine
    workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    torch.set_num_threads(max(1, torch.get_num_threads() // workers))


def pytest_addoption(parser):
    parser.addoption(
        "--audit", action="store_true",
        help="make all calls of compiled functions as plain Python, too; differences fail the test",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.getoption("--audit"):
        import framejit

        framejit.config.audit = 1.0
        config.option.timeout = 0  # much is done three times


def pytest_collection_finish(session):
    leave_out_of_collections()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    result = yield
    if nextitem is None or nextitem.path != item.path:
        leave_out_of_collections()
    return result


def leave_out_of_collections():
    """The collector does not look again at what is there now: thousands of tests, torch and the
    model libraries are so many objects that walking them would take most of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def strict_framejit():
    """Every test starts with empty counters, and a bug of framejit fails it; with ``--audit``, also
    each call that does something else than plain Python."""
    import framejit
    from framejit.native import GlobalState
    from framejit.report import events

    framejit.counters.clear()
    before = GlobalState()
    with (
        framejit.config.patch(raise_internal_errors=True),
        events.recording(events.Mismatch) as seen,  # all events would keep objects alive
    ):
        yield
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # of an example that ended with an error
    then, now = before.export(), GlobalState().export()
    assert then == now, "torch is set to something else after the test"
    if framejit.config.audit:
        assert not seen, [(event.place, event.difference) for event in seen]
