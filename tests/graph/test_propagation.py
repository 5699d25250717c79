"""The metadata cache against real FakeTensor propagation and against real eager results."""

import inspect
import operator
import sys

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from framejit.exc import GraphBreak
from framejit.graph import (
    CacheStatistics,
    Example,
    GraphBuilder,
    PropagationError,
    clear_cache,
)
from framejit.graph.builder import examples_in
from framejit.graph.metadata import Limits
from framejit.source import Source


def rand(*shape, **kw):
    return torch.randn(*shape, **kw)


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


X = lambda: rand(4, 6)  # noqa: E731
IMG = lambda: rand(2, 3, 8, 8)  # noqa: E731

# (target or method name, arguments) — arguments are made anew for every run.
CASES = [
    (torch.abs, lambda: (X(),)),
    (torch.add, lambda: (X(), X())),
    (torch.add, lambda: (X(), 1)),
    (torch.add, lambda: (X(), 1.5)),
    (torch.add, lambda: (rand(4, 1), rand(6))),
    (torch.add, lambda: (torch.arange(3), 1.5)),
    (torch.add, lambda: (torch.arange(3), True)),
    (torch.add, lambda: (leaf(3), rand(3))),
    (torch.add, lambda: (torch.nn.Parameter(rand(3)), rand(3))),
    (operator.add, lambda: (X(), 2)),
    (operator.truediv, lambda: (torch.arange(6), 2)),
    (operator.floordiv, lambda: (torch.arange(6), 2)),
    (operator.mul, lambda: (X(), X().double())),
    (operator.matmul, lambda: (X(), rand(6, 3))),
    (operator.matmul, lambda: (leaf(4, 6), rand(2, 6, 3))),
    (operator.neg, lambda: (leaf(3),)),
    (operator.lt, lambda: (X(), 0)),
    (operator.eq, lambda: (X(), X())),
    (operator.pow, lambda: (X(), 2)),
    (operator.and_, lambda: (torch.ones(3, dtype=torch.bool), True)),
    (operator.getitem, lambda: (X(), 0)),
    (operator.getitem, lambda: (X(), slice(1, 3))),
    (operator.getitem, lambda: (leaf(4, 6), slice(None, None, 2))),
    (operator.getitem, lambda: (X(), (slice(None), 2))),
    (operator.getitem, lambda: (X(), (Ellipsis, None))),
    (operator.getitem, lambda: (X(), torch.tensor([0, 2]))),
    (operator.getitem, lambda: (X(), [0, 2])),
    (operator.getitem, lambda: (X(), (torch.tensor([0, 2]), slice(1, 2)))),
    ("sum", lambda: (X(),)),
    ("sum", lambda: (X(), -1)),
    ("sum", lambda: (torch.ones(3, dtype=torch.bool),)),
    ("mean", lambda: (leaf(3, 4), 0, True)),
    ("max", lambda: (X(), 1)),
    ("max", lambda: (X(),)),
    ("sort", lambda: (leaf(3, 4),)),
    ("topk", lambda: (X(), 2)),
    ("view", lambda: (X(), 24)),
    ("view", lambda: (X(), -1, 3)),
    ("view", lambda: (leaf(4, 6), (2, 12))),
    ("view", lambda: (X(), torch.int32)),
    ("reshape", lambda: (X(), 24)),
    ("reshape", lambda: (X().t(), 24)),
    ("t", lambda: (X(),)),
    ("transpose", lambda: (leaf(2, 3, 4), 0, 2)),
    ("t", lambda: (leaf(2, 3),)),
    ("t", lambda: (torch.nn.Parameter(rand(2, 3)),)),
    ("permute", lambda: (IMG(), 0, 2, 3, 1)),
    ("expand", lambda: (rand(1, 3), 5, -1)),
    ("expand_as", lambda: (rand(1, 3), rand(5, 3))),
    ("squeeze", lambda: (rand(1, 3, 1),)),
    ("squeeze", lambda: (rand(1, 3, 1), 0)),
    ("unsqueeze", lambda: (X(), 0)),
    ("contiguous", lambda: (X(),)),
    ("contiguous", lambda: (X().t(),)),
    ("to", lambda: (X(), torch.float32)),
    ("to", lambda: (X(), torch.float16)),
    ("to", lambda: (X(), torch.device("cpu"))),
    ("to", lambda: (leaf(3), torch.float64)),
    ("float", lambda: (X(),)),
    ("double", lambda: (X(),)),
    ("detach", lambda: (leaf(3),)),
    ("clone", lambda: (leaf(3),)),
    ("clone", lambda: (X().t(),)),
    ("chunk", lambda: (X(), 2, 1)),
    ("split", lambda: (X(), 4, 1)),
    ("unbind", lambda: (leaf(3, 4),)),
    ("masked_fill", lambda: (X(), torch.zeros(4, 6, dtype=torch.bool), 1.0)),
    ("new_zeros", lambda: (X(), (2, 2))),
    ("type_as", lambda: (X(), X().double())),
    ("flatten", lambda: (IMG(), 1)),
    ("unfold", lambda: (rand(10), 0, 3, 1)),
    ("diagonal", lambda: (X(),)),
    ("index_select", lambda: (X(), 1, torch.tensor([0, 1]))),
    ("gather", lambda: (X(), 1, torch.zeros(4, 2, dtype=torch.long))),
    ("repeat", lambda: (X(), 2, 1)),
    ("cumsum", lambda: (X(), 0)),
    ("norm", lambda: (leaf(3, 4),)),
    ("var", lambda: (X(), 0)),
    (torch.cat, lambda: ([X(), X()], 1)),
    (torch.cat, lambda: ([leaf(2, 2), rand(2, 2)],)),
    (torch.stack, lambda: ((X(), X(), X()),)),
    (torch.where, lambda: (torch.zeros(4, 6, dtype=torch.bool), X(), X())),
    (torch.einsum, lambda: ("ij,jk->ik", X(), rand(6, 3))),
    (torch.bmm, lambda: (rand(2, 3, 4), rand(2, 4, 5))),
    (torch.broadcast_tensors, lambda: (rand(3, 1), rand(4))),
    (torch.zeros, lambda: (2, 3)),
    (torch.ones_like, lambda: (leaf(3),)),
    (torch.arange, lambda: (10,)),
    (torch.arange, lambda: (0.0, 1.0, 0.1)),
    (torch.full, lambda: ((2, 3), 1.5)),
    (torch.full, lambda: ((2, 3), True)),
    (torch.eye, lambda: (3,)),
    (torch.linspace, lambda: (0, 1, 5)),
    (torch.randn, lambda: (2, 3)),
    (torch.rand_like, lambda: (X(),)),
    (torch.bernoulli, lambda: (torch.rand(3),)),
    (torch.logsumexp, lambda: (X(), 1)),
    (torch.outer, lambda: (rand(3), rand(4))),
    (torch.polar, lambda: (rand(3), rand(3))),
    (torch.view_as_real, lambda: (rand(3, dtype=torch.complex64),)),
    (torch.view_as_complex, lambda: (rand(3, 2),)),
    (torch.conj, lambda: (rand(3, dtype=torch.complex64),)),
    (torch.real, lambda: (rand(3, dtype=torch.complex64),)),
    (torch.tril, lambda: (X(),)),
    (torch.meshgrid, lambda: (rand(3), rand(4))),
    (torch.std_mean, lambda: (X(),)),
    (torch.clamp, lambda: (X(), 0.0, 1.0)),
    (torch.addmm, lambda: (rand(3), X(), rand(6, 3))),
    (torch.nn.functional.linear, lambda: (X(), leaf(3, 6), leaf(3))),
    (F.linear, lambda: (rand(2, 4, 6), torch.nn.Parameter(rand(3, 6)))),
    (F.gelu, lambda: (leaf(3),)),
    (F.relu, lambda: (X(),)),
    (F.softmax, lambda: (X(), -1)),
    (F.layer_norm, lambda: (X(), (6,), leaf(6), leaf(6), 1e-5)),
    (F.batch_norm, lambda: (IMG(), rand(3), torch.rand(3), rand(3), rand(3), False)),
    (F.conv2d, lambda: (IMG(), leaf(5, 3, 3, 3), None, 1, 1)),
    (F.conv2d, lambda: (IMG().to(memory_format=torch.channels_last), rand(5, 3, 3, 3))),
    (F.max_pool2d, lambda: (IMG(), 2)),
    (F.adaptive_avg_pool2d, lambda: (IMG(), (1, 1))),
    (F.interpolate, lambda: (IMG(), None, 2.0)),
    (F.embedding, lambda: (torch.zeros(2, 3, dtype=torch.long), leaf(10, 4))),
    (F.dropout, lambda: (X(), 0.5, True)),
    (F.dropout, lambda: (X(), 0.5, False)),
    (F.cross_entropy, lambda: (leaf(4, 6), torch.zeros(4, dtype=torch.long))),
    (F.mse_loss, lambda: (X(), X())),
    (F.pad, lambda: (X(), (1, 1))),
    (F.one_hot, lambda: (torch.zeros(3, dtype=torch.long), 5)),
    (F.glu, lambda: (X(),)),
    (
        F.scaled_dot_product_attention,
        lambda: (rand(2, 4, 5, 8), rand(2, 4, 5, 8), rand(2, 4, 5, 8)),
    ),
    (F.normalize, lambda: (X(),)),
    (torch.ops.aten.add.Tensor, lambda: (X(), X())),
    (torch.special.expit, lambda: (X(),)),
    (torch.fft.rfft, lambda: (X(),)),
    (torch.linalg.norm, lambda: (X(),)),
    (torch.lstm_cell, lambda: (X(), (rand(4, 5), rand(4, 5)), rand(20, 6), rand(20, 5))),
]

