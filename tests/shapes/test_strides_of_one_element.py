"""No layout decides on the stride of a dimension of one element: PyTorch's rules for sizes that
vary find others than its operators, so a program that asks gets what the operator has made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import framejit
from checking import CountingBackend


def all_of_them(x: torch.Tensor) -> Any:
    y = x.transpose(1, 2)
    results = y + 1, y.relu(), y.double(), y.softmax(-1), torch.where(y > 0, y, 1.0), y.clone()
    return [result.stride() for result in results]


def one_of_them(x: torch.Tensor) -> Any:
    return (x.transpose(1, 2) + 1).stride(2)


def another(x: torch.Tensor) -> Any:
    y = x.transpose(1, 2) + 1
    return y.stride(-1), y.stride(dim=1), y.stride(-4), y.is_contiguous()


@pytest.mark.parametrize("program, graphs, ops", [
    (all_of_them, 4, 32), (one_of_them, 4, 8), (another, 4, 8),
])  # fmt: skip
def test_strides(program: Callable[..., Any], graphs: int, ops: int) -> None:
    counting = CountingBackend()
    compiled = framejit.compile(program, backend=counting, fullgraph=program is another)
    for sizes in ((2, 3, 4, 5), (3, 3, 4, 5), (3, 1, 4, 5), (4, 1, 4, 5), (4, 2, 4, 5)):
        x = torch.ones(sizes)
        assert compiled(x) == program(x), sizes
    assert (len(counting.graphs), counting.ops) == (graphs, ops)
