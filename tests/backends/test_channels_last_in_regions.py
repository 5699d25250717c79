"""Activations go from region to region with channels last, as they would in a flat graph."""

import copy

import pytest
import torch
from test_channels_last import Noted
from torch import nn
from torch._higher_order_ops import invoke_subgraph
from torch.nn import functional as F

import framejit
from checking import Outcome, compare_outcomes
from framejit.audit.comparison import Tolerance
from framejit.report import events

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Block(nn.Module):
    """Eight operations, weights of two kinds among them."""

    def __init__(self, noisy=False):
        super().__init__()
        self.narrow = nn.Conv2d(8, 6, 1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.deep = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.wide = nn.Conv2d(6, 8, 3, padding=1)
        self.noisy = noisy

    def forward(self, x):
        y = F.gelu(self.deep(torch.relu(self.norm(self.narrow(x)))))
        if self.noisy:
            y = F.dropout(y, 0.5, True)
        return torch.relu(self.wide(y) * 0.5 + x)


class Stack(nn.Module):
    def __init__(self, end, **options):
        super().__init__()
        self.blocks = nn.ModuleList([Block(**options) for _ in range(4)])
        self.end = end

    def forward(self, x):
        seen = []
        for block in self.blocks:
            x = block(x)
            seen.append(x)
        return self.end(x, seen)


def compared(model, picture, train=False, **options):
    """Two calls, held against plain Python; what Inductor was given, and the regions."""
    noted, twin = Noted(), copy.deepcopy(model)
    settings = {"regions": True, "post_grad_custom_post_pass": noted, **options}
    compiled = framejit.compile(twin, backend="inductor", fullgraph=True, options=settings)

    def steps(model, net):
        def step(x):
            with torch.set_grad_enabled(train):
                results = net(x)
            if train:
                first = results[0] if isinstance(results, tuple) else results
                (first.square().mean() + first[:, 1].sum()).backward()
            return results, x.grad, [p.grad for p in model.parameters()], list(model.buffers())

        return step

    with events.recording(events.RegionsCompiled) as found:
        for seed in range(2):
            outcomes = []
            for step in (steps(model, model), steps(twin, compiled)):
                torch.manual_seed(seed)
                given = picture.detach().clone().requires_grad_(picture.requires_grad)
                outcomes.append(Outcome(step, (given,), {}))
            compare_outcomes(*outcomes, Tolerance(1e-3, 1e-4))
    return noted, [calls for event in found for _, calls in event.regions]


def calls_of_regions(noted):
    return [
        graph.find_nodes(op="call_function", target=invoke_subgraph)
        for graph in noted.graphs
        if graph.find_nodes(op="call_function", target=invoke_subgraph)
    ]


def pictures_of(call):
    return [node.meta["val"] for node in call.args[2:]
            if node.meta["val"].dim() == 4 and node.meta["val"].shape[2:] == (5, 5)]  # fmt: skip


def copies(noted):
    """What is laid out otherwise around regions, by the shapes."""
    nodes = [node for calls in calls_of_regions(noted) for node in calls[0].graph.nodes]
    return [tuple(n.meta["val"].shape) for n in nodes if "force_stride_order" in str(n.target)]


PICTURE = (2, 8, 5, 5)


def whole(x, seen):
    return x


def test_what_goes_from_region_to_region_is_laid_out_once():
    noted, regions = compared(Stack(whole).eval(), torch.randn(PICTURE))
    (calls,) = calls_of_regions(noted)
    assert regions == [4]
    for call in calls:
        (taken,) = pictures_of(call)
        assert taken.is_contiguous(memory_format=torch.channels_last)
    assert copies(noted) == [PICTURE, PICTURE]  # before the first region, and after the last one


def test_gradients_go_from_region_to_region_so_as_well():
    noted, regions = compared(Stack(whole), torch.randn(PICTURE, requires_grad=True), train=True)
    forward, backward = calls_of_regions(noted)
    assert regions == [4]
    assert len(forward) == len(backward) == 4
    for call in [*forward, *backward]:
        assert pictures_of(call)
        for taken in pictures_of(call):
            assert taken.is_contiguous(memory_format=torch.channels_last)
    # A picture, what comes of it, their gradients, and in backward the picture again.
    assert copies(noted) == [PICTURE] * 5


def test_what_lies_so_already_is_left_alone():
    picture = torch.randn(PICTURE).to(memory_format=torch.channels_last)
    noted, regions = compared(Stack(whole).eval(), picture)
    assert (regions, copies(noted)) == ([4], [])


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "end",
    [
        lambda x, seen: (x, *seen),
        lambda x, seen: (x.flatten(1), seen[1].permute(0, 2, 3, 1), seen[2][:, :1]),
        lambda x, seen: (x.contiguous().as_strided((2, 3), (50, 1)) + 1, seen[2] * 2),
        lambda x, seen: (F.adaptive_avg_pool2d(x, 1).flatten(1), seen[0].sum(1)),
        lambda x, seen: (x.transpose(1, 2).reshape(2, -1), F.interpolate(seen[1], (7, 3))),
        lambda x, seen: (torch.cat([x, seen[0]], 1), x.view(2, 2, 4, 5, 5).unbind(1)),
    ],
)  # fmt: skip
def test_results_lie_as_in_eager_mode(end, train):
    noted, regions = compared(Stack(end).train(train), torch.randn(PICTURE), train)
    assert sum(regions) >= 3
    for calls in calls_of_regions(noted):
        for call in calls:
            for taken in pictures_of(call):
                assert taken.is_contiguous(memory_format=torch.channels_last)


