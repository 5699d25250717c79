"""Saved-tensor hooks: part of the graphs where they only compute, called as in eager otherwise."""

import contextlib
import functools

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

import framejit
from checking import check
from framejit.backends import aot_autograd
from framejit.backends.aot import run_as_is

SLOW = pytest.mark.slow


class Graphs:
    def __init__(self):
        self.forward, self.backward = [], []

        def note(kept):
            def compiler(gm, inputs):
                kept.append(gm)
                return run_as_is(gm, inputs)

            return compiler

        self.backend = aot_autograd(note(self.forward), note(self.backward))

    def __call__(self, gm, inputs):
        return self.backend(gm, inputs)

    def saved_bytes(self, index, outputs=1):
        """What the forward graph keeps for backward."""
        kept = self.forward[index].graph.output_node().args[0][outputs:]
        return sum(n.meta["val"].numel() * n.meta["val"].element_size() for n in kept)


def f(x, w):
    y = torch.nn.functional.gelu(x @ w)
    return torch.nn.functional.gelu(y @ w).sum()


def inputs(seed=0):
    torch.manual_seed(seed)
    return torch.randn(64, 16), (torch.randn(16, 16) / 4).requires_grad_()


def gradient(function, hooks=None, seed=0):
    x, w = inputs(seed)
    if hooks is None:
        function(x, w).backward()
    else:
        with saved_tensors_hooks(*hooks):
            y = function(x, w)
        y.backward()
    return w.grad


def casting(dtype):
    def pack(t):
        return t.to(dtype)

    def unpack(t):
        return t.to(torch.float32)

    return pack, unpack


def as_modules(hooks):
    return tuple(map(torch.fx.symbolic_trace, hooks))


LOW = [torch.bfloat16]
if hasattr(torch, "float8_e4m3fn"):
    LOW.append(torch.float8_e4m3fn)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=SLOW)])
def test_what_is_kept_for_backward_gets_smaller(backend):
    """In bytes: what the autograd graph holds between forward and backward."""
    compiled = framejit.compile(f, backend=backend)
    kept = {}
    for hooks in (None, *map(casting, LOW)):
        x, w = inputs()
        with saved_tensors_hooks(*hooks) if hooks else contextlib.nullcontext():
            y = compiled(x, w)
        saved = {t.untyped_storage()._cdata: t for t in y.grad_fn.saved_tensors}
        kept[hooks] = sum(t.nbytes for t in saved.values())
    full, *packed = kept.values()
    assert full == (4 * 64 * 16 + 16 * 16) * 4  # three results, x and w
    assert all(n < 1.1 * full * d.itemsize / 4 for n, d in zip(packed, LOW, strict=True))


def targets(module):
    return [str(node.target) for node in module.graph.nodes]


@pytest.mark.parametrize("modules", [False, True])
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_the_casts_are_in_the_graphs(dtype, modules):
    graphs = Graphs()
    compiled = framejit.compile(f, backend=graphs, fullgraph=True)
    torch.testing.assert_close(gradient(compiled), gradient(f))
    hooks = as_modules(casting(dtype)) if modules else casting(dtype)
    got = gradient(compiled, hooks)
    scale = gradient(f).abs().max()
    tolerance = {torch.bfloat16: 0.02}.get(dtype, 0.2)
    assert (got - gradient(f)).abs().max() < tolerance * scale
    assert (len(graphs.forward), len(graphs.backward)) == (2, 2)
    casts = targets(graphs.forward[1]).count("aten._to_copy.default")
    assert casts >= 4 and "aten._to_copy.default" in targets(graphs.backward[1])
    assert not any("_to_copy" in target for target in targets(graphs.forward[0]))
    unchanged = 16 * 16 * (4 - dtype.itemsize)  # w may be kept as it is
    small = graphs.saved_bytes(0) * dtype.itemsize // 4
    assert small <= graphs.saved_bytes(1) <= small + unchanged


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=SLOW)])
def test_inputs_of_the_graph_are_packed(backend, inside):
    hooks = torch.round, lambda t: t

    def g(x, w):
        with saved_tensors_hooks(*hooks) if inside else contextlib.nullcontext():
            return (x @ w).sum()

    compiled = framejit.compile(g, backend=backend)
    for rows in (1, 2, 3):
        got, expected = [], []
        for function, gradients in ((g, expected), (compiled, got)):
            x = torch.tensor([[0.6, 1.7, 2.2]] * rows)
            w = torch.full((3, 1), 0.4, requires_grad=True)
            with contextlib.nullcontext() if inside else saved_tensors_hooks(*hooks):
                y = function(x, w)
            y.backward()
            gradients.append(w.grad)
        torch.testing.assert_close(got, expected)
        assert expected[0][0].item() == rows


