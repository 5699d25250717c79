"""Writes random programs: a module with classes, functions and ``main``, and calls of ``main``.

In: a seed. Out: a `Program`. The same seed gives the same program in every process.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import contextlib
import textwrap
import warnings
from dataclasses import dataclass, field

from program_expressions import KINDS, Expressions, joined
from program_idioms import PRELUDE as IDIOMS_PRELUDE
from program_idioms import write_idiom
from program_scope import Scope

#: What every program starts with. Calls are made with `M`, `R` and `S` as well.
PRELUDE = '''
import collections, contextlib, copy, functools, itertools, math, operator
import torch
import torch.nn.functional as F

def M(rows, seed, dtype=torch.float32, grad=False):
    """A matrix; ``seed`` decides on its values."""
    t = ((torch.arange(rows * 3) * 7 + seed * 5) % 11 - 4).reshape(rows, 3).to(dtype)
    return t.requires_grad_() if grad else t

def R(seed, grad=False):
    return M(1, seed)[0].clone().requires_grad_(grad)

Pair = collections.namedtuple('Pair', 'left right', defaults=(7,))

class LocalList(list):
    def append(self, value):
        super().append(value + 1)
    def __getitem__(self, index):
        return super().__getitem__(index)

class LocalDict(dict):
    def __missing__(self, key):
        return 5
    def __setitem__(self, key, value):
        super().__setitem__(key, value)

class Error(Exception):
    def __init__(self, code, text='e'):
        super().__init__(code, text)
        self.code = code

G_INT = 3
G_LIST = [5, 6]
G_DICT = {'a': 10}
G_W = torch.tensor([[1., 0., 2.], [0., -1., 0.], [0.5, 0., 1.]])
G_M = torch.tensor([[1., -2., 3.], [0., 4., -5.]])
'''.replace("G_INT", IDIOMS_PRELUDE + "G_INT", 1)

FIRST_WITH_IDIOMS = 100_000

PARAMETERS = (
    "mat mat mat row row sc int int float bool str ilist ilist tlist dict dict tdict pair set obj fn tfn it opt"
).split()  # fmt: skip


@dataclass
class Program:
    """``source`` starts with ``prelude`` and defines functions; each of ``calls`` is the name of one
    and the text of its arguments, ``name:(argument, ...)``."""

    source: str
    calls: list[str] = field(default_factory=list)
    prelude: str = PRELUDE
    #: Is each capture made a second time, with all calls executed, and compared?
    verified: bool = False
    #: Do the names of the nodes of autograd count?
    nodes: bool = True
    #: The option of `compile`.
    dynamic: bool | None = None
    #: Do operations write to what they are given for their results? What is in it after an error is
    #: memory that nobody has written to.
    has_out: bool = False

    @property
    def own(self) -> str:
        """The text after the prelude."""
        return self.source[len(self.prelude) :]


class Writer(Expressions):
    """Writes one program."""

    def __init__(self, seed: int, size: int = 18) -> None:
        super().__init__(seed)
        self.seed = seed
        self.budget = size
        #: Programs of lower seeds stay as they were before there were idioms.
        self.idioms = seed >= FIRST_WITH_IDIOMS
        self.lines: list[str] = []
        self.indent = 0

    # -- the module

    def program(self) -> Program:
        """The whole program with its calls."""
        for number in range(self.random.randint(1, 2)):
            self.write_class(f"K{number}", "K0" if number and self.chance(0.6) else "")
        self.put("G_OBJ = K0(1)")
        for number in range(self.random.randint(0, 2)):
            self.write_function(f"helper{number}")
        if self.chance(0.35):
            self.write_generator(Scope(), f"gen{self.random.randint(0, 9)}")
        kinds = [self.random.choice(PARAMETERS) for _ in range(self.random.randint(1, 4))]
        if not any(kind in ("mat", "row", "sc") for kind in kinds):
            kinds[0] = "mat"
        scope = Scope()
        names = [self.fresh(kind) for kind in kinds]
        self.put(f"def main({self.parameters(scope, names, kinds)}):")
        scope.returns = "many"
        with self.indented():
            for name, kind in zip(names, kinds):
                scope.bind(name, kind)
            if self.chance(0.4):
                self.put("global G_INT")
                scope.bind("G_INT", "int")
            self.block(scope, self.random.randint(4, 8))
            self.put(f"return {self.results(scope)}")
        return Program(PRELUDE + "\n".join(self.lines) + "\n", self.calls(kinds))

    def parameters(self, scope: Scope, names: list[str], kinds: list[str]) -> str:
        if len(names) < 2 or self.chance(0.8):
            return joined(names)
        return joined([*names[:-1], f"{names[-1]}={self.leaf(scope, kinds[-1])}"])

    def results(self, scope: Scope) -> str:
        """What ``main`` returns: much of what it has computed."""
        bound = [(name, kind) for name, kind in scope.bound if kind in KINDS]
        kinds = [kind for _, kind in bound]
        chosen = [name for name, _ in bound if name != "G_INT" and self.chance(0.6)][-8:]
        chosen += [self.expression(scope, self.random.choice(kinds or ["int"]))]
        return f"({joined(chosen)},)"

    def calls(self, kinds: list[str]) -> list[str]:
        """Arguments of a few calls: equal ones, other values, other shapes, shared objects."""
        calls = []
        grad = self.chance(0.2)
        for _ in range(self.random.randint(2, 4)):
            rows = self.random.choice((2, 2, 2, 3, 1))
            parts = [self.argument(kind, rows, grad) for kind in kinds]
            same = [i for i, kind in enumerate(kinds) if kind == "mat"]
            if len(same) > 1 and self.chance(0.3):
                parts[same[1]] = self.one("(shared := {0})", "(shared := {0})[:]").format(
                    parts[same[0]]
                )
                parts[same[0]], parts[same[1]] = parts[same[1]], "shared"
            calls.append(f"main:({joined(parts)},)")
        calls.insert(1, calls[0])
        return calls

    def argument(self, kind: str, rows: int, grad: bool) -> str:
        r = self.random
        number = r.randint(0, 5)
        match kind:
            case "mat":
                dtype = self.one(*["torch.float32"] * 9, "torch.float64", "torch.int64")
                with_grad = ", grad=True" if grad and "int" not in dtype else ""
                return f"M({rows}, {number}, {dtype}{with_grad})"
            case "row":
                return f"R({number}{', True' if grad else ''})"
            case "sc":
                return f"torch.tensor({number - 2}.)"
            case "int":
                return str(number - 1)
            case "float":
                return str(number / 2 - 0.5)
            case "bool":
                return str(number % 2 == 0)
            case "str":
                return self.one("'ab'", "'cab'", "'x'", "''")
            case "ilist":
                return self.one(f"[1, {number}]", f"[{number}, 0, 2]", "G_LIST", "[]", "[3, 3]")
            case "tlist":
                return self.one(f"[R({number}), R(2)]", "list(G_W)", "[R(1)]")
            case "dict":
                return self.one(f"{{'a': {number}}}", "G_DICT", "{'b': 2, 'a': 0}", "{}")
            case "tdict":
                return self.one(f"{{'a': R({number})}}", "{'a': R(1), 'b': G_W[1]}")
            case "pair":
                return self.one(f"(1, {number})", f"Pair({number})")
            case "set":
                return self.one(f"{{1, {number}}}", "set()")
            case "obj":
                name = r.choice(list(self.classes))
                return self.one(f"{name}({number})", f"{name}(1)", "G_OBJ")
            case "fn":
                return self.one("abs", f"(lambda v: v + {number})", "K0(1).step")
            case "tfn":
                return self.one("torch.abs", "(lambda v: v * 2)", "K0(2)")
            case "it":
                return self.one("iter([1, 2, 3])", "iter(range(4))", "(v * 2 for v in (1, 2))")
            case _:
                return self.one("None", str(number))

    # -- lines

    def put(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def indented(self) -> Indented:
        return Indented(self)

    def block(self, scope: Scope, statements: int) -> None:
        """A block of at least one statement."""
        start = len(self.lines)
        for _ in range(statements):
            if self.budget <= 0 and len(self.lines) > start:
                break
            self.budget -= 1
            self.statement(scope)
        if len(self.lines) == start:
            self.put("pass")

    # -- definitions

    def write_class(self, name: str, base: str) -> None:
        """A class of the kind ``obj``. All have n, w, items, table, step, apply, +, ==, make."""
        self.classes[name] = set()
        scope = Scope()
        scope.bind("self.n", "int")
        scope.bind("self.items", "ilist")
        scope.bind("self.table", "dict")
        scope.bind("self.w", "row")
        optional = {m for m in METHODS if self.chance(0.3)}
        self.in_class = True
        self.put(f"class {name}{f'({base})' if base else ''}:")
        with self.indented():
            if self.chance(0.3):
                self.put("count = 0")
            if base:
                self.put("def __init__(self, n, w=None):")
                with self.indented():
                    self.put(self.one("super().__init__(n, w)", f"{base}.__init__(self, n, w)"))
                    self.put("self.extra = n * 2")
            else:
                self.put("def __init__(self, n, w=None):")
                with self.indented():
                    self.put("self.n = n")
                    self.put("self.w = torch.ones(3) if w is None else w")
                    self.put("self.items = [n, 1]")
                    self.put("self.table = {'a': n}")
            self.put("@classmethod")
            self.put("def make(cls, n): return cls(n + 1)")
            self.put("def step(self, i):")
            self.method_body(scope, ("i", "int"), "int", base and self.one("", "super().step(i)"))
            self.put("def apply(self, r):")
            self.method_body(scope, ("r", "row"), "row", base and self.one("", "super().apply(r)"))
            if not base:
                self.put("def __call__(self, r): return self.apply(r)")
                self.put("def __add__(self, other): return type(self)(self.n + other, self.w)")
                self.put("def __len__(self): return len(self.items)")
                self.put("def __iter__(self): return iter(self.items)")
                self.put("def __repr__(self): return f'{type(self).__name__}({self.n})'")
            for method in sorted(optional):
                for line in textwrap.dedent(METHODS[method]).strip().splitlines():
                    self.put(line)
        self.classes[name] = optional
        self.in_class = False

    def method_body(self, scope: Scope, variable: tuple[str, str], kind: str, sup: str) -> None:
        inner = Scope()
        inner.bound = [*scope.bound, variable]
        inner.returns = kind
        with self.indented():
            self.block(inner, self.random.randint(0, 2) or 1)
            if sup:
                self.put(f"{variable[0]} = {sup}")
            self.put(f"return {self.expression(inner, kind)}")

    def write_function(self, name: str, scope: Scope | None = None) -> None:
        """A function, at module level or inside ``scope``."""
        kinds = [self.random.choice(PARAMETERS) for _ in range(self.random.randint(0, 3))]
        result = self.one("int", "row", "mat", "ilist", "bool", "dict", "obj", "sc")
        inner = Scope(scope)
        names = [self.fresh(kind) for kind in kinds]
        if self.chance(0.15):
            self.put(self.one("@functools.wraps(M)", "@torch.no_grad()"))
        self.put(f"def {name}({joined(names)}):")
        with self.indented():
            self.enter_function(inner, scope, names, kinds)
            inner.returns = result
            self.block(inner, self.random.randint(1, 3))
            if not scope and "int" in kinds and self.chance(0.2):
                count = names[kinds.index("int")]
                self.put(f"if 0 < {count} < 4:")
                recursion = [f"{n} - 1" if n == count else n for n in names]
                with self.indented():
                    self.put(f"return {name}({joined(recursion)})")
            self.put(f"return {self.expression(inner, result)}")
        if scope is None:
            self.functions[name] = (tuple(kinds), result)

    def enter_function(
        self, inner: Scope, outer: Scope | None, names: list[str], kinds: list[str]
    ) -> None:
        for name, kind in zip(names, kinds):
            inner.bind(name, kind)
        if outer is None:
            return
        taken = [p for p in outer.bound if p[0].isidentifier() and p[0] != "G_INT"]
        taken = [p for p in taken if p[0] not in (*names, "other") and self.chance(0.3)]
        if taken:
            self.put(f"nonlocal {joined([name for name, _ in taken])}")
            for name, kind in taken:
                inner.bind(name, kind)

    def write_generator(self, scope: Scope, name: str) -> None:
        inner = Scope(scope if scope.bound else None)
        self.put(f"def {name}(start):")
        with self.indented():
            self.enter_function(inner, inner.parent, ["start"], ["int"])
            inner.generator = True
            self.put(f"yield {self.expression(inner, 'int')}")
            self.block(inner, self.random.randint(1, 3))
            self.put(
                self.one(
                    "yield start",
                    lambda: f"yield from {self.ints(inner, 1)}",
                    lambda: f"for i in {self.ints(inner, 1)}: yield i",
                )
            )
        if scope.bound:
            scope.bind(name, "generator function")
        else:
            self.functions[name] = (("int",), "gen")

    # -- statements

    def statement(self, scope: Scope) -> None:
        """One random statement."""
        simple = [
            self.assign,
            self.assign,
            self.assign,
            self.augmented,
            self.tensor_in_place,
            self.tensor_in_place,
            self.mutate_container,
            self.mutate_container,
            self.mutate_object,
            self.output,
            self.unpack,
            self.call_something,
        ]
        nested = [
            self.if_statement,
            self.if_statement,
            self.for_statement,
            self.for_statement,
            self.while_statement,
            self.try_statement,
            self.try_statement,
            self.with_statement,
            self.nested_function,
            self.match_statement,
        ]
        rare = [self.raise_statement, self.delete, self.early_return, self.nested_class]
        if self.chance(0.06):
            return self.random.choice(rare)(scope)
        if scope.loops and self.chance(0.1):
            return self.leave_loop(scope)
        if self.idioms and self.chance(0.12):
            return write_idiom(self, scope)
        deep = self.indent > 5
        return self.random.choice(simple if deep or self.chance(0.62) else nested)(scope)

    def assign(self, scope: Scope) -> None:
        kind = self.one("mat", "mat", "row", "row", "sc", "int", "int", "float", "str", "ilist",
                        "tlist", "dict", "tdict", "pair", "set", "obj", "fn", "tfn", "it", "opt", "bool")  # fmt: skip
        value = self.expression(scope, kind, self.random.randint(1, 3))
        own = [n for n in scope.own(kind)]
        if own and self.chance(0.35):
            name = self.random.choice(own)
        elif self.chance(0.1) and own:
            name = self.fresh(kind)
            self.put(f"{name} = {self.random.choice(own)} = {value}")
            scope.bind(name, kind)
            return
        else:
            name = self.fresh(kind)
        self.put(f"{name} = {value}")
        scope.bind(name, kind)

    def augmented(self, scope: Scope) -> None:
        kind = self.one("int", "float", "mat", "row", "ilist", "str", "set", "mat", "row")
        own = scope.own(kind)
        if not own:
            return self.assign(scope)
        name = self.random.choice(own)
        if kind in ("mat", "row"):
            value = self.expression(scope, self.one("row", "sc", "float", "int"), 1)
            self.put(f"{name} {self.one('+=', '-=', '*=')} {value}")
        elif kind == "ilist":
            self.put(f"{name} += {self.expression(scope, kind, 1)}[:3]")
        elif kind == "set":
            self.put(f"{name} {self.one('|=', '-=', '&=')} {self.expression(scope, kind, 1)}")
        elif kind == "str":
            self.put(f"{name} += {self.expression(scope, kind, 1)}[:3]")
        else:
            self.put(f"{name} {self.one('+=', '-=')} {self.expression(scope, kind, 1)}")
        return None

    def tensor_in_place(self, scope: Scope) -> None:
        kind = self.one("mat", "mat", "row")
        name = self.variable(scope, kind) or "G_M"
        if name == "G_M":
            kind = "mat"
        e = self.expression
        number = lambda: self.number(scope, 1)  # noqa: E731
        row = lambda: e(scope, "row", 1)  # noqa: E731
        shared = (
            lambda: f"{name}.{self.one('add_', 'mul_', 'sub_', 'fill_', 'clamp_')}({number()})",
            lambda: f"{name}.{self.one('zero_', 'neg_', 'abs_', 'relu_')}()",
            lambda: f"{name}.copy_({row()})",
            lambda: (
                f"{name}[{self.one('0', '-1', '1:', ':1', lambda: e(scope, 'int', 0))}] = {number()}"
            ),
            lambda: f"{name}[{self.one('0', '-1', ':1')}] {self.one('+=', '*=')} {number()}",
            lambda: f"{name}[{name} > {number()}] = {e(scope, 'float', 0)}",
            lambda: f"{name}.data.mul_(2)",
            lambda: f"torch.add({name}, {number()}, out={name}.detach())",
        )
        if kind == "mat":
            text = self.one(
                *shared,
                lambda: f"{name}[0] = {row()}",
                lambda: f"{name}[:, 1] {self.one('=', '+=', '*=')} {number()}",
                lambda: f"{name}.add_({row()}, alpha=2)",
                lambda: f"{name}[0].{self.one('add_', 'mul_')}({row()})",
                lambda: self.view_and_write(scope, name),
                lambda: f"{name}.masked_fill_({name} < 0, {e(scope, 'float', 0)})",
                lambda: f"{name}.view(-1)[1:3].zero_()",
            )
        else:
            text = self.one(*shared)
        self.put(text)

    def view_and_write(self, scope: Scope, name: str) -> str:
        view = self.fresh("row")
        scope.bind(view, "row")
        self.put(f"{view} = {name}{self.one('[0]', '[-1]', '.select(0, 0)', '.unbind(0)[-1]')}")
        return f"{view}.{self.one('add_(1)', 'mul_(2)', 'zero_()')}"

    def mutate_container(self, scope: Scope) -> None:
        e = self.expression
        kind = self.one("ilist", "ilist", "dict", "dict", "tlist", "tdict", "set")
        name = self.variable(scope, kind)
        if name is None:
            name = {"ilist": "G_LIST", "dict": "G_DICT"}.get(kind)
        if name is None:
            return self.assign(scope)
        integer = lambda: e(scope, "int", 1)  # noqa: E731
        row = lambda: e(scope, "row", 1)  # noqa: E731
        texts = {
            "ilist": (
                lambda: f"{name}.append({integer()})",
                lambda: f"{name}.extend({e(scope, 'ilist', 1)}[:2])",
                lambda: f"{name}[{self.one('0', '-1', integer)}] = {integer()}",
                lambda: f"{name}[0] {self.one('+=', '-=')} {integer()}",
                lambda: f"{name}.insert({integer()}, {integer()})",
                lambda: f"{name}.{self.one('pop()', 'reverse()', 'sort()', 'pop(0)', 'clear()')}",
                lambda: f"{name}.remove({integer()})",
                lambda: f"{name}[{self.one(':1', '1:', '::2')}] = {self.ints(scope, 1)}",
                lambda: f"del {name}[{self.one('0', '-1', ':1')}]",
                lambda: f"{name}.sort(key={e(scope, 'fn', 1)})",
            ),
            "dict": (
                lambda: f"{name}[{self.key(scope)}] = {integer()}",
                lambda: f"{name}[{self.key(scope)}] += {integer()}",
                lambda: f"{name}.update({e(scope, 'dict', 1)})",
                lambda: f"{name}.setdefault({self.key(scope)}, {integer()})",
                lambda: f"{name}.pop({self.key(scope)}, None)",
                lambda: f"del {name}[{self.key(scope)}]",
                lambda: f"{name}.{self.one('clear()', 'popitem()')}",
            ),
            "tlist": (
                lambda: f"{name}.append({row()})",
                lambda: f"{name}[0] = {row()}",
                lambda: f"{name}[-1] {self.one('+=', '*=')} {self.number(scope, 1)}",
                lambda: f"{name}.pop().{self.one('add_(1)', 'zero_()')}",
            ),
            "tdict": (
                lambda: f"{name}[{self.key(scope)}] = {row()}",
                lambda: f"{name}['a'].{self.one('add_', 'mul_')}({self.number(scope, 1)})",
                lambda: f"{name}['a'] {self.one('+=', '*=')} {self.number(scope, 1)}",
            ),
            "set": (
                lambda: f"{name}.{self.one('add', 'discard', 'remove')}({integer()})",
                lambda: f"{name}.update({self.ints(scope, 1)})",
            ),
        }
        self.put(self.one(*texts[kind]))
        return None

    def mutate_object(self, scope: Scope) -> None:
        e = self.expression
        name = self.variable(scope, "obj") or "G_OBJ"
        optional = sorted(set().union(*self.classes.values()))
        self.put(
            self.one(
                lambda: f"{name}.n {self.one('=', '+=', '-=')} {e(scope, 'int', 1)}",
                lambda: f"{name}.w = {e(scope, 'row', 1)}",
                lambda: f"{name}.w {self.one('+=', '*=')} {self.number(scope, 1)}",
                lambda: f"{name}.w.{self.one('add_', 'mul_')}({self.number(scope, 1)})",
                lambda: f"{name}.items.append({e(scope, 'int', 1)})",
                lambda: f"{name}.table[{self.key(scope)}] = {e(scope, 'int', 1)}",
                lambda: f"{name}.extra = {e(scope, self.one('int', 'row', 'ilist'), 1)}",
                lambda: f"{name}.{self.method('n', 'step', scope, 'int', 1)}",
                lambda: f"setattr({name}, 'extra', {e(scope, 'int', 1)})",
                lambda: f"del {name}.{self.one('extra', 'n')}",
                lambda: f"type({name}).count = {e(scope, 'int', 1)}",
                lambda: f"{name}.__dict__['n'] = {e(scope, 'int', 1)}",
                *[USES[m].format(name=name) for m in optional if m in USES],
            )
        )

    def output(self, scope: Scope) -> None:
        e = self.expression
        if self.chance(0.5):
            return self.assign(scope)
        self.put(
            self.one(
                lambda: f"print({e(scope, 'int', 1)}, {e(scope, 'str', 1)})",
                lambda: f"print({e(scope, 'ilist', 1)}, sep='|')",
                lambda: f"print({e(scope, 'row', 1)})",
                lambda: f"print({e(scope, 'obj', 1)}, end='.')",
            )
        )
        return None

    def unpack(self, scope: Scope) -> None:
        a, b, c = self.fresh("int"), self.fresh("int"), self.fresh("ilist")
        e = self.expression
        integers = [(a, "int"), (b, "int")]
        text, bound = self.random.choice(
            [
                (lambda: f"{a}, {b} = {e(scope, 'pair', 1)}", integers),
                (lambda: f"{a}, *{c} = {self.ints(scope, 1)}", [(a, "int"), (c, "ilist")]),
                (lambda: f"({a}, {b}), *{c} = {e(scope, 'pair', 1)}, 1", [*integers, (c, "ilist")]),
                (lambda: f"{a}, {b} = {e(scope, 'int', 1)}, {e(scope, 'int', 1)}", integers),
                (lambda: f"*{c}, {a} = {e(scope, 'ilist', 1)}", [(a, "int"), (c, "ilist")]),
            ]
        )
        self.put(text())
        for name, kind in bound:
            scope.bind(name, kind)

    def call_something(self, scope: Scope) -> None:
        generators = scope.readable("generator function")
        if generators and self.chance(0.5):
            name = self.fresh("it")
            self.put(f"{name} = {generators[0]}({self.expression(scope, 'int', 1)})")
            scope.bind(name, "it")
        elif self.functions and self.chance(0.7):
            name = self.random.choice(list(self.functions))
            self.put(self.call_function(scope, name, 2))
        else:
            self.put(self.expression(scope, self.one("int", "ilist", "row", "str"), 2))

    # -- statements with blocks

    def if_statement(self, scope: Scope) -> None:
        self.put(f"if {self.condition(scope)}:")
        with self.indented(), scope.block():
            self.block(scope, self.random.randint(1, 3))
        if self.chance(0.25):
            self.put(f"elif {self.condition(scope)}:")
            with self.indented(), scope.block():
                self.block(scope, self.random.randint(1, 2))
        if self.chance(0.4):
            self.put("else:")
            with self.indented(), scope.block():
                self.block(scope, self.random.randint(1, 2))

    def condition(self, scope: Scope) -> str:
        return self.one(
            lambda: self.expression(scope, "bool", 2),
            lambda: self.expression(scope, "bool", 2),
            lambda: self.expression(scope, "int", 1),
            lambda: self.expression(scope, "ilist", 1),
            lambda: f"{self.expression(scope, 'sc', 1)} > {self.expression(scope, 'int', 0)}",
        )

    def for_statement(self, scope: Scope) -> None:
        if scope.loops >= 2:
            return self.assign(scope)
        e = self.expression
        v, w = self.fresh("int"), self.fresh("row")
        key = self.fresh("str")
        header, bound = self.random.choice(
            [
                (lambda: f"{v} in {self.ints(scope, 1)}", [(v, "int")]),
                (lambda: f"{v} in range({self.random.randint(1, 3)})", [(v, "int")]),
                (lambda: f"{v} in {e(scope, 'it', 1)}", [(v, "int")]),
                (lambda: f"{w} in {e(scope, 'tlist', 1)}", [(w, "row")]),
                (lambda: f"{w} in {e(scope, 'mat', 1)}", [(w, "row")]),
                (lambda: f"{v}, {w} in enumerate({e(scope, 'mat', 1)})", [(v, "int"), (w, "row")]),
                (lambda: f"{key}, {v} in {e(scope, 'dict', 1)}.items()", [(v, "int"), (key, "str")]),
                (lambda: f"{key} in {e(scope, 'dict', 1)}", [(key, "str")]),
                (lambda: f"{v}, {w} in zip({self.ints(scope, 1)}, {e(scope, 'tlist', 1)})",
                 [(v, "int"), (w, "row")]),
                (lambda: f"{key} in {e(scope, 'str', 1)}", [(key, "str")]),
            ]
        )  # fmt: skip
        self.put(f"for {header()}:")
        scope.loops += 1
        with self.indented(), scope.block():
            for name, kind in bound:
                scope.bind(name, kind)
            self.block(scope, self.random.randint(1, 3))
        scope.loops -= 1
        if self.chance(0.15):
            self.put("else:")
            with self.indented(), scope.block():
                self.block(scope, 1)
        return None

    def while_statement(self, scope: Scope) -> None:
        if scope.loops >= 2:
            return self.assign(scope)
        counter = self.fresh("count")
        self.put(f"{counter} = 0")
        self.put(
            f"while {counter} < {self.random.randint(1, 3)}"
            + self.one("", lambda: f" and {self.expression(scope, 'bool', 1)}")
            + ":"
        )
        scope.loops += 1
        with self.indented(), scope.block():
            self.put(f"{counter} += 1")
            self.block(scope, self.random.randint(1, 3))
        scope.loops -= 1
        if self.chance(0.15):
            self.put("else:")
            with self.indented(), scope.block():
                self.block(scope, 1)
        return None

    def leave_loop(self, scope: Scope) -> None:
        self.put(f"if {self.condition(scope)}: {self.one('break', 'continue')}")

    def try_statement(self, scope: Scope) -> None:
        self.put("try:")
        with self.indented(), scope.block():
            self.block(scope, self.random.randint(1, 3))
            if self.chance(0.4):
                self.raise_statement(scope)
        handlers = self.random.randint(0, 2)
        for number in range(handlers):
            name = self.fresh("error")
            kind = self.one("Exception", "(ValueError, KeyError)", "Error", "LookupError", "TypeError",
                            "RuntimeError", "ArithmeticError")  # fmt: skip
            if number:
                kind = "Exception"
            self.put(f"except {kind} as {name}:")
            with self.indented(), scope.block():
                text = self.fresh("str")
                if self.chance(0.6):
                    self.put(
                        f"{text} = {self.one('type({0}).__name__', 'str({0})[:9]')}".format(name)
                    )
                    scope.bind(text, "str")
                self.block(scope, self.random.randint(1, 2))
                if self.chance(0.2):
                    self.put(
                        self.one("raise", f"raise Error(2) from {name}", "raise ValueError('x')")
                    )
        if handlers and self.chance(0.25):
            self.put("else:")
            with self.indented(), scope.block():
                self.block(scope, 1)
        if not handlers or self.chance(0.3):
            self.put("finally:")
            with self.indented(), scope.block():
                self.block(scope, self.random.randint(1, 2))
                if self.chance(0.12) and not scope.generator:
                    self.put(self.return_text(scope))

    def with_statement(self, scope: Scope) -> None:
        name = self.fresh("entered")
        managers = [m for m, optional in self.classes.items() if "enter" in optional]
        self.put(
            "with "
            + self.one(
                "torch.no_grad()",
                "torch.enable_grad()",
                lambda: f"torch.set_grad_enabled({self.expression(scope, 'bool', 1)})",
                "contextlib.suppress(ValueError, LookupError, Error)",
                "contextlib.suppress(Exception)",
                f"contextlib.nullcontext(2) as {name}",
                *[f"{m}({self.random.randint(0, 2)}) as {name}" for m in managers * 3],
            )
            + ":"
        )
        with self.indented(), scope.block():
            self.block(scope, self.random.randint(1, 3))
            if self.chance(0.25):
                self.raise_statement(scope)

    def nested_function(self, scope: Scope) -> None:
        if scope.depth >= 2 or scope.fixed:
            return self.assign(scope)
        shape = self.random.random()
        if shape < 0.25:
            self.write_generator(scope, self.fresh("gen"))
            return None
        kind = self.one("int", "row")
        name, parameter = self.fresh("local"), self.fresh(kind)
        default = self.one("", "", lambda: f", other={self.expression(scope, kind, 1)}")
        inner = Scope(scope)
        self.put(f"def {name}({parameter}{default}):")
        with self.indented():
            self.enter_function(inner, scope, [parameter], [kind])
            if default:
                inner.bind("other", kind)
            inner.returns = kind
            self.block(inner, self.random.randint(1, 3))
            self.put(f"return {self.expression(inner, kind)}")
        scope.bind(name, "fn" if kind == "int" else "tfn")
        if self.chance(0.6):
            result = self.fresh(kind)
            self.put(f"{result} = {name}({self.expression(scope, kind, 1)})")
            scope.bind(result, kind)
        return None

    def nested_class(self, scope: Scope) -> None:
        if scope.depth or scope.fixed:
            return self.assign(scope)
        name = self.fresh("Local")
        base = self.random.choice(list(self.classes))
        inner = Scope(scope)
        inner.returns = "int"
        inner.bind("i", "int")
        self.put(f"class {name}({base}):")
        with self.indented():
            self.put(f"tag = {self.expression(scope, 'int', 1)}")
            self.put("def step(self, i):")
            with self.indented():
                self.block(inner, 1)
                self.put(f"return super().step({self.expression(inner, 'int', 1)}) + self.tag")
        result = self.fresh("obj")
        self.put(f"{result} = {name}({self.expression(scope, 'int', 1)})")
        scope.bind(result, "obj")
        return None

    def match_statement(self, scope: Scope) -> None:
        v, w = self.fresh("int"), self.fresh("ilist")
        cases = [
            (f"[{v}, *{w}]", [(v, "int"), (w, "ilist")]),
            (f"{{'a': {v}}}", [(v, "int")]),
            ("0 | 1 | None", []),
            (f"int() as {v}", [(v, "int")]),
            (f"Pair(left={v})", [(v, "int")]),
            (f"{v} if {v} == 2", [(v, "int")]),
            ("torch.Tensor()", []),
        ]
        subject = self.one("ilist", "dict", "int", "pair", "opt", "row")
        self.put(f"match {self.expression(scope, subject, 1)}:")
        with self.indented():
            for pattern, bound in self.random.sample(cases, 2):
                self.put(f"case {pattern}:")
                with self.indented(), scope.block():
                    for name, kind in bound:
                        scope.bind(name, kind)
                    self.block(scope, self.random.randint(1, 2))
            if self.chance(0.5):
                self.put("case _:")
                with self.indented(), scope.block():
                    self.block(scope, 1)

    # -- rare ones

    def raise_statement(self, scope: Scope) -> None:
        what = self.one("ValueError('v')", "KeyError('k')", "StopIteration", "Error(4)", "TypeError",
                        lambda: f"Error({self.expression(scope, 'int', 1)})",
                        lambda: f"ValueError({self.expression(scope, 'str', 1)}) from None")  # fmt: skip
        if scope.generator and "StopIteration" in what:
            what = "ValueError"
        self.put(
            self.one(
                lambda: f"if {self.condition(scope)}: raise {what}",
                lambda: (
                    f"assert {self.expression(scope, 'bool', 1)}, {self.expression(scope, 'str', 0)}"
                ),
            )
        )

    def early_return(self, scope: Scope) -> None:
        self.put(f"if {self.condition(scope)}: {self.return_text(scope)}")

    def return_text(self, scope: Scope) -> str:
        if scope.returns == "many":
            return f"return {self.results(scope)}"
        if scope.generator:
            return "return"
        return f"return {self.expression(scope, scope.returns if scope.returns != 'any' else 'int', 1)}"

    def delete(self, scope: Scope) -> None:
        own = [n for n, kind in scope.bound if n.isidentifier() and n not in scope.fixed]
        own = [n for n in own if n not in ("G_INT", "i", "r", "start", "other")]
        if len(own) < 3:
            return self.assign(scope)
        name = self.random.choice(own)
        self.put(f"del {name}")
        scope.unbind(name)
        return None


class Indented:
    """A block of lines one level deeper."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        self.writer.indent += 1

    def __exit__(self, *error: object) -> None:
        self.writer.indent -= 1


