"""Attention with functions of the program for scores and masks is one node of the graph."""

import warnings

import pytest
import torch
from torch.nn.attention.flex_attention import (
    AuxRequest,
    create_block_mask,
    flex_attention,
)

import framejit
from checking import CountingBackend
from framejit.backends import lookup_backend

#: Inductor fuses nothing with what it compiles for CPUs, so nothing follows the attention.
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
BIAS = torch.tensor([0.5, -0.25])


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        warnings.filterwarnings("ignore", message=".*return_lse.*")
        yield


def causal(batch, head, query, key):
    return query >= key


def heads(*shape, gradients=False):
    torch.manual_seed(0)
    return [torch.randn(shape, requires_grad=gradients) for _ in range(3)]


class Counting(CountingBackend):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __call__(self, module, inputs):
        super().__call__(module, inputs)
        return lookup_backend(self.name)(module, inputs)


def graphs(function, *calls, backend="eager"):
    """How many graphs calls like eager's make, without a break."""
    counting = Counting(backend)
    compiled = framejit.compile(function, backend=counting, fullgraph=True)
    for args in calls:
        torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-4, atol=1e-4)
    targets = [node.target for graph in counting.graphs for node in graph.graph.nodes]
    assert targets.count(torch.ops.higher_order.flex_attention) == len(counting.graphs)
    return len(counting.graphs)


def with_scores(q, k, v):
    def score(score, batch, head, query, key):
        return score + BIAS[head] * (query - key)

    return flex_attention(q * 2, k, v, score_mod=score)


def with_statistics(q, k, v):
    out, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
    return out, aux.lse


@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_is_one_node(backend):
    assert graphs(with_scores, heads(1, 2, 128, 16), heads(1, 2, 128, 16), backend=backend) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_statistics_that_are_returned(backend):
    assert graphs(with_statistics, heads(1, 2, 128, 16), backend=backend) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_that_was_made_before(backend):
    mask = create_block_mask(causal, None, None, 128, 128, device="cpu")

    def masked(q, k, v):
        return flex_attention(q, k, v, block_mask=mask, scale=0.5)

    assert graphs(masked, heads(1, 2, 128, 16), backend=backend) == 1


def test_a_mask_by_documents():
    documents = torch.arange(128) // 40

    def same(batch, head, query, key):
        return (documents[query] == documents[key]) & (query >= key)

    mask = create_block_mask(same, None, None, 128, 128, device="cpu")

    def masked(q, k, v):
        return flex_attention(q, k, v, block_mask=mask)

    assert graphs(masked, heads(1, 2, 128, 16)) == 1


def test_fewer_heads_for_keys():
    def grouped(q, k):
        return flex_attention(q, k, k, enable_gqa=True)

    q, k, _ = heads(1, 4, 128, 16)
    assert graphs(grouped, (q, k[:, :2])) == 1


def test_sizes_that_vary():
    calls = [heads(1, 2, size, 16) for size in (128, 64, 96, 200)]
    assert graphs(with_scores, *calls) == 2


def test_an_error_is_that_of_plain_python():
    """torch has no gradients of it on CPUs."""
    compiled = framejit.compile(with_scores, backend="eager")
    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        compiled(*heads(1, 2, 128, 16, gradients=True))


def test_functions_with_effects_break_the_graph():
    seen = []

    def noting(score, *places):
        seen.append(1)
        return score

    def noted(q, k, v):
        return flex_attention(q, k, v, score_mod=noting)

    args = heads(1, 1, 128, 16)
    with pytest.raises(framejit.exc.Unsupported, match="the score_mod of flex_attention"):
        framejit.compile(noted, backend="eager", fullgraph=True)(*args)
