"""Statements about libraries and the class system: torch's transforms and autograd, NumPy, the
standard library, classes that the program makes, texts.

In: nothing. Out: `STATEMENTS` by family, in the template language of `grammar`, and the `PRELUDE`
that they need.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

PRELUDE = '''
import abc, bisect, contextvars, inspect, math, random, string, typing, warnings
import numpy as np
from torch.utils.checkpoint import checkpoint

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, n):
        ctx.n = n
        ctx.save_for_backward(t)
        return t * n
    @staticmethod
    def backward(ctx, g):
        return g * ctx.n, None

class Checked:
    """A data descriptor."""
    def __set_name__(self, owner, name): self.name = '_' + name
    def __get__(self, obj, owner=None): return self if obj is None else getattr(obj, self.name, 0)
    def __set__(self, obj, value):
        if value is None: raise ValueError(self.name)
        setattr(obj, self.name, value)

class Meta(type):
    made = []
    def __new__(mcls, name, bases, namespace, **options):
        cls = super().__new__(mcls, name, bases, dict(namespace, options=sorted(options)))
        Meta.made.append(name)
        return cls
    def __call__(cls, *args): return super().__call__(*args)
    @property
    def label(cls): return cls.__name__.lower()

class Based(metaclass=Meta):
    field = Checked()
    def __init__(self, n=0): self.field = n
    def __getattr__(self, name):
        if name.startswith('get_'): return lambda: getattr(self, name[4:])
        raise AttributeError(name)
    @functools.cached_property
    def slow(self): G_LOG.append('slow'); return self.field * 2
    @staticmethod
    def plain(n): return n + 1
    def __enter__(self): G_LOG.append('in'); return self
    def __exit__(self, kind, value, trace): G_LOG.append(kind and kind.__name__); return kind is KeyError
    def __lt__(self, other): return self.field < other.field
    def __add__(self, other): return NotImplemented if isinstance(other, str) else Based(self.field + int(other))
    __radd__ = __add__
    def __iadd__(self, other): self.field += other; return self
    def __call__(self, *args, **options): return len(args) + sum(options.values())
    def __format__(self, spec): return f'<{self.field}:{spec}>'
    def __bool__(self): return self.field > 0

class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, n): self.n = n
    def area(self): return self.n ** 2

class Undo:
    """Runs functions at its end, in reverse order."""
    def __init__(self): self.todo = []
    def defer(self, function, *args): self.todo.append((function, args)); return self
    def __enter__(self): return self
    def __exit__(self, *details):
        while self.todo:
            function, args = self.todo.pop()
            function(*args)

@functools.singledispatch
def kind_of(v): return 'other'
@kind_of.register
def _(v: int): return 'int'
@kind_of.register(list)
def _(v): return f'list{len(v)}'

@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def logged(prefix=''):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            G_LOG.append(prefix + function.__name__)
            return function(*args, **kwargs)
        return wrapper
    return decorate

@logged('>')
def scaled(t, *, by=2): return t * by

G_CTX = contextvars.ContextVar('G_CTX', default=1)
G_RNG = random.Random(3)
G_ARR = np.arange(4.0)
G_BASED = Based(2)
'''

STATEMENTS = {
    "torch": [
        "{x+row} = torch.vmap(lambda v: v * {num})({row})", "{x+row} = torch.func.grad(lambda v: (v * v).sum())({row}.detach())", "{x+row} = Double.apply({row}, {num})", "{x+row} = {y=row}.detach().clone().requires_grad_()|{z+row} = Double.apply({x}, 3)|{z}.sum().backward()|{w+row} = {x}.grad",
        "{x+row} = checkpoint(lambda v: v.sin() * {num}, {row}, use_reentrant=False)", "{x+mat} = torch.vmap(lambda v: v.flip(0))({mat})", "{x+row}, {y+row} = torch.func.vjp(lambda v: v * 2, {row}.detach())[0], t0", "{x+row} = torch.func.jacrev(lambda v: v * v)({row}.detach()).sum(0)", "{x+row} = scaled({row}, by={num})", "{x+row} = {row}.detach().requires_grad_()|{h+hook} = {x}.register_hook(lambda g: g * 2)|({x} * 3).sum().backward()|{y+row} = {x}.grad",
        "with torch.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):|    {x=row} = {x} * {num}", "{x+row} = torch.func.functional_call(G_NET, {'weight': torch.ones(3)}, ({row},))", "{x+row} = torch.func.jvp(lambda v: v.sin(), ({a=row}.detach(),), (torch.ones_like({a}),))[1]", "with torch.autocast('cpu', dtype=torch.bfloat16):|    {x+mat} = {mat} @ torch.ones(3, 3)", "with torch.enable_grad():|    {x+row} = {row} * 2|    {body}", "{x+flag} = torch.is_grad_enabled()|with torch.inference_mode():|    {y+row} = {row} + 1", "{x+row} = torch.autograd.grad(({a=row} * 2).sum() + G_NET.weight.sum(), G_NET.weight)[0]",
        "{x+row} = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Identity())({row})", "{x+row} = F.layer_norm({a=row}, {a}.shape)", "{x+text} = str({row}.dtype)|{y+num} = {a=row}.element_size()", "{x+row} = torch.nn.functional.gelu({row}).double().float()", "{x+rows} = torch.meshgrid({a=row}, {a}, indexing='ij')[0].unbind()", "{x+row} = torch.max({mat}, {0/1}).values", "{x+row}, {y+row} = torch.sort({row}, descending={flag})", "{x+row} = torch.topk({a=row}, min(2, {a}.shape[0]))[0]", "{x+mat} = torch.einsum('ij,kj->ik', {a=mat}, {a})[:, :1].expand(-1, 3)", "{x+row} = {a=row}[{a} > {num}]", "{x+row} = torch.nonzero({row}).float().sum(1)",
        "{x+par} = torch.nn.ParameterList([torch.ones(2), torch.zeros(3)])|{y+num} = sum(p.numel() for p in {x})", "{x+mods} = torch.nn.ModuleDict({'a': torch.nn.ReLU()})|{y+row} = {x}['a']({row})", "{x+fn} = torch.compiler.disable(lambda v: v + 1)|{y+num} = {x}({num})", "{x+gen} = torch.Generator().manual_seed(3)|{y+row} = torch.rand(2, generator={x})", "torch.manual_seed({num})|{x+row} = torch.randn(2)", "{x+row} = torch.stack([v.sum() for v in {mat}.split(1)])", "{x+size} = {a=mat}.size()|{y+flag} = isinstance({x}, tuple)|{z+num} = {x}.numel()", "{x+row} = torch.full_like({row}, {num})|{x}[...] = {num}", "assert torch.allclose({a=row}, {a})",
    ],
    "numpy": [
        "{x+arr} = np.arange({num} % 4 + 1)|{y+num} = int({x}.sum())", "{x+arr} = np.asarray({nums})|{y+nums} = {x}.tolist()", "{x+arr} = {row}.detach().numpy()|{y+num} = {x}.shape[0]", "{x+row} = torch.from_numpy(G_ARR) + {num}", "G_ARR[{0/1:/-1}] = {num}", "{x+arr} = np.zeros((2, 3)) + G_ARR[:3]|{x}[0] *= 2|{y+row} = torch.from_numpy({x}).float()[0]", "{x+num} = int(np.max(G_ARR))", "{x+arr} = np.where(G_ARR > {num}, G_ARR, 0)|{y+num} = len({x})", "{x+npf} = np.float32({num})|{y+row} = {row} * {x}",
        "{x+flag} = bool((G_ARR > 1).any())", "{x+arr} = np.stack([G_ARR, G_ARR])|{y+pair} = {x}.shape", "{x+arr} = G_ARR.reshape(2, 2).T|{y+num} = int({x}[0, 1])", "{x+arr} = np.array([{num}, 2.5])|{y+text} = str({x}.dtype)", "{x+npi} = np.int64({num})|{y+flag} = {x} == {num}|{z+num} = int({x} + 1)", "{x+arr} = np.concatenate([G_ARR, [1.0]])[::-1]|{y+nums} = [int(v) for v in {x}]", "{x+arr} = G_ARR.copy()|{x} += {num}|{x}[{x} > 2] = 0|{y+num} = int({x}.sum())", "{x+flag} = np.int64(1) in {nums}", "{x+table} = dict(zip('ab', G_ARR.tolist()))",
    ],
    "stdlib": [
        "{x+num} = fib({num} % 7)|{y+num} = fib.cache_info().hits", "{x+text} = kind_of({a=nums}) + kind_of({num})", "{x+num} = bisect.bisect(sorted({nums}), {num})", "{x+nums} = sorted({nums})|bisect.insort({x}, {num})", "{x+num} = math.{gcd/comb}(abs({num}), 2) + math.prod({nums})", "{x+num} = int(math.sqrt(abs({num})) + math.floor(2.5))", "{x+nums} = list(itertools.permutations({nums}[:3], 2))[:1] and [1]", "{x+pair} = next(itertools.product({nums}, {nums}), G_SENT)", "{x+nums} = [sum(p) for p in itertools.pairwise({nums})]", "{x+nums} = list(itertools.dropwhile(lambda v: v < 2, {nums}))",
        "{x+num} = operator.itemgetter(0)({pair}) and 1", "{x+num} = operator.attrgetter('n')({node})", "{x+num} = G_RNG.randint(0, 5)", "{x+tok} = G_CTX.set({num})|{y+num} = G_CTX.get()|G_CTX.reset({x})", "{x+text} = str(inspect.signature(scope))", "{x+num} = len(inspect.signature(Node.visit).parameters)", "with warnings.catch_warnings():|    warnings.simplefilter('ignore')|    warnings.warn('w')|    {body}", "{x+node} = Undo()|with {x}:|    {x}.defer(G_LOG.append, {num}).defer(G_LOG.append, 'u')|    {body}", "with contextlib.ExitStack() as {x+stk}:|    {x}.callback(G_LOG.append, {num})|    {y+num} = {x}.enter_context(scope(G_LOG, {num}))|    {body}",
        "{x+part} = functools.partial(scope, G_LOG)|with {x}({num}) as {y+num}:|    {body}", "{x+num} = max({nums}, key=functools.cmp_to_key(lambda a, b: b - a), default=0)", "{x+nums} = heapq.nlargest(2, {nums}, key=lambda v: -v)", "{x+nums} = list(heapq.merge(sorted({nums}), [1, 4]))", "{x+heap} = list({nums})|heapq.heapify({x})|{y+num} = heapq.heappop({x}) if {x} else 0|heapq.heappush({x}, {num})|{z+num} = heapq.heappushpop({x}, {num})", "{x+num} = functools.reduce(lambda a, b: a * 2 + b, {nums}, {num})", "{x+nums} = list(itertools.accumulate({nums}, max))", "{x+nums} = [len(b) for b in itertools.batched({nums}, 2)] if hasattr(itertools, 'batched') else []", "{x+deep} = copy.deepcopy([{a=nums}, {a}])|{y+flag} = {x}[0] is {x}[1]",
        "{x+table} = dict(typing.get_type_hints(Frozen) and {'n': {num}})", "{x+num} = sum(dataclasses.astuple(Item({num}))[:1]) + len(dataclasses.fields(Item))", "{x+table} = dataclasses.asdict(Frozen({num}))", "{x+ns} = types.SimpleNamespace(n={num})|{x}.m = {x}.n|{y+flag} = {x} == types.SimpleNamespace(n=1, m=1)|{z+text} = repr({x})", "{x+prox} = types.MappingProxyType({a=table})|{a}[{text}] = {num}|{y+num} = len({x})", "{x+nums} = random.Random({num}).sample(range(9), 3)", "{x+num} = len(string.ascii_lowercase) + int({num}).bit_length()", "{x+num} = hash(({num}, {num})) % 5|{y+num} = {num} .__index__()", "{x+wd} = weakref.WeakValueDictionary()|{x}['a'] = {y=node}|{z+flag} = {x}.get('a') is {y}", "{x+fn} = functools.lru_cache(lambda v: v + {num})|{y+num} = {x}(2) + {x}(2)|{z+num} = {x}.cache_info().hits",
        "{x+res} = contextlib.nullcontext({num})|with {x} as {y+num}:|    {body}", "{x+zl} = list(itertools.zip_longest({nums}, {nums}, fillvalue={num}))|{y+num} = len({x})", "{x+num} = int('%d' % {num}) + round({num} / 3)", "{x+by} = bytes({nums}[:0]) + b'ab'|{y+num} = {x}[0] + len({x}.hex())", "{x+num} = sum(divmod({num}, 2)) + abs(complex(1, {num}).real)", "{x+num} = int(str({num}).zfill(3)) if {num} >= 0 else 0",
    ],
    "classes": [
        "class {C+cls}:|    count = {num}|    def __init__(self, n): self.n = n + self.count|    def __repr__(self): return 'C'|{x+num} = {C}({num}).n", "class {C+cls}(Node):|    def visit(self, n): return super().visit(n) + 1|{x+num} = {C}(1).visit({num})", "class {C+cls}(Based, tag=1):|    extra = {num}|{x+num} = {C}.extra + len({C}.options)", "{x+based} = Based({num})|{x} += 1|{y+num} = {x}.field + {x}.slow + {x}.slow", "{x+text} = f'{ G_BASED }' + format(G_BASED, 'q') + Based.label", "{x+num} = (G_BASED + {num}).field + (2 + G_BASED).field", "{x+num} = G_BASED.get_slow()", "try:|    G_BASED.field = {None/3}|except ValueError as {e+err}:|    G_LOG.append(str({e}))", "try: {x+num} = G_BASED.nothing|except AttributeError as {e+err}: G_LOG.append({e}.args)",
        "with G_BASED as {x+based}:|    {body}|    if {flag}: raise KeyError({num})", "{x+num} = max(Based(1), Based({num})).field", "{x+num} = G_BASED({num}, {num}, k={num})", "{x+sq} = Square({num})|{y+num} = {x}.area() + isinstance({x}, Shape)", "try: Shape()|except TypeError as {e+err}: G_LOG.append(str({e})[:20])", "@dataclasses.dataclass(order=True)|class {C+cls}:|    n: int = {num}|    m: list = dataclasses.field(default_factory=list)|{x+num} = {C}().n + ({C}(1) < {C}(2))", "{C+cls} = collections.namedtuple('C', 'p q', defaults=({num},))|{x+pair} = {C}({num})|{y+num} = {x}.q", "{C+cls} = type('T', (Node,), {'depth': {num}})|{x+num} = {C}(2).depth", "{x+en} = enum.Enum('E', 'A B')|{y+text} = [m.name for m in {x}][-1]|{z+num} = {x}['A'].value",
        "{x+num} = Color.RED.value + len(Color)|{y+flag} = Color(1) is Color.RED", "def {f+fn}(v, /, w={num}, *rest, k=2, **more):|    return v + w + len(rest) + k + len(more)|{x+num} = {f}(1, 2, 3, 4, k=5, z=6) + {f}(*{nums}[:1] or [1], **{'k': 3})", "{f+fn} = logged('f')(lambda v: v * {num})|{x+num} = {f}({num})|{y+text} = {f}.__name__", "def {f+fn}(v):|    if v <= 0: return 0|    return 1 + {f}(v - 1)|{x+num} = {f}({num} % 4)", "{x+fn} = Based.plain|{y+num} = {x}({num}) + G_BASED.plain(1)", "{x+flag} = issubclass(Square, Shape) and isinstance({num}, (int, str)) and callable({fn})", "{x+num} = {a=node}.__class__.total + type({a}).total", "{x+prop} = Node.depth.fget({node})|{y+num} = {x}", "Based.plain2 = lambda self: self.field + {num}|{x+num} = G_BASED.plain2()", "{x+flag} = G_BASED and True or False", "match {num}, {pair}:|    case 0, _: {x+num} = 0|    case int({y+num}), (1, _): G_LOG.append({y})|    case _, Point(x={z+num}):|        {body}|    case _:|        {body}",
        "match {a=table}:|    case {'a': {x+num}, **{y+table}}: G_LOG.append({x})|    case _:|        {body}", "match {a=nums}:|    case []:|        {body}|    case [{x+num}]: G_LOG.append({x})|    case [{x2+num}, *{y+nums}]: G_LOG.append(len({y}))", "match {node}:|    case Node(n={x+num}) if {x} > 1: G_LOG.append({x})|    case Node():|        {body}", "{x+gen} = (lambda: (yield {num}))()|{y+num} = next({x})|try: {x}.send({num})|except StopIteration as {e+err}: G_LOG.append({e}.value)", "def {f+fn}():|    try:|        yield {num}|    except ValueError: yield 'caught'|    finally: G_LOG.append('end')|{x+it} = {f}()|{y+num} = next({x})|{z+text} = {x}.throw(ValueError('v'))",
    ],
    "text": [
        "{x+text} = '{:>5}|{:<3}|{:^4}'.format({num}, {text}, {num})".replace("|", ";"), "{x+text} = f'{ {a=num}:03d} { {b=text}!r} { {a=num}:+}'", "{x+text} = ' '.join([{text}, str({num})]).title()", "{x+nums} = [ord(c) for c in {text}]", "{x+text} = {a=text}.replace('a', {text}).strip()", "{x+pair} = {a=text}.partition('a')[:2]", "{x+text} = '%(n)s' % {'n': {num}}", "{x+flag} = {a=text}.startswith(('a', 'k')) or {a}.isdigit()", "{x+table} = {}|for {c+text} in {text}:|    {x}[{c}] = {x}.get({c}, 0) + 1".replace("{}", "dict()"), "{x+text} = str({a=nums}) + repr({b=table})", "{x+num} = int({a=text}[1:] or 0) if {a}[1:].isdigit() else 0",
        "{x+text} = f'{len({c=nums})}' + f'{ {a=row}.shape }' + f'{ {b=mat}.shape[0] * 2 }'", "{x+nums} = [len(w) for w in 'the cat sat'.split()]", "{x+text} = 'ab'.translate({97: {text}})", "{x+text} = {text}.encode().decode('ascii', 'ignore')", "print(f'n={ {a=num} }', {text}, sep='-', end=';')", "{x+text} = ''|for {c+text} in ({text}, {text}):|    {x} += {c} + '.'", "{x+text} = max({a=text}, {b=text}) * 2|{y+num} = {x}.find({text}) + {x}.count('a')", "{x+text} = string.Template('$a').substitute(a={num})", "{x+flag} = {text} < {text} and {text} in {text}",
    ],
}  # fmt: skip
