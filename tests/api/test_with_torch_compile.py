"""`torch.compile` keeps working in the same process: before, after, inside and around framejit."""

import subprocess
import sys
import textwrap

import pytest
import torch

import framejit
from checking import CountingBackend

X = torch.randn(4, generator=torch.Generator().manual_seed(0))


class Peer:
    """A backend for torch.compile that counts."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, inputs):
        self.graphs += 1
        return gm.forward


@pytest.fixture
def ours():
    return CountingBackend()


@pytest.fixture
def peer():
    yield Peer()
    torch.compiler.reset()


def low(x):
    return x.sin() + 1


def high(x):
    y = low(x)
    print("", end="")
    return y * 2


def test_before_and_after(ours, peer):
    for _ in range(2):
        assert torch.equal(torch.compile(low, backend=peer)(X), low(X))
        assert torch.equal(framejit.compile(low, backend=ours)(X), low(X))
        torch.compiler.reset()
    assert peer.graphs == 2
    assert len(ours.graphs) == 2


def test_inside(ours, peer):
    """A function compiled by torch.compile is called from captured code: it stays theirs."""
    theirs = torch.compile(low, backend=peer)

    def f(x):
        return theirs(x + 1) * 2

    compiled = framejit.compile(f, backend=ours)
    for _ in range(3):
        assert torch.equal(compiled(X), low(X + 1) * 2)
    assert peer.graphs == 1
    assert ours.ops == 2


def test_inside_a_block(ours, peer):
    theirs = torch.compile(low, backend=peer)
    with framejit.optimize(ours):
        for _ in range(3):
            assert torch.equal(theirs(X), low(X))
            assert torch.equal(high(X), low(X) * 2)
    assert peer.graphs == 1
    framejit.reset()


def test_around(ours, peer):
    """torch.compile's code calls a function compiled by framejit."""
    mine = framejit.compile(low, backend=ours)

    def f(x):
        return mine(x + 1) * 2

    theirs = torch.compile(f, backend=peer)
    for _ in range(3):
        assert torch.equal(theirs(X), low(X + 1) * 2)
    assert torch.equal(mine(X), low(X))


def test_around_with_breaks(ours, peer):
    """Our break functions and continuations run where the peer's hook is active."""
    mine = framejit.compile(high, backend=ours)

    def f(x):
        return mine(x + 1) * 2

    theirs = torch.compile(f, backend=peer)
    for _ in range(3):
        assert torch.equal(theirs(X), low(X + 1) * 4)


def test_framejit_of_a_function_that_torch_compile_made(ours, peer):
    compiled = framejit.compile(torch.compile(high, backend=peer), backend=ours)
    assert torch.equal(compiled(X), high(X))


def test_torch_compile_of_a_compiled_module(ours, peer):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    both = torch.compile(framejit.compile(net, backend=ours), backend=peer)
    assert torch.equal(both(X), net(X))


def test_framejit_of_an_optimized_module(ours, peer):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    both = framejit.compile(torch.compile(net, backend=peer), backend=ours)
    for _ in range(2):
        assert torch.equal(both(X), net(X))


def test_the_hooks_of_both_nest(ours, peer):
    theirs = torch.compile(high, backend=peer)
    expected = low(X) * 2
    for _ in range(2):
        with framejit.optimize(ours):
            assert torch.equal(theirs(X), expected)
            assert torch.equal(high(X), expected)
        assert torch.equal(theirs(X), expected)
    framejit.reset()


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_and_compiling_loads_nothing_heavy():
    """What is not needed before the first graph is not loaded before it."""
    out = run_python("""
        import sys, torch
        before = set(sys.modules)
        import framejit
        f = framejit.compile(lambda x: x.sin() + 1)
        net = framejit.compile(torch.nn.Linear(2, 2), mode="default")
        heavy = ("torch._dynamo", "torch._inductor", "sympy", "rich", "torch.onnx", "functorch")
        print(sorted(m for m in set(sys.modules) - before if m.startswith(heavy)))
    """)
    assert out.splitlines() == ["[]"]


def test_an_unsupported_python_release_runs_everything_eagerly():
    out = run_python("""
        import sys, torch, warnings
        sys.modules["framejit.bytecode.release"] = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import framejit
            f = lambda x: x + 1
            assert framejit.compile(f) is f
            assert framejit.compile(f) is f
            with framejit.optimize("eager"):
                f(torch.ones(2))
        print([str(w.message)[:32] for w in caught if "framejit" in str(w.message)])
    """)
    assert out.splitlines() == ["['framejit does not support Python']"]
