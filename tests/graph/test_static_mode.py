"""Metadata of operations on fake tensors of static sizes: as torch's own FakeTensorMode and as real
tensors have it; and without importing what FakeTensorMode imports."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_map

from framejit.graph.observer import memory_of
from framejit.graph.static_mode import StaticMode

#: Calls of one operator with one type and layout.
SAMPLES = 40
LAYOUTS = ("", "transposed", "channels last")


@pytest.fixture(autouse=True)
def no_caches() -> Iterator[None]:
    yield
    FakeTensorMode.cache_clear()


def facts(value: Any, inputs: list[torch.Tensor]) -> Any:
    """What must be equal of a result, tensors in it included."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.strided:
        return value.shape, value.layout, value.dtype, value.device
    shares = [memory_of(value) == memory_of(other) for other in inputs]
    return (
        tuple(value.shape), value.stride(), value.storage_offset(), value.dtype, value.device,
        value.requires_grad, value.is_leaf, value._is_view(), value.is_inference(), shares,
        value._version, [value is other for other in inputs],
    )  # fmt: skip


def laid_out(value: torch.Tensor, layout: str) -> torch.Tensor:
    """A copy whose strides are those of the layout."""
    real = value.detach()
    if layout == "channels last" and real.dim() == 4:
        return real.contiguous(memory_format=torch.channels_last)
    if layout == "transposed" and real.dim() > 1:
        copy = torch.empty_strided(real.shape, real.mT.contiguous().mT.stride(), dtype=real.dtype)
        copy.data.copy_(real)
        return copy
    return real.clone() if value.is_contiguous() else real


def run(function: Any, sample: Any, layout: str, mode: FakeTensorMode | None) -> Any:
    """All facts about the results and the inputs after the call, or the exception."""
    inputs: list[torch.Tensor] = []

    def take(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        real = laid_out(value, layout)
        if mode is None:
            taken = real
        else:
            meta = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="meta")
            taken = FakeTensor(mode, meta, real.device)
        inputs.append(taken.requires_grad_(value.requires_grad))
        return taken

    arguments = tree_map(take, (sample.input, sample.args, sample.kwargs))
    torch.manual_seed(0)
    with mode if mode is not None else torch.enable_grad():
        try:
            result = function(arguments[0], *arguments[1], **arguments[2])
        except Exception as error:
            return error
    flat, spec = tree_flatten(result)
    return [facts(item, inputs) for item in [*flat, *inputs]], str(spec)


class Counting(StaticMode):
    """Counts what it handles itself."""

    own = 0

    def _answer(self, func: Any, args: Any, kwargs: Any) -> Any:
        result = super()._answer(func, args, kwargs)
        Counting.own += 1
        return result


def unusual(sample: Any) -> bool:
    tensors = [t for t in tree_flatten((sample.input, sample.args, sample.kwargs))[0]
               if isinstance(t, torch.Tensor)]  # fmt: skip
    return any(t.layout is not torch.strided or t.storage_offset() for t in tensors)


def sweep(operators: list[Any], dtypes: tuple[torch.dtype, ...]) -> tuple[list[str], int]:
    """The differences, in words, and how many calls the mode handled itself."""
    wrong: list[str] = []
    answered = 0
    for op, dtype, layout in itertools.product(operators, dtypes, LAYOUTS):
        if dtype not in op.supported_dtypes("cpu") or (layout and dtype is not torch.float32):
            continue
        grad = dtype.is_floating_point and op.supports_autograd
        given = op.sample_inputs("cpu", dtype, requires_grad=grad)
        for sample in itertools.islice(given, SAMPLES):
            if unusual(sample):
                continue
            before = Counting.own
            mine = run(op.op, sample, layout, Counting())
            if Counting.own == before:
                continue
            answered += 1
            fake = run(op.op, sample, layout, FakeTensorMode())
            if repr(mine) != repr(fake):  # real tensors decide
                real = run(op.op, sample, layout, None)
                if not agrees(mine, real) and not (raised(mine) and raised(fake)):
                    name = f"{op.name} {op.variant_test_name} {dtype} {layout}"
                    wrong.append(f"{name}\n  mine {mine!r}\n  fake {fake!r}\n  real {real!r}")
    return wrong, answered


def raised(result: Any) -> bool:
    return isinstance(result, Exception)


def agrees(mine: Any, real: Any) -> bool:
    if raised(mine) or raised(real):
        return raised(mine) and raised(real)
    return repr(mine) == repr(real)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(8))
def test_operators(part: int) -> None:
    """The default run compares the operators of test_propagation."""
    from torch.testing._internal.common_methods_invocations import op_db  # takes seconds

    dtypes = (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
    wrong, answered = sweep(op_db[part::8], dtypes)
    assert not wrong, "\n".join(wrong[:20])
    assert answered > 2000


PROGRAM = """
import sys, torch, framejit
F = torch.nn.functional
def arithmetic(a, b):
    x = a / (torch.abs(a) + 1)
    return torch.where(x > 0, x, -1.0) @ b.T, x.reshape(-1)[2:].sum(), torch.cat([a, b]).max()
def branch(a, b):
    if b.sum() < 0:
        b = b * -1
    return a.view(-1)[::2], b * torch.arange(b.shape[1]) + torch.tensor([1.0])
def attention(a, b):
    q = a.view(2, 2, 3, 2)
    return F.dropout(F.scaled_dot_product_attention(q, q, q), training=False), b.softmax(-1)
layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
image = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
)
words = torch.nn.Sequential(torch.nn.Embedding(5, 6), torch.nn.LayerNorm(6), torch.nn.Linear(6, 2))
x, picture = torch.randn(4, 6), torch.randn(2, 3, 8, 8)
for function, arguments in [
    (arithmetic, (x, x)), (branch, (x, x)), (branch, (x.detach()[1:3], x[:, 1:3])),
    (attention, (x, x)), (layer, (x.view(2, 2, 6),)), (layer.eval(), (x.view(2, 2, 6),)),
    (image, (picture,)), (image.eval(), (picture,)), (words, (torch.tensor([[1, 2], [3, 4]]),)),
]:
    torch.manual_seed(0)
    expected = function(*arguments)
    torch.manual_seed(0)
    result = framejit.compile(function, backend="eager")(*arguments)
    pairs = zip(result, expected) if type(result) is tuple else [(result, expected)]
    assert all(torch.equal(one, other) for one, other in pairs)
    slow = [name for name in ("sympy", "torch._dynamo", "torch._inductor") if name in sys.modules]
    assert not slow, (function, slow)
"""


def test_static_programs_import_neither_sympy_nor_dynamo() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], check=True)
