"""Models of transformers and timm, small and random, with the inputs of one call.

Weights are random; nothing is downloaded. `MODELS` are those that most tests of whole models use,
`BY_NAME` are forty of different kinds: decoders are called without a cache.
"""

import importlib

import pytest
import torch

import torchvision_operators  # noqa: F401 - model libraries import

TOKENS = torch.arange(24).reshape(2, 12) % 90
PIXELS = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)
VOCABULARY = {"vocab_size": 100}
LABELS = {"input_ids": TOKENS, "labels": TOKENS.flip(1)}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


def transformers_model(module, config, model, **options):
    """A model of transformers with a small configuration."""
    pytest.importorskip("transformers")
    library = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
    settings = importlib.import_module(f"transformers.models.{module}.configuration_{module}")
    torch.manual_seed(0)
    return getattr(library, model)(getattr(settings, config)(**options)).eval()


def bert():
    return transformers_model(
        "bert", "BertConfig", "BertModel", vocab_size=100, intermediate_size=64, **SMALL
    ), {"input_ids": TOKENS}


def gpt2():
    return transformers_model(
        "gpt2", "GPT2Config", "GPT2LMHeadModel", vocab_size=100, n_embd=32, n_layer=2, n_head=4
    ), {"input_ids": TOKENS, "use_cache": False}


def llama():
    return transformers_model(
        "llama", "LlamaConfig", "LlamaForCausalLM", vocab_size=100, intermediate_size=64,
        num_key_value_heads=2, **SMALL,
    ), {"input_ids": TOKENS, "use_cache": False}  # fmt: skip


def t5():
    return transformers_model(
        "t5", "T5Config", "T5ForConditionalGeneration", vocab_size=100, d_model=32, d_ff=64,
        d_kv=8, num_layers=2, num_heads=4, decoder_start_token_id=0,
    ), {"input_ids": TOKENS, "decoder_input_ids": TOKENS[:, :5], "use_cache": False}  # fmt: skip


def vit():
    return transformers_model(
        "vit", "ViTConfig", "ViTModel", image_size=32, patch_size=8, intermediate_size=64, **SMALL
    ), {"pixel_values": PIXELS}


def resnet18():
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    return timm.create_model("resnet18", pretrained=False, num_classes=10).eval(), {"x": PIXELS}


def mixtral():
    return transformers_model(
        "mixtral", "MixtralConfig", "MixtralForCausalLM", intermediate_size=48,
        num_local_experts=4, num_key_value_heads=2, sliding_window=None, **VOCABULARY, **SMALL,
    ), {**LABELS, "use_cache": False}  # fmt: skip


def mamba():
    return transformers_model(
        "mamba", "MambaConfig", "MambaForCausalLM", hidden_size=32, num_hidden_layers=2,
        state_size=4, **VOCABULARY,
    ), {**LABELS, "use_cache": False}  # fmt: skip


def bart():
    return transformers_model(
        "bart", "BartConfig", "BartForConditionalGeneration", d_model=32, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
        decoder_ffn_dim=48, max_position_embeddings=32, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2, **VOCABULARY,
    ), {**LABELS, "use_cache": False}  # fmt: skip


