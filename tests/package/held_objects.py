"""Kinds of objects that programs hold, and the process that saves or loads programs with them:
``python held_objects.py save|load DIRECTORY``.

Each kind says how an object of it is made in any process, how another one is made that makes the
program do something else, and what programs do with it. Each use runs with the object in each of
`PLACES`; one JSON line per program says what happened.
"""

import array
import collections
import contextvars
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import itertools
import json
import math
import operator
import pathlib
import random
import re
import sys
import threading
import types
import typing
import uuid
import warnings
import weakref
from pathlib import Path

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import framejit
from framejit.report import events

X = torch.arange(3.0)
DeviceType = torch._C._autograd.DeviceType
#: torch may be built without it.
ReduceOp = getattr(dist, "ReduceOp", DeviceType)
SUM, MAX = ("SUM", "MAX") if ReduceOp is not DeviceType else ("CPU", "CUDA")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Bits(enum.Flag):
    A = 1
    B = 2


class Functions(enum.Enum):
    PLUS = enum.member(functools.partial(lambda x: x + 1))
    MINUS = enum.member(functools.partial(lambda x: x - 1))


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Data:
    k: int

    def times(self, x):
        return x * self.k


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int


class Slots:
    __slots__ = ("k", "m")

    def __init__(self, k):
        self.k = k


class Holder:
    def __init__(self, k):
        self.k = k

    @property
    def property(self):
        return self.k

    @functools.cached_property
    def cached(self):
        return self.k + 1

    def plus(self, x):
        return x + self.k

    def __call__(self, x):
        return x - self.k


class Equal(Holder):
    def __eq__(self, other):
        return isinstance(other, Equal) and self.k == other.k

    def __hash__(self):
        return hash(self.k)


class Int(int):
    pass


class Text(str):
    pass


T = typing.TypeVar("T")


class Generic(typing.Generic[T]):
    pass


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()


def plus(x, k=1):
    return x + k


def minus(x, k=1):
    return x - k


@functools.lru_cache
def cached(k):
    return k + 1


@functools.singledispatch
def dispatched(o):
    return 1


@dispatched.register
def _(o: int):
    return 2


@dispatched.register
def _(o: str):
    return 3


def closure(k):
    return lambda x: x * k


def local_class(k):
    class Local:
        value = k

        def times(self, x):
            return x * k

    return Local


LAMBDA, OTHER_LAMBDA = lambda x: x + 4, lambda x: x + 5
SENTINEL, OTHER_SENTINEL = object(), object()
VARIABLE = contextvars.ContextVar("variable", default=3)
KEPT, OTHER = Holder(2), Holder(3)
PATTERN, GETTER, PARTIAL = re.compile("x+"), operator.itemgetter(3), functools.partial(plus, k=4)
REFERENCE, LOCK, BOUND = weakref.ref(KEPT), threading.Lock(), [1, 2].index


def batch(dtype):
    dataset = TensorDataset(torch.ones(4, 3, dtype=dtype))
    return next(iter(DataLoader(dataset, batch_size=2)))


def schema(operator):
    return getattr(torch.ops.aten, operator).default._schema


def call(x, o):
    return o(x)


def number(x, o):
    return x + o


def attribute(x, o):
    return x + o.k


def name_of_class(x, o):
    return x + len(type(o).__name__)


def key(x, o):
    return x + {o: 3}[o]


def is_red(x, o):
    return x + 1 if o is Color.RED else x - 1


