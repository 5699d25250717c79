"""Scalars of numpy vary like the Python numbers they hold, where eager mode takes them as such."""

import numpy as np
import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes
from framejit import config

SAME = {
    "operand": lambda x, p: (x * p, x + p, x - p, x / p, torch.add(x, p), x.clamp(max=p)),
    "of_ints": lambda x, p: (x.long() * p, x.long() + p, x.half() * p, x > p),
    "reflected": lambda x, p: (p * x, p - x),
    "converted": lambda x, p: (x * float(p), x * int(p), p.item(), int(p) + 1, float(p)),
    "text": lambda x, p: (x + 1, f"{p:.2f} {p} {p!r}", str(p), "%s %.1f" % (p, p)),
    "tensor": lambda x, p: (torch.tensor(p), torch.as_tensor(p), x.new_tensor(p), torch.full((2,), p)),  # noqa: E501
    "handed_on": lambda x, p: (x * 2, p, [p], {"k": p}),
    "size": lambda x, p: (x[: int(p)], x.new_zeros(int(p))),
}  # fmt: skip
FIXED = {
    "arithmetic": lambda x, p: (p + 1, p * p, -p, x * (p + 1)),
    "compared": lambda x, p: (x + 1 if p > 3 else x, p == 3, p > 0.1),
    "numpy": lambda x, p: (np.sqrt(p), np.array([p, 1]), x),
    "row": lambda x, p: (torch.tensor([p, 1]), torch.tensor([[p], [2.5]]), x),
    "attributes": lambda x, p: (p.dtype, p.shape, p.nbytes, type(p), isinstance(p, float), x),
    "key": lambda x, p: (x, {p: 1}, p in (3, 4), hash(p)),
    "truth": lambda x, p: (x if p else -x, bool(p), not p, p is None),
    "both": lambda x, p: (x * p, p + 1, f"{p}", x * p),
}
KINDS = [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8]


def captures(program, values):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    framejit.counters.clear()
    with config.patch(raise_internal_errors=True):
        for value in values:
            outcomes = [Outcome(f, (torch.arange(4.0), value), {}) for f in (program, compiled)]
            compare_outcomes(*outcomes)
            assert repr(outcomes[1].result) == repr(outcomes[0].result), value
    return framejit.counters["frames"]["total"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAME)
def test_varies(name, kind):
    assert captures(SAME[name], [kind(v) for v in (2, 3, 4, 7, 5)]) <= 3


@pytest.mark.parametrize("name", FIXED)
def test_what_needs_the_scalar_itself(name):
    for kind in (np.float64, np.int32):
        captures(FIXED[name], [kind(v) for v in (2, 3, 2, 4)])


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_a_scalar_made_here_beside_a_number_that_varies(kind):
    captures(lambda x, p: (x, kind(2) * p, p - kind(2), p < kind(2), kind(2) ** p), [2, 3, 4])
    captures(lambda x, p: (x, kind(2) + p, p / kind(2), kind(2) == p), [2.5, 3.5, 4.5])


def test_odd_scalars():
    values = [np.float64(v) for v in (1.5, 2.5, 0.0, -0.0, np.nan, np.inf, 1e300)]
    captures(lambda x, p: (x * p, f"{p}", p.item()), values)
    captures(lambda x, p: (x, p.item()), [np.complex64(2), np.complex64(3j)])
    captures(lambda x, p: (x + 1 if p else x, p.item()), [np.bool_(True), np.bool_(False)])
    captures(lambda x, p: (f"{p}", p.item(), x), [np.uint64(2**63 + v) for v in range(3)])
