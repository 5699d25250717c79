"""When objects end: what has a finalizer or a weak reference goes where it goes in plain Python."""

from __future__ import annotations

import collections
import contextlib
import gc
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check
from framejit.bytecode.decode import decode
from framejit.interpreter import forced

x = torch.tensor([1.0, -2.0])


class Box:
    def __init__(self, value=None):
        self.value = value


class Loud:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("end of", self.name)


def reference_after_del(x):
    a = Box(x)
    r = weakref.ref(a)
    same = r() is a
    del a
    return x * 2, same, r() is None


def callback_of_a_weak_reference(x):
    a = Box(x)
    r = weakref.ref(a, lambda _: print("gone"))  # noqa: F841 - it must live on
    y = x * 2
    a = None
    print("after")
    return y, a


def popped_from_a_list(x, boxes):
    r = weakref.ref(boxes.pop())
    return x * 2, r() is None


def weak_values(x):
    d = weakref.WeakValueDictionary()
    a = Box(x)
    d["a"] = a
    before = len(d)
    del a
    return x * 2, before, len(d)


def weak_set(x):
    s = weakref.WeakSet()
    a = Box(x)
    s.add(a)
    before = len(s)
    a = None
    return x * 2, before, len(s), a


def weak_keys(x):
    d = weakref.WeakKeyDictionary()
    a = Box(x)
    d[a] = x + 1
    y = d[a]
    del a
    return y, len(d)


def finalizers(x):
    a = Box(x)
    weakref.finalize(a, print, "finalized")
    y = x * 2
    del a
    print("z")
    return y


def attribute_is_replaced(x, box):
    box.value = Box()
    r = weakref.ref(box.value)
    box.value = None
    return r() is None, x * 2


def weak_reference_of_a_tensor(x):
    t = x * 2
    r = weakref.ref(t)
    del t
    return r() is None, x + 1


def weak_reference_to_a_parent(x):
    y = x * 2
    if CHILD.value() is PARENT:
        y = y + 1
    return y


def temporary_folder(x):
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name)
    y = x * 2
    print("made")
    there = path.exists()
    print("looked")
    return y, there


def held_to_the_end(x):
    keeper = Box(Loud("kept"))
    y = x * 2
    print("a")
    y = y + 1
    print("b")
    return y, keeper is None


def variable_is_overwritten(x):
    d = Loud("d")
    print("a")
    y = x * 2
    d = None
    print("b")
    return y, d


def results_of_comprehensions(x):
    a, b, c = Box(), Box(), Box()
    references = [weakref.ref(a), weakref.ref(b), weakref.ref(c)]
    one = [box for box in [a] if x.sum() < 0]
    two = {box for box in [b] if x.sum() < 0}
    three = {box: 1 for box in [c] if x.sum() < 0}
    counts = len(one), len(two), len(three)
    del a, b, c, one, two, three
    return x * 2, counts, [r() is None for r in references]


def deleted_in_a_handler(x):
    u = Loud("u")
    try:
        raise ValueError(u.name)
    except ValueError as error:
        del u
        print(error)
    print("behind")
    return x * 2


def rebound_in_a_handler_of_c_code(x):
    u = Loud("u")
    try:
        int("x")
    except ValueError:
        u = None
        print("handled")
    print("behind")
    return x * 2, u


def rebound_in_finally(x):
    try:
        u = Loud("u")
        try:
            raise KeyError("k")
        finally:
            u = None
            print("finally")
    except KeyError:
        print("except")
    return x * 2, u


def handled_in_a_callee(x):
    def inner(u):
        try:
            raise KeyError(1)
        except KeyError:
            del u
            print("handled")

    inner(Loud("u"))
    print("behind")
    return x * 2


def popped_and_dropped(x):
    boxes = [Loud(str(i)) for i in range(3)]
    y = x * 2
    boxes.pop()
    print("popped")
    del boxes[0]
    print("deleted")
    boxes.clear()
    print("cleared")
    return y


def pushed_out_of_a_deque(x):
    last = collections.deque([Loud(str(i)) for i in range(3)], maxlen=3)
    last.append(1)
    print("pushed")
    last.popleft()
    print("popped")
    return x * 2


def tensor_in_a_weak_dict(x):
    t = x * 2
    d = weakref.WeakValueDictionary()
    d["t"] = t
    before = len(d)
    del t
    return x + 1, before, len(d)


def tensor_as_weak_key(x):
    t = x * 2
    d = weakref.WeakKeyDictionary()
    d[t] = 1
    print("break")
    del t
    return x + 1, len(d)


def context_is_cut(x):
    try:
        try:
            raise ValueError(Loud("inner"))
        except ValueError as error:
            raise KeyError("k") from error
    except KeyError as outer:
        outer.__cause__ = None
        outer.__context__ = None
        print("cut")
    return x * 2


def weak_method(x):
    a = Box(x)
    method = weakref.WeakMethod(Named.name.__get__(a))
    before = method() is None
    a = None
    return x * 2, before, method() is None, a


def variable_that_nothing_reads(x):
    boxes = [Box()]
    watch(boxes)
    y = x + 1
    return y, is_gone()