#: kind -> (an object, another one or None, what programs do with it)
KINDS = {
    # -- the program's own
    "enum": (
        lambda: Color.RED, lambda: Color.BLUE, is_red, lambda x, o: x + o.value, key,
        lambda x, o: x + len(o.name),
    ),
    "enum of numbers": (lambda: Level.LOW, lambda: Level.HIGH, number, lambda x, o: x + o.value),
    "flags": (
        lambda: Bits.A | Bits.B, lambda: Bits.A, lambda x, o: x + o.value,
        lambda x, o: x + 1 if Bits.B in o else x,
    ),
    "enum of functions": (
        lambda: Functions.PLUS, lambda: Functions.MINUS, lambda x, o: o.value(x),
    ),
    "class of an enum": (lambda: Color, lambda: Level, lambda x, o: x + sum(m.value for m in o)),
    "named tuple": (
        lambda: Point(1, 2), lambda: Point(3, 2), lambda x, o: x + o.x, lambda x, o: x + o[0],
        lambda x, o: x + o._replace(y=5).x, key,
    ),
    "field of a named tuple": (
        lambda: Point.x, lambda: Point.y, lambda x, o: x + o.__get__(Point(1, 5)),
    ),
    "dataclass": (
        lambda: Data(2), lambda: Data(3), attribute, lambda x, o: o.times(x),
        lambda x, o: x + dataclasses.asdict(o)["k"],
        lambda x, o: x + [getattr(o, field.name) for field in dataclasses.fields(o)][0],
    ),
    "frozen dataclass": (lambda: Frozen(2), lambda: Frozen(3), attribute, key),
    "slots": (
        lambda: Slots(2), lambda: Slots(3), attribute, lambda x, o: x + getattr(o, "m", 5),
    ),
    "descriptor of a slot": (
        lambda: Slots.k, lambda: Slots.m, lambda x, o: x + ord(o.__name__), name_of_class,
    ),
    "object": (
        lambda: Holder(2), lambda: Holder(3), attribute, call, lambda x, o: x + o.property,
        lambda x, o: x + o.cached, lambda x, o: type(o).plus(o, x),
    ),
    "object with ==": (
        lambda: Equal(2), lambda: Equal(3), key, lambda x, o: x + 1 if o == Equal(2) else x,
    ),
    "property": (
        lambda: Holder.property, None, lambda x, o: x + o.fget(Holder(3)), name_of_class,
    ),
    "method": (lambda: Holder(2).plus, lambda: Holder(3).plus, call),
    "subclass of int": (lambda: Int(2), lambda: Int(3), number, key),
    "subclass of str": (lambda: Text("ab"), lambda: Text("abc"), lambda x, o: x + len(o)),
    "function": (
        lambda: plus, lambda: minus, call, key, lambda x, o: x + 1 if o is plus else x,
    ),
    "lambda": (lambda: LAMBDA, lambda: OTHER_LAMBDA, call, key),
    "closure": (lambda: closure(2), lambda: closure(3), call),
    "local class": (
        lambda: local_class(2), lambda: local_class(3), lambda x, o: x + o.value, key,
    ),
    "object of a local class": (
        lambda: local_class(2)(), lambda: local_class(3)(), lambda x, o: o.times(x),
        lambda x, o: x + o.value,
    ),
    "dispatched function": (lambda: dispatched, None, lambda x, o: x + o(2)),
    "cached function": (lambda: cached, None, lambda x, o: x + o(2), key),
    "sentinel": (
        lambda: SENTINEL, lambda: OTHER_SENTINEL, key,
        lambda x, o: x + 1 if o is SENTINEL else x - 1,
    ),
    "generic class": (
        lambda: Generic[int], lambda: Generic[str],
        lambda x, o: x + 1 if typing.get_args(o)[0] is int else x,
    ),
    "autograd function": (lambda: Rounded, None, lambda x, o: o.apply(x)),
    # -- of the standard library
    "partial": (
        lambda: functools.partial(plus, k=2), lambda: functools.partial(plus, k=3), call,
        lambda x, o: x + o.keywords["k"],
    ),
    "partial of a lambda": (
        lambda: functools.partial(lambda x, k: x * k, k=2),
        lambda: functools.partial(lambda x, k: x * k, k=3), call,
    ),
    "itemgetter": (
        lambda: operator.itemgetter(1), lambda: operator.itemgetter(0),
        lambda x, o: x + o([5, 7]), lambda x, o: x + sum(map(o, [(1, 2), (3, 4)])),
        lambda x, o: x + sorted([(1, 2), (3, 0)], key=o)[0][0],
    ),
    "attrgetter": (
        lambda: operator.attrgetter("k"), lambda: operator.attrgetter("m"),
        lambda x, o: x + o(types.SimpleNamespace(k=1, m=2)),
    ),
    "methodcaller": (
        lambda: operator.methodcaller("clamp", min=1), lambda: operator.methodcaller("cos"), call,
    ),
    "pattern": (
        lambda: re.compile("a+"), lambda: re.compile("b+"),
        lambda x, o: x + 1 if o.match("aab") else x - 1, lambda x, o: x + len(o.findall("aabaa")),
        lambda x, o: x + ord(o.pattern[0]),
    ),
    "match": (
        lambda: re.match("a+", "aab"), lambda: re.match("a+", "ab"), lambda x, o: x + o.end(),
    ),
    "bound method in C": (lambda: "abc".upper, lambda: "ab".upper, lambda x, o: x + len(o())),
    "bound method of a dict": (lambda: {1: 1}.get, lambda: {1: 2}.get, lambda x, o: x + o(1)),
    "bound operator": (lambda: (3).__add__, lambda: (4).__add__, lambda x, o: x + o(1)),
    "operator of a class": (
        lambda: int.__add__, lambda: int.__mul__, key, lambda x, o: x + o(3, 4),
    ),
    "method of a class in C": (
        lambda: str.upper, lambda: str.lower, key, lambda x, o: x + ord(o("a")),
    ),
    "function in C": (lambda: math.sin, lambda: math.cos, key, lambda x, o: x + o(1.0)),
    "attribute of a class in C": (
        lambda: torch.Tensor.shape, lambda: torch.Tensor.ndim, name_of_class,
        lambda x, o: x + len(o.__name__),
    ),
    "Decimal": (lambda: decimal.Decimal("1.5"), lambda: decimal.Decimal(2), key,
                lambda x, o: x + float(o)),
    "Fraction": (lambda: fractions.Fraction(1, 2), lambda: fractions.Fraction(1, 3),
                 lambda x, o: x + o.denominator),
    "date": (
        lambda: datetime.date(2020, 1, 1), lambda: datetime.date(2021, 1, 1),
        lambda x, o: x + o.year, key,
    ),
    "path": (lambda: pathlib.Path("/a/b"), lambda: pathlib.Path("/a/bcd"),
             lambda x, o: x + len(o.name)),
    "uuid": (lambda: uuid.UUID(int=3), lambda: uuid.UUID(int=4), lambda x, o: x + o.int),
    "array": (lambda: array.array("i", [1, 2]), lambda: array.array("i", [1, 3]),
              lambda x, o: x + o[1]),
    "range": (lambda: range(3), lambda: range(4), lambda x, o: x + sum(o)),
    "slice": (lambda: slice(1, 2), lambda: slice(0, 2), lambda x, o: x[o]),
    "union": (
        lambda: int | None, lambda: str | None, lambda x, o: x + 1 if isinstance(3, o) else x,
    ),
    "alias": (
        lambda: list[int], lambda: list[str], key,
        lambda x, o: x + 1 if o.__args__[0] is int else x,
    ),
    "Optional": (
        lambda: typing.Optional[int], lambda: typing.Optional[str],
        lambda x, o: x + 1 if typing.get_args(o)[0] is int else x,
    ),
    "type variable": (lambda: T, None, key, lambda x, o: x + len(o.__name__)),
    "signature": (lambda: inspect.signature(plus), None, lambda x, o: x + len(o.parameters)),
    "kind of a parameter": (
        lambda: inspect.Parameter.KEYWORD_ONLY, lambda: inspect.Parameter.VAR_KEYWORD,
        lambda x, o: x + 1 if o is inspect.Parameter.KEYWORD_ONLY else x,
    ),
    "context variable": (lambda: VARIABLE, None, key, lambda x, o: x + o.get()),
    "lock": (lambda: threading.Lock(), None, lambda x, o: x + 1 if o.locked() else x - 1),
    "random": (lambda: random.Random(3), None, name_of_class),
    "weak reference": (
        lambda: weakref.ref(KEPT), lambda: weakref.ref(OTHER), lambda x, o: x + o().k,
    ),
    "iterator": (lambda: iter([1, 2]), lambda: iter([2, 3]), lambda x, o: x + next(o)),
    "counter": (lambda: itertools.count(3), lambda: itertools.count(4),
                lambda x, o: x + next(o)),
    "containers": (
        lambda: [{"a": (1, Color.RED)}], lambda: [{"a": (1, Color.BLUE)}],
        lambda x, o: x + o[0]["a"][1].value,
    ),
    "proxy of a dict": (
        lambda: types.MappingProxyType({"a": 1}), lambda: types.MappingProxyType({"a": 2}),
        lambda x, o: x + o["a"],
    ),
    "set of functions": (
        lambda: {torch.sin, torch.cos}, lambda: {torch.sin},
        lambda x, o: x + 1 if torch.cos in o else x - 1,
    ),
    "code": (lambda: plus.__code__, lambda: call.__code__, lambda x, o: x + len(o.co_name)),
    "module": (lambda: math, lambda: operator, key, lambda x, o: x + len(o.__name__)),
    # -- of torch
    "function of torch": (lambda: torch.sin, lambda: torch.cos, call, key),
    "method of tensors": (lambda: torch.Tensor.sin, lambda: torch.Tensor.cos, call, key),
    "bound method of a tensor": (lambda: torch.ones(3).add, lambda: torch.zeros(3).add, call),
    "operator of torch": (
        lambda: torch.ops.aten.sin.default, lambda: torch.ops.aten.cos.default, call, key,
    ),
    "dtype": (
        lambda: torch.float64, lambda: torch.float16, key, lambda x, o: x.to(o),
        lambda x, o: x + torch.finfo(o).bits,
    ),
    "table of dtypes": (
        lambda: {torch.float32: 1}, lambda: {torch.float32: 2}, lambda x, o: x + o[x.dtype],
    ),
    "device": (
        lambda: torch.device("cpu"), lambda: torch.device("meta"), key,
        lambda x, o: x + 1 if o.type == "cpu" else x - 1,
    ),
    "finfo": (lambda: torch.finfo(torch.float32), lambda: torch.finfo(torch.float16),
              lambda x, o: x + o.eps),
    "size": (lambda: torch.Size([1, 2]), lambda: torch.Size([1, 3]), key,
             lambda x, o: x + o.numel()),
    "generator": (
        lambda: torch.Generator(), None, lambda x, o: x + 1 if o.device.type == "cpu" else x,
    ),
    "batch of a loader": (
        lambda: batch(torch.float32), lambda: batch(torch.float64), lambda x, o: x + o[0],
    ),
    "parameter": (
        lambda: nn.Parameter(X.clone()), lambda: nn.Parameter(X.double()),
        lambda x, o: x + o.detach(), key,
    ),
    "module of torch": (lambda: nn.Linear(3, 3), None, lambda x, o: (o(x) * 0).detach(), key),
    # -- of classes made by pybind11
    "operation of a reduction": (
        lambda: getattr(ReduceOp, SUM), lambda: getattr(ReduceOp, MAX), key,
        lambda x, o: x + o.value, lambda x, o: x + len(o.name),
        lambda x, o: x + 1 if o == getattr(ReduceOp, SUM) else x - 1,
    ),
    "member of an enumeration in C++": (
        lambda: DeviceType.CPU, lambda: DeviceType.CUDA, key, lambda x, o: x + int(o),
        lambda x, o: x + len(o.name), lambda x, o: x + 1 if o is DeviceType.CPU else x - 1,
        lambda x, o: x + 1 if o == DeviceType.CPU else x - 1,
    ),
    "set of dispatch keys": (
        lambda: torch._C.DispatchKeySet(torch._C.DispatchKey.CPU),
        lambda: torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA),
        lambda x, o: x + 1 if o.has(torch._C.DispatchKey.CPU) else x - 1,
    ),
    "property in C++": (lambda: schema("sin"), lambda: schema("cos_"),
                        lambda x, o: x + len(o.name), lambda x, o: x + len(o.arguments)),
    # -- of numpy
    "numpy's dtype": (
        lambda: numpy.dtype("float32"), lambda: numpy.dtype("int64"), key,
        lambda x, o: x + o.itemsize,
    ),
    "numpy's scalar": (lambda: numpy.float32(2.5), lambda: numpy.float32(3.5), number),
    # -- made by the program and returned
    "returned": (
        lambda: 3, lambda: 4, lambda x, o: (x + o, re.compile("a+"), re.match("a+", "aab")),
        lambda x, o: (x + o, operator.itemgetter(1), operator.methodcaller("f", k=1)),
        lambda x, o: (x + o, functools.partial(plus, k=3), 2j, b"ab", range(o), ...),
        lambda x, o: (x + o, Color.RED, Level.LOW, Bits.A | Bits.B, Point(1, o), Data(o)),
        lambda x, o: (x + o, datetime.date(2020, 1, 1), datetime.timedelta(3)),
        lambda x, o: (x + o, decimal.Decimal("1.5"), fractions.Fraction(1, 2)),
        lambda x, o: (x + o, SENTINEL, KEPT, LAMBDA, PATTERN, GETTER, PARTIAL, BOUND, LOCK),
        lambda x, o: (x + o, REFERENCE, VARIABLE, torch.default_generator, math),
        lambda x, o: (x + o, DeviceType.CPU, getattr(ReduceOp, SUM), torch.Tensor.shape),
        lambda x, o: (x + o, torch._C.DispatchKeySet.has, torch.FunctionSchema.name, Slots.k),
        lambda x, o: (x + o, list[int], int | None, typing.Optional[int], Generic[int], T),
        lambda x, o: (x + o, torch.finfo(torch.float32), numpy.dtype("f4"), numpy.float32(3)),
        lambda x, o: (x + o, inspect.Parameter.empty, dataclasses.MISSING, local_class(o).value),
    ),
}  # fmt: skip


