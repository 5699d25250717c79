"""Sparse tensors and sparse gradients are breaks: compilers know dense memory only."""

import pytest
import torch
from torch.nn import functional

import framejit
from framejit.backends import repeatable

I = torch.tensor([[0, 2, 2]])
S = torch.eye(3).to_sparse()

#: By name: a program and in how many graphs it is captured.
PROGRAMS = {
    "csr": (lambda w: (w * 2).to_sparse_csr().to_dense() * 2, 2),
    "coo": (lambda w: (w * 2).to_sparse().to_dense() * 2, 2),
    "to_layout": (lambda w: (w * 2).detach().to_sparse(layout=torch.sparse_csc).values() * 2, 1),
    "bsr": (lambda w: (w * 2).detach().to_sparse_bsr((1, 1)).values() * 2, 1),
    "constructor": (
        lambda w: torch.sparse_coo_tensor(torch.cat([I, I]), w[0] * 2, (3, 3)).coalesce().values(),
        1,
    ),
    "product": (lambda w: torch.sparse.mm(S, w * 2) + 1, 2),
    "mask": (lambda w: (w * 2).sparse_mask(S).to_dense() + 1, 2),
    "layout": (lambda w: torch.zeros(3, 3, layout=torch.sparse_coo).to_dense() + w, 1),
    "embedding": (lambda w: functional.embedding(I, w, sparse=True) * 2, 1),
    "embedding_bag": (lambda w: functional.embedding_bag(I, w, sparse=True) * 2, 1),
    "gather": (lambda w: torch.gather(w, 0, I, sparse_grad=True) * 2, 1),
    "sparse_and_dense": (lambda w: functional.embedding(I, w, sparse=True).sum() + w.sum(), 1),
    "no_gradient": (lambda w: functional.embedding(I, w.detach() * 2, sparse=True) * 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sparse_tensors(name, backend):
    function, graphs = PROGRAMS[name]
    found = []
    for f in (function, framejit.compile(function, backend=backend)):
        w = torch.arange(1.0, 10).view(3, 3).requires_grad_()
        result = f(w)
        if result.requires_grad:
            result.sum().backward()
        found.append((result, w.grad))
    for expected, got in zip(*found, strict=True):
        assert (expected is None) == (got is None)
        if expected is not None:
            assert got.layout == expected.layout
            torch.testing.assert_close(got.to_dense(), expected.to_dense())
    explained = framejit.explain(function)(torch.ones(3, 3, requires_grad=True))
    assert explained.graph_count == graphs


class SparseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @framejit.disable
    def backward(ctx, gradient):
        return (gradient * 2).to_sparse()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    "function",
    [
        lambda w: functional.embedding(I, w * 2, sparse=True) * 2,
        lambda w: SparseGradient.apply(w * 3).sum(),
    ],
)
def test_sparse_gradients_of_results(function, backend):
    """What is made of a graph's result may give it a sparse gradient."""
    w, v = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3, requires_grad=True)
    function(w).sum().backward()
    framejit.compile(function, backend=backend)(v).sum().backward()
    torch.testing.assert_close(v.grad.to_dense(), w.grad.to_dense())


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradients_are_made_dense_once(backend, monkeypatch):
    calls = []

    def counted(*args, original=repeatable._with_dense_gradients):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(repeatable, "_with_dense_gradients", counted)
    x = torch.ones(3, requires_grad=True)
    framejit.compile(lambda x: (x * 2).sin(), backend=backend)(x).sum().backward()
    assert len(calls) == 1 and torch.allclose(x.grad, 2 * torch.cos(torch.tensor(2.0)))
