"""The truth about every public name of seven modules: captured, or a graph break and why.

`NAMES` maps a module to its names. A plain function is a program that uses the name and is captured
as one graph; `Break` is a program whose use of the name is a graph break with this reason. Each
takes a tensor ``x``. `test_names` checks that nothing is missing and that each row is true;
docs/coverage.md is made from this file by docs/coverage.py.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple


class Break(NamedTuple):
    """A program that breaks, and a part of the reason."""

    program: Callable[[Any], Any]
    reason: str


class Thing:
    """An object with attributes, and a context manager."""

    def __init__(self, value=2):
        self.value = value

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is KeyError

    def close(self):
        self.value = -1

    def __index__(self):
        return self.value


def caught(x, kind, *args):
    """Raises and catches; the exception is looked at."""
    try:
        raise kind(*(args or ("message",)))
    except kind as error:
        return x + len(error.args), str(error), type(error).__name__, repr(error)


def assigned(x):
    thing = Thing()
    setattr(thing, "value", x + 1)
    setattr(thing, "other", 3)
    delattr(thing, "other")
    return thing.value, hasattr(thing, "other")


class WithClassmethod:
    @classmethod
    def make(cls, x):
        return cls.__name__, x + 1

    @staticmethod
    def plain(x):
        return x * 2

    @property
    def half(self):
        return 0.5

    @functools.cached_property
    def doubled(self):
        return 2

    def power(self, n, x):
        return x**n

    squared = functools.partialmethod(power, 2)

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "int"


class Child(WithClassmethod):
    def power(self, n, x):
        return super().power(n, x) + 1


@functools.singledispatch
def described(value):
    return "any"


@described.register
def _(value: int):
    return "int"


@functools.lru_cache(maxsize=4)
def cached_square(n):
    return n * n


@functools.cache
def cached_cube(n):
    return n**3


@functools.total_ordering
class Ordered:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


def wrapped(x):
    def outer(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args) + 1

        return inner

    @outer
    def named(v):
        """text"""
        return v * 2

    return named(x), named.__name__, named.__doc__


def updated(x):
    def one(v):
        return v + 1

    def two(v):
        return v * 2

    functools.update_wrapper(one, two)
    return one(x), one.__name__


@contextlib.contextmanager
def doubling(value):
    yield value * 2


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *details):
        return False


@Decorating()
def decorated(x):
    return x + 1


class Manager(contextlib.AbstractContextManager):
    def __exit__(self, *details):
        return None


def within(manager, x):
    with manager as value:
        y = x + 1
    return y, value


def within_stack(x):
    with contextlib.ExitStack() as stack:
        value = stack.enter_context(doubling(x))
        stack.callback(Thing.close, Thing())
        y = value + 1
    return y


def suppressed(x):
    with contextlib.suppress(KeyError):
        y = x + 1
        {}["missing"]
    return y


def pushed(x):
    queue = collections.deque([1, 2], maxlen=3)
    queue.appendleft(x)
    queue.rotate(1)
    queue.extend([4])
    return list(queue), queue.maxlen, x + 1


def ordered_dict(x):
    d = collections.OrderedDict(a=x, b=2)
    d.move_to_end("a")
    return list(d), d.popitem(last=False), d, x + 1


def default_dict(x):
    d = collections.defaultdict(list)
    d["a"].append(x + 1)
    return d["a"], d["b"], len(d)


def sliced(items, i, value):
    operator.setitem(items, i, value)
    operator.delitem(items, 0)
    return items


def consumed(x):
    iterator = iter([x, x + 1])
    return next(iterator), next(iterator), next(iterator, None)


def bytes_changed(x):
    data = bytearray(b"ab")
    data.append(99)
    return x + len(data)


BUILTINS: dict[str, Any] = {
    "False": lambda x: x + 1 if not False else x,
    "True": lambda x: x + True,
    "None": lambda x: (x + 1, None is None),
    "Ellipsis": lambda x: x[Ellipsis, 0] + 1,
    "NotImplemented": lambda x: (x + 1, NotImplemented is NotImplemented),
    "abs": lambda x: abs(x) + abs(-3),
    "aiter": Break(lambda x: (x + 1, aiter(x)), "C function aiter()"),
    "all": lambda x: x + all([1, True, "a"]),
    "anext": Break(lambda x: (x + 1, anext(x)), "C function anext()"),
    "any": lambda x: x + any(n > 2 for n in (1, 3)),
    "ascii": lambda x: (x + 1, ascii("\xe9")),
    "bin": lambda x: (x + 1, bin(5)),
    "bool": lambda x: x + bool([1]),
    "breakpoint": Break(lambda x: (x + 1, breakpoint()), "breakpoint() stops in a debugger"),
    "bytearray": Break(bytes_changed, "making a builtins.bytearray"),
    "bytes": lambda x: (x + 1, bytes([1, 2]), b"a".hex()),
    "callable": lambda x: x + callable(len) + callable(3),
    "chr": lambda x: (x + 1, chr(65)),
    "classmethod": lambda x: WithClassmethod.make(x),
    "compile": Break(lambda x: (x + 1, compile("1", "f", "eval").co_name), "compile() makes code"),
    "complex": lambda x: (x + 1, complex(1, 2).imag),
    "copyright": Break(lambda x: (x + 1, str(copyright)[:9]), "calling _Printer.__repr__()"),
    "credits": Break(lambda x: (x + 1, str(credits)[:9]), "calling _Printer.__repr__()"),
    "delattr": assigned,
    "dict": lambda x: dict(a=x + 1, b=2) | {"c": 3},
    "dir": Break(lambda x: (x + 1, dir(Thing())[-1]), "dir()"),
    "divmod": lambda x: x + divmod(7, 2)[1],
    "enumerate": lambda x: [x + i for i, _ in enumerate("ab", 1)],
    "eval": Break(lambda x: x + eval("1 + 1"), "eval() runs code that is not known"),
    "exec": Break(lambda x: (x + 1, exec("pass")), "exec() runs code that is not known"),
    "exit": Break(lambda x: (x + 1, repr(exit)[:3]), "calling Quitter.__repr__()"),
    "filter": lambda x: [x + n for n in filter(None, [0, 1, 2])],
    "float": lambda x: x + float("1.5"),
    "format": lambda x: (x + 1, format(3.14159, ".2f")),
    "frozenset": lambda x: (x + 1, frozenset([1, 2]) | {3}),
    "getattr": lambda x: x + getattr(Thing(), "value") + getattr(Thing(), "no", 1),
    "globals": lambda x: x + len(globals()) * 0,
    "hasattr": lambda x: x + hasattr(Thing(), "value") + hasattr(x, "no"),
    "hash": lambda x: x + (hash("a") == hash("a")) + hash(3),
    "help": Break(lambda x: (x + 1, repr(help)[:4]), "calling _Helper.__repr__()"),
    "hex": lambda x: (x + 1, hex(255)),
    "id": lambda x: x + (id(Thing) == id(Thing)),
    "input": Break(lambda x: (x + 1, input() is None), "input() reads from the outside"),
    "int": lambda x: x + int("12") + int(2.7),
    "isinstance": lambda x: x + isinstance(x, (list, type(x))),
    "issubclass": lambda x: x + issubclass(bool, int),
    "iter": lambda x: [x + n for n in iter([3, 2, 1])],
    "len": lambda x: x + len([1, 2]) + len(x),
    "license": Break(lambda x: (x + 1, repr(license)[:4]), "calling _Printer.__repr__()"),
    "list": lambda x: list((x + 1, 2)),
    "locals": Break(lambda x: (x + 1, len(locals())), "locals() gives the frame's variables"),
    "map": lambda x: list(map(lambda a, b: a + b, [x, 1], [2, 3])),
    "max": lambda x: x + max(1, 3, 2) + max([1, -4], key=abs),
    "memoryview": Break(lambda x: (x + 1, len(memoryview(b"ab"))), "making a builtins.memoryview"),
    "min": lambda x: x + min([4, 2]) + min([], default=1),
    "next": consumed,
    "object": lambda x: (x + 1, object() is object()),
    "oct": lambda x: (x + 1, oct(8)),
    "open": Break(lambda x: (x + 1, open("/dev/null").close()), "open() reads from the outside"),
    "ord": lambda x: x + ord("a"),
    "pow": lambda x: pow(x, 2) + pow(3, 2, 5),
    "print": Break(lambda x: (x + 1, print("text")), "print() writes to the outside"),
    "property": lambda x: x * WithClassmethod().half,
    "quit": Break(lambda x: (x + 1, repr(quit)[:3]), "calling Quitter.__repr__()"),
    "range": lambda x: sum(x + i for i in range(1, 6, 2)),
    "repr": lambda x: (x + 1, repr([1, "a"])),
    "reversed": lambda x: [x + n for n in reversed([1, 2])],
    "round": lambda x: x + round(2.567, 1) + round(2.5),
    "set": lambda x: x + len({1, 2} | set([2, 3])),
    "setattr": assigned,
    "slice": lambda x: x[slice(0, 1)] + slice(1, 2).stop,
    "sorted": lambda x: [x + n for n in sorted([3, 1, 2], key=lambda n: -n)],
    "staticmethod": lambda x: WithClassmethod.plain(x),
    "str": lambda x: (x + 1, str(3) + "a".upper()),
    "sum": lambda x: sum([x, x + 1], 2),
    "super": lambda x: Child().power(2, x),
    "tuple": lambda x: tuple([x + 1, 2]),
    "type": lambda x: (x + 1, type(3) is int, type("Made", (), {"a": 1}).a),
    "vars": lambda x: (x + 1, vars(Thing())),
    "zip": lambda x: [x + a + b for a, b in zip([1, 2], [3, 4], strict=True)],
    "ArithmeticError": lambda x: caught(x, ArithmeticError),
    "AssertionError": lambda x: caught(x, AssertionError),
    "AttributeError": lambda x: caught(x, AttributeError),
    "BaseException": lambda x: caught(x, BaseException),
    "BaseExceptionGroup": lambda x: caught(x, BaseExceptionGroup, "m", [KeyboardInterrupt()]),
    "BlockingIOError": lambda x: caught(x, BlockingIOError),
    "BrokenPipeError": lambda x: caught(x, BrokenPipeError),
    "BufferError": lambda x: caught(x, BufferError),
    "BytesWarning": lambda x: caught(x, BytesWarning),
    "ChildProcessError": lambda x: caught(x, ChildProcessError),
    "ConnectionAbortedError": lambda x: caught(x, ConnectionAbortedError),
    "ConnectionError": lambda x: caught(x, ConnectionError),
    "ConnectionRefusedError": lambda x: caught(x, ConnectionRefusedError),
    "ConnectionResetError": lambda x: caught(x, ConnectionResetError),
    "DeprecationWarning": lambda x: caught(x, DeprecationWarning),
    "EOFError": lambda x: caught(x, EOFError),
    "EncodingWarning": lambda x: caught(x, EncodingWarning),
    "EnvironmentError": lambda x: caught(x, EnvironmentError, 5, "input"),
    "Exception": lambda x: caught(x, Exception, 1, "two"),
    "ExceptionGroup": lambda x: caught(x, ExceptionGroup, "m", [ValueError(1)]),
    "FileExistsError": lambda x: caught(x, FileExistsError),
    "FileNotFoundError": lambda x: caught(x, FileNotFoundError, 2, "gone", "name"),
    "FloatingPointError": lambda x: caught(x, FloatingPointError),
    "FutureWarning": lambda x: caught(x, FutureWarning),
    "GeneratorExit": lambda x: caught(x, GeneratorExit),
    "IOError": lambda x: caught(x, IOError),
    "ImportError": lambda x: caught(x, ImportError),
    "ImportWarning": lambda x: caught(x, ImportWarning),
    "IndentationError": lambda x: caught(x, IndentationError),
    "IndexError": lambda x: caught(x, IndexError),
    "InterruptedError": lambda x: caught(x, InterruptedError),
    "IsADirectoryError": lambda x: caught(x, IsADirectoryError),
    "KeyError": lambda x: caught(x, KeyError),
    "KeyboardInterrupt": lambda x: caught(x, KeyboardInterrupt),
    "LookupError": lambda x: caught(x, LookupError),
    "MemoryError": lambda x: caught(x, MemoryError),
    "ModuleNotFoundError": lambda x: caught(x, ModuleNotFoundError),
    "NameError": lambda x: caught(x, NameError),
    "NotADirectoryError": lambda x: caught(x, NotADirectoryError),
    "NotImplementedError": lambda x: caught(x, NotImplementedError),
    "OSError": lambda x: caught(x, OSError),
    "OverflowError": lambda x: caught(x, OverflowError),
    "PendingDeprecationWarning": lambda x: caught(x, PendingDeprecationWarning),
    "PythonFinalizationError": lambda x: caught(x, PythonFinalizationError),  # noqa: F821
    "PermissionError": lambda x: caught(x, PermissionError),
    "ProcessLookupError": lambda x: caught(x, ProcessLookupError),
    "RecursionError": lambda x: caught(x, RecursionError),
    "ReferenceError": lambda x: caught(x, ReferenceError),
    "ResourceWarning": lambda x: caught(x, ResourceWarning),
    "RuntimeError": lambda x: caught(x, RuntimeError),
    "RuntimeWarning": lambda x: caught(x, RuntimeWarning),
    "StopAsyncIteration": lambda x: caught(x, StopAsyncIteration),
    "StopIteration": lambda x: caught(x, StopIteration),
    "SyntaxError": lambda x: caught(x, SyntaxError),
    "SyntaxWarning": lambda x: caught(x, SyntaxWarning),
    "SystemError": lambda x: caught(x, SystemError),
    "SystemExit": lambda x: caught(x, SystemExit),
    "TabError": lambda x: caught(x, TabError),
    "TimeoutError": lambda x: caught(x, TimeoutError),
    "TypeError": lambda x: caught(x, TypeError),
    "UnboundLocalError": lambda x: caught(x, UnboundLocalError),
    "UnicodeDecodeError": lambda x: caught(x, UnicodeDecodeError, "utf-8", b"a", 0, 1, "why"),
    "UnicodeEncodeError": lambda x: caught(x, UnicodeEncodeError, "utf-8", "a", 0, 1, "why"),
    "UnicodeError": lambda x: caught(x, UnicodeError),
    "UnicodeTranslateError": lambda x: caught(x, UnicodeTranslateError, "a", 0, 1, "why"),
    "UnicodeWarning": lambda x: caught(x, UnicodeWarning),
    "UserWarning": lambda x: caught(x, UserWarning),
    "ValueError": lambda x: caught(x, ValueError),
    "Warning": lambda x: caught(x, Warning),
    "ZeroDivisionError": lambda x: caught(x, ZeroDivisionError),
}

ITERTOOLS: dict[str, Any] = {
    "accumulate": lambda x: list(itertools.accumulate([x, x, x], lambda a, b: a + b, initial=1)),
    "batched": lambda x: [x + sum(part) for part in itertools.batched([1, 2, 3], 2)],
    "chain": lambda x: [x + n for n in itertools.chain([1], itertools.chain.from_iterable([[2]]))],
    "combinations": lambda x: [x + a * b for a, b in itertools.combinations([1, 2, 3], 2)],
    "combinations_with_replacement": lambda x: [
        x + a * b for a, b in itertools.combinations_with_replacement([1, 2], 2)
    ],
    "compress": lambda x: [x + n for n in itertools.compress([1, 2, 3], [1, 0, 1])],
    "count": lambda x: [x + n for n, _ in zip(itertools.count(2, 3), "abc")],
    "cycle": lambda x: [x + n for n, _ in zip(itertools.cycle([1, 2]), "abc")],
    "dropwhile": lambda x: [x + n for n in itertools.dropwhile(lambda n: n < 2, [1, 2, 1])],
    "filterfalse": lambda x: [x + n for n in itertools.filterfalse(lambda n: n % 2, range(4))],
    "groupby": lambda x: [(k, [x + n for n in g]) for k, g in itertools.groupby([1, 1, 2])],
    "islice": lambda x: [x + n for n in itertools.islice(range(9), 1, 6, 2)],
    "pairwise": lambda x: [x + a * b for a, b in itertools.pairwise([1, 2, 3])],
    "permutations": lambda x: [x + a - b for a, b in itertools.permutations([1, 2, 3], 2)],
    "product": lambda x: [x + a * b for a, b in itertools.product([1, 2], repeat=2)],
    "repeat": lambda x: [x + n for n in itertools.repeat(3, 2)],
    "starmap": lambda x: list(itertools.starmap(lambda a, b: x + a * b, [(1, 2), (3, 4)])),
    "takewhile": lambda x: [x + n for n in itertools.takewhile(lambda n: n < 2, [1, 2, 1])],
    "tee": lambda x: [x + a + b for a, b in zip(*itertools.tee([1, 2]))],
    "zip_longest": lambda x: [
        x + a + b for a, b in itertools.zip_longest([1, 2], [3], fillvalue=0)
    ],
}

FUNCTOOLS: dict[str, Any] = {
    "WRAPPER_ASSIGNMENTS": lambda x: (x + 1, functools.WRAPPER_ASSIGNMENTS),
    "WRAPPER_UPDATES": lambda x: (x + 1, functools.WRAPPER_UPDATES),
    "cache": lambda x: x + cached_cube(3),
    "cached_property": lambda x: x + WithClassmethod().doubled,
    "cmp_to_key": lambda x: [
        x + n for n in sorted([1, 3, 2], key=functools.cmp_to_key(lambda a, b: b - a))
    ],
    "lru_cache": lambda x: x + cached_square(3),
    "Placeholder": Break(
        lambda x: x + functools.partial(max, functools.Placeholder, 2)(3), "a Placeholder"
    ),
    "partial": lambda x: functools.partial(lambda a, b, c: a + b * c, x, c=3)(2),
    "partialmethod": lambda x: WithClassmethod().squared(x),
    "reduce": lambda x: functools.reduce(lambda a, b: a * b + x, [1, 2, 3]),
    "singledispatch": lambda x: (x + 1, described(3), described("a")),
    "singledispatchmethod": lambda x: (x + 1, WithClassmethod().kind(3)),
    "total_ordering": lambda x: x + (Ordered(2) >= Ordered(1)) + (Ordered(1) > Ordered(2)),
    "update_wrapper": updated,
    "wraps": wrapped,
}

OPERATOR: dict[str, Any] = {
    "abs": lambda x: operator.abs(x),
    "add": lambda x: operator.add(x, 1),
    "and_": lambda x: operator.and_(x > 1, x < 3),
    "attrgetter": lambda x: x + operator.attrgetter("value")(Thing()),
    "call": lambda x: operator.call(lambda a, b: a + b, x, b=2),
    "concat": lambda x: operator.concat([x + 1], [2]),
    "contains": lambda x: x + operator.contains([1, 2], 2),
    "countOf": lambda x: x + operator.countOf([1, 2, 1], 1),
    "delitem": lambda x: sliced([1, 2, 3], 1, x + 1),
    "eq": lambda x: operator.eq(x, 1),
    "floordiv": lambda x: operator.floordiv(x, 2),
    "ge": lambda x: operator.ge(x, 1),
    "getitem": lambda x: operator.getitem(x, 0) + operator.getitem([4], 0),
    "gt": lambda x: operator.gt(x, 1),
    "iadd": lambda x: operator.iadd(x.clone(), 1),
    "iand": lambda x: operator.iand(x > 1, x < 3),
    "iconcat": lambda x: operator.iconcat([x + 1], [2]),
    "ifloordiv": lambda x: operator.ifloordiv(x.clone(), 2),
    "ilshift": lambda x: x + operator.ilshift(1, 2),
    "imatmul": lambda x: x @ operator.imatmul(x.T, x),
    "imod": lambda x: operator.imod(x.clone(), 2),
    "imul": lambda x: operator.imul(x.clone(), 2),
    "index": lambda x: x + operator.index(Thing()),
    "indexOf": lambda x: x + operator.indexOf([1, 2], 2),
    "inv": lambda x: operator.inv(x > 1),
    "invert": lambda x: operator.invert(x > 1),
    "ior": lambda x: operator.ior(x > 1, x < 3),
    "ipow": lambda x: operator.ipow(x.clone(), 2),
    "irshift": lambda x: x + operator.irshift(8, 2),
    "is_": lambda x: (x + 1, operator.is_(x, x)),
    "is_none": lambda x: (x + 1, operator.is_none(x), operator.is_none(None)),
    "is_not": lambda x: (x + 1, operator.is_not(x, None)),
    "is_not_none": lambda x: (x + 1, operator.is_not_none(x), operator.is_not_none(None)),
    "isub": lambda x: operator.isub(x.clone(), 1),
    "itemgetter": lambda x: operator.itemgetter(0, 1)([x + 1, 2]),
    "itruediv": lambda x: operator.itruediv(x.clone(), 2),
    "ixor": lambda x: operator.ixor(x > 1, x < 3),
    "le": lambda x: operator.le(x, 1),
    "length_hint": lambda x: x + operator.length_hint([1, 2]),
    "lshift": lambda x: x + operator.lshift(1, 2),
    "lt": lambda x: operator.lt(x, 1),
    "matmul": lambda x: operator.matmul(x, x.T),
    "methodcaller": lambda x: operator.methodcaller("add", 1)(x),
    "mod": lambda x: operator.mod(x, 2),
    "mul": lambda x: operator.mul(x, 2),
    "ne": lambda x: operator.ne(x, 1),
    "neg": lambda x: operator.neg(x),
    "not_": lambda x: x + operator.not_([]),
    "or_": lambda x: operator.or_(x > 1, x < 3),
    "pos": lambda x: operator.pos(x) + 1,
    "pow": lambda x: operator.pow(x, 2),
    "rshift": lambda x: x + operator.rshift(8, 2),
    "setitem": lambda x: sliced([1, 2], 1, x + 1),
    "sub": lambda x: operator.sub(x, 1),
    "truediv": lambda x: operator.truediv(x, 2),
    "truth": lambda x: x + operator.truth([1]),
    "xor": lambda x: operator.xor(x > 1, x < 3),
}

COLLECTIONS: dict[str, Any] = {
    "ChainMap": lambda x: (lambda m: (m["a"], m["b"], len(m)))(
        collections.ChainMap({"a": x + 1}, {"a": 0, "b": 2})
    ),
    "Counter": lambda x: (x + 1, (collections.Counter("abca") + collections.Counter(a=1))["a"]),
    "OrderedDict": ordered_dict,
    "UserDict": lambda x: (lambda d: (d["a"], len(d)))(collections.UserDict(a=x + 1)),
    "UserList": lambda x: [x + n for n in collections.UserList([1, 2])],
    "UserString": lambda x: (x + 1, str(collections.UserString("ab").upper())),
    "defaultdict": default_dict,
    "deque": pushed,
    "namedtuple": lambda x: (lambda p: p.a + p._replace(b=5).b)(
        collections.namedtuple("P", "a b")(x, 2)
    ),
}

MATH: dict[str, Any] = {
    "acos": lambda x: x + math.acos(0.5),
    "acosh": lambda x: x + math.acosh(1.5),
    "asin": lambda x: x + math.asin(0.5),
    "asinh": lambda x: x + math.asinh(0.5),
    "atan": lambda x: x + math.atan(0.5),
    "atan2": lambda x: x + math.atan2(1, 2),
    "atanh": lambda x: x + math.atanh(0.5),
    "cbrt": lambda x: x + math.cbrt(8),
    "ceil": lambda x: x + math.ceil(1.2),
    "comb": lambda x: x + math.comb(5, 2),
    "copysign": lambda x: x + math.copysign(1, -2),
    "cos": lambda x: x + math.cos(0.5),
    "cosh": lambda x: x + math.cosh(0.5),
    "degrees": lambda x: x + math.degrees(1),
    "dist": lambda x: x + math.dist([0, 0], [3, 4]),
    "e": lambda x: x + math.e,
    "erf": lambda x: x + math.erf(0.5),
    "erfc": lambda x: x + math.erfc(0.5),
    "exp": lambda x: x + math.exp(1),
    "exp2": lambda x: x + math.exp2(3),
    "expm1": lambda x: x + math.expm1(0.5),
    "fabs": lambda x: x + math.fabs(-2),
    "factorial": lambda x: x + math.factorial(4),
    "floor": lambda x: x + math.floor(1.7),
    "fmod": lambda x: x + math.fmod(7, 3),
    "fma": lambda x: x + math.fma(2.0, 3.0, 1.0),
    "frexp": lambda x: x + math.frexp(8.0)[1],
    "fsum": lambda x: x + math.fsum([0.1, 0.2]),
    "gamma": lambda x: x + math.gamma(4),
    "gcd": lambda x: x + math.gcd(12, 18),
    "hypot": lambda x: x + math.hypot(3, 4),
    "inf": lambda x: x.clamp(max=math.inf) + 1,
    "isclose": lambda x: x + math.isclose(1.0, 1.0 + 1e-12),
    "isfinite": lambda x: x + math.isfinite(1.0),
    "isinf": lambda x: x + math.isinf(math.inf),
    "isnan": lambda x: x + math.isnan(math.nan),
    "isqrt": lambda x: x + math.isqrt(17),
    "lcm": lambda x: x + math.lcm(4, 6),
    "ldexp": lambda x: x + math.ldexp(0.5, 3),
    "lgamma": lambda x: x + math.lgamma(4),
    "log": lambda x: x + math.log(8, 2),
    "log10": lambda x: x + math.log10(100),
    "log1p": lambda x: x + math.log1p(0.5),
    "log2": lambda x: x + math.log2(8),
    "modf": lambda x: x + math.modf(1.5)[0],
    "nan": lambda x: x + math.nan,
    "nextafter": lambda x: x + math.nextafter(1.0, 2.0),
    "perm": lambda x: x + math.perm(5, 2),
    "pi": lambda x: x + math.pi,
    "pow": lambda x: x + math.pow(2, 3),
    "prod": lambda x: math.prod([x, 2, 3]),
    "radians": lambda x: x + math.radians(180),
    "remainder": lambda x: x + math.remainder(7, 3),
    "sin": lambda x: x + math.sin(0.5),
    "sinh": lambda x: x + math.sinh(0.5),
    "sqrt": lambda x: x / math.sqrt(x.shape[-1]),
    "sumprod": lambda x: x + math.sumprod([1, 2], [3, 4]),
    "tan": lambda x: x + math.tan(0.5),
    "tanh": lambda x: x + math.tanh(0.5),
    "tau": lambda x: x + math.tau,
    "trunc": lambda x: x + math.trunc(1.7),
    "ulp": lambda x: x + math.ulp(1.0),
}

CONTEXTLIB: dict[str, Any] = {
    "AbstractAsyncContextManager": lambda x: (
        x + 1,
        issubclass(contextlib.AsyncExitStack, contextlib.AbstractAsyncContextManager),
    ),
    "AbstractContextManager": lambda x: within(Manager(), x)[0],
    "AsyncExitStack": lambda x: (x + 1, len(contextlib.AsyncExitStack()._exit_callbacks)),
    "ContextDecorator": lambda x: (
        decorated(x),
        isinstance(Decorating(), contextlib.ContextDecorator),
    ),
    "ExitStack": within_stack,
    "aclosing": lambda x: (x + 1, contextlib.aclosing(Thing()).thing.value),
    "asynccontextmanager": lambda x: (x + 1, contextlib.asynccontextmanager(doubling).__name__),
    "chdir": Break(lambda x: within(contextlib.chdir("."), x), "C function posix.getcwd"),
    "closing": lambda x: within(contextlib.closing(Thing()), x)[0],
    "contextmanager": lambda x: within(doubling(2), x),
    "nullcontext": lambda x: within(contextlib.nullcontext(3), x),
    "redirect_stderr": lambda x: within(contextlib.redirect_stderr(None), x),
    "redirect_stdout": lambda x: within(contextlib.redirect_stdout(None), x),
    "suppress": suppressed,
}

#: Names that not every release has.
NEWER = {
    "builtins.PythonFinalizationError", "functools.Placeholder", "itertools.batched", "math.fma",
    "math.sumprod", "operator.is_none", "operator.is_not_none",
}  # fmt: skip

NAMES: dict[str, dict[str, Any]] = {
    "builtins": BUILTINS,
    "itertools": ITERTOOLS,
    "functools": FUNCTOOLS,
    "operator": OPERATOR,
    "collections": COLLECTIONS,
    "math": MATH,
    "contextlib": CONTEXTLIB,
}
