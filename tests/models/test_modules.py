"""`torch.nn.Module` programs: hooks, containers, buffers, recurrent and lazy modules, lifetimes."""

import copy
import gc
import inspect
import io
import warnings
import weakref

import pytest
import torch
from torch import nn

import framejit
from checking import COPIES, CountingBackend, copied
from framejit.report import events
from threads import in_threads

X = torch.arange(12.0).reshape(3, 4) / 10


def compiled_like(make, *inputs, calls=2, fullgraph=True, graphs=None, grad=False, train=False):
    """Assert that a module does the same compiled, in results, state and gradients."""
    torch.manual_seed(0)
    eager = make().train(train)
    twin = copy.deepcopy(eager)
    backend = CountingBackend()
    compiled = framejit.compile(twin, backend=backend, fullgraph=fullgraph)
    for call in range(calls):
        torch.manual_seed(call)
        expected = eager(*inputs)
        torch.manual_seed(call)
        got = compiled(*inputs)
        torch.testing.assert_close(got, expected)
        if grad:
            for module, result in ((eager, expected), (twin, got)):
                module.zero_grad()
                torch.utils._pytree.tree_leaves(result)[0].sum().backward()
            for (name, one), two in zip(eager.named_parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(two.grad, one.grad, msg=name)
    for (name, one), (other, two) in zip(
        eager.state_dict().items(), twin.state_dict().items(), strict=True
    ):
        assert name == other
        torch.testing.assert_close(two, one)
    if graphs is not None:
        assert len(backend.graphs) == graphs
    return backend


class Hooked(nn.Module):
    def __init__(self, install):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        install(self)
        install(self.inner)

    def forward(self, x):
        return self.inner(x) + 1


HOOKS = {
    "forward": lambda m: m.register_forward_hook(lambda s, a, o: o * 2),
    "forward_kwargs": lambda m: m.register_forward_hook(
        lambda s, a, k, o: o * 2 + len(k), with_kwargs=True
    ),
    "pre": lambda m: m.register_forward_pre_hook(lambda s, a: (a[0] * 3,)),
    "pre_not_a_tuple": lambda m: m.register_forward_pre_hook(lambda s, a: a[0] * 3),
    "pre_kwargs": lambda m: m.register_forward_pre_hook(
        lambda s, a, k: ((a[0] + 3,), k), with_kwargs=True
    ),
    "returns_nothing": lambda m: m.register_forward_hook(lambda s, a, o: None),
    "prepended": lambda m: (
        m.register_forward_hook(lambda s, a, o: o * 2),
        m.register_forward_hook(lambda s, a, o: o + 5, prepend=True),
    ),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_are_captured(kind):
    compiled_like(lambda: Hooked(HOOKS[kind]), X, graphs=1, grad=True)


def test_always_call_hook():
    seen = []

    def install(m):
        m.register_forward_hook(lambda s, a, o: seen.append(type(s).__name__), always_call=True)

    model = Hooked(install)
    compiled = framejit.compile(model, backend="eager")
    compiled(X)
    assert seen == ["Linear", "Hooked"]
    seen.clear()
    with pytest.raises(RuntimeError):
        compiled(torch.ones(3, 5))
    assert seen == ["Linear", "Hooked"]


@pytest.mark.parametrize(
    "register", ["register_full_backward_hook", "register_full_backward_pre_hook"]
)
def test_backward_hooks(register):
    def run(compile_it):
        torch.manual_seed(0)
        seen = []
        model = Hooked(lambda m: None)
        getattr(model.inner, register)(
            lambda s, *grads: seen.append([len(g) for g in grads]) or None
        )
        called = framejit.compile(model, backend="eager") if compile_it else model
        for _ in range(2):
            called(X).sum().backward()
        return seen, [p.grad for p in model.parameters()]

    expected, got = run(False), run(True)
    assert got[0] == expected[0] and len(got[0]) == 2
    torch.testing.assert_close(got[1], expected[1])


def test_hook_added_and_removed_after_compiling():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    plain = compiled(X)
    handle = model[0].register_forward_hook(lambda s, a, o: o * 10)
    torch.testing.assert_close(compiled(X), plain * 10)
    handle.remove()
    torch.testing.assert_close(compiled(X), plain)
    assert len(backend.graphs) == 2


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.named = nn.ModuleDict({"act": nn.ReLU(), "last": nn.Linear(4, 4)})
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 4)))
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(4) * i) for i in range(3)])
        self.table = nn.ParameterDict({"a": nn.Parameter(torch.ones(4)), "b": torch.ones(4)})

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) * self.scales[i]
        for name, module in self.named.items():
            x = module(x) + len(name)
        x = self.seq[1](self.seq[0](x)) + self.layers[-1](x) + len(self.layers)
        for layer in self.layers[1:]:
            x = layer(x)
        return x + self.table["a"] + sum(p.sum() for p in self.scales) + self.table.b


def test_containers():
    compiled_like(Containers, X, graphs=1, grad=True)


