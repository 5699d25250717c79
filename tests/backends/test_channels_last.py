"""Convolutions and their gradients in one graph take the same activations and weights."""

import copy

import pytest
import torch
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass

import framejit
from checking import Outcome, compare_outcomes
from framejit.audit.comparison import Tolerance

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Noted(CustomGraphPass):
    """Keeps what Inductor generates code for: which operators, and how their results lie."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph):
        self.graphs.append(copy.deepcopy(graph))

    def uuid(self):
        return None

    def count(self, name):
        return sum(name in str(node.target) for graph in self.graphs for node in graph.nodes)


class Network(nn.Module):
    """Kernels of several sizes, one of which makes elements of dimensions of size one."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm, self.second = nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)
        self.narrow, self.last = nn.Conv2d(8, 6, 1, bias=False), nn.Linear(6 * 25, 2)

    def forward(self, x):
        y = torch.relu(self.norm(self.first(x)))
        y = torch.relu(self.second(y) + y)
        return self.narrow(y), y


def step_of(network, seen=lambda x, y, z: ()):
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        z, y = network(x)
        loss = network.last(z.flatten(1)).square().mean() + (z.sum(1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), seen(x, y, z)

    return step


def trained(seen=lambda x, y, z: (), picture=None):
    """Three steps, held against plain Python; what Inductor was given for the last capture."""
    torch.manual_seed(0)
    plain = Network()
    other = copy.deepcopy(plain)
    noted = Noted()
    compiled = framejit.compile(
        step_of(other, seen), backend="inductor", fullgraph=True,
        options={"post_grad_custom_post_pass": noted},
    )  # fmt: skip
    run = step_of(plain, seen)
    picture = torch.randn(2, 3, 5, 5) if picture is None else picture
    tolerance = Tolerance(1e-4, 1e-5)
    for turn in range(3):
        outcomes = []
        for each in (run, compiled):
            torch.manual_seed(turn)
            given = picture.detach().clone().requires_grad_(picture.requires_grad)
            outcomes.append(Outcome(each, (given,), {}))
        compare_outcomes(*outcomes, tolerance)
        for name, parameter in plain.named_parameters():
            twin = other.get_parameter(name)
            torch.testing.assert_close(twin, parameter, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(twin.grad, parameter.grad, rtol=1e-3, atol=1e-4)
            assert twin.grad.stride() == parameter.grad.stride(), name
        for name, buffer in plain.named_buffers():
            torch.testing.assert_close(other.get_buffer(name), buffer, rtol=1e-4, atol=1e-5)
    assert len(noted.graphs) == 2  # the first step makes the optimizer's state
    noted.graphs = noted.graphs[1:]
    return noted


def laid_out(graph):
    """What is copied so that channels come last, by the shapes."""
    return [
        tuple(node.meta["val"].shape) for node in graph.nodes
        if "force_stride_order" in str(node.target)
        and node.meta["val"].is_contiguous(memory_format=torch.channels_last)
    ]  # fmt: skip


#: What comes out of the linear layer's gradient.
GRADIENT = (2, 6, 5, 5)


def test_each_is_laid_out_once():
    (graph,) = trained().graphs
    backward = graph.find_nodes(
        op="call_function", target=torch.ops.aten.convolution_backward.default
    )
    assert len(backward) == 3
    for node in backward:
        for argument in node.args[:3]:
            assert argument.meta["val"].is_contiguous(memory_format=torch.channels_last)
    assert sorted(laid_out(graph)) == [(2, 3, 5, 5), GRADIENT, (8, 3, 3, 3), (8, 8, 3, 3)]


def test_what_programs_see_lies_as_in_eager_mode():
    noted = trained(lambda x, y, z: (y.detach(), z.detach() * 2, z.detach().permute(1, 0, 2, 3)))
    assert noted.count("force_stride_order") > 3


def test_gradients_of_pictures_lie_as_in_eager_mode():
    trained(lambda x, y, z: x.grad, torch.randn(2, 3, 5, 5, requires_grad=True))


def test_pictures_that_lie_so_already_are_not_laid_out():
    picture = torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last)
    (graph,) = trained(picture=picture).graphs
    assert sorted(laid_out(graph)) == [GRADIENT, (8, 3, 3, 3), (8, 8, 3, 3)]


def test_places_in_memory_stay():
    noted = trained(lambda x, y, z: y.detach().contiguous().as_strided((2, 3), (50, 1)) + 1)
    (graph,) = noted.graphs
    found = graph.find_nodes(op="call_function", target=torch.ops.aten.as_strided.default)
    (taken,) = [node.args[0] for node in found if tuple(node.args[1]) == (2, 3)]
    assert taken.meta["val"].stride() == (200, 25, 5, 1)


def test_random_numbers_that_are_to_be_those_of_eager_mode_fill_memory_in_its_order():
    class Noisy(Network):
        def forward(self, x):
            z, y = super().forward(x)
            return z * torch.rand_like(z), y

    for as_eager in (True, False):
        noted = Noted()
        options = {"post_grad_custom_post_pass": noted, "fallback_random": as_eager}
        compiled = framejit.compile(step_of(Noisy()), backend="inductor", options=options)
        compiled(torch.randn(2, 3, 5, 5))
        assert noted.count("convolution_backward") == 3
        assert len([name for graph in noted.graphs for name in laid_out(graph)]) == 4
        for graph in noted.graphs if as_eager else ():
            (drawn,) = [n for n in graph.nodes if "rand" in str(n.target) and n.op != "placeholder"]
            assert drawn.meta["val"].is_contiguous()


def test_graphs_without_gradients_are_left_to_inductor():
    noted = Noted()
    compiled = framejit.compile(
        Network().eval(), backend="inductor", options={"post_grad_custom_post_pass": noted}
    )
    with torch.no_grad():
        compiled(torch.randn(1, 3, 5, 5))
    assert len(noted.graphs) == 1
    assert noted.count("force_stride_order") == 0
