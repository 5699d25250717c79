"""`compile` on an ``nn.Module``: another object for the same module (D9)."""

import abc
import copy
import gc
import inspect
import io
import pickle
import weakref

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend


class Net(nn.Module):
    """Two layers."""

    registry = []

    def __init_subclass__(cls, **kwargs):
        Net.registry.append(cls)

    def __init__(self, size=4):
        super().__init__()
        self.first = nn.Linear(size, size)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(size, 2))
        self.register_buffer("offset", torch.ones(2))
        self.scale = 1.0

    def forward(self, x, bias=None):
        y = self.second(self.first(x)) * self.scale + self.offset
        return y if bias is None else y + bias

    def features(self, x):
        return self.first(x)


class Abstract(nn.Module, abc.ABC):
    @abc.abstractmethod
    def forward(self, x): ...


class Concrete(Abstract):
    __slots__ = ("extra",)

    def forward(self, x):
        return x * self.extra


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def backend():
    return CountingBackend()


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def compiled(net, backend):
    return framejit.compile(net, backend=backend, fullgraph=True)


def test_results_and_graphs(net, compiled, backend):
    assert torch.equal(compiled(X), net(X))
    assert torch.equal(compiled(X, bias=torch.ones(2)), net(X, bias=torch.ones(2)))
    compiled(X)
    assert len(backend.graphs) == 2


def test_it_looks_like_the_module(net, compiled):
    cls = type(compiled)
    assert isinstance(compiled, Net) and cls is not Net
    assert (cls.__name__, cls.__qualname__, cls.__module__) == (
        Net.__name__,
        Net.__qualname__,
        Net.__module__,
    )
    assert cls.__doc__ == Net.__doc__
    assert repr(compiled) == repr(net)
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [n for n, _ in compiled.named_modules()] == [n for n, _ in net.named_modules()]
    assert inspect.signature(compiled.forward) == inspect.signature(net.forward)
    assert cls not in Net.registry


def test_state_is_shared_both_ways(net, compiled):
    compiled.train()
    assert net.training and net.first.training
    net.eval()
    assert not compiled.training
    compiled.scale = 3.0
    assert net.scale == 3.0
    net.added = nn.Linear(1, 1)
    assert compiled.added is net.added
    del compiled.added
    assert not hasattr(net, "added")
    with torch.no_grad():
        compiled.first.weight.zero_()
    assert net.first.weight.abs().sum() == 0
    compiled.load_state_dict(Net().state_dict())
    assert torch.equal(compiled(X), net(X))


def test_changes_are_noticed(net, compiled, backend):
    compiled(X)
    net.scale = 2.0
    assert torch.equal(compiled(X), net(X))
    net.second[1] = nn.Linear(4, 2)
    assert torch.equal(compiled(X), net(X))
    net.first.weight = nn.Parameter(torch.zeros(4, 4))
    assert torch.equal(compiled(X), net(X))


def test_going_to_train_and_back_compiles_nothing_new(net, compiled, backend):
    compiled(X)
    compiled.train()
    compiled(X)
    compiled.eval()
    compiled(X)
    compiled.train()
    compiled(X)
    assert len(backend.graphs) <= 2


def test_the_original_stays_eager(net, compiled, backend):
    net(X)
    net.forward(X)
    compiled.features(X)
    assert backend.graphs == []


def test_tables_know_it_as_the_module(net, compiled):
    again, other = framejit.compile(net, backend="eager"), Net()
    assert compiled == net and net == compiled and compiled == again
    assert not compiled != net and compiled != other and compiled != None  # noqa: E711
    assert {net: "known"}[compiled] == {compiled: "known"}[net] == "known"
    assert len({net, compiled, again, other}) == 2
    known = weakref.WeakKeyDictionary({net: "known"})
    assert known[again] == "known" and other not in known
    holding = nn.ModuleList([net, compiled])
    assert [n for n, _ in holding.named_modules()] == [
        n for n, _ in nn.ModuleList([net, net]).named_modules()
    ]


def test_a_class_with_its_own_equality_keeps_it(backend):
    class Sized(nn.Linear):
        def __eq__(self, other):
            return isinstance(other, Sized) and other.in_features == self.in_features

        def __hash__(self):
            return self.in_features

    compiled = framejit.compile(Sized(3, 2), backend=backend)
    assert compiled == Sized(3, 4) and compiled != Sized(4, 4) and hash(compiled) == 3


