"""Backends on a small transformer block: values and gradients equal eager; errors; clean state."""

import operator
import random

import pytest
import torch
import torch.nn.functional as F

import framejit
from checking import Outcome, check, compare_outcomes
from framejit.backends import aot_autograd, compile_graph, lookup_backend
from framejit.exc import BackendCompilerFailed, GraphBreak
from framejit.graph import GraphBuilder

HIDDEN, HEADS = 16, 2


def block_weights():
    torch.manual_seed(0)
    shapes = {
        "qkv": (3 * HIDDEN, HIDDEN), "qkv_bias": (3 * HIDDEN,), "out": (HIDDEN, HIDDEN),
        "up": (32, HIDDEN), "down": (HIDDEN, 32), "norm": (HIDDEN,), "norm_bias": (HIDDEN,),
    }  # fmt: skip
    return {name: torch.nn.Parameter(torch.randn(s) * 0.2) for name, s in shapes.items()}


def block(x, w):
    batch, length, _ = x.shape
    qkv = F.linear(x, w["qkv"], w["qkv_bias"])
    q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    attention = F.scaled_dot_product_attention(q, k, v)
    attention = attention.transpose(1, 2).reshape(batch, length, HIDDEN)
    x = F.layer_norm(x + F.linear(attention, w["out"]), (HIDDEN,), w["norm"], w["norm_bias"])
    return x + F.linear(F.gelu(F.linear(x, w["up"])), w["down"])


def block_graph(x, weights):
    """The same, recorded node by node."""
    builder = GraphBuilder()
    node, _ = builder.add_input("x", x)
    w = {name: builder.add_input(f"L['w'].{name}", t)[0] for name, t in weights.items()}
    batch, length, _ = x.shape

    def call(target, *args, **kwargs):
        method = builder.call_method if isinstance(target, str) else builder.call_function
        return method(target, args, kwargs)[0]

    qkv = call(F.linear, node, w["qkv"], w["qkv_bias"])
    chunks, example = builder.call_method("chunk", (qkv, 3), {"dim": -1})
    parts = []
    for index in range(3):
        part = builder.unpack(chunks, example, index)[0]
        parts.append(call("transpose", call("view", part, batch, length, HEADS, -1), 1, 2))
    attention = call(F.scaled_dot_product_attention, *parts)
    attention = call("reshape", call("transpose", attention, 1, 2), batch, length, HIDDEN)
    summed = call(operator.add, node, call(F.linear, attention, w["out"]))
    normed = call(F.layer_norm, summed, (HIDDEN,), w["norm"], w["norm_bias"])
    mlp = call(F.linear, call(F.gelu, call(F.linear, normed, w["up"])), w["down"])
    return builder.finish([call(operator.add, normed, mlp)])


#: Inductor is quick enough on the model of tests/models/test_zoo_models.py.
SLOW_INDUCTOR = pytest.param("inductor", marks=pytest.mark.slow)
BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition", SLOW_INDUCTOR]


@pytest.mark.parametrize("backend", BACKENDS)
def test_inference_equals_eager(backend):
    weights = block_weights()
    x = torch.randn(2, 5, HIDDEN)
    with torch.no_grad():
        gm, inputs = block_graph(x, weights)
        before = str(gm.graph)
        compiled = compile_graph(lookup_backend(backend), backend, gm, inputs)
        (got,) = compiled(*inputs)
        torch.testing.assert_close(got, block(x, weights), rtol=1e-4, atol=1e-5)
        other = [torch.randn_like(x), *inputs[1:]]
        (got,) = compiled(*other)
        torch.testing.assert_close(got, block(other[0], weights), rtol=1e-4, atol=1e-5)
    assert not got.requires_grad
    assert str(gm.graph) == before, "the graph is still the one that was captured"


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_equals_eager(backend):
    weights = block_weights()
    x = torch.randn(2, 5, HIDDEN, requires_grad=True)
    gm, inputs = block_graph(x, weights)
    compiled = compile_graph(lookup_backend(backend), backend, gm, inputs)
    leaves = [x, *weights.values()]
    expected = torch.autograd.grad(block(x, weights).square().sum(), leaves)
    for _ in range(2):
        (got,) = compiled(*inputs)
        gradients = torch.autograd.grad(got.square().sum(), leaves)
        for name, mine, real in zip(["x", *weights], gradients, expected):
            torch.testing.assert_close(
                mine, real, rtol=1e-3, atol=1e-4, msg=lambda m, n=name: f"{n}: {m}"
            )


