"""Idioms: a few statements that belong together, around features that single statements do not
combine (generators over breaks, hooks, dataclasses, caches, objects with an end, ``finally``).

In: a writer of programs and the scope to write into. Out: lines of the program.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

from typing import Any

from program_scope import Scope

#: What the idioms use; part of every program.
PRELUDE = """
import contextvars, dataclasses, enum

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2
    @property
    def double(self): return self.value * 2

@dataclasses.dataclass(order=True)
class Rec:
    a: int = 1
    b: list = dataclasses.field(default_factory=list)
    def __post_init__(self): self.b.append(self.a)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer('seen', torch.zeros(1))
        self.calls = 0
    def forward(self, r, *, scale=1):
        self.calls += 1
        self.seen += 1
        return r * self.weight.detach() * scale + self.calls

class Noted:
    def __init__(self, n): self.n = n
    def __del__(self): G_ENDS.append(self.n)

class Registry:
    known = []
    def __init_subclass__(cls, tag=0, **more):
        super().__init_subclass__(**more)
        cls.tag = tag
        Registry.known.append(cls.__name__)

@contextlib.contextmanager
def managed(log, n):
    log.append(n)
    try:
        yield n + 1
    except ValueError:
        log.append('swallowed')
    finally:
        log.append(-n)

@functools.lru_cache(maxsize=2)
def cached(n):
    G_LIST.append(n)
    return n + 1

@functools.lru_cache(maxsize=2)
def pure(n, *, k=1): return [n, k]

def keywords(*rest, a=1, b, **more): return a + b * 2 + len(rest) * 3 + sum(more.values())

def ticks(n, log):
    try:
        for i in range(n):
            got = yield i
            if got: log.append(got)
    finally:
        log.append('closed')
    return n

