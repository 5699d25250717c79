"""Statements about CPython's object model: classes with random subsets of special methods, over
every builtin base, descriptors, metaclasses and abstract classes, and everything that asks them.

In: a random generator, for the classes of one program. Out: `STATEMENTS` by family, in the template
language of `grammar`, with the `LEAVES` and the `PRELUDE` that they need, and `classes`. ``own`` is
an object of one of the program's classes ``G_KINDS``, ``kls`` a class.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import random

from families_of_calls import attempt

PRELUDE = '''
import abc, collections.abc, numbers, re, string, sys
from fractions import Fraction

def noted(base, name, answer):
    """A special method that says that it is called; ``answer``: "base", a value or an error."""
    def method(self, *args):
        G_LOG.append((name, len(args)))
        if answer == 'base':
            inherited = getattr(base, name, None)
            return NotImplemented if inherited is None else inherited(self, *args)
        if isinstance(answer, type): raise answer(name)
        return answer
    method.__name__ = name
    return method

class Noting(type):
    """A metaclass whose methods say that they are called."""
    def __instancecheck__(cls, value): G_LOG.append(('instance', type(value).__name__)); return type.__instancecheck__(cls, value) or value == 2
    def __subclasscheck__(cls, other): return type.__subclasscheck__(cls, other)
    def __getattr__(cls, name):
        if name == 'made_up': return 5
        raise AttributeError(name)
    def __len__(cls): return 3
    def __iter__(cls): return iter([1, 2])
    def __contains__(cls, value): return value == 1
    @property
    def described(cls): return 'class ' + cls.__name__

class Open(abc.ABC):
    """Classes are registered with it while the program runs."""

class GetOnly:
    def __get__(self, obj, cls=None): G_LOG.append('get'); return self if obj is None else 11
class SetOnly:
    def __set__(self, obj, value): G_LOG.append('set'); obj.__dict__['field'] = value
class DeleteOnly:
    def __delete__(self, obj): G_LOG.append('delete')
class GetSet(GetOnly, SetOnly): pass
class Full(GetSet, DeleteOnly): pass

def kind(name, base, methods, fields, meta=type):
    """A class of the program."""
    body = {key: noted(base, key, answer) for key, answer in methods.items()}
    return (meta if type(base) is type else type(base))(name, (base,), {**body, **fields, '__module__': __name__})
'''

#: Base, and the arguments that make an object of it.
_BASES = {
    "object": "", "int": "3", "float": "2.5", "str": "'ab'", "complex": "1j", "list": "[3, 1]", "tuple": "(1, 2)",
    "dict": "{'a': 1}", "set": "{1, 2}", "frozenset": "{1}", "collections.deque": "[1, 2]", "collections.OrderedDict": "a=1",
    "collections.UserDict": "{'a': 1}", "Exception": "'e'", "Node": "2", "types.SimpleNamespace": "a=1", "collections.Counter": "'aab'",
}  # fmt: skip
_TEXTS = ("__repr__", "__str__", "__format__")
_ANSWERS = {
    **dict.fromkeys(_TEXTS, "'<own>'"), "__len__": "2", "__bool__": "False", "__contains__": "True", "__hash__": "5",
    "__index__": "1", "__int__": "4", "__float__": "1.5", "__iter__": "'base'", "__eq__": "True", "__lt__": "True",
    "__getitem__": "KeyError", "__missing__": "7", "__call__": "9", "__add__": "'sum'", "__radd__": "'rsum'",
    "__iadd__": "NotImplemented", "__mul__": "NotImplemented", "__neg__": "-1", "__abs__": "1", "__round__": "2",
    "__getattr__": "AttributeError", "__setitem__": "None", "__delitem__": "None", "__reversed__": "'base'",
    "__ne__": "False", "__le__": "NotImplemented", "__gt__": "False", "__rmul__": "2", "__sub__": "0", "__divmod__": "(1, 2)",
    "__setattr__": "'base'", "__enter__": "1", "__exit__": "True", "__length_hint__": "3",
    "keys": "['a']", "__class_getitem__": "3", "__mod__": "'mod'", "__and__": "{1}", "__or__": "{2}", "__matmul__": "6",
}  # fmt: skip
_FIELDS = ("GetOnly()", "SetOnly()", "DeleteOnly()", "GetSet()", "Full()", "3", "property(lambda self: 4)", "classmethod(lambda cls: 8)", "staticmethod(lambda: 6)", "functools.cached_property(lambda self: [1])")  # fmt: skip


def classes(rng: random.Random) -> str:
    """The classes of one program, and an object of each."""
    lines, names = [], []
    for number in range(4):
        base = rng.choice(list(_BASES))
        methods = rng.sample(sorted(_ANSWERS), rng.choice((0, 1, 1, 2, 3, 5)))
        answers = {name: rng.choice((_ANSWERS[name], "'base'")) for name in methods}
        if base == "object":
            answers = {name: _ANSWERS[name] for name in methods if _ANSWERS[name] != "'base'"}
        written = ", ".join(f"{name!r}: {answer}" for name, answer in answers.items())
        fields = f"{{'field': {rng.choice(_FIELDS)}}}" if rng.random() < 0.5 else "{}"
        meta = ", Noting" if rng.random() < 0.2 else ""
        names.append(f"Kind{number}")
        lines.append(
            f"{names[-1]} = kind({names[-1]!r}, {base}, {{{written}}}, {fields}{meta})\n"
            f"def new{number}(): return {names[-1]}({_BASES[base]})\nG_OWN{number} = new{number}()"
        )
    return "\n".join(lines) + "\n"


LEAVES = {
    "own": [f"new{n}()" for n in range(4)] + [f"G_OWN{n}" for n in range(4)],
    "kls": ["Kind0", "Kind1", "Kind2", "Kind3", "Open", "int", "torch.Tensor", "collections.abc.Sequence", "collections.abc.Mapping", "numbers.Number", "int | str", "(str, Kind0)", "Noting"],
}  # fmt: skip

_QUESTIONS = [
    "str({own})", "repr({own})", "f'{ {own} }'", "f'{ {own}!r:>8}'", "format({own}, '>4')", "'%s %r' % ({own}, {num})", "[{own}].__repr__()", "str(({own}, {num}))", "str({'k': {own}})", "'{}'.format({own})", "'{0!s:^7}'.format({own})", "print({own}, end=';')",
    "bool({own})", "not {own}", "len({own})", "{own} or {num}", "1 if {own} else 2", "list({own})", "[*{own}]", "tuple({own})", "sorted({own})", "max({own})", "sum({own})", "min({own}, {own})", "list(reversed({own}))", "list(enumerate({own}))", "list(zip({own}, {nums}))", "dict({own})", "{**{own}}", "set({own})", "','.join({own})", "','.join([{own}])",
    "{own} == {own}", "{own} != {num}", "{own} < {own}", "{own} >= {num}", "{a=own} is {a}", "{own} in [{own}, {num}]", "{num} in {own}", "[{own}].index({own})", "[{num}, {own}].count({own})", "{own} in { {num}: 1 }", "{ {own}: {num} }", "hash({a=own}) == hash({a})", "{ {own}, {num} }",
    "{own} + {own}", "{own} + {num}", "{num} + {own}", "{own} * 2", "2 * {own}", "-{own}", "abs({own})", "round({own})", "divmod({own}, 2)", "{own} - {num}", "{own} ¦ {own}", "{own} & {own}", "{own} @ {own}", "{own} % 2", "{row} + {own}", "{own} * {row}", "{row} @ {own}", "torch.add({row}, {own})", "{row} == {own}", "{row}[{own}]", "torch.full((2,), {own})", "torch.tensor({own})", "torch.stack({own})",
    "int({own})", "float({own})", "complex({own})", "operator.index({own})", "range({own})", "[1, 2, 3][{own}]", "'abc'[{own}]", "[1, 2, 3][:{own}]", "'ab' * {own}", "{own}[0]", "{own}['a']", "{own}[0:1]", "{own}['zz']", "{own}({num})", "{own}.field", "{own}.nothing", "getattr({own}, 'field', {num})", "hasattr({own}, 'nothing')", "callable({own})", "iter({own}) is None", "next({own})",
    "isinstance({own}, {kls})", "isinstance({num}, {kls})", "isinstance({row}, {kls})", "isinstance(None, {kls})", "issubclass(type({own}), {kls})", "issubclass(int, {kls})", "type({own}).__name__", "{own}.__class__.__name__", "{kls}.__name__", "len({kls})", "list({kls})", "1 in {kls}", "{kls}.made_up", "{kls}.described", "{kls}.field is None", "{kls}[int] is None", "vars({own})", "sorted(vars({own}))", "dir({own})[:0]",
    "copy.copy({own})", "copy.deepcopy({own}) is None", "(lambda *a: a)(*{own})", "(lambda **k: k)(**{own})", "print(*{own}, end='')", "math.floor({own})", "isinstance({own}, (list, {kls}))", "functools.reduce(operator.add, [{own}, {own}])", "sorted([{own}, {own}])", "list(map(str, [{own}]))", "any([{own}])", "all({own})", "operator.length_hint({own})", "{own}.__len__()", "super(type({a=own}), {a}).__repr__()", "type({a=own}).__add__({a}, {num})",
    "np.array({own})", "np.asarray([1., 2.]) * {own}", "np.float32({own})", "Fraction(1, 2) + {own}", "re.sub('a', {own}, 'ab')", "string.Template('$a').substitute({own})", "sys.exc_info()[0]", "sys.exception()",
]  # fmt: skip

_SCALARS = "{np.bool_(True)/np.float32(1.5)/np.float16(0.5)/np.int64(2)/np.uint8(1)/np.complex64(1j)/np.float64(2.5)/Fraction(1, 2)/True/2.5/1j/IN(2)}".replace("IN(2)", "Kind0")  # fmt: skip
_WITH_SCALARS = [
    f"{{row}} {op} {_SCALARS}" for op in ("+", "*", "-", "**", "==", "<", "//")
] + [f"{_SCALARS} {op} {{row}}" for op in ("+", "*", "-", "/")] + [
    f"torch.{call}".replace("S", _SCALARS) for call in (
        "full((2,), S)", "full_like({row}, S)", "where({row} > 0, {row}, S)", "tensor(S)", "tensor([S, S])", "as_tensor(S)",
        "add({row}, {row}, alpha=S)", "clamp({row}, min=S)", "arange(S)", "pow({row}, S)", "lerp({row}, {row}, S)", "zeros(2, S)",
    )
] + [
    f"{{row}}.{call}".replace("S", _SCALARS) for call in ("new_full((2,), S)", "masked_fill({row}[:0].sum() > 0, S)", "repeat(S)", "sum(S)", "add(S)", "view(S, -1)", "flip(S)", "type(torch.int64) * S")
]  # fmt: skip

STATEMENTS = {
    "questions": [attempt(question) for question in _QUESTIONS],
    "scalars": [attempt(call) for call in _WITH_SCALARS],
    "protocols": [
        "{o+own} = {own}|{body}", "{o=own}.extra = {num}|{x+any} = {o}.extra", "{o=own}.field = {num}|{x+any} = {o}.field, sorted(vars({o}))", "try: del {o=own}.field|except AttributeError as {e+err}: G_LOG.append(str({e}))", "try: {o=own}.field += {num}|except (AttributeError, TypeError) as {e+err}: G_LOG.append(type({e}).__name__)",
        "try:|    for {x+any} in {own}:|        {body}|except TypeError: G_LOG.append('no loop')", "try:|    with {own} as {x+any}:|        {body}|        {pass/raise KeyError(1)}|except (TypeError, AttributeError, KeyError): G_LOG.append('no with')", "try:|    if {own}:|        {body}|except TypeError: pass", "try:|    {x+any}, *{y+any} = {own}|except (TypeError, ValueError) as {e+err}: G_LOG.append(str({e}))",
        "match {own}:|    case {Kind0/Kind1/Kind2/int/str/dict}():|        {body}|    case [{x+any}, *_]: G_LOG.append('sequence')|    case {'a': {y+any}}: G_LOG.append('mapping')|    case {Kind2/Kind3/Open}(): G_LOG.append('last')|    case _:|        {body}", "match {num}:|    case {Kind0/Kind1/Noting/Open}():|        {body}|    case _: G_LOG.append('other')",
        "try: raise {Kind0/Kind1/Kind2/Kind3}({num})|except {Kind0/Kind1/KeyError/(Kind2, ValueError)/BaseException} as {e+err}: G_LOG.append(type({e}).__name__)|except TypeError: G_LOG.append('no exception')", "Open.register({Kind0/Kind1/Kind2/int/str/torch.Tensor/list})|{x+any} = isinstance({own}, Open), isinstance({num}, Open), isinstance({row}, Open)", "{Kind0/Kind1/Kind2}.later = {num}|{x+any} = {o=own}.later if hasattr({o}, 'later') else 0",
        "{Kind0/Kind1/Kind2/Kind3}.__{len/bool/str/repr/eq/add/index/iter}__ = lambda self, *a: {2/True/'t'/iter([])}|{x+any} = None|try: {x} = {str/len/bool/repr/list}({own})|except Exception as {e+err}: G_LOG.append(type({e}).__name__)", "G_OWN{0/1/2/3} = {own}".replace("G_OWN{0/1/2/3}", "{o=own}"), "{t+table} = {'k': {own}}|{body}", "{l+any} = [{own}, {own}]|try: {l}.sort()|except TypeError: G_LOG.append('no order')|{x+any} = len({l})", "{d+any} = {}|try: {d}[{own}] = {num}|except TypeError: G_LOG.append('no hash')|{x+any} = len({d})",
        "{o=own}.__class__ = {Kind0/Kind1}".join(["try: ", "|except TypeError: G_LOG.append('layout')"]), "class {C+cls}({Kind0/Kind1/Kind2}):|    def __{repr/str/len/eq/hash/bool}__(self, *a): return super().__{repr/str/len}__()|{x+any} = {C}.__mro__[1].__name__",
        "{row}.__setitem__(0, {own})".join(["try: ", "|except (TypeError, IndexError, RuntimeError, ValueError): G_LOG.append('not set')"]),
    ],
}  # fmt: skip