def test_changing_hooks_compiles_once_and_going_back_does_not():
    graphs = Graphs()
    compiled = framejit.compile(f, backend=graphs)
    one, two = casting(torch.bfloat16), casting(torch.float16)
    for hooks in (None, one, two, one, None, two, None):
        gradient(compiled, hooks)
    assert len(graphs.forward) == 3
    assert sum(framejit.counters["recompiles"].values()) == 2


def test_equal_functions_made_anew_are_the_same_hooks():
    graphs = Graphs()
    compiled = framejit.compile(f, backend=graphs)
    for _ in range(3):
        gradient(compiled, casting(torch.bfloat16))
    assert len(graphs.forward) == 1
    gradient(compiled, casting(torch.float16))
    assert len(graphs.forward) == 2
    for _ in range(3):
        x, w = inputs()
        with save_on_cpu():
            y = compiled(x, w)
        y.backward()
        torch.testing.assert_close(w.grad, gradient(f))
    assert len(graphs.forward) == 3


def test_what_a_hook_reads_is_guarded():
    graphs = Graphs()
    compiled = framejit.compile(f, backend=graphs)
    settings = {"scale": 1.0}

    def pack(t):
        return t * settings["scale"]

    def unpack(t):
        return t / settings["scale"] * 2

    first = gradient(compiled, (pack, unpack))
    settings["scale"] = 4.0
    torch.testing.assert_close(gradient(compiled, (pack, unpack)), first)
    assert len(graphs.forward) == 2
    assert any("4.0" in str(node.args) for node in graphs.forward[1].graph.nodes)


def test_conditions_on_size_and_dtype():
    graphs = Graphs()

    def g(x, w):
        large = torch.nn.functional.gelu(x @ w)
        small = torch.nn.functional.gelu(large[:1] @ w)
        return small.sum() * large.sum()

    def pack(t):
        if t.dtype is torch.float32 and t.numel() >= 100:
            return t.to(torch.bfloat16), t.dtype
        return t, None

    def unpack(packed):
        tensor, dtype = packed
        return tensor if dtype is None else tensor.to(dtype)

    compiled = framejit.compile(g, backend=graphs, fullgraph=True)
    got, expected = gradient(compiled, (pack, unpack)), gradient(g, (pack, unpack))
    torch.testing.assert_close(got, expected, atol=expected.abs().max().item() * 0.02, rtol=0.02)
    (forward,) = graphs.forward
    casts = [n for n in forward.graph.nodes if str(n.target) == "aten._to_copy.default"]
    assert casts and all(n.args[0].meta["val"].numel() >= 100 for n in casts)
    kept = [n.meta["val"] for n in forward.graph.output_node().args[0][1:]]
    assert any(v.dtype is torch.float32 and v.numel() < 100 for v in kept)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_with_effects_are_called_as_in_eager(backend):
    compiled = framejit.compile(f, backend=backend)
    logs = []
    for function in (f, compiled, compiled):
        log = []

        def pack(t, log=log):
            log.append(("pack", tuple(t.shape)))
            return len(log), t

        def unpack(packed, log=log):
            log.append(("unpack", packed[0]))
            return packed[1]

        torch.testing.assert_close(gradient(function, (pack, unpack)), gradient(f))
        logs.append(log)
    assert logs[0] == logs[1] == logs[2] and len(logs[0]) > 4


def test_errors_of_hooks_are_the_users():
    def pack(t):
        raise ValueError("no room")

    for function in (f, framejit.compile(f, backend="eager")):
        with pytest.raises(ValueError, match="no room"):
            gradient(function, (pack, lambda t: t))


def to_bfloat16(t):
    return t.to(torch.bfloat16)


def to_float32(t):
    return t.to(torch.float32)


PACKED = []


def note_and_keep(t):
    PACKED.append(tuple(t.shape))
    return t


