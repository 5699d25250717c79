"""Models that one process prepares without weights and another one runs.

``python prepared_models.py prepare DIRECTORY BACKEND NAME...``, then ``load``; each prints a JSON
line for each model.
"""

import importlib.util
import json
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "models"), str(Path(__file__).parent)]
if __name__ == "__main__":  # operators of torchvision are declared there
    spec = importlib.util.spec_from_file_location("conftest", TESTS / "conftest.py")
    sys.modules["conftest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["conftest"])

import test_zoo_models as zoo  # noqa: E402
import torch  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import framejit  # noqa: E402
from framejit.report import events  # noqa: E402

TEXT = {"vocab_size": 100, "intermediate_size": 64, **zoo.SMALL}


def of_transformers(module, config, model, inputs=None, **options):
    def make():
        given = {"input_ids": zoo.TOKENS} if inputs is None else inputs
        return zoo.transformers_model(module, config, model, **options), given

    return make


def of_timm(name):
    def make():
        import timm

        torch.manual_seed(0)
        return timm.create_model(name, pretrained=False, num_classes=10).eval(), {"x": zoo.PIXELS}

    return make


NO_CACHE = {"input_ids": zoo.TOKENS, "use_cache": False}
MODELS = {
    **{make.__name__: make for make in zoo.MODELS},
    "roberta": of_transformers("roberta", "RobertaConfig", "RobertaModel", **TEXT),
    "distilbert": of_transformers(
        "distilbert", "DistilBertConfig", "DistilBertModel", vocab_size=100, dim=32, n_layers=2,
        n_heads=4, hidden_dim=64,
    ),
    "opt": of_transformers(
        "opt", "OPTConfig", "OPTForCausalLM", NO_CACHE, vocab_size=100, ffn_dim=64,
        word_embed_proj_dim=32, **zoo.SMALL,
    ),
    "qwen2": of_transformers(
        "qwen2", "Qwen2Config", "Qwen2ForCausalLM", NO_CACHE, num_key_value_heads=2, **TEXT
    ),
    "gpt_neox": of_transformers(
        "gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", NO_CACHE, **TEXT
    ),
    "mobilenetv2": of_timm("mobilenetv2_035"),
}  # fmt: skip


def without_content(inputs):
    def on_meta(x):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")

    return pytree.tree_map_only(torch.Tensor, on_meta, inputs)


def close(one, two):
    return torch.allclose(one, two, atol=1e-4, rtol=1e-4)


def prepare(make, path, backend):
    model, inputs = make()
    compiled = framejit.compile(model.to("meta"), backend=backend, fullgraph=True)
    with torch.no_grad():
        compiled.prepare(**without_content(inputs))
    compiled.save_package(path)
    return True


def load(make, path, backend):
    model, inputs = make()
    compiled = framejit.compile(model, backend=backend, fullgraph=True).load_package(path)
    with torch.no_grad():
        expected = zoo.tensors(model(**inputs))
        results = [zoo.tensors(compiled(**inputs)) for _ in range(2)]
    return all(len(got) == len(expected) and all(map(close, got, expected)) for got in results)


def main(mode, directory, backend, *names):
    warnings.simplefilter("error", framejit.exc.FramejitWarning)
    with framejit.config.patch(raise_internal_errors=True):
        for name in names or MODELS:
            path = Path(directory) / f"{name}.package"
            run = prepare if mode == "prepare" else load
            with events.recording(events.CaptureStart, events.GraphCompiled) as seen:
                right = run(MODELS[name], path, backend)
            captured = sum(isinstance(event, events.CaptureStart) for event in seen)
            row = {"name": name, "right": right, "captured": captured}
            print("\n#" + json.dumps(row | {"compiled": len(seen) - captured}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