class Tables(nn.Module):
    """Asks tables about modules."""

    def __init__(self, backend):
        super().__init__()
        self.first, self.other = nn.Linear(2, 2), nn.Linear(2, 2)
        self.again = framejit.compile(self.first, backend=backend)
        self.known = {self.first: 5}

    def forward(self, x):
        asked = [{self.first: 1}.get(self.again), {self.again: 2}.get(self.first)]
        asked += [self.known.get(self.again), self.known.get(self.other)]
        asked += [len({self.first, self.again, self.other}), self.again in (self.other, None)]
        asked += [self.first == self.again, self.again == self.first, self.again != self.other]
        return x + 1, asked, [name for name, _ in self.named_modules()]


def test_captured_code_asks_tables(backend):
    tables = Tables("eager")
    expected = tables(X)
    found = framejit.compile(tables, backend=backend, fullgraph=True)(X)
    assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]
    assert expected[2] == ["", "first", "other"] and len(backend.graphs) == 1


def test_which_modules_are_the_same_is_guarded(net, compiled, backend):
    def program(x, key, asked):
        return x + {key: 1}.get(asked, 10)

    other = Net()
    both = framejit.compile(program, backend=backend, fullgraph=True)
    for key, asked in [(other, compiled), (net, compiled), (compiled, net), (net, other)] * 2:
        assert torch.equal(both(X, key, asked), program(X, key, asked))
    assert len(backend.graphs) == 4


def test_self_is_the_original(backend):
    seen = []

    class Me(nn.Module):
        def forward(self, x):
            self.last = x
            seen.append(self)
            return x + 1

    me = Me()
    framejit.compile(me, backend=backend)(X)
    assert seen == [me] and type(seen[0]) is Me
    assert torch.equal(me.last, X)


def test_hooks_run_and_hooks_added_later_are_noticed(net, compiled):
    compiled(X)
    calls = []
    handle = net.register_forward_hook(lambda module, args, output: output * 2)
    compiled.first.register_forward_pre_hook(lambda module, args: calls.append(module))
    assert torch.equal(compiled(X), net(X))
    assert len(calls) == 2
    handle.remove()
    assert torch.equal(compiled(X), net(X))


def test_gradients(net, backend):
    other = copy.deepcopy(net)
    compiled = framejit.compile(other, backend=backend)
    net(X).sum().backward()
    compiled(X).sum().backward()
    for (name, one), two in zip(net.named_parameters(), compiled.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad), name


def test_inside_another_module(net, compiled, backend):
    class Outer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) + 1

    outer = Outer(compiled)
    assert torch.equal(outer(X), net(X) + 1)
    assert len(backend.graphs) == 1
    assert list(outer.state_dict())[0] == "inner.offset"
    whole = CountingBackend()
    both = framejit.compile(outer, backend=whole, fullgraph=True)
    assert torch.equal(both(X), net(X) + 1)
    assert len(whole.graphs) == 1


def test_compiling_again_starts_from_the_original(net, compiled, backend):
    other = CountingBackend()
    again = framejit.compile(compiled, backend=other)
    assert torch.equal(again(X), net(X))
    assert (len(backend.graphs), len(other.graphs)) == (0, 1)
    assert type(again).__mro__[1] is Net


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy])
def test_copies_are_compiled_and_independent(net, compiled, backend, duplicate):
    compiled(X)
    copied = duplicate(compiled)
    assert isinstance(copied, Net)
    assert torch.equal(copied(X), net(X))
    assert len(backend.graphs) == 2
    copied.scale = 7.0
    assert net.scale == 1.0
    if duplicate is copy.deepcopy:
        assert copied.first.weight is not net.first.weight


def test_deepcopy_keeps_sharing_inside(compiled):
    one, two = copy.deepcopy([compiled, compiled])
    assert one is two


def test_pickle_and_save(net):
    compiled = framejit.compile(net, backend="eager")
    for loaded in (
        pickle.loads(pickle.dumps(compiled)),
        torch.load(_saved(compiled), weights_only=False),
    ):
        assert isinstance(loaded, Net)
        assert torch.equal(loaded(X), net(X))
        before = framejit.counters["stats"]["unique_graphs"]
        loaded(torch.ones(5, 4))
        assert framejit.counters["stats"]["unique_graphs"] == before + 1
    fresh = Net()
    fresh.load_state_dict(compiled.state_dict())
    assert torch.equal(fresh.eval()(X), net(X))


