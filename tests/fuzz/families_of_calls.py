"""Statements that call every method of the built-in types, and every function of a few modules,
with arguments that they take: which ones is found out by trying; and classes with every operator.

In: nothing. Out: `STATEMENTS` by family, in the template language of `grammar`, and the `PRELUDE`
that they need. A new variable of kind ``any`` may be anything.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import functools
import heapq
import io
import itertools
import math
import operator
import random
import re
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch

#: What replaces a variable of a kind while signatures are tried.
SAMPLES: dict[str, Any] = {
    "num": 2, "text": "ab", "nums": [3, 1, 2], "table": {"a": 1, "b": 2}, "map": {1: 2, (1, 2): 3},
    "bag": {1, 2}, "queue": collections.deque([1, 2, 3]), "pair": (1, 2), "flag": True, "fn": abs,
    "key": "a", "nest": [[1], [2, 3]], "row": torch.tensor([1.0, 2.0, 3.0]),
    "mat": torch.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]]),
}  # fmt: skip
#: Kinds of arguments: none, each kind alone, a few in pairs.
_ARGUMENTS: list[tuple[str, ...]] = [
    (), *[(kind,) for kind in SAMPLES], ("num", "num"), ("text", "text"), ("num", "text"),
    ("text", "num"), ("fn", "nums"), ("key", "num"), ("nums", "nums"), ("nums", "num"), ("num", "flag"),
    ("row", "row"), ("row", "num"), ("mat", "mat"), ("mat", "num"), ("mat", "num", "num"),
    ("fn", "nums", "num"), ("fn", "nums", "nums"), ("fn", "num"), ("table", "text"), ("nums", "num", "num"),
]  # fmt: skip
#: Of a function, so many ways to call it, and one that it does not take.
_WAYS = 3
#: What reads memory that nobody wrote, draws random numbers, leaves the process, or depends on
#: addresses: no program says what it does.
_OPEN = (
    "empty random rand bernoulli normal uniform exponential cauchy geometric poisson multinomial resize set_ "
    "storage data_ptr address cuda npu xpu to_ pin share is_shared record_stream breakpoint input exit quit open help "
    "exec eval compile globals locals vars dir id memoryview copyright credits license print __ import seed "
    "dropout quantize quantized fbgemm mkldnn sparse module_load backward hook names align refine rename backend "
    "jit compiler profiler from_file frombuffer as_tensor save load set_ init_ get_ cudnn miopen fork wait "
    "sizeof sym_ vmap threads _assert _sync kaiser lobpcg histc name crow ccol col_ row_ values indices coalesce unsafe "
    "hash token as_strided nonzero_static ndarray newbyteorder setflags dump tofile tobytes tostring getfield setfield partition"
).split()  # fmt: skip
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def _copied(sample: Any) -> Any:
    try:
        return copy.deepcopy(sample)
    except TypeError:  # a view of a dict
        return sample


def ways(function: Any, own: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Kinds of arguments that ``function`` takes after those of ``own``, and of some it does not."""
    takes: list[tuple[str, ...]] = []
    refused: list[tuple[str, ...]] = []
    for kinds in _ARGUMENTS:
        arguments = [_copied(SAMPLES[kind]) for kind in (*own, *kinds)]
        if own == ("bag",) and {"fn", "row", "mat"} & set(kinds):
            continue  # elements that hash by their address have no order
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                if isinstance(function(*arguments), _ENDLESS):
                    continue
        except (TypeError, RuntimeError, IndexError):
            refused.append(kinds)
        except Exception:  # noqa: BLE001 - it takes them, and complains about their values
            takes.append(kinds)
        else:
            takes.append(kinds)
    chooser = random.Random(getattr(function, "__name__", ""))
    chooser.shuffle(takes)
    chooser.shuffle(refused)
    return takes[:_WAYS] + refused[:1] if takes else []


def _is_open(name: str) -> bool:
    return name.startswith("_") or any(part in name for part in _OPEN)


