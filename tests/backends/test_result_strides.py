"""Results of Inductor's graphs lie as in eager mode, whatever the trace says of single pictures."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from framejit.backends import inductor


class Attention(nn.Module):
    """Its convolution gets a picture that may be taken for one with channels last."""

    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 8)
        self.mix = nn.Linear(8, 8)
        self.enter = nn.Conv2d(3, 8, 3, padding=1)
        self.leave = nn.Conv2d(8, 3, 3, padding=1)

    def attended(self, x):
        count, channels, height, width = x.shape
        y = self.norm(x.flatten(2)).transpose(1, 2)
        y = self.mix(y)
        y = F.scaled_dot_product_attention(y, y, y)
        return y.transpose(-1, -2).reshape(count, channels, height, width) + x

    def forward(self, x):
        return self.leave(self.attended(self.enter(x)))


class Several(Attention):
    """Returns views, an input, a number and the same twice, too."""

    def forward(self, x):
        y = super().forward(x)
        z = y * 2
        return {"y": y, "z": [z, z, z[0]], "x": x, "view": x[:, 0], "mean": z.mean()}


def layouts(result):
    found = []
    torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: found.append((t.shape, t.stride())), result
    )
    return found


@pytest.fixture
def laid_out(monkeypatch):
    """The graphs whose results had to be laid out."""
    graphs, original = [], inductor.lay_out_results

    def noted(graph):
        graphs.append(graph)
        original(graph)

    monkeypatch.setattr(inductor, "lay_out_results", noted)
    return graphs


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))


def gradients(model, result, x):
    first = result["y"] if isinstance(result, dict) else result
    first.square().mean().backward()
    return [x.grad, *[parameter.grad for parameter in model.parameters()]]


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("cls", [Attention, Several])
@pytest.mark.parametrize("count", [1, 2])
def test_results_lie_as_in_eager_mode(cls, count, train, laid_out):
    torch.manual_seed(0)
    model = cls()
    pictures = torch.randn(count, 3, 16, 16)
    found = []
    for call in (model, framejit.compile(model, backend="inductor", fullgraph=True)):
        x = pictures.clone().requires_grad_(train)
        model.zero_grad()
        with torch.set_grad_enabled(train):
            result = call(x)
        found.append((result, layouts(result), gradients(model, result, x) if train else []))
        if isinstance(result, dict):
            first, second, _ = result["z"]
            assert first is second and result["x"] is x
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)
    assert found[1][1] == found[0][1]
    assert len(laid_out) == (1 if count == 1 else 0)


def test_a_graph_from_the_cache(laid_out):
    """torch.compile leaves a graph there whose result lies otherwise; framejit leaves two."""
    torch.manual_seed(0)
    model, x = Attention(), torch.randn(1, 3, 16, 16)
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model)(x)
        for _ in range(2):
            result = framejit.compile(model, backend="inductor")(x)
            assert result.stride() == model(x).stride()
            result.view(-1)
            framejit.reset()


def test_what_lies_as_it_should_is_not_copied(laid_out):
    def several(x):
        y = x.transpose(0, 1).contiguous().transpose(0, 1) * 2
        return y, y.t(), x, x[0], y.sum(), torch.arange(3), y.to(torch.complex64), x.new_empty(0)

    x = torch.randn(3, 4)
    result = framejit.compile(several, backend="inductor")(x)
    assert layouts(result) == layouts(several(x)) and not laid_out
