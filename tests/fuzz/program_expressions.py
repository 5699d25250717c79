"""Random expressions by kind. Kinds: ``mat`` (n, 3), ``row`` (3,), ``sc`` () are tensors; ``int``,
``float``, ``bool``, ``str``, ``ilist``, ``tlist`` (rows), ``dict`` (str to int), ``tdict`` (str to
row), ``pair`` (two ints), ``set`` (ints), ``obj``, ``fn`` (int to int), ``tfn`` (row to row), ``it``
(iterator of ints), ``opt`` (int or None).
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from program_scope import Scope

KINDS = (
    "mat row sc int float bool str ilist tlist dict tdict pair set obj fn tfn it opt".split()
)  # fmt: skip
KEYS = ("a", "b", "c")
Choice = str | Callable[[], str]


class Expressions:
    """Writes expressions; the writer of statements inherits."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        #: Module-level functions: name to (kinds of parameters, kind of result).
        self.functions: dict[str, tuple[tuple[str, ...], str]] = {}
        #: Inside a class: methods call no other methods, else most programs would recurse.
        self.in_class = False
        #: Depth of iterables of comprehensions, where no name may be assigned.
        self.no_walrus = 0
        #: Classes of ``obj``: name to the set of their optional methods.
        self.classes: dict[str, set[str]] = {}

    # -- choosing

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, *choices: Choice) -> str:
        """One of several texts; functions are only called when chosen."""
        chosen = self.random.choice(choices)
        return chosen if isinstance(chosen, str) else chosen()

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def variable(self, scope: Scope, kind: str) -> str | None:
        names = scope.readable(kind)
        return self.random.choice(names[-6:]) if names else None

    def expression(self, scope: Scope, kind: str, depth: int = 2) -> str:
        """An expression of ``kind``."""
        if depth <= 0 or self.chance(0.35):
            name = self.variable(scope, kind)
            if name is not None and self.chance(0.85):
                return name
            if depth <= 0:
                return self.leaf(scope, kind)
        calls = [name for name, (_, result) in self.functions.items() if result == kind]
        if calls and self.chance(0.15):
            return self.call_function(scope, self.random.choice(calls), depth)
        return getattr(self, f"make_{kind}")(scope, depth - 1)

    def call_function(self, scope: Scope, name: str, depth: int) -> str:
        arguments = [self.expression(scope, kind, depth - 1) for kind in self.functions[name][0]]
        if len(arguments) > 1 and self.chance(0.2):
            return f"{name}(*({', '.join(arguments)},))"
        return f"{name}({', '.join(arguments)})"

    def leaf(self, scope: Scope, kind: str) -> str:
        r = self.random
        match kind:
            case "mat":
                return self.one("torch.ones(2, 3)", "G_M", "torch.arange(6.).view(2, 3)")
            case "row":
                return self.one("torch.ones(3)", "G_W[0]", "torch.arange(3.)")
            case "sc":
                return self.one("torch.tensor(2.)", "G_W[1, 1]", "torch.tensor(-1.)")
            case "int":
                return str(r.randint(-2, 5))
            case "float":
                return r.choice(["0.5", "-1.5", "2.0", "0.0", "1e3"])
            case "bool":
                return r.choice(["True", "False"])
            case "str":
                return r.choice(["'ab'", "''", "'x'", "'key'"])
            case "ilist":
                return r.choice(["[1, 2, 3]", "[]", "[4]", "G_LIST"])
            case "tlist":
                return r.choice(["[torch.ones(3)]", "[G_W[0], G_W[1]]", "list(G_W.unbind(0))"])
            case "dict":
                return r.choice(["{'a': 1, 'b': 2}", "{}", "G_DICT", "dict(c=3)"])
            case "tdict":
                return r.choice(["{'a': torch.ones(3)}", "{'a': G_W[0], 'b': G_W[2]}"])
            case "pair":
                return r.choice(["(1, 2)", "(0, -1)", "divmod(7, 3)"])
            case "set":
                return r.choice(["{1, 2}", "set()", "{3}"])
            case "obj":
                return f"{r.choice(list(self.classes))}({r.randint(0, 3)})"
            case "fn":
                return r.choice(["abs", "(lambda v: v + 1)", "int", "operator.neg"])
            case "tfn":
                return r.choice(["torch.abs", "(lambda v: v * 2)", "torch.relu", "torch.neg"])
            case "it":
                return r.choice(["iter([1, 2])", "iter(range(3))", "iter(())"])
            case _:
                return r.choice(["None", "1"])

    # -- numbers, truth, text

    def make_int(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"({e(scope, 'int', d)} {self.one('+', '-', '&', '|', '^')} {e(scope, 'int', d)})",
            lambda: f"({e(scope, 'int', d)} * {e(scope, 'int', d)} % {self.random.randint(2, 9)})",
            lambda: f"({e(scope, 'int', d)} // (abs({e(scope, 'int', d)}) + 1))",
            lambda: f"({e(scope, 'int', d)} % ({e(scope, 'int', d)}))",
            lambda: f"({e(scope, 'int', d)} if {e(scope, 'bool', d)} else {e(scope, 'int', d)})",
            lambda: f"len({self.sized(scope, d)})",
            lambda: f"-{e(scope, 'int', d)}",
            lambda: f"{e(scope, 'ilist', d)}[{self.one('0', '-1', '1', lambda: e(scope, 'int', d))}]",
            lambda: f"{e(scope, 'dict', d)}.get({self.key(scope)}, {e(scope, 'int', d)})",
            lambda: f"{e(scope, 'dict', d)}[{self.key(scope)}]",
            lambda: f"{e(scope, 'mat', d)}.{self.one('shape[0]', 'size(-1)', 'dim()', 'numel()', 'ndim')}",
            lambda: f"int({self.one(lambda: e(scope, 'float', d), lambda: e(scope, 'bool', d))})",
            lambda: f"int({e(scope, 'sc', d)} > {e(scope, 'int', d)})",
            lambda: f"sum({self.ints(scope, d)})",
            lambda: f"{self.one('max', 'min')}({e(scope, 'int', d)}, {e(scope, 'int', d)})",
            lambda: f"max({self.ints(scope, d)}, default=0)",
            lambda: f"{e(scope, 'obj', d)}.{self.method('n', 'step', scope, 'int', d)}",
            lambda: f"{e(scope, 'fn', d)}({e(scope, 'int', d)})",
            lambda: f"next({e(scope, 'it', d)}, {e(scope, 'int', d)})",
            lambda: f"sum({self.inline(scope, v, 'int', d)} for {v} in {self.ints(scope, d)})",
            lambda: f"{e(scope, 'pair', d)}[{self.one('0', '1', '-1')}]",
            lambda: f"functools.reduce(lambda p, q: p * 2 + q, {self.ints(scope, d)}, {e(scope, 'int', d)}) % 97",
            lambda: f"max({e(scope, 'ilist', d)}, key=lambda {v}: {self.inline(scope, v, 'int', d)}, default=1)",
            lambda: f"{e(scope, 'ilist', d)}.{self.one('count', 'index')}({e(scope, 'int', d)})",
            lambda: f"{e(scope, 'ilist', d)}.pop()",
            lambda: f"(lambda {v}: {self.inline(scope, v, 'int', d)})({e(scope, 'int', d)})",
            lambda: f"{e(scope, 'str', d)}.{self.one('count', 'find')}({e(scope, 'str', d)})",
            lambda: f"({e(scope, 'opt', d)} or {e(scope, 'int', d)})",
            lambda: f"round({e(scope, 'float', d)})",
            lambda: self.walrus(scope, "int", d),
            lambda: f"len(list({self.ints(scope, d)}))",
            "G_INT",
        )  # fmt: skip

    def inline(self, scope: Scope, name: str, kind: str, depth: int, its: str = "int") -> str:
        """An expression that may use ``name``, which a comprehension or lambda binds."""
        with scope.inner((name, its)):
            return self.expression(scope, kind, depth)

    def method(self, attribute: str, name: str, scope: Scope, kind: str, depth: int) -> str:
        """An attribute, or a call of a method."""
        if self.in_class or self.chance(0.5):
            return attribute
        return f"{name}({self.expression(scope, kind, depth)})"

    def walrus(self, scope: Scope, kind: str, depth: int) -> str:
        value = self.expression(scope, kind, depth)
        names = [name for name in scope.own(kind) if name.isidentifier()]
        if not names or scope.fixed or self.no_walrus:
            return value
        return f"({self.random.choice(names)} := {value})"

    def key(self, scope: Scope) -> str:
        return repr(self.random.choice(KEYS))

    def sized(self, scope: Scope, d: int) -> str:
        return self.expression(
            scope, self.one("ilist", "dict", "str", "set", "tlist", "mat", "obj"), d
        )

    def ints(self, scope: Scope, d: int) -> str:
        """Something that can be iterated over and gives ints."""
        self.no_walrus += 1
        text = self.any_ints(scope, d)
        self.no_walrus -= 1
        return text

    def any_ints(self, scope: Scope, d: int) -> str:
        e = self.expression
        return self.one(
            lambda: e(scope, "ilist", d),
            lambda: e(scope, "ilist", d),
            lambda: f"range({e(scope, 'int', d)} % 4)",
            lambda: e(scope, "pair", d),
            lambda: f"{e(scope, 'dict', d)}.values()",
            lambda: f"sorted({e(scope, 'set', d)})",
            lambda: e(scope, "it", d),
            lambda: e(scope, "obj", d),
            lambda: f"map({e(scope, 'fn', d)}, {e(scope, 'ilist', d)})",
        )

    def make_float(self, scope: Scope, d: int) -> str:
        e = self.expression
        return self.one(
            lambda: f"({e(scope, 'float', d)} {self.one('+', '-', '*')} {e(scope, 'float', d)})",
            lambda: f"({e(scope, 'int', d)} / 4)",
            lambda: f"({e(scope, 'float', d)} / {e(scope, 'int', d)})",
            lambda: f"float({e(scope, 'int', d)})",
            lambda: f"math.sqrt(abs({e(scope, 'float', d)}))",
            lambda: f"{e(scope, 'sc', d)}.item()",
            lambda: f"min({e(scope, 'float', d)}, {e(scope, 'int', d)})",
        )

    def make_bool(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"({e(scope, 'int', d)} {self.one('<', '>', '==', '!=', '<=')} {e(scope, 'int', d)})",
            lambda: f"({e(scope, 'int', d)} < {e(scope, 'int', d)} <= {e(scope, 'int', d)})",
            lambda: f"(not {self.anything(scope, d)})",
            lambda: f"({e(scope, 'bool', d)} {self.one('and', 'or')} {e(scope, 'bool', d)})",
            lambda: f"({e(scope, 'int', d)} {self.one('in', 'not in')} {self.ints(scope, d)})",
            lambda: f"isinstance({self.anything(scope, d)}, {self.one('int', 'str', 'torch.Tensor', '(list, dict)', *self.classes)})",
            lambda: f"({e(scope, 'opt', d)} is {self.one('', 'not ')}None)",
            lambda: f"({e(scope, 'str', d)} {self.one('==', '<', 'in')} {e(scope, 'str', d)})",
            lambda: f"bool({e(scope, self.one('ilist', 'dict', 'obj', 'str'), d)})",
            lambda: f"{self.one('any', 'all')}({self.inline(scope, v, 'bool', d)} for {v} in {self.ints(scope, d)})",
            lambda: f"bool({e(scope, 'sc', d)} > {e(scope, 'float', d)})",
            lambda: f"({e(scope, 'mat', d)} > {e(scope, 'int', d)}).{self.one('all', 'any')}()",
            lambda: f"{e(scope, 'mat', d)}.{self.one('requires_grad', 'is_contiguous()', 'is_leaf')}",
            lambda: f"({e(scope, 'obj', d)} == {e(scope, 'obj', d)})",
            lambda: f"({self.key(scope)} in {e(scope, 'dict', d)})",
            lambda: f"hasattr({e(scope, 'obj', d)}, {self.one(repr('n'), repr('nothing'), repr('extra'))})",
            lambda: f"({e(scope, 'ilist', d)} {self.one('==', 'is', '<')} {e(scope, 'ilist', d)})",
            lambda: f"torch.equal({e(scope, 'row', d)}, {e(scope, 'row', d)})",
            lambda: f"callable({self.anything(scope, d)})",
            lambda: "torch.is_grad_enabled()",
        )  # fmt: skip

    def anything(self, scope: Scope, d: int) -> str:
        return self.expression(
            scope, self.one("int", "str", "ilist", "dict", "opt", "obj", "set"), d
        )

    def make_str(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"f'{{{self.quoted(e(scope, 'int', 0))}}}-{{{self.quoted(e(scope, 'str', 0))}!r}}'",
            lambda: f"f'{{{self.quoted(e(scope, 'float', 0))}:.2f}}'",
            lambda: f"({e(scope, 'str', d)} + {e(scope, 'str', d)})[:12]",
            lambda: f"{e(scope, 'str', d)}.{self.one('upper()', 'strip()', 'title()', 'rjust(4)', 'encode().decode()')}",
            lambda: f"{e(scope, 'str', d)}[{self.one(':2', '::-1', '1:', '-1:')}]",
            lambda: f"','.join(str({v}) for {v} in {self.ints(scope, d)})",
            lambda: f"str({e(scope, self.one('int', 'ilist', 'opt', 'dict', 'pair', 'bool'), d)})",
            lambda: f"repr({e(scope, self.one('int', 'ilist', 'str', 'obj'), d)})",
            lambda: f"type({self.anything(scope, d)}).__name__",
            lambda: f"str({e(scope, 'mat', d)}.{self.one('shape', 'dtype', 'device')})",
            lambda: f"'%d:%s' % ({e(scope, 'int', d)}, {e(scope, 'str', d)})",
            lambda: f"'{{}}'.format({e(scope, 'int', d)})",
            lambda: f"{e(scope, 'str', d)}.replace('a', {e(scope, 'str', 0)})[:12]",
            lambda: f"({e(scope, 'str', d)} if {e(scope, 'bool', d)} else {e(scope, 'str', d)})",
        )  # fmt: skip

    def quoted(self, text: str) -> str:
        return text.replace("'", '"') if "'" in text else text

    # -- containers

    def make_ilist(self, scope: Scope, d: int) -> str:
        e = self.expression
        v, w = self.fresh("v"), self.fresh("w")
        return self.one(
            lambda: f"[{e(scope, 'int', d)}, {e(scope, 'int', d)}]",
            lambda: f"[{self.inline(scope, v, 'int', d)} for {v} in {self.ints(scope, d)}]",
            lambda: f"[{v} for {v} in {self.ints(scope, d)} if {self.inline(scope, v, 'bool', d)}]",
            lambda: f"[{v} * {w} % 7 for {v} in {e(scope, 'pair', d)} for {w} in range({v} % 3)]",
            lambda: f"({e(scope, 'ilist', d)} + {e(scope, 'ilist', d)})[:6]",
            lambda: f"sorted({self.ints(scope, d)}, key=lambda {v}: {self.inline(scope, v, 'int', d)}, reverse={e(scope, 'bool', 0)})",
            lambda: f"{e(scope, 'ilist', d)}[{self.one('1:', '::-1', ':2', '::2')}]",
            lambda: f"list({self.ints(scope, d)})",
            lambda: f"[*{self.ints(scope, d)}, {e(scope, 'int', d)}][:6]",
            lambda: f"list(map({e(scope, 'fn', d)}, {self.ints(scope, d)}))",
            lambda: f"list(filter({self.one('None', lambda: e(scope, 'fn', d))}, {self.ints(scope, d)}))",
            lambda: f"{e(scope, 'ilist', d)}.copy()",
            lambda: f"list(reversed({e(scope, 'ilist', d)}))",
            lambda: f"list(itertools.{self.one('chain', 'zip_longest')}({self.ints(scope, d)}, {self.ints(scope, d)}))[:0] + [{e(scope, 'int', d)}]",
            lambda: f"list(itertools.{self.one('accumulate', 'chain')}({self.ints(scope, d)}))",
            lambda: f"list(itertools.islice(itertools.count({e(scope, 'int', d)}), 3))",
            lambda: f"list({e(scope, 'mat', d)}.shape)",
            lambda: f"[{v} + {w} for {v}, {w} in zip({self.ints(scope, d)}, {self.ints(scope, d)})]",
            lambda: f"[{v} - {w} for {v}, {w} in enumerate({self.ints(scope, d)}, {e(scope, 'int', 0)})]",
            lambda: f"{e(scope, 'obj', d)}.items",
            lambda: f"LocalList({self.ints(scope, d)})",
        )  # fmt: skip

    def make_tlist(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"[{e(scope, 'row', d)}, {e(scope, 'row', d)}]",
            lambda: f"list({e(scope, 'mat', d)})",
            lambda: f"[{self.inline(scope, v, 'row', d, 'row')} for {v} in {e(scope, 'tlist', d)}]",
            lambda: f"[{e(scope, 'row', d)} * {v} for {v} in {self.ints(scope, d)}]",
            lambda: f"list({e(scope, 'mat', d)}.unbind(0))",
            lambda: f"[*{e(scope, 'tdict', d)}.values()]",
            lambda: f"{e(scope, 'tlist', d)}[{self.one('1:', '::-1', ':2')}]",
            lambda: f"list(map({e(scope, 'tfn', d)}, {e(scope, 'tlist', d)}))",
        )

    def make_dict(self, scope: Scope, d: int) -> str:
        e = self.expression
        v, w = self.fresh("v"), self.fresh("w")
        return self.one(
            lambda: f"{{'a': {e(scope, 'int', d)}, {self.key(scope)}: {e(scope, 'int', d)}}}",
            lambda: (
                f"{{str({v}): {self.inline(scope, v, 'int', d)} for {v} in {self.ints(scope, d)}}}"
            ),
            lambda: f"{{**{e(scope, 'dict', d)}, {self.key(scope)}: {e(scope, 'int', d)}}}",
            lambda: f"({e(scope, 'dict', d)} | {e(scope, 'dict', d)})",
            lambda: f"dict({e(scope, 'dict', d)}, b={e(scope, 'int', d)})",
            lambda: f"{{{v}: {w} + 1 for {v}, {w} in {e(scope, 'dict', d)}.items()}}",
            lambda: f"dict(zip('abc', {self.ints(scope, d)}))",
            lambda: f"{e(scope, 'dict', d)}.copy()",
            lambda: f"collections.{self.one('Counter', 'OrderedDict')}({e(scope, 'dict', d)})",
            lambda: f"collections.defaultdict(int, {e(scope, 'dict', d)})",
            lambda: f"LocalDict({e(scope, 'dict', d)})",
            lambda: f"dict(sorted({e(scope, 'dict', d)}.items()))",
            lambda: f"{e(scope, 'obj', d)}.table",
        )

    def make_tdict(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"{{'a': {e(scope, 'row', d)}, {self.key(scope)}: {e(scope, 'row', d)}}}",
            lambda: f"dict(zip('abc', {e(scope, 'tlist', d)}), a={e(scope, 'row', d)})",
            lambda: f"{{{v}: {e(scope, 'row', d)} for {v} in 'ab'}}",
            lambda: f"{{**{e(scope, 'tdict', d)}}}",
        )

    def make_pair(self, scope: Scope, d: int) -> str:
        e = self.expression
        return self.one(
            lambda: f"({e(scope, 'int', d)}, {e(scope, 'int', d)})",
            lambda: f"divmod({e(scope, 'int', d)}, 3)",
            lambda: f"{e(scope, 'pair', d)}[::-1]",
            lambda: f"tuple({e(scope, 'ilist', d)}[:2])",
            lambda: f"Pair({e(scope, 'int', d)}, {e(scope, 'int', d)})",
            lambda: f"Pair({e(scope, 'int', d)})._replace(left={e(scope, 'int', d)})",
            lambda: f"tuple({e(scope, 'mat', d)}.shape)",
        )

    def make_set(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        return self.one(
            lambda: f"{{{e(scope, 'int', d)}, {e(scope, 'int', d)}}}",
            lambda: f"set({self.ints(scope, d)})",
            lambda: f"{{{self.inline(scope, v, 'int', d)} for {v} in {self.ints(scope, d)}}}",
            lambda: f"({e(scope, 'set', d)} {self.one('|', '&', '-', '^')} {e(scope, 'set', d)})",
            lambda: f"frozenset({self.ints(scope, d)})",
        )

    def make_opt(self, scope: Scope, d: int) -> str:
        e = self.expression
        return self.one(
            lambda: f"{e(scope, 'dict', d)}.get({self.key(scope)})",
            lambda: f"({e(scope, 'int', d)} if {e(scope, 'bool', d)} else None)",
            lambda: f"next({e(scope, 'it', d)}, None)",
            lambda: f"getattr({e(scope, 'obj', d)}, {self.one(repr('extra'), repr('n'))}, None)",
        )

    def make_it(self, scope: Scope, d: int) -> str:
        e = self.expression
        v = self.fresh("v")
        generators = [n for n, (_, result) in self.functions.items() if result == "gen"]
        return self.one(
            lambda: f"iter({self.ints(scope, d)})",
            lambda: f"({self.inline(scope, v, 'int', d)} for {v} in {self.ints(scope, d)})",
            lambda: f"reversed({e(scope, 'ilist', d)})",
            lambda: f"map({e(scope, 'fn', d)}, {self.ints(scope, d)})",
            lambda: f"itertools.chain({self.ints(scope, d)}, {self.ints(scope, d)})",
            lambda: f"itertools.islice({self.ints(scope, d)}, 2)",
            lambda: f"iter({e(scope, 'ilist', d)})",
            *[lambda name=name: self.call_function(scope, name, d) for name in generators],
        )

    # -- functions and objects

    def make_fn(self, scope: Scope, d: int) -> str:
        v, w = self.fresh("v"), self.fresh("w")
        return self.one(
            lambda: f"(lambda {v}: {self.inline(scope, v, 'int', d)})",
            lambda: f"(lambda {v}, {w}={self.expression(scope, 'int', d)}: {v} + {w})",
            lambda: (
                f"functools.partial(operator.{self.one('add', 'mul', 'sub')}, {self.expression(scope, 'int', d)})"
            ),
            lambda: "abs" if self.in_class else f"{self.expression(scope, 'obj', d)}.step",
            lambda: self.leaf(scope, "fn"),
        )

    def make_tfn(self, scope: Scope, d: int) -> str:
        v = self.fresh("v")
        return self.one(
            lambda: f"(lambda {v}: {self.inline(scope, v, 'row', d, 'row')})",
            lambda: f"functools.partial(torch.add, {self.expression(scope, 'row', d)})",
            lambda: "torch.abs" if self.in_class else self.expression(scope, "obj", d),
            lambda: "torch.abs" if self.in_class else f"{self.expression(scope, 'obj', d)}.apply",
            lambda: self.leaf(scope, "tfn"),
        )

    def make_obj(self, scope: Scope, d: int) -> str:
        e = self.expression
        name = self.random.choice(list(self.classes))
        return self.one(
            lambda: f"{name}({e(scope, 'int', d)})",
            lambda: f"{name}({e(scope, 'int', d)}, w={e(scope, 'row', d)})",
            lambda: f"({e(scope, 'obj', d)} + {e(scope, 'int', d)})",
            lambda: f"{name}.make({e(scope, 'int', d)})",
            lambda: f"copy.{self.one('copy', 'deepcopy')}({e(scope, 'obj', d)})",
            "G_OBJ",
        )

    # -- tensors

    def number(self, scope: Scope, d: int) -> str:
        return self.expression(scope, self.one("int", "float", "float", "sc"), d)

    def make_mat(self, scope: Scope, d: int) -> str:
        e = self.expression
        other = lambda: e(scope, self.one("mat", "row", "sc", "int", "float"), d)  # noqa: E731
        return self.one(
            lambda: f"({e(scope, 'mat', d)} {self.one('+', '-', '*')} {other()})",
            lambda: f"({e(scope, 'mat', d)} {self.one('+', '-', '*')} {other()})",
            lambda: f"({self.number(scope, 0)} {self.one('-', '*', '+')} {e(scope, 'mat', d)})",
            lambda: f"({e(scope, 'mat', d)} / {self.number(scope, d)})",
            lambda: f"torch.{self.one('relu', 'sigmoid', 'tanh', 'abs', 'zeros_like', 'ones_like', 'neg')}({e(scope, 'mat', d)})",
            lambda: f"{e(scope, 'mat', d)}.{self.one('clone()', 'detach()', 'contiguous()', 'abs()', 'flip(0)', 'view(-1, 3)', 'reshape(-1, 3)', 'cumsum(0)', 't().t()', 'float()', 'clamp(min=0)', 'T.T')}",
            lambda: f"({e(scope, 'mat', d)} @ G_W)",
            lambda: f"torch.where({e(scope, 'mat', d)} > {self.number(scope, d)}, {e(scope, 'mat', d)}, {other()})",
            lambda: f"torch.stack([{e(scope, 'row', d)}, {e(scope, 'row', d)}])",
            lambda: f"torch.stack({e(scope, 'tlist', d)})",
            lambda: f"{e(scope, 'mat', d)}[{self.one(':', ':1', '::2', ':, [2, 0, 1]', '...', '[0]', '-1:')}]",
            lambda: f"torch.cat(({e(scope, 'mat', d)}, {e(scope, 'mat', d)}), dim=0)",
            lambda: f"F.{self.one('softmax', 'log_softmax')}({e(scope, 'mat', d)}, dim={self.one('0', '-1')})",
            lambda: f"F.dropout({e(scope, 'mat', d)}, 0.5, training={e(scope, 'bool', 0)})",
            lambda: f"torch.{self.one('rand_like', 'randn_like')}({e(scope, 'mat', d)})",
            lambda: f"{e(scope, 'mat', d)}.masked_fill({e(scope, 'mat', d)} > 1, {e(scope, 'float', d)})",
            lambda: f"torch.{self.one('zeros', 'ones')}({self.one('2', lambda: 'abs(' + e(scope, 'int', d) + ') + 1')}, 3)",
            lambda: f"({e(scope, 'mat', d)} if {e(scope, 'bool', d)} else {e(scope, 'mat', d)})",
            lambda: f"{e(scope, 'row', d)}.{self.one('unsqueeze(0)', 'expand(2, 3)', 'repeat(2, 1)', '__getitem__(None)')}",
            lambda: f"torch.zeros({e(scope, 'mat', d)}.shape)",
            "G_M",
        )  # fmt: skip

    def make_row(self, scope: Scope, d: int) -> str:
        e = self.expression
        other = lambda: e(scope, self.one("row", "sc", "int", "float"), d)  # noqa: E731
        return self.one(
            lambda: f"({e(scope, 'row', d)} {self.one('+', '-', '*')} {other()})",
            lambda: f"({e(scope, 'row', d)} {self.one('+', '-', '*')} {other()})",
            lambda: f"{e(scope, 'mat', d)}[{self.one('0', '-1', '0, :', lambda: e(scope, 'int', 0))}]",
            lambda: f"{e(scope, 'mat', d)}.{self.one('sum(0)', 'mean(0)', 'amax(0)', 'max(0).values', 'max(0)[0]', 'sum(dim=0)', 'prod(0)')}",
            lambda: f"torch.{self.one('abs', 'relu', 'sin', 'exp')}({e(scope, 'row', d)})",
            lambda: f"{e(scope, 'row', d)}.{self.one('clone()', 'detach()', 'roll(1)', 'abs()', 'flip(0)', 'view(3)', 'sort()[0]', 'clamp(-1, 1)', 'double().float()')}",
            lambda: f"torch.tensor([{e(scope, 'float', d)}, {e(scope, 'float', d)}, {e(scope, 'int', d)}])",
            lambda: f"torch.full((3,), {e(scope, 'float', d)})",
            lambda: f"{e(scope, 'tlist', d)}[{self.one('0', '-1')}]",
            lambda: f"{e(scope, 'tdict', d)}['a']",
            lambda: f"{e(scope, 'tfn', d)}({e(scope, 'row', d)})",
            lambda: f"{e(scope, 'obj', d)}.{self.method('w', 'apply', scope, 'row', d)}",
            lambda: f"{e(scope, 'row', d)}[{self.one('[2, 1, 0]', 'torch.tensor([0, 0, 2])', ':')}]",
            lambda: f"torch.maximum({e(scope, 'row', d)}, {e(scope, 'row', d)})",
            lambda: f"sum({e(scope, 'tlist', d)}, torch.zeros(3))",
            lambda: f"({e(scope, 'row', d)} if {e(scope, 'bool', d)} else {e(scope, 'row', d)})",
            lambda: f"G_W[{self.one('0', '1', ':, 0')}]",
            lambda: f"{e(scope, 'mat', d)}.unbind(0)[0]",
            lambda: self.one("torch.rand(3)", "torch.randn(3)", "torch.ones(3)"),
        )  # fmt: skip

    def make_sc(self, scope: Scope, d: int) -> str:
        e = self.expression
        return self.one(
            lambda: (
                f"{e(scope, 'row', d)}.{self.one('sum()', 'max()', 'norm()', 'mean()', '__getitem__(0)', 'min()')}"
            ),
            lambda: f"{e(scope, 'mat', d)}.{self.one('sum()', 'mean()', 'std()', 'max()')}",
            lambda: f"{e(scope, 'row', d)}[{self.one('0', '-1', lambda: e(scope, 'int', 0))}]",
            lambda: f"{e(scope, 'mat', d)}[0, {self.one('0', '1', '-1')}]",
            lambda: f"({e(scope, 'row', d)} @ {e(scope, 'row', d)})",
            lambda: f"torch.tensor({e(scope, 'float', d)})",
            lambda: f"({e(scope, 'sc', d)} {self.one('+', '*', '-')} {self.number(scope, d)})",
        )


def joined(parts: Sequence[str]) -> str:
    """Texts with commas between them."""
    return ", ".join(parts)