STATES = {
    "grad": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


def name(case):
    target, make = case
    return target if isinstance(target, str) else target.__name__


def map_tensors(value, function):
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(map_tensors(v, function) for v in value)
    if isinstance(value, list):
        return [map_tensors(v, function) for v in value]
    return value


def call(builder, target, args):
    nodes = map_tensors(args, lambda t: builder.add_input(f"in{len(builder.inputs)}", t)[0])
    if isinstance(target, str):
        return builder.call_method(target, nodes, {})
    return builder.call_function(target, nodes, {})


def run(target, args):
    return getattr(args[0], target)(*args[1:]) if isinstance(target, str) else target(*args)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    return []


def facts(t):
    t = t.meta if isinstance(t, Example) else t
    return {
        "shape": tuple(t.shape),
        "stride": tuple(t.stride() if callable(t.stride) else t.stride),
        "offset": t.storage_offset() if callable(t.storage_offset) else t.storage_offset,
        "dtype": t.dtype,
        "device": t.device,
        "layout": t.layout,
        "requires_grad": t.requires_grad,
        "is_leaf": t.is_leaf,
    }


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_cache_equals_fake_propagation_and_eager(case, state):
    target, make = case
    args = make()
    with STATES[state]():
        clear_cache()
        _, cold = call(GraphBuilder(), target, args)
        warm_builder = GraphBuilder()
        CacheStatistics.hits = 0
        node, warm = call(warm_builder, target, args)
        assert CacheStatistics.hits == 1, "the second time must not propagate again"
        eager = flat(run(target, args))
        mode = FakeTensorMode()
        fake_args = map_tensors(args, mode.from_tensor)
        with mode:
            direct = flat(run(target, fake_args))
    cold, warm = examples_in(cold), examples_in(warm)
    assert len(cold) == len(warm) == len(eager) == len(direct) > 0
    for c, w, d, e in zip(cold, warm, direct, eager):
        assert facts(c) == facts(w) == facts(d) == facts(e)
        assert (w.meta.keys == "inference") == e.is_inference()
        assert w.meta.python_type is type(e)
    # The fakes made later from the cache's result are the same too, outside of the state.
    made = flat(warm_builder.fake(node))
    for m, d in zip(made, direct):
        assert facts(m) == facts(d)
        if (name(case), state) != ("dropout", "inference"):
            # There FakeTensorMode makes a copy where eager returns its argument (torch 2.13).
            assert torch._C._dispatch_keys(m) == torch._C._dispatch_keys(d)
    # ... and share memory with the inputs exactly where the real ones do.
    inputs, real_inputs = [], flat(args)
    for placeholder in warm_builder.placeholders:
        inputs.append(warm_builder.fake(placeholder.node))
    storage = lambda t: t.untyped_storage()._cdata  # noqa: E731
    for m, e in zip(made, eager):
        assert [storage(m) == storage(i) for i in inputs] == [
            storage(e) == storage(i) for i in real_inputs
        ]
        assert [m is i for i in inputs] == [e is i for i in real_inputs]


def test_results_are_new_and_distinct():
    builder = GraphBuilder()
    x, _ = builder.add_input("x", X())
    _, first = builder.call_function(torch.abs, (x,), {})
    _, second = builder.call_function(torch.abs, (x,), {})
    assert first is not second and first.meta is second.meta
    assert first.fake is not second.fake
    assert first.fake.untyped_storage()._cdata != second.fake.untyped_storage()._cdata


def test_constants_are_told_apart_by_type():
    builder = GraphBuilder()
    x, _ = builder.add_input("x", torch.arange(3))
    dtypes = [
        builder.call_function(torch.mul, (x, value), {})[1].meta.dtype
        for value in (1, True, 1.0, 1j)
    ]
    assert dtypes == [torch.int64, torch.int64, torch.float32, torch.complex64]


def test_global_state_is_part_of_the_key():
    def grad_of():
        builder = GraphBuilder()
        w, _ = builder.add_input("w", leaf(3))
        return builder.call_function(torch.abs, (w,), {})[1].meta.requires_grad

    assert grad_of()
    with torch.no_grad():
        assert not grad_of()
    builder = GraphBuilder()
    before = torch.get_default_dtype()
    try:
        assert builder.call_function(torch.ones, (3,), {})[1].meta.dtype is torch.float32
        torch.set_default_dtype(torch.float64)
        assert builder.call_function(torch.ones, (3,), {})[1].meta.dtype is torch.float64
    finally:
        torch.set_default_dtype(before)


def test_named_results_keep_their_type():
    for _ in range(2):
        builder = GraphBuilder()
        x, _ = builder.add_input("x", X())
        node, result = builder.call_method("max", (x, 1), {})
        assert type(result) is torch.return_types.max
        values, example = builder.unpack(node, result, 1)
        assert example.meta.dtype is torch.int64 and values.name == "getitem"


# -- mutation and aliases


def inputs_of(builder, **tensors):
    return [builder.add_input(key, value)[0] for key, value in tensors.items()]


@pytest.fixture(params=["cold", "warm"])
def twice(request):
    """Run a scenario with an empty cache, or after one run that filled it."""
    clear_cache()

    def repeat(scenario):
        if request.param == "warm":
            scenario()
        return scenario()

    return repeat


def test_in_place_returns_the_same_example_and_refreshes_it(twice):
    def scenario():
        builder = GraphBuilder()
        x, w = inputs_of(builder, x=X(), w=leaf(4, 6))
        before = builder.example(x)
        assert not before.meta.requires_grad
        _, result = builder.call_method("mul_", (x, w), {})
        assert result is before and before.meta.requires_grad and not before.meta.is_leaf

    twice(scenario)


def test_in_place_on_a_view_reaches_the_base(twice):
    def scenario():
        builder = GraphBuilder()
        x, w = inputs_of(builder, x=X(), w=leaf(6))
        base, base_example = builder.call_method("clone", (x,), {})
        view, view_example = builder.call_function(operator.getitem, (base, 0), {})
        other, other_example = builder.call_method("t", (base,), {})
        _, sum_before = builder.call_method("sum", (other,), {})
        builder.call_method("mul_", (view, w), {})
        assert base_example.meta.requires_grad and view_example.meta.requires_grad
        assert other_example.meta.requires_grad and not sum_before.meta.requires_grad
        assert builder.call_method("sum", (other,), {})[1].meta.requires_grad

    twice(scenario)


def test_metadata_mutation(twice):
    def scenario():
        builder = GraphBuilder()
        (x,) = inputs_of(builder, x=X())
        before_view, view = builder.call_method("view", (x, 24), {})
        builder.call_method("t_", (x,), {})
        assert builder.example(x).meta.shape == (6, 4) and builder.example(x).meta.stride == (1, 6)
        assert view.meta.shape == (24,)
        assert view.fake.shape == (24,), "the view was taken before"
        y, example = builder.call_method("add", (x, 1), {})
        assert example.meta.shape == (6, 4)
        gm, _ = builder.finish([y])
        placeholder = next(iter(gm.graph.nodes))
        assert placeholder.meta["example_value"].shape == (4, 6), "callers pass it unchanged"

    twice(scenario)


def test_resize_and_requires_grad(twice):
    def scenario():
        builder = GraphBuilder()
        (x,) = inputs_of(builder, x=X())
        y, example = builder.call_method("clone", (x,), {})
        builder.call_method("resize_", (y, 2, 2), {})
        assert example.meta.shape == (2, 2)
        builder.call_method("requires_grad_", (y,), {})
        assert example.meta.requires_grad and example.meta.is_leaf
        assert builder.call_method("abs", (y,), {})[1].meta.requires_grad

    twice(scenario)


def test_setitem_and_out_are_kept(twice):
    def scenario():
        builder = GraphBuilder()
        x, w = inputs_of(builder, x=X(), w=leaf(6))
        y, example = builder.call_method("clone", (x,), {})
        _, nothing = builder.call_function(operator.setitem, (y, 0, w), {})
        assert nothing is None and example.meta.requires_grad
        z, _ = builder.call_function(torch.empty, (4, 6), {})
        with torch.no_grad():
            _, out = builder.call_function(torch.add, (x, x), {"out": z})
        assert out is builder.example(z)
        builder.call_method("abs", (x,), {})
        gm, _ = builder.finish([y])
        assert [n.target for n in gm.graph.nodes if n.op.startswith("call")] == [
            "clone", operator.setitem, torch.empty, torch.add, "abs",
        ]  # fmt: skip

    twice(scenario)


def test_contiguous_is_the_tensor_itself_or_not(twice):
    def scenario():
        builder = GraphBuilder()
        (x,) = inputs_of(builder, x=X())
        assert builder.call_method("contiguous", (x,), {})[1] is builder.example(x)
        t, _ = builder.call_method("t", (x,), {})
        assert builder.call_method("contiguous", (t,), {})[1] is not builder.example(t)

    twice(scenario)


def test_same_tensor_twice_is_another_case_than_two_tensors():
    clear_cache()
    builder = GraphBuilder()
    x, y = inputs_of(builder, x=rand(3), y=rand(3))
    _, both = builder.call_function(torch.broadcast_tensors, (x, x), {})
    _, two = builder.call_function(torch.broadcast_tensors, (x, y), {})
    storage = lambda e: e.fake.untyped_storage()._cdata  # noqa: E731
    assert storage(two[1]) == storage(builder.example(y))
    assert storage(both[1]) == storage(builder.example(x))


def test_view_inputs_know_their_base():
    base = rand(4, 6)
    builder = GraphBuilder()
    w, view, whole = inputs_of(builder, w=leaf(6), view=base[0], whole=base)
    builder.call_method("mul_", (view, w), {})
    assert builder.example(whole).meta.requires_grad


def test_view_of_a_base_that_came_first():
    base = rand(4, 6)
    builder = GraphBuilder()
    w, whole, view = inputs_of(builder, w=leaf(6), whole=base, view=base[0])
    builder.call_method("abs", (whole,), {})
    builder.call_method("mul_", (view, w), {})
    assert builder.example(whole).meta.requires_grad


def test_long_chains_of_views_do_not_recurse():
    builder = GraphBuilder()
    (x,) = inputs_of(builder, x=rand(900))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 350)
    try:
        for _ in range(400):
            x, example = builder.call_function(operator.getitem, (x, slice(1, None)), {})
    finally:
        sys.setrecursionlimit(limit)
    assert example.fake.shape == (500,)