def attempt(call: str) -> str:
    """The template of a call whose error is noted; of a TypeError not how it is worded."""
    return (
        "{x+any} = None|try:|    {x} = " + call + "|except TypeError: G_LOG.append('TypeError')|"
        "except Exception as {e+err}:|"
        "    G_LOG.append((type({e}).__name__, str({e}).split(chr(10))[0][:70]))"
    )


def _call(prefix: str, kinds: tuple[str, ...]) -> str:
    return f"{prefix}({', '.join('{' + kind + '}' for kind in kinds)})"


def methods(cls: type, kind: str, names: Iterable[str] | None = None) -> Iterator[str]:
    """Calls of the methods of a class, on objects of a kind."""
    for name in sorted(dir(cls)) if names is None else names:
        function = getattr(cls, name)
        if (names is not None or not _is_open(name)) and callable(function):
            for kinds in ways(function, (kind,)):
                yield attempt(_call("{a=" + kind + "}." + name, kinds))


def _functions(
    module: types.ModuleType, prefix: str, kinds: set[str] | None = None
) -> Iterator[str]:
    """Calls of the functions and classes of a module; ``kinds``: only with one of these."""
    for name in sorted(vars(module)):
        function = getattr(module, name)
        if _is_open(name) or not callable(function) or name[0].isupper():
            continue
        for way in ways(function):
            if kinds is None or kinds & set(way):
                yield attempt(_call(prefix + name, way))


_BINARY = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le eq ne gt ge"
).split()
_SIGNS = "+ - * / // % ** @ & ¦ ^ << >> < <= == != > >=".split()
_UNARY = {"neg": "-{}", "pos": "+{}", "invert": "~{}", "abs": "abs({})", "bool": "not {}", "len": "len({})", "int": "int({})",
          "float": "float({})", "index": "[7, 8, 9][{}]", "str": "str({})", "repr": "repr({})", "hash": "hash({})", "round": "round({})", "reversed": "list(reversed({}))",
          "iter": "list({})", "contains": "2 in {}", "getitem": "{}[0]", "format": "f'{{{}:x}}'", "complex": "complex({})", "floor": "math.floor({})", "trunc": "math.trunc({})", "next": "next({}, 0)"}  # fmt: skip
_RESULTS = {"bool": "self.n > 1", "len": "abs(self.n)", "int": "self.n", "float": "float(self.n)", "index": "self.n % 3", "str": "'s'", "repr": "f'Full({self.n})'",
            "hash": "hash(self.n)", "iter": "iter([self.n, 2])", "contains": "a[0] == self.n", "format": "a[0] + 'f'", "complex": "complex(self.n)", "reversed": "iter([2, self.n])"}  # fmt: skip


def _full_class() -> str:
    """A class with all operators, which notes what is asked; and one that leaves them to others."""
    lines = ["class Full:", "    def __init__(self, n): self.n = n"]
    for name in _BINARY:
        for form in (name, f"r{name}", f"i{name}"):
            if name[:2] in ("lt", "le", "eq", "ne", "gt", "ge") and form != name:
                continue
            lines.append(
                f"    def __{form}__(self, other): G_LOG.append('{form}'); return (self.n, '{form}', getattr(other, 'n', 0))"
            )
    for name in _UNARY:
        lines.append(
            f"    def __{name}__(self, *a): G_LOG.append('{name}'); return {_RESULTS.get(name, 'self.n')}"
        )
    lines += ["class Shy:", "    def __init__(self, n): self.n = n"]
    lines += [
        f"    def __{n}__(self, other): G_LOG.append('no {n}'); return NotImplemented"
        for n in _BINARY
    ]
    return "\n".join(lines) + "\n"


