"""When objects end: what has a finalizer or a weak reference goes where it goes in plain Python."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import pytest
import torch

from checking import check

x = torch.tensor([1.0, -2.0])


class Box:
    def __init__(self, value=None):
        self.value = value


class Loud:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("end of", self.name)


def p01_reference_after_del(x):
    a = Box(x)
    r = weakref.ref(a)
    same = r() is a
    del a
    return x * 2, same, r() is None


def p02_callback(x):
    a = Box(x)
    r = weakref.ref(a, lambda _: print("gone"))  # noqa: F841 - it must live on
    y = x * 2
    a = None
    print("after")
    return y, a


def p03_popped(x, boxes):
    r = weakref.ref(boxes.pop())
    return x * 2, r() is None


def p04_weak_values(x):
    d = weakref.WeakValueDictionary()
    a = Box(x)
    d["a"] = a
    before = len(d)
    del a
    return x * 2, before, len(d)


def p05_weak_set(x):
    s = weakref.WeakSet()
    a = Box(x)
    s.add(a)
    before = len(s)
    a = None
    return x * 2, before, len(s), a


def p06_weak_keys(x):
    d = weakref.WeakKeyDictionary()
    a = Box(x)
    d[a] = x + 1
    y = d[a]
    del a
    return y, len(d)


def p07_finalize(x):
    a = Box(x)
    weakref.finalize(a, print, "finalized")
    y = x * 2
    del a
    print("z")
    return y


def p08_attribute(x, box):
    box.value = Box()
    r = weakref.ref(box.value)
    box.value = None
    return r() is None, x * 2


def p09_tensor(x):
    t = x * 2
    r = weakref.ref(t)
    del t
    return r() is None, x + 1


def p10_parent(x):
    y = x * 2
    if CHILD.value() is PARENT:
        y = y + 1
    return y


def p11_temporary_folder(x):
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    y = x * 2
    print("made")
    there = path.exists()
    print("looked")
    return y, there


def p12_held_to_the_end(x):
    keeper = Box(Loud("kept"))
    y = x * 2
    print("a")
    y = y + 1
    print("b")
    return y, keeper is None


def p13_overwritten(x):
    d = Loud("d")
    print("a")
    y = x * 2
    d = None
    print("b")
    return y, d


PARENT = Box()
CHILD = Box(weakref.ref(PARENT))


PROGRAMS = [
    (p01_reference_after_del, tuple, 1),
    (p02_callback, tuple, 1),
    (p03_popped, lambda: ([Box(), Box()],), 1),
    (p04_weak_values, tuple, 1),
    (p05_weak_set, tuple, 1),
    (p06_weak_keys, tuple, 1),
    (p07_finalize, tuple, 1),
    (p08_attribute, lambda: (Box(),), 1),
    (p09_tensor, tuple, 2),
    (p10_parent, tuple, 1),
    (p11_temporary_folder, tuple, 1),
    (p12_held_to_the_end, tuple, 2),
    (p13_overwritten, tuple, 1),
]


@pytest.mark.parametrize(("program", "arguments", "graphs"), PROGRAMS)
def test_program(program, arguments, graphs) -> None:
    check(program, x, *arguments(), graphs=graphs)


def p14_left_by_an_error(x, log):
    class Noted:
        def __init__(self, log):
            self.log = log

        def __del__(self):
            self.log.append("end")

    def fails():
        kept = Noted(log)
        raise ValueError(kept is None)

    try:
        fails()
    except ValueError:
        pass
    return x * 2, list(log)


def test_left_by_an_error() -> None:
    check(p14_left_by_an_error, x, [], graphs=1)


FIRST_SYMBOLS = """
import gc, torch, framejit

class Noted:
    def __del__(self):
        ends.append("gone")

def f(x, k):
    a = Noted()
    y = x + k
    ends.append("after")
    return y

gc.disable()
ends = []
graphs = []
def backend(module, examples):
    graphs.append(module)
    return module
compiled = framejit.compile(f, backend=backend, dynamic=True)
compiled(torch.ones(2), 3)
print(ends, len(graphs))
"""


def test_the_first_capture_with_symbols_keeps_nothing():
    """It imports much of torch, whose modules' frames are left in cycles, and behind them ours."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SYMBOLS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['after', 'gone'] 1\n"
