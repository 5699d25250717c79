"""Audits find every kind of difference that is planted, and none in right programs."""

import collections
import copy
import functools
import gc
import io
import itertools
import logging
import random
import threading
import time
import warnings
import weakref

import numpy
import pytest
import torch

import framejit
from framejit import native
from framejit.audit.comparison import Comparison, Difference, Tolerance
from framejit.audit.snapshot import Snapshot
from framejit.report import events
from threads import in_thread, in_threads

STATE = {"calls": 0, "seen": []}
TOTAL = 0
MARK = object()


def planted(right, wrong):
    """``right``, compiled to ``wrong``."""
    compiled = framejit.compile(right, backend="eager")
    count = right.__code__.co_argcount

    def entry(*slots):
        return wrong(*slots[:count])

    compiled.add_entry(native.Entry(native.GuardTree([]), entry))
    return compiled


def audited(function, *args, calls=1, **settings):
    """The audit of some calls that may raise."""
    with warnings.catch_warnings(), framejit.audit(**settings) as audit:
        warnings.simplefilter("ignore", framejit.exc.FramejitWarning)
        for _ in range(calls):
            try:
                function(*args)
            except (ValueError, KeyError, TypeError, ZeroDivisionError):
                pass
    return audit


class Box:
    total = 0

    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("other", "value")

    def __init__(self, value):
        self.value = value


def started():
    generator = (i for i in range(3))
    next(generator)
    return generator


def ones():
    return torch.ones(4)


def raising(kind, text, cause=None):
    def function(x):
        raise kind(text) from cause and KeyError(cause)

    return function


def chained(inner):
    def function(x):
        try:
            raise inner("inside")
        except Exception:
            raise KeyError("outside")

    return function


def set_global(value):
    def function(x):
        global TOTAL
        TOTAL = value
        return x

    return function


def ordered(x):
    d = collections.OrderedDict(a=x, b=x)
    return d


def reordered(x):
    d = collections.OrderedDict(a=x, b=x)
    d.move_to_end("a")
    return d


def twice(x):
    y = x * 2
    return y, y


def two_views(x):
    y = x * 2
    return y[:2], y[2:]


def write(obj, value):
    obj.value = value
    return obj


