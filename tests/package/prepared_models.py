"""Models that one process prepares without weights and another one runs.

``python prepared_models.py prepare DIRECTORY BACKEND NAME...``, then ``load``; each prints a JSON
line for each model.
"""

import json
import sys
import warnings
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

import framejit
from framejit.report import events
from small_models import BY_NAME, tensors

NAMES = (
    "bert", "gpt2", "llama", "t5", "vit", "resnet18", "roberta", "distilbert", "opt", "qwen2",
    "gpt_neox", "mobilenetv2",
)  # fmt: skip


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
        expected = tensors(model(**inputs))
        results = [tensors(compiled(**inputs)) for _ in range(2)]
    return all(len(got) == len(expected) and all(map(close, got, expected)) for got in results)


def main(mode, directory, backend, *names):
    warnings.simplefilter("error", framejit.exc.FramejitWarning)
    with framejit.config.patch(raise_internal_errors=True):
        for name in names or NAMES:
            path = Path(directory) / f"{name}.package"
            run = prepare if mode == "prepare" else load
            with events.recording(events.CaptureStart, events.GraphCompiled) as seen:
                right = run(BY_NAME[name], path, backend)
            captured = sum(isinstance(event, events.CaptureStart) for event in seen)
            row = {"name": name, "right": right, "captured": captured}
            print("\n#" + json.dumps(row | {"compiled": len(seen) - captured}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