def moved_to_another_container(x):
    owners = {"k": Box()}
    watch(list(owners.values()))
    y = x * 2
    return y, is_gone()


def dropped_in_a_callee(x):
    def inner():
        boxes = [Box()]
        watch(boxes)
        return is_gone()

    return x + 1, inner(), x + 2


def tensor_that_nothing_reads(x):
    t = x * 2
    watch([t])
    y = x + 1
    return y, is_gone()


class Named:
    def name(self):
        return "named"


WATCHED = []


@framejit.disable
def watch(items):
    WATCHED.append(weakref.ref(items[0]))


def held_by_iterators(x):
    pairs = zip([1, 2], [Loud("u"), Loud("v")])
    for i, u in pairs:
        u = None
        print("after", i, u)
    return x * 2


@framejit.disable
def is_gone():
    return WATCHED.pop()() is None


PARENT = Box()
CHILD = Box(weakref.ref(PARENT))


PROGRAMS = [
    (reference_after_del, tuple, 1),
    (callback_of_a_weak_reference, tuple, 1),
    (popped_from_a_list, lambda: ([Box(), Box()],), 1),
    (weak_values, tuple, 1),
    (weak_set, tuple, 1),
    (weak_keys, tuple, 1),
    (finalizers, tuple, 1),
    (attribute_is_replaced, lambda: (Box(),), 1),
    (weak_reference_of_a_tensor, tuple, 2),
    (weak_reference_to_a_parent, tuple, 1),
    (temporary_folder, tuple, 1),
    (held_to_the_end, tuple, 2),
    (variable_is_overwritten, tuple, 1),
    (results_of_comprehensions, tuple, 4),
    (deleted_in_a_handler, tuple, 1),
    (rebound_in_a_handler_of_c_code, tuple, 1),
    (rebound_in_finally, tuple, 1),
    (popped_and_dropped, tuple, 1),
    (pushed_out_of_a_deque, tuple, 1),
    (tensor_in_a_weak_dict, tuple, 2),
    (tensor_as_weak_key, tuple, 2),
    (context_is_cut, tuple, 1),
    (weak_method, tuple, 1),
    (variable_that_nothing_reads, tuple, 1),
    (moved_to_another_container, tuple, 1),
    (dropped_in_a_callee, tuple, 2),
    (tensor_that_nothing_reads, tuple, 2),
    (held_by_iterators, tuple, 1),
]


@pytest.mark.parametrize(("program", "arguments", "graphs"), PROGRAMS)
def test_program(program, arguments, graphs) -> None:
    check(program, x, *arguments(), graphs=graphs)


def frame_left_by_an_error(x, log):
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
    check(frame_left_by_an_error, x, [], graphs=1, ops=1)


def variable_of_plain_python(x, k):
    u = Loud("u")
    print("break")
    x = x + k
    u = None
    print("after")
    return x, u


def test_variable_of_plain_python() -> None:
    """A continuation that is not compiled any more lets go of what it is given."""
    with framejit.config.patch(recompile_limit=1):
        check(variable_of_plain_python, x, 0.1, graphs=1, ops=1)
        compiled = framejit.compile(variable_of_plain_python, backend=CountingBackend())
        compiled(x, 0.1)
        with pytest.warns(framejit.exc.FramejitWarning):
            compared = Outcome(compiled, (x, 0.2), {})
    assert compared.printed == "break\nend of u\nafter\n"