#: (what is planted, right, wrong, arguments, words of the difference)
PLANTED = [
    ("value", lambda x: x + 1, lambda x: x + 2, ones, "not equal"),
    ("sign of zero", lambda x: 0.0, lambda x: -0.0, ones, "-0.0, not 0.0"),
    ("type", lambda x: (x, 1), lambda x: [x, 1], ones, "list"),
    ("int and bool", lambda x: 1, lambda x: True, ones, "bool"),
    ("dtype", lambda x: x.sum(), lambda x: x.double().sum(), ones, "dtype"),
    ("strides", lambda x: x.new_ones(2, 3), lambda x: x.new_ones(3, 2).t(), ones, "strides"),
    ("requires_grad", lambda x: x + 1, lambda x: (x + 1).requires_grad_(), ones, "requires_grad"),
    ("shared object", twice, lambda x: (x * 2, x * 2), ones, "shared"),
    ("the argument itself", lambda x: x, lambda x: x.clone(), ones, "another object"),
    ("a view of the argument", lambda x: x[1:], lambda x: x[1:].clone(), ones, "storage offset"),
    ("memory", lambda x: x[:2], lambda x: x[:2].clone(), ones, "shares memory"),
    ("memory of results", two_views, lambda x: (x[:2] * 2, x[2:] * 2), ones, "storage offset"),
    ("sentinel", lambda x: MARK, lambda x: object(), ones, "another object"),
    ("order of a dict", lambda x: {"a": 1, "b": 2}, lambda x: {"b": 2, "a": 1}, ones, "key 0"),
    ("own order", ordered, reordered, ones, "key 0"),
    ("written argument", lambda x: x.add_(1), lambda x: x, ones, "not equal"),
    ("changed list", lambda l: l.append(1), lambda l: None, lambda: [1], "elements"),
    ("changed dict", lambda d: d.update(a=1), lambda d: d.update(a=2), dict, "['a']"),
    ("changed set", lambda s: s.add(1), lambda s: None, set, "s: [], not [1]"),
    ("changed deque", lambda d: d.rotate(1), lambda d: None,
     lambda: collections.deque([1, 2]), "[0]"),
    ("attribute", lambda b: write(b, 1), lambda b: write(b, 2), lambda: Box(0), "value"),
    ("attribute of an empty OrderedDict", lambda d: write(d, 1), lambda d: write(d, 2),
     collections.OrderedDict, "['value']"),
    ("slot", lambda b: write(b, 1), lambda b: write(b, 2), lambda: Slotted(0), "value"),
    ("class attribute", lambda b: setattr(Box, "total", 1), lambda b: None, lambda: Box(0),
     "Box.total"),
    ("global", set_global(1), set_global(2), ones, "TOTAL"),
    ("content of a global", lambda x: STATE["seen"].append(1), lambda x: None, ones, "STATE"),
    ("array", lambda a: a.__iadd__(1), lambda a: a, lambda: numpy.ones(3), "array"),
    ("bytearray", lambda x: bytearray(b"a"), lambda x: bytearray(b"b"), ones, "b'b'"),
    ("partial", lambda x: functools.partial(len, 1), lambda x: functools.partial(len, 2), ones,
     "result.args[0]: 2, not 1"),
    ("printed", lambda x: print("right"), lambda x: print("wrong"), ones, "stdout: printed"),
    ("not raised", raising(ValueError, "a"), lambda x: None, ones, "raised None"),
    ("raised", lambda x: None, raising(ValueError, "a"), ones, "raised ValueError('a')"),
    ("message", raising(ValueError, "a"), raising(ValueError, "b"), ones, "ValueError('b')"),
    ("class of an error", raising(ValueError, "a"), raising(TypeError, "a"), ones, "TypeError"),
    ("cause", raising(ValueError, "a", 1), raising(ValueError, "a", 2), ones,
     "__cause__"),
    ("context", chained(ValueError), chained(TypeError), ones, "__context__"),
    ("torch's random numbers", lambda x: torch.rand(2) * 0, lambda x: torch.rand(3)[:2] * 0, ones,
     "random"),
    ("Python's random numbers", lambda x: random.random() * 0, lambda x: 0.0, ones, "random"),
    ("setting", lambda x: torch.set_grad_enabled(False) and None, lambda x: None, ones, "grad"),
]  # fmt: skip


@pytest.mark.parametrize("right,wrong,make,words", [row[1:] for row in PLANTED],
                         ids=[row[0] for row in PLANTED])  # fmt: skip
def test_what_is_planted_is_found(right, wrong, make, words):
    STATE["seen"].clear()
    compiled, wrong_again = planted(right, wrong), make()
    argument = make()
    before = torch.is_grad_enabled()
    try:
        audit = audited(compiled, argument)
    finally:
        torch.set_grad_enabled(before)
        Box.total = 0
    assert not audit.skipped and audit.calls == 1
    (mismatch,) = audit.mismatches
    assert words in mismatch.difference
    assert events.history(events.Mismatch)[-1] is mismatch
    assert framejit.counters["mismatch"].total() == 1
    assert audited(framejit.compile(right, backend="eager"), make(), calls=2).mismatches == []
    torch.set_grad_enabled(before)


def test_gradients_are_compared_where_asked():
    def right(x):
        return x * 3

    def wrong(x):
        return x.detach() * 2 + x

    x = torch.ones(3, requires_grad=True)
    assert audited(planted(right, wrong), x).mismatches == []
    (mismatch,) = audited(planted(right, wrong), x, gradients=True).mismatches
    assert "gradients['x']" in mismatch.difference and x.grad is None