PRELUDE = (
    _full_class()
    + '''
class Part:
    """Attributes of every kind."""
    __slots__ = ('n', '__dict__')
    def __init__(self, n): self.n = n
    @property
    def twice(self): return self.n * 2
    @twice.setter
    def twice(self, v): self.n = v // 2
    @twice.deleter
    def twice(self): G_LOG.append('deleted'); self.n = 0
    @property
    def fixed(self): return 5
    @functools.cached_property
    def cached(self): G_LOG.append('made'); return [self.n]
    @classmethod
    def make(cls, n): return cls(n)
    @staticmethod
    def add(a, b=1): return a + b
    partial = functools.partialmethod(lambda self, a, b: (self.n, a, b), 3)
    def __getstate__(self): return {'n': self.n}
    def __setstate__(self, state): self.n = state['n'] + 1
    def __copy__(self): return type(self)(self.n)

@functools.total_ordering
class Ranked:
    kinds = []
    def __init_subclass__(cls, rank=0, **more): super().__init_subclass__(**more); cls.rank = rank; Ranked.kinds.append(cls.__name__)
    def __class_getitem__(cls, item): return (cls.__name__, item)
    def __init__(self, n): self.n = n
    def __eq__(self, other): return self.n == other.n
    def __lt__(self, other): return self.n < other.n
    def __setattr__(self, name, value): G_LOG.append(name); object.__setattr__(self, name, value)
    def __delattr__(self, name): G_LOG.append('-' + name); super().__delattr__(name)
    def __getattribute__(self, name): return super().__getattribute__(name)

class Guard(abc.ABCMeta):
    def __instancecheck__(cls, v): return hasattr(v, 'n')
    def __subclasscheck__(cls, c): return c is int
    def __contains__(cls, v): return v == 1
    def __len__(cls): return 3
    def __iter__(cls): return iter('ab')
    def __getitem__(cls, k): return k
    def __bool__(cls): return False
class Guarded(metaclass=Guard): pass

class Named:
    def __set_name__(self, owner, name): self.name = name; G_LOG.append((owner.__name__, name))
    def __get__(self, obj, owner=None): return (self.name, obj is None)
    def __delete__(self, obj): G_LOG.append('delete')
class Flags(enum.IntFlag):
    A = 1
    B = 2
@functools.lru_cache
def memo(n): return [n]
def keyed(a, /, b=2, *c, k, **d): return a, b, c, k, d
G_PART = Part(2)
G_FULL = Full(1)
G_OD = collections.OrderedDict(a=1, b=2)
G_ERR = ValueError('old')
'''
)

_OPERANDS = ["Full({num})", "Shy({num})", "{num}", "Full({num})", "{nums}", "{text}", "G_FULL", "{row}", "{flag}", "{bag}", "{pair}", "{table}", "2.5", "None"]  # fmt: skip
_CHOOSE = random.Random(0)


def _operators() -> Iterator[str]:
    for sign in _SIGNS:
        for _ in range(5):
            left, right = _CHOOSE.sample(_OPERANDS, 2)
            yield attempt(f"{left} {sign} {right}")
        if sign not in "< <= == != > >=":
            first, second = _CHOOSE.sample(_OPERANDS, 2)
            yield f"{{x+any}} = {first}|try: {{x}} {sign}= {second}|except Exception as {{e+err}}: G_LOG.append(str({{e}})[:70])"
    for form in _UNARY.values():
        for operand in _CHOOSE.sample(_OPERANDS, 2) + ["Full({num})"]:
            yield attempt(
                form.replace("{}", operand) if "'" not in form else f"format({operand}, 'x')"
            )


