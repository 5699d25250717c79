"""CompiledFunction, Entry, tail calls: binding, misses, fallbacks, exceptions, references."""

import gc
import inspect
import sys
import threading
import weakref

import pytest
import torch
from native_helpers import GuardTree, Tree, compiled_of, resident_kib

from framejit.native import (
    CompiledFunction,
    Entry,
    GlobalState,
    HookContext,
    TailCall,
    current_context,
    set_dispatch_enabled,
    set_run_only,
    tail,
)
from threads import in_threads


def echo(*slots):
    return slots


def open_tree(slots):
    return GuardTree([(-1, "slot", i, [], -1) for i in range(slots)])


# ---- binding ----


def make_functions():
    cell = "cell"

    def plain(a, b):
        return locals()

    def defaults(a, b=2, *, c, d=4):
        return locals()

    def everything(a, /, b, c=3, *args, d, e=5, **kwargs):
        return locals()

    def only_kwargs(**kwargs):
        return locals()

    def only_args(*args):
        return locals()

    def none():
        return locals()

    def closure(a, *args, b=1):
        return {**locals(), "x": cell}

    def posonly(a, b=2, /, **kwargs):
        return locals()

    def kwonly(*, a, b):
        return locals()

    return [plain, defaults, everything, only_kwargs, only_args, none, closure, posonly, kwonly]


CALLS = [
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, 3), {}),
    ((1, 2, 3, 4, 5), {}),
    ((), {"a": 1, "b": 2}),
    ((1,), {"b": 5}),
    ((1,), {"c": 5}),
    ((1, 2), {"c": 3, "d": 9}),
    ((1, 2), {"d": 9, "z": 8}),
    ((1, 2), {"a": 3, "d": 1}),
    ((1,), {"a": 1}),
    ((), {"z": 1}),
    ((1, 2, 3, 4), {"d": 1, "e": 2, "f": 3}),
    ((1,), {"c": 1, "d": 2}),
]


@pytest.mark.parametrize("function", make_functions(), ids=lambda f: f.__name__)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_binding_is_that_of_python(function, call):
    args, kwargs = call
    slots = []
    compiled = CompiledFunction(
        function, lambda self, s: slots.append(s) or Entry(open_tree(len(s)), echo)
    )
    try:
        bound = function(*args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError) as ours:
            compiled(*args, **kwargs)
        assert str(ours.value) == str(error)
        assert not slots
        return
    code = function.__code__
    names = code.co_varnames[
        : code.co_argcount
        + code.co_kwonlyargcount
        + bool(code.co_flags & 4)
        + bool(code.co_flags & 8)
    ]
    expected = tuple(bound[name] for name in names) + (function.__closure__ or ())
    assert compiled(*args, **kwargs) == expected
    assert slots == [expected]
    assert tuple(map(type, expected)) == tuple(map(type, slots[0]))


def test_live_signature():
    def f(a, b=2):
        return a, b

    def g(a, b, c=3):
        return a, b, c

    compiled = CompiledFunction(f, lambda self, s: Entry(open_tree(len(s)), echo))
    assert compiled(1) == (1, 2)
    f.__defaults__ = (7,)
    assert compiled(1) == (1, 7)
    f.__code__, f.__defaults__ = g.__code__, (8,)
    assert compiled(1, 2) == (1, 2, 8)
    f.__kwdefaults__ = {}
    f.__defaults__ = None
    with pytest.raises(TypeError, match="missing 2 required"):
        compiled(1)


def test_default_that_is_dropped_by_the_miss():
    def f(a=[1, 2, 3]):
        return a

    def miss(self, slots):
        f.__defaults__ = None
        del slots
        gc.collect()

    compiled = CompiledFunction(f, miss)
    with pytest.raises(TypeError):
        compiled()  # the fallback sees the live function


def test_methods_and_class_attributes():
    class C:
        @staticmethod
        def other():
            return 1

        m = compiled_of(lambda self, x: None, lambda self, x: (self, x), slots=2)

    c = C()
    assert c.m(3) == (c, 3) and C.m(c, 4) == (c, 4)
    assert c.m.__self__ is c and C.m is C.__dict__["m"]
    bound = c.m
    assert bound(5) == (c, 5)