def test_a_backend_that_computes_something_else_is_found():
    def backend(gm, inputs):
        return lambda *args: [out + 1 for out in gm(*args)]

    model = framejit.compile(torch.nn.Linear(2, 2), backend=backend)
    (mismatch,) = audited(model, torch.ones(2, 2)).mismatches
    assert mismatch.backend == "backend"


def test_a_guard_that_is_dropped_is_found():
    compiled = framejit.compile(lambda x, n: x * n, backend="eager", dynamic=False)
    compiled(torch.ones(3), 2)
    (entry,) = compiled.entries
    nodes = [(*node[:3], [], node[4]) for node in entry.tree.export()]
    compiled.clear_entries()
    compiled.add_entry(native.Entry(native.GuardTree(nodes), entry.function, entry.layout))
    with framejit.audit() as audit:
        compiled(torch.ones(3), 2)
        assert not audit.mismatches
        with pytest.warns(framejit.exc.FramejitWarning, match="FJ0216"):
            compiled(torch.ones(3), 3)
    assert len(audit.mismatches) == 1


# -- right programs --------------------------------------------------------------------------------


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(
            torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()
        )
        self.history = []
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.history.append(x)
        return {"x": self.inner(x), "calls": self.calls}


def test_the_state_is_that_of_one_compiled_call():
    torch.manual_seed(0)
    eager = Model()
    model = copy.deepcopy(eager)
    compiled = framejit.compile(model, backend="eager")
    x = torch.randn(4, 3)
    torch.manual_seed(1)
    expected = [eager(x), eager(x)]
    torch.manual_seed(1)
    with framejit.audit(gradients=True, on_mismatch="raise") as audit:
        got = [compiled(x), compiled(x)]
    assert audit.calls == 2 and not audit.skipped
    for one, two in zip(expected, got):
        assert torch.equal(one["x"], two["x"]) and one["calls"] == two["calls"]
    assert model.calls == 2 and all(item is x for item in model.history)
    assert torch.equal(eager.inner[1].running_mean, model.inner[1].running_mean)
    assert [b._version for b in eager.buffers()] == [b._version for b in model.buffers()]
    (got[0]["x"].sum() + got[1]["x"].sum()).backward()
    (expected[0]["x"].sum() + expected[1]["x"].sum()).backward()
    for one, two in zip(eager.parameters(), model.parameters()):
        torch.testing.assert_close(one.grad, two.grad)


class Counting(type):
    def __call__(cls, *args):
        cls.made = vars(cls).get("made", 0) + 1
        return super().__call__(*args)


class Counter(metaclass=Counting):
    count = 0

    def __init__(self):
        type(self).count += 1


class Derived(Counter):
    pass


class Ended:
    ended = 0

    def __del__(self):
        type(self).ended += 1


class Told(ValueError):
    told = []

    def __str__(self):
        Told.told.append(1)
        return "told"


LOCAL = threading.local()
LOCAL.count = 0
KEPT = []


def counts_in_a_thread(x):
    LOCAL.count += 1
    return x + 1


def counts_in_classes(x):
    Derived()
    return x + 1


def keeps(x):
    KEPT.append(Ended())
    weakref.finalize(KEPT[-1], setattr, Ended, "ended", 5)
    return x + 1


def tells(x):
    if x.shape[0] == 2:
        raise Told
    return x


@pytest.mark.parametrize(
    ("function", "state", "expected"),
    [
        (counts_in_a_thread, lambda: LOCAL.count, 2),
        (counts_in_classes, lambda: (Derived.count, Derived.made, Counter.count), (2, 2, 0)),
        (keeps, lambda: (len(KEPT), Ended.ended), (2, 0)),
        (tells, lambda: Told.told, []),
    ],
)
def test_what_plain_runs_do_is_not_seen(function, state, expected):
    audit = audited(framejit.compile(function, backend="eager"), torch.ones(2), calls=2)
    assert audit.calls == 2 and not audit.skipped and not audit.mismatches
    assert state() == expected