def in_argument(use, o):
    return (lambda x, o: use(x, o)), (o,), lambda new: (new,)


def in_attribute(use, o):
    holder = Holder([o])

    def change(new):
        holder.k[0] = new
        return (holder,)

    return (lambda x, holder: use(x, holder.k[0])), (holder,), change


def in_closure(use, o):
    def change(new):
        nonlocal o
        o = new
        return ()

    return (lambda x: use(x, o)), (), change


def from_global(x):
    return USE(x, HELD)  # noqa: F821 - globals of a module that `in_global` makes


def in_global(use, o):
    namespace = {"USE": use, "HELD": o, "__name__": "held", "__builtins__": __builtins__}
    return (
        types.FunctionType(from_global.__code__, namespace), (),
        lambda new: namespace.update(HELD=new) or (),
    )  # fmt: skip


PLACES = {place.__name__: place for place in (in_argument, in_attribute, in_closure, in_global)}
#: What results are compared with by identity.
_ONES = [value for value in globals().values() if type(value).__hash__ is not None]


def programs():
    for kind, (make, other, *uses) in KINDS.items():
        for number, use in enumerate(uses):
            for place in PLACES.values():
                yield f"{kind}, {number}, {place.__name__}", place, use, make, other


def _text(obj):
    return type(obj), re.sub(" at 0x[0-9a-f]+", "", repr(obj))