def test_iteration_over_members():
    class Members(Containers):
        def forward(self, x):
            for name, p in self.named_parameters():
                x = x + p.sum() * len(name)
            for m in self.children():
                x = x + len(list(m.parameters()))
            return x + sum(b.sum() for b in self.buffers()) + len(list(self.modules()))

    compiled_like(Members, X, grad=True)


def test_batchnorm_updates_its_buffers():
    make = lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    compiled_like(make, X, train=True, calls=4, graphs=1, grad=True)
    compiled_like(make, X, train=False, graphs=1)


@pytest.mark.parametrize("train", [True, False])
def test_dropout_equals_eager_under_a_seed(train):
    compiled_like(
        lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4), nn.AlphaDropout(0.3)), X,
        train=train, calls=3, graphs=1,
    )  # fmt: skip


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}]
)
def test_recurrent(kind, options):
    compiled_like(
        lambda: kind(4, 5, **options), X[None].repeat(2, 1, 1), fullgraph=False, grad=True
    )


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_recurrent_cells(kind):
    compiled_like(lambda: kind(4, 5), X, fullgraph=False, grad=True)


@pytest.mark.parametrize(
    "make, inputs",
    [
        (lambda: nn.MultiheadAttention(4, 2, batch_first=True), (X[None],) * 3),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (X[None],)),
        (lambda: nn.TransformerDecoderLayer(4, 2, 8, batch_first=True), (X[None], X[None])),
        (lambda: nn.Conv1d(3, 2, 2, padding="same", padding_mode="circular"), (X[None],)),
        (lambda: nn.Embedding(5, 4, padding_idx=0), (torch.tensor([0, 1, 4]),)),
        (lambda: nn.EmbeddingBag(5, 4), (torch.tensor([[0, 1, 4]]),)),
        (lambda: nn.Bilinear(4, 4, 2), (X, X)),
        (lambda: nn.GroupNorm(2, 4), (X,)),
        (lambda: nn.LayerNorm(4), (X,)),
        (lambda: nn.Upsample(scale_factor=2), (X[None],)),
        (lambda: nn.PReLU(), (X,)),
        (lambda: nn.ConvTranspose1d(3, 2, 2), (X[None],)),
        (lambda: nn.AdaptiveAvgPool1d(2), (X[None],)),
        (lambda: nn.Flatten(), (X,)),
    ],
)
def test_library_modules(make, inputs):
    compiled_like(make, *inputs, fullgraph=False, train=False)


def test_lazy_modules():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.LazyLinear(5)
            self.norm = nn.LazyBatchNorm1d()

        def forward(self, x):
            return self.norm(self.first(x))

    torch.manual_seed(0)
    eager = Lazy().eval()
    torch.manual_seed(0)
    lazy = Lazy().eval()
    compiled = framejit.compile(lazy, backend="eager")
    torch.manual_seed(1)
    expected = eager(X)
    torch.manual_seed(1)
    torch.testing.assert_close(compiled(X), expected)
    torch.testing.assert_close(compiled(X), eager(X))
    assert type(lazy.first) is nn.Linear


def test_patched_forward_and_replaced_submodules():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    compiled = framejit.compile(model, backend="eager")
    compiled(X)
    model[0].forward = lambda x: x * 2
    assert torch.equal(compiled(X), X * 2)
    model[0] = nn.Tanh()
    assert torch.equal(compiled(X), X.tanh().relu())
    model.forward = lambda x: x - 1
    assert torch.equal(compiled(X), X - 1)
    del model.forward
    assert torch.equal(compiled(X), X.tanh().relu())


def test_shared_modules():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a
            self.c = nn.Linear(4, 4)
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x)) + self.c(x)

    backend = compiled_like(Shared, X, graphs=1, grad=True)
    inputs = [n for n in backend.graphs[0].graph.nodes if n.op == "placeholder"]
    assert len(inputs) == 4  # x, the weight, two biases