@pytest.mark.parametrize("record", [False, True])
def test_warnings_are_given_once(record, monkeypatch):
    def f(x):
        warnings.warn("careful")
        with warnings.catch_warnings(record=True) as inner:
            warnings.simplefilter("always")
            warnings.warn("inside")
        return x + len(inner)

    shown = []
    with warnings.catch_warnings(record=record) as recorded:
        warnings.simplefilter("always")
        if not record:
            monkeypatch.setattr(warnings, "showwarning", lambda message, *_: shown.append(message))
        compiled = framejit.compile(f, backend="eager")
        with framejit.audit(on_mismatch="raise") as audit:
            result = compiled(torch.ones(2))
    given = [w.message for w in recorded] if record else shown
    assert [str(message) for message in given] == ["careful"]
    assert audit.calls == 1 and result.tolist() == [2, 2]


def test_output_appears_once(capsys):
    stream = logging.StreamHandler()
    logger = logging.Logger("audited")
    logger.addHandler(stream)

    def f(x):
        print("spoken")
        logger.warning("logged")
        warnings.warn("warned")
        return x + 1

    with framejit.audit(on_mismatch="raise") as audit, warnings.catch_warnings():
        warnings.simplefilter("always")
        framejit.compile(f, backend="eager")(torch.ones(2))
    out, err = capsys.readouterr()
    assert out == "spoken\n" and err.count("logged") == 1 and audit.calls == 1
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_output_of_what_functions_of_framejit_call_for_the_program(capsys):
    def f(x):
        def key(v):
            print("key", v)
            return -v

        return sorted([1, 3, 2], key=key), x + 1

    with framejit.audit(on_mismatch="raise") as audit:
        framejit.compile(f, backend="eager")(torch.ones(2))
    assert audit.calls == 1 and capsys.readouterr().out == "key 1\nkey 3\nkey 2\n"


def test_the_program_sees_the_same_stack():
    import inspect

    def f(x):
        return x + len(inspect.stack())

    compiled = framejit.compile(f, backend="eager")
    expected = f(torch.zeros(1))
    with framejit.audit(on_mismatch="raise"):
        assert torch.equal(compiled(torch.zeros(1)), expected)


def test_errors_are_those_of_the_compiled_call():
    def f(x):
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")

    compiled = framejit.compile(f, backend="eager")
    with framejit.audit(on_mismatch="raise") as audit, pytest.raises(ValueError) as caught:
        compiled(torch.ones(1))
    assert isinstance(caught.value.__context__, KeyError)
    names = [entry.name for entry in caught.traceback]
    assert names == ["test_errors_are_those_of_the_compiled_call", "f"] and audit.calls == 1


@pytest.mark.parametrize("make,words", [
    (lambda: started(), "x: a generator"),
    (lambda: io.StringIO("a"), "x: a file"),
    (lambda: Box(torch.ones(2).to_sparse()), "x.value: a tensor of layout"),
])  # fmt: skip
def test_what_cannot_be_put_back_is_said_and_skipped(make, words):
    compiled = framejit.compile(lambda x: torch.ones(1) + 1, backend="eager")
    audit = audited(compiled, make())
    assert audit.calls == 0 and audit.skipped.total() == 1
    (reason,) = audit.skipped
    assert words in reason
    (event,) = [e for e in events.history(events.AuditSkipped)][-1:]
    assert event.reason == reason and event.identifier == "FJ0309"


def test_lazy_modules_are_skipped_and_arguments_are_not_kept_alive():
    lazy = framejit.compile(torch.nn.LazyLinear(2), backend="eager")
    with framejit.audit() as audit:
        assert lazy(torch.ones(3, 3)).shape == (3, 2)
    assert "shape" in next(iter(audit.skipped))
    compiled, net = framejit.compile(lambda m, x: m(x), backend="eager"), torch.nn.Linear(2, 2)
    with framejit.audit():
        compiled(net, torch.ones(2, 2))
    reference = weakref.ref(net)
    del net
    gc.collect()
    assert reference() is None


