"""Each entry of `framejit.torchcompat` is what it says, in the torch that is installed.

A test that fails here says what has moved in torch, before a hundred others fail for it.
"""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode, in_kernel_invocation_manager

import framejit
from framejit.graph.shape_functions import shape_function
from framejit.graph.static_mode import StaticMode
from framejit.torchcompat import (
    fake_modes,
    frame_names,
    function_apply,
    jit_tracing,
    meta_kernels,
    opaque_classes,
)
from framejit.values.core.registry import LOOKASIDES

OPS = torch.ops.aten


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Inherits(Double):
    pass


class Calls(Double):
    @classmethod
    def apply(cls, x):
        return super().apply(x) + 1


@pytest.mark.parametrize(
    "function", [Double, Inherits, Calls, Double()], ids=["class", "inherits", "calls", "object"]
)
def test_apply_is_what_every_function_inherits(function):
    assert any(vars(cls).get("apply") is not None for cls in torch.autograd.Function.__mro__)
    assert function_apply.APPLY in LOOKASIDES
    x = torch.ones(2, requires_grad=True)
    compiled = framejit.compile(lambda x: function.apply(x), backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), function.apply(x))
    compiled(x).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 2.0))


def test_every_question_about_tracing_changes_its_answer_under_a_trace():
    asked = {}

    def look(x):
        asked.update({question: question() for question in jit_tracing.QUESTIONS})
        asked["is_tracing"] = jit_tracing.is_tracing()
        return x

    look(None)
    assert asked.pop("is_tracing") is False
    assert asked == jit_tracing.QUESTIONS
    torch.jit.trace(look, torch.ones(2), check_trace=False)
    assert asked["is_tracing"] is True
    assert all(asked[question] for question in jit_tracing.QUESTIONS)


def test_modules_are_called_without_a_question_that_is_not_known():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    compiled = framejit.compile(module, backend="eager", fullgraph=True)
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), module(x))


def test_renamers_change_nothing_but_names():
    for rename in frame_names.RENAMERS:

        def function():
            return 7

        rename(function, "another")
        assert function.__code__.co_name == "another" and function() == 7


def test_a_decorator_that_a_context_manager_makes_is_captured():
    def program(x):
        @torch.no_grad()
        def inner(y):
            return y * 2

        return inner(x)

    x = torch.ones(2, requires_grad=True)
    got = framejit.compile(program, backend="eager", fullgraph=True)(x)
    assert torch.equal(got, x * 2) and not got.requires_grad


def with_cpp_kernels():
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::").partition(".")
        if name.startswith("aten::") and hasattr(OPS, base):
            function = getattr(getattr(OPS, base), overload or "default", None)
            if function is not None and meta_kernels.has_cpp_kernel(function):
                yield function


def test_kernels_for_meta_tensors_are_where_they_are_looked_for():
    found = set(with_cpp_kernels())
    assert {OPS.empty.memory_format, OPS.upsample_bilinear2d_backward.default} <= found
    assert not meta_kernels.is_left_to_cpp(OPS.native_layer_norm.default)


CALLS = {
    "stack": lambda x: OPS.stack([x, x], 1),
    "arange": lambda x: OPS.arange(3, device="meta"),
    "hardshrink_backward": lambda x: OPS.hardshrink_backward(x, x, 0.5),
    "copy": lambda x: OPS.copy(x, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_kernels_are_called_by_their_key(name):
    """A fake tensor of the CPU has its dispatch keys: the CPU's kernel would read no memory."""
    with (mode := StaticMode()):
        fake = torch.empty(2, 3)
        got = CALLS[name](fake) if name != "arange" else OPS.arange(3)
    wanted = CALLS[name](torch.empty(2, 3, device="meta"))
    assert got.shape == wanted.shape and got.stride() == wanted.stride()
    with in_kernel_invocation_manager(mode):
        plain = OPS.alias.default(fake)
    assert type(plain) is torch.Tensor and plain.is_meta
    if name == "stack":
        assert shape_function(OPS.stack.default)([plain, plain]).shape == (2, 2, 3)


def test_a_mode_has_the_attributes_of_a_whole_one():
    whole, ours = FakeTensorMode(allow_non_fake_inputs=False), StaticMode()
    assert vars(ours).keys() | fake_modes.LATE >= vars(whole).keys()
    differing = {
        name for name, value in vars(ours).items()
        if name in vars(whole) and type(value) is not type(vars(whole)[name])
    }  # fmt: skip
    assert differing == set()


def test_a_mode_begins_without_the_compiler_of_torch():
    program = (
        "import sys, torch; from framejit.graph.static_mode import StaticMode; StaticMode();"
        "assert 'torch._dynamo' not in sys.modules and 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)


def test_nothing_is_logged_where_classes_are_asked_whether_they_are_opaque(caplog):
    from torch.distributed.tensor import Replicate  # late: takes a second

    assert opaque_classes.is_constant(Replicate) and not opaque_classes.is_reference(Replicate)
    assert not opaque_classes.is_reference(int)
    assert not caplog.records