def simple(*tensors, op=torch.exp, **kwargs):
    builder = GraphBuilder()
    nodes = [builder.add_input(f"x{i}", t)[0] for i, t in enumerate(tensors)]
    node, _ = (
        builder.call_method(op, tuple(nodes), kwargs)
        if isinstance(op, str)
        else builder.call_function(op, tuple(nodes), kwargs)
    )
    return builder.finish([node])


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_mutated_inputs(backend):
    x = torch.ones(3)
    gm, inputs = simple(x, op="add_", **{"other": 2})
    with torch.no_grad():
        compiled = compile_graph(lookup_backend(backend), None, gm, inputs)
        assert x.tolist() == [1, 1, 1], "compiling runs nothing"
        compiled(x)
        assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_metadata_mutated_inputs_and_views(backend):
    builder = GraphBuilder()
    base = torch.arange(6.0).view(2, 3)
    x, _ = builder.add_input("x", base[1])
    y, _ = builder.call_method("unsqueeze_", (x, 0), {})
    z, _ = builder.call_function(torch.mul, (y, 2), {})
    gm, inputs = builder.finish([z])
    with torch.no_grad():
        compiled = compile_graph(lookup_backend(backend), None, gm, inputs)
        fresh = torch.arange(6.0).view(2, 3)[1]
        assert compiled(fresh)[0].tolist() == [[6, 8, 10]]
        assert fresh.shape == (1, 3)


def test_inductor_options_reach_the_compiler():
    from torch._inductor import config

    seen = []
    options = {
        "max_fusion_size": 7,
        "post_grad_custom_post_pass": lambda graph: seen.append(config.max_fusion_size),
    }
    gm, inputs = simple(torch.ones(3), op=torch.exp)
    with torch.no_grad():
        backend = lookup_backend("inductor").configured(None, options)
        compiled = compile_graph(backend, None, gm, inputs)
        torch.testing.assert_close(compiled(torch.zeros(3))[0], torch.ones(3))
    assert seen == [7] and config.max_fusion_size != 7


def test_the_caches_of_aotautograd_know_graphs_again():
    from torch._dynamo.utils import counters
    from torch._inductor.utils import fresh_cache

    def count(columns):
        x, w = torch.ones(3, 4, requires_grad=True), torch.ones(4, columns)
        gm, inputs = simple(x, w, op=torch.mm)  # nothing that Inductor needs the C++ compiler for
        counters.clear()
        compiled = compile_graph(lookup_backend("inductor"), None, gm, inputs)
        (got,) = compiled(x, w)
        torch.testing.assert_close(got, x @ w)
        torch.autograd.grad(got, x, torch.ones_like(got))  # only then the pair is stored
        found = counters["aot_autograd"]
        return found["autograd_cache_hit"], found["autograd_cache_miss"]

    with fresh_cache():
        assert [count(n) for n in (5, 5, 6)] == [(0, 1), (1, 0), (0, 1)]


def test_inductor_under_inference_mode_and_autocast():
    weight = torch.nn.Parameter(torch.randn(4, 4))
    x = torch.randn(2, 4)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        gm, inputs = simple(x, weight, op=F.linear)
        before = str(gm.graph)
        compiled = compile_graph(lookup_backend("inductor"), None, gm, inputs)
        assert str(gm.graph) == before, "the graph is still the one that was captured"
        (got,) = compiled(x, weight)
        expected = F.linear(x, weight)
    assert got.dtype is expected.dtype is torch.bfloat16 and got.is_inference()
    torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-2)


def test_aot_autograd_with_own_compilers():
    seen = []

    def compiler(tag):
        def compile(gm, example_inputs):
            seen.append((tag, [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]))
            return gm.forward

        return compile

    backend = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=lambda: {},
    )
    x = torch.randn(3, requires_grad=True)
    gm, inputs = simple(x, op=torch.exp)
    (y,) = compile_graph(backend, None, gm, inputs)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())
    assert [tag for tag, _ in seen] == ["forward", "backward"]
    assert seen[0][1][0] == "aten.exp.default" and "aten.mul.Tensor" in seen[1][1]
    seen.clear()
    with torch.no_grad():
        gm, inputs = simple(x, op=torch.exp)
        compile_graph(backend, None, gm, inputs)(x)
    assert [tag for tag, _ in seen] == ["inference"]


# -- what can go wrong


