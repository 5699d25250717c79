"""A graph break before any single instruction changes nothing (D19)."""

from __future__ import annotations

import subprocess
import sys
import types
import weakref
from collections import defaultdict
from pathlib import Path

import pytest
import torch

import break_everywhere
import framejit
from checking import CountingBackend, check
from framejit.bytecode.liveness import live_slots
from framejit.codegen import function
from framejit.interpreter import forced

HERE = Path(__file__).parent
X = torch.arange(4.0)


class Refusing(list):
    def append(self, item):
        raise RuntimeError("not this way")

    def add(self, item):
        method = super().append
        method(item)
        method(item)
        return method.__self__ is self


class Hooked:
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.marked = True

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def __getattribute__(self, name):
        return 3 if name == "three" else super().__getattribute__(name)

    def __eq__(self, other):
        return super().__eq__(other)

    __hash__ = object.__hash__


def methods_in_c_of_a_base_class(x):
    class Local(Hooked):
        pass

    numbers, obj = Refusing(), Local()
    held = numbers.add(x)
    obj.value = x + 1
    return numbers, held, obj.value, obj.three, Local.marked, obj == obj, obj == 3


def methods_in_c_are_one_object(x, given):
    one, two = given.append, given.append
    make = dict.fromkeys
    one(1)
    two(x)
    return one is two, one == two, one != two, one == given.pop, one is one, make("ab"), x * 2


def handlers_in_handlers(x):
    seen = []
    try:
        try:
            raise ValueError(1)
        except ValueError as first:
            try:
                seen.append(str(first))
                raise KeyError(2) from first
            finally:
                seen.append("finally")
    except KeyError as second:
        seen.append((str(second), type(second.__context__), type(second.__cause__)))
    return seen, x + len(seen)


class Declines:
    def __add__(self, other):
        return self.decides()

    def __radd__(self, other):
        return 5

    def decides(self):
        return NotImplemented


class Other(Declines):
    pass


def operators_that_decline_elsewhere(x):
    try:
        Declines() + Declines()
    except TypeError as error:
        seen = str(error)
    return (Declines() + Other()) * x, seen


class Answers:
    def __init__(self, wrong):
        self.wrong = wrong
        return wrong

    def __getattr__(self, name):
        raise AttributeError("no " + name)


def what_a_frame_is_for(x):
    seen = []
    try:
        Answers(3)
    except TypeError as error:
        seen.append(str(error))
    try:
        Answers(None).missing  # noqa: B018
    except AttributeError as error:
        seen.append((str(error), error.name, type(error.obj)))
    return x + 1, seen


def objects_held_by_variables_alone(x):
    kept = Declines()
    where = weakref.ref(kept)
    others = weakref.WeakSet()
    held = Declines()
    others.add(held)
    return x + len(others), where() is None


class Told(Exception):
    def __init__(self, value, flag):
        super().__init__("text", value)
        self.value = value
        self.flag = flag
        self.exceptions = [value]
        self.nothing = None


class Stopped(StopIteration):
    def __init__(self, value):
        super().__init__(value, 3)
        self.seen = False


def what_exceptions_know(x):
    seen = []
    for cls, args in ((Told, (3, False)), (Stopped, (4,))):
        try:
            raise cls(*args)
        except (Told, Stopped) as error:
            seen.append(error)
    changed = StopIteration(1)
    changed.value = x
    others = [SystemExit(3), StopIteration(4), ImportError("m", name="n", path="p"),
              UnicodeDecodeError("utf-8", b"abc", 0, 1, "why"), SyntaxError("m", ("f", 1, 2, "t")),
              OSError(2, "no", "file"), ExceptionGroup("g", [ValueError(1)]),
              AttributeError("a", name="n", obj=x), NameError("q", name="z")]  # fmt: skip
    print(len(seen))
    a, b = seen
    states = [a.value, a.flag, a.exceptions, a.nothing, a.args, b.value, b.seen, b.args]
    codes = [others[0].code, others[1].value, others[2].path, others[3].reason, others[4].lineno]
    names = [others[5].filename, len(others[6].exceptions), others[7].obj, others[8].name]
    return states, codes, names, changed.value, x + 1


def raises_again():
    try:
        raise ValueError("in")
    except ValueError:
        yield 1
        raise


