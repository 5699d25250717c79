"""Whole models for packages: the programs of `test_models_second_process`, run like
`package_programs`."""

import sys

import package_programs
import torch

from small_models import MODELS, bert, resnet18, tensors


def inference(compiled, inputs):
    with torch.no_grad():
        return [t.clone() for _ in range(2) for t in tensors(compiled(**inputs))]


def training(compiled, inputs):
    """Two steps: outputs, gradients, buffers."""
    out = []
    for _ in range(2):
        compiled.zero_grad()
        results = tensors(compiled(**inputs))
        sum(t.square().mean() for t in results).backward()
        out += [t.detach() for t in results]
        out += [p.grad.clone() for p in compiled.parameters() if p.grad is not None]
    return out + [b.clone() for b in compiled.buffers()]


def batches(compiled, inputs):
    """Five sizes; one entry serves them all."""
    with torch.no_grad():
        for size in (2, 3, 4, 7, 9):
            inputs = {name: value[:1].repeat(size, 1) for name, value in inputs.items()}
            yield from tensors(compiled(**inputs))


def model(make, call, train=False):
    def program():
        made, inputs = make()
        if train:
            made.train()
            for module in made.modules():
                if isinstance(module, torch.nn.Dropout):
                    module.p = 0.0
        return made, (inputs,), call

    return program


PROGRAMS = {
    **{make.__name__: model(make, inference) for make in MODELS},
    "bert_training": model(bert, training, train=True),
    "resnet18_training": model(resnet18, training, train=True),
    "bert_batches": model(bert, lambda c, inputs: list(batches(c, inputs))),
}


if __name__ == "__main__":
    package_programs.PROGRAMS = PROGRAMS
    package_programs.TOLERANCE = 1e-3  # gradients of convolutions, two steps
    package_programs.main(*sys.argv[1:])
