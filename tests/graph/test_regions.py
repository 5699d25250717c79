"""Repeated layers are calls of one subgraph, and training steps leave behind what they should.

Every program runs in eager mode and compiled; results, gradients, changed buffers and arguments,
strides and shared memory are compared, and how often which subgraph is called.
"""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from checking import Comparison, CountingBackend
from framejit import config
from framejit.audit.comparison import Tolerance
from framejit.graph import repeats
from framejit.graph.outlining import has_regions
from framejit.report import events
from repeating import ALL, Block, Regions, Stack, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def same(model, calls, *arguments, train=True, tolerance=(1e-4, 1e-4)):
    """Compare; ``calls``: `Regions.calls` of each graph."""
    arguments = arguments or (torch.randn(2, 3, 8),)
    counted = Regions()
    with (
        config.patch(raise_internal_errors=True),
        events.recording(events.RegionsRefused) as refused,
    ):
        compiled = framejit.compile(model, backend=counted, options=ALL)
        for _ in range(2):
            twin = copy.deepcopy(model)
            expected = step(twin, twin, copy.deepcopy(arguments), train)
            got = step(model, compiled, copy.deepcopy(arguments), train)
            Comparison(Tolerance(*tolerance)).compare(expected, got, "step")
    assert not refused, refused[0].reason
    assert counted.calls == calls
    return counted


# -- what becomes a region


@pytest.mark.parametrize("train", [False, True])
def test_repeated_blocks_are_calls_of_one_subgraph(train):
    counted = same(Stack(), [{"region_Block": 4}], train=train)
    operations = [n.name for n in counted.graphs[0].graph.nodes if n.op.startswith("call")]
    assert len(operations) == 1 + 4 * 2 + 1  # each call and the item of its result


def test_of_two_alternating_kinds_each_is_a_region():
    class Scaled(Block):
        def forward(self, x, scale):
            return x + super().forward(x) * scale

    class Alternating(Stack):
        def forward(self, x):
            x = self.first(x)
            for number, block in enumerate(self.blocks):
                x = block(x, 0.5 if number % 2 else 1.5)
            return x

    model = Alternating(6, Scaled)
    same(model, [{"region_Scaled": 3, "region_Scaled_1": 3}])


@pytest.mark.parametrize(
    "constants", [(1, 1.0, True), (0.0, -0.0, 1e-9), (2.5, 2, 2.5 + 1e-15)], ids=str
)
def test_calls_with_other_constants_are_no_repeats(constants):
    class Scaled(Block):
        def forward(self, x, scale):
            return super().forward(x) * scale

    class Differing(Stack):
        def forward(self, x):
            x = self.first(x)
            for block, scale in zip(self.blocks, constants, strict=True):
                x = block(x, scale)
            return x

    same(Differing(3, Scaled), [{}])


def test_a_first_layer_without_a_gradient_for_its_input_has_a_subgraph_of_its_own():
    class Plain(Stack):
        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    same(Plain(), [{"region_Block_1": 1, "region_Block": 3}])


def test_a_frozen_layer_has_a_subgraph_of_its_own():
    model = Stack(5)
    model.blocks[2].up.weight.requires_grad_(False)
    same(model, [{"region_Block": 4, "region_Block_1": 1}])


def test_layers_of_which_each_needs_other_gradients_stay_flat():
    model = Stack(4)
    for number, block in enumerate(model.blocks):
        list(block.parameters())[number].requires_grad_(False)
    same(model, [{}])


def test_layers_of_other_sizes_stay_outside():
    model = Stack(5)
    model.blocks[1].up, model.blocks[1].down = nn.Linear(8, 12), nn.Linear(12, 8)
    same(model, [{"region_Block": 4}])


def test_few_calls_and_few_operations_stay_flat():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return self.linear(x).relu()

    same(Stack(2), [{}])
    same(Stack(12, Layer), [{}])