def test_a_bug_of_the_auditor_counts_as_one_call_that_is_not_compared(monkeypatch):
    def fail(self):
        raise RuntimeError("no")

    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    with monkeypatch.context() as patch, framejit.config.patch(raise_internal_errors=False):
        patch.setattr(Snapshot, "now", fail)
        audit = audited(compiled, ones())
    assert audit.skipped == {"the auditor failed (RuntimeError: no)": 1}
    assert audited(compiled, ones()).calls == 1


def test_output_appears_after_the_state_could_not_be_put_back(monkeypatch, capsys):
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    put, calls = Snapshot.put, []

    def fail_later(self, *moments):
        calls.append(moments)
        if len(calls) > 1:
            raise RuntimeError("no")
        put(self, *moments)

    with monkeypatch.context() as patch, framejit.config.patch(raise_internal_errors=False):
        patch.setattr(Snapshot, "put", fail_later)
        assert audited(compiled, ones()).skipped.total() == 1
    print("after")
    assert capsys.readouterr().out == "after\n"
    assert audited(compiled, ones()).calls == 1


def test_exceptions_that_cause_themselves():
    def f(x):
        error = ValueError("a")
        try:
            raise error from error
        except ValueError as caught:
            return caught

    assert audited(framejit.compile(f, backend="eager"), torch.ones(1)).calls == 1


def test_iterators():
    """Positions are put back; where that is not possible, nothing must have moved."""

    def f(iterator, x):
        return x + next(iterator)

    for make in (lambda: iter([1, 2, 3]), lambda: iter(range(3)), lambda: zip([1, 2, 3])):
        iterator = make()
        audit = audited(framejit.compile(f, backend="eager"), iterator, torch.ones(1), calls=2)
        assert not audit.mismatches and audit.calls + audit.skipped.total() == 2
        assert len(list(iterator)) == 1
    generator = (i + 1 for i in range(3))
    audit = audited(framejit.compile(f, backend="eager"), generator, torch.ones(1))
    assert audit.calls == 0 and len(list(generator)) == 2
    unused = framejit.compile(lambda iterator, x: x + 1, backend="eager")
    ended = iter([1])
    list(ended)
    others = zip([1]), enumerate([1]), map(len, [""]), itertools.count(), (i for i in "a")
    for iterator in (ended, *others):
        assert audited(unused, iterator, torch.ones(1)).calls == 1


def test_a_program_that_differs_each_time_is_skipped():
    box = [0]

    class Counter:
        def __repr__(self):
            return "counter"

    hidden = weakref.WeakKeyDictionary()
    key = Counter()
    hidden[key] = 0
    count = iter(range(100)).__next__

    audit = audited(planted(lambda x: count(), lambda x, *cells: count()), box)
    assert not audit.mismatches and audit.calls == 0
    assert any("each time" in reason or "iterator" in reason for reason in audit.skipped)


def test_a_program_that_asks_whether_it_is_compiled():
    def asks(x):
        return x + 1 if torch.compiler.is_compiling() else x + 2

    audit = audited(framejit.compile(asks, backend="eager"), torch.ones(1))
    assert list(audit.skipped) == ["it asks torch.compiler.is_compiling()"]
    before = torch.compiler.is_compiling
    audit = audited(planted(asks, lambda x: x + 3), torch.ones(1))
    assert len(audit.mismatches) == 1 and torch.compiler.is_compiling is before


def test_history_that_changes_in_place_is_skipped():
    x = torch.ones(3, requires_grad=True) * 1
    audit = audited(framejit.compile(lambda x: x.add_(1), backend="eager"), x)
    assert not audit.mismatches
    assert "history" in next(iter(audit.skipped))