def generators_handle_errors_of_their_own(x):
    waiting = raises_again()
    first = next(waiting)
    try:
        raise KeyError("mine")
    except KeyError:
        try:
            next(waiting)
        except Exception as error:
            seen = str(error), type(error.__context__)
    return x + first, seen


def many_names_at_once(x):
    a, b, c, d, e = x + 1, [2], [3], [4], [5]
    *rest, f, g, h, i, j = range(8)
    return a, b, c, d, e, rest, f, g, h, i, j


def errors_name_the_class_that_a_method_is_of(x):
    found = []
    for make in (lambda: {1}.union(other=[2]), lambda: defaultdict(int).pop(1, default=3)):
        try:
            make()
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


PROGRAMS = [
    (errors_name_the_class_that_a_method_is_of, X),
    (what_exceptions_know, X), (generators_handle_errors_of_their_own, X),
    (operators_that_decline_elsewhere, X), (what_a_frame_is_for, X),
    (objects_held_by_variables_alone, X),
    (methods_in_c_of_a_base_class, X), (methods_in_c_are_one_object, X, []),
    (handlers_in_handlers, X), (many_names_at_once, X),
]  # fmt: skip


def loop_and_call(x):
    def double(y):
        return y * 2

    total = x
    for i in range(2):
        total = total + double(x) + i
    return total


def test_a_forced_break_is_one_break_each_time():
    backend = CountingBackend()
    constants = loop_and_call.__code__.co_consts
    (double,) = [one for one in constants if isinstance(one, types.CodeType)]
    compiled = framejit.compile(loop_and_call, backend=backend)
    with forced.forced_break(double, 1) as force:
        torch.testing.assert_close(compiled(X), loop_and_call(X))
    assert len(backend.graphs) == 2 and force.hits == 2
    assert framejit.counters["graph_break"] == {forced.REASON: 2}
    assert len(check(loop_and_call, X).graphs) == 1  # nothing of it stays


def test_every_instruction_is_found_and_broken_at():
    program = break_everywhere.Program(loop_and_call, (X,), {}, None)
    pairs = program.pairs()
    assert {code.co_name for code, _ in pairs} == {"loop_and_call", "double"}
    assert len(pairs) > 20
    everywhere = break_everywhere.Everywhere(1.0)
    everywhere.check(program, "loop_and_call")
    assert (everywhere.pairs, everywhere.unbroken) == (len(pairs), 0)


def sum_that_may_be_deleted(x):
    total = x
    for i in range(3):
        total = total + i
        if i > 7:  # so that CPython looks whether there is a value
            del total
    return total


def test_a_difference_is_found(monkeypatch):
    def forgets_the_total(info, index):
        return live_slots(info, index) - {1}

    program = break_everywhere.Program(sum_that_may_be_deleted, (X,), {}, None)
    everywhere = break_everywhere.Everywhere(1.0)
    monkeypatch.setattr(function, "live_slots", forgets_the_total)
    with pytest.raises(AssertionError, match="before .* UnboundLocalError"):
        everywhere.check(program, "sum_that_may_be_deleted")
    assert everywhere.failed > 5 and not everywhere.left_out


@pytest.mark.parametrize("function, args", [
    pytest.param(function, args, id=function.__name__) for function, *args in PROGRAMS
])  # fmt: skip
def test_program(function, args):
    everywhere = break_everywhere.Everywhere(1.0)
    assert check(function, *args).graphs
    everywhere.check(break_everywhere.Program(function, args, {}, None), function.__name__)
    assert everywhere.pairs > 10 and not everywhere.left_out


def run_tests(share, shard, seed=0):
    options = ["--breaks", str(share), "--breaks-shard", shard, "--breaks-seed", str(seed)]
    script = [sys.executable, "-W", "ignore", str(HERE.parent / "break_everywhere.py"), str(HERE)]
    found = subprocess.run(
        [*script, "--tb=short", "-p", "no:cacheprovider", *options, "--ignore", __file__],
        capture_output=True, text=True, cwd=HERE.parents[1],
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]


@pytest.mark.generated
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shard", ["0/30", "11/30"])
def test_all_instructions_of_a_fifteenth_of_the_tests(shard):
    """The tests are drawn by their names; all are run below."""
    run_tests(1.0, shard)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", [f"{number}/16" for number in range(16)])
def test_all_instructions(shard):
    run_tests(1.0, shard)
