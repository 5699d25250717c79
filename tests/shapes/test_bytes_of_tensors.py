"""``nbytes`` of a tensor whose sizes vary follows from them."""

import torch

import framejit
from checking import CountingBackend


def measured(x):
    return x.nbytes, f"{x.nbytes // 2}", x[1:].nbytes + 1, x + x.nbytes


def test_bytes_of_sizes_that_vary():
    backend = CountingBackend()
    compiled = framejit.compile(measured, backend=backend)
    for x in (torch.ones(2, 3), torch.ones(3, 3), torch.ones(7, 3), torch.ones(4, 5).half()):
        with framejit.config.patch(raise_internal_errors=True):
            *numbers, result = compiled(x)
        *expected, expected_result = measured(x)
        assert numbers == expected and all(type(n) is type(e) for n, e in zip(numbers, expected))
        assert torch.equal(result, expected_result) and result.dtype == expected_result.dtype
    assert len(backend.graphs) == 3