def test_of_repeats_inside_of_each_other_the_outer_ones_are_regions():
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            for _ in range(4):
                x = torch.sin(self.linear(x)) * 0.5 + x * 0.5
            return x

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Part(), Part()

        def forward(self, x):
            return (self.a(x) * self.b(x)).tanh() + x

    same(Stack(4, Pair), [{"region_Pair": 4}])
    same(Stack(1, Pair), [{}])


def test_one_layer_called_again_and_again_is_a_region():
    class Recurrent(Stack):
        def forward(self, x):
            x = self.first(x)
            for _ in range(4):
                x = self.blocks[0](x)
            return x

    same(Recurrent(1), [{"region_Block": 4}])


def test_results_that_are_used_later_come_out_of_the_region():
    class Collecting(Stack):
        def forward(self, x):
            x = self.first(x)
            found = []
            for block in self.blocks:
                x = block(x)
                found.append(x)
            return x, found[0] + found[1], found[2]

    same(Collecting(), [{"region_Block": 4}])


# -- memory


class Writing(Block):
    def forward(self, x):
        y = self.norm(x)
        y += 1
        y.mul_(2)
        y = F.relu(self.up(y), inplace=True)
        y = self.down(y)
        y += x
        return y.sin() * 2


@pytest.mark.parametrize("train", [False, True])
def test_writes_to_what_a_layer_made_itself(train):
    same(Stack(4, Writing), [{"region_Writing": 4}], train=train)


class WritingTurned(Block):
    """What it writes to does not lie in order, and is looked at by another name as well."""

    def forward(self, x):
        y = self.up(self.norm(x))
        turned = y.transpose(-1, -2)
        turned.mul_(2)
        turned[:, ::2] /= 3
        F.dropout(turned, 0.5, False).add_(1)
        return self.down(y) + turned.sum(1, keepdim=True).mT


@pytest.mark.parametrize("train", [False, True])
def test_writes_to_what_does_not_lie_in_order(train):
    same(Stack(4, WritingTurned), [{"region_WritingTurned": 4}], train=train)


class Residual(Block):
    def forward(self, x):
        x += super().forward(x)
        return x


@pytest.mark.parametrize("result", ["x", "x, x[1:]", "x.sum(0, keepdim=True) + 0 * x"])
def test_arguments_that_are_written_to_are_copied(result):
    space = {"Residual": Residual}
    exec(  # noqa: S102
        "class Writing(Residual):\n"
        "    def forward(self, x):\n"
        "        x = super().forward(x)\n"
        f"        return {result}\n", space)  # fmt: skip

    class Collecting(Stack):
        def forward(self, x):
            x, found = self.first(x), []
            for block in self.blocks:
                result = block(x)
                found.append(result)
                x = result[0] if isinstance(result, tuple) else result
            return x, found[0], x + 1

    # What is written to cannot be looked at in another way as well.
    calls = {} if "[" in result else {"region_Writing": 4}
    same(Collecting(4, space["Writing"]), [calls], train=False)


def test_writes_to_views_of_arguments_and_to_the_same_memory():
    class Halves(Block):
        def forward(self, x):
            half = x[..., :4]
            half.mul_(2)
            y = super().forward(x)
            x[..., 4:] += y[..., 4:]
            return y

    class Twice(Block):
        def forward(self, x, view):
            x.add_(1)
            return super().forward(x) + view

    class Giving(Stack):
        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x, x.view(x.shape))
            return x

    same(Stack(4, Halves), [{"region_Halves": 4}], train=False)
    same(Giving(4, Twice), [{}], train=False)


def test_layers_that_would_copy_much_stay_flat():
    x = torch.randn(4000, 5, 8)
    for layer, calls in ((Residual, {}), (Block, {"region_Block": 6})):
        regions, model = Regions(), Stack(6, layer).requires_grad_(False)
        torch.testing.assert_close(framejit.compile(model, backend=regions)(x), model(x))
        assert regions.calls == [calls]