def keep(t):
    return t


def hooks_inside(x, w, pack=to_bfloat16, unpack=to_float32):
    y = torch.sin(x @ w)
    with saved_tensors_hooks(pack, unpack):
        y = torch.nn.functional.gelu(torch.nn.functional.gelu(y @ w) @ w)
    return (y * w[0]).cos().sum()


@pytest.mark.parametrize("backend", ["eager", "graphs", pytest.param("inductor", marks=SLOW)])
def test_hooks_opened_inside(backend):
    graphs = Graphs()
    compiled = framejit.compile(
        hooks_inside, backend=graphs if backend == "graphs" else backend, fullgraph=True
    )
    plain, expected = gradient(lambda x, w: hooks_inside(x, w, keep, keep)), gradient(hooks_inside)
    for _ in range(2):
        got = gradient(compiled)
        torch.testing.assert_close(got, expected, atol=0.01 * expected.abs().max(), rtol=0.01)
        assert not torch.equal(got, plain)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs()), hooks_inside(*inputs()))
    if backend != "graphs":
        return
    casts = [n.meta["val"].dtype for gm in (*graphs.forward, *graphs.backward)
             for n in gm.graph.nodes if str(n.target) == "aten._to_copy.default"]  # fmt: skip
    # w is kept once for two operations; which of the values are kept is up to the partitioner.
    assert casts.count(torch.bfloat16) == casts.count(torch.float32) == 5
    assert not framejit.counters["graph_break"]


def test_the_hooks_of_a_program_change():
    """A guard on the functions: one recompile, and none on the way back."""
    graphs = Graphs()
    compiled = framejit.compile(hooks_inside, backend=graphs, fullgraph=True)
    modules = as_modules((to_bfloat16, to_float32))
    for pack, unpack in ((to_bfloat16, to_float32), modules, (keep, keep)) * 2:
        for _ in range(2):
            x, w = inputs()
            compiled(x, w, pack, unpack).backward()
    casts = [targets(gm).count("aten._to_copy.default") for gm in graphs.backward]
    assert len(graphs.forward) == 3 and casts == [10, 10, 0]


def test_hooks_opened_inside_are_called_as_in_eager():
    for backend in ("eager", Graphs(), "ts"):
        compiled = framejit.compile(hooks_inside, backend=backend, fullgraph=True)
        logs = []
        for function in (hooks_inside, compiled, compiled):
            PACKED.clear()
            x, w = inputs()
            function(x, w, note_and_keep, keep).backward()
            logs.append((list(PACKED), w.grad))
        assert logs[0][0] == logs[1][0] == logs[2][0] and len(logs[0][0]) > 4
        torch.testing.assert_close(logs[2][1], logs[0][1])


def test_hooks_that_are_open_where_a_graph_ends():
    """Then Python opens them, and what follows is compiled under them."""
    graphs = Graphs()

    def g(x, w):
        y = torch.sin(x @ w)
        with saved_tensors_hooks(to_bfloat16, to_float32):
            y = torch.nn.functional.gelu(y @ w)
            framejit.graph_break()
            y = torch.nn.functional.gelu(y @ w)
        return (y * w[0]).cos().sum()

    compiled = framejit.compile(g, backend=graphs)
    for _ in range(2):
        got, expected = gradient(compiled), gradient(g)
        torch.testing.assert_close(got, expected, atol=0.05 * expected.abs().max(), rtol=0.05)
    casts = [targets(gm).count("aten._to_copy.default") for gm in graphs.forward]
    assert casts[0] == casts[-1] == 0 < min(casts[1:-1])


class Packing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.count = 4.0, 0

    def pack(self, t):
        return t * self.scale

    def counted(self, t):
        self.count += 1
        return t

    def unpack(self, t):
        return t / self.scale


def scaled(k, t):
    return t * k


PACKING = Packing()


def lambdas(x, w):
    with saved_tensors_hooks(lambda t: t * 4, lambda t: t / 4):
        return torch.sin(x @ w).cos().sum()


def closures(x, w):
    k = 4.0

    def pack(t, more=(1.0,), *, to=torch.float64):
        return (t * k * more[0]).to(to), t.dtype

    def unpack(packed):
        return packed[0].to(packed[1]) / k

    with saved_tensors_hooks(pack, unpack):
        return torch.sin(x @ w).cos().sum()


