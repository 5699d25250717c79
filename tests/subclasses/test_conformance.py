"""Programs with tensors made of others, each held against plain Python and `torch.compile`."""

import conforming
import pytest


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", conforming.LOCAL)
def test_values_may_change_and_what_is_told_may_not(name, backend):
    conforming.conforms(conforming.LOCAL[name], backend)


@pytest.mark.slow
@pytest.mark.parametrize("name", conforming.LOCAL)
def test_torch_compile_makes_no_fewer_graphs(name):
    program = conforming.LOCAL[name]
    graphs = conforming.graphs_of_peer(program)
    assert graphs is None or graphs >= program.graphs