class Collecting(Stack):
    """Returns what its blocks return besides the next one's argument."""

    def forward(self, x):
        x, found = self.first(x), []
        for block in self.blocks:
            x, *others = block(x)
            found += others
        return x, *found


@pytest.mark.parametrize("train", [False, True])
def test_views_of_arguments_are_made_outside(train):
    class Viewing(Block):
        def forward(self, x):
            return super().forward(x), x[:, 1:]

    same(Collecting(4, Viewing), [{"region_Viewing": 4}], train=train)


@pytest.mark.parametrize("train", [False, True])
def test_results_that_share_memory_are_made_outside(train):
    class Halves(Block):
        def forward(self, x):
            a, b = self.up(super().forward(x)).chunk(2, -1)
            return a, b

    # What the first layer is given lies in order.
    same(Collecting(4, Halves), [{"region_Halves": 3}], train=train)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("result, count", [
    ("x, y[:, 1:]", 4), ("x, y, y.mT, y[0]", 4), ("x, y[:, 1:], y[:, 1:].sum()", 4),
    ("x, y.detach(), y", 4), ("x, y.detach()", 4), ("x, y[:, 1:].detach(), y + 1", 4),
    ("x, y[..., :4], y[..., 4:]", 4), ("x, y.view(-1), x[1:]", 4), ("x[:, :], y", 4),
    ("x, y.real, y.expand(2, *y.shape)", 4), ("x, y.as_strided((2, 2), (1, 2))", 0),
    ("x, y[:, 1:], y.mul_(2)", 0),
])  # fmt: skip
def test_views_of_what_a_layer_computes(result, count, train):
    space = {"torch": torch, "Block": Block}
    exec(  # noqa: S102
        "class Returning(Block):\n"
        "    def forward(self, x):\n"
        "        x = super().forward(x)\n"
        "        y = self.up(x) * 2\n"
        f"        return {result}\n", space)  # fmt: skip

    class Writing(Collecting):
        def forward(self, x):
            x, *found = super().forward(x)
            found[0].add_(1)
            return x, *found

    calls = {"region_Returning": count} if count else {}
    same(Writing(4, space["Returning"]), [calls], train=train)


class Unfolded(Block):
    """What it returns is a view of what backward needs."""

    def forward(self, x):
        y = torch.exp(super().forward(x)).clamp(max=2).sin()
        return y.exp().transpose(1, 2).contiguous().transpose(1, 2)


@pytest.mark.parametrize("train", [False, True])
def test_results_that_are_views_of_what_backward_needs(train):
    same(Stack(4, Unfolded), [{"region_Unfolded": 3}], train=train)


def test_what_is_saved_may_be_views_of_results_that_are_written_to():
    class Changing(Stack):
        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
                x = x * 2
                x += 1
            return x

    same(Changing(4, Unfolded), [{"region_Unfolded": 3}])


# -- state


@pytest.mark.parametrize("train", [False, True])
def test_every_call_draws_random_numbers_of_its_own(train):
    class Dropping(Block):
        def forward(self, x):
            x = F.dropout(super().forward(x), 0.3, self.training)
            return x + torch.rand_like(x)

    same(Stack(4, Dropping), [{"region_Dropping": 4}], train=train)


class Normed(nn.Module):
    def __init__(self, track=True):
        super().__init__()
        self.up, self.down = nn.Conv1d(3, 5, 3, padding=1), nn.Conv1d(5, 3, 3, padding=1)
        self.a = nn.BatchNorm1d(5, track_running_stats=track)
        self.b = nn.BatchNorm1d(3, track_running_stats=track)

    def forward(self, x):
        y = F.relu(self.a(self.up(x)), inplace=True)
        y = self.b(self.down(y)).sigmoid()
        return F.relu(x + y * 2 - 0.5) + x


def test_running_statistics_in_training_are_copied():
    same(Stack(4, Normed), [{"region_Normed": 4}])


def test_running_statistics_in_evaluation_are_arguments():
    same(Stack(4, Normed).eval(), [{"region_Normed": 4}])


