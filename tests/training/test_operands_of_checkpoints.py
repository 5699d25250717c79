"""Checkpoints whose operands begin, or cease, to require gradients before these are computed."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import CheckpointError, checkpoint

import framejit
from checking import CountingAround


def model():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 4)).double()
    made.register_parameter("factor", nn.Parameter(torch.ones(4, dtype=torch.double)))
    return made


def inside(net, x):
    y = checkpoint(net, x, use_reentrant=False)
    x.requires_grad_()
    return (y + x).sum(), x


def outside(net, x):
    return checkpoint(net, x, use_reentrant=False).sum(), x


def frozen(net, x):
    return checkpoint(net, x, use_reentrant=False).sum(), net[3].weight


def of_another_result(net, x):
    y = checkpoint(net, x, use_reentrant=False).sum()
    return (x * net.factor).sum(), x, y


def nothing_is_saved(net, x):
    return checkpoint(lambda x: x + net.factor, x, use_reentrant=False).sum(), x


def reentrant(net, x):
    return checkpoint(net, x * net.factor, use_reentrant=True).sum(), x


def kept(net, x):
    y = checkpoint(net, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    return y, x


def outcome(function, net, backend=None):
    compiled = function if backend is None else framejit.compile(function, backend=backend)
    x = torch.linspace(-1, 1, 12, dtype=torch.double).view(3, 4)
    torch.manual_seed(1)
    loss, changed, *_ = compiled(net, x)
    if function is not inside:
        changed.requires_grad_(not changed.requires_grad)
    try:
        loss.backward(retain_graph=True)
    except CheckpointError:
        first = "CheckpointError"
    else:
        first = ""
    found = [None if one.grad is None else one.grad.clone() for one in (x, *net.parameters())]
    if function is inside:
        return first, found
    changed.requires_grad_(not changed.requires_grad)  # as it was
    loss.backward()
    found += [one.grad for one in (x, *net.parameters())]
    return first, found


CASES = {
    inside: "CheckpointError", outside: "CheckpointError", frozen: "CheckpointError",
    of_another_result: "", nothing_is_saved: "", reentrant: "", kept: "CheckpointError",
}  # fmt: skip


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_what_is_differentiated_is_as_it_was(function, name):
    expected = outcome(function, model())
    backend = CountingAround(name)
    got = outcome(function, model(), backend)
    assert expected[0] == got[0] == CASES[function]
    for one, two in zip(expected[1], got[1], strict=True):
        assert (one is None) == (two is None)
        if one is not None and not expected[0]:
            torch.testing.assert_close(two, one, rtol=1e-10, atol=1e-10)
    assert len(backend.graphs) == (2 if function is inside else 1)


def test_arguments_are_let_go_of():
    import weakref

    net = model()
    compiled = framejit.compile(outside, backend="aot_eager", fullgraph=True)
    x = torch.ones(3, 4, dtype=torch.double)
    loss, _ = compiled(net, x)
    gone = weakref.ref(x)
    del x, _
    loss.backward()
    assert gone() is None and loss.requires_grad


def test_a_package_knows_them(tmp_path):
    path = tmp_path / "step.fjp"
    compiled = framejit.compile(outside, backend="aot_eager", fullgraph=True)
    compiled(model(), torch.ones(3, 4, dtype=torch.double))
    compiled.save_package(path)
    framejit.counters.clear()
    loaded = framejit.load_package(path, outside, backend="aot_eager", fullgraph=True)
    loss, x = loaded(model(), torch.ones(3, 4, dtype=torch.double))
    assert not framejit.counters["captures"]
    x.requires_grad_()
    with pytest.raises(CheckpointError):
        loss.backward()
