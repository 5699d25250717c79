"""Graphs that are split at operations: the backend gets the pieces, and nothing else changes."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import Tensor, nn

import framejit
from checking import CountingBackend
from framejit.backends.piecewise import Piecewise


@torch.library.custom_op("framejit_test::attend", mutates_args=["out"])
def attend(q: Tensor, k: Tensor, out: Tensor) -> None:
    out.copy_(q * k.sum())


@torch.library.custom_op("framejit_test::halves", mutates_args=[])
def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    return x / 2, -x / 2


@halves.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op("framejit_test::remember", mutates_args=["cache"])
def remember(x: Tensor, cache: Tensor) -> Tensor:
    cache.add_(x)
    return cache * 2


@remember.register_fake
def _(x, cache):
    return torch.empty_like(x)


def writes_to_what_is_made_for_it(x):
    q = x * 2
    out = torch.empty_like(q)
    attend(q, x + 1, out)
    return out.relu() + q


def has_several_results(x):
    first, second = halves(x + 1)
    return first * 3 - second


def names(backend):
    """The operations of each graph."""
    return [
        [str(n.target) for n in g.graph.nodes if n.op.startswith("call")] for g in backend.graphs
    ]


def split(function, at, backend="eager", inputs=(2, 3), **settings):
    """Call it, compare it with plain Python, and return the graphs that the backend got."""
    counting = CountingBackend(backend) if backend != "eager" else CountingBackend()
    compiled = framejit.compile(
        function, backend=framejit.piecewise(counting, at=at), fullgraph=True, **settings
    )
    with torch.no_grad():
        for size in inputs:
            for _ in range(2):
                x = torch.randn(size, 4)
                torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    return counting


@pytest.mark.parametrize(
    "at", [[attend], "framejit_test::attend", [torch.ops.framejit_test.attend],
           [torch.ops.framejit_test.attend.default]],
)  # fmt: skip
def test_an_operator_may_be_given_in_every_spelling(at):
    counting = split(writes_to_what_is_made_for_it, at, inputs=(2,))
    assert len(counting.graphs) == 2
    assert not any("attend" in name for graph in names(counting) for name in graph)


@pytest.mark.parametrize(
    ("function", "at", "pieces"),
    [
        (writes_to_what_is_made_for_it, [attend], 2),
        (has_several_results, [halves], 2),
        (lambda x: halves(x)[1], [halves], 0),
        (lambda x: torch.sin(torch.sin(x + 1) + 1), [torch.sin], 2),
        (lambda x: x + 1, [torch.sin], 1),
    ],
)
def test_pieces_lie_between_the_operations(function, at, pieces):
    counting = split(function, at, inputs=(3,))
    assert len(counting.graphs) == pieces


def test_sizes_vary():
    counting = split(writes_to_what_is_made_for_it, [attend], inputs=(2, 3, 5, 7), dynamic=True)
    assert len(counting.graphs) == 2


def test_blocks_with_other_settings_lie_in_one_piece():
    def function(x):
        with torch.autocast("cpu", enabled=False):
            y = x @ x.mT
        return torch.sin(y) + 1

    assert len(split(function, [torch.sin]).graphs) == 2 * 2

    def inside(x):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.sin(x @ x.mT) + 1

    with pytest.warns(framejit.exc.FramejitWarning, match=r"not split at .*sin.*FJ0232"):
        assert len(split(inside, [torch.sin], inputs=(2,)).graphs) == 1


def test_state_is_written_in_order():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(2, 4))

        def forward(self, x):
            self.cache.mul_(2)
            y = remember(x + 1, self.cache)
            self.cache.sub_(y)
            return self.cache + y

    model, other = Model(), Model()
    counting = CountingBackend()
    compiled = framejit.compile(model, backend=framejit.piecewise(counting, at=[remember]))
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(2, 4)
            assert torch.equal(compiled(x), other(x))
            assert torch.equal(model.cache, other.cache)
    assert len(counting.graphs) == 2


def test_what_is_trained_is_not_split():
    counting = CountingBackend()
    backend = framejit.piecewise(counting, at=[torch.sin])
    compiled = framejit.compile(lambda x: torch.sin(x * 2) + 1, backend=backend)
    x = torch.ones(3, requires_grad=True)
    with pytest.warns(framejit.exc.FramejitWarning, match="gradients are computed"):
        compiled(x).sum().backward()
    assert len(counting.graphs) == 1
    assert torch.equal(x.grad, 2 * torch.cos(torch.full((3,), 2.0)))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.timeout(600)
def test_backends_that_trace_get_pieces(backend):
    compiled = framejit.compile(
        writes_to_what_is_made_for_it, backend=framejit.piecewise(backend, at=[attend]),
        fullgraph=True,
    )  # fmt: skip
    with torch.no_grad():
        for size in (2, 3, 6):
            x = torch.randn(size, 4)
            torch.testing.assert_close(compiled(x), writes_to_what_is_made_for_it(x))


def test_equal_arguments_make_equal_backends():
    one, same = (framejit.piecewise("eager", at=[attend]) for _ in range(2))
    assert one == same and hash(one) == hash(same) and isinstance(one, Piecewise)
    assert one != framejit.piecewise("eager", at=[halves])


@pytest.mark.parametrize("at", [[], ["attend"], [3]])
def test_bad_arguments(at):
    with pytest.raises(TypeError, match="FJ0213"):
        framejit.piecewise("eager", at=at)


PROCESS = """
import sys, torch, framejit
from framejit.report import events
from torch import Tensor

@torch.library.custom_op("framejit_test::attend", mutates_args=["out"])
def attend(q: Tensor, k: Tensor, out: Tensor) -> None:
    out.copy_(q * k.sum())

def function(x):
    q = x * 2
    out = torch.empty_like(q)
    attend(q, x + 1, out)
    return out.relu() + q

path, backend, saves = sys.argv[1], sys.argv[2], sys.argv[3] == "save"
compiled = framejit.compile(function, backend=framejit.piecewise(backend, at=[attend]))
x = torch.arange(8.0).reshape(2, 4) - 4
if not saves:
    compiled.load_package(path)
with torch.no_grad(), events.recording(events.CaptureStart, events.BackendStart) as seen:
    torch.testing.assert_close(compiled(x), function(x))
assert bool(seen) is saves, seen
if saves:
    compiled.save_package(path)
"""


@pytest.mark.parametrize(
    "backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)]
)  # fmt: skip
@pytest.mark.timeout(600)
def test_packages_hold_the_pieces(tmp_path, backend):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROCESS))
    for way in ("save", "load"):
        command = [sys.executable, script, tmp_path / "pieces.package", backend, way]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