@pytest.mark.parametrize("broken", [False, True])
def test_arguments_of_a_call_at_a_break(broken) -> None:
    """What is called has them alone, also before a break.

    The expected text is written down: once torch has failed to trace a function given to one of its
    higher-order operators, its frame hook may stay, and under a hook plain Python holds arguments
    until a call returns.
    """
    code = handled_in_a_callee.__code__
    found = [i.index for i in decode(code).instructions if i.op == "CALL"]
    backend = CountingBackend()
    with forced.forced_break(code, found[1]) if broken else contextlib.nullcontext():
        compiled = framejit.compile(handled_in_a_callee, backend=backend)
        for _ in range(2):
            got = Outcome(compiled, (x,), {})
            assert got.error is None and torch.equal(got.result, x * 2)
            assert got.printed == "end of u\nhandled\nbehind\n"
    assert len(backend.graphs) == 1


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
    """It imports much of torch, whose modules' frames are left in cycles, and with them ours."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_SYMBOLS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['after', 'gone'] 1\n"


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        ALL.add(self)

    def forward(self, x):
        return x + 1


ALL: weakref.WeakSet = weakref.WeakSet()


def layer_used_once(x):
    y = Layer()(x)
    return y, len(ALL)


def layer_taken_out(x):
    net = torch.nn.Sequential(Layer(), Layer())
    del net[-1]
    left = len(ALL)
    return net(x), left


def layer_that_lives_to_the_end(x):
    layer = Layer()
    seen = weakref.ref(layer)
    y = layer(x)
    print("called")
    return y, seen() is None, len(ALL)


def layer_inside_another(x):
    net = torch.nn.Sequential(Layer(), Layer())
    y = net(x)
    del net
    return y, len(ALL)


def layer_is_rebound(x):
    d = weakref.WeakKeyDictionary()
    layer = torch.nn.ReLU()
    d[layer] = 1
    y = layer(x)
    before = len(d)
    layer = torch.nn.Tanh()
    return layer(y), before, len(d)


def layer_as_attribute_of_an_object(x):
    box = Box(Layer())
    y = box.value(x)
    box.value = None
    return y, len(ALL)


def layers_popped_in_a_loop(x):
    layers = [Layer() for _ in range(3)]
    left = []
    while layers:
        x = layers.pop()(x)
        left.append(len(ALL))
    return x, left


def layer_kept_by_a_loop_variable(x):
    layers = [Layer() for _ in range(3)]
    for layer in layers:
        x = layer(x)
    layers.clear()
    before = len(ALL)
    layer = None
    return x, before, len(ALL), layer


def layer_in_a_callee(x):
    def inner(x):
        layer = Layer()
        print("made")
        return layer(x), len(ALL)

    return inner(x), len(ALL)


def layer_in_a_handler(x):
    layer = Layer()
    try:
        y = layer(x)
        raise ValueError(layer.training)
    except ValueError:
        layer = None
        left = len(ALL)
    return y, left, layer


def bound_methods_and_closures(x):
    layer = Layer()
    functions = [layer.forward, lambda x: layer(x)]
    y = functions[0](functions[1](x))
    functions = None
    before = len(ALL)
    layer = None
    return y, before, len(ALL), functions


def held_by_a_started_generator(x):
    layer = Layer()
    for p in layer.named_modules():
        print(p[0])
    y = layer(x)
    print("used")
    return y, len(ALL)


def held_by_a_method_of_a_list(x):
    layers = [Layer(), Layer()]
    for layer in layers:
        x = layer(x)
    clear = layers.clear
    print("kept")
    clear()
    before = len(ALL)
    layer = None
    return x, before, len(ALL), layer


LAYERS = [
    (layer_used_once, 1, 1), (layer_taken_out, 1, 1), (layer_that_lives_to_the_end, 1, 1),
    (layer_inside_another, 1, 2), (layer_is_rebound, 2, 2), (layer_as_attribute_of_an_object, 1, 1),
    (layers_popped_in_a_loop, 3, 3), (layer_kept_by_a_loop_variable, 1, 3),
    (layer_in_a_callee, 1, 1), (layer_in_a_handler, 1, 1), (bound_methods_and_closures, 1, 2),
    (held_by_a_started_generator, 1, 1), (held_by_a_method_of_a_list, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs", "ops"), LAYERS)
def test_layers_that_the_program_makes(program, graphs, ops):
    check(program, x, graphs=graphs, ops=ops)


OUTER = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
WEAK = weakref.WeakSet(OUTER)


def test_weak_references_to_layers_of_others_break_nothing():
    """Libraries make some; the program lets nothing go."""

    def inner(layer, x):
        if not isinstance(layer, torch.nn.Module):
            print("no")
        return layer(x)

    def program(x):
        print("start")
        layers = list(OUTER)
        y = inner(layers[0], x)
        layers = [lambda x, net=OUTER: net(x)]
        return layers[0](y)

    check(program, x, graphs=1, ops=3)


def key_in_a_set_that_a_generator_holds(x):
    def each(boxes):
        yield from boxes

    box = Box()
    reference = weakref.ref(box)
    print("made")
    boxes = {box}
    generator = each(boxes)
    next(generator)
    y = x * 2
    print("used")
    del box, boxes, generator
    return y, reference() is None


def test_keys_of_a_capture_end_with_it():
    """They are not left to the garbage collector."""
    gc.disable()
    try:
        check(key_in_a_set_that_a_generator_holds, x, graphs=1, ops=1)
    finally:
        gc.enable()


@framejit.disable
def made(loud):
    return Loud("it") if loud else Box()


@pytest.mark.parametrize("kinds", [(False, True), (True, False), (False, False)])
def test_an_entry_serves_objects_of_other_kinds_that_nobody_looks_at(kinds, capsys):
    """What is captured for an object whose end nobody sees is used for one whose end is seen."""

    def program(x, loud):
        unused = made(loud)  # noqa: F841 - it ends with the frame
        y = x * 2
        print("one")
        y = y + 1
        print("two")
        return y

    compiled = framejit.compile(program, backend="eager")
    for loud in kinds:
        expected = program(x, loud), capsys.readouterr().out
        assert torch.equal(compiled(x, loud), expected[0])
        assert capsys.readouterr().out == expected[1]


def test_what_attributes_of_classes_have_kept():
    """An object that a class drops ends there."""
    ends = []

    class Noted:
        def __del__(self):
            ends.append(self)

    class Holder:
        kept: Noted | None = None

    def program(x):
        ends.clear()
        Holder.kept = Noted()
        y = x * 2
        print("kept")
        before = len(ends)
        Holder.kept = None
        return y + 1, before, len(ends)

    check(program, x, graphs=2, ops=2)
