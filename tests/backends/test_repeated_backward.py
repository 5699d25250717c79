"""``backward(retain_graph=True)`` of graphs whose backward reuses what was saved for it."""

import sys

import pytest
import torch

import framejit
from framejit.backends import repeatable


def test_a_backward_from_a_warm_cache_can_be_repeated(tmp_path, monkeypatch):
    """Dynamic sizes: AOTAutograd writes the backward to its cache while it compiles the forward."""
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def f(x, w):  # nothing that Inductor needs the C++ compiler for
        return (x @ w @ w.t()).view(x.shape[0] * 4)

    x, w = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    ones = torch.ones(12)
    (expected,) = torch.autograd.grad(f(x, w), w, ones)
    for found in (0, 1):
        counters.clear()
        compiled = framejit.compile(f, backend="inductor", dynamic=True)
        result = compiled(x, w)
        assert counters["aot_autograd"]["autograd_cache_hit"] == found
        for keep in (True, False):
            (gradient,) = torch.autograd.grad(result, w, ones, retain_graph=keep)
            torch.testing.assert_close(gradient, expected)


def _saves(x, w):
    """The backward graph may write to what this saves: nobody else sees it."""
    h = torch.tanh(x @ w)
    g = torch.sin(h) * h
    return (g * g).sum()


def _gradients(loss, w, *keeps):
    return [torch.autograd.grad(loss, w, retain_graph=keep)[0] for keep in keeps]


@pytest.mark.parametrize("dynamic", [False, True])  # True: compiled together with the forward
def test_a_backward_that_reuses_saved_memory_can_be_repeated(dynamic, monkeypatch):
    made = []
    prepare = repeatable.RepeatableBackward.__init__

    def watched(self, compiler):
        prepare(self, compiler)
        made.append(self)

    monkeypatch.setattr(repeatable.RepeatableBackward, "__init__", watched)
    x, w = torch.randn(16, 16), torch.randn(16, 16, requires_grad=True)
    compiled = framejit.compile(_saves, backend="inductor", dynamic=dynamic)
    (expected,) = _gradients(_saves(x, w), w, False)
    for keeps in ((True, True, False), (False,), (False,), (True, False)):
        for gradient in _gradients(compiled(x, w), w, *keeps):
            torch.testing.assert_close(gradient, expected)
    (backward,) = made
    assert len(backward.donated) == 1  # x @ w
    with pytest.raises(RuntimeError, match="second time"):
        _gradients(compiled(x, w), w, False, False)


def test_code_that_reuses_memory_is_not_taken_for_code_that_must_not(tmp_path, monkeypatch):
    """Inductor's cache knows a backward graph by its operations, not by what it may write to."""
    inductor = sys.modules["framejit.backends.inductor"]  # the package has the backend by this name
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x, w = torch.randn(16, 16), torch.randn(16, 16, requires_grad=True)
    (expected,) = _gradients(_saves(x, w), w, False)
    _gradients(framejit.compile(_saves, backend="inductor")(x, w), w, False)
    settings = inductor.aot_settings
    monkeypatch.setattr(inductor, "aot_settings", lambda donate, **others: settings(**others))
    compiled = framejit.compile(_saves, backend="inductor")
    for gradient in _gradients(compiled(x, w), w, True, True, False):
        torch.testing.assert_close(gradient, expected)