def test_random_numbers_that_are_to_be_those_of_eager_mode_fill_memory_in_its_order():
    stack = Stack(whole, noisy=True)
    noted, regions = compared(stack.eval(), torch.randn(PICTURE), fallback_random=True)
    assert regions == [4]
    assert all(map(pictures_of, calls_of_regions(noted)[0]))


def test_whole_steps_lay_out_what_forward_and_backward_share():
    torch.manual_seed(0)
    plain = Stack(whole)
    twin, noted = copy.deepcopy(plain), Noted()

    def step_of(model):
        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            return loss.detach(), [p.grad for p in model.parameters()]

        return step

    settings = {"regions": True, "post_grad_custom_post_pass": noted}
    compiled = framejit.compile(step_of(twin), backend="inductor", fullgraph=True, options=settings)
    picture = torch.randn(PICTURE)
    for _ in range(2):
        outcomes = [Outcome(run, (picture.clone(),), {}) for run in (step_of(plain), compiled)]
        compare_outcomes(*outcomes, Tolerance(1e-3, 1e-4))
    assert calls_of_regions(noted)
    for calls in calls_of_regions(noted):
        for call in calls:
            for taken in pictures_of(call):
                assert taken.is_contiguous(memory_format=torch.channels_last)


def test_no_layout_is_no_layout():
    noted, regions = compared(
        Stack(whole).eval(), torch.randn(PICTURE), layout_optimization=False
    )  # fmt: skip
    assert (regions, copies(noted)) == ([4], [])


class Written(nn.Module):
    """Writes to a buffer; backward needs another one as it was before it is written to."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(8, 8, 3, padding=1)
        self.register_buffer("count", torch.zeros(8, 1, 1))
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8).view(8, 1, 1))

    def forward(self, x):
        y = torch.tanh(self.mix(x)) * self.scale.clone()
        self.count += y.detach().abs().mean((0, 2, 3)).view(8, 1, 1)
        self.scale.mul_(0.9)
        return torch.relu(y + x) * 1.5


def test_backward_gets_what_was_before_it_was_written_to():
    model = Stack(whole)
    model.blocks = nn.ModuleList([Written() for _ in range(4)])
    noted, regions = compared(model, torch.randn(PICTURE, requires_grad=True), train=True)
    forward, _ = calls_of_regions(noted)
    assert regions == [4]
    copied = forward[0].graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default)
    assert len(copied) == 4  # the scales, and not what backward does not need
