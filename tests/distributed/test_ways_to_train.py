"""A small transformer under each of PyTorch's ways to train on several processes: graphs and breaks
are as few as can be, and training is that of plain Python; `torch.compile` needs no fewer."""

import engines
import pytest
from data_parallel import AROUND_MODULES

#: Graphs, operations, and breaks. Only where blocks that are sharded are parts of what is compiled
#: does something of PyTorch's come between operations.
EXPECTED = {
    "replicated": (1, 42, 0), "sharded": (2, 40, 0), "sharded_whole": (4, 42, 3),
    "split_whole": (1, 76, 0), "both": (2, 68, 0),
}  # fmt: skip
BACKENDS = [
    "eager",
    *[pytest.param(name, marks=pytest.mark.slow) for name in ("aot_eager", "inductor")],
]


@pytest.fixture
def processes(request, way):
    """Four processes where a mesh has two directions, else two."""
    return request.getfixturevalue("four_ranks" if way == "both" else "ranks")


def _trained(rank, way, backend):
    engine = engines.Ours(backend)
    engines.measured(way, engine, engines.train(way, lambda module: module))
    assert {one.identifier for one in engine.breaks} <= {AROUND_MODULES}
    return engine.counted.graphs, engine.counted.counting.ops, len(engine.breaks)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", engines.WAYS)
def test_training_is_that_of_plain_python(processes, way, backend):
    assert processes.run(_trained, way, backend) == [EXPECTED[way]] * processes.count


def _beside(rank, way):
    ours, peer = engines.Ours("aot_eager"), engines.Peer("aot_eager")
    ours.counted.regions = True  # blocks that are alike are one graph, as they are for the peer
    engines.measured(way, ours)
    engines.measured(way, peer)
    more = ours.counted.counting.ops > peer.counted.counting.ops
    return more, ours.counted.graphs <= peer.counted.graphs, len(ours.breaks) <= len(peer.breaks)


@pytest.mark.slow
@pytest.mark.parametrize("way", engines.WAYS)
def test_torch_compile_has_no_fewer_graphs_and_breaks(processes, way):
    """Of a whole sharded model `torch.compile` captures the blocks alone."""
    whole = way == "sharded_whole"
    assert processes.run(_beside, way) == [(whole, not whole, not whole)] * processes.count
