"""The grammar of programs about state: containers, keys, iterators, objects, views, sizes, sharing.

In: nothing. Out: `PRELUDE`, which every such program starts with, and `GRAMMAR`. Kinds of
variables: ``num`` ``flag`` ``text`` are Python's; ``row`` (n,) and ``mat`` (n, 3) are tensors;
``nums`` ``rows`` are lists, ``nest`` a list of lists; ``table`` maps texts, ``map`` maps keys to
numbers; ``bag`` is a set of keys, ``queue`` a deque; ``pair`` a tuple of two; ``key`` is hashable;
``node`` an object; ``it`` an iterator of numbers; ``fn`` a function of a number.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import families_of_libraries
from grammar import Grammar

PRELUDE = '''
import collections, contextlib, copy, dataclasses, enum, functools, heapq, itertools, operator, types, weakref
import torch
import torch.nn.functional as F

def M(rows, seed, dtype=torch.float32, grad=False):
    """A matrix; ``seed`` decides on its values."""
    t = ((torch.arange(rows * 3) * 7 + seed * 5) % 11 - 4).reshape(rows, 3).to(dtype)
    return t.requires_grad_() if grad else t

def R(size, seed, grad=False):
    t = ((torch.arange(size) * 5 + seed * 3) % 7 - 2).float()
    return t.requires_grad_() if grad else t

class Key:
    """Hashable by content."""
    def __init__(self, n): self.n = n
    def __hash__(self): return hash(self.n) % 3
    def __eq__(self, other): return isinstance(other, Key) and self.n == other.n
    def __repr__(self): return f'Key({self.n})'

class Loud(Key):
    """Says when it is compared."""
    def __hash__(self): G_LOG.append('h'); return 1
    def __eq__(self, other): G_LOG.append(self.n); return isinstance(other, Key) and self.n == other.n

@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int
    m: int = 0

@dataclasses.dataclass
class Item:
    n: int
    tags: list = dataclasses.field(default_factory=list)

class Color(enum.Enum):
    RED = 1
    BLUE = 2

Point = collections.namedtuple('Point', 'x y')

class Node:
    """An object with containers in it."""
    total = 0
    def __init__(self, n, parent=None):
        self.n, self.parent, self.children, self.seen = n, parent, [], {}
        if parent is not None: parent.children.append(self)
    @property
    def depth(self): return 0 if self.parent is None else self.parent.depth + 1
    def walk(self):
        yield self.n
        for child in self.children: yield from child.walk()
    def visit(self, n):
        self.seen[n] = self.seen.get(n, 0) + 1
        type(self).total += 1
        return self.seen[n]
    def __len__(self): return 1 + len(self.children)
    def __getitem__(self, i): return [self.n, *[c.n for c in self.children]][i]
    def __contains__(self, n): return n in list(self.walk())

class Slotted:
    __slots__ = ('n', 'left', 'right')
    def __init__(self, n, left=None, right=None): self.n, self.left, self.right = n, left, right

class Ring(collections.deque):
    def extend(self, more):
        for m in more: self.append(m)
    def clear(self): G_LOG.append('clear'); super().clear()

class Stack(list):
    def push(self, v): self.append(v); return self
    def append(self, v): super().append(v); G_LOG.append('push')

class Config(dict):
    def __getattr__(self, name):
        try: return self[name]
        except KeyError: raise AttributeError(name) from None
    def __setattr__(self, name, value): self[name] = value

class Seq:
    def __init__(self, n): self.n, self.asked = n, 0
    def __len__(self): return self.n
    def __getitem__(self, i):
        self.asked += 1
        if not -self.n <= i < self.n: raise IndexError(i)
        return i * 2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1., 2., 3.]))
        self.register_buffer('steps', torch.zeros(1))
        self.history = []
    def forward(self, t):
        self.steps += 1
        self.history.append(int(t.shape[0]))
        return t * self.weight.sum() + self.steps

@contextlib.contextmanager
def scope(log, n):
    log.append(n)
    try: yield n + 1
    except LookupError: log.append('lost')
    finally: log.append(-n)

def countdown(n):
    while n > 0:
        got = yield n
        n -= 1 if got is None else got
    return 'end'

def pairs(items):
    it = iter(items)
    for a in it:
        b = next(it, None)
        yield a, b

G_LOG = []
G_NODE = Node(1)
G_TABLE = {'a': 1}
G_MEMO = {}
G_NET = Net()
G_SENT = ('missing',)
G_BUF = torch.zeros(4)
G_NS = types.SimpleNamespace(n=1, lr=0.5)
'''

LEAVES = {
    "num": ["0", "1", "2", "3", "7", "-1", "n0"],
    "flag": ["True", "False"],
    "text": ["'a'", "'b'", "''", "'ab'", "'k1'"],
    "row": ["t0", "R(3, 1)", "torch.ones(2)", "torch.arange(4.)"],
    "mat": ["m0", "M(2, 1)"],
    "nums": ["[1, 2, 3]", "[]", "[0, 1, 0]", "[3]", "[2, 2]"],
    "rows": ["[R(3, 1), R(3, 2)]", "[]", "[t0]"],
    "nest": ["[[1], [2, 3], []]", "[[]]"],
    "table": ["{'a': 1, 'b': 2}", "{}", "dict(k1=3)"],
    "map": ["{Key(1): 1, Key(2): 2}", "{(1, 2): 3, 2: 4}", "{Frozen(1): 1}", "{}"],
    "bag": ["{1, 2, 8}", "set()", "{Key(1), Key(4)}", "{'a', (1, 2)}"],
    "queue": ["collections.deque([1, 2, 3])", "collections.deque(maxlen=2)"],
    "pair": ["(1, 2)", "('a', 0)", "Point(1, 2)", "G_SENT"],
    "key": ["1", "'a'", "(1, 2)", "Key(1)", "Frozen(1)", "Color.RED", "None", "Key(2)"],
    "node": ["Node(2)", "G_NODE"],
    "it": ["iter([1, 2, 3])", "iter(range(4))"],
    "fn": ["abs", "(lambda v: v + 1)"],
}

EXPRESSIONS = {
    "num": [
        "{num} {+/-/*} {num}", "len({nums})", "sum({nums})", "len({bag})", "{a=table}.get({text}, {num})",
        "({a=nums}[{0/-1}] if {a} else {num})", "{a=map}.get({key}, {num})", "{a=row}.shape[0]", "len({a=mat})",
        "int({row}.sum())", "{a=node}.n", "{a=node}.depth", "next({it}, {num})", "{fn}({num})", "max({nums}, default=0)",
        "(1 if {flag} else {num})", "{a=queue}[-1] if {a} else 0", "sum(1 for _ in {it})", "min({num}, {num})",
        "len({text})", "hash({num})", "len({pair})", "G_NS.n", "int({flag})", "{num} % 3", "len({a=rows})", "sum(map(len, {nest}))",
        "{nums}.count({num})", "functools.reduce(operator.add, {nums}, {num})", "G_NODE.visit({num})", "{a=mat}.numel()",
    ],
    "flag": [
        "{num} {</>/==/!=/<=} {num}", "{num} in {nums}", "{key} in {map}", "{key} in {bag}", "{text} in {table}",
        "not {flag}", "{flag} and {flag}", "{a=nums} is {b=nums}", "{a=node} is {b=node}", "{a=pair} is {b=pair}", "{pair} == {pair}",
        "bool({row}.sum() > {num})", "{nums} == {nums}", "{a=row} is {b=row}", "isinstance({key}, Key)", "bool({nums})", "{num} in {a=node}",
        "any(v > 1 for v in {nums})", "all({nums})", "{key} == {key}", "{bag} <= {bag}", "id({a=node}) == id({b=node})", "{a=pair} is G_SENT",
        "{a=num} is None", "hasattr({a=node}, {'extra'/'n'})", "{table}.keys() <= {table}.keys()",
    ],
    "text": [
        "{text} + {text}", "f'{ {a=num} }-{ {b=num}!r:>4}'", "str({num})", "{text}.upper()", "','.join(map(str, {nums}))", "{text} * {2/0}", "repr({key})",
        "'%s:%d' % ({text}, {num})", "{a=text}[::-1]", "sorted({table})[0] if {table} else {text}", "str({a=pair})", "type({key}).__name__",
    ],
    "row": [
        "{row} {+/*/-} {num}", "{a=row} * {a}", "{a=mat}[{0/-1}]", "{a=mat}.sum({0/1})", "{row}.{clone()/detach()/abs()/flip(0)/cumsum(0)/relu()/contiguous()}",
        "{a=row}[{1:/:2/::2/:-1}]", "torch.stack([{a=row}, {a}]).mean(0)", "torch.tensor({nums}).float()", "torch.zeros({num} % 4 + 1)", "torch.full(({num} % 3 + 1,), 2.)",
        "torch.cat([{row}, {row}])", "(sum({a=rows}) if {a} else t0)", "({a=rows}[-1] if {a} else t0)", "G_BUF[{:2/1:}]", "G_NET({row})", "{row}.sum().expand({num} % 3 + 1)", "torch.arange(float(len({nums})))",
        "torch.ones({a=row}.shape[0] + {b=mat}.shape[0])", "{a=row}.view(-1)", "{a=row}.unsqueeze(0).squeeze(0)", "torch.where({a=row} > {num}, {a}, -{a})", "{row} if {flag} else {row}",
    ],
    "mat": [
        "{mat} {+/*} {num}", "{a=mat}.t().contiguous().t()", "{a=mat}[{1:/:1/:/::2}]", "torch.cat([{mat}, {mat}])", "torch.stack([R(3, {num}), R(3, 1)])", "{a=mat}.{clone()/relu()/abs()/flip(1)/view(-1, 3)/expand(-1, 3)}",
        "{a=mat} * {b=mat}[:1]", "torch.zeros(len({nums}) + 1, 3)", "{a=mat}[[0]]", "{a=mat} + torch.arange({a}.shape[0])[:, None]",
    ],
    "nums": [
        "[{num}, {num}]", "{row}.tolist()", "[v + {num} for v in {nums}]", "[v for v in {nums} if v {>/!=} {num}]", "sorted({nums}{/, reverse=True/, key=lambda v: -v})", "list({it})", "{nums} + {nums}", "{nums}[{::-1/1:/:2}]",
        "[*{nums}, {num}]", "[{num}] * ({num} % 4)", "list({table}.values())", "list({a=node}.walk())", "list({queue})", "[v for vs in {nest} for v in vs]", "list(map({fn}, {nums}))", "list({a=mat}.shape)", "[{a=node}.visit(v) for v in {nums}]",
        "list(itertools.{chain/zip_longest}({nums}))", "[a + len(str(b)) for a, b in pairs({nums})]", "list(dict.fromkeys({nums}))", "[i * v for i, v in enumerate({nums})]", "{a=nest}[0] if {a} else []", "copy.copy({nums})", "list(reversed({nums}))", "[*range({num} % 5)]",
        "[sum(g) for _, g in itertools.groupby({nums}, key=lambda v: v % 2)]", "heapq.nsmallest(2, {nums})", "Stack({nums})", "{a=node}.children and [c.n for c in {a}.children] or []",
    ],
    "rows": ["[{row}, {row}]", "list({mat})", "[v * 2 for v in {rows}]", "list({a=mat}.unbind(0))", "[t0 * v for v in {nums}]", "{rows}[::-1]", "[*{rows}, t0]", "list({a=mat}.split(1))"],
    "nest": ["[{nums}, {nums}]", "[[v] for v in {nums}]", "[list(g) for _, g in itertools.groupby({nums})]", "copy.deepcopy({nest})", "[{a=nums}, {a}]", "list(map(list, zip({nums}, {nums})))", "[{nums} for _ in range(2)]", "[*{nest}, []]"],
    "table": [
        "{ {text}: {num}, 'z': {num} }", "{ str(v): v for v in {nums} }", "{**{table}, {text}: {num}}", "{**{table}, **{table}}", "dict(zip('abc', {nums}))", "collections.Counter({text})", "collections.defaultdict(int, {table})", "collections.OrderedDict({table})",
        "Config({table})", "{k: v for k, v in sorted({table}.items())}", "copy.copy({table})", "vars({a=node})['seen']", "dict(sorted({table}.items(), key=lambda p: -p[1]))",
    ],
    "map": ["{ {key}: {num}, {key}: {num} }", "{ Key(v): v for v in {nums} }", "dict({map})", "{**{map}, {key}: {num}}", "{ (v, v % 2): v for v in {nums} }", "{ Frozen(v): v for v in {nums} }", "{ id({a=node}): {num} }", "{ v: i for i, v in enumerate({nums}) }", "G_MEMO"],
    "bag": ["{ {key}, {key} }", "set({nums})", "{ Key(v) for v in {nums} }", "{bag} {&/-/^} {bag}", "{bag}.union({bag})", "frozenset({bag})", "set({map})", "{ v % 8 for v in {nums} }", "{ Frozen(v) for v in {nums} }", "{bag}.copy()"],
    "queue": ["collections.deque({nums}{/, maxlen=3})", "collections.deque({nums})", "Ring({nums})", "{queue}.copy()", "collections.deque(sorted({queue}))"],
    "pair": ["({num}, {num})", "divmod({num}, 3)", "tuple({nums}[:2])", "Point({num}, {text})", "({key}, {num})", "G_SENT", "({a=nums}, {a})", "{a=pair}[::-1]", "tuple({a=mat}.shape)", "next(iter({table}.items()), G_SENT)"],
    "key": ["({num}, {text})", "Key({num})", "Loud({num})", "Frozen({num}, {num})", "{num}", "{text}", "frozenset({nums})", "Point({num}, 1)", "Color({num} % 2 + 1)", "float({num})", "{flag}"],
    "node": ["Node({num})", "Node({num}, {a=node})", "copy.copy({a=node})", "G_NODE", "({a=node}.children or [{a}])[-1]", "({a=node}.parent or {a})"],
    "it": [
        "iter({nums})", "({num} + v for v in {nums})", "reversed({nums})", "map({fn}, {nums})", "filter({None/lambda v: v}, {nums})", "countdown({num} % 4)", "itertools.chain({nums}, {it})", "itertools.islice({nums}, {1/2/0})", "{a=node}.walk()",
        "itertools.{accumulate/chain}({nums})", "iter({queue})", "iter(Seq({num} % 3))", "reversed(Seq(2))", "itertools.takewhile(lambda v: v < 3, {nums})", "(a for a, b in zip({nums}, {it}))", "itertools.compress({nums}, {nums})", "iter({table}.values())", "iter(lambda: 0, 0)",
        "itertools.starmap(max, zip({nums}, {nums}))", "(v for vs in {nest} for v in vs)", "iter({ v for v in {nums} })",
    ],
    "fn": ["(lambda v: v * {num})", "functools.partial(max, {num})", "{a=node}.visit", "abs", "(lambda v, k={num}: v + k)", "operator.neg"],
}  # fmt: skip

_MAKE = [f"{{x+{kind}}} = {{{kind}}}" for kind in LEAVES]
_AGAIN = [
    f"{{x={kind}}} = {{{kind}}}"
    for kind in ("num", "row", "mat", "nums", "table", "flag", "text", "node", "it", "map", "bag")
]

STATEMENTS = {
    "make": [*_MAKE, *_MAKE, *_AGAIN],
    "flow": [
        "if {flag}:|    {body}", "if {flag}:|    {body}|else:|    {body}", "for {x+num} in {nums}:|    {body}", "for {x+num} in {nums}:|    {body}|else:|    {body}", "while {x=nums}:|    {y+num} = {x}.pop()|    {body}|    if len({x}) > 5: break",
        "for {x+num}, {y+text} in zip({nums}, {text}):|    {body}", "for {x+text}, {y+num} in {a=table}.items():|    {body}", "try:|    {body}|finally:|    {body}", "try:|    {body}|    {x+num} = {a=nums}[{num}]|    {body}|except IndexError as {e+err}:|    G_LOG.append(str({e}))|    {body}",
        "with scope(G_LOG, {num}) as {x+num}:|    {body}", "for {x+row} in {rows}:|    {body}", "for {x+nums} in {nest}:|    {body}", "for {x+num} in range({num} % 4):|    {body}", "try:|    raise KeyError({num})|except LookupError as {e+err}:|    {body}", "if {flag}: G_LOG.append({num})",
        "for {x+num} in {nums}:|    if {flag}: continue|    {body}|    if {flag}: break", "with contextlib.suppress(LookupError, TypeError):|    {body}|    {a=table}[{text}] += 1", "print({num}, {text})", "print(end='')", "match {pair}:|    case ({x+num}, {y+num}) if {flag}:|        {body}|    case _:|        {body}",
        "def {f+fn}(v, k={num}):|    {body}|    return v + k + {num}", "{x+num} = 0|for {y+num} in {nums}:|    {x} += {y}|    {body}", "if {flag}: return {x=num}, {y=row}", "assert {num} < 100",
    ],
    "containers": [
        "{x=nums}.append({num})", "{x=nums}.{extend/__iadd__}({nums})", "{x=nums}.insert(0, {num})", "if {x=nums}: {x}.pop({/0/-1})", "{x=nums}.{sort/reverse}()", "if {x=nums}: {x}[{0/-1}] = {num}", "{x=nums}[{:/1:/:1/::2}] = {nums}[:0] or {nums}", "del {x=nums}[{:1/1:/::2}]", "{x=nums}.clear()",
        "{x=table}[{text}] = {num}", "{x=table}.update({table})", "{x=table}.pop({text}, None)", "{x=table}.setdefault({text}, {num})", "{x=map}[{key}] = {num}", "{x=map}.pop({key}, None)", "if {x=table}: {x}.popitem()", "{x=bag} = set({x})|{x}.{add/discard}({key})", "{x=bag} = set({x})|{x}.update({nums})",
        "{x=queue}.{append/appendleft}({num})", "{x=queue}.rotate({num})", "if {x=queue}: {x}.{pop/popleft}()", "{x=queue}.extend({nums})", "{x=nest}.append({y=nums})", "if {x=nest}: {x}[0].append({num})", "{x=rows}.append({row})", "{x+nest} = [{y=nums}, {y}]|{y}.append({num})", "{x+nums} = {y=nums}",
        "{x+table} = dict()|for {k+num} in {nums}:|    {x}.setdefault(str({k} % 2), {k})", "{x+queue} = collections.deque({nums})|while {x}:|    {y+num} = {x}.popleft()|    G_LOG.append({y})|    if {y} > 1 and len({x}) < 4: {x}.append({y} - 2)", "{x+nums} = []|for {k+num} in {row}.tolist():|    {x}.append({k})", "{x=nums} += {nums}", "{x=nums} *= 2", "{x=table}.update({table}, zz={num})",
        "{x+nums}, {y+nums} = [], []|for {k+num} in {nums}:|    ({x} if {k} % 2 else {y}).append({k})", "{x+map} = dict()|for {k+num} in {nums}:|    {x}[Key({k})] = {x}.get(Key({k}), 0) + 1", "heapq.heappush({x=nums}, {num})", "{x+pair} = ({y=nums}, {z=table})|{y}.append({num})|{z}['p'] = len({x}[0])", "{x=nest}.append({x})|{n+num} = len({x}[-1])|{x}.pop()",
        "{x+bag} = set()|for {k+num} in {nums}:|    if Frozen({k} % 3) in {x}: continue|    {x}.add(Frozen({k} % 3))|    {body}",
    ],
    "iterators": [
        "{x+num} = next({a=it}, {num})", "{x+nums} = list({a=it})", "for {x+num} in {a=it}:|    {body}|    if {flag}: break", "{x+it} = iter({a=nums})|{y+num} = next({x}, 0)|{a}.append({num})|if len({a}) > 9: {a}.clear()", "{x+it} = iter({a=table})|{y+text} = next({x}, '')", "{x+it} = enumerate({nums})|{y+pair} = next({x}, G_SENT)",
        "{x+it} = countdown(3)|{y+num} = next({x})|{z+num} = {x}.send({1/None})", "{x+it} = zip({a=nums}, {a})|{y+pair} = next({x}, G_SENT)", "{x+it}, {y+it} = itertools.tee({nums})|{z+num} = next({x}, 0)", "{x+it} = itertools.cycle([1, {num}])|{y+nums} = [next({x}) for _ in range(3)]|{x} = None", "{x+it} = (v for v in {a=nums})|{y+num} = next({x}, 0)|{a}.append(5) if len({a}) < 6 else None",
        "{x+num}, *{y+nums} = [{num}, *{it}]", "{x+it} = {a=node}.walk()|{y+num} = next({x})|Node({y} + 1, {a}) if len({a}.children) < 3 else None|{z+nums} = list({x})", "{x+it} = countdown(2)|for {y+num} in {x}:|    {body}|try: next({x})|except StopIteration as {e+err}: G_LOG.append({e}.value)", "{x+num} = sum(itertools.islice({a=it}, 1))", "{x+it} = itertools.count({num})|{y+nums} = [next({x}), next({x})]|{x} = next({x})",
        "{x+it} = reversed({a=nums})|{y+num} = next({x}, 0)|{a}.append(1) if len({a}) < 5 else {a}.clear()", "{x+it} = iter({a=queue})|{y+num} = next({x}, 0)", "{x+it} = countdown(3)|next({x})|{x}.close()", "{x+it} = map({fn}, {a=it})", "{x+nums} = [v for v, _ in zip({a=it}, range(2))]", "{x=it} = itertools.chain([{num}], {x})",
        "{x+it} = iter({nums})|{y+nums} = [(v, next({x}, None)) for v in {x}]", "{x+it} = itertools.groupby({nums}, key=lambda v: v % 2)|for {k+num}, {g+it} in {x}:|    G_LOG.append(({k}, next({g}, None)))|    {body}", "{x+num} = 0|for {y+num} in iter({nums}):|    {x} += {y}|    if {x} > 3: break|else:|    {x} = -1",
    ],
    "objects": [
        "{x=node}.n += {num}", "{x=node}.children.append(Node({num}))", "{x+num} = {y=node}.visit({num})", "{x=node}.extra = {num}", "vars({x=node})[{text} or 'q'] = {num}", "{x+table} = vars({y=node})['seen']|{y}.seen[{num}] = 1", "{x=node}.__dict__.update(n={num})", "{x+num} = getattr({y=node}, {'extra'/'n'/'missing'}, {num})", "setattr({x=node}, 'extra', {nums})",
        "if hasattr({x=node}, 'extra'): del {x}.extra", "Node.total += 1", "{x+num} = Node.total", "G_NS.n += 1", "G_NS.lr = {num}|{x+num} = vars(G_NS)['lr']", "G_TABLE[{text}] = {num}", "G_MEMO[{key}] = {num}", "G_MEMO[id({x=node})] = {num}|{y+num} = G_MEMO.pop(id({x}), 0)", "{x+map} = {{y=node}: {num}, type({y}): 1}|{z+flag} = {y} in {x}", "G_LOG.append({num})", "{x+num} = len(G_LOG)", "{x+sl} = Slotted({num}, {y=node})|{x}.right = {x}|{z+num} = {x}.right.n|del {x}.left",
        "{x+item} = Item({num})|{x}.tags.append({text})|{y+item} = dataclasses.replace({x}, n={num})|{y}.tags.append('y')|{z+num} = len({x}.tags)", "{x+conf} = Config({table})|{x}.lr = {num}|{y+num} = {x}.lr + len({x})", "{x+stack} = Stack({nums})|{x}.push({num}).push(1)|{y+num} = {x}[-1] + len({x})", "{x+ring} = Ring({nums})|{x}.extend({nums})|{y+nums} = list({x})", "{x=node} = Node({num}, {x})",
        "{x+table} = {y=node}.__dict__|{y}.late = {num}|{z+num} = {x}.get('late', 0)", "{x+meth} = {y=node}.visit|{z+num} = {x}({num}) + {x}({num})", "{x+node} = copy.deepcopy({y=node})|{x}.n += 1|{z+num} = {y}.n", "{x+num} = {y=node}.seen.setdefault({num}, {num})", "{x=node}.seen = {}", "{x=node}.children = {x}.children[:1]", "G_NODE.n = {num}",
        "{x+od} = collections.OrderedDict(a=1, b=2)|{x}.move_to_end('a')|{x}[{text}] = {num}|{y+nums} = list({x}.values())", "{x+dd} = collections.defaultdict(list)|for {k+num} in {nums}:|    {x}[{k} % 2].append({k})|{y+num} = len({x})", "{x+cnt} = collections.Counter({nums})|{x}.update({nums})|{y+pair} = ({x}.most_common(1) or [G_SENT])[0]", "{x+cm} = collections.ChainMap({table}, {table})|{y+num} = {x}.get({text}, 0)|{x}['n'] = {num}",
        "{x+wr} = weakref.ref({y=node})|{z+flag} = {x}() is {y}", "{x+err} = ValueError({num}, {text})|{x}.extra = {num}|{y+num} = {x}.args[0] + len(vars({x}))", "{x+cell} = [{num}]|def {f+fn}(v):|    {x}[0] += v|    return {x}[0]", "{x+num} = {num}|def {f+fn}(v):|    nonlocal {x}|    {x} += v|    return {x}",
    ],
    "views": [
        "{x+row} = {y=row}[{1:/:2/::2}]", "{x+row} = {y=mat}[{0/-1}]", "{x=row} = {x}.clone()|{x}.{add_/mul_}({num})", "{x+mat} = {y=mat}.clone()|{z+row} = {x}[0]|{z}.add_({num})", "{x+mat} = {y=mat}.detach().clone()|{z+mat} = {x}.t()|{z}[0, 0] = {num}", "{x+row} = {y=row}.detach().clone()|{z+row} = {x}[1:]|{z} += {num}|{x}[:1] -= 1", "G_BUF[{0/-1/1:}] = {num}", "{x+row} = G_BUF|{x}.add_(1)", "{x+row} = {y=row}|{x} = {x} + 1",
        "{x+rows} = list({y=mat}.detach().clone().unbind(0))|{x}[0].add_({num})", "{x+row} = {y=mat}.detach().clone().view(-1)|{x}[0] = {num}", "{x+mat} = {y=mat}.detach().clone()|{x}.transpose(0, 1).mul_({num})", "{x+row} = {y=row}.detach()|{z+flag} = {x}.data_ptr() == {y}.data_ptr()", "{x+row} = torch.zeros(3)|for {k+num} in {nums}:|    {x}[{k} % 3] += {k}", "{x+row} = {y=row}.detach().clone()|{x}.clamp_(min={num})|{z+row} = {x}.relu_()",
        "{x+row}, {y+row} = {z=mat}.detach().clone()[:, :2].unbind(1)|{x}.copy_({y})", "t0.detach().add_({num})", "m0.detach()[0].mul_({num})", "{x+row} = torch.zeros({3/0})|{y+row} = torch.add(R(3, 1), {num}, out={x})|{z+flag} = {x} is {y}", "{x+row} = {y=row}.expand(2, -1)[0]", "{x+mat} = torch.stack([{y=row}, {y}])|{z+row} = {x}.mean(0)", "{x+row} = {y=row}.contiguous()|{z+flag} = {x} is {y}",
        "with torch.no_grad():|    {x=row} = {x}.clone()|    {x}.add_({num})|    {body}", "{x=rows}.append({y=mat}[0])|{y} = {y} * 2", "{x+row} = {y=row}.detach().clone()|{z+row} = {x}.view(1, -1)|{z}.fill_({num})|{w+num} = int({x}.sum())",
    ],
    "sizes": [
        "{x+num} = {a=mat}.shape[0] + {b=row}.shape[0]", "{x+nums} = [1] * {a=mat}.shape[0]|{y+num} = len({x}) + {b=row}.shape[0]", "{x+num} = {a=mat}.shape[0] * 3|{y+row} = torch.ones({x})", "{x+nums} = list(range({a=row}.shape[0]))|{y+num} = sum({x})", "{x+map} = {{a=mat}.shape[0]: 1, {b=row}.shape[0]: 2}|{y+num} = {x}.get({num}, 0)", "{x+mat} = torch.cat([{a=mat}, {a}])|{y+num} = {x}.shape[0] - {a}.shape[0]", "{x+row} = torch.arange({a=mat}.shape[0] + {num} % 3).float()",
        "for {x+num} in range({a=mat}.shape[0]):|    {body}", "if {a=mat}.shape[0] {</==/>} {num}:|    {body}", "{x+num} = {a=mat}.numel() // 3 + len({b=row})|{y+row} = torch.zeros({x} + {a}.size(0))", "{x+text} = f'{ {a=mat}.shape[0] }:{ tuple({b=row}.shape) }'", "{x+pair} = {a=mat}.shape|{y+num} = {x}[0] + {x}[-1]", "{x+mat} = {a=mat}.new_zeros({a}.shape[0] + 1, 3)|{x}[:-1] = {a}.detach()", "{x+row} = {a=mat}.reshape(-1)|{y+num} = {x}.shape[0] % {a}.shape[0]",
        "{x+table} = {'n': {a=mat}.shape[0]}|{x}['n'] += {b=row}.shape[0]|{y+num} = {x}['n'] + {a}.shape[0]", "{x+rows} = [t0 * i for i in range({a=mat}.shape[0])]", "{x+row} = {a=mat}[:{b=row}.shape[0]].sum(0)", "{x+num} = max({a=mat}.shape[0], {b=row}.shape[0])", "{x+num} = {a=mat}.shape[0] == {b=row}.shape[0]", "{x+bag} = {{a=mat}.shape[0], {b=row}.shape[0], 3}", "n0 = n0 + {a=mat}.shape[0]",
    ],
}  # fmt: skip
STATEMENTS["training"] = [
    "{x+row} = G_NET(R(3, {num}))", "{x+num} = len(G_NET.history)", "G_NET.train({flag})|{x+flag} = G_NET.training", "{x+table} = {k: v.sum().item() for k, v in G_NET.state_dict().items()}", "{x+num} = sum(p.numel() for p in G_NET.parameters())", "{x+row} = F.dropout({row}, 0.5, training={flag})", "with torch.no_grad():|    G_NET.weight.add_({num})", "{x+row} = {row}.detach().requires_grad_()|({x} * {num}).sum().backward()|{y+row} = {x}.grad",
    "{x+hook} = G_NET.register_forward_hook(lambda m, a, o: o * {num})|{y+row} = G_NET(R(3, 1))|{x}.remove()", "{x+row} = torch.rand(3)", "{x+row} = {y=row}.softmax(0)", "for {x+text}, {y+row} in G_NET.named_parameters():|    {body}", "G_NET.zero_grad()", "G_NET.steps = torch.zeros(1)", "{x+net} = G_NET._buffers|G_NET.steps = G_NET.steps + 1|{y+flag} = {x}['steps'] is G_NET.steps",
]  # fmt: skip

PRELUDE += families_of_libraries.PRELUDE
STATEMENTS |= families_of_libraries.STATEMENTS
GRAMMAR = Grammar(LEAVES, EXPRESSIONS, STATEMENTS)
FAMILIES = [name for name in STATEMENTS if name not in ("make", "flow")]