def test_values_known_from_python_numbers():
    for _ in range(2):
        builder = GraphBuilder()
        three, _ = builder.call_function(torch.tensor, (3,), {})
        six, _ = builder.call_function(torch.add, (three, three), {})
        assert builder.call_method("item", (six,), {})[1] == 6


@pytest.mark.parametrize("dropout, grad", [(0.0, False), (0.0, True), (0.5, False), (0.5, True)])
def test_attention_without_dropout_draws_nothing(dropout, grad):
    """A graph that draws nothing needs no random state that could be put back."""
    q = rand(2, 4, 5, 8).requires_grad_(grad)
    for attention in (
        lambda b, q: b.call_function(F.scaled_dot_product_attention, (q, q, q, None, dropout), {}),
        lambda b, q: b.call_function(
            F.scaled_dot_product_attention, (q, q, q), {"dropout_p": dropout}
        ),
    ):
        for _ in range(2):  # propagated, and from the cache
            builder = GraphBuilder()
            try:
                attention(builder, builder.add_input("q", q)[0])
                assert builder.draws_random == (dropout > 0)
            finally:
                builder.close()
        before = torch.get_rng_state()
        F.scaled_dot_product_attention(q, q, q, dropout_p=dropout)
        assert torch.equal(before, torch.get_rng_state()) == (dropout == 0)