#: Methods that a class may have, by name.
METHODS = {
    "eq": """
        def __eq__(self, other): return isinstance(other, K0) and self.n == other.n
        def __hash__(self): return hash(self.n)
    """,
    "bool": "def __bool__(self): return self.n > 0",
    "property": """
        @property
        def total(self): return sum(self.items)
        @total.setter
        def total(self, value): self.items = [value]
    """,
    "getattr": """
        def __getattr__(self, name):
            if name == 'extra': return 11
            raise AttributeError(name)
    """,
    "setattr": """
        def __setattr__(self, name, value):
            self.__dict__[name] = value
            self.__dict__['last'] = name
    """,
    "enter": """
        def __enter__(self):
            self.n += 1
            return self
        def __exit__(self, kind, error, trace):
            self.items.append(0 if kind is None else 9)
            return kind is not None and issubclass(kind, (ValueError, Error)) and self.n > 1
    """,
    "getitem": """
        def __getitem__(self, index): return self.items[index]
        def __setitem__(self, index, value): self.items[index] = value
    """,
    "contains": "def __contains__(self, value): return value == self.n",
    "iadd": """
        def __iadd__(self, other):
            self.n += other
            return self
    """,
    "static": """
        @staticmethod
        def twice(value): return value * 2
    """,
    "generator": """
        def each(self):
            for item in self.items:
                yield item + self.n
    """,
    "slotted": "kind = property(lambda self: type(self).__name__)",
}

#: Statements that use them.
USES = {
    "property": "{name}.total += 2",
    "getattr": "{name}.n = {name}.extra",
    "setattr": "{name}.n = 4",
    "getitem": "{name}[0] = {name}[-1] + 1",
    "contains": "{name}.n = int(3 in {name})",
    "iadd": "{name}.__iadd__(1)",
    "static": "{name}.n = {name}.twice(2)",
    "generator": "{name}.items = list({name}.each())",
}


def random_program(seed: int) -> Program:
    """The program of a seed."""
    for attempt in range(100):
        program = Writer(seed * 100 + attempt).program()
        with warnings.catch_warnings(), contextlib.suppress(SyntaxError):
            warnings.simplefilter("ignore")
            compile(program.source, "<program>", "exec")
            return program
    raise AssertionError(f"no program for seed {seed}")
