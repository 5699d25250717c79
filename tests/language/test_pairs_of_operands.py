"""Operators between operands of every kind, made by the program or given: results and errors."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch

import framejit
from framejit import config

PRELUDE = """
import array, collections, datetime, decimal, enum, fractions, re, types
import numpy as np
import torch

class Plain:
    def __repr__(self): return "Plain"
class Index:
    def __init__(self, n=2): self.n = n
    def __repr__(self): return "Index"
    def __index__(self):
        LOG.append("index")
        return self.n
class Reflected:
    def __repr__(self): return "Reflected"
    def __radd__(self, other): return "radd", type(other)
    def __rmul__(self, other): return NotImplemented
    def __rtruediv__(self, other): raise KeyError("rtruediv")
    def __ror__(self, other): return "ror", type(other)
    def __gt__(self, other): return "gt", type(other)
    def __eq__(self, other):
        LOG.append("eq")
        return NotImplemented
    __hash__ = None
class Items:
    def __repr__(self): return "Items"
    def __len__(self): return 2
    def __iter__(self): return iter([1, 2])
    def __contains__(self, item): return "yes"
class Int(int): pass
class Text(str): pass
class List(list): pass
class Tuple(tuple): pass
class Dict(dict): pass
class Colour(enum.Enum):
    RED = 1
class Bit(enum.Flag):
    A = 1
    B = 2
class Number(enum.IntEnum):
    ONE = 1
Point = collections.namedtuple("Point", "x y")
LOG = []
"""
OPERANDS = (
    "1", "True", "-2.5", "2j", "'ab'", "'%s'", "b'x'", "None", "...", "(1, 2)", "()", "[1, 2]",
    "{1, 2}", "frozenset({1})", "{1: 2}", "range(3)", "slice(1, 2)", "bytearray(b'x')",
    "decimal.Decimal(2)", "fractions.Fraction(1, 2)", "datetime.timedelta(1)",
    "datetime.date(2020, 1, 2)", "np.float32(2)", "np.int64(3)", "np.bool_(True)",
    "np.array([1., 2.])", "torch.tensor(2)", "torch.tensor([1., 2.])", "torch.tensor(True)",
    "torch.Size([1, 2])", "torch.float32", "torch.device('cpu')", "Plain()", "Index()",
    "Reflected()", "Items()", "Int(3)", "Text('a')", "List([1])", "Tuple([1])", "Dict(a=1)",
    "Colour.RED", "Bit.A", "Number.ONE", "Point(1, 2)", "collections.deque([1])",
    "collections.Counter('ab')", "collections.OrderedDict(a=1)", "collections.defaultdict(int)",
    "collections.ChainMap({1: 2})", "{1: 2}.keys()", "{1: 2}.items()",
    "types.MappingProxyType({1: 2})", "array.array('i', [1])", "re.compile('a')", "int",
    "list[int]", "len", "torch.nn.Parameter(torch.ones(2))",
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>")
OTHERS = ("<", "<=", ">", ">=", "==", "!=", "in", "not in", "is")
#: numpy and torch print warnings for some of them.
pytestmark = pytest.mark.filterwarnings("ignore")


def program_of(left: str, right: str, made: tuple[bool, bool], seed: int) -> str:
    """The source of a program with some of the operators between two operands."""
    rng = random.Random(seed)
    lines = [PRELUDE, "def program(x, a, b):", "    out = []"]
    for op in rng.sample(BINARY, 4) + rng.sample(OTHERS, 3):
        first, second = left if made[0] else "a", right if made[1] else "b"
        inplace = op in BINARY and rng.random() < 0.3
        lines += [
            "    try:",
            f"        v = {first}" if inplace else f"        v = ({first}) {op} ({second})",
            *([f"        v {op}= {second}"] if inplace else []),
            "    except Exception as error:",
            "        v = type(error), str(error)",
            f"    out.append(({op!r}, type(v), v))",
        ]
    arguments = f"ARGUMENTS = lambda: (torch.ones(2), {left}, {right})"
    return "\n".join([*lines, "    return x + 1, out", arguments])


def ran(source: str, compiled: bool) -> Any:
    """What a program returns in its second call, as text."""
    space: dict[str, Any] = {"__name__": "pairs"}
    exec(compile(source, "<pairs>", "exec"), space)
    function = framejit.compile(space["program"], backend="eager") if compiled else space["program"]
    torch.manual_seed(0)
    seen = []
    for _ in range(2):
        arguments = space["ARGUMENTS"]()
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001 - compared
            result = type(error), str(error)
        if type(result) is tuple and type(result[1]) is list:
            for op, cls, value in result[1]:
                value = sorted(map(repr, value)) if issubclass(cls, (set, frozenset)) else value
                seen.append(repr((op, cls, value)))
        else:
            seen.append(repr(result))
        seen.append(repr((arguments, space["LOG"])))
    return seen


def compare(chosen: list[tuple[int, tuple[Any, ...]]]) -> None:
    differ = []
    with config.patch(raise_internal_errors=True):
        for seed, (left, right, *made) in chosen:
            source = program_of(left, right, tuple(made), seed)
            eager, compiled = ran(source, False), ran(source, True)
            if eager != compiled:
                pairs = [pair for pair in zip(eager, compiled, strict=True) if len({*pair}) > 1]
                differ += [f"{left}, {right}, made {made}, seed {seed}:", *pairs[0]]
            framejit.reset()
    assert not differ, f"{len(differ) // 3} differ:\n" + "\n".join(differ[:15])


ALL = list(enumerate(itertools.product(OPERANDS, OPERANDS, (True, False), (True, False))))


@pytest.mark.parametrize("part", range(4))
def test_some_pairs(part: int) -> None:
    compare(random.Random(part).sample(ALL, 100))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(16))
def test_all_pairs(part: int) -> None:
    compare(ALL[part::16])