def test_random_state_is_untouched():
    tensor = X()
    before = torch.get_rng_state()
    for _ in range(2):
        builder = GraphBuilder()
        (x,) = inputs_of(builder, x=tensor)
        for target in (torch.rand_like, torch.randn_like, F.dropout, F.gumbel_softmax):
            builder.call_function(target, (x,), {})
        builder.call_function(torch.randperm, (5,), {})
        builder.call_method("normal_", (x,), {})
        builder.call_method("exponential_", (x,), {})
    assert torch.equal(before, torch.get_rng_state())


def test_random_operations_are_never_dead(twice):
    def scenario():
        builder = GraphBuilder()
        (x,) = inputs_of(builder, x=X())
        builder.call_function(F.dropout, (x,), {})
        builder.call_function(F.dropout, (x, 0.5, False), {})
        gm, _ = builder.finish([x])
        calls = [n for n in gm.graph.nodes if n.op == "call_function"]
        assert len(calls) == 2 and builder.unused_effects([x]) == calls[:1]

    twice(scenario)


def test_batch_norm_in_training_writes_its_statistics(twice):
    def scenario():
        builder = GraphBuilder()
        x, mean, var = inputs_of(builder, x=IMG(), mean=torch.zeros(3), var=torch.ones(3))
        builder.call_function(F.batch_norm, (x, mean, var, None, None, False), {})
        assert builder.mutated_inputs == []
        builder.call_function(F.batch_norm, (x, mean, var, None, None, True), {})
        assert builder.mutated_inputs == [1, 2] and not builder.draws_random
        gm, inputs = builder.finish([x])
        assert builder.used_inputs == [0, 1, 2]
        gm(*inputs)
        assert inputs[1].abs().sum() > 0

    twice(scenario)