def same(one, two):
    if isinstance(one, torch.Tensor) or isinstance(two, torch.Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    if type(one) is tuple and type(two) is tuple:
        return len(one) == len(two) and all(map(same, one, two))
    if any(one is known for known in _ONES):
        return one is two
    return _text(one) == _text(two)


def said(function, *args):
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 - compared
        return f"{type(error).__name__}: {error}"


def changed(compiled, change, place, use, other):
    """Does a call with the other object do what plain Python does?"""
    function, args, _ = place(use, other())
    return same(said(function, X.clone(), *args), said(compiled, X.clone(), *change(other())))


def run(mode, path, place, use, make, other):
    function, args, _ = place(use, make())
    expected = said(function, X.clone(), *args)

    def fresh():
        function, args, change = place(use, make())
        compiled = framejit.compile(function, backend="eager")
        if mode == "load":
            compiled.load_package(path)
        return compiled, args, change

    row = {"refused": "", "other": True}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", framejit.exc.FramejitWarning)
        compiled, args, _ = fresh()
        with events.recording(events.CaptureStart, events.GraphCompiled) as seen:
            row["right"] = same(expected, said(compiled, X.clone(), *args))
        if mode == "save":
            with events.recording():
                try:
                    compiled.save_package(path)
                except framejit.exc.PackageError as error:
                    row["refused"] = str(error)
        if other is not None:
            compiled, args, change = fresh()
            if mode == "save":
                said(compiled, X.clone(), *args)
            row["other"] = changed(compiled, change, place, use, other)
    row["captured"] = sum(isinstance(event, events.CaptureStart) for event in seen)
    row["graphs"] = sum(isinstance(event, events.GraphCompiled) for event in seen)
    row["warned"] = [
        str(one.message) for one in warned if issubclass(one.category, framejit.exc.FramejitWarning)
    ]
    return row


def main(mode, directory):
    for number, (name, *program) in enumerate(programs()):
        path = Path(directory) / f"{number}.package"
        if mode == "save" or path.exists():
            try:
                row = run(mode, path, *program)
            except Exception as error:  # noqa: BLE001 - the test of this program says so
                row = {"failed": f"{type(error).__name__}: {error}"}
            print("\n#" + json.dumps({"name": name, **row}))


if __name__ == "__main__":
    with framejit.config.patch(raise_internal_errors=True):
        main(*sys.argv[1:])
