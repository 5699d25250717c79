"""Programs made harder: other names, and graph breaks at any place of their functions.

In: the source of a program. Out: the source of a program that does the same. Variables get names
that torch, fx and Python use themselves; expressions and statements are wrapped into something that
breaks the graph (a call, a property, a generator, a condition, ``with``, ``finally``, a handler).
"""

from __future__ import annotations

import ast
import keyword
import random
import re

#: The names that writers of programs make: a kind and a number.
_MADE = re.compile(r"[a-z]+\d+$")

#: Names that graphs, generated code, PyTorch and Python use themselves.
VOCABULARY = tuple(
    """mean add mul sum relu tensor input self output getitem sub truediv abs_1 add_1 mul_1 l_x_ x_1
    item size shape view clone stack cat zeros ones max min where arange unbind expand args kwargs
    cls result value values key keys items index graph call name const iterator state slots stack_1
    callee error tail answer unused fj partial sorted reversed enumerate zip map filter list dict
    set tuple type id iter next int float bool str object range slice property super vars print_
    detach backward grad data dtype device t T numel dim norm std var prod all any exp log sin neg
    eq lt gt le ge ne and_ or_ not_ matmul linear dropout softmax __ _1 co_consts é Ω größe
    torch_ math_ operator_ builtins_ placeholder get_attr call_function call_method call_module
    forward module gm example_inputs l_self_ l_args_ L G s0 s1 i0 u0 sym_size ph""".split()
)

#: What wrapped expressions and statements use; joins a program's own text.
PRELUDE = """
import framejit as _framejit
_ONE = torch.ones(1)
def _say(v):
    print(end='')
    return v
class _Box:
    def __init__(self, v): self._v = v
    @property
    def value(self):
        print(end='')
        return self._v
    def __getitem__(self, i):
        print(end='')
        return self._v
    def __enter__(self):
        if self._v: print(end='')
        return self
    def __exit__(self, *details):
        print(end='')
        return False
def _gen(v):
    print(end='')
    yield v
def _deep(v): return (lambda w: _say(w))(v)
def _true(): return bool(_ONE.sum() > 0)
"""

_EXPRESSIONS = (
    "_say({})", "_say({})", "_Box({}).value", "next(_gen({}))", "(print(end=''), {})[1]",
    "(_framejit.graph_break() or {})", "_deep({})", "[_say(_v) for _v in ({},)][0]",
    "_Box({})[0]", "({} if _true() else None)", "[*_gen({})][0]", "(_say(0) or {})",
)  # fmt: skip
_CONDITIONS = ("({} and _true())", "(_true() and {})", "(not (not {} or not _true()))")
_STATEMENTS = (
    "with _Box(1):\n    pass", "with _Box(0):\n    pass",
    "try:\n    pass\nfinally:\n    print(end='')",
    "try:\n    raise KeyError(1)\nexcept KeyError:\n    pass",
    "try:\n    pass\nexcept ZeroDivisionError:\n    print(end='')\n    raise",
    "if _true():\n    pass", "with _Box(1), _Box(0):\n    pass",
    "try:\n    pass\nexcept (RecursionError, MemoryError) as _e:\n    raise TypeError from _e",
)  # fmt: skip
_SIMPLE = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Delete, ast.If,
    ast.For, ast.While, ast.With, ast.Try, ast.Assert,
)  # fmt: skip


def own_functions(tree: ast.Module, prelude_lines: int) -> list[ast.FunctionDef]:
    """The outermost functions after the prelude, those of classes included."""
    found: list[ast.FunctionDef] = []
    for node in tree.body:
        if node.lineno > prelude_lines:
            members = node.body if isinstance(node, ast.ClassDef) else [node]
            found += [member for member in members if isinstance(member, ast.FunctionDef)]
    return found


class _Breaks(ast.NodeTransformer):
    """Wraps random expressions and statements of the functions that it visits."""

    def __init__(self, seed: int, share: float) -> None:
        self.random = random.Random(seed)
        self.share = share

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.JoinedStr, ast.pattern, ast.arguments, ast.Starred, ast.keyword)):
            return super().generic_visit(node) if isinstance(node, ast.keyword) else node
        node = super().visit(node)
        if isinstance(node, ast.expr) and self._may_wrap(node):
            return self._expression(node)
        return node

    def _may_wrap(self, node: ast.expr) -> bool:
        if self.random.random() > self.share or isinstance(node, (ast.Constant, ast.Slice)):
            return False
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return False
        inner = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Starred, ast.Slice)
        return not any(isinstance(part, inner) for part in ast.walk(node))

    def _expression(self, node: ast.expr, forms: tuple[str, ...] = _EXPRESSIONS) -> ast.expr:
        text = self.random.choice(forms).format(f"({ast.unparse(node)})")
        return ast.parse(text, mode="eval").body

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and self.random.random() < self.share:
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
                node.test = self._expression(node.test, _CONDITIONS)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, (ast.ClassDef, ast.Lambda)):
                setattr(node, name, [self._statement(s) for s in block])
        return node

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        if not isinstance(statement, _SIMPLE) or self.random.random() > self.share / 2:
            return statement
        wrapped = ast.parse(self.random.choice(_STATEMENTS)).body[0]
        for node in ast.walk(wrapped):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.Pass):
                    setattr(node, name, [statement])
                    return wrapped
        return statement


def with_break_places(source: str, prelude: str, seed: int, share: float = 0.08) -> str:
    """``source``, which starts with ``prelude``, with breaks in its own functions."""
    tree = ast.parse(source)
    breaks = _Breaks(seed, share)
    for function in own_functions(tree, prelude.count("\n")):
        breaks.generic_visit(function)
    ast.fix_missing_locations(tree)
    rest = [node for node in tree.body if node.lineno > prelude.count("\n")]
    return prelude + PRELUDE + ast.unparse(ast.Module(rest, [])) + "\n"


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("id", "arg", "name", "rest"):
            old = getattr(node, name, None)
            if isinstance(old, str) and old in self.names:
                setattr(node, name, self.names[old])
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self.names.get(name, name) for name in node.names]
        return super().generic_visit(node)


def with_other_names(source: str, prelude: str, seed: int) -> str:
    """``source`` with other names for the variables that its writer made."""
    tree = ast.parse(source)
    rest = [node for node in tree.body if node.lineno > prelude.count("\n")]
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    used |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    used |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    used |= {n.asname or n.name for n in ast.walk(tree) if isinstance(n, ast.alias)}
    made = set()
    for node in ast.walk(ast.Module(rest, [])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.arg):
            made.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            made.add(node.name)
    old = sorted(name for name in made if _MADE.match(name))
    free = [n for n in VOCABULARY if n not in used and not keyword.iskeyword(n)]
    random.Random(seed).shuffle(free)
    tree = _Rename(dict(zip(old, free))).visit(ast.Module(rest, []))
    return prelude + ast.unparse(tree) + "\n"
