"""Repeated calls see the program as it is there: what else they are related to, what the frame has
changed before, whose globals they read, which objects they are given."""

import gc
import types
import weakref

import pytest
import torch
from torch import nn

import framejit
from framejit import config
from framejit.report import events

X = torch.linspace(-1, 1, 4)


def long(x):
    """Enough instructions for a call to be worth a recording."""
    for _ in range(12):
        x = x * 1
        x = x + 0
    return x


def same(f, *args, repeated=True):
    """Compare with a plain call; were calls repeated?"""
    framejit.reset()
    compiled = framejit.compile(f, backend="eager")
    with config.patch(raise_internal_errors=True), events.recording(events.CaptureEnd) as ends:
        got = compiled(*args)
    torch.testing.assert_close(got, f(*args), rtol=0, atol=0)
    assert any(end.repeated for end in ends) is repeated
    return compiled


class Shared:
    """What layers compare with."""

    one = None


class Compares(nn.Module):
    def __init__(self, one):
        super().__init__()
        self.one = one

    def forward(self, x):
        return long(x) + (100 if self.one is Shared.one else 1)


@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(2, 2), object, lambda: [1]], ids=["module", "object", "list"]
)
@pytest.mark.parametrize("number", [0, 7, 11])
def test_an_object_of_a_layer_becomes_the_one_that_all_are_compared_with(make, number):
    model = nn.Sequential(*[Compares(make()) for _ in range(12)])
    Shared.one = make()
    compiled = same(model, X)
    model[number].one = Shared.one
    torch.testing.assert_close(compiled(X), model(X), rtol=0, atol=0)
    Shared.one = model[(number + 1) % 12].one
    torch.testing.assert_close(compiled(X), model(X), rtol=0, atol=0)


def test_functions_with_the_same_code_and_globals_of_their_own():
    def shifted(x):
        for _ in range(12):
            x = x * 1
            x = x + 0
        return x + 1 if KIND == "up" else x * 2  # noqa: F821 (each has one of its own)

    kinds = ["up"] * 12 + ["down"] * 12
    made = [types.FunctionType(shifted.__code__, {"range": range, "KIND": k}) for k in kinds]

    def f(x):
        for function in made:
            x = function(x)
        return x

    same(f, X, repeated=False)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.ones(2, 3))

    def forward(self, x):
        for _ in range(12):
            x = x * 1
            x = x + 0
        return x * self.state.shape[0]


def test_tensors_that_the_frame_has_changed_before():
    def made():
        return [State() for _ in range(16)]

    def f(layers, x):
        results = []
        for i, layer in enumerate(layers):
            results.append(layer(x))
            if i == 10:
                layers[12].state.t_()
        return results

    got = framejit.compile(f, backend="eager")(made(), X)
    torch.testing.assert_close(got, f(made(), X), rtol=0, atol=0)


def compared(x, one, two):
    return long(x) + (1 if one is two else 2)


def contained(x, one, two):
    return long(x) + (1 if one in (two,) else 2)


@pytest.mark.parametrize("text", ["1.5", "nan"])
@pytest.mark.parametrize("call", [compared, contained])
def test_equal_constants_may_be_one_object_or_two(call, text):
    def f(x):
        results = []
        for i in range(24):
            one = float(text)
            two = one if i % 2 else float(text)
            results.append(call(x, one, two))
        return results

    same(f, X, repeated=False)


def test_the_very_same_constants_are_repeated():
    def f(x):
        one, two = float("1.5"), float("1.5")
        return [compared(x, one, two if i % 2 else one) for i in range(24)]

    same(f, X)


def test_a_constant_is_returned_as_the_object_that_it_is():
    def given(x, one):
        return long(x), one

    def f(x):
        results = []
        for _ in range(24):
            one = float("1.5")
            results.append(given(x, one)[1] is one)
        return results

    same(f, X, repeated=False)


class Pair(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 4)
        if tied:
            self.down = self.up

    def forward(self, x):
        return self.down(long(torch.relu(self.up(x))))


def test_layers_that_use_one_module_twice_are_a_kind_of_their_own():
    model = nn.Sequential(*[Pair(tied=i >= 8) for i in range(16)])
    with events.recording(events.CaptureEnd) as ends:
        compiled = framejit.compile(model, backend="eager")
        torch.testing.assert_close(compiled(X), model(X))
    assert sum(dict(end.repeated).get("Pair", 0) for end in ends) >= 8
    model[3].down = model[3].up
    torch.testing.assert_close(compiled(X), model(X))


class Held:
    """Refers to nothing, and can be referred to weakly."""


class Holding(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = Held()

    def forward(self, x):
        return long(x) + 1


@pytest.mark.parametrize("recordings", [True, False])
def test_what_a_layer_holds_lives_as_long_as_a_variable_that_nobody_reads(recordings):
    def f(layers, x):
        for i, layer in enumerate(layers):
            x = layer(x)
            if i == 8:
                drop(layers, i)
        return x

    @framejit.disable
    def drop(layers, i):
        reference = weakref.ref(layers[i].held)
        layers[i] = None
        gc.collect()
        alive.append(reference() is not None)

    alive = []
    for run in (f, framejit.compile(f, backend="eager")):
        layers = [Holding() for _ in range(12)]
        with config.patch(recordings=recordings):
            run(layers, X)
    assert alive == [True, True]


def test_a_result_that_is_assumed_to_be_constant_is_asked_for_by_every_call():
    counted = []

    @framejit.assume_constant_result
    def number():
        counted.append(1)
        return len(counted)

    def layer(x):
        return long(x) + number()

    def f(x):
        return [layer(x) for _ in range(24)]

    got = framejit.compile(f, backend="eager")(X)
    assert len(counted) == 24
    torch.testing.assert_close(got, [X + 1 + i for i in range(24)])


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 1.5))
        self.register_buffer("shift", torch.full((4,), 0.5))

    def forward(self, x):
        return long(x) * self.weight + self.shift


def stride_of_two(tensor):
    return torch.stack([tensor, tensor], 1)[:, 0]


@pytest.mark.parametrize("name", ["weight", "shift"])
@pytest.mark.parametrize("other", [
    torch.Tensor.double, stride_of_two, lambda t: t[:1].clone(), lambda t: t[None].clone(),
    lambda t: t.clone().requires_grad_(),
])  # fmt: skip
def test_the_tensors_of_each_repetition_are_checked(name, other):
    model = nn.Sequential(*[Normed() for _ in range(24)]).requires_grad_(False)
    compiled = same(model, X)
    for layer in (1, 12, 23):
        guard = f"local 'self'[{layer}].{name} TENSOR_MATCH"
        assert str(framejit.guards(compiled)).count(guard) == len(framejit.guards(compiled))
        kept = getattr(model[layer], name)
        changed = other(kept)
        setattr(model[layer], name, nn.Parameter(changed, changed.requires_grad)
                if name == "weight" else changed)  # fmt: skip
        with events.recording(events.CaptureEnd) as ends:
            got, wanted = compiled(X), model(X)
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
        assert (got.dtype, got.requires_grad) == (wanted.dtype, wanted.requires_grad)
        assert len(ends) == 1
        setattr(model[layer], name, kept)
        with events.recording(events.CaptureEnd) as ends:
            compiled(X)
        assert not ends