G_ENDS = []
G_NET = Net()
G_VAR = contextvars.ContextVar('G_VAR', default=2)
"""

#: Lines per idiom. ``i`` and ``j`` are expressions of ints, ``r`` of a row, ``c`` of a condition;
#: ``n`` becomes an int, ``l`` a list of ints, ``t`` a row, ``x`` and ``y`` are anything.
IDIOMS = [
    "{x} = (k * {i} for k in range(4))|{n} = next({x})|{loud}|{l} = list({x})",
    "{x} = ticks(3, G_LIST)|{n} = next({x}) + {x}.send({i})|{loud}|{l} = list({x})",
    "{x} = ticks(3, G_LIST)|{n} = next({x})|{x}.close()|{loud}",
    "{x} = iter(sorted({{2: 1, 1: 3, 5: 2}}.items()))|{n} = next({x})[1]|{loud}|{l} = [k for k, _ in {x}]",
    "{n} = keywords({i}, *range(2), b={j}, **{{'c': 2, 'd': {i}}})",
    "{n}, *{l} = [{i}, *range(3), {j}]",
    "{x} = Rec({i})|{x}.a += 1|{loud}|{x}.b.append({j})|{n} = {x}.a + sum({x}.b)|{l} = dataclasses.replace({x}, a=2).b",
    "{x} = max(Rec({i}), Rec({j}))|{n} = {x}.a|print({x})",
    "{n} = Mode({i} % 2 + 1).double|{x} = [m.name for m in Mode if m.value > 1]",
    "with managed(G_LIST, {i}) as {n}:|    {loud}|    if {c}: raise ValueError('x')|    {n} += 1",
    "with contextlib.ExitStack() as {x}:|    {n} = {x}.enter_context(managed(G_LIST, {i}))|    {x}.callback(G_LIST.append, {j})|    {loud}",
    "{t} = G_NET({r}, scale={i})|{n} = G_NET.calls",
    "{x} = G_NET.register_forward_hook(lambda m, a, o: o + len(a))|{t} = G_NET({r})|{x}.remove()|{t} = {t} - G_NET({r})",
    "{x} = G_NET.register_forward_pre_hook(lambda m, a: (a[0] * 2,))|{t} = G_NET({r})|{loud}|{x}.remove()",
    "K0.count = getattr(K0, 'count', 0) + {i}|{loud}|{n} = K0.count",
    "def {x}():|    total = {i}|    def add(k):|        nonlocal total|        total += k|        return total|    for k in range(2): add(k)|    return add, lambda: total|{x}, {y} = {x}()|{n} = {x}({j})|{loud}|{n} += {y}()",
    "{y} = []|for {x} in range(3):|    {y}.append(lambda k={x}: k + {x})|{n} = sum(f() for f in {y})",
    "{y} = {{k: v for v, k in enumerate([3, {i}, 1, {j}])}}|for {x} in list({y}):|    if {x} % 2: {y}[{x}] = {y}.pop({x}) + 1|{l} = list({y})|{n} = sum({y}.values())",
    "{x} = Noted({i})|{n} = {x}.n|{loud}|del {x}|G_ENDS.append('after')",
    "{n} = cached({i} % 4) + cached({j} % 3)",
    "{l} = pure({i} % 4, k={j})|{l}.append(3)|{loud}|{n} = len(pure({i} % 4, k={j}))",
    "{t} = ({r}).clone()|{x} = {t}.view(3, 1)[1:]|{x}.mul_({i})|{loud}|{t}[:1].add_({x}.sum().detach())",
    "{t} = ({r}).detach().clone()|{x}, {y}, _ = {t}.unbind()|{x}.add_({i})|{t} += {y}|{loud}|{y}.zero_()",
    "def {x}(k):|    for m in range(3):|        try:|            if m == k % 3: return m|        finally:|            G_LIST.append(m)|            if m == 1: continue|    return -1|{n} = {x}({i})",
    "def {x}(k):|    try:|        if k > 1: raise Error(k)|        return 1|    except Error as e:|        {loud}|        return e.code|    finally:|        if k == 2: return 7|{n} = {x}({i})",
    "def {x}(k):|    with managed(G_LIST, k), contextlib.suppress(LookupError):|        {loud}|        try:|            return [k][{j}]|        finally:|            G_LIST.append('left')|    return -k|{n} = {x}({i})",
    "class {y}(Registry, tag={i}): pass|{n} = {y}.tag + len(Registry.known)",
    "{x} = G_VAR.set({i})|{loud}|{n} = G_VAR.get()|{y} = {x}.old_value",
    "{x} = functools.partial(keywords, {i}, b={j})|{n} = {x}(a=2) + {x}(1, c=3)",
    "{x} = collections.deque([{i}, 2, 3], maxlen=3)|{x}.append({j})|{x}.rotate(1)|{l} = list({x})|{n} = {x}.popleft()",
    "match [{i}, {{'k': {j}}}]:|    case [0, _]: {n} = 0|    case [{x}, {{'k': int({n})}}] if {x} > {n}: {loud}|    case [_, {{**{x}}}]: {n} = len({x})",
    "{x} = itertools.accumulate([1, {i}, {j}])|{n} = next({x})|{loud}|{l} = [*{x}]",
    "{x} = zip([1, 2, 3], iter([{i}, {j}]))|{n} = sum(next({x}))|{loud}|{l} = [a for a, _ in {x}]",
    "{n} = 0|for {x} in range(4):|    if {x} == {i}: break|    {n} += {x}|    {loud}|else:|    {n} = -{n}",
    "try:|    {x} = ValueError('a')|    {x}.add_note('b')|    raise {x} from KeyError({i})|except ValueError as {y}:|    {n} = {y}.__cause__.args[0]|    {l} = [len(s) for s in {y}.__notes__]",
]


def write_idiom(writer: Any, scope: Scope) -> None:
    """One of `IDIOMS`, with expressions of the scope's variables in it."""
    text = writer.random.choice(IDIOMS)
    made = {letter: writer.fresh(kind) for letter, kind in
            (("n", "int"), ("l", "ilist"), ("t", "row"), ("x", "any"), ("y", "any"))}  # fmt: skip
    parts = {
        "i": writer.expression(scope, "int", 1), "j": writer.expression(scope, "int", 1),
        "r": writer.expression(scope, "row", 1), "c": writer.expression(scope, "bool", 1),
    }  # fmt: skip
    loud = writer.one("print('here')", "print(len(G_LIST))", "G_LIST.append(1)", "pass")
    lines = text.split("|")
    for line in lines:
        writer.put(line.format(**made, **parts, loud=loud))
    certain = [line for line in lines if not line.startswith((" ", "match", "with", "try"))]
    for letter, kind in (("n", "int"), ("l", "ilist"), ("t", "row")):
        if any(line.split("=")[0].count("{" + letter + "}") for line in certain if "=" in line):
            if not line.startswith("def"):
                scope.bind(made[letter], kind)