_MEMBERS = [
    "{a+part} = Part({num})|{x+any} = {a}.twice|{a}.twice = {num}|del {a}.twice", attempt("G_PART.fixed_"), "{x+any} = G_PART.cached|{y+any} = vars(G_PART).pop('cached')", "try: G_PART.fixed = 1|except AttributeError as {e+err}: G_LOG.append(str({e}))", "try: del G_PART.fixed|except AttributeError as {e+err}: G_LOG.append(str({e}))",
    "{a+part} = Part.make({num})|{x+any} = {a}.add(2), Part.add(1, {num}), {a}.partial({num})", "{a+part} = Part({num})|{x+any} = copy.copy({a}), copy.deepcopy({a})", "{a+part} = Part({num})|del {a}.n|{x+any} = hasattr({a}, 'n'), getattr({a}, 'n', {num})", "{a+part} = Part({num})|{a}.__dict__ = {table}|{x+any} = vars({a})|try: {a}.__dict__ = {num}|except TypeError as {e+err}: G_LOG.append(str({e}))",
    "{a+part} = Part({num})|try: del {a}.nothing|except AttributeError as {e+err}: G_LOG.append(str({e}))", "{a+part} = Part({num})|{a}.__class__ = Part|{x+any} = {a}.__class__.__name__, {a}.__doc__, Part.__module__", "{x+any} = Part.twice.fget(G_PART), Part.__slots__, Part.__mro__[0] is Part, Part.__name__", "class {C+cls}(Ranked, rank={num}): pass|{x+any} = {C}.rank, Ranked.kinds, {C}[{num}]",
    "{a+rank} = Ranked({num})|{x+any} = {a} <= Ranked({num}), {a} >= Ranked(2), {a} != Ranked(1)|{a}.k = 1|del {a}.k", "{x+any} = isinstance({node}, Guarded), issubclass(int, Guarded), {num} in Guarded, len(Guarded), list(Guarded), Guarded[{num}], bool(Guarded)", "class {C+cls}:|    field = Named()|    other = Named()|{x+any} = {C}.field, {C}().other|del {C}().field",
    "{x+any} = Flags({num} % 4) ¦ Flags.A, Flags.A ^ Flags.B, Flags.A & Flags.B, ~Flags.A, Flags.A in Flags.B", "{x+any} = [c.name for c in Color], Color['RED'], Color.RED in Color, len(Color), list(reversed(Color))", attempt("Color({num})"), attempt("Color[{text}]"), "{x+any} = enum.Enum('Made', 'A B C')(2).name, enum.IntEnum('I', {'P': 1})['P'] + {num}",
    "@dataclasses.dataclass(frozen=True, order=True)|class {C+cls}:|    a: int|    b: list = dataclasses.field(default_factory=list, compare=False)|    c: dataclasses.InitVar = 0|    def __post_init__(self, c): G_LOG.append(c)|{x+any} = {C}({num}, c=1) < {C}(2), dataclasses.replace({C}(1), a={num}, c=4), dataclasses.asdict({C}({num}))|try: {C}(1).a = 2|except AttributeError as {e+err}: G_LOG.append(type({e}).__name__)",
    "class {C+cls}(typing.NamedTuple):|    a: int|    b: int = 3|{x+any} = {C}({num})._replace(b=1), {C}(1)._asdict(), {C}._make([1, 2]), {C}(1).b", "{C+cls} = type('Made', (Part,), {'k': {num}, 'f': lambda self: self.k})|{x+any} = {C}(1).f(), {C}.__bases__[0] is Part", "class {C+cls}(Part):|    def __new__(cls, *a): made = super().__new__(cls); made.late = {num}; return made|    def __init__(self, n): super().__init__(n + 1)|{x+any} = {C}({num}).n, {C}(1).late",
    "class {C+cls}:|    def __getattr__(self, name): return name + '?'|    def __call__(self, *a, **k): return len(a), sorted(k)|    def __enter__(self): return 4|    def __exit__(self, *a): return True|{x+any} = {C}().what, {C}()({num}, k=2)|with {C}() as {y+any}: raise KeyError", "class {C+cls}(list):|    def __getitem__(self, i): return ('got', i)|    def extra(self): return super().__getitem__(0) if self else None|{x+any} = {C}({nums})|{y+any} = {x}[0], {x}.extra(), list({x}), {x} + [1], {x} == {nums}, sorted({x})",
    "class {C+cls}(dict):|    def __missing__(self, k): self[k] = [k]; return self[k]|    def keys(self): return ['k']|{x+any} = {C}({table})|{y+any} = {x}['q'], {x}.get('z'), list({x}), {x}.keys(), 'q' in {x}", "class {C+cls}(str):|    def upper(self): return {C}(super().upper() + '!')|{x+any} = {C}({text}).upper(), {C}('a') + 'b', {C}('x').join(['1', '2']), len({C}({text})), {C}('a') == 'a', type({C}('a')[0]).__name__",
    "class {C+cls}(int):|    def __add__(self, o): return {C}(int(self) + o + 1)|{x+any} = {C}({num}) + 1, 1 + {C}(2), {C}(3) * 2, {C}(4) == 4, hash({C}(5)), {C}(1).bit_length(), [{C}(0)]", "class {C+cls}(set):|    def add(self, v): super().add(v); G_LOG.append(v)|{x+any} = {C}([1])|{x}.add({num})|{y+any} = {x} - set([1]), len({x}), {num} in {x}, {x} == set([1])", "class {C+cls}(tuple):|    def __new__(cls, *a): return super().__new__(cls, a)|{x+any} = {C}(1, {num})|{y+any} = {x}[1], {x} + (1,), len({x}), {x} == (1, 2), {x} * 2",
    "class {C+cls}(Exception):|    def __init__(self, n): super().__init__(n, 'more'); self.n = n|    def __str__(self): return f'<{self.n}>'|try: raise {C}({num}) from G_ERR|except {C} as {e+err}: {x+any} = str({e}), {e}.args, {e}.__cause__ is G_ERR, repr({e}), {e}.with_traceback(None) is {e}", "try:|    try: raise KeyError({num})|    finally: {x+any} = {num}|except Exception as {e+err}: {y+any} = {e}.args", "{x+err} = ValueError({num})|{x}.add_note({text})|{y+any} = {x}.__notes__, {x} == ValueError(1), {x}.__context__, {x}.args|{x}.args = (1, 2)|{z+any} = str({x})",
    "try:|    raise ExceptionGroup('g', [ValueError(1), KeyError({num})])|except* ValueError as {e+err}: G_LOG.append(len({e}.exceptions))|except* KeyError: G_LOG.append('k')", "{x+any} = functools.partial(max, {num})|{y+any} = {x}(2), {x}.args, {x}.func is max, len({x}.keywords), functools.partial({x}, 5)(1)|{x}.mark = {num}|{z+any} = {x}.mark", "{f+fn} = functools.lru_cache(maxsize=2, typed={flag})(lambda v, k=1: [v, k])|{x+any} = {f}({num}) is {f}({num}), {f}(1, k={num}), {f}.cache_parameters()|{y+any} = {f}.cache_info()|{f}.cache_clear()",
    "{x+any} = functools.reduce(lambda a, b: (a, b), {nums}, None), math.prod({nums}, start=2), sum({nest}, []), max({nest}, default=0, key=len), min({text}, 'z')", "{x+any} = inspect.signature(keyed).bind(1, {num}, k=3).arguments, [p.kind.name for p in inspect.signature(keyed).parameters.values()], inspect.isfunction({fn}), inspect.isclass(Part)", "{f+fn} = lambda v: v|{f}.mark = {num}|{x+any} = {f}.mark, vars({f}), {f}.__name__, {f}.__defaults__, {f}.__code__.co_argcount, {f}.__closure__, {f}.__kwdefaults__, {f}.__module__",
    "def {f+fn}(v, *, k={num}):|    'doc'|    return v + k|{f}.__defaults__ = ({num},)|{x+any} = {f}(), {f}.__doc__, {f}.__annotations__, {f}.__kwdefaults__|{f}.__kwdefaults__ = {'k': 9}|{y+any} = {f}(1)", "{x+any} = G_PART.make.__func__ is Part.make.__func__, G_PART.make.__self__ is Part, Part.__init__.__qualname__, G_NODE.visit.__name__, types.MethodType(Node.visit, G_NODE)({num})", "{x+any} = copy.deepcopy([{table}, {pair}, {bag}, {nums}, frozenset([1]), G_PART, {row}.detach(), G_OD, {queue}])|{y+any} = copy.copy({bag}), copy.copy({queue}), copy.copy({pair}), copy.copy(G_OD)",
    "G_OD.move_to_end('a', last={flag})|G_OD[{text}] = {num}|{x+any} = list(reversed(G_OD)), G_OD == dict(G_OD), list(G_OD.items())|{y+any} = G_OD.popitem(last={flag})|G_OD.setdefault('a', 1)", "{m=table} = dict({m})|{k+any} = {m}.keys()|{v+any} = {m}.items()|{m}['late'] = {num}|{x+any} = list({k}), ('late', 1) in {v}, {k} & {'late', 'a'}, {k} - {'a'}, {k} ^ {'z'}, {k}.isdisjoint({'q'}), len({v}), list(reversed({k})), {k} == {'late'}, {k}.mapping", "{m+any} = collections.ChainMap({table}, {table})|{m}['new'] = {num}|{x+any} = dict({m}), {m}.new_child({'k': 1}).get('k'), {m}.parents, len({m})",
    "{m+any} = types.MappingProxyType({table})|{x+any} = list({m}), {m}.get({text}), {text} in {m}, dict({m}), {m}.copy(), len({m})|try: {m}['a'] = 1|except TypeError as {e+err}: G_LOG.append(str({e}))", "{x+any} = memo({num}), memo({num}), memo.cache_info().misses", "{x+any} = kind_of({text}), kind_of.dispatch(int).__name__, kind_of.registry.keys() >= set([int])", "{x+any} = heapq.nsmallest({num}, {nums}, key=lambda v: -v), list(heapq.merge(sorted({nums}), [1])), heapq.nlargest(2, {nums})",
    "globals()['G_NEW'] = {num}|{x+any} = G_NEW, 'G_NEW' in globals()|del globals()['G_NEW']", "{x+any} = [*map(lambda a, b: (a, b), {nums}, {text})], dict(zip({nums}, {text})), list(zip({nums}, {nums}, strict={flag})) if {flag} else 0, list(enumerate({text}, {num}))", "{x+any} = {num} if (y := {num}) else y, [z := {num}, z], {**{table}, 'q': 1}, [*{nums}, *{text}], (*{nums},), {*{nums}}", "assert ({num}, 1) > (0,), 'msg'|{x+any} = {num} < {num} < 3, not {nums}, {a=nums} is not {b=nums}, {num} not in {nums}",
    "async def {f+any}(v): return v|{x+any} = {f}({num})|try: {x}.send(None)|except StopIteration as {e+err}: {y+any} = {e}.value", "{a=nums}[1:3] = {nums}|del {a}[:1]|{a}[:0] = {text}|{x+any} = {a}[-2:], {a}[::-2], slice(1, None, 2).indices(5), {a}[slice(0, 2)]|del {a}[:]", "{x+any} = super(Stack, Stack([1])).__len__(), super(Stack, Stack).append.__name__, Stack.push.__qualname__", "{x+any} = bytes({nums}[:0]) + {text}.encode(), bytearray(b'ab')[0], b'abc'[::-1], b'a' in b'ab', int.from_bytes(b'\\x01\\x02', 'big'), (258).to_bytes(2, 'little')",
    "import math as {m+any}, collections.abc as {n+any}|from operator import itemgetter as {o+any}|{x+any} = {m}.pi > 3, isinstance({nums}, {n}.Sequence), issubclass(dict, {n}.Mapping), {o}(0, 1)({pair})[0:0]", "{x+any} = isinstance({num}, int ¦ str), type({num}) in (int, bool), isinstance({nums}, list), type({text}) is str, callable(Part), isinstance(None, type(None))",
]  # fmt: skip