# ---- entries ----


def test_entries_are_chosen_by_guards():
    x, y = torch.zeros(2), torch.zeros(3)

    def f(t):
        return "original"

    compiled = CompiledFunction(f, None)
    for example, name in ((x, "two"), (y, "three")):
        tree = GuardTree([(-1, "slot", 0, [("tensor", example, 0)], 0)], GlobalState())
        compiled.add_entry(Entry(tree, lambda t, captured, name=name: (name, t is captured)))
    for _ in range(3):
        assert compiled(x) == ("two", True)
        assert compiled(y) == ("three", True)
        assert compiled(torch.zeros(4)) == "original"
        with torch.no_grad():
            assert compiled(x) == "original"
    assert [e.hits for e in compiled.entries] == [3, 3]
    assert [type(e) for e in compiled.entries] == [Entry, Entry]
    compiled.entries.clear()  # a copy
    assert len(compiled.entries) == 2
    compiled.clear_entries()
    assert compiled.entries == [] and compiled(x) == "original"


def test_miss_paths():
    def f(a):
        return "original", a

    seen = []
    answers = [None, Entry(GuardTree([(-1, "slot", 0, [("equals", 1)], -1)]), lambda a: "entry"), 5]

    def miss(self, slots):
        seen.append((self, slots, current_context()))
        return answers[len(seen) - 1]

    context = HookContext(lambda f: None)
    compiled = CompiledFunction(f, miss, context=context)
    assert compiled(1) == ("original", 1)
    assert compiled(1) == "entry"
    assert compiled.entries == []  # adding is the miss's business
    with pytest.raises(TypeError, match="an Entry, a function, an exception or None"):
        compiled(1)
    assert all(s[0] is compiled and s[1] == (1,) and s[2] is None for s in seen)
    seen.clear()
    answers[0] = answers[1]
    assert compiled(2) == ("original", 2)  # the guards of the new entry do not hold


def test_a_function_that_a_miss_returns_runs_instead():
    compiled = CompiledFunction(lambda a: 0, lambda self, slots: lambda a: ("instead", a))
    assert compiled(1) == ("instead", 1) and compiled.entries == []


