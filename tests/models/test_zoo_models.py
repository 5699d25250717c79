"""Models of transformers and timm, small and random: one graph each, results and gradients equal.

Issue 2. Weights are random; nothing is downloaded.
"""

import copy

import pytest
import torch

import framejit
from checking import CountingBackend
from small_models import MODELS, TOKENS, bert, resnet18, tensors, transformers_model


def compare_inference(model, inputs, backend, tolerance):
    """Two calls without gradients: results are of the same class and equal."""
    compiled = framejit.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        expected = model(**inputs)
        for _ in range(2):
            got = compiled(**inputs)
            assert type(got) is type(expected)
            torch.testing.assert_close(
                tensors(got), tensors(expected), atol=tolerance, rtol=tolerance
            )


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_one_graph_and_equal_results(make):
    model, inputs = make()
    backend = CountingBackend()
    compare_inference(model, inputs, backend, 1e-4)
    assert len(backend.graphs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_explain_says_what_the_backend_saw(make):
    model, inputs = make()
    backend = CountingBackend()
    with torch.no_grad():
        explanation = framejit.explain(model, backend=backend)(**inputs)
    assert explanation.graph_count == len(backend.graphs)
    assert explanation.op_count == backend.ops and explanation.breaks == []
    assert 'class="captured"' in explanation._repr_html_()


def compare_training(model, inputs, backend, tolerance):
    """Two steps with and without compiling: losses, gradients and buffers are equal."""
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    twin = copy.deepcopy(model)
    compiled = framejit.compile(twin, backend=backend, fullgraph=True)
    for _ in range(2):
        for called, owner in ((model, model), (compiled, twin)):
            owner.zero_grad()
            sum(t.square().mean() for t in tensors(called(**inputs))).backward()
        for (name, one), two in zip(model.named_parameters(), twin.parameters(), strict=True):
            assert (one.grad is None) == (two.grad is None), name
            if one.grad is not None:
                torch.testing.assert_close(
                    two.grad, one.grad, atol=tolerance, rtol=1e-3, msg=lambda m: f"{name}: {m}"
                )
    for (name, one), two in zip(model.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(two, one, atol=tolerance, rtol=1e-3, msg=name)


@pytest.mark.parametrize("make", [bert, resnet18], ids=lambda make: make.__name__)
def test_training_gradients(make):
    model, inputs = make()
    backend = CountingBackend()
    compare_training(model, inputs, backend, 1e-4)
    assert len(backend.graphs) == 1


@pytest.mark.parametrize("training", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_inductor_on_a_tiny_bert(training):
    model = transformers_model(
        "bert", "BertConfig", "BertModel", vocab_size=100, hidden_size=16, intermediate_size=16,
        num_hidden_layers=1, num_attention_heads=2, attn_implementation="eager",
    )  # fmt: skip
    inputs = {"input_ids": TOKENS[:, :4]}
    if training:
        compare_training(model, inputs, "inductor", 1e-4)
        return
    compiled = framejit.compile(model, fullgraph=True)
    with torch.no_grad():
        expected = model(**inputs)
        torch.testing.assert_close(
            tensors(compiled(**inputs)), tensors(expected), atol=1e-4, rtol=1e-4
        )
