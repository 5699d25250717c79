"""Results that are detached from views made in the graph, handed out beside these."""

import pytest
import torch

import framejit
from backends.agreement import Counted
from checking import Comparison

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


def transposed(x):
    v = (x * 3).t()
    return v.detach(), v


def after_it(x):
    v = (x * 3).mT
    return v, v.detach()


def part(x):
    v = (x * 3)[1:]
    return v.detach(), v


def through_data(x):
    v = (x * 3).t()
    return v.data, v


def inverse_root(x):
    """What libraries for Gaussian processes keep: a root to go on with, and one without history."""
    factor = torch.linalg.cholesky(x @ x.mT + torch.eye(len(x)))
    root = torch.linalg.solve_triangular(factor, torch.eye(len(x)), upper=False).mT
    return root.detach(), factor, root


def with_their_base(x):
    y = x * 3
    v = y.t()
    return y, v.detach(), v


def several(x):
    v = (x * 3).t()[1:]
    return v.detach(), v, v.detach()


PROGRAMS = [transposed, after_it, part, through_data, inverse_root, with_their_base, several]


def outcome(f, x):
    """The results, which of them share memory and what they require; gradients; and what one sees
    of a write to those without a history in the others."""
    results = f(x)
    shared = [a.untyped_storage()._cdata == b.untyped_storage()._cdata
              for a in results for b in results]  # fmt: skip
    required = [result.requires_grad for result in results]
    seen = [result.detach().clone() for result in results]
    wanted = [r for r in results if r.requires_grad]
    sum((r * r).sum() * (i + 1) for i, r in enumerate(wanted)).backward()
    for result in results:
        if not result.requires_grad:
            result[0] = 7
    strides = [result.stride() for result in results]
    return seen, shared, required, strides, [r.detach() for r in results], x.grad


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_a_detached_view_beside_the_view(f, backend):
    counted = Counted(backend)
    compiled = framejit.compile(f, backend=counted)
    for size in (3, 3, 4):
        values = torch.arange(1.0, size * size + 1).view(size, size) / size
        expected = outcome(f, values.clone().requires_grad_())
        got = outcome(compiled, values.clone().requires_grad_())
        Comparison().compare(expected, got, f.__name__)
    assert len(counted.graphs) == 2, "one for each size met, the second for all further ones"
    assert not framejit.counters["graph_break"]
    assert not framejit.counters["deoptimised"]
    assert not framejit.counters["graphs_refused"]
