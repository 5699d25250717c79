"""`checkpoint_wrapper` is captured as the checkpoint that it calls."""

import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    checkpoint_wrapper,
)

import framejit
from checking import CountingBackend
from framejit.graph.nested import checkpointed


@pytest.mark.parametrize("form", list(CheckpointImpl))
def test_a_wrapped_layer_is_part_of_the_graph(form):
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
    model = nn.Sequential(nn.Linear(4, 4), checkpoint_wrapper(layer, checkpoint_impl=form))
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend, fullgraph=True)
    x, gradients = torch.randn(2, 4), []
    for function in (model, compiled):
        model.zero_grad()
        function(x).sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(*gradients, rtol=0, atol=0)
    (graph,) = backend.graphs
    assert len(graph.graph.find_nodes(op="call_function", target=checkpointed)) == 1