def test_miss_that_raises():
    compiled = CompiledFunction(lambda a: 0, lambda self, slots: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compiled(1)


def test_miss_adds_entries_and_clears_during_dispatch():
    def f(a):
        return -1

    def miss(self, slots):
        self.clear_entries()
        entry = Entry(GuardTree([(-1, "slot", 0, [("equals", slots[0])], -1)]), lambda a: a * 10)
        self.add_entry(entry)
        return entry

    compiled = CompiledFunction(f, miss)
    assert [compiled(i) for i in (1, 2, 2, 1)] == [10, 20, 20, 10]

    def clearing(a):
        compiled.clear_entries()
        gc.collect()
        return True

    compiled.clear_entries()
    compiled.add_entry(
        Entry(
            GuardTree([(-1, "slot", 0, [], -1), (0, "call", clearing, [("bool", True)], -1)]),
            lambda a: "ran",
        )
    )
    assert compiled(3) == "ran"


def test_raw_mode():
    compiled = CompiledFunction(None, None, 2)
    assert compiled.function is None
    with pytest.raises(RuntimeError, match="fallback"):
        compiled(1, 2)
    with pytest.raises(TypeError, match="exactly 2"):
        compiled(1)
    with pytest.raises(TypeError):
        compiled(1, b=2)
    compiled.fallback = lambda a, b: ("fallback", a, b)
    assert compiled(1, 2) == ("fallback", 1, 2)
    compiled.add_entry(
        Entry(
            GuardTree([(-1, "slot", 1, [("equals", 2)], 0)]),
            lambda a, b, captured: (a, b, captured),
        )
    )
    assert compiled(1, 2) == (1, 2, 2) and compiled(1, 3) == ("fallback", 1, 3)
    compiled.fallback = None
    with pytest.raises(RuntimeError):
        compiled(1, 3)


def test_run_only_and_disabled():
    calls = []

    def f(a):
        return "original"

    def miss(self, slots):
        calls.append(slots)

    compiled = CompiledFunction(f, miss)
    compiled.add_entry(Entry(GuardTree([(-1, "slot", 0, [("equals", 1)], -1)]), lambda a: "entry"))
    compiled.run_only = True
    assert compiled(2) == "original" and compiled(1) == "entry" and not calls
    compiled.run_only = False
    assert set_run_only(1) == 0
    try:
        assert compiled(2) == "original" and compiled(1) == "entry" and not calls
        thread = threading.Thread(target=compiled, args=(2,))
        thread.start()
        thread.join()
        assert calls == [(2,)]  # thread-local
    finally:
        assert set_run_only(0) == 1
    compiled.run_only = True
    assert set_run_only(2) == 0
    try:
        assert compiled(2) == "original" and compiled(1) == "entry" and calls == [(2,), (2,)]
    finally:
        assert set_run_only(0) == 2
    with pytest.raises(ValueError, match="0, 1 or 2"):
        set_run_only(3)
    assert set_dispatch_enabled(False) is True
    try:
        assert compiled(1) == "original"
    finally:
        assert set_dispatch_enabled(True) is False
    assert compiled(1) == "entry"


def test_form():
    for bad in [(1, None), (len, None), (None, None), (lambda: 0, 3), (None, None, -1)]:
        with pytest.raises(TypeError):
            CompiledFunction(*bad)
    with pytest.raises(TypeError):
        CompiledFunction(lambda: 0, None, context=3)
    compiled = CompiledFunction(lambda: 0, None)
    with pytest.raises(TypeError):
        compiled.add_entry(3)
    with pytest.raises(TypeError):
        compiled.context = 3
    with pytest.raises(TypeError):
        compiled.__init__(lambda: 1, None)
    with pytest.raises(TypeError):
        Entry(3, len)
    with pytest.raises(TypeError):
        Entry(open_tree(0), 3)
    assert CompiledFunction.__new__(CompiledFunction).entries == []


def test_a_tuple_of_inputs():
    nodes = [(-1, "const", name, [], i) for i, name in enumerate("abc")]
    nodes.append((-1, "slot", 0, [], -1))

    def echo(*args):
        return args

    for layout, expected in [
        (((), ()), (1, 2, ())),
        (((2, 0), (1, -2, -1)), (1, 2, "c", "a", ("b", 2, 1))),
        (((0,), (0, 0, 2)), (1, 2, "a", ("a", "a", "c"))),
    ]:
        compiled = CompiledFunction(lambda x, y: None, None)
        entry = Entry(GuardTree(nodes), echo, layout)
        compiled.add_entry(entry)
        assert compiled(1, 2) == expected and entry.layout == layout
    assert Entry(GuardTree(nodes), echo).layout is None
    for bad in [3, (), ((),), ([], []), ((), ("a",)), ((-1,), ())]:
        with pytest.raises((TypeError, ValueError)):
            Entry(GuardTree(nodes), echo, bad)
    for bad in [((3,), ()), ((), (3,)), ((), (-(10**9),)), ((10**30,), ())]:
        with pytest.raises((ValueError, OverflowError)):
            Entry(GuardTree(nodes), echo, bad)


def test_subclass_with_attributes_and_weakrefs():
    class Sub(CompiledFunction):
        def __init__(self, function, extra):
            super().__init__(function, self.on_miss)
            self.extra = extra

        @staticmethod
        def on_miss(self, slots):
            return None

    compiled = Sub(lambda a: a, "x")
    reference = weakref.ref(compiled)
    compiled.__name__ = "name"
    assert (
        compiled(3) == 3
        and compiled.extra == "x"
        and vars(compiled) == {"extra": "x", "__name__": "name"}
    )
    assert tail(compiled, 4)() == 4
    compiled.me = compiled
    del compiled
    gc.collect()
    assert reference() is None

    class Calling(CompiledFunction):
        def __call__(self, *args):
            return "own call"

    assert Calling(lambda a: a, None)(3) == "own call"


# ---- tail calls ----


def test_tail_calls_run_in_a_loop():
    """1e5 deep between compiled functions and break functions, without any stack growing."""
    depths = []

    def step(n, total):
        return None

    compiled = CompiledFunction(step, None)

    def entry(n, total):
        if n == 0:
            return total
        if n % 1000 == 0:
            depths.append(len(inspect.stack(0)))
        return tail(break_function if n % 2 else compiled, n - 1, total + 1)

    def break_function(n, total):
        return tail(compiled, n, total)

    compiled.add_entry(Entry(open_tree(2), entry))
    assert compiled(100_000, 0) == 100_000
    assert len(set(depths)) == 1
    assert tail(compiled, 10, 0)() == 10
    assert isinstance(break_function(3, 0), TailCall) and break_function(3, 0)() == 3


def test_tail_call_object():
    call = tail(echo, *range(30))
    assert call.target is echo and call.args == tuple(range(30)) and call.context is None
    assert call() == tuple(range(30)) == call()
    with pytest.raises(TypeError):
        call(1)
    with pytest.raises(TypeError):
        tail()
    with pytest.raises(TypeError):
        tail(3)
    with pytest.raises(TypeError):
        TailCall()


def test_tail_call_remembers_the_running_context():
    context = HookContext(lambda f: None)
    seen = []

    def break_function():
        seen.append(current_context())
        inner = tail(last)
        seen.append(inner.context)
        return inner

    def last():
        seen.append(current_context())
        raise KeyError("x")

    def entry():
        seen.append(current_context())
        return tail(break_function)

    compiled = CompiledFunction(lambda: 0, None, context=context)
    compiled.add_entry(Entry(open_tree(0), entry))
    with pytest.raises(KeyError):
        compiled()
    assert seen == [None, context, context, context]
    assert current_context() is None and tail(last).context is None


def test_deep_chain_of_nested_tail_calls_is_freed():
    call = tail(len, ())
    for _ in range(100_000):
        call = tail(echo, call)
    del call  # the trashcan keeps the C stack flat


# ---- exceptions, recursion, references ----


def test_recursion_error():
    def f(n):
        return 0

    compiled = CompiledFunction(f, None)
    compiled.add_entry(Entry(open_tree(1), lambda n: compiled(n + 1)))
    for _ in range(3):
        with pytest.raises(RecursionError):
            compiled(0)
    limited = CompiledFunction(f, None)
    limited.add_entry(Entry(open_tree(1), lambda n: n if n == 0 else limited(n - 1)))
    assert limited(100) == 0


def test_exception_of_an_entry():
    def bad(a):
        raise ValueError(a)

    compiled = compiled_of(lambda a: a, bad, slots=1)
    for _ in range(10):
        with pytest.raises(ValueError, match="x"):
            compiled("x")


class Token:
    pass


def paths():
    token = Token()
    holder = Token()
    holder.value = token
    tree = Tree()
    root = tree.node(-1, "slot", 0)
    tree.node(tree.node(tree.node(-1, "const", holder), "dict"), "item", "value", capture=True)
    tree.node(-1, "slot", 1, ("present",), capture=True)
    late = Tree()
    value = late.node(late.node(-1, "const", holder), "attr", "value", capture=True)
    late.node(value, "call", lambda v: True, ("bool", True))
    raising = lambda *a: (_ for _ in ()).throw(ValueError)
    assert root == 0

    def f(a, b=token, *args, c=token, **kw):
        return a

    def entry_miss(self, slots):
        return Entry(open_tree(len(slots)), echo)

    def guarded(result, build, slots=2):
        compiled = CompiledFunction(None, None, slots)
        compiled.add_entry(Entry(build, result))
        return compiled

    raw_fallback = CompiledFunction(None, None, 1)
    raw_fallback.fallback = lambda a: a
    context = HookContext(lambda f: None)
    return token, {
        "captures": lambda c=guarded(echo, tree.build()): c(token, token),
        "captures to a C function": lambda c=guarded(max, GuardTree([(-1, "slot", 0, [], 0)]), 1): (
            c(1)
        ),
        "late captures": lambda c=guarded(echo, late.build()): c(token, token),
        "guard fails": lambda c=guarded(echo, GuardTree([(-1, "slot", 0, [("equals", 0)], 0)])): (
            pytest.raises(RuntimeError, c, token, token)
        ),
        "binding": lambda c=CompiledFunction(f, entry_miss): c(token, token, token, token, x=token),
        "defaults": lambda c=CompiledFunction(f, entry_miss): c(a=token),
        "not bound": lambda c=CompiledFunction(f, None): pytest.raises(TypeError, c),
        "fallback": lambda c=CompiledFunction(f, lambda s, t: None, context=context): c(
            token, x=token
        ),
        "raw fallback": lambda: raw_fallback(token),
        "raises": lambda c=guarded(raising, tree.build()): pytest.raises(
            ValueError, c, token, token
        ),
        "tail": lambda c=guarded(lambda a, b: tail(echo, a, b), open_tree(2)): c(token, token),
        "long tail": lambda c=guarded(lambda a, b: tail(echo, *([a] * 20)), open_tree(2)): c(
            token, token
        ),
        "dropped tail": lambda: tail(echo, token) and None,
        "tail raises": lambda c=guarded(lambda a, b: tail(raising, a), open_tree(2)): pytest.raises(
            ValueError, c, token, token
        ),
    }


@pytest.mark.parametrize("name", sorted(paths()[1]))
def test_no_reference_is_lost_or_kept(name):
    token, all_paths = paths()
    path = all_paths[name]
    for _ in range(10):
        path()
    gc.collect()
    count, entry_type = sys.getrefcount(token), sys.getrefcount(Entry)
    none = sys.getrefcount(None)
    memory = resident_kib()
    for _ in range(3_000 if "raise" in name or "fail" in name or "not" in name else 100_000):
        path()
    gc.collect()
    assert sys.getrefcount(token) == count
    assert abs(sys.getrefcount(Entry) - entry_type) < 5
    assert abs(sys.getrefcount(None) - none) < 500
    assert resident_kib() - memory < 2_000


def test_objects_die():
    class Watched(CompiledFunction):
        pass

    def build():
        def f(a):
            return a

        context = HookContext(lambda f: None)
        compiled = Watched(f, None, context=context)
        tree = GuardTree([(-1, "const", compiled, [], 0)], GlobalState())
        compiled.add_entry(Entry(tree, lambda a, c: c is compiled))
        f.compiled = compiled
        assert compiled(1)
        return weakref.ref(compiled), weakref.ref(f), weakref.ref(context)

    references = build()
    gc.collect()
    assert [r() for r in references] == [None, None, None]


def test_what_was_on_the_stack_dies_before_variables():
    class Noted:
        def __init__(self, name):
            weakref.finalize(self, died.append, name)

    def two(a, b):
        a, b = Noted("a"), Noted("b")

    died = []
    two(None, None)
    order = "".join(died)  # of variables; releases of CPython differ
    died.clear()
    raw = CompiledFunction(None, None, nslots=4)
    raw.add_entry(Entry(open_tree(4), lambda *slots: None))
    raw.variables = 2
    first = compiled_of(lambda: None, lambda: tail(raw, *[Noted(name) for name in "abcd"]), slots=0)
    first()
    assert "".join(died) == "cd" + order


def test_threads():
    x = torch.zeros(3)
    misses = []

    def f(a, k):
        return None

    def miss(self, slots):
        misses.append(slots[1])
        entry = Entry(
            GuardTree(
                [
                    (-1, "slot", 0, [("tensor", x, 0)], 0),
                    (-1, "slot", 1, [("equals", slots[1])], -1),
                ]
            ),
            lambda a, k, c: k,
        )
        self.add_entry(entry)
        return entry

    compiled = CompiledFunction(f, miss)
    wrong = []

    def work(seed):
        for i in range(3000):
            k = (i * seed) % 7
            if compiled(x, k) != k:
                wrong.append(k)
            if i % 500 == 0:
                compiled.clear_entries()

    in_threads(work, (1, 2, 3, 5))
    assert not wrong and misses