def clip():
    part = {"intermediate_size": 48, **SMALL}
    text = {"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0, **part, **VOCABULARY}
    return transformers_model(
        "clip", "CLIPConfig", "CLIPModel", text_config=text,
        vision_config={"image_size": 32, "patch_size": 8, **part}, projection_dim=16,
    ), {"input_ids": TOKENS, "pixel_values": PIXELS, "return_loss": True}  # fmt: skip


def electra():
    return transformers_model(
        "electra", "ElectraConfig", "ElectraForMaskedLM", embedding_size=16, intermediate_size=48,
        **VOCABULARY, **SMALL,
    ), LABELS  # fmt: skip


def convnext():
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    return timm.create_model("convnext_atto", pretrained=False, num_classes=5), {"x": PIXELS}


TEXT = {"intermediate_size": 64, **VOCABULARY, **SMALL}
NO_CACHE = {"input_ids": TOKENS, "use_cache": False}
IMAGES = {"image_size": 32, "patch_size": 8, **SMALL}


def of_transformers(module, model, inputs=None, config=None, **options):
    """``model`` without its ending is what its configuration begins with, if not given."""

    def make():
        settings = f"{config or model.removesuffix('Model').removesuffix('ForCausalLM')}Config"
        given = {"input_ids": TOKENS} if inputs is None else inputs
        return transformers_model(module, settings, model, **options), given

    return make


def of_timm(name):
    def make():
        timm = pytest.importorskip("timm")
        torch.manual_seed(0)
        return timm.create_model(name, pretrained=False, num_classes=10).eval(), {"x": PIXELS}

    return make


MODELS = [bert, gpt2, llama, t5, vit, resnet18]
_MORE = (mixtral, mamba, bart, clip, electra, convnext)
BY_NAME = {
    **{make.__name__: make for make in (*MODELS, *_MORE)},
    "roberta": of_transformers("roberta", "RobertaModel", **TEXT),
    "camembert": of_transformers("camembert", "CamembertModel", **TEXT),
    "albert": of_transformers("albert", "AlbertModel", embedding_size=16, **TEXT),
    "mpnet": of_transformers("mpnet", "MPNetModel", **TEXT),
    "ernie": of_transformers("ernie", "ErnieModel", **TEXT),
    "rembert": of_transformers(
        "rembert", "RemBertModel", input_embedding_size=16, output_embedding_size=16, **TEXT
    ),
    "squeezebert": of_transformers("squeezebert", "SqueezeBertModel", embedding_size=32, **TEXT),
    "layoutlm": of_transformers("layoutlm", "LayoutLMModel", **TEXT),
    "distilbert": of_transformers(
        "distilbert", "DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=64, **VOCABULARY
    ),
    "opt": of_transformers(
        "opt", "OPTForCausalLM", NO_CACHE, ffn_dim=64, word_embed_proj_dim=32, **VOCABULARY, **SMALL
    ),
    "qwen2": of_transformers("qwen2", "Qwen2ForCausalLM", NO_CACHE, num_key_value_heads=2, **TEXT),
    "gpt_neox": of_transformers("gpt_neox", "GPTNeoXForCausalLM", NO_CACHE, **TEXT),
    "gptj": of_transformers(
        "gptj", "GPTJForCausalLM", NO_CACHE, n_embd=32, n_layer=2, n_head=4, rotary_dim=4,
        **VOCABULARY,
    ),
    "bloom": of_transformers(
        "bloom", "BloomForCausalLM", NO_CACHE, hidden_size=32, n_layer=2, n_head=4, **VOCABULARY
    ),
    "falcon": of_transformers("falcon", "FalconForCausalLM", NO_CACHE, **VOCABULARY, **SMALL),
    "phi": of_transformers("phi", "PhiForCausalLM", NO_CACHE, **TEXT),
    "gemma": of_transformers(
        "gemma", "GemmaForCausalLM", NO_CACHE, head_dim=8, num_key_value_heads=2, **TEXT
    ),
    "olmo": of_transformers("olmo", "OlmoForCausalLM", NO_CACHE, **TEXT),
    "stablelm": of_transformers(
        "stablelm", "StableLmForCausalLM", NO_CACHE, num_key_value_heads=2, **TEXT
    ),
    "ctrl": of_transformers(
        "ctrl", "CTRLLMHeadModel", NO_CACHE, config="CTRL", n_embd=32, dff=64, n_layer=2, n_head=4,
        **VOCABULARY,
    ),
    "deit": of_transformers("deit", "DeiTModel", {"pixel_values": PIXELS}, **IMAGES),
    "dinov2": of_transformers("dinov2", "Dinov2Model", {"pixel_values": PIXELS}, **IMAGES),
    "mobilenetv2": of_timm("mobilenetv2_035"),
    "mobilenetv3": of_timm("mobilenetv3_small_050"),
    "lcnet": of_timm("lcnet_050"),
    "tinynet": of_timm("tinynet_e"),
    "regnet": of_timm("regnetx_002"),
    "ghostnet": of_timm("ghostnet_050"),
}  # fmt: skip


def tensors(result):
    """The tensors of a result, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [t for part in result or () if part is not None for t in tensors(part)]