def over_tensors(x, w):
    scale = x.abs().amax()

    def around(scale):
        return lambda t: t * scale, lambda t: t / scale

    with saved_tensors_hooks(*around(scale)):
        return torch.sin(x @ w).cos().sum()


def methods_(x, w):
    with saved_tensors_hooks(PACKING.pack, PACKING.unpack):
        return torch.sin(x @ w).cos().sum()


def partials(x, w):
    with saved_tensors_hooks(functools.partial(scaled, 4), functools.partial(scaled, 0.25)):
        return torch.sin(x @ w).cos().sum()


def offloaded(x, w):
    with save_on_cpu():
        return torch.sin(x @ w).cos().sum()


def several(x, w):
    """Each tensor goes through the innermost hooks only."""

    def pair(k):
        return functools.partial(scaled, k), lambda t: t / k

    with saved_tensors_hooks(*pair(2)):
        y = torch.sin(x @ w)
        with saved_tensors_hooks(*pair(4)):
            y = torch.sin(y @ w)
        y = torch.sin(y @ w)
    return y.cos().sum()


def printing(x, w):
    """Effects outside of the captured program happen as often, and in the same order."""

    def pair(name):
        def pack(t):
            print("pack", name, tuple(t.shape))
            return t

        def unpack(t):
            print("unpack", name, tuple(t.shape))
            return t

        return pack, unpack

    with saved_tensors_hooks(*pair("outer")):
        y = torch.sin(x @ w)
        with saved_tensors_hooks(*pair("inner")):
            y = torch.sin(y @ w)
        return y.cos().sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "function, operations",
    [(lambdas, 6), (closures, 6), (over_tensors, 8), (methods_, 6), (partials, 6), (offloaded, 6),
     (several, 12), (printing, 10)],
)  # fmt: skip
def test_hooks_made_in_the_call(function, operations, backend, capsys):
    with framejit.config.patch(raise_internal_errors=True):
        compiled = framejit.compile(function, backend=backend, fullgraph=True)
    expected = gradient(function)
    printed = capsys.readouterr().out
    for _ in range(3):
        torch.testing.assert_close(gradient(compiled), expected)
        assert capsys.readouterr().out == printed
    found = framejit.explain(function, backend="eager")(*inputs())
    assert (found.graph_count, found.op_count) == (1, operations)


def test_hooks_opened_under_those_of_the_caller():
    graphs = Graphs()
    compiled = framejit.compile(hooks_inside, backend=graphs, fullgraph=True)
    outside = casting(torch.float16)
    for _ in range(2):
        got, expected = gradient(compiled, outside), gradient(hooks_inside, outside)
        torch.testing.assert_close(got, expected)
    assert len(graphs.forward) == 1


def counting(x, w):
    count = 0

    def pack(t):
        nonlocal count
        count += 1
        return t

    with saved_tensors_hooks(pack, keep):
        y = torch.sin(x @ w)
    return y.cos().sum(), count


def listing(x, w):
    kept = []

    def pack(t):
        kept.append(t)
        return len(kept) - 1

    with saved_tensors_hooks(pack, lambda index: kept[index]):
        y = torch.sin(x @ w)
    return y.cos().sum(), len(kept)


def looking(x, w):
    before = len(PACKED)
    with saved_tensors_hooks(note_and_keep, keep):
        y = torch.sin(x @ w)
    return y.cos().sum(), len(PACKED) - before


def clearing(x, w):
    PACKED.clear()
    with saved_tensors_hooks(note_and_keep, keep):
        y = torch.sin(x @ w)
    return y.cos().sum(), list(PACKED)


def counting_method(x, w):
    before = PACKING.count
    with saved_tensors_hooks(PACKING.counted, keep):
        y = torch.sin(x @ w)
    return y.cos().sum(), PACKING.count - before


def assigned_later(x, w):
    k = 2.0
    with saved_tensors_hooks(lambda t: t * k, lambda t: t / k):
        y = torch.sin(x @ w)
    k = 4.0
    return y.cos().sum(), k


def assigned_after_a_break(x, w):
    k = 2.0
    with saved_tensors_hooks(lambda t: t * k, lambda t: t / k):
        y = torch.sin(x @ w)
    framejit.graph_break()
    k = 4.0
    return y.cos().sum(), k