_HOOKS = [
    "{a+row} = {row}.detach().clone().requires_grad_()|{h+any} = {a}.register_hook(lambda g: {None/g * 2/G_LOG.append(1)})|({a} * {num}).sum().backward()|{x+any} = {a}.grad|{h}.remove()", "{h+any} = G_NET.register_full_backward_hook(lambda m, gi, go: G_LOG.append(len(go)))|{a+row} = R(3, 1).requires_grad_()|G_NET({a}).sum().backward()|{h}.remove()|{x+any} = {a}.grad", "{h+any} = G_NET.register_forward_pre_hook(lambda m, a: (a[0] * 2,))|{x+row} = G_NET(R(3, 2))|{h}.remove()",
    "{h+any} = G_NET.register_forward_hook(lambda m, a, k, o: o + 1, with_kwargs=True)|{x+row} = G_NET(R(3, 2))|{h}.remove()", "{a+row} = R(3, 1).requires_grad_()|{b+row} = {a} * 2|{b}.retain_grad()|{b}.sum().backward()|{x+any} = {b}.grad, {a}.grad", "{a+row} = R(3, 1).requires_grad_()|{h+any} = {a}.register_post_accumulate_grad_hook(lambda p: G_LOG.append(p.grad.sum().item()))|({a} * {num}).sum().backward()|{h}.remove()",
    "with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):|    {a+row} = R(3, 2).requires_grad_()|    {b+row} = ({a} * {a}).sum()|    {b}.backward()|    G_LOG.append({a}.grad.sum().item())", "{a+row} = R(3, 2).requires_grad_()|{x+any} = torch.autograd.grad(({a} ** 2).sum(), {a}, create_graph={flag})", "{x+any} = torch.func.grad(lambda v: (v * v).sum())({row}.detach()), torch.func.vmap(lambda v: v.sum())({mat}.detach()), torch.func.hessian(lambda v: (v ** 3).sum())({row}.detach())",
    "{x+any} = torch.func.jacfwd(lambda v: v * 2)({row}.detach()), torch.vmap(lambda v, w: v * w, in_dims=(0, None), out_dims=1)({mat}.detach(), {num}), torch.func.linearize(lambda v: v * 3, {a=row}.detach())[0]", "{x+any} = torch.func.functionalize(lambda v: v.clone().add_(1))({row}.detach()), torch.func.grad_and_value(lambda v: v.sum())({row}.detach())", "{a+any} = torch.nn.Linear(3, 2)|torch.nn.init.constant_({a}.weight, 0.5)|torch.nn.init.zeros_({a}.bias)|{x+any} = {a}({mat}), [n for n, _ in {a}.named_parameters()], {a}.weight.shape",
    "{a+any} = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Identity()])|{a}.append(torch.nn.Tanh())|{x+any} = [m({row}) for m in {a}], len({a}), {a}[0]({row}), [n for n, _ in {a}.named_children()]", "G_NET.extra = {num}|{x+any} = hasattr(G_NET, 'extra'), G_NET.training, sorted(G_NET.state_dict()), [type(m).__name__ for m in G_NET.modules()]|del G_NET.extra", "{x+any} = G_NET.get_parameter('weight') is G_NET.weight, list(G_NET.buffers())[0], dict(G_NET.named_buffers()).keys()|G_NET.apply(lambda m: G_LOG.append(type(m).__name__))|G_NET.requires_grad_({flag})|G_NET.requires_grad_(True)",
    "with torch.no_grad(), torch.random.fork_rng():|    torch.manual_seed({num})|    {body}", "with torch.set_grad_enabled({flag}):|    {a+row} = {row} * G_NET.weight.sum()|    G_LOG.append({a}.requires_grad)|    {body}", "{x+any} = torch.get_default_dtype(), torch.is_inference_mode_enabled(), torch.is_tensor({row}), torch.finfo(torch.float32).bits, torch.promote_types(torch.int8, torch.float16), torch.result_type({row}, {num})", "{a=row} = {a}.clone()|{x+any} = {a}.requires_grad, {a}.is_leaf, {a}.grad_fn is None, {a}.device.type, {a}.ndim, {a}.stride(), {a}.storage_offset(), {a}.layout, {a}.itemsize, {a}.is_contiguous(), len({a})",
    "{x+any} = [v.item() for v in {row}], float({row}.sum()), bool(({row} > 1).any()), {row}.max().item() if {flag} else {row}.tolist(), {mat}.tolist(), [*{mat}]", "{a=mat} = {a}.detach().clone()|{a}[0, 1:] = {num}|{a}[:, {0/-1}] += 1|{a}[{a} > 2] = 0|{a}[..., None]|{x+any} = {a}[None, 0], {a}[[0, 0]], {a}[:, [2, 0]], {a}[torch.tensor([True, *[False] * ({a}.shape[0] - 1)])], {a}[-1, ::2]", "{x+row} = torch.where({a=row} > {num}, {a}, {num})|{y+any} = torch.split({mat}, 1), torch.chunk({mat}, 2, dim=1), torch.broadcast_tensors({b=row}, {b}), torch.unbind({mat})",
    "class {C+cls}(torch.nn.Module):|    def __init__(self): super().__init__(); self.p = torch.nn.Parameter(torch.ones(3)); self.l = [1]|    def forward(self, v, *, k=1): self.l.append(k); return v * self.p * k|{x+net} = {C}()|{y+any} = {x}(R(3, 1), k={num}), len({x}.l), sum(p.sum() for p in {x}.parameters())", "class {C+cls}(torch.Tensor): pass|{x+any} = torch.ones(3).as_subclass({C})|{y+any} = type({x} + 1).__name__, ({x} * {num}).sum().item()", "{a+any} = torch.optim.SGD([G_NET.weight], lr=0.5)|G_NET(R(3, 1)).sum().backward()|{a}.step()|{a}.zero_grad()|{x+any} = G_NET.weight.detach().clone()",
]  # fmt: skip

