"""Repeated calls as one operation each: nobody who looks at a graph can tell, and who does not look
does not pay for it."""

import copy
import pickle
import threading

import pytest
import torch
from torch import nn

import framejit
from checking import check
from framejit import config
from framejit.graph.lazy import operation_count, outer_graph, targets_in

X = torch.linspace(-1, 1, 32).reshape(4, 8)


class Layer(nn.Module):
    """What its subclasses change computes enough to be worth a recording."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, *rest):
        return self.result(x, torch.relu(self.one(self.norm(x)).transpose(0, 1)), *rest)

    def result(self, x, y):
        return x + self.two(y.transpose(0, 1))


class Turned(Layer):
    """Returns a view of what it has computed."""

    def result(self, x, y):
        return (x + self.two(y.transpose(0, 1))).flip(0)[::1].view(8, 4).view(4, 8)


class Pair(Layer):
    def forward(self, both):
        x, seen = both
        y = torch.relu(self.one(self.norm(x)))
        return x + self.two(y), seen + y.sum()


class Named(Pair):
    def forward(self, both):
        x, seen = super().forward((both["x"], both["seen"]))
        return {"seen": seen, "x": x}


class Kept(Layer):
    """One of its results is what it was given."""

    def forward(self, both):
        x, same = both
        return x + self.two(torch.relu(self.one(self.norm(x)))), same


class Picking(Layer):
    """Raises for some numbers."""

    def __init__(self, row=0):
        super().__init__()
        self.register_buffer("rows", torch.tensor([row, 1]))

    def result(self, x, y):
        return x + self.two(y.transpose(0, 1)) + x.index_select(0, self.rows).sum(0)


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Graphs:
    """A backend that runs graphs as they are; ``look``: what it does with them before."""

    def __init__(self, look=None):
        self.look, self.modules = look, []

    def __call__(self, gm, inputs):
        self.modules.append(gm)
        if self.look is not None:
            self.look(gm)
        return gm.forward


def stack(layer=Layer, count=8):
    torch.manual_seed(0)
    return Stack([layer() for _ in range(count)]).eval()


@torch.no_grad()
def captured(model, argument, look=None, **settings):
    """The graph of a model, and what it computes."""
    backend = Graphs(look)
    with config.patch(**settings):
        result = framejit.compile(model, backend=backend)(argument)
    (module,) = backend.modules
    return module, result


def nodes_of(graph):
    return [(node.format_node(), str(node.meta.get("stack_trace"))) for node in graph.nodes]


ARGUMENTS = {
    Layer: X, Turned: X, Pair: (X, X.sum()), Named: {"x": X, "seen": X.sum()}, Kept: (X, X),
    Picking: X,
}  # fmt: skip


@pytest.mark.parametrize("layer", ARGUMENTS, ids=lambda layer: layer.__name__)
def test_the_graph_is_that_of_all_operations(layer):
    model = stack(layer)
    module, result = captured(model, ARGUMENTS[layer])
    assert len(outer_graph(module).nodes) < 8 * 8 + 8 + 20
    count = operation_count(module)
    other, executed = captured(model, ARGUMENTS[layer], recordings=False)
    assert nodes_of(module.graph) == nodes_of(other.graph)
    assert operation_count(module) == operation_count(other) == count
    assert module.code == other.code
    for node, twin in zip(module.graph.nodes, other.graph.nodes, strict=True):
        shown, expected = [one.meta.get("example_value") for one in (node, twin)]
        if isinstance(shown, torch.Tensor):
            assert shown.shape == expected.shape and shown.stride() == expected.stride()
            assert shown.dtype == expected.dtype
    torch.testing.assert_close(result, executed, rtol=0, atol=0)
    with torch.no_grad():
        check(model, ARGUMENTS[layer], graphs=1, ops=count, calls=2)


class Beside(nn.Module):
    """Of each call, or of the last one alone, it uses one result and not the other."""

    def __init__(self, kept, whole):
        super().__init__()
        self.stack, self.kept, self.whole = stack(Pair), kept, whole

    def forward(self, both):
        total = 0
        for layer in self.stack.layers:
            made = layer(both)
            if self.whole:
                both = made
            total = total + made[self.kept].sum()
        return made[self.kept], total


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_result_that_nobody_needs(kept, whole):
    model, argument = Beside(kept, whole).eval(), (X, X.sum())
    module, result = captured(model, argument)
    outer = len(outer_graph(module).nodes)
    other, executed = captured(model, argument, recordings=False)
    assert nodes_of(module.graph) == nodes_of(other.graph)
    assert module.code == other.code and outer < len(other.graph.nodes) - 15
    torch.testing.assert_close(result, executed, rtol=0, atol=0)
    looked_at, again = captured(model, argument, look=lambda gm: gm.graph.lint())
    assert looked_at.code == other.code
    torch.testing.assert_close(again, executed, rtol=0, atol=0)
    with torch.no_grad():
        check(model, argument, graphs=1, ops=operation_count(other), calls=2)


def test_whoever_does_not_look_gets_one_operation_per_call():
    few, many = [outer_graph(captured(stack(count=n), X)[0]) for n in (8, 24)]
    calls = [[node for node in g.nodes if node.op.startswith("call")] for g in (few, many)]
    assert len(calls[1]) - len(calls[0]) == 16


def test_what_a_graph_calls_is_what_its_operations_call():
    module, _ = captured(stack(), X)
    (flat, _), ran = captured(stack(), X, recordings=False), module.forward
    expected = {node.target for node in flat.graph.nodes if node.op.startswith("call")}
    calls = {target for target in targets_in(module) if callable(target) or target == "transpose"}
    assert calls == expected and ran is not None


def test_truth_values_are_taken_for_granted_beside_repeated_calls():
    model = stack(count=12)

    def f(x):
        y = model(x)
        return y + 1 if y.sum() > -1e9 else y - 1

    with torch.no_grad():
        made = check(f, X)
        with config.patch(recordings=False):
            assert len(check(f, X).graphs) == len(made.graphs)


LOOKS = {
    "nodes": lambda gm: [*gm.graph.nodes],
    "code": lambda gm: gm.code,
    "text": str,
    "readable": lambda gm: gm.print_readable(print_output=False),
    "copy": copy.deepcopy,
    "pickle": pickle.dumps,
    "interpreter": lambda gm: torch.fx.Interpreter(gm),
    "module": lambda gm: torch.fx.GraphModule(gm, gm.graph),
}


@pytest.mark.parametrize("look", LOOKS)
def test_looking_changes_nothing(look):
    model = stack()
    with torch.no_grad():
        expected = model(X)
    module, result = captured(model, X, LOOKS[look])
    assert torch.equal(result, expected)
    flat, _ = captured(model, X, recordings=False)
    assert nodes_of(module.graph) == nodes_of(flat.graph)


def test_copies_compute_the_same():
    model = stack()
    for made in (copy.deepcopy, copy.copy, lambda module: pickle.loads(pickle.dumps(module))):
        module, result = captured(model, X)
        copied = made(module)
        names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
        known = {"l_" + n.replace(".", "_"): p for n, p in model.named_parameters(prefix="self")}
        given = [known.get(name, X) for name in names]
        with torch.no_grad():
            assert torch.equal(copied(*given)[0], result)
        assert operation_count(copied) == operation_count(module) and len(given) == 8 * 6 + 1


def test_a_changed_graph_is_what_runs():
    model = stack()

    def change(gm):
        before = gm.forward
        for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
            node.target = torch.abs
        gm.recompile()
        assert gm.forward != before

    _, result = captured(model, X, change)
    x = X
    with torch.no_grad():
        for layer in model.layers:
            x = x + layer.two(layer.one(layer.norm(x)).abs())
    torch.testing.assert_close(result, x)


def test_several_threads_look_at_once():
    flat, _ = captured(stack(), X, recordings=False)
    expected = nodes_of(flat.graph)
    for _ in range(5):
        module, _ = captured(stack(), X)
        found, start = [], threading.Barrier(4)

        def look(module=module, found=found, start=start):
            start.wait()
            found.append(nodes_of(module.graph))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4


def test_a_call_that_raises():
    torch.manual_seed(0)
    layers = [Picking(9 if i == 6 else 0) for i in range(8)]
    with torch.no_grad():
        made = check(Stack(layers).eval(), X)
        with config.patch(recordings=False):
            assert len(check(Stack(layers).eval(), X).graphs) == len(made.graphs)


@pytest.mark.parametrize("row", [0, 9])
def test_a_call_that_may_raise_in_a_try(row):
    torch.manual_seed(0)
    model = Stack([Picking(row if i == 6 else 0) for i in range(8)]).eval()

    def f(x):
        seen = x + 1
        try:
            for layer in model.layers:
                x = layer(x)
                seen = x * 2
        except IndexError:
            x = x - 1
        return x, seen

    with torch.no_grad():
        made = check(f, X)
        with config.patch(recordings=False):
            assert len(check(f, X).graphs) == len(made.graphs)


def test_a_tensor_that_changes_its_look_after_the_call():
    model = stack(count=8)

    def f(x):
        x = x * 2
        y = model(x)
        z = y.t_() + 1
        x.unsqueeze_(0)
        return y, model(y.t()), z, x + 1

    with torch.no_grad():
        check(f, X, graphs=1)


def test_somebody_looks_in_the_middle():
    model = stack(Layer, 12)

    def f(x):
        for i, layer in enumerate(model.layers):
            x = layer(x)
            if i % 2:
                x = x + torch.vmap(lambda row: row * 2)(x)
        return x

    with torch.no_grad():
        check(f, X, graphs=1)


def test_with_gradients_every_operation_is_recorded():
    module, _ = captured(stack(), X)
    backend = Graphs()
    framejit.compile(stack(), backend=backend)(X)
    (trained,) = backend.modules
    assert len(outer_graph(trained).nodes) > len(outer_graph(module).nodes) + 8 * 4
    assert operation_count(trained) == operation_count(module)
