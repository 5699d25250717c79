"""Results that are conjugated or negated when somebody reads them, and their gradients."""

import pytest
import torch

import framejit
from framejit.report import events


def conjugated(x):
    return torch.complex(x, x * 2).conj()


def conjugated_twice(x):
    return torch.complex(x, x * 2).conj().conj()


def negated(x):
    return torch.complex(x, x * 2).conj().imag


def resolved(x):
    return torch.complex(x, x * 2).conj().resolve_conj()


def both(x):
    y = torch.complex(x, x * 2)
    return y.conj() * 2, y.conj(), y


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [conjugated, conjugated_twice, negated, resolved, both])
def test_gradients_are_eagers(program, backend):
    def step(run):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        results = run(x)
        results = results if isinstance(results, tuple) else (results,)
        loss = sum((r.abs() + r.real if r.is_complex() else r * r).sum() for r in results)
        loss.backward()
        flags = [(r.is_conj(), r.is_neg(), r.dtype) for r in results]
        return [r.detach().resolve_conj().resolve_neg() for r in results], x.grad, flags

    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    with events.recording(events.GraphCompiled) as graphs:
        got = step(compiled)
    expected = step(program)
    assert got[2] == expected[2] and len(graphs) == 1
    torch.testing.assert_close(got[:2], expected[:2])
