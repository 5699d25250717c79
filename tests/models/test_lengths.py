"""Sequence lengths and caches that grow: few compilations, results equal. Issue 6."""

import copy

import pytest
import torch

import framejit
from checking import CountingBackend
from small_models import SMALL, bert, llama, transformers_model

SHORT = (1, 2, 3, 5, 8, 13, 7)
MODELS = {"bert": bert, "llama": llama}


def tokens(length):
    return torch.randint(0, 90, (2, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("lengths", [SHORT, pytest.param(range(1, 129), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_sequence_lengths(name, lengths):
    model, inputs = MODELS[name]()
    backend = CountingBackend()
    compiled = framejit.compile(copy.deepcopy(model), backend=backend)
    with torch.no_grad():
        for length in lengths:
            inputs["input_ids"] = tokens(length)
            torch.testing.assert_close(compiled(**inputs)[0], model(**inputs)[0], rtol=0, atol=0)
    assert len(backend.graphs) == 2  # one token; any number of them


def decoder():
    """A decoder that returns its cache."""
    return transformers_model(
        "llama", "LlamaConfig", "LlamaForCausalLM", vocab_size=100, intermediate_size=64,
        num_key_value_heads=2, **SMALL,
    )  # fmt: skip


def decoded(model, steps):
    """The tokens of greedy decoding with a cache that grows by one each step."""
    out, current, cache = [], tokens(5), None
    with torch.no_grad():
        for _ in range(steps):
            result = model(input_ids=current, past_key_values=cache, use_cache=True)
            cache, current = result.past_key_values, result.logits[:, -1:].argmax(-1)
            out.append(current)
    return torch.cat(out, 1)


def test_a_decoding_loop_of_64_steps():
    model, backend = decoder(), CountingBackend()
    compiled = framejit.compile(copy.deepcopy(model), backend=backend)
    for _ in range(2):
        assert torch.equal(decoded(compiled, 64), decoded(model, 64))
        assert len(backend.graphs) == 3  # the prompt; the first token after it; all others


def test_generate():
    model, backend = decoder(), CountingBackend()
    compiled = framejit.compile(copy.deepcopy(model), backend=backend)
    options = {"max_new_tokens": 64, "do_sample": False, "pad_token_id": 0}
    for _ in range(2):
        prompt = tokens(5)
        assert torch.equal(compiled.generate(prompt, **options), model.generate(prompt, **options))
        assert len(backend.graphs) == 3