def test_mutated_inputs_through_views(twice):
    def scenario():
        builder = GraphBuilder()
        x, y, z = inputs_of(builder, x=X(), y=X(), z=X())
        view, _ = builder.call_method("view", (x, 24), {})
        local, _ = builder.call_method("clone", (y,), {})
        builder.call_method("add_", (local, 1), {})
        assert builder.mutated_inputs == []
        builder.call_function(operator.setitem, (view, slice(0, 3), 1.0), {})
        builder.call_function(torch._foreach_add_, ([local, z], 1), {})
        assert builder.mutated_inputs == [0, 2]
        builder.call_method("normal_", (y,), {})
        assert builder.mutated_inputs == [0, 1, 2] and builder.draws_random

    twice(scenario)


def test_a_function_mode_is_respected():
    with torch.device("meta"):
        for _ in range(2):
            assert GraphBuilder().call_function(torch.ones, (3,), {})[1].meta.device.type == "meta"
    assert GraphBuilder().call_function(torch.ones, (3,), {})[1].meta.device.type == "cpu"


def test_symbolic_sizes_bypass_the_cache():
    clear_cache()
    tensor = rand(5, 6)
    builder = GraphBuilder()
    source = Source(None, "slot", 0, "L['x']")
    shape, stride = builder.symbols.tensor(source, tensor, {0: Limits()})
    assert isinstance(shape[0], torch.SymInt) and (shape[1], stride) == (6, (6, 1))
    known = builder.world.symbolic_example(tensor, shape, stride)
    x, example = builder.add_input("x", tensor, known)
    hits = CacheStatistics.hits
    for _ in range(2):
        y, result = builder.call_method("view", (x, -1), {})
        assert isinstance(result.meta.shape[0], torch.SymInt)
    z, _ = builder.call_method("add_", (x, 1), {})
    assert CacheStatistics.hits == hits and builder.mutated_inputs == [0]
    gm, examples = builder.finish([y])
    size, placeholder = gm.graph.find_nodes(op="placeholder")
    assert examples == [shape[0], tensor] and size.meta["example_value"] is shape[0]
    assert str(placeholder.meta["example_value"].shape[0]) == str(shape[0])


