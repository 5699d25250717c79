"""`prepare`: compiled for tensors without content; when they have some, nothing is traced."""

import contextlib
import copy
import functools

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import framejit
from checking import CountingBackend
from framejit.callables import compiled_function_of
from framejit.report import events


class Net(nn.Module):
    """Parameters, buffers that are read and written, a plain attribute, constants on a device."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)])
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("table", torch.arange(8.0))
        self.scale = torch.ones(8)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) * self.table + self.scale + torch.zeros(8, device=x.device)


def meta(*shape, **options):
    return torch.empty(*shape, device="meta", **options)


@contextlib.contextmanager
def nothing_is_captured():
    with events.following(), events.recording(events.CaptureStart, events.CallSkipped) as seen:
        yield
    assert seen == []


def fill(model, real):
    """Give ``model`` the tensors of ``real``."""
    for module, other in zip(model.modules(), real.modules(), strict=True):
        module._parameters.update(other._parameters)
        module._buffers.update(other._buffers)
    if isinstance(model, Net):
        model.scale = real.scale


def check_call(compiled, model, x):
    """A call and its gradients, compiled and as plain Python."""
    twin, other = copy.deepcopy(model), x.clone()
    result, expected = compiled(x), twin(other)
    torch.testing.assert_close(result, expected)
    assert result.stride() == expected.stride()
    if result.requires_grad:
        result.square().sum().backward()
        expected.square().sum().backward()
        for one, two in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(one.grad, two.grad)
        model.zero_grad()
    torch.testing.assert_close(model.state_dict(), twin.state_dict())
    assert vars(model).get("calls") == vars(twin).get("calls")


def on_meta():
    return torch.device("meta")


@pytest.mark.parametrize("place", [on_meta, FakeTensorMode])
@pytest.mark.parametrize("within", [False, True], ids=["outside", "within"])
def test_weights_come_later(place, within):
    backend = CountingBackend()
    with place():
        model, x = Net(), torch.empty(3, 8)
    before = [*model.parameters(), *model.buffers()]
    compiled = framejit.compile(model, backend=backend)
    with place() if within else contextlib.nullcontext():
        assert compiled.prepare(x) is compiled
        compiled.prepare(x)
    assert len(backend.graphs) == 1 and backend.ops == 12
    assert all(a is b for a, b in zip(before, [*model.parameters(), *model.buffers()], strict=True))
    assert model.calls == 0
    fill(model, Net())
    with nothing_is_captured():
        for _ in range(2):
            check_call(compiled, model, torch.randn(3, 8))


def test_state_of_torch_is_part_of_it():
    backend = CountingBackend()
    with on_meta():
        model = Net().eval()
    compiled = framejit.compile(model, backend=backend)
    with torch.no_grad():
        compiled.prepare(meta(3, 8))
    fill(model, Net())
    with torch.no_grad(), nothing_is_captured():
        check_call(compiled, model, torch.randn(3, 8))
    check_call(compiled, model, torch.randn(3, 8))
    assert len(backend.graphs) == 2


def test_a_second_size_is_prepared_for_all_sizes():
    backend = CountingBackend()
    with on_meta():
        model = Net()
    compiled = framejit.compile(model, backend=backend)
    with events.recording(events.Recompile) as again:
        for size in (3, 5, 6, 9):
            compiled.prepare(meta(size, 8))
    assert len(backend.graphs) == 2
    (event,) = again
    assert "it was of size 3 at dimension 0, now it is of size 5" in event.reasons[0]
    fill(model, Net())
    with nothing_is_captured():
        for size in (3, 5, 17):
            check_call(compiled, model, torch.randn(size, 8))


def test_real_tensors_may_be_among_them():
    backend = CountingBackend()
    with on_meta():
        model = nn.Linear(8, 4)
    compiled = framejit.compile(model, backend=backend)
    compiled.prepare(torch.randn(3, 8))
    fill(model, nn.Linear(8, 4))
    with nothing_is_captured():
        check_call(compiled, model, torch.randn(3, 8))
        compiled.prepare(torch.randn(3, 8))
        compiled.prepare(meta(3, 8))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x))


def test_tied_weights():
    backend = CountingBackend()
    with on_meta():
        model, x = Tied(), torch.zeros(2, 3, dtype=torch.long)
    compiled = framejit.compile(model, backend=backend)
    compiled.prepare(x)
    assert len(backend.graphs[0].graph.find_nodes(op="placeholder")) == 2
    real = Tied()
    fill(model, real)
    with nothing_is_captured():
        check_call(compiled, model, torch.randint(0, 10, (2, 3)))


def test_views_share_the_memory_of_their_base():
    backend = CountingBackend()

    def function(x, y):
        y.add_(1)
        return x * 2

    compiled = framejit.compile(function, backend=backend)
    base = meta(8)
    compiled.prepare(base, base[2:4])
    real, expected = torch.arange(8.0), torch.arange(8.0)
    with nothing_is_captured():
        got = compiled(real, real[2:4])
    assert torch.equal(got, function(expected, expected[2:4])) and torch.equal(real, expected)


def keywords(a, /, b, *rest, scale=2.0, **named):
    return a * scale + b + sum(rest) + sum(named.values())


@pytest.mark.parametrize(
    ("args", "named"),
    [((1, 1), {}), ((1, 1, 1, 1), {"scale": 3.0}), ((1, 1), {"c": 1}), ((1,), {"b": 1, "c": 1})],
)
def test_arguments_are_bound_as_in_a_call(args, named):
    backend = CountingBackend()
    compiled = framejit.compile(keywords, backend=backend)

    def tensors(make):
        given = {k: v if k == "scale" else make(4) for k, v in named.items()}
        return [make(4) for _ in args], given

    given, options = tensors(meta)
    compiled.prepare(*given, **options)
    assert len(backend.graphs) == 1
    given, options = tensors(torch.randn)
    with nothing_is_captured():
        assert torch.equal(compiled(*given, **options), keywords(*given, **options))
    with pytest.raises(TypeError, match=r"keywords\(\) missing a required argument: 'b'"):
        compiled.prepare(meta(4))


class Scaled:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x, more=0.0):
        return x * self.weight + more

    def method(self, x):
        return x + self.weight


@pytest.mark.parametrize("part", ["instance", "method", "partial", "closure"])
def test_every_kind_of_callable(part):
    holder, weight = Scaled(meta(4)), meta(4)

    def closure(x):
        return x - weight

    target = {
        "instance": holder, "method": holder.method, "closure": closure,
        "partial": functools.partial(keywords, meta(4), scale=0.5),
    }[part]  # fmt: skip
    backend = CountingBackend()
    compiled = framejit.compile(target, backend=backend)
    compiled.prepare(meta(4))
    assert len(backend.graphs) == 1
    holder.weight = weight = x = torch.randn(4)
    if part == "partial":  # the same entry, through the function
        inner, target = compiled.func, functools.partial(keywords, x, scale=0.5)
        compiled = functools.partial(inner, x, scale=0.5)
    with nothing_is_captured():
        assert torch.equal(compiled(x), target(x))


def test_nothing_is_executed_and_what_follows_a_break_is_left(capsys):
    def function(x):
        y = x * 2
        print("computed", y.sum())
        return y + 1

    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    with pytest.warns(framejit.exc.FramejitWarning, match="up to a graph break.*FJ0231"):
        compiled.prepare(meta(4))
    assert len(backend.graphs) == 1 and capsys.readouterr().out == ""
    x = torch.ones(4)
    assert torch.equal(compiled(x), function(x))
    assert len(backend.graphs) == 2
    assert capsys.readouterr().out == "computed tensor(8.)\n" * 2
    with pytest.raises(framejit.exc.Unsupported, match="prepare"):
        framejit.compile(function, fullgraph=True, backend=backend).prepare(meta(4))


def test_numbers_in_tensors_are_not_read():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            y = x * 2
            return y if self.steps == 0 else -y

    with on_meta():
        model = Steps()
    compiled = framejit.compile(model, backend=CountingBackend())
    with pytest.warns(framejit.exc.FramejitWarning, match="FJ0231"):
        compiled.prepare(meta(4))
    for steps in (0, 1):
        model.steps = torch.tensor(steps)
        check_call(compiled, model, torch.randn(4))


@framejit.disable
def left_alone(x):
    return x * 2


def generator(x):
    yield x * 2


@pytest.mark.parametrize("function", [left_alone, generator])
def test_what_runs_as_plain_python_cannot_be_prepared(function):
    compiled = framejit.compile(function, backend=CountingBackend())
    with pytest.raises(framejit.exc.PrepareError, match="cannot be prepared.*FJ0230"):
        compiled.prepare(meta(4))


def test_where_fake_tensors_are():
    if torch.cuda.is_available():
        pytest.skip("there is such a device")
    with FakeTensorMode():
        x = torch.empty(4, device="cuda")
    with pytest.raises(framejit.exc.PrepareError, match="cannot be prepared"):
        framejit.compile(left_alone.__wrapped__, backend=CountingBackend()).prepare(x)


def test_a_package_that_holds_it_already(tmp_path):
    path = tmp_path / "net.package"
    with on_meta():
        model = Net()
    framejit.compile(model, backend="eager").prepare(meta(3, 8)).save_package(path)
    with on_meta():
        other = Net()
    compiled = framejit.compile(other, backend="eager").load_package(path)
    with nothing_is_captured():
        compiled.prepare(meta(3, 8))
        fill(other, Net())
        check_call(compiled, other, torch.randn(3, 8))
    compiled.prepare(meta(4, 8))
    assert len(compiled_function_of(compiled).entries) == 2


def test_a_model_with_a_method_of_that_name_keeps_it():
    class Own(nn.Module):
        def prepare(self):
            return "its own"

        def forward(self, x):
            return x

    assert framejit.compile(Own(), backend="eager").prepare() == "its own"


def test_other_calls_go_on_meanwhile():
    """The entry for tensors without content leaves alone those that have some."""
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: x.sin() + 1, backend=backend)
    assert compiled(meta(3)).device.type == "meta"
    compiled.prepare(meta(3))
    x = torch.randn(3)
    with nothing_is_captured():
        assert torch.equal(compiled(x), x.sin() + 1)
        assert compiled(meta(3)).device.type == "meta"
    assert len(backend.graphs) == 2
