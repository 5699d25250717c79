"""Programs with more kinds of classes of tensors: each does what plain Python does."""

import kinds
import pytest
import torch
from conforming import check_equal, shown
from torch import nn

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.report import events


def seen(value):
    """All that a program can see of a value."""
    if isinstance(value, dict):
        return [[key, seen(one)] for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(seen, value)]
    if isinstance(value, nn.Module):
        return [seen(value.state_dict()), [seen(one.grad) for one in value.parameters()]]
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            looks = [isinstance(value, nn.Parameter), value.is_leaf, value.stride()]
            return [shown(value), looks, shown(value.grad) if value.is_leaf else None]
    return type(value) if hasattr(value, "tensor") else value


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", kinds.PROGRAMS)
def test_programs_do_what_they_do_in_plain_python(name, backend):
    run, make, expected = kinds.PROGRAMS[name]
    counting, inner = CountingBackend(), lookup_backend(backend)
    compiled = framejit.compile(run, backend=lambda m, e: inner(counting(m, e), e))
    with events.recording(events.GraphBreak) as breaks:
        for _ in range(2):
            plain, given = make(), make()
            check_equal(seen(compiled(*given)), seen(run(*plain)))
            check_equal(seen(given), seen(plain))
    assert (len(counting.graphs), len(breaks)) == expected