def test_nothing_is_logged_for_errors_of_the_program(caplog):
    builder = GraphBuilder()
    with pytest.raises(PropagationError):
        call(builder, torch.matmul, (rand(2, 3), rand(4, 5)))
    assert not [r for r in caplog.records if "fake_tensor" in r.name]


# -- errors


@pytest.mark.parametrize(
    "target, args, words",
    [
        (torch.nonzero, (X(),), "the shape of what torch.nonzero returns depends on the data"),
        ("item", (rand(1),), "Tensor.item depends on the data"),
        (bool, (rand(1),), "depends on the data"),
        (operator.getitem, (X(), torch.ones(4, 6) > 0), "depends on the data"),
        (torch.unique, (X(),), "depends on the data"),
        ("tolist", (X(),), "depends on the data"),
        ("numpy", (X(),), "Tensor.numpy"),
    ],
)
def test_data_dependent_results_are_graph_breaks(target, args, words):
    builder = GraphBuilder()
    with pytest.raises(GraphBreak, match=words):
        call(builder, target, args)
    assert builder.op_count == 0
    assert all(node.op == "placeholder" for node in builder.graph.nodes)


def test_an_error_of_the_operation_keeps_its_message():
    builder = GraphBuilder()
    with pytest.raises(PropagationError) as caught:
        call(builder, torch.matmul, (rand(2, 3), rand(4, 5)))
    with pytest.raises(RuntimeError) as real:
        torch.matmul(rand(2, 3), rand(4, 5))
    assert caught.value.reason.startswith("torch.matmul raised RuntimeError: ")
    assert isinstance(caught.value.__cause__, RuntimeError) and real.value
    assert builder.op_count == 0
    with pytest.raises(PropagationError, match="leaf Variable"):
        call(builder, "add_", (leaf(3), 1))