def _saved(thing):
    stream = io.BytesIO()
    torch.save(thing, stream)
    stream.seek(0)
    return stream


def test_other_metaclass_and_slots(backend):
    module = Concrete()
    module.extra = 3
    compiled = framejit.compile(module, backend=backend)
    assert isinstance(compiled, Concrete)
    assert torch.equal(compiled(X), X * 3)


class Slotted(nn.Module):
    __slots__ = ("__hidden", "factor")

    def __init__(self):
        super().__init__()
        self.factor, self.__hidden = 2, 3

    def forward(self, x):
        return x * self.factor + self.__hidden

    def bump(self):
        self.__hidden += 1


class WithoutFactor(Slotted):
    factor = 5

    def __init__(self):
        nn.Module.__init__(self)
        self._Slotted__hidden = 1


def test_slots_are_shared(backend):
    module = Slotted()
    compiled = framejit.compile(module, backend=backend)
    compiled.factor = 7
    assert module.factor == 7 and torch.equal(compiled(X), X * 7 + 3)
    module.factor = 9
    module.bump()
    compiled.bump()
    assert compiled.factor == 9 and torch.equal(compiled(X), X * 9 + 5)
    del compiled.factor
    assert not hasattr(module, "factor") and type(compiled).factor is Slotted.factor
    with pytest.raises(AttributeError, match="'Slotted' object has no attribute 'factor'"):
        compiled.factor

    @framejit.compile(backend=backend)
    def both(x):
        compiled.factor = 4
        return module(x) + compiled.factor

    assert torch.equal(both(X), X * 4 + 9) and module.factor == 4
    plain = framejit.compile(WithoutFactor(), backend=backend)
    assert plain.factor == 5 and torch.equal(plain(X), X * 5 + 1)


def test_overridden_call(backend):
    class Loud(nn.Linear):
        def __call__(self, x):
            return super().__call__(x) + 1

    torch.manual_seed(0)
    loud = Loud(4, 4)
    assert torch.equal(framejit.compile(loud, backend=backend)(X), loud(X))


def test_class_attributes_properties_and_methods(backend):
    class Rich(Net):
        kind = "rich"

        @property
        def width(self):
            return self.first.out_features

        def forward(self, x):
            return super().forward(x) * self.width

    rich = Rich().eval()
    compiled = framejit.compile(rich, backend=backend)
    assert compiled.kind == "rich" and compiled.width == 4
    assert torch.equal(compiled(X), rich(X))


def test_fx_graph_module(backend):
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    compiled = framejit.compile(traced, backend=backend)
    assert torch.equal(compiled(X), traced(X))


def test_a_finalizer_runs_once():
    deaths = []

    class Mortal(nn.Module):
        def __del__(self):
            deaths.append(1)

        def forward(self, x):
            return x

    compiled = framejit.compile(Mortal(), backend="eager")
    compiled(X)
    del compiled
    gc.collect()
    assert deaths == [1]


def test_compiled_modules_die(backend):
    net = Net()
    compiled = framejit.compile(net, backend=backend)
    compiled(X)
    gone = weakref.ref(compiled), weakref.ref(net)
    backend.graphs.clear()
    del compiled, net
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_moving_a_module(net, compiled):
    compiled(X)
    compiled.double()
    assert net.first.weight.dtype is torch.float64
    assert torch.equal(compiled(X.double()), net(X.double()))


def test_methods_of_a_module(net, backend):
    features = framejit.compile(net.features, backend=backend)
    assert torch.equal(features(X), net.first(X))
    assert len(backend.graphs) == 1


def test_jit_script_module_runs(backend):
    scripted = torch.jit.script(nn.Linear(4, 4))
    assert torch.equal(framejit.compile(scripted, backend=backend)(X), scripted(X))


class Tagged(nn.Module):
    """A class statement of a subclass needs a keyword, and is noticed."""

    made = []

    def __init_subclass__(cls, *, tag, **kwargs):
        Tagged.made.append((cls.__name__, tag))

    def forward(self, x):
        return x + 1


class TaggedSlots(Tagged, tag=1):
    __slots__ = ("extra",)