@pytest.mark.parametrize(
    "function", [counting, listing, looking, clearing, counting_method, assigned_later,
                 assigned_after_a_break],
)  # fmt: skip
def test_hooks_whose_effects_are_seen_are_opened_by_python(function):
    compiled = framejit.compile(function, backend="eager")
    for _ in range(3):
        answers = []
        for run in (function, compiled):
            x, w = inputs()
            y, seen = run(x, w)
            y.backward()
            answers.append((seen, y, w.grad))
        assert answers[0][0] == answers[1][0]
        torch.testing.assert_close(answers[1][1:], answers[0][1:])
    assert any("saved-tensor hook" in reason for reason in framejit.counters["graph_break"])


def test_a_variable_that_stays_may_be_used_behind_a_break():
    def g(x, w):
        k = 2.0
        with saved_tensors_hooks(lambda t: t * k, lambda t: t / k):
            y = torch.sin(x @ w)
        framejit.graph_break()
        return (y * k).cos().sum()

    torch.testing.assert_close(gradient(framejit.compile(g, backend="eager")), gradient(g))
    assert sum(framejit.counters["graph_break"].values()) == 1


def test_a_graph_that_raises_closes_its_hooks():
    def g(x, w):
        with saved_tensors_hooks(to_bfloat16, to_float32):
            return torch.linalg.cholesky(x.t() @ x * w[0, 0]).sum()

    # AOTAutograd cannot make hooks part of this graph.
    for run in (g, framejit.compile(g, backend="eager"), framejit.compile(g, backend="aot_eager")):
        x, w = inputs()
        run(x, w.detach().abs().requires_grad_())
        with pytest.raises(torch.linalg.LinAlgError):
            run(x * 0 - 1, -w.detach().abs().requires_grad_())
        assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None


def test_an_error_in_a_block_of_hooks_meets_the_handlers_behind_a_break():
    def g(x, log):
        try:
            with saved_tensors_hooks(lambda t: t + torch.ones(9), to_float32):
                log.append((x * x).sum().item())
        except RuntimeError:
            log.append("caught")
        return x + 1

    for run in (g, framejit.compile(g, backend="eager")):
        for _ in range(2):
            log = []
            run(torch.ones(3, requires_grad=True), log)
            assert log == ["caught"]
            assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None


def test_a_gradient_where_hooks_are_refused_leaves_them_refused():
    def g(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            y = torch.func.grad(lambda w: (w * w).sum())(x)
            with saved_tensors_hooks(to_bfloat16, to_float32):
                return y * x

    for run in (g, framejit.compile(g, backend="eager")):
        with pytest.raises(RuntimeError, match="not here"):
            run(torch.ones(3, requires_grad=True))


def test_compiled_code_inside_a_checkpoint():
    graphs = Graphs()
    compiled = framejit.compile(f, backend=graphs)
    for seed in range(3):
        got = gradient(lambda x, w: checkpoint(compiled, x, w, use_reentrant=False), seed=seed)
        torch.testing.assert_close(got, gradient(f, seed=seed))
    assert len(graphs.forward) == 2  # once in forward, once where it is computed again


def _scale_for(t):
    return 2.0 if t.numel() > 10 else 1.0


torch.fx.wrap("_scale_for")


@SLOW
def test_autograd_cache_with_wrapped_control_logic(tmp_path, monkeypatch):
    """A call of a wrapped function is cached only when its node says what it depends on."""
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def pack(t):
        return t * _scale_for(t)

    def unpack(t):
        return t / _scale_for(t)

    found = []
    for hashed in (False, True, True):
        modules = as_modules((pack, unpack))
        for module in modules:
            for node in module.graph.nodes:
                if node.meta.get("is_wrapped") and hashed:
                    node.meta["user_cache_hash"] = "scale 1"
        counters.clear()
        compiled = framejit.compile(f)
        torch.testing.assert_close(gradient(compiled, modules), gradient(f), atol=1e-4, rtol=1e-3)
        seen = counters["aot_autograd"]
        names = ("bypass", "miss", "hit")
        found.append(tuple(seen.get(f"autograd_cache_{name}", 0) for name in names))
    assert found == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=SLOW)])
