"""Guards beside watchers of dicts, which CPython has since 3.12; some releases need one."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.pythonapi, "PyDict_AddWatcher"), reason="this release has no watchers"
)

PROGRAM = """
import ctypes, sys
import torch, framejit
from framejit import config
from checking import CountingBackend

Callback = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
calls = []
callback = Callback(lambda *args: calls.append(None) or 0)


class Model:
    def __init__(self):
        self.factor = 2.0


model, factor = Model(), 3.0


def program(x):
    return x * model.factor + factor


def run(taken):
    global factor
    ids = []
    for _ in range(taken):
        try:
            ids.append(ctypes.pythonapi.PyDict_AddWatcher(callback))
        except RuntimeError:
            break
        ctypes.pythonapi.PyDict_Watch(ids[-1], ctypes.py_object(model.__dict__))
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    x = torch.ones(2)
    for step in range(60):
        if step % 10 == 3:
            model.factor += 1.0
        elif step % 10 == 6:
            factor += 1.0
        elif step % 10 == 8:
            model.__dict__ = dict(model.__dict__, factor=model.factor - 1.0)
        assert torch.equal(compiled(x), program(x)), step
    assert 1 <= len(backend.graphs) <= 40
    for id in ids:
        ctypes.pythonapi.PyDict_ClearWatcher(id)


run(int(sys.argv[1]))
print("watched" if calls else "alone")
"""


@pytest.mark.parametrize("taken", [0, 2, 8])
def test_guards_hold_whoever_watches(taken):
    """With all ids taken, guards are checked by value."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(taken)], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["watched" if taken else "alone"]