def test_statistics_that_nobody_keeps():
    same(Stack(4, Normed, track=False), [{"region_Normed": 4}])


def test_layers_that_switch_gradients_off_inside_stay_flat():
    class Partly(Block):
        def forward(self, x):
            with torch.no_grad():
                y = self.norm(x)
            return super().forward(x) + y

    same(Stack(4, Partly), [{}])


def test_layers_that_run_without_gradients_are_no_repeats_of_the_others():
    class Half(Stack):
        def forward(self, x):
            x = self.first(x)
            with torch.no_grad():
                for block in self.blocks[:4]:
                    x = block(x)
            for block in self.blocks[4:]:
                x = block(x)
            return x

    calls = {"region_Block": 3, "region_Block_1": 1, "region_Block_2": 3, "region_Block_3": 1}
    same(Half(8), [calls])


@pytest.mark.parametrize("train", [False, True])
def test_under_autocast(train):
    class Cast(Stack):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x).float()

    same(Cast(), [{"region_Block": 4}], train=train, tolerance=(0.02, 0.1))


def test_checkpointed_blocks_stay_flat():
    from torch.utils.checkpoint import checkpoint

    def checkpointed(block, x):
        return checkpoint(block, x, use_reentrant=False)

    class Checkpointed(Stack):
        def forward(self, x):
            x = self.first(x)
            for block in self.blocks:
                x = checkpointed(block, x)
            return x

    same(Checkpointed(), [{}])


def test_hooks_on_saved_tensors_see_all_that_is_saved():
    def run(model, compiled, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t * 1):
            compiled(x).sum().backward()
        return [p.grad for p in model.parameters()]

    model, x = Stack(), torch.randn(2, 3, 8)
    expected = run(twin := copy.deepcopy(model), twin, x)
    counted = Regions()
    got = run(model, framejit.compile(model, backend=counted, options=ALL), x)
    assert counted.calls == [{}]
    Comparison(Tolerance(1e-5, 1e-5)).compare(expected, got, "step")


@pytest.mark.parametrize("train", [False, True])
def test_sizes_that_vary(train):
    model, counted = Stack(), Regions()
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(model, backend=counted, dynamic=True, options=ALL)
        for size in (3, 5, 9):
            x = torch.randn(2, size, 8)
            expected = step(twin := copy.deepcopy(model), twin, (x,), train)
            got = step(model, compiled, (x,), train)
            Comparison(Tolerance(1e-5, 1e-5)).compare(expected, got, "step")
    assert counted.calls == [{"region_Block": 4}]


def test_backward_can_run_again_and_inputs_get_gradients():
    model, x = Stack(), torch.randn(2, 3, 8, requires_grad=True)

    def gradients(run):
        loss = run(x).square().sum()
        first = torch.autograd.grad(loss, (x, *model.parameters()), retain_graph=True)
        return first, torch.autograd.grad(loss, (x, *model.parameters()))

    got = gradients(framejit.compile(model, backend=Regions(), options=ALL))
    Comparison(Tolerance(1e-5, 1e-5)).compare(gradients(model), got, "gradients")


# -- backends


def test_other_backends_get_the_flat_graph_unless_it_is_said():
    model, x = Stack().requires_grad_(False), torch.randn(2, 3, 8)
    for options, wanted in ((None, False), ({"regions": False}, False), ({"regions": True}, True)):
        flat = CountingBackend()
        compiled = framejit.compile(model, backend=flat, options=options)
        torch.testing.assert_close(compiled(x), model(x))
        assert has_regions(flat.graphs[0]) is wanted, options
    with pytest.raises(ValueError, match="'regions' is True or False, not str"):
        framejit.compile(model, backend=flat, options={"regions": "yes"})(x)


def test_a_backend_that_runs_the_graph_as_it_is_has_gradients():
    flat, model = CountingBackend(), Stack()
    compiled = framejit.compile(model, backend=flat, options={"regions": True})
    got = step(model, compiled, (torch.ones(2, 3, 8),), True)
    assert has_regions(flat.graphs[0])
    expected = step(twin := copy.deepcopy(model), twin, (torch.ones(2, 3, 8),), True)
    Comparison(Tolerance(1e-5, 1e-5)).compare(expected, got, "step")