def test_only_a_share_is_audited():
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    x = torch.ones(1)
    with framejit.audit(rate=0.1, budget=1) as audit:
        for _ in range(3000):
            compiled(x)
    assert 200 < audit.calls < 400


class Clock:
    """Goes on by one whenever it is read."""

    now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.mark.parametrize(
    "rate, budget, share", [(1.0, None, 1), (1.0, 0.2, 0.2), (0.01, None, 0.05)]
)
def test_audits_stay_within_their_share_of_the_time(rate, budget, share, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "process_time", clock)
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    x = torch.ones(1)
    with framejit.audit(rate=rate, budget=budget) as audit:
        compiled(x)
        audit.calls, began = 0, clock.now
        for _ in range(3000):
            compiled(x)
            clock.now += 1
    assert audit.calls == 3000 if share == 1 else 0 < audit.calls < 1000
    assert 2 * audit.calls <= share * (clock.now - began)  # its start, and its runs


def test_calls_inside_a_call_belong_to_it():
    inner = framejit.compile(lambda x: x + 1, backend="eager")

    def outer(x):
        print(end="")
        return inner(x) + inner(x)

    audit = audited(framejit.compile(outer, backend="eager"), torch.ones(1))
    assert audit.calls == 1


def test_blocks_decorators_methods_and_run():
    def f(x, *args, k=1, **kwargs):
        return x * k + len(args) + len(kwargs)

    with framejit.audit(on_mismatch="raise") as audit, framejit.optimize("eager"):
        f(torch.ones(2), 1, 2, k=3, other=4)
    assert audit.calls == 1

    compiled = framejit.compile(f, backend="eager")

    @framejit.audit(on_mismatch="raise")
    def program():
        return compiled(torch.ones(2), 1, k=2)

    assert torch.equal(program(), torch.full((2,), 3.0))
    with framejit.audit() as audit, framejit.run():
        compiled(torch.ones(2), 1, k=2)
        compiled(torch.ones(2), [])
    assert audit.calls == 2
    with framejit.audit() as audit, framejit.disable():
        compiled(torch.ones(2), 1, k=2)
    assert audit.calls == 0


def test_threads():
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))
    audits = [framejit.audit() for _ in range(3)]

    def work(audit):
        with audit:
            for _ in range(30):
                assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))

    in_threads(work, audits)
    for audit in audits:
        assert not audit.mismatches
        assert audit.calls + audit.skipped.total() == 30
    with framejit.audit() as outer, framejit.audit() as inner:
        in_thread(compiled, torch.ones(2))
    assert (outer.calls, inner.calls) == (0, 1)


def test_blocks_that_overlap():
    """Threads without a block belong to the latest, in whatever order the blocks end."""
    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    compiled(torch.ones(2))
    first, second = framejit.audit(), framejit.audit()
    steps = [threading.Event() for _ in range(2)]

    def other():
        with second:
            steps[0].set()
            steps[1].wait(60)

    def elsewhere():
        in_thread(compiled, torch.ones(2))
        return first.calls, second.calls

    thread = threading.Thread(target=other)
    with first:
        assert elsewhere() == (1, 0)
        thread.start()
        steps[0].wait(60)
        assert elsewhere() == (1, 1)
    assert elsewhere() == (1, 2)
    steps[1].set()
    thread.join()
    assert elsewhere() == (1, 2)


def test_addresses_are_different_each_time():
    compiled = framejit.compile(lambda x: (x + 1, id(object()), repr(object())), backend="eager")
    audit = audited(compiled, torch.ones(1))
    assert not audit.mismatches and "each time" in next(iter(audit.skipped))


class First:
    pass


class Second(First):
    pass


class Text(str):
    pass


ONE, WORD, VIEW = First(), Text("a"), memoryview(bytearray(2))
DRAWS = torch.Generator().manual_seed(0)


def changes_class(x):
    ONE.__class__ = Second if type(ONE) is First else First
    return x + 1