def test_a_backend_that_raises():
    def broken(gm, example_inputs):
        raise ValueError("first\n\nsecond\nthird\nfourth\nfifth " + "x" * 1000)

    gm, inputs = simple(torch.ones(3))
    with pytest.raises(BackendCompilerFailed) as caught:
        compile_graph(broken, None, gm, inputs)
    message = str(caught.value)
    assert len(message.splitlines()) <= 8 and max(map(len, message.splitlines())) < 250
    assert "backend 'broken' raised ValueError on a graph of 1 operation:" in message
    assert "first" in message and "test_compile.py" in message and "in broken" in message
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.backend_name == "broken"


def test_a_backend_that_raises_without_a_message():
    def broken(gm, example_inputs):
        raise AssertionError

    with pytest.raises(BackendCompilerFailed, match=r"\(no message\)"):
        compile_graph(broken, "mine", *simple(torch.ones(3)))


def test_a_backend_that_returns_nonsense():
    with pytest.raises(BackendCompilerFailed, match="'x' returned NoneType, not a callable"):
        compile_graph(lambda gm, inputs: None, "x", *simple(torch.ones(3)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GraphBreak("FJ0130", "stop")])
def test_what_passes_through(error):
    def broken(gm, example_inputs):
        raise error

    with pytest.raises(error if isinstance(error, type) else GraphBreak):
        compile_graph(broken, "mine", *simple(torch.ones(3)))


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("fails", [False, True])
def test_global_state_is_put_back(fails):
    def rude(gm, example_inputs):
        torch.manual_seed(5)
        random.seed(5)
        torch._C._set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_autocast_enabled("cpu", True)
        torch._C._pop_torch_function_stack()
        example_inputs.clear()
        if fails:
            raise ValueError("after all that")
        return gm.forward

    gm, inputs = simple(torch.ones(3))
    before = torch.get_rng_state(), random.getstate()
    mode = Mode()
    with mode:
        try:
            compile_graph(rude, None, gm, inputs)
        except BackendCompilerFailed:
            assert fails
        assert torch.overrides._get_current_function_mode() is mode
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]
    assert torch.is_grad_enabled() and torch.get_default_dtype() is torch.float32
    assert not torch.is_autocast_enabled("cpu") and len(inputs) == 1


def test_autocast_is_put_back():
    def rude(gm, example_inputs):
        torch.set_autocast_dtype("cpu", torch.float16)
        torch.set_autocast_enabled("cpu", False)
        return gm.forward

    gm, inputs = simple(torch.ones(3))
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        compile_graph(rude, None, gm, inputs)
        assert torch.is_autocast_enabled("cpu") and torch.is_inference_mode_enabled()
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    compile_graph(rude, None, gm, inputs)  # autocast is off
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16


KINDS = ("overlap", "apart", "transposed", "whole")