class OfTaggedMeta(type):
    made = []

    def __new__(cls, name, bases, names, *, tag):
        cls.made.append((name, tag))
        return super().__new__(cls, name, bases, names)

    def __init__(cls, name, bases, names, *, tag):
        super().__init__(name, bases, names)


class TaggedByMeta(nn.Module, metaclass=OfTaggedMeta, tag=2):
    def forward(self, x):
        return x + 1


@pytest.mark.parametrize("cls", [TaggedSlots, TaggedByMeta])
def test_nobody_hears_of_the_class_of_a_compiled_module(cls, backend):
    before = list(Tagged.made), list(OfTaggedMeta.made)
    compiled = framejit.compile(cls(), backend=backend)
    assert torch.equal(compiled(X), X + 1) and len(backend.graphs) == 1
    assert isinstance(compiled, cls) and type(compiled).__name__ == cls.__name__
    assert (Tagged.made, OfTaggedMeta.made) == before


class Doubling(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x, *, more=0):
        """Twice."""
        return x * self.weight * 2 + more


def test_forward_of_a_compiled_module_is_compiled():
    module, backend = Doubling(), CountingBackend()
    module.register_forward_hook(lambda module, args, result: result + 100)
    compiled = framejit.compile(module, backend=backend)
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(compiled.forward(x, more=1), module.forward(x, more=1))
    assert len(backend.graphs) == 1 and backend.ops == 3
    assert inspect.signature(compiled.forward) == inspect.signature(module.forward)
    assert compiled.forward.__doc__ == "Twice."
    assert torch.equal(type(compiled).forward(compiled, x), module.forward(x))
    assert torch.equal(compiled(x), module(x))
    inner = CountingBackend()
    outer = framejit.compile(lambda x: compiled.forward(x) + 1, backend=inner, fullgraph=True)
    assert torch.equal(outer(x), module.forward(x) + 1)
    assert len(inner.graphs) == 1


def test_forward_is_what_the_class_has_now(monkeypatch):
    module = Doubling()
    compiled = framejit.compile(module, backend="eager")
    x = torch.ones(2)
    assert compiled.forward(x).tolist() == [2.0, 2.0]
    monkeypatch.setattr(Doubling, "forward", lambda self, x: x * self.weight * 3)
    assert compiled.forward(x).tolist() == compiled(x).tolist() == [3.0, 3.0]


def test_forward_may_be_replaced_around_a_call():
    """A library puts another one in place for a call, which puts the first one back."""
    module, backend = Doubling(), CountingBackend()
    compiled = framejit.compile(module, backend=backend)
    original = compiled.forward

    def wrapped(*args, **kwargs):
        compiled.forward = original
        result = compiled(*args, **kwargs)
        compiled.forward = wrapped
        return result + 1

    compiled.forward = wrapped
    for _ in range(3):
        assert compiled.forward(torch.ones(2)).tolist() == [3.0, 3.0]


def test_running_only_what_is_compiled():
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: x + 1, backend=backend)
    compiled(torch.ones(2))
    for run in (framejit.run(), framejit.run(strict=True), framejit.run):
        assert run(compiled)(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(framejit.exc.NothingFits):
        framejit.run(strict=True)(compiled)(torch.ones(3))
    inside = framejit.run(compiled)
    outer = framejit.compile(lambda x: inside(x * 2) * 3, backend=backend, fullgraph=True)
    assert outer(torch.ones(3)).tolist() == [9.0, 9.0, 9.0]
    assert [len(graph.graph.nodes) - 2 for graph in backend.graphs] == [1, 3]


def test_entries_are_shared_if_asked_for():
    def f(x):
        return x + 1

    backend = CountingBackend()

    def twice():
        return [framejit.compile(f, backend=backend) for _ in range(2)]

    first, second = twice()
    assert first is not second
    with framejit.config.patch(share_entries=True):
        first, second = twice()
        other = framejit.compile(f, backend=backend, dynamic=True)
    for compiled in (first, second, other):
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(backend.graphs) == 2


def test_a_limit_of_its_own():
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: x + 1, backend=backend, dynamic=False, recompile_limit=1)
    compiled(torch.ones(2))
    with pytest.warns(framejit.exc.FramejitWarning, match="1 times, which is the limit"):
        assert compiled(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert len(backend.graphs) == 1
    with pytest.raises(TypeError, match="recompile_limit"):
        framejit.compile(lambda x: x, recompile_limit=0)
