"""Steps that do more than most: what they compute, and what they leave behind, is eager's."""

import copy
import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

import framejit
from checking import CountingAround


def network(normed=False):
    norm = nn.BatchNorm1d(8) if normed else nn.Identity()
    return nn.Sequential(nn.Linear(4, 8), norm, nn.Tanh(), nn.Linear(8, 3)).double()


def trained(model, make=torch.optim.SGD, **options):
    return types.SimpleNamespace(
        model=model, optimizer=make(model.parameters(), lr=0.01, **options)
    )


def usual(one, x, y):
    one.optimizer.zero_grad()
    loss = F.cross_entropy(one.model(x), y)
    loss.backward()
    one.optimizer.step()
    return loss.detach()


def with_averages_of_lists():
    one = trained(network(), torch.optim.AdamW, foreach=True)
    one.average = copy.deepcopy(one.model).requires_grad_(False)
    slow, fast = list(one.average.parameters()), list(one.model.parameters())

    def step(x, y):
        loss = usual(one, x, y)
        with torch.no_grad():
            torch._foreach_mul_(slow, 0.9)
            torch._foreach_add_(slow, fast, alpha=0.1)
        return loss

    return one, step


def with_a_scaler():
    one = trained(network(), torch.optim.Adam)
    scaler = one.scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)

    def step(x, y):
        one.optimizer.zero_grad()
        loss = F.cross_entropy(one.model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(one.optimizer)
        norm = nn.utils.clip_grad_norm_(one.model.parameters(), 1.0)
        scaler.step(one.optimizer)
        scaler.update()
        return loss.detach(), norm, scaler.get_scale()

    return one, step


def that_freezes_a_layer():
    one = trained(network(), torch.optim.Adam)
    one.count = 0

    def step(x, y):
        one.count += 1
        if one.count in (3, 5):
            one.model[0].requires_grad_(one.count == 5)
        return usual(one, x, y), [p.grad is None for p in one.model.parameters()]

    return one, step


def that_adds_a_group():
    one = trained(network()[:1], torch.optim.AdamW)
    one.head, one.count = network()[3], 0

    def step(x, y):
        one.count += 1
        if one.count == 3:
            one.optimizer.add_param_group({"params": list(one.head.parameters()), "lr": 1e-3})
        one.optimizer.zero_grad()
        loss = F.cross_entropy(one.head(one.model(x).tanh()), y)
        loss.backward()
        one.optimizer.step()
        return loss.detach()

    return one, step


def that_swaps_a_layer():
    one = trained(network())
    one.count = 0

    def step(x, y):
        one.count += 1
        if one.count == 3:
            one.model[3] = nn.Linear(8, 3).double()
            one.optimizer = torch.optim.SGD(one.model.parameters(), lr=0.01)
        return usual(one, x, y)

    return one, step


def that_loads_its_state():
    one = trained(network(True), torch.optim.Adam, amsgrad=True)
    one.count = 0

    def step(x, y):
        one.count += 1
        if one.count == 2:
            one.saved = copy.deepcopy((one.model.state_dict(), one.optimizer.state_dict()))
        if one.count == 4:
            one.model.load_state_dict(one.saved[0])
            one.optimizer.load_state_dict(one.saved[1])
        return usual(one, x, y)

    return one, step


def that_is_tried_again():
    """The graph has written to the running statistics when it raises."""
    one = trained(network(True), momentum=0.9)
    one.count, one.errors = 0, []

    def step(x, y):
        one.count += 1
        try:
            return usual(one, x, y + 5 * (one.count == 3))
        except (IndexError, RuntimeError) as error:
            one.errors.append(type(error).__name__)
            return usual(one, x, y)

    return one, step


def with_spectral_norms():
    layers = (
        parametrizations.spectral_norm(nn.Linear(4, 8)),
        nn.utils.spectral_norm(nn.Linear(8, 3)),
    )
    one = trained(nn.Sequential(layers[0], nn.Tanh(), layers[1]).double(), torch.optim.Adam)
    return one, lambda x, y: usual(one, x, y)


def with_parameters_in_one_tensor():
    one = trained(network())
    one.flat = torch.cat([p.detach().reshape(-1) for p in one.model.parameters()])
    one.slopes = torch.zeros_like(one.flat)
    start = 0
    for p in one.model.parameters():
        p.data, p.grad = (t[start : start + p.numel()].view_as(p) for t in (one.flat, one.slopes))
        start += p.numel()

    def step(x, y):
        one.slopes.zero_()
        loss = F.cross_entropy(one.model(x), y)
        loss.backward()
        one.slopes.div_(one.slopes.norm().clamp(min=1))
        one.optimizer.step()
        return loss.detach(), one.flat.sum()

    return one, step


def with_an_ascent():
    one = trained(network())
    parameters = list(one.model.parameters())

    def step(x, y):
        loss = F.cross_entropy(one.model(x), y)
        loss.backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in parameters]).norm()
            steps = [p.grad * (0.05 / (norm + 1e-12)) for p in parameters]
            torch._foreach_add_(parameters, steps)
        one.optimizer.zero_grad()
        F.cross_entropy(one.model(x), y).backward()
        torch._foreach_sub_([p.data for p in parameters], steps)
        one.optimizer.step()
        one.optimizer.zero_grad()
        return loss.detach()

    return one, step


#: Each with how many graphs six steps are.
STEPS = {
    with_averages_of_lists: 2, with_a_scaler: 4, that_freezes_a_layer: 5, that_adds_a_group: 4,
    that_swaps_a_layer: 5, that_loads_its_state: 5, that_is_tried_again: 8, with_spectral_norms: 2,
    with_parameters_in_one_tensor: 1, with_an_ascent: 1,
}  # fmt: skip


def left(one):
    """All tensors and numbers that a step leaves behind."""
    found = dict(vars(one))
    for value in [*found.values()]:
        if isinstance(value, nn.Module):
            found |= {(id(value), k): t for k, t in value.state_dict(keep_vars=True).items()}
        elif isinstance(value, torch.optim.Optimizer):
            found |= {(k, n): v for k, s in enumerate(value.state.values()) for n, v in s.items()}
            found["groups"] = [{**group, "params": 0} for group in value.param_groups]
    return [one for one in found.values() if isinstance(one, (torch.Tensor, int, list))]


def compare(got, wanted, versions):
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        if not isinstance(one, torch.Tensor):
            assert one == other
            continue
        assert (one.stride(), one.requires_grad) == (other.stride(), other.requires_grad)
        assert not versions or one._version == other._version
        pairs = [(one, other), (one.grad, other.grad)] if one.is_leaf else [(one, other)]
        for pair in pairs:
            assert (pair[0] is None) == (pair[1] is None)
            if pair[0] is not None:
                torch.testing.assert_close(*pair, rtol=1e-9, atol=1e-9)
    memory = [[t.data_ptr() for t in some if isinstance(t, torch.Tensor)] for some in (got, wanted)]
    first = [[places.index(place) for place in places] for places in memory]
    assert first[0] == first[1]


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", STEPS, ids=lambda make: make.__name__)
def test_a_step(make, name):
    torch.manual_seed(0)
    plain, function = make()
    torch.manual_seed(0)
    one, step = make()
    backend = CountingAround(name)
    compiled = framejit.compile(step, backend=backend)
    for i in range(6):
        results = []
        for called in (function, compiled):
            torch.manual_seed(i)
            results.append(called(torch.randn(6, 4).double(), torch.randint(0, 3, (6,))))
        torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)
        compare(left(one), left(plain), versions=name == "eager")
    assert len(backend.graphs) == STEPS[make]
