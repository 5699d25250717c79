"""Members that a captured program gives to a module: registered as in eager mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(2))


def buffer_is_registered(m, x):
    m.b = nn.Buffer(x * 2)
    return x + m.b


def buffer_not_saved(m, x):
    m.b = nn.Buffer(x * 2, persistent=False)
    return x + m.b


def parameter_is_assigned(m, x):
    m.p = nn.Parameter(x * 2)
    return x + m.p


def plain_tensor(m, x):
    m.t = x * 2
    return x + m.t


def buffer_from_outside(m, x):
    m.b = GIVEN
    return x + m.b


def buffer_replaces_buffer(m, x):
    m.seen = nn.Buffer(x + 1)
    return m.seen * x


def tensor_replaces_buffer(m, x):
    m.seen = x + 1
    return m.seen * x


def parameter_replaces_parameter(m, x):
    m.scale = nn.Parameter(x + 1)
    return m.scale * x


def tensor_over_parameter(m, x):
    try:
        m.scale = x + 1
    except TypeError as error:
        print(error)
    return m.scale * x


def what_is_a_parameter(m, x):
    kinds = [isinstance(t, (nn.Buffer, nn.Parameter)) for t in (x, GIVEN, m.seen, m.scale)]
    print(kinds, isinstance(GIVEN, nn.Buffer))
    return x + 1


GIVEN = nn.Buffer(torch.ones(2) * 7)
# Attributes of tensors are set between two graphs, in nn.Buffer() and nn.Parameter().
PROGRAMS = [
    (buffer_is_registered, 2, 2), (buffer_not_saved, 2, 2), (parameter_is_assigned, 2, 2),
    (plain_tensor, 1, 2), (buffer_from_outside, 1, 1), (buffer_replaces_buffer, 2, 2),
    (tensor_replaces_buffer, 1, 2), (parameter_replaces_parameter, 2, 2),
    (tensor_over_parameter, 2, 2), (what_is_a_parameter, 1, 1),
]  # fmt: skip


def members(module):
    return {
        "parameters": {k: v.detach().tolist() for k, v in module.named_parameters()},
        "buffers": {k: v.tolist() for k, v in module.named_buffers()},
        "saved": list(module.state_dict()),
        "kinds": {k: type(v) for k, v in vars(module).items()},
    }


@pytest.mark.parametrize(("program", "graphs", "ops"), PROGRAMS)
def test_members_of_a_module(program, graphs, ops, capsys) -> None:
    counting = CountingBackend()
    compiled = framejit.compile(program, backend=counting)
    for call in range(2):
        ours, theirs = Holder(), Holder()
        x = torch.arange(2.0) + call
        expected, printed = program(theirs, x), capsys.readouterr().out
        got = compiled(ours, x)
        assert torch.equal(got, expected) and got.requires_grad == expected.requires_grad
        assert members(ours) == members(theirs)
        assert capsys.readouterr().out == printed
    assert (len(counting.graphs), counting.ops) == (graphs, ops)


def test_plain_tensor_then_buffer() -> None:
    """The two have the same class: the flag is guarded."""

    def keep(m, t):
        m.kept = t
        return t + 1

    compiled = framejit.compile(keep, backend="eager")
    for tensor in (torch.ones(2), nn.Buffer(torch.ones(2)), torch.ones(2)):
        ours, theirs = Holder(), Holder()
        assert torch.equal(compiled(ours, tensor), keep(theirs, tensor))
        assert members(ours) == members(theirs)
