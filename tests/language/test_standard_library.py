"""Modules of the standard library in programs: what they do, and that a break keeps the order."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import heapq
import importlib
import inspect
import logging
import numbers
import os
import random
import re
import threading
import time
import types
import typing
import warnings
import weakref

import pytest
import torch

import framejit
from checking import CountingBackend, check
from framejit.report import events

X = torch.arange(6.0).reshape(2, 3)

variable = contextvars.ContextVar("variable", default=2)
unset = contextvars.ContextVar("unset")
lock = threading.Lock()
again = threading.RLock()
log = logging.getLogger("tests.language")


class Node:
    pass


kept = Node()


@dataclasses.dataclass(frozen=True)
class Key:
    a: int
    b: str = "x"


@dataclasses.dataclass
class Record:
    a: int
    items: list = dataclasses.field(default_factory=list)


def parameters(a, b=3, *c, d, **e): ...


def random_numbers_after_a_seed(x):
    random.seed(3)
    return x * random.random() + random.randint(1, 5) + random.choice([1, 2, 3])


def random_shuffles_and_samples(x):
    items = [1, 2, 3, 4]
    random.seed(1)
    random.shuffle(items)
    more = random.uniform(1, 2), random.gauss(0, 1), random.sample(range(10), 3)
    return x + items[0] * 10 + items[1], more


def object_of_random_numbers(x):
    source = random.Random(5)
    return x * source.random() + source.randrange(10)


def state_of_random_numbers(x):
    random.seed(2)
    state = random.getstate()
    first = random.random()
    random.setstate(state)
    return x + first, random.random() == first


def warning_in_the_middle(x):
    y = x + 1
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("first", UserWarning)
        y = y * 2
        warnings.warn("second", DeprecationWarning)
    return y, [str(w.message) for w in seen], [w.category.__name__ for w in seen]


def warning_as_error(x):
    y = x + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("bad")
        except UserWarning as error:
            y = y * len(str(error))
    return y


def log_that_nobody_wants(x):
    y = x + 1
    log.debug("unseen %s", y.shape)
    return y * 2


class Printing(logging.Handler):
    def emit(self, record):
        print("log:", record.getMessage())


def logs_and_prints_in_order(x):
    handler = Printing()
    log.addHandler(handler)
    try:
        y = x + 1
        print("one")
        log.warning("two %d", 2)
        y = y * 2
        print("three")
        log.error("four")
    finally:
        log.removeHandler(handler)
    return y - 1


def weak_reference_is_made(x):
    reference = weakref.ref(kept)
    return x + 1 if reference() is kept else x


def weak_keys(x):
    table = weakref.WeakKeyDictionary()
    table[kept] = 3
    return x + table[kept], len(table)


def weak_values(x):
    table = weakref.WeakValueDictionary()
    table["k"] = kept
    return x + (table["k"] is kept)


def copies_of_containers(x):
    one = [1, [2, {"a": 3}]]
    two, three = copy.copy(one), copy.deepcopy(one)
    one[1][1]["a"] = 9
    return x + two[1][1]["a"], three, two[1] is one[1]


def deep_copy_of_an_object(x):
    record = Record(3, [1, 2])
    twin = copy.deepcopy(record)
    twin.items.append(4)
    return x + len(record.items), twin.items, copy.copy(record).items is record.items


def signature_of_a_function(x):
    found = inspect.signature(parameters)
    kinds = [p.kind.name for p in found.parameters.values()]
    return x + len(kinds), kinds, str(found)


def bound_signature(x):
    bound = inspect.signature(parameters).bind(1, d=4)
    bound.apply_defaults()
    return x + bound.arguments["b"], bound.args, bound.kwargs


def classes_of_typing(x):
    n = typing.cast(int, 3)
    hints = typing.get_type_hints(Record)
    origin = typing.get_origin(typing.List[int]), typing.get_args(typing.Dict[str, int])
    return x + n, hints["a"] is int, origin


def abstract_numbers(x):
    return x + isinstance(3, numbers.Number) + isinstance(3.0, numbers.Integral)


def context_variable_is_set(x):
    y = x + variable.get()
    token = variable.set(4)
    y = y * variable.get()
    variable.reset(token)
    return y + variable.get(), unset.get("none")


def context_variable_without_value(x):
    try:
        unset.get()
    except LookupError:
        return x + 1
    return x


def context_variable_across_a_break(x):
    token = variable.set(x + 1)
    print("set")
    y = variable.get() * 2
    variable.reset(token)
    return y, variable.get()


def context_variable_set_in_a_callee(x):
    @contextlib.contextmanager
    def scope(value):
        token = variable.set(value)
        try:
            yield
        finally:
            variable.reset(token)

    with scope(5):
        with scope(7):
            y = x + variable.get()
        y = y + variable.get()
    return y + variable.get()


def locks_keep_others_out(x):
    with lock:
        y = x + 1
        held = lock.locked()
    with again:
        y = y * 2
    return y, held, lock.locked()


def identities_of_objects(x):
    one, two = [1], [1]
    seen = {id(one): "one", id(two): "two"}
    return x + (id(one) == id(one)) + (id(one) == id(two)), seen[id(two)], id(x) in seen


def visited_by_identity(x):
    shared = [x]
    visited, total = set(), 0

    def walk(item):
        nonlocal total
        if id(item) in visited:
            return
        visited.add(id(item))
        total += 1
        for part in item if isinstance(item, list) else ():
            walk(part)

    walk([shared, shared, [shared]])
    return x + total


def hashes_of_texts(x):
    same = hash("a") == hash("a"), hash((1, "b")) == hash((1, "b")), hash(None) == hash(None)
    return x + 1, same


def frozen_dataclass_as_key(x):
    table = {Key(1): x, Key(2, "y"): x * 2}
    return table[Key(1)] + table[Key(2, "y")], Key(3) in table, len({Key(1), Key(1)})


def representation_of_a_dataclass(x):
    return x + 1, repr(Record(1, [2])), str(Key(2)), f"{Key(3)!r:>20}"


def exit_stack_is_unwound(x):
    done = []
    with contextlib.ExitStack() as stack:
        value = stack.enter_context(contextlib.nullcontext(3))
        stack.callback(done.append, "first")
        stack.callback(done.append, "second")
        y = x + value
    return y * 2, done


def exit_stack_swallows(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(ValueError))
        y = x + 1
        raise ValueError("no")
    return y * 2


def exit_stack_across_a_break(x):
    done = []
    with contextlib.ExitStack() as stack:
        stack.callback(done.append, "out")
        y = x + 1
        print(done)
        y = y * 2
    return y, done


def operating_system_error(x):
    try:
        raise FileNotFoundError(2, "gone", "name")
    except OSError as error:
        return x + error.errno, str(error), error.filename, error.strerror, error.args


def operating_system_error_by_number(x):
    error = OSError(13, "no")
    return x + 1, type(error).__name__, isinstance(error, PermissionError), str(error)


def decoding_error(x):
    try:
        raise UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "why")
    except ValueError as error:
        return x + error.start, str(error), error.reason, error.object


def exception_group_is_raised(x):
    group = ExceptionGroup("several", [ValueError(1), KeyError("k")])
    return x + len(group.exceptions), str(group), group.message, repr(group.exceptions[1])


def exception_group_is_split(x):
    y = x + 1
    try:
        raise ExceptionGroup("several", [ValueError(1), KeyError("k")])
    except* ValueError as group:
        y = y * len(group.exceptions)
    except* KeyError:
        y = y + 5
    return y


#: (program, graphs, operations captured)
PROGRAMS = [
    (random_numbers_after_a_seed, 3, 3), (random_shuffles_and_samples, 1, 2),
    (object_of_random_numbers, 2, 2), (state_of_random_numbers, 1, 1),
    (warning_in_the_middle, 2, 2), (warning_as_error, 2, 2), (log_that_nobody_wants, 2, 2),
    (logs_and_prints_in_order, 3, 3), (weak_reference_is_made, 1, 1), (weak_keys, 1, 1),
    (weak_values, 1, 1), (copies_of_containers, 1, 1), (deep_copy_of_an_object, 1, 1),
    (signature_of_a_function, 1, 1), (bound_signature, 1, 1), (classes_of_typing, 1, 1),
    (abstract_numbers, 1, 2), (context_variable_is_set, 1, 3),
    (context_variable_without_value, 1, 1), (context_variable_across_a_break, 2, 2),
    (context_variable_set_in_a_callee, 1, 3), (locks_keep_others_out, 2, 2),
    (identities_of_objects, 1, 2), (visited_by_identity, 1, 1), (hashes_of_texts, 1, 1),
    (frozen_dataclass_as_key, 1, 2), (representation_of_a_dataclass, 1, 1),
    (exit_stack_is_unwound, 1, 2), (exit_stack_swallows, 1, 2), (exit_stack_across_a_break, 2, 2),
    (operating_system_error, 1, 1), (operating_system_error_by_number, 1, 1),
    (decoding_error, 1, 1), (exception_group_is_raised, 1, 1), (exception_group_is_split, 3, 3),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


def measured(x):
    start = time.perf_counter()
    y = x + 1
    took = time.perf_counter() - start
    return y * 2, took >= 0


def test_measured_time_does_not_recompile_each_call():
    backend = CountingBackend()
    compiled = framejit.compile(measured, backend=backend)
    for _ in range(3):
        y, positive = compiled(X)
        assert torch.equal(y, (X + 1) * 2) and positive
    graphs = len(backend.graphs)
    with events.recording(events.CaptureStart) as captures:
        for _ in range(5):
            compiled(X)
    assert len(backend.graphs) == graphs and not captures


@pytest.mark.parametrize("calls", [1, 3])
def test_the_same_draws_as_eager(calls):
    def draw(x):
        return x * random.random(), [random.randint(0, 9) for _ in range(3)]

    compiled = framejit.compile(draw, backend="eager")
    random.seed(11)
    expected = [draw(X) for _ in range(calls)], random.random()
    random.seed(11)
    got = [compiled(X) for _ in range(calls)], random.random()
    torch.testing.assert_close(got, expected)


_NAME = re.compile(r"layer(\d+)\.(?P<kind>\w+)")


def _matches(x, names):
    """Patterns and known texts: what is found is known."""
    out = []
    for name in names:
        found = _NAME.match(name)
        if not found:
            continue
        number, kind = found.group(1), found.group("kind")
        out.append(x * int(number) + (1 if kind == "bias" else 0))
        out.append((found.groups(), found.groupdict(), found.span(), found.start(1)))
    words = re.split(r"\W+", "a, b;c")
    return (
        out, words, _NAME.findall(names[0]), re.sub("a", "b", "banana"),
        re.search("z", "abc") is None, re.fullmatch(r"\d+", "12") is not None,
        _NAME.sub(r"\2", names[0]), re.subn("n", "m", "banana"),
    )  # fmt: skip


class _Version(str):
    """What the program compares it with does not matter to patterns."""

    def __eq__(self, other):
        raise AssertionError("not asked")

    __hash__ = str.__hash__


_VERSION = _Version("2.13.0+git")


def _searches_own_text(x):
    found = re.search(r"(\d+)\.(\d+)", _VERSION)
    version = re.match(r"(\d+)", torch.__version__)
    return x * int(version.groups()[0]), found.groups(), found.string is _VERSION


def test_patterns_in_texts_of_subclasses():
    check(_searches_own_text, X, graphs=1, ops=1, fullgraph=True)


def test_patterns():
    check(_matches, X, ["layer1.weight", "other", "layer2.bias"], graphs=1, ops=4, fullgraph=True)


def _replaces_by_calling(x):
    return x + 1, re.sub("a", lambda m: m.group().upper(), "banana")


def test_a_replacement_that_is_a_function():
    check(_replaces_by_calling, X, graphs=1, ops=1)


def test_heaps_of_a_subclass_use_the_methods_of_list():
    class Heap(list):
        def append(self, item):
            raise AssertionError

        pop = __len__ = __getitem__ = __setitem__ = append

    def work(x):
        q = Heap([4, 2, 7, 1])
        heapq.heapify(q)
        heapq.heappush(q, 0)
        heapq.heappushpop(q, 3)
        out = [heapq.heappop(q), heapq.heapreplace(q, 5), *q]
        for bad in ((1, 2), collections.deque([1]), None):
            try:
                out.append(heapq.heappop(bad))
            except TypeError:
                out.append("not a list")
        return x + 1, out

    check(work, torch.ones(2), graphs=1, ops=1, fullgraph=True)


def test_mapping_proxies_are_not_copied():
    def copied(x):
        try:
            return copy.copy(types.MappingProxyType({"a": 1}))
        except TypeError as error:
            return x + 1, str(error)

    check(copied, torch.ones(2), graphs=1, ops=1, fullgraph=True)


def test_copies_of_partials_share_their_attributes():
    existing = functools.partial(max, 1)
    existing.mark = 1

    def f(x):
        made, plain = functools.partial(max, 1), functools.partial(min, 2)
        made.mark = x.shape[0]
        shared, deep, other = copy.copy(made), copy.deepcopy(made), copy.copy(plain)
        shared.more = 2
        seen = made.__dict__, vars(shared) is vars(made), deep.__dict__, other(1), other is plain
        return x + 1, seen, vars(copy.copy(existing)) is vars(existing)

    def of_plain_ones(x):
        plain = functools.partial(min, 2)
        return x + 1, copy.copy(plain)(1), copy.deepcopy(plain)(5), copy.copy(plain) is plain

    check(f, torch.ones(2), graphs=1, ops=1)
    check(of_plain_ones, torch.ones(2), graphs=1, ops=1)


def test_signatures_of_functions_whose_defaults_change():
    def g(a, b=1, *, c=2):
        return a

    x = torch.ones(2)

    def f(x):
        return x + 1, str(inspect.signature(g))

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    assert repr(compiled(x)) == repr(f(x))
    g.__defaults__ = (5,)
    assert repr(compiled(x)) == repr(f(x))
    g.__kwdefaults__ = {"c": 6}
    assert repr(compiled(x)) == repr(f(x))


def test_submodules_that_are_imported_by_the_first_call(tmp_path, monkeypatch):
    package = tmp_path / "lazy_package"
    package.mkdir()
    (package / "__init__.py").write_text("def number():\n    from . import one\n    return one.K\n")
    (package / "one.py").write_text("K = 1\n")
    (package / "two.py").write_text("K = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    lazy_package = importlib.import_module("lazy_package")

    def relative(a):
        return a * lazy_package.number()

    def absolute(a):
        from lazy_package import two

        return a * two.K

    for function in (relative, absolute):
        compiled = framejit.compile(function, backend="eager")
        got = [compiled(torch.ones(2)) for _ in range(2)]
        assert all(torch.equal(one, function(torch.ones(2))) for one in got)


def test_signatures_of_classes_whose_constructors_change():
    class Box:
        def __init__(self, a):
            pass

    x = torch.ones(2)

    def f(x):
        return x + 1, str(inspect.signature(Box))

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    assert repr(compiled(x)) == repr(f(x))
    Box.__init__ = lambda self, a, b=2: None
    assert repr(compiled(x)) == repr(f(x))
    del Box.__init__
    Box.__new__ = lambda cls, *, c: object.__new__(cls)
    assert repr(compiled(x)) == repr(f(x))


def test_signatures_of_classes_follow_bases_metaclasses_and_signatures():
    class Meta(type):
        pass

    class Base(metaclass=Meta):
        def __init__(self, a):
            pass

    class Box(Base):
        pass

    x = torch.ones(2)

    def f(x):
        return x + 1, list(inspect.signature(Box).parameters)

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    assert repr(compiled(x)) == repr(f(x))
    Box.__init__ = lambda self, b, c: None
    assert repr(compiled(x)) == repr(f(x))
    Meta.__call__ = lambda cls, d: None
    assert repr(compiled(x)) == repr(f(x))
    Box.__signature__ = inspect.Signature()
    assert repr(compiled(x)) == repr(f(x))


def test_context_variables_that_are_set_and_replaced():
    one = contextvars.ContextVar("one", default=2)
    box = [one]

    def f(x):
        before = box[0].get()
        box[0].set(before + 1)
        return x * before

    compiled, x = framejit.compile(f, backend="eager", fullgraph=True), torch.ones(1)
    assert [compiled(x).item(), one.get()] == [2, 3]
    assert [compiled(x).item(), one.get()] == [3, 4]
    box[0] = contextvars.ContextVar("other", default=7)
    assert [compiled(x).item(), one.get(), box[0].get()] == [7, 4, 8]


class Place:
    def __str__(self):
        return "place"

    def __fspath__(self):
        return "q/r"


@pytest.mark.parametrize("path", ["a/c.t", "", b"a//b/../c", Place(), 3], ids=str)
def test_names_of_files(path):
    def program(x):
        joined = os.path.join(path, path) if isinstance(path, str) else None
        parts = os.path.basename(path), os.path.dirname(path), os.path.splitext(path)
        same = os.fspath(path=path) is path
        return joined, parts, same, os.path.normpath(path) if same else None, x + 1

    check(program, torch.ones(2), graphs=0 if path == 3 else 1, ops=0 if path == 3 else 1)


def test_what_context_variables_refuse():
    def program(x):
        found = [unset.get(7), variable.get(), variable.get(8)]
        for given in ((), (1, 2)):
            try:
                found.append(unset.get(*given))
            except (TypeError, LookupError) as error:
                found.append(type(error))
        return x + 1, found

    check(program, torch.ones(2), graphs=1, ops=1)
