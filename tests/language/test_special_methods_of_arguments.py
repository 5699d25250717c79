"""Builtin functions, operators and methods are given objects whose class has special methods.

C code asks such an object for a number, a text, a length, ...; what the method does while it is
asked (it prints, remembers, raises, gives something else) is seen. The calls are generated: every
builtin function and every method of the builtin types, with the object in each place.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import operator
import random
import re
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque

import pytest
import torch

import framejit
from checking import CountingBackend, check
from framejit import config

X = torch.ones(2)
LOG: list[str] = []

#: What each special method gives where it is asked, and what is not accepted from it.
ANSWERS = {
    "__index__": ("2", "'a'"), "__int__": ("3", "1.5"), "__float__": ("1.5", "1"),
    "__complex__": ("2j", "1"), "__bool__": ("False", "0"), "__len__": ("1", "-1"),
    "__length_hint__": ("1", "'a'"), "__iter__": ("iter((1, 2))", "3"),
    "__next__": ("4", "None"), "__getitem__": ("[5, 6][i]", "'a'"), "__contains__": ("True", "2"),
    "__hash__": ("1", "'a'"), "__eq__": ("True", "NotImplemented"), "__lt__": ("True", "0"),
    "__format__": ("'formatted'", "3"), "__str__": ("'text'", "3"), "__repr__": ("'shown'", "3"),
    "__bytes__": ("b'ab'", "3"), "__fspath__": ("'path'", "3"), "__round__": ("7", "None"),
    "__trunc__": ("8", "None"), "__abs__": ("9", "None"), "__call__": ("10", "None"),
    "__instancecheck__": ("True", "[]"), "__subclasscheck__": ("True", "[]"),
    "__reversed__": ("[1]", "None"), "__radd__": ("11", "NotImplemented"),
    "__rmul__": ("12", "NotImplemented"), "__mul__": ("13", "NotImplemented"),
    "__rmod__": ("14", "NotImplemented"), "__divmod__": ("15", "NotImplemented"),
    "__dir__": ("['b', 'a']", "3"), "keys": ("[0, 1]", "3"),
}  # fmt: skip


def make(name, behaviour):
    """An object of a class with one special method (``keys`` comes with ``__getitem__``)."""
    good, bad = ANSWERS[name]
    lines = [f"def method(self, *args):\n    LOG.append({name!r})"]
    if name in ("__getitem__", "__next__", "__call__"):  # whoever iterates comes to an end
        lines.append("    i = args[0] if args else 0")
        lines.append("    if len(LOG) > 4: raise StopIteration if i == 0 else IndexError")
    answer = bad if behaviour == "strange" else good
    raises = behaviour == "raises"
    lines.append("    raise ValueError('refused')" if raises else f"    return {answer}")
    space = {"LOG": LOG}
    exec("\n".join(lines), space)
    body = {name: space["method"], "__module__": "program"}
    if name == "keys":
        body["__getitem__"] = lambda self, key: key
    if name == "__next__":
        body["__iter__"] = lambda self: self
    return type("Asked", (), body)()


SAMPLES = {
    str: "'abc'", bytes: "b'abc'", bytearray: "bytearray(b'abc')", list: "[3, 1, 2]",
    tuple: "(3, 1, 2)", dict: "{1: 2, 'a': 3}", set: "{1, 2}", frozenset: "frozenset({1})",
    int: "(6)", float: "2.5", complex: "1j", bool: "True", deque: "deque([1, 2], 3)",
    range: "range(5)", slice: "slice(1, 3)", OrderedDict: "OrderedDict(a=1)",
    Counter: "Counter('ab')", defaultdict: "defaultdict(list, a=[1])", type: "int",
}  # fmt: skip
_OUTSIDE = frozenset(
    ("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "exit", "globals", "help",
     "id", "input", "locals", "open", "quit", "vars", "memoryview", "super", "copyright", "credits",
     "license", "hash", "anext", "aiter", "print", "object", "property", "classmethod",
     "staticmethod")
)  # fmt: skip
_PLACES = ("d", "1, d", "d, 1", "'a', d", "d, 'a'", "[1, 2], d", "d, [1]", "d, d", "[d]", "(1, d)")


def calls():
    """The texts of all calls, ``d`` is the object."""
    for name, function in vars(builtins).items():
        wrong = isinstance(function, type) and issubclass(function, BaseException)
        if callable(function) and name not in _OUTSIDE and not wrong and name[0] != "_":
            yield from (f"{name}({arguments})" for arguments in _PLACES)
    for kind, sample in SAMPLES.items():
        for name in dir(kind):
            if (kind, name) == (defaultdict, "fromkeys"):
                continue  # it calls the class
            if name[0] != "_" and callable(getattr(kind, name)):  # the others are operators
                yield from (f"{sample}.{name}({arguments})" for arguments in _PLACES[:5])
        for op in ("+", "-", "*", "/", "//", "%", "**", "@", "<<", "&", "|", "<", "==", "in", "is"):
            yield f"{sample} {op} d"
            yield f"d {op} {sample}"
        yield f"{sample}[d]"
        yield f"{sample}[d:]"
        yield f"(lambda s: s.__setitem__(d, 1) or s)({sample})"
    for text in (
        "f'{d}'", "f'{d:>9}'", "f'{d!r}'", "'%s' % d", "'%d' % d", "'%r %s' % (d, d)",
        "'{}'.format(d)", "'{0[0]}'.format(d)", "[*d]", "{**d}", "dict(**d)", "max(*d)", "not d",
        "1 if d else 2", "d and 1", "d[0]", "d()", "-d", "~d", "d.missing", "[i for i in d]",
        "[a for a, b in [d]]", "(lambda a, *b: b)(*d)", "next(iter(d))", "operator.index(d)",
        "operator.length_hint(d)", "list(map(int, [d]))", "list(itertools.islice([1, 2, 3], d))",
        "list(itertools.repeat(1, d))", "list(itertools.chain([1], d))", "sorted([2, 1], key=d)",
        "sum([1], d)", "isinstance(3, (str, d))", "issubclass(int, (str, d))", "{d: 1}", "{d, 1}",
        "[1, 2, 3][0:d]", "int('11', d)", "round(2.567, d)", "'a' * d", "d * [1]", "' '.join([d])",
        "b''.join([d])", "x.sum(d)", "x + d", "x[d]", "torch.zeros(d)", "x.reshape(d)", "x * d",
        "torch.full((2,), d)", "x.view([d, 1])", "x.unsqueeze(d)",
    ):  # fmt: skip
        yield text


CALLS = list(dict.fromkeys(calls()))
CASES = list(itertools.product(CALLS, ANSWERS, ("", "strange", "raises")))
_NAMES = {
    "torch": torch, "operator": operator, "itertools": itertools, "deque": deque,
    "OrderedDict": OrderedDict, "Counter": Counter, "defaultdict": defaultdict,
    "__name__": "program",
}  # fmt: skip


#: Whose message names another class than the one of the object.
_ARITY = re.compile(r"takes (no|at least|at most|exactly|from)? ?.*argument")


def outcome(function, d):
    """What the call gives, as a text, with what the method did."""
    LOG.clear()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        y, answer = function(X, d)
    noted = list(LOG)
    try:
        shown = f"{type(answer).__name__} {answer!r}"
    except Exception as error:
        shown = f"{type(answer).__name__} {type(error).__name__}"
    return y.tolist(), re.sub("0x[0-9a-f]+", "", shown), noted, out.getvalue()


def differing(cases):
    """The cases in which the compiled program does something else."""
    wrong = []
    with config.patch(raise_internal_errors=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, name, behaviour in cases:
            namespace = dict(_NAMES)
            text = (
                f"def program(x, d):\n    try:\n        r = {call}\n"
                "    except Exception as e:\n        r = type(e), str(e)\n    return x + 1, r\n"
            )
            exec(text, namespace)
            expected = outcome(namespace["program"], make(name, behaviour))
            try:
                compiled = framejit.compile(namespace["program"], backend="eager")
                found = outcome(compiled, make(name, behaviour))
            except Exception as error:
                found = type(error), str(error)
            if found != expected and not _ARITY.search(expected[1]):
                wrong.append((call, name, behaviour, expected, found))
            framejit.reset()
    return wrong


def test_a_sample():
    assert not differing(random.Random(7).sample(CASES, 150))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(60))
def test_all(start):
    assert not differing(CASES[start::60])


class Seen:
    """Notes what is asked of it."""

    log: list = []
    n = 1

    def __getattribute__(self, name):
        Seen.log.append(name)
        return object.__getattribute__(self, name)

    def __hash__(self):
        Seen.log.append("hash")
        return 1

    def __eq__(self, other):
        Seen.log.append("eq")
        return self is other


class SeenDescriptor(Seen):
    def __get__(self, owner, cls=None):
        Seen.log.append("get")
        return 5


class HasSeen:
    plain, descriptor = Seen(), SeenDescriptor()


class SeenMeta(type):
    descriptor = SeenDescriptor()


class WithMeta(metaclass=SeenMeta):
    plain = Seen()


def attributes(x, o):
    return x * o.descriptor, HasSeen.descriptor, WithMeta.descriptor, o.plain, WithMeta.plain


def own_dict(x, o):
    return x * o.n


def compare_what_is_seen(function, arguments, graphs) -> None:
    """Calls of both kinds, with a recompile for each of the arguments."""
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    logs = []
    for call in (function, compiled):
        results = []
        for argument in arguments():
            Seen.log.clear()
            call(torch.ones(1), argument)
            results.append(list(Seen.log))
        logs.append(results)
    assert logs[0] == logs[1]
    assert len(backend.graphs) == graphs


def test_attributes_of_classes_are_not_asked_for_their_class():
    def arguments():
        yield HasSeen()
        other = HasSeen()
        other.plain = 3
        yield other

    HasSeen.plain, WithMeta.plain = Seen(), Seen()
    compare_what_is_seen(attributes, arguments, graphs=2)


def test_failing_guards_do_not_ask_objects():
    """To say which guard failed, values are read and shown."""

    def arguments():
        for value in (1, 2.5, torch.ones(2), True):
            held = Held()
            held.n = value
            yield held

    class Held(Seen):
        pass

    compare_what_is_seen(own_dict, arguments, graphs=4)


@pytest.mark.parametrize("wanted", [Seen, (int, Seen), int | Seen, int, HasSeen])
def test_proxies_are_instances_of_their_targets_class(wanted):
    target = HasSeen()
    proxy = weakref.proxy(target)

    def program(x):
        return x * 2, isinstance(proxy, wanted)

    check(program, torch.ones(1), graphs=1, ops=1)