_HANDLER = re.compile(r"(^|\|)( *)(except[^|]*? as \{\w\+err\}): (?=\S)")


def with_blocks(template: str) -> str:
    """The variable of a handler ends with it: its block has lines of its own."""
    return _HANDLER.sub(r"\1\2\3:|\2    ", template)


_MEMBERS = [with_blocks(text) for text in _MEMBERS]

_TYPES = {"text": str, "nums": list, "table": dict, "bag": set, "queue": collections.deque, "pair": tuple, "num": int}  # fmt: skip
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    STATEMENTS = {
        "methods": [text for kind, cls in _TYPES.items() for text in methods(cls, kind)],
        "functions": [
            *_functions(builtins, ""), *_functions(math, "math."), *_functions(operator, "operator."),
            *_functions(heapq, "heapq."), *_functions(copy, "copy."), *_functions(itertools, "itertools."),
            *_functions(functools, "functools."),
        ],
        "operators": list(_operators()), "members": _MEMBERS, "hooks": _HOOKS,
    }  # fmt: skip
STATEMENTS["consumers"] = [
    attempt(form) for form in (
        "list({a=any})", "len({a=any})", "{a=any} == {b=any}", "repr({a=any})", "{a=any}[0]", "bool({a=any})", "next({a=any})", "{a=any} + {a}", "dict({a=any})", "{f=any}({num})", "[*{a=any}, {b=any}]",
        "tuple({a=any})", "str({a=any})[:9]", "{a=any} in {nums}", "{num} in {a=any}", "type({a=any}).__name__", "sorted({a=any})", "{a=any} is {b=any}", "iter({a=any})", "copy.copy({a=any})", "hash({a=any}) and 1", "isinstance({a=any}, (int, str, list))", "{a=any} or {b=any}", "max({a=any})", "f'{ {a=any} }'[:9]", "{a=any}.n", "zip({a=any}, {b=any})",
    )
]  # fmt: skip
