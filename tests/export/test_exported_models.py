"""Whole models, exported, saved and loaded again: outputs are those of plain Python."""

import io

import pytest
import torch

import framejit
from small_models import BY_NAME, tensors

pytestmark = pytest.mark.timeout(900)

#: Those of the default suite, and those that AOTInductor compiles: g++ takes long.
SOME = ("bert", "t5", "resnet18")
AHEAD_OF_TIME = ("bert", "gpt2", "llama", "vit", "mobilenetv2")


def exported(name, **options):
    """The exported program, the inputs and what the model returns for them."""
    model, inputs = BY_NAME[name]()
    model.eval()
    with torch.no_grad():
        program = framejit.export(model, (), inputs, **options)
        return program, inputs, model(**inputs)


def equal(got, expected):
    assert type(got) is type(expected)
    torch.testing.assert_close(tensors(got), tensors(expected), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "name", [one if one in SOME else pytest.param(one, marks=pytest.mark.slow) for one in BY_NAME]
)
def test_a_loaded_program_computes_the_same(name):
    program, inputs, expected = exported(name)
    assert any(node.op == "call_function" for node in program.graph.nodes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    with torch.no_grad():
        equal(torch.export.load(file).module()(**inputs), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", AHEAD_OF_TIME)
def test_what_is_compiled_ahead_of_time_computes_the_same(tmp_path, name):
    path = tmp_path / "program.pt2"
    _, inputs, expected = exported(name, package=path)
    equal(torch._inductor.aoti_load_package(path)(**inputs), expected)