def counts_on_a_text(x):
    WORD.count_of_calls = getattr(WORD, "count_of_calls", 0) + 1
    return x + 1


def writes_through_a_view(x):
    VIEW[0] += 1
    return x + 1


def draws(x):
    return x + torch.rand(2, generator=DRAWS)


@pytest.mark.parametrize("function,left", [
    (changes_class, lambda: type(ONE) is Second),
    (counts_on_a_text, lambda: WORD.count_of_calls == 1),
    (writes_through_a_view, lambda: VIEW[0] == 1),
    (draws, lambda: torch.equal(DRAWS.get_state(), once(DRAWS))),
])  # fmt: skip
def test_more_that_is_put_back(function, left):
    audit = audited(framejit.compile(function, backend="eager"), torch.ones(2))
    assert audit.calls == 1 and not audit.mismatches
    assert left()


def once(generator):
    """The state after one draw."""
    other = torch.Generator().manual_seed(generator.initial_seed())
    torch.rand(2, generator=other)
    return other.get_state()


def test_all_threads_by_an_option():
    from framejit.audit import audit_everywhere

    compiled = framejit.compile(lambda x: x + 1, backend="eager")
    with framejit.config.patch(audit=1.0):
        everywhere = audit_everywhere(1.0)
        in_thread(compiled, torch.ones(2))
        compiled(torch.ones(2))
    compiled(torch.ones(2))
    assert everywhere.calls == 2


def test_a_mismatch_can_be_an_error():
    compiled = planted(lambda x: x + 1, lambda x: x)
    with framejit.audit(on_mismatch="raise"), pytest.raises(framejit.exc.AuditMismatch) as caught:
        compiled(torch.ones(2))
    assert caught.value.identifier == "FJ0216" and "result" in str(caught.value)


@pytest.mark.parametrize("settings,error", [
    ({"rate": 0}, ValueError), ({"rate": 2}, ValueError), ({"rate": "all"}, TypeError),
    ({"budget": 0}, ValueError), ({"budget": "no"}, TypeError),
    ({"on_mismatch": "ignore"}, ValueError), ({"folder": 3}, TypeError),
    ({"rtol": -1}, ValueError), ({"atol": "1"}, TypeError), ({"gradients": "yes"}, TypeError),
])  # fmt: skip
def test_bad_arguments_are_named(settings, error):
    with pytest.raises(error, match=next(iter(settings))):
        framejit.audit(**settings)


def test_operators_that_torch_loads_when_they_are_asked_for():
    """The namespace keeps them; what asks first differs from call to call."""
    box = Box(torch.ops.aten)
    vars(torch.ops.aten).pop("special_bessel_j0", None)

    def f(x):
        return box.value.special_bessel_j0(x)

    audit = audited(framejit.compile(f, backend="eager"), ones(), calls=2)
    assert audit.calls == 2 and not audit.mismatches


@pytest.mark.parametrize("rtol", [0, 1e-5])
def test_strides_of_single_elements_count_where_results_must_be_the_same(rtol):
    """They lead nowhere, and compilers choose them as they like."""
    compiled = planted(
        lambda x: x.new_ones(2, 1), lambda x: x.new_ones(2, 1).as_strided((2, 1), (1, 7))
    )
    audit = audited(compiled, ones(), rtol=rtol, atol=rtol)
    assert len(audit.mismatches) == (rtol == 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to(torch.complex32),
        lambda x: x.real.to_sparse(),
        lambda x: x.real.to_sparse_csr(),
    ],
    ids=["halves", "sparse", "rows"],
)
def test_tensors_that_torch_does_not_compare(make):
    x = torch.tensor([[1 + 2j, 0], [0, 3j + 1]])
    exact = Tolerance(0, 0)
    Comparison(exact).compare(make(x), make(x.clone()), "x")
    with pytest.raises(Difference):
        Comparison(exact).compare(make(x), make(x * 2), "x")