@pytest.mark.parametrize(
    "backend, kinds",
    [
        ("aot_eager", KINDS), ("inductor", KINDS[:1]),
        pytest.param("inductor", KINDS[1:], marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_written_inputs_that_share_memory(backend, kinds):
    def both(a, b):
        a.add_(1)
        b.mul_(2)
        return a.sum() + b.sum()

    def make(kind):
        base = torch.arange(12.0)
        rows = base.view(3, 4)
        return {
            "overlap": (base[:6], base[4:]), "apart": (rows[0], rows[1]),
            "transposed": (rows.t()[1:], rows[1:]), "whole": (base[1:5], base),
        }[kind]  # fmt: skip

    for kind in kinds:
        expected, got = make(kind), make(kind)
        result = both(*expected)
        compiled = framejit.compile(both, backend=backend)
        torch.testing.assert_close(compiled(*got), result, msg=kind)
        for one, other in zip(expected, got):
            torch.testing.assert_close(one, other, msg=kind)
        assert len(compiled.entries) == 1


@pytest.mark.parametrize("use", [lambda x, k: x * k, lambda x, k: x.sum(1) + x.shape[0] * k])
def test_floats_that_vary_reach_aot_autograd(use):
    """As tensors where it can, else built in: it asks for a restart that only its own front end
    knows."""
    compiled = framejit.compile(use, backend="aot_eager", dynamic=True, fullgraph=True)
    for n, k in ((3, 1.5), (5, 2.5), (4, 3.5)):
        x = torch.randn(n, 4)
        torch.testing.assert_close(compiled(x, k), use(x, k))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_dropout_that_drops_nothing_answers_its_operand(backend):
    def f(x, z):
        y = F.dropout(x, training=False)
        y.add_(1)
        return x * 2, F.dropout(z, 0.0), torch.nn.Dropout(0.5).eval()(y), F.dropout(z, 0.5).shape

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    x, z = torch.ones(2), torch.ones(2)
    doubled, same, kept, _ = compiled(x, z)
    assert doubled.tolist() == [4.0, 4.0] and x.tolist() == [2.0, 2.0]
    assert same is z and kept is x


def test_dropout_that_drops_nothing_in_a_graph_of_two_losses():
    def f(x, z):
        return (F.dropout(x, training=False) * 2).sum(), F.dropout(z.sin(), 0.0).sum()

    compiled = framejit.compile(f, backend="aot_eager", fullgraph=True)
    results = []
    for function in (f, compiled):
        x, z = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        for loss in function(x, z):
            loss.backward()
        results.append((x.grad, z.grad))
    torch.testing.assert_close(*results)


# -- errors of the program that a backend meets ----------------------------------------------------


class SingleValue(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x):
        try:
            return self.norm(x * 2)
        except ValueError as error:
            return str(error)


def too_large_class(x):
    try:
        return torch.nn.functional.one_hot(torch.tensor([5]), 3) * x
    except RuntimeError as error:
        return str(error)


def uncaught(x):
    return torch.nn.functional.one_hot(torch.tensor([5]), 3) * x


def failing(gm, example_inputs):
    """Finds what is wrong with a graph, in its own way."""
    if gm.graph.find_nodes(op="call_function", target=torch.nn.functional.one_hot):
        raise TypeError("the backend's own words")
    return gm


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor", failing])
@pytest.mark.parametrize("function", [too_large_class, uncaught])
def test_the_program_gets_its_own_error(function, backend):
    compiled = framejit.compile(function, backend=backend)
    x = torch.ones(3)
    for _ in range(2):
        expected, got = Outcome(function, (x,), {}), Outcome(compiled, (x,), {})
        compare_outcomes(expected, got)
        assert got.error is None or type(got.error) is RuntimeError


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_the_error_of_one_size_only(backend, dynamic):
    module = SingleValue()
    compiled = framejit.compile(SingleValue(), backend=backend, dynamic=dynamic)
    for rows in (4, 5, 1, 6, 1):
        x = torch.ones(rows, 3)
        compare_outcomes(Outcome(module, (x,), {}), Outcome(compiled, (x,), {}))


def test_looking_for_the_programs_error_changes_nothing():
    state = torch.zeros(2)

    def function(x):
        x.add_(1)
        state.add_(torch.rand(2))
        return x * 2

    def broken(gm, example_inputs):
        raise ValueError("no")

    x = torch.ones(2)
    drawn = torch.get_rng_state()
    with pytest.raises(framejit.exc.BackendCompilerFailed, match="raised ValueError"):
        framejit.compile(function, backend=broken)(x)
    assert x.equal(torch.ones(2)) and state.equal(torch.zeros(2))
    assert torch.get_rng_state().equal(drawn)


# -- graph modules ---------------------------------------------------------------------------------


def powers(x, n):
    return (-2) ** x, (-2.5) ** x, 2**x, -(2**x), x**2, (-3) ** (n + 1), (-1) ** x.shape[0] * x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "ts", lambda gm, inputs: gm.forward])
def test_powers_of_negative_numbers(backend):
    compiled = framejit.compile(powers, backend=backend, fullgraph=True, dynamic=True)
    for x, n in [(torch.tensor([1.0, 2.0, 3.0]), 3), (torch.tensor([1.0, 3.0]), 4)]:
        compare_outcomes(Outcome(powers, (x, n), {}), Outcome(compiled, (x, n), {}))


def test_the_code_of_a_graph_has_the_right_base():
    graph = check(lambda x: (-2) ** x, torch.tensor([1.0, 2.0]), graphs=1, ops=1).graphs[0]
    assert "-2 **" not in graph.code
    for module in (graph, torch.fx.symbolic_trace(graph)):
        assert torch.equal(module(torch.tensor([2.0]))[0], torch.tensor([4.0]))


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x).relu() * 2


@pytest.mark.parametrize("within", [False, True])
def test_a_graph_module_of_the_program_is_captured(within):
    module = torch.fx.symbolic_trace(Layers())
    graphs = []

    def backend(gm, example_inputs):
        graphs.append(gm)
        return gm

    x = torch.ones(2, 3)
    target = (lambda x: module(x) + 1) if within else module
    compiled = framejit.compile(target, backend=backend, fullgraph=True)
    assert compiled(x).equal(target(x)) and compiled(x).equal(target(x))
    assert len(graphs) == 1
    assert sum(node.op == "call_function" for node in graphs[0].graph.nodes) >= 2
