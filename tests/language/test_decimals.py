"""Decimals: their context, and equal ones that differ."""

from __future__ import annotations

import decimal

import torch

import framejit
from checking import CountingBackend

X = torch.arange(3.0)


def texts_of_decimals(x):
    third = decimal.Decimal(1) / decimal.Decimal(3)
    return x + 1, str(third), f"{third:.2f}", str(decimal.Decimal("1e50") * 1)


def test_context_of_decimals() -> None:
    """The numbers depend on a context that may be another one at the next call."""
    backend = CountingBackend()
    compiled = framejit.compile(texts_of_decimals, backend=backend)
    for precision, rounding in ((28, decimal.ROUND_HALF_EVEN), (5, decimal.ROUND_UP)):
        with decimal.localcontext() as context:
            context.prec, context.rounding, context.capitals = precision, rounding, 0
            assert compiled(X)[1:] == texts_of_decimals(X)[1:]
    assert len(backend.graphs) == 2


def test_frozensets_of_equal_decimals_are_told_apart() -> None:
    def f(x, numbers):
        return x + 1, str(numbers)

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    for text in ("1.0", "1.00", "1.0"):
        numbers = frozenset([decimal.Decimal(text)])
        assert compiled(X, numbers)[1] == f(X, numbers)[1]
    assert len(backend.graphs) == 3 and backend.ops == 3