def test_recursive_modules():
    class Tree(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.here = nn.Linear(4, 4)
            self.below = Tree(depth - 1) if depth else None
            self.__dict__["parent"] = None
            if self.below is not None:
                self.below.__dict__["parent"] = self

        def forward(self, x):
            x = self.here(x)
            if self.parent is not None:
                x = x + self.parent.here.bias
            return x if self.below is None else self.below(x)

    compiled_like(lambda: Tree(4), X, graphs=1, grad=True)


def test_other_methods():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.features(x) + 1

        def features(self, x):
            return self.inner(x)

    model = Two()
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    assert torch.equal(compiled.features(X), model.features(X))
    assert not backend.graphs  # only calls are compiled
    features = framejit.compile(model.features, backend=backend)
    assert torch.equal(features(X), model.features(X))
    assert torch.equal(compiled(X), model(X))
    assert len(backend.graphs) == 2


# -- training mode, state and recompiles ----------------------------------------------------------


def captures():
    return framejit.counters["frames"]["total"]


def test_train_and_eval_in_a_loop_make_two_entries():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    compiled = framejit.compile(model, backend="eager")
    for _ in range(5):
        model.train()
        compiled(X)
        model.eval()
        compiled(X)
    assert captures() == 2


def test_training_loop_compiles_once():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 1))
    average = copy.deepcopy(model)
    compiled = framejit.compile(model, backend="eager", fullgraph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad(set_to_none=bool(step % 2))
        compiled(X).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
        model.load_state_dict(copy.deepcopy(model.state_dict()), assign=bool(step % 2))
        if step % 2:
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    assert captures() == 1


def test_counter_attribute_stays_right_and_warns_at_the_limit():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    model = Counting()
    compiled = framejit.compile(model, backend="eager")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i in range(1, 13):
            assert torch.equal(compiled(X), X * i)
    assert model.n == 12
    limited = captures() >= framejit.config.recompile_limit
    assert any("recompile" in str(w.message).lower() for w in seen) == limited


# -- no wrapper (D9) ------------------------------------------------------------------------------


class Net(nn.Module):
    """A module that can be pickled."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x, scale: float = 1.0):
        return self.first(x) * scale + self.offset


def test_a_compiled_module_is_the_module():
    net = Net()
    compiled = framejit.compile(net, backend="eager")
    assert isinstance(compiled, Net) and isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [n for n, _ in compiled.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert [n for n, _ in compiled.named_modules()] == [n for n, _ in net.named_modules()]
    assert inspect.signature(compiled.forward) == inspect.signature(net.forward)
    assert type(compiled).__name__ == "Net" and repr(compiled) == repr(net)
    assert compiled.train(False) is compiled and not net.training
    assert compiled.to(torch.float64) is compiled and net.first.weight.dtype == torch.float64
    compiled.extra = 3
    assert net.extra == 3
    torch.testing.assert_close(compiled(X.double(), scale=2.0), net(X.double(), scale=2.0))


@pytest.mark.parametrize("how", COPIES)
def test_copies_are_compiled_modules_of_their_own(how):
    net = Net()
    compiled = framejit.compile(net, backend="eager")
    expected = compiled(X)
    twin = copied(compiled, how)
    assert isinstance(twin, Net) and twin.first is not net.first
    assert torch.equal(twin(X), expected)
    with torch.no_grad():
        net.first.weight.zero_()
    assert torch.equal(twin(X), expected)


def test_state_dict_can_be_saved_and_loaded():
    compiled = framejit.compile(Net(), backend="eager")
    file = io.BytesIO()
    torch.save(compiled.state_dict(), file)
    file.seek(0)
    other = Net()
    other.load_state_dict(torch.load(file))
    torch.testing.assert_close(other(X), compiled(X))


def test_two_backends_on_one_module():
    one, two = CountingBackend(), CountingBackend()
    net = Net()
    a, b = framejit.compile(net, backend=one), framejit.compile(net, backend=two)
    for _ in range(3):
        assert torch.equal(a(X), net(X)) and torch.equal(b(X), net(X))
    assert len(one.graphs) == len(two.graphs) == 1


# -- lifetime and threads -------------------------------------------------------------------------


def test_everything_dies_with_the_compiled_object():
    net = Net()
    backend = CountingBackend()
    compiled = framejit.compile(net, backend=backend)
    compiled(X)
    graph = weakref.ref(backend.graphs.pop())
    module, weight = weakref.ref(net), weakref.ref(net.first.weight)
    del net, compiled
    gc.collect()
    assert graph() is None and module() is None and weight() is None


def test_entries_of_a_function_die_with_it():
    backend = CountingBackend()
    held = torch.ones(4)

    def f(x):
        y = x + held
        if y.sum() > 0:
            return y * 2
        return y

    compiled = framejit.compile(f, backend=backend)
    compiled(X)
    graphs = [weakref.ref(g) for g in backend.graphs]
    backend.graphs.clear()
    tensor, function = weakref.ref(held), weakref.ref(f)
    del compiled, f
    held = None
    gc.collect()
    assert tensor() is None and function() is None
    assert all(graph() is None for graph in graphs) and len(graphs) == 2


def test_arguments_are_not_kept_alive():
    compiled = framejit.compile(lambda m, x: m.first(x), backend="eager")
    net, x = Net(), torch.ones(2, 4)
    compiled(net, x)
    compiled(net, x)
    refs = weakref.ref(net), weakref.ref(x)
    del net, x
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_compile_and_discard_does_not_grow():
    def rounds(count):
        for _ in range(count):
            compiled = framejit.compile(Net(), backend="eager")
            compiled(X)
            del compiled
        events.clear()  # keeps the last few thousand
        gc.collect()
        return len(gc.get_objects())

    rounds(20)
    before = rounds(20)
    # torch.fx keeps three objects per graph, for tracebacks
    assert rounds(300) < before + 300 * 3 + 200


def test_eight_threads_call_one_function():
    def f(x, k):
        return torch.sin(x) * k + x.sum()

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, dynamic=False)
    inputs = [torch.randn(n) for n in range(1, 5)]
    wrong = []

    def work(offset):
        for i in range(150):
            x, grad = inputs[(i + offset) % 4], (i + offset) % 3 != 0
            with torch.set_grad_enabled(grad):
                if not torch.equal(compiled(x, 2), f(x, 2)):
                    wrong.append((offset, i))

    in_threads(work, range(8))
    assert not wrong
    assert len(backend.graphs) == 8  # four shapes, with and without gradients