def test_graph_modules_that_do_not_invert_each_other(backend):
    """Each operation differentiates with what comes back of what it saved."""
    hooks = as_modules((lambda t: t * 2, lambda t: t / 4))
    compiled = framejit.compile(lambda x: (x.sin() * x.exp()).cos(), backend=backend)
    gradients = []
    for function in (compiled.__wrapped__, compiled, compiled):
        x = torch.tensor([0.3, 1.2], requires_grad=True)
        with saved_tensors_hooks(*hooks):
            y = function(x)
        y.sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[1], gradients[0])
    torch.testing.assert_close(gradients[2], gradients[0])


def _said(value):
    print("said")
    return value


def test_a_variable_of_a_gradient_hook_that_changes_in_a_later_part():
    def program(x, n):
        print("before")
        factor = n

        def hook(gradient):
            return gradient * factor

        y = x**2
        y.register_hook(hook)
        factor = _said(0)
        y.sum().backward()
        return x.grad

    compiled = framejit.compile(program, backend="eager")
    x = torch.ones(3, requires_grad=True)
    torch.testing.assert_close(compiled(x, 3), torch.zeros(3))


class Log:
    def __init__(self):
        self.place, self.seen, self.scale = 0, [], 1.0

    def note(self, t):
        self.seen.append(self.place)
        return t

    def scaled(self, t):
        return t * self.scale


def writes_between(x, log):
    log.place = 1
    y = x.sin()
    log.place = 2
    with torch.no_grad():
        z = y * 2
    log.place = 3
    return (y.exp() * z).sum()


def reads_between(x, log):
    y = x.sin()
    before = len(log.seen)
    return (y.exp() * before).sum()


def writes_what_is_computed_with(x, log):
    log.scale = 2.0
    return (x * x).exp().sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("function", "hook", "breaks"),
    [(writes_between, lambda log: log.note, True), (reads_between, lambda log: log.note, True),
     (writes_what_is_computed_with, lambda log: log.scaled, True),
     (writes_between, lambda log: lambda t: t * 2, False)],
)  # fmt: skip
def test_hooks_around_the_call_that_use_what_the_program_changes(function, hook, breaks, backend):
    answers = []
    for run in (function, framejit.compile(function, backend=backend)):
        log = Log()
        for _ in range(3):
            x = torch.ones(2, requires_grad=True)
            log.scale = 1.0
            with saved_tensors_hooks(hook(log), lambda t: t):
                y = run(x, log)
            y.backward()
            answers.append((run is function, y.item(), x.grad.tolist(), list(log.seen)))
    assert [a[1:] for a in answers if a[0]] == [a[1:] for a in answers if not a[0]]
    reasons = [reason for reason in framejit.counters["graph_break"] if "saved-tensor" in reason]
    assert bool(reasons) is breaks


def looks_without_grad(tensor):
    with torch.no_grad():
        print(end="")
    return tensor * 2


def test_the_state_is_put_back_where_a_hook_does_more_than_compute():
    def on_a_gradient(x):
        y = x * 3
        y.register_hook(looks_without_grad)
        z = y + 1
        z.sum().backward()
        return z, torch.is_grad_enabled()

    def on_what_is_saved(x):
        with saved_tensors_hooks(looks_without_grad, lambda t: t / 2):
            y = x.sin()
        return y + 1, torch.is_grad_enabled()

    for function, graphs, ops in ((on_a_gradient, 3, 4), (on_what_is_saved, 0, 0)):
        check(function, torch.ones(3, requires_grad=True), graphs=graphs, ops=ops)
        assert torch.is_grad_enabled()


class Scale:
    by = 2


def scaled_by_class(tensor):
    return tensor * Scale.by


@pytest.mark.parametrize("around", [False, True])
def test_hooks_that_read_a_class_which_the_program_changes(around):
    def program(x):
        Scale.by = Scale.by + 1
        y = x.sin()
        if not around:
            y.register_hook(scaled_by_class)
        return (y * 2).sum()

    found = []
    for run in (program, framejit.compile(program, backend="eager")):
        Scale.by = 2
        for _ in range(2):
            x = torch.ones(3, requires_grad=True)
            with saved_tensors_hooks(scaled_by_class, keep) if around else contextlib.nullcontext():
                y = run(x)
            y.backward()
            found.append(x.grad.tolist())
    assert found[:2] == found[2:]