def test_a_backend_that_refuses_regions_gets_the_flat_graph():
    class Refusing(Regions):
        def __call__(self, gm, inputs):
            compiled = super().__call__(gm, inputs)
            if has_regions(gm):
                raise NotImplementedError("no subgraphs")
            return compiled

    model, x, refusing = Stack(), torch.randn(2, 3, 8), Refusing()
    with events.recording(events.RegionsRefused) as told:
        compiled = framejit.compile(model, backend=refusing, options=ALL)
        torch.testing.assert_close(compiled(x), model(x))
    assert refusing.calls == [{"region_Block": 4}, {}]
    assert [event.reason for event in told] == ["NotImplementedError: no subgraphs"]
    assert framejit.counters["regions_refused"] == {"Refusing": 1}


def test_what_is_shown_of_an_entry_is_the_flat_graph():
    model = Stack()
    found = framejit.explain(framejit.compile(model, backend=Regions(), options=ALL))(
        torch.randn(2, 3, 8)
    )
    assert found.op_count > 40


# -- where regions pay


@pytest.mark.parametrize(
    "count, width, calls",
    [
        (6, 8, {}),
        (20, 8, {"region_Block": 20}),
        (4, 256, {}),
        (6, 256, {"region_Block": 6}),
    ],
    ids=["small", "many", "few", "large"],
)
def test_few_or_small_layers_stay_flat(count, width, calls):
    """A region costs time when it is compiled, and a call of a subgraph whenever it runs: it has to
    spare some operations, and many where layers are small."""

    class Wide(Stack):
        def __init__(self):
            super().__init__(count, Block, width=width)
            self.first = nn.Linear(width, width)

    regions = Regions()
    model, x = Wide(), torch.randn(2, 3, width)
    torch.testing.assert_close(framejit.compile(model, backend=regions)(x), model(x))
    assert regions.calls == [calls]


@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d])
@pytest.mark.parametrize("dynamic", [False, True])
def test_layers_with_convolutions_over_an_area_stay_flat_where_sizes_vary(kind, dynamic):
    """Inductor lays out all that is between them in its own way, but not across regions: that is
    done for it where sizes are known."""

    class Convolving(Block):
        def __init__(self, width=8):
            super().__init__(width)
            self.mix = kind(3, 3, 1)

        def forward(self, x):
            return super().forward(self.mix(x))

    regions = Regions()
    model = Stack(20, Convolving)
    x = torch.randn(2, 3, *[4][: kind is nn.Conv2d], 8)
    compiled = framejit.compile(model, backend=regions, dynamic=dynamic)
    torch.testing.assert_close(compiled(x), model(x))
    flat = dynamic and kind is nn.Conv2d
    assert regions.calls == [{} if flat else {"region_Convolving": 20}]


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("count", [6, 45])
def test_a_step_on_a_gpu_needs_larger_layers_or_more(count, train, monkeypatch):
    """Such layers are compiled once without gradients, and in training where many are spared."""
    monkeypatch.setattr(repeats, "GPUS", ("cpu",))
    monkeypatch.setattr(repeats, "MUCH_SAVED_ON_GPU", 300)
    regions = Regions()
    model, x = Stack(count), torch.randn(2000, 5, 8)
    with torch.set_grad_enabled(train):
        torch.testing.assert_close(framejit.compile(model, backend=regions)(x), model(x))
    assert regions.calls == [{"region_Block": count} if count > 6 or not train else {}]


def test_sizes_that_vary_count_as_they_are():
    regions = Regions()
    model, x = Stack(6), torch.randn(2000, 5, 8)
    torch.testing.assert_close(framejit.compile(model, backend=regions, dynamic=True)(x), model(x))
    assert regions.calls == [{"region_Block": 6}]