def test_user_functions_are_never_cached():
    sizes = [2]

    def fresh():
        return torch.zeros(sizes[0])

    builder = GraphBuilder()
    assert builder.call_function(fresh, (), {})[1].meta.shape == (2,)
    sizes[0] = 5
    assert builder.call_function(fresh, (), {})[1].meta.shape == (5,)


def test_tensors_that_cannot_be_traced():
    class Wrapped(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    builder = GraphBuilder()
    with pytest.raises(GraphBreak, match="Wrapped"):
        builder.add_input("x", torch.ones(3).as_subclass(Wrapped))
    with pytest.raises(GraphBreak, match="first call"):
        builder.add_input("x", torch.nn.parameter.UninitializedParameter())
    with pytest.raises(GraphBreak, match="without being an input"):
        builder.call_function(torch.abs, (torch.ones(3),), {})
    with pytest.raises(GraphBreak, match="object of type object"):
        builder.call_function(torch.abs, (object(),), {})
    assert not builder.inputs and builder.op_count == 0


def test_unusual_tensors():
    for tensor in (
        torch.randn(3, dtype=torch.complex64).conj(),
        leaf(3, 4).t(),
        leaf(3) * 2,
        torch.nn.Parameter(rand(3)),
    ):
        for _ in range(2):
            builder = GraphBuilder()
            node, example = builder.add_input("x", tensor)
            assert example.meta.requires_grad == tensor.requires_grad
            assert example.meta.is_leaf == tensor.is_leaf and example.meta.layout == tensor.layout
            _, result = builder.call_function(torch.mul, (node, 2), {})
            real = tensor * 2
            assert (result.meta.shape, result.meta.requires_grad, result.meta.layout) == (
                real.shape, real.requires_grad, real.layout,
            )  # fmt: skip


def test_operations_that_return_sparse_tensors_are_not_recorded():
    builder = GraphBuilder()
    node, _ = builder.add_input("x", torch.eye(3).to_sparse())
    with pytest.raises(GraphBreak, match="layout torch.sparse_coo"):
        builder.call_function(torch.mul, (node, 2), {})


def test_a_subclass_of_parameter_stays_what_it_is():
    class Mine(torch.nn.Parameter):
        pass

    builder = GraphBuilder()
    node, example = builder.add_input("w", Mine(rand(3)))
    builder.call_method("abs", (node,), {})
    assert example.meta.python_type is Mine and isinstance(example.fake, torch.nn.Parameter)


def test_inputs_are_not_kept_alive():
    import gc
    import weakref

    builder = GraphBuilder()
    tensor = rand(3)
    alive = weakref.ref(tensor)
    x, _ = builder.add_input("x", tensor)
    gm, inputs = builder.finish([builder.call_function(torch.abs, (x,), {})[0]])
    del tensor, inputs, builder
    gc.collect()
    assert alive() is None
    assert isinstance(gm.graph.find_nodes(op="placeholder")[0].meta["example_value"], torch.Tensor)


def test_example_reads_like_a_tensor():
    _, example = GraphBuilder().add_input("x", X())
    assert isinstance(example, Example) and len(example.meta.shape) == 2
    assert repr(example) == "<Example <float32[4, 6] on cpu>>"
