"""Backends beside Inductor on whole models; what a missing or a failing one says."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import framejit
from framejit.backends import doctor, list_backends
from framejit.backends import optional as optional_backends
from framejit.exc import BackendCompilerFailed, UnknownBackend
from small_models import bert, resnet18, tensors


def needs(name):
    known = optional_backends.OPTIONAL.get(name)
    absent = [m for m in (known.modules if known else ()) if not importlib.util.find_spec(m)]
    return pytest.param(name, marks=pytest.mark.skipif(bool(absent), reason=f"needs {absent}"))


@pytest.mark.parametrize("make", [bert, resnet18], ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    "backend",
    [
        "ts", "ofi", needs("onnxrt"), needs("openvino"), needs("tvm"),
        pytest.param("inductor", marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.timeout(300)
def test_models(backend, make):
    model, inputs = make()
    compiled = framejit.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        expected = model(**inputs)
        for _ in range(2):
            got = compiled(**inputs)
            torch.testing.assert_close(tensors(got), tensors(expected), atol=1e-3, rtol=1e-3)


def writes(x, y):
    y.add_(x)
    return y * 2, torch.relu(x)


def shares(x, y):
    return x.view(-1), x + y


@pytest.mark.parametrize("function", [writes, shares], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["ts", "ofi", needs("onnxrt"), needs("tvm")])
def test_memory_is_as_in_eager(backend, function):
    one, two = [[torch.randn(2, 3), torch.ones(2, 3)] for _ in range(2)]
    two = [x.clone() for x in one]
    with torch.no_grad():
        expected = function(*one)
        got = framejit.compile(function, backend=backend, fullgraph=True)(*two)
    torch.testing.assert_close((got, two), (expected, one))
    if function is shares:
        got[0].fill_(9)
        assert two[0].eq(9).all()


@pytest.mark.parametrize("backend", ["ts", "ofi"])
def test_training_with_torchscript(backend):
    def f(x, w):
        with torch.no_grad():
            scale = x.mean()
        return torch.relu(x @ w).mul(scale).sum(), (x + 1).add_(1)

    grads = []
    for run in (f, framejit.compile(f, backend=backend, fullgraph=True)):
        x, w = torch.arange(6.0).reshape(2, 3), torch.ones(3, 2, requires_grad=True)
        loss, other = run(x, w)
        loss.backward()
        grads.append((w.grad, other))
    torch.testing.assert_close(grads[1], grads[0])


def test_a_missing_package_is_one_line(monkeypatch):
    known = optional_backends.Optional(("no_such_package",), "pip install no-such-package", "x")
    monkeypatch.setitem(optional_backends.OPTIONAL, "faraway", known)
    with pytest.raises(UnknownBackend) as caught:
        framejit.compile(lambda x: x + 1, backend="faraway")
    text = str(caught.value)
    assert text == (
        "the backend 'faraway' needs no_such_package: pip install no-such-package [FJ0204]"
    )
    usable = list_backends()
    assert "faraway" not in usable and text.startswith(usable.missing["faraway"])
    assert not set(usable) & usable.missing.keys() and usable == sorted(usable)
    first, *others = str(usable).splitlines()
    assert first == ", ".join(usable) and usable.missing["faraway"] in others
    row = next(row for row in doctor() if row.name == "faraway")
    assert not row.available and "pip install" in row.detail


def test_doctor_lists_all():
    rows = {row.name: row for row in doctor()}
    assert {"eager", "aot_eager", "inductor", "ts", "ofi", "onnxrt", "openvino"} <= rows.keys()
    assert rows["inductor"].available and all(row.detail for row in rows.values())
    usable = {name for name, row in rows.items() if row.available}
    assert set(list_backends(None)) == usable


def failing(gm, inputs):
    raise ValueError("no such instruction")


def test_a_failing_backend_says_where_and_saves_the_graph():
    constant = torch.ones(3)

    def f(x, y):
        z = torch.nn.functional.gelu(x @ y)
        return z[:, :3] + constant, {"k": z.sum(dim=0, keepdim=True)}

    compiled = framejit.compile(f, backend=failing)
    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(torch.randn(2, 3), torch.randn(3, 4, requires_grad=True))
    text = str(caught.value)
    assert "no such instruction" in text and __file__ in text and "in f" in text
    assert isinstance(caught.value.__cause__, ValueError)
    path = re.search(r"to reproduce it: python (\S+)", text).group(1)
    source = Path(path).read_text().replace("'failing'", "'eager'")
    Path(path).write_text(source)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[-2:]
    assert first == second and "torch.Size([2, 3])" in first
