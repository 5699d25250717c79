"""What CUDA graphs need to know of a graph's memory, how it is cut, and replays on a CPU."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from simulated_graphs import Simulated
from torch.fx.experimental.proxy_tensor import make_fx

import framejit
from framejit.backends import aot_autograd, list_backends
from framejit.backends.cudagraphs import LIMIT, WARM_UP, compiler_for, replayable
from framejit.backends.memory import Memory
from framejit.backends.segments import Segment, assemble, cut

CPU = torch.device("cpu")


# -- memory ----------------------------------------------------------------------------------------


def views(x, y):
    a, b = x.view(-1).split(3)
    c = torch.unbind(y, 0)[1].expand(4, 3)
    return a.t(), b + 1, c.transpose(0, 1), x.detach()[0, 1:], torch.reshape(y.t(), (-1,))


def in_place(x, y):
    z = x.clone()
    z.add_(1)
    z[0].mul_(2)
    y.t()[1].copy_(z[:, 0])
    torch.add(x, x, out=z)
    return z, y.sum()


def several_returns(x, y):
    values, indices = torch.sort(x, dim=1)
    mean = torch.var_mean(y)
    parts = torch.chunk(values, 2, dim=1)
    parts[0].zero_()
    return values, indices, parts[1], mean


def lists(x, y):
    torch._foreach_add_([x, y.view(3, 2)], 1.0)
    made = torch._foreach_mul([x, y.view(3, 2)], 2.0)
    made[0].add_(1)
    return torch.cat([x, y]), made


def strided(x, y):
    x.as_strided((2,), (1,), 3).fill_(7)
    return torch.as_strided(x, (2, 2), (1, 1)), torch.squeeze(y.unsqueeze(0)), y.contiguous()


@pytest.mark.parametrize(
    "function", [views, in_place, several_returns, lists, strided], ids=lambda f: f.__name__
)
def test_the_analysis_knows_all_that_happens(function):
    """Run node by node: what shares memory, and what changes, was foreseen."""
    inputs = [torch.randn(2, 3), torch.randn(2, 3)]
    gm = make_fx(function)(*[x.clone() for x in inputs])
    memory = Memory(gm.graph)
    storages = []  # (root, storage): a node may allocate several

    def tensors(value):
        values = value if isinstance(value, (tuple, list)) else [value]
        return [t for t in values if isinstance(t, torch.Tensor)]

    class Watch(torch.fx.Interpreter):
        def run_node(self, node):
            before = [bytes(storage) for _, storage in storages]
            result = super().run_node(node)
            for (root, storage), content in zip(storages, before):
                if bytes(storage) != content:
                    assert root in memory.writes(node), f"{node} writes to {root}"
            if node.op == "output":
                return result
            for tensor in tensors(result):
                held = tensor.untyped_storage()
                owners = [r for r, s in storages if s.data_ptr() == held.data_ptr()]
                for root in owners:
                    assert root in memory.roots(node), f"{node} shares memory of {root}"
                if not owners:
                    assert node in memory.roots(node)
                    storages.append((node, held))
            return result

    Watch(gm).run(*inputs)


def test_the_analysis_is_not_vague():
    gm = make_fx(in_place)(torch.randn(2, 3), torch.randn(2, 3))
    memory = Memory(gm.graph)
    x, y = gm.graph.find_nodes(op="placeholder")
    nodes = {str(node.target): node for node in gm.graph.nodes}
    clone = nodes["aten.clone.default"]
    assert memory.roots(clone) == {clone} and memory.roots(nodes["aten.add_.Tensor"]) == {clone}
    assert memory.writes(nodes["aten.mul_.Tensor"]) == {clone}
    assert memory.writes(nodes["aten.copy_.default"]) == {y}
    assert not memory.writes(nodes["aten.sum.default"]) and not memory.writes(x)
    assert memory.is_view(nodes["aten.select.int"]) and not memory.is_view(clone)
    assert memory.same_as(nodes["aten.add_.Tensor"]) is clone
    gm = make_fx(several_returns)(torch.randn(2, 4), torch.randn(2, 3))
    memory = Memory(gm.graph)
    sort, *_ = [n for n in gm.graph.nodes if "sort" in str(n.target)]
    items = [n for n in sort.users if n.op == "call_function"]
    assert all(memory.roots(item) == {sort} and not memory.is_view(item) for item in items)


# -- cutting ---------------------------------------------------------------------------------------


def pieces_of(function, *inputs, **options):
    gm = make_fx(function, **options)(*inputs)
    memory = Memory(gm.graph)
    return gm, cut(gm.graph, memory, lambda node: replayable(node, CPU)), memory


def shape(pieces):
    return [
        [str(n.target) for n in p.nodes] if isinstance(p, Segment) else str(p.target)
        for p in pieces
    ]


def test_one_segment_for_everything():
    def f(x, w):
        return torch.relu(x @ w.t()) + 1

    _, (only,), _ = pieces_of(f, torch.randn(2, 3), torch.randn(4, 3))
    assert isinstance(only, Segment) and len(only.nodes) == 4 and not only.mutated
    assert [n.name for n in only.inputs] == ["w_1", "x_1"] and len(only.outputs) == 1


def test_what_cannot_be_recorded_stands_between():
    def f(x, y):
        a = torch.sin(x)
        mask = torch.nonzero(a)
        b = torch.cos(y)
        return mask, a * b

    _, pieces, _ = pieces_of(f, torch.randn(3), torch.randn(3))
    assert shape(pieces) == [
        ["aten.sin.default"], "aten.nonzero.default", ["aten.cos.default", "aten.mul.Tensor"]
    ]  # fmt: skip


def test_what_needs_nothing_of_the_segment_runs_before_it():
    def f(x, y):
        a = torch.sin(x)
        count = torch.nonzero(y)
        return a + 1, count

    _, pieces, _ = pieces_of(f, torch.randn(3), torch.randn(3))
    assert shape(pieces) == ["aten.nonzero.default", ["aten.sin.default", "aten.add.Tensor"]]

    def g(x, y):
        a = torch.sin(x)
        y.copy_(a)
        return torch.nonzero(y), a + 1

    _, pieces, _ = pieces_of(g, torch.randn(3), torch.randn(3))
    assert shape(pieces) == [
        ["aten.sin.default", "aten.copy_.default"], "aten.nonzero.default", ["aten.add.Tensor"]
    ]  # fmt: skip


def test_parts_of_a_plain_result_stay_outside():
    def f(x):
        values, counts = torch.unique(x, return_counts=True)
        return torch.sin(x) + 1, counts

    _, pieces, _ = pieces_of(f, torch.arange(3.0))
    for piece in pieces:
        if isinstance(piece, Segment):
            assert [n.op for n in piece.inputs] == ["placeholder"]
            assert not any("getitem" in str(n.target) for n in piece.nodes)


def test_masks_and_views_alone_are_not_recorded():
    def f(x, mask):
        return x[mask].sum(), x.t()[0]

    _, pieces, _ = pieces_of(f, torch.randn(3, 3), torch.ones(3, 3).bool())
    assert shape(pieces)[:1] == ["aten.index.Tensor"]
    assert ["aten.sum.default", "aten.t.default", "aten.select.int"] in shape(pieces)
    _, pieces, _ = pieces_of(lambda x: x.t()[0], torch.randn(3, 3))
    assert not any(isinstance(piece, Segment) for piece in pieces)


def test_memory_that_comes_in_twice_is_not_written_to_in_a_segment():
    def f(x):
        view = torch.nonzero(x) * 0, x.view(-1)
        y = torch.sin(x)
        x.copy_(y)
        return view[0], y * 2

    gm = make_fx(f)(torch.randn(3))
    memory = Memory(gm.graph)
    view = next(n for n in gm.graph.nodes if "view" in str(n.target))
    outside = {view}
    pieces = cut(gm.graph, memory, lambda n: n not in outside and replayable(n, CPU))
    for piece in pieces:
        if isinstance(piece, Segment):
            held = [memory.roots(n) for n in piece.inputs]
            written = frozenset().union(*[memory.writes(n) for n in piece.nodes])
            assert all(not (a & b & written) for i, a in enumerate(held) for b in held[:i])


def direct(function, *inputs):
    """The graph, cut and put together again with segments that run as they are."""
    gm, pieces, memory = pieces_of(function, *[x.clone() for x in inputs])
    return assemble(gm, pieces, memory, lambda module, mutated: lambda *given: module(*given))


@pytest.mark.parametrize("function", [in_place, several_returns, lists, strided, views])
def test_put_together_again_it_does_the_same(function):
    one = [torch.randn(2, 3), torch.randn(2, 3)]
    two = [x.clone() for x in one]
    again = direct(function, *one)
    expected, got = function(*one), again(*two)
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
    torch.testing.assert_close(two, one, rtol=0, atol=0)


def test_views_of_inputs_that_come_out_are_views_of_the_real_ones():
    def f(x):
        y = torch.sin(x)
        return y, x.t()[1]

    x = torch.randn(2, 3)
    _, view = direct(f, x)(x)
    x.fill_(5)
    assert view.tolist() == [5, 5]


# -- replays ---------------------------------------------------------------------------------------


@pytest.fixture
def platform():
    return Simulated()


def compiled_with(platform, function, **settings):
    backend = aot_autograd(fw_compiler=compiler_for(platform))
    return framejit.compile(function, backend=backend, fullgraph=True, **settings)


def test_warm_up_record_replay(platform):
    def f(x, y):
        return torch.sin(x) * y, x + 1

    compiled = compiled_with(platform, f)
    kept = []
    for number in range(7):
        x, y = torch.randn(4), torch.randn(4)
        got = compiled(x, y)
        kept.append((got, f(x, y)))
        assert platform.warm == min(number + 1, WARM_UP)
    for got, expected in kept:
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    assert 1 <= platform.recorded <= 3, "once, and once more per input found to move"


def test_addresses_that_stay_are_read_in_place(platform):
    weight, x = torch.randn(4, 4), torch.randn(2, 4)
    compiled = compiled_with(platform, lambda x, w: torch.relu(x @ w))
    for step in range(6):
        weight.add_(1)
        x.mul_(0.5)
        torch.testing.assert_close(compiled(x, weight), torch.relu(x @ weight), rtol=0, atol=0)
    assert platform.recorded == 1
    x = torch.randn(2, 4)  # elsewhere now: recorded again with a copy of it, once
    moved = [torch.randn(2, 4) for _ in range(3)]
    for x in [x, *moved]:
        torch.testing.assert_close(compiled(x, weight), torch.relu(x @ weight), rtol=0, atol=0)
    assert platform.recorded == 2


def test_writes_are_copied_back(platform):
    def f(x, state):
        state.mul_(0.5).add_(x)
        return state.sum(), x * 2

    compiled = compiled_with(platform, f)
    kept = []
    for _ in range(8):
        x, state = torch.randn(3), torch.randn(3)
        kept.append((x, state))
        twin = state.clone()
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, state), f(x, twin), rtol=0, atol=0)
        torch.testing.assert_close(state, twin, rtol=0, atol=0)


def test_a_layer_with_state_trains(platform):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4), torch.nn.GELU(), torch.nn.Flatten(),
        torch.nn.Linear(24, 5),
    )  # fmt: skip
    twin = copy.deepcopy(model)
    compiled = compiled_with(platform, twin)
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-2) for m in (model, twin)]
    for _ in range(10):
        x = torch.randn(6, 3, 8)
        losses = []
        for run, optimizer in zip((model, compiled), optimizers):
            optimizer.zero_grad()
            loss = F.mse_loss(run(x), torch.ones(6, 5))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    torch.testing.assert_close(twin.state_dict(), model.state_dict(), rtol=1e-4, atol=1e-5)
    assert platform.recorded >= 2, "forward and backward"


def test_retained_graphs_and_results_held_over_calls(platform):
    w = torch.randn(3, 3, requires_grad=True)
    compiled = compiled_with(platform, lambda x: (x @ w).sin())
    held = []
    for _ in range(5):
        x = torch.randn(2, 3)
        held.append((compiled(x), (x @ w).sin()))
    for got, expected in held:  # backwards run when many forwards have overwritten each other
        grads = [torch.autograd.grad(r.sum(), w, retain_graph=True)[0] for r in (got, expected)]
        torch.testing.assert_close(*grads)


def test_several_shapes(platform):
    def f(x):
        return (x.sin() * x.shape[0]).sum(1)

    compiled = compiled_with(platform, f, dynamic=True)
    for _ in range(WARM_UP + 2):
        for size in (2, 3, 5):
            x = torch.randn(size, size + 1)
            torch.testing.assert_close(compiled(x), f(x))
    assert platform.recorded >= 3
    recorded = platform.recorded
    for size in range(6, 6 + 2 * LIMIT):
        for _ in range(WARM_UP + 1):
            x = torch.randn(size, 4)
            torch.testing.assert_close(compiled(x), f(x))
    assert platform.recorded <= recorded + 2 * LIMIT, "then without recordings"


def test_expanded_and_overlapping_inputs(platform):
    compiled = compiled_with(platform, lambda x: x * 2 + 1, dynamic=False)
    for _ in range(5):
        x = torch.randn(3, 1).expand(3, 4)
        torch.testing.assert_close(compiled(x), x * 2 + 1)
    assert platform.recorded
    for _ in range(5):
        x = torch.randn(5).unfold(0, 3, 1)
        torch.testing.assert_close(compiled(x), x * 2 + 1)


def test_parts_that_cannot_be_recorded_in_a_program(platform):
    def f(x, mask):
        y = torch.relu(x)
        y = torch.where(mask, y, -y)
        z = torch.zeros(8).index_put((mask,), torch.ones(()))
        return y.cumsum(0) + z

    compiled = compiled_with(platform, f)
    for number in range(6):
        x, mask = torch.randn(8), torch.rand(8) > 0.5
        torch.testing.assert_close(compiled(x, mask), f(x, mask))
    assert platform.recorded


# -- without a GPU ---------------------------------------------------------------------------------


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_without_a_gpu_it_says_so_and_runs():
    assert "cudagraphs" in list_backends()
    w = torch.randn(3, 3, requires_grad=True)
    compiled = framejit.compile(lambda x: (x @ w).sin().sum(), backend="cudagraphs")
    x = torch.randn(2, 3)
    with pytest.warns(UserWarning, match="no operation of the graph is on a CUDA device"):
        loss = compiled(x)
        loss.backward()
    grad, w.grad = w.grad, None
    (x @ w).sin().sum().backward()
    torch.testing.assert_close(grad, w.grad)


@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_reduce_overhead_without_a_gpu():
    compiled = framejit.compile(lambda x: (x * 2).sin(), mode="reduce-overhead")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for _ in range(3):
            x = torch.randn(5)
            torch.testing.assert_close(compiled(x), (x * 2).sin())
