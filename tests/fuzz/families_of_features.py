"""What torch and Python have beside single operations: functions of functions of tensors, autograd,
modules, arrays, compiled functions, iterators at any place, context variables, numbers that vary.

In: nothing. Out: `STATEMENTS` by family, in the template language of `grammar`, with the `LEAVES`,
`EXPRESSIONS` and `PRELUDE` that they need. ``tf`` is a function of tensors, ``arr`` an array,
``seq`` an iterator of any class, ``obj`` an object of any class, ``view`` a view of a dict.
"""

# ruff: noqa: E501 (one production a line)
from __future__ import annotations

import collections
import warnings
from typing import Any

import torch
from families_of_calls import SAMPLES, attempt, methods, with_blocks

PRELUDE = '''
import _thread, os, sys, threading
import framejit
from torch._higher_order_ops.map import map as hmap
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint_sequential

class Scaled:
    """Called with tensors; compares itself in the program's own way."""
    def __init__(self, n): self.n = n
    def __call__(self, v, *rest): return v * self.n
    def method(self, v): return v + self.n
    def __eq__(self, other): G_LOG.append('eq'); return isinstance(other, Scaled) and other.n == self.n
    def __hash__(self): return self.n
    def __length_hint__(self): return 3
    def __iter__(self): return iter([self.n, 1])
    def __getitem__(self, i): return self.n + i
    def keys(self): return ['a', 'q']

class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(t, n): return t ** 3, t * n
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.n = inputs[1]
        ctx.set_materialize_grads(True)
    @staticmethod
    def backward(ctx, g, h):
        t, = ctx.saved_tensors
        return g * 3 * t ** 2 + h * ctx.n, None

class Marked(torch.autograd.Function):
    """Writes to its operand; one of its results has no gradient."""
    @staticmethod
    def forward(ctx, t, options):
        ctx.mark_dirty(t)
        t.add_(options['n'])
        other = t > 1
        ctx.mark_non_differentiable(other)
        ctx.options = options
        return t, other
    @staticmethod
    def backward(ctx, g, _):
        return (g * ctx.options['n'] if ctx.needs_input_grad[0] else None), None

class Spoken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        G_LOG.append('forward')
        return t * G_W
    @staticmethod
    def backward(ctx, g):
        G_LOG.append('backward')
        return g

class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.ReLU()])
        self.named = torch.nn.ModuleDict({'norm': torch.nn.LayerNorm(3), 'drop': torch.nn.Dropout(0.5)})
        self.scales = torch.nn.ParameterDict({'a': torch.nn.Parameter(torch.ones(3))})
        self.register_buffer('hidden', torch.zeros(3), persistent=False)
        self.register_parameter('nothing', None)
        with torch.no_grad():
            for n, p in enumerate(self.parameters()): p.fill_(0.25 * (n + 1))
    def forward(self, v, *rest, k=1):
        for layer in self.layers: v = layer(v)
        return self.named['norm'](v) * self.scales['a'] * k + self.hidden

def plain_step(v, k=1): return v * k + G_W

class Kept:
    """Methods that were compiled before."""
    def __init__(self, n): self.n = n
    def step(self, v): return v * self.n
    fast = framejit.compile(step, backend='eager')
    @staticmethod
    @framejit.disable
    def slow(v): return v + 1

G_W = torch.tensor([1., -1., 2.])
G_FAST = framejit.compile(plain_step, backend='eager')
G_TOWER = Tower()
G_KEPT = Kept(2)
G_UNSET = contextvars.ContextVar('G_UNSET')
G_LOCK = threading.RLock()
G_LOCAL = threading.local()
G_OBJ = Scaled(2)
G_IT = iter([4, 5])
'''

LEAVES = {
    "tf": ["torch.sin", "torch.relu", "(lambda v: v * 2)", "Scaled(2)", "G_OBJ.method", "G_FAST"],
    # For operators that call torch.compile in eager mode: it fails on what framejit has compiled.
    "traced": ["torch.sin", "torch.relu", "(lambda v: v * 2)", "Scaled(2)", "G_OBJ.method"],
    "arr": ["G_ARR", "np.arange(3.)", "np.ones((2, 3))", "np.array([1, 2, 3])", "np.float32(2.5)"],
    "seq": ["iter([1, 2, 3])", "zip([1, 2], 'ab')", "itertools.count(1)", "G_IT"],
    "obj": ["G_OBJ", "Scaled(1)", "Point(1, 2)", "Frozen(2)", "Color.RED", "G_NS", "None", "2.5"],
    "view": ["G_TABLE.keys()", "{'a': 1, 'b': 2}.items()", "G_OD.keys()", "{'a': 1}.values()"],
    "size": ["m0.shape[0]", "t0.shape[0]", "n0", "t0.numel()"],
    "fs": ["frozenset([1, 2])", "frozenset()"],
}

EXPRESSIONS = {
    "tf": [
        "(lambda v: {tf}(v) {+/*/-} {num})", "(lambda v: v + {row}.sum())", "(lambda v: (G_LOG.append({num}), v)[1])", "(lambda v: (print(end=''), v * 2)[1])", "(lambda v: v if {flag} else {tf}(v))",
        "functools.partial(torch.mul, torch.tensor(2.))", "functools.partial(lambda k, v: v * k, {num})", "(lambda v: Double.apply(v, {num}))", "(lambda v: Cube.apply(v, {num})[{0/1}])", "(lambda v: torch.func.grad(lambda w: ({tf}(w) * w).sum())(v))",
        "torch.vmap({tf})", "framejit.compile({tf}, backend='eager')", "G_NET", "G_TOWER", "G_KEPT.fast", "Kept({num}).step", "torch.nn.Tanh()", "(lambda v: checkpoint({tf}, v, use_reentrant=False))", "(lambda v: F.softmax(v, 0) * {num})", "(lambda v, k={num}: v * k)",
        "torch.no_grad()({tf})", "(lambda v: [v * k for k in {nums}][-1] if {nums} else v)", "(lambda v: v.clone().add_({num}))", "(lambda v: {tf}({tf}(v)))", "(lambda v: v.flip(0) if v.dim() else v)",
    ],
    "arr": [
        "{arr} {+/*/-} {num}", "{arr} {+/*} {arr}", "{a=arr}[{0/1:/::-1/.../None}]", "np.asarray({nums})", "{row}.detach().numpy()", "{a=arr}.T", "np.sin({arr})", "{arr}.astype({np.float32/'int64'/bool})", "np.where({arr} > {num}, {arr}, {num})", "{arr} > {num}", "np.array({nums}, dtype=np.float32)",
        "{a=arr}.reshape(-1)", "{a=arr}.copy()", "np.concatenate([np.ones(2), {row}.detach().numpy()])", "np.{sum/max/mean/cumsum/sort/square/isnan/prod}({arr})", "{a=arr}.{sum()/max()/mean()/argmax()/any()/ravel()/flatten()/squeeze()/item()/std()/round()}", "np.{zeros_like/ones_like}({arr}) * 0", "np.linspace(0, 1, {num} % 4 + 1)",
        "np.{int64/float32/float64}({num})", "-{arr}", "np.dot({arr}, {arr})", "{a=mat}.detach().numpy()[{0/:1/:, 1/[0]}]", "np.stack([G_ARR, G_ARR])[{0/1/:, 0/..., 1:}]", "np.full(({num} % 3 + 1,), {num})", "{a=arr}.sum(axis=0)", "np.matmul(np.ones((2, 2)), np.ones((2, 2)))", "np.clip({arr}, 0, {num})",
    ],
    "seq": [
        "map({fn}, {seq})", "zip({seq}, {nums})", "enumerate({seq}, {num})", "filter({fn}, {nums})", "itertools.chain({seq}, {nums})", "itertools.islice({seq}, {num} % 5)", "itertools.accumulate({nums}, {fn2}{/, initial=1})".replace("{fn2}", "lambda a, b: a + b"), "itertools.cycle({nums})", "itertools.pairwise({nums})",
        "itertools.takewhile(lambda v: v < {num}, {nums})", "itertools.dropwhile(lambda v: v < {num}, {nums})", "itertools.starmap(max, zip({nums}, {nums}))", "itertools.zip_longest({nums}, {seq0}, fillvalue={num})".replace("{seq0}", "iter({nums})"), "itertools.compress({nums}, {nums})", "itertools.groupby({nums}{/, key=lambda v: v % 2})", "itertools.repeat({num}{/, 2})", "itertools.product({nums}, repeat=2)",
        "itertools.permutations({nums}[:3])", "itertools.combinations({nums}, 2)", "itertools.filterfalse({fn}, {nums})", "reversed({nums})", "reversed({table})", "iter({view})", "iter({bag})", "iter({queue})", "reversed({queue})", "iter({text})", "iter(range({num}, {num}))", "reversed(range({num}))", "iter(Seq({num} % 3))", "reversed(Seq(2))", "iter({pair})", "countdown({num} % 4)",
        "itertools.tee({nums})[{0/1}]", "(v for v in {nums})", "iter({row})", "iter({mat})", "iter(lambda: {num}, 3)", "iter({map}.items())", "map(lambda a, b: (a, b), {nums}, {text})", "itertools.chain.from_iterable({nest})", "iter({arr})", "iter(Stack({nums}))", "reversed(Stack({nums}))", "map({tf}, {rows})", "zip({nums}, {nums}, strict={flag})", "iter(b'ab')", "itertools.count({num}, {num})",
    ],
    "obj": [
        "Scaled({num})", "Node({num})", "Item({num})", "Stack({nums})", "Config({table})", "Ring({nums})", "Based({num})", "Slotted({num})", "Frozen({num})", "{fs}", "{view}", "{arr}", "{tf}", "{pair}", "{row}", "{map}", "{bag}", "{nest}", "{seq}", "types.SimpleNamespace(n={num})", "slice({num}, None)", "range({num})", "{text}.encode()", "complex({num}, 1)", "float({num})", "{key}", "ValueError({num})",
        "collections.OrderedDict({table})", "collections.defaultdict(list, {table})", "collections.Counter({nums})", "types.MappingProxyType({table})", "functools.partial(max, {num})", "operator.itemgetter({num})", "property({fn})", "type({obj})", "{size}", "bytearray(b'ab')", "functools.lru_cache({fn})", "weakref.ref({node})", "{a=mat}.shape", "torch.float32", "Part({num})", "staticmethod({fn})",
    ],
    "view": ["{table}.{keys/values/items}()", "{map}.{keys/items}()", "collections.OrderedDict({table}).{keys/values/items}()", "collections.Counter({nums}).{keys/items}()", "vars({a=node}).keys()", "types.MappingProxyType({table}).{keys/items}()", "Config({table}).{keys/values}()"],
    "size": ["{size} {+/*/-/%} {size}", "{size} {+/*/-/%} {num}", "{a=mat}.shape[{0/1/-1}]", "{a=row}.size(0)", "{a=row}.numel()", "len({a=mat})", "-{size}", "max({size}, {num})", "abs({size})", "{size} ** 2", "int({size})", "({size} if {size} > {num} else {num})"],
    "fs": ["frozenset({nums})", "frozenset({bag})", "{fs} {&/-/^} {fs}", "frozenset({view})"],
}  # fmt: skip


def _quiet(call: str) -> str:
    """The template of a call of which only is noted that it fails."""
    return "{x+any} = None|try:|    {x} = " + call + "|except Exception: G_LOG.append('error')"


_QUIET_CALLS = {
    "transforms": [
        "torch.cond({row}.sum() > {num}, {traced}, {traced}, ({row},))", "torch.cond({flag}, {traced}, {traced}, ({row},))", "torch.cond({a=row}.sum() > {num}, lambda v, w: (v + w, v * 1), lambda v, w: (v - w, w * 1), ({a}, {a} * 2))", "torch.cond({row}.sum() > {num}, lambda: {a=row} * 1., lambda: {a} + 1)", "torch.cond({a=mat}.sum() > {num}, lambda v: [v.sin(), {'k': v.cos()}], lambda v: [v.cos(), {'k': v.sin()}], [{a}])",
        "while_loop(lambda k, v: k < {0/2/3}, lambda k, v: (k + 1, {traced}(v)), (torch.zeros(()), {row}))", "while_loop(lambda c: c['k'] < 3, lambda c: ({'k': c['k'] + 1, 'v': c['v'] * 2},), ({'k': torch.zeros(()), 'v': {row}},))", "scan(lambda c, v: (c + v, c * {num}), torch.zeros(3), {mat}, reverse={flag})", "scan(lambda c, v: (c + v.sum(), {traced}(v)), torch.zeros(()), {mat}, dim={0/1})", "scan(lambda c, v: ({'s': c['s'] + v[0]}, [v[0] * 2, v[1]]), {'s': torch.zeros(3)}, [{a=mat}, {a} * 2])",
        "hmap(lambda v: {traced}(v), {mat})", "hmap(lambda v, w: (v + w, [v]), {mat}, {row})", "torch.vmap({tf}, in_dims={0/1/-1/2}, out_dims={0/1/-1})({mat})", "torch.vmap(lambda v, w: v * w, in_dims=({0/None/1}, {0/1/None}))({a=mat}, {a})", "torch.vmap(lambda d, k: d['a'] + d['b'] * k, in_dims=({'a': 0, 'b': None}, None))({'a': {mat}, 'b': {row}}, {num})", "torch.vmap(lambda v: {'s': v.sum(), 'v': [v, v * 2]})({mat})", "torch.vmap(lambda v: (v, v.sum()), out_dims=({0/1/None}, 0))({mat})",
        "torch.vmap(lambda v: v + torch.rand_like(v), randomness={'different'/'same'/'error'})({mat})", "torch.vmap({tf}, chunk_size={1/2/None})({mat})", "torch.vmap(torch.vmap({tf}))({a=mat}[None] * {a}[:, None])", "torch.vmap(lambda v, k=1: v * k)({mat}, k={num})", "torch.vmap(lambda v: {num})({mat})", "torch.vmap(lambda vs: vs[0] + vs[1], in_dims=([0, None],))([{mat}, {row}])", "torch.vmap(lambda v: (v > {num}).sum())({mat})", "torch.vmap(torch.func.grad(lambda v: ({tf}(v) ** 2).sum()))({mat})",
        "torch.func.grad(lambda v, w: (v * w).sum(), argnums={0/1/-1/2})({a=row}.detach(), {a}.detach() + {num})", "torch.func.grad(lambda v, w: (v * w).sum(), argnums=(0, 1))({a=row}.detach(), {a}.detach() + {num})", "torch.func.grad(lambda v: (({tf}(v) * v).sum(), {'aux': [v, {num}]}), has_aux=True)({row}.detach())", "torch.func.grad_and_value(lambda v: ((v ** 2).sum(), v * 2), has_aux={flag})({row}.detach())", "torch.func.grad(lambda d: sum((v * v).sum() for v in d.values()))({'a': {row}.detach(), 'b': R(2, 1)})",
        "torch.func.grad(lambda p, k=2: (p[0] * p[1] * k).sum())([{a=row}.detach(), {a}.detach()], k={num})", "torch.func.grad(lambda v: torch.func.grad(lambda w: ({tf}(w) ** 3).sum())(v).sum())({row}.detach())", "torch.func.grad({tf})({row}.detach())", "torch.func.grad(lambda v: v.sum().item())({row}.detach())", "torch.func.grad(lambda v: (v * G_NET.weight.sum()).sum())({row}.detach())",
        "(lambda out, pull: (out, pull(torch.ones_like(out)), pull(out)))(*torch.func.vjp({tf}, {row}.detach()))", "(lambda out, pull, aux: (out, pull(out), aux))(*torch.func.vjp(lambda v: ({tf}(v), [v, {num}]), {row}.detach(), has_aux=True))", "(lambda out, pull: pull((out[0], out[1])))(*torch.func.vjp(lambda v, w: (v * w, w), {a=row}.detach(), {a}.detach()))", "torch.func.vjp(lambda v: v * {num}, {row}.detach())", "torch.func.jvp({tf}, ({a=row}.detach(),), (torch.ones_like({a}),))", "torch.func.jvp(lambda v, w: (v * w, v), ({a=row}.detach(), {a}.detach()), (torch.ones_like({a}), {a}.detach()))",
        "torch.func.jvp(lambda v: (v.sin(), {num}), ({a=row}.detach(),), ({a}.detach(),), has_aux={flag})", "torch.func.jacrev({tf})({row}.detach())", "torch.func.jacrev(lambda v, w: v * w, argnums={0/1/-1})({a=row}.detach(), {a}.detach())", "torch.func.jacrev(lambda v, w: v * w, argnums=(0, 1))({a=row}.detach(), {a}.detach())", "torch.func.jacrev(lambda v: (v, v * 2), has_aux={flag})({row}.detach())", "torch.func.jacfwd({tf}, argnums=0)({row}.detach())", "torch.func.jacfwd(lambda v: (v.sin(), v), has_aux=True)({row}.detach())",
        "torch.func.hessian(lambda v: ({tf}(v) ** 2).sum())({row}.detach())", "torch.func.functionalize({tf})({row}.detach().clone())", "torch.func.functionalize(lambda v: v.add_(1))({row}.detach().clone())", "torch.func.linearize({tf}, {a=row}.detach())[1]({a}.detach())", "torch.func.functional_call(G_TOWER, {n: p * 2 for n, p in G_TOWER.named_parameters()}, ({a=mat},), {'k': {num}})", "torch.func.functional_call(G_NET, ({'weight': G_W}, {'steps': torch.ones(1)}), (R(3, 1),))", "torch.func.vmap(G_TOWER)({mat})", "torch.func.stack_module_state([G_TOWER])[0]['scales.a']",
        "torch.autograd.functional.{jacobian/hessian}(lambda v: (v ** 2).sum(), {row}.detach())", "torch.func.debug_unwrap({row})", "torch.func.vmap(lambda v: torch.where(v > 0, v, 0.).cumsum(0))({mat})",
    ],
    "gradients": [
        "Cube.apply({row}.detach().requires_grad_({flag}), {num})", "Cube.apply({tf}({row}), {num})[0].sum()", "Marked.apply({row}.detach().clone(), {'n': {num}})", "Marked.apply({row} * 1, {'n': {num}, 'm': [1]})", "Marked.apply({row} * 1, {'n': {row}})", "Spoken.apply(R(3, {num}))", "Spoken.apply(R(3, 1, {flag}))", "Double.apply({row}, n={num})", "Double.apply({row}, {row})", "Double.apply({num}, {num})", "Double.forward({obj}, {row}, 2)", "torch.vmap(lambda v: Cube.apply(v, 2)[0])({mat})",
        "checkpoint({tf}, {row}, use_reentrant={True/False/None})", "checkpoint({tf}, R(3, {num}, True), use_reentrant={True/False}, preserve_rng_state={flag})", "checkpoint(lambda v, k=1: (v * k, [v, None, {num}]), R(3, 1, True), use_reentrant=False, k={num})", "checkpoint(lambda v: (F.dropout(v, 0.5), v), R(3, 2, True), use_reentrant={True/False})", "checkpoint(lambda *v: {num}, {row}, use_reentrant=False)", "checkpoint(function={tf}, use_reentrant={False/True})", "checkpoint({tf}, {row}, use_reentrant=False, determinism_check='none', debug={False/True})", "checkpoint({tf}, {row})",
        "checkpoint({tf}, {row}, use_reentrant=False, context_fn=lambda: (contextlib.nullcontext(), contextlib.nullcontext()))", "checkpoint_sequential([torch.nn.ReLU(), torch.nn.Tanh()], 2, {row}, use_reentrant=False)", "torch.autograd.grad(({a=row} * 2).sum(), {a})", "torch.autograd.grad([({a=row} ** 2).sum()], [{a}, G_W], allow_unused={flag}, create_graph={flag})", "torch.autograd.backward([{row}.sum()])", "torch.autograd.functional.vjp({tf}, {row}.detach())", "torch.nn.utils.clip_grad_norm_(G_TOWER.parameters(), 1.0)",
    ],
    "modules": [
        "G_TOWER({mat}, k={num})", "G_TOWER.{train/eval}().named['drop']({mat}).shape", "[n for n, _ in G_TOWER.{named_modules/named_parameters/named_buffers/named_children}()]", "sorted(G_TOWER.state_dict())", "G_TOWER.get_submodule('layers.0').weight", "G_TOWER.get_parameter({'scales.a'/'nothing'/'no'})", "G_TOWER.load_state_dict(G_TOWER.state_dict())", "G_TOWER.layers[{0/-1/0:1/5}]", "list(G_TOWER.named)", "dict(G_TOWER.scales.items())", "G_TOWER.{nothing/absent/training/hidden}",
        "len(G_TOWER.layers) + len(G_TOWER.named) + len(G_TOWER.scales)", "repr(G_TOWER.layers[1])", "G_TOWER.add_module({text} or 'm', torch.nn.ReLU())", "G_TOWER._modules.pop({text}, None)", "G_TOWER.register_buffer({text} or 'bufs', {row})", "setattr(G_TOWER, 'hidden', {obj})", "setattr(G_TOWER, 'extra', {obj})", "delattr(G_TOWER, {'extra'/'hidden'})", "isinstance(G_TOWER.layers, torch.nn.Module)", "'norm' in G_TOWER.named", "G_TOWER.apply(lambda m: G_LOG.append(type(m).__name__)) is G_TOWER", "G_TOWER.zero_grad(set_to_none={flag})",
        "torch.nn.GRU(3, 2)({a=mat}[None])[0].shape", "torch.nn.LSTM(3, 2, batch_first=True)({mat}[None])[1][0].shape", "torch.nn.BatchNorm1d(3)({a=mat})", "torch.nn.MultiheadAttention(3, 1)({a=mat}, {a}, {a})[1].shape", "torch.nn.Embedding(4, 2)(torch.tensor({nums}) % 4).shape", "torch.nn.Sequential(collections.OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh()))({row})", "torch.nn.TransformerEncoderLayer(3, 1, 4, dropout=0.)({mat}).shape", "F.cross_entropy({a=mat}, torch.zeros({a}.shape[0], dtype=torch.long))", "F.scaled_dot_product_attention({a=mat}[None], {a}[None], {a}[None])",
        "torch._foreach_add([{row}, {row}], {num})", "torch._foreach_mul([{a=row}, {a}], [{a}, {a}])", "torch._check({flag}, lambda: {text})", "torch._check({size} > {num})", "torch._check_value({flag}, {None/lambda: 'm'})", "torch._check({num})", "torch.Size({nums})", "torch.Size([{size}, 1]) + (2,)", "torch.Size([{text}])", "{a=mat}.shape.numel()", "torch.jit.annotate(int, {num})", "torch.jit.is_scripting() or torch.jit.is_tracing()", "torch.is_grad_enabled() and torch.is_autocast_enabled()", "torch.utils._pytree.tree_map(lambda v: v * 2, [{row}, {'a': {num}}])", "torch.utils._pytree.tree_leaves({obj})",
        "torch.addcdiv({a=row}, {a}, {a}, value={num})", "torch.addcmul({a=row}, {a}, {a}, value=torch.tensor(2.))", "{a=row}.detach().clone().addcdiv_({a}, {a} + 9, value=torch.tensor(2.))", "{a=row}.detach().clone().addcmul_({a}, {a}, value={num})", "torch.overrides.is_tensor_like({obj})", "torch.nn.functional.handle_torch_function({obj})", "torch.backends.mkldnn.is_available()", "torch.result_type({row}, {num})", "torch.broadcast_shapes((1, 3), {a=mat}.shape)",
    ],
    "compiled": [
        "G_FAST({row}, k={num})", "G_FAST.__wrapped__({row})", "G_FAST.__name__ + G_FAST.__doc__ * 0", "G_FAST.__call__({row})", "G_KEPT.fast({row})", "Kept({num}).fast({row})", "Kept.fast(G_KEPT, {row})", "Kept.fast.__get__(G_KEPT)({row})", "Kept.fast.__get__(None, Kept)(G_KEPT, {row})", "G_KEPT.slow({row})", "framejit.compile({tf}, backend='eager')({row})", "framejit.compile(lambda v, k: v * k, backend='eager')({row}, {num})", "framejit.disable({tf})({row})", "callable(G_FAST) and isinstance(G_FAST, type(plain_step))", "[*map(G_FAST, {rows})]", "functools.partial(G_FAST, k=3)({row})", "G_FAST is framejit.compile", "{G_FAST: {num}}[G_FAST]",
        "framejit.graph_break()", "inspect.signature(G_FAST)", "inspect.isfunction(G_FAST)", "getattr(G_FAST, {'nothing'/'__module__'/'__defaults__'}, {num})", "checkpoint(G_FAST, {row}, use_reentrant=False)", "torch.vmap(G_FAST)(M(2, 1))", "G_FAST({num})", "G_FAST()", "torch.compiler.disable({tf})({row})",
    ],
}  # fmt: skip

_CALLS = {
    "steps": [
        "next({seq}, None)", "list(itertools.islice({seq}, 4))", "[*zip({seq}, range(3))]", "copy.copy({a=seq})", "operator.length_hint({seq}, {num})", "{seq}.__length_hint__()", "next({seq})", "{seq}.__next__()", "{a=seq}.__iter__() is {a}", "iter({a=seq}) is {a}", "{seq}.send({num})", "{seq}.throw(KeyError({num}))", "{seq}.throw(ValueError)", "{seq}.close()", "(next({a=seq}, 0), next({a}, 1))", "{num} in itertools.islice({seq}, 3)", "dict(zip({text}, {seq}))",
        "sum(v for v in itertools.islice({seq}, 3) if isinstance(v, int))", "max(itertools.islice({seq}, 3), default={num})", "tuple(itertools.islice({seq}, {num}, 5))", "type({seq}).__name__", "bool({seq})", "len({seq})", "{seq} == {seq}", "repr(type({seq}))", "sorted(itertools.islice({seq}, 3), key=str)", "collections.deque({seq0}, maxlen=2)".replace("{seq0}", "itertools.islice({seq}, 3)"), "[v for _, v in zip(range(3), {seq})]", "next(itertools.tee({a=seq})[0], None)", "all(itertools.islice({seq}, 2))", "{seq}.gi_frame is None", "{seq}.gi_yieldfrom", "{a=seq}.gi_running", "{seq}.__name__",
        "min({nums}, key=lambda v: (G_LOG.append(v), -v)[1], default={num})", "max({nums}, {nums}, key={fn0})".replace("{fn0}", "lambda v: len(v)"), "sorted({nums}, key=functools.cmp_to_key(lambda a, b: b - a))", "(lambda k: (k(1) < k(2), k(1) > k(2), k(1) <= k(2), k(2) >= k(1), k(1) == k({num}), k(1) != k(2)))(functools.cmp_to_key(lambda a, b: a - b))", "functools.reduce(lambda a, b: a + b, {seq0})".replace("{seq0}", "itertools.islice({seq}, 3)"), "functools.reduce(operator.mul, {nums})", "{a=nums}.sort(key=lambda v: {a}.append(v) or v)", "sorted({nums}, key=lambda v: 1 // v)",
        "heapq.heapify({nums})", "heapq.heappop({nums})", "heapq.heapreplace({nums}, {num})", "heapq.heappushpop({nums}, {num})", "heapq._heapify_max({a=nums})", "(heapq.heapify({a=nums}), heapq.heapreplace({a}, {num}), {a})", "heapq._heappop_max({a=nums})", "heapq._heapreplace_max({a=nums}, {num})", "[heapq.heappush({a=nums}, v) for v in {nums}]", "heapq.nlargest({num}, {nums})", "heapq.merge({nums}, [1], key=lambda v: -v, reverse={flag})", "bisect.bisect_left(sorted({nums}), {num}, key=lambda v: v + 1)", "bisect.insort_left({a=nums}, {num})", "bisect.insort({a=nums}, {num}, key=lambda v: -v)", "bisect.bisect({nums}, {num}, -1)", "bisect.bisect_right({nums}, {num}, 0, 2)",
    ],
    "sizes": [
        "{size} {+/-/*/%/**} {size}", "{size} // ({size} + 1)", "{size} / 2", "divmod({size}, {num})", "{size} {<</>>/&/^} {num}", "-{size}, +{size}, ~{size}, abs({size})", "round({size} / 3), round({size}, {num})", "float({size}), int({size}), bool({size}), complex({size})", "math.{sqrt/floor/ceil/log2/exp/sin/trunc/isqrt/isnan}({size})", "str({size}), repr({size}), f'{ {a=size}:03d}'", "[1, 2, 3, 4, 5, 6][{size} % 5]", "[0] * {size}", "range({size})", "list(range({size}))[-1:]", "{size}.bit_length()", "{size}.real, {size}.imag, {size}.numerator, {size}.denominator",
        "hash({size})", "{size} in {nums}", "{size} in {table}", "{ {size}: 1 }", "({size}, 1) == ({num}, 1)", "{size} == {size} == {num}", "{size} if {size} else {num}", "min({size}, {size}), max([{size}, {num}])", "sum([{size}, {size}])", "torch.zeros({size} % 7 + 1)", "t0.new_zeros(({size} % 5 + 1, 2)).shape", "{a=row}[:{size}]", "{a=row}[{size} % {a}.shape[0]]" , "{a=mat}.view({a}.shape[0] * 3)", "{a=mat}.reshape(-1, {size})", "{a=row}.expand({size} % 3 + 1, -1)", "{a=mat}.split({size} % 3 + 1)", "{a=row}.narrow(0, 0, {size} % 3)", "torch.arange({size} % 9)", "torch.full(({size} % 4 + 1,), {size})", "torch.tensor({size})", "torch.tensor([{size}, {num}])",
        "{row} * {size}", "{row} + {size} / 2", "{size} * 0.5 + {num}", "{size} ** 0.5", "{size} > 2.5", "math.prod({a=mat}.shape)", "math.pow({size}, 2)", "isinstance({size}, int), type({size}) is int", "torch.linspace(0, 1, {size} % 5 + 1)", "F.pad({row}, (0, {size} % 3))", "{row}.repeat({size} % 3 + 1)", "torch.sym_max({size}, {num})", "torch.sym_int({size} / 2)", "torch.sym_not({size} > 2)", "torch.sym_float({size})", "operator.index({size})", "{text} * {size}", "'%d' % {size}", "slice({size}).indices(9)", "{a=mat}.unflatten(1, (3, 1)).shape[0]", "{a=mat}.sum() / {size}", "{size} and {num} or {size}", "not {size}", "{size} is {size}", "[{size}, 2].index({num})", "sorted([{size}, {num}])", "{size} / {num}", "{size} // {num}", "{num} % {size}", "2 ** {size}", "2.0 ** {size}",
    ],
    "process": [
        "id({a=node}) == id({b=node})", "{ id({a=node}): 1 }.get(id({a}))", "id({a=node}) in [id({b=row})]", "hash({a=node}) == hash({a})", "hash(({key}, {num}))", "threading.get_ident() == _thread.get_ident()", "threading.current_thread() is threading.main_thread()", "{ threading.get_ident(): {num} }[threading.get_ident()]", "G_UNSET.get({num})", "G_UNSET.get()", "G_CTX.get()", "G_CTX.set({num}).old_value", "G_UNSET.set({num}).old_value is contextvars.Token.MISSING", "G_CTX.set({obj}).var is G_CTX", "G_CTX.name", "contextvars.ContextVar('new', default={num}).get()", "contextvars.copy_context().run({fn}, {num})", "contextvars.copy_context()[G_CTX]",
        "sys.exc_info()", "sys.exception()", "sys.intern({text})", "sys.getrecursionlimit() > 9", "sys.maxsize + {num}", "sys.byteorder", "os.environ.get({text})", "os.getpid() > 0", "os.path.join({text}, 'b')", "os.path.basename({text})", "getattr(G_LOCAL, 'n', {num})", "setattr(G_LOCAL, 'n', {num})", "G_LOCK.acquire()", "G_LOCK.__enter__()", "[*sys.exc_info()][:1]", "hash({text}) == hash({text})", "hash(frozenset({nums}))", "sys.getsizeof({num}) > 0", "sys.version_info >= (3, 11)", "'torch' in sys.modules", "sys.modules['math'].pi", "hasattr(builtins, 'len')".replace("builtins", "operator"),
    ],
    "arrays": [
        "{arr}", "{arr}.shape", "{arr}.dtype.name", "{arr}.tolist()", "len({arr})", "{arr}[{num}]", "{arr}[{arr} > {num}]", "np.{add/maximum/multiply/hypot}({arr}, {arr})", "np.{unique/argsort/diff/nonzero/atleast_2d/transpose}({arr})", "np.allclose({arr}, {arr})", "np.array_equal({arr}, {arr})", "np.add.reduce({arr})", "np.einsum('i,i->', G_ARR, G_ARR)", "np.linalg.norm({arr})", "np.random.RandomState(1).rand(2)", "np.mean({arr}, axis=0, keepdims={flag})", "{arr}.{T/ndim/size/nbytes/itemsize/flat/real/base/strides/flags}", "torch.from_numpy({arr})", "torch.tensor({arr})", "torch.as_tensor({arr}) * 2", "{row} * {arr}", "{arr} * {row}", "{arr} @ {arr}", "np.asarray({row}.detach())", "{row}.detach().__array__()",
        "{arr} == {arr}", "{num} - {arr}", "{arr} // 2, {arr} % 2, {arr} ** 2", "~({arr} > 1), ({arr} > 1) & ({arr} < {num})", "bool({arr})", "float({arr})", "int({arr})", "[*{arr}]", "np.array([{arr}, {arr}])", "np.array({nest}, dtype=object)", "np.sum({nums})", "np.float64({num}) + {num}", "np.int32({num}).item()", "isinstance({arr}, np.ndarray)", "np.isscalar({num})", "np.dtype('float32').itemsize", "np.iinfo(np.int8).max", "np.pi * {num}", "np.expand_dims({arr}, 0)", "np.broadcast_to({arr}, (2, 4))", "np.split(G_ARR, 2)", "np.arange({size})", "np.zeros({size})", "np.eye({num} % 4)", "np.tril(np.ones((2, 2)))", "np.sin({row}.detach())", "np.max({row}.detach().numpy())", "repr({arr})", "np.array({num})", "np.round({arr}, 1)", "np.bincount(np.array([0, 1, 1]))", "G_ARR.sum(dtype={np.float32/float/int})", "G_ARR.astype(int)[{nums}]", "{arr}.view(np.int64)", "np.pad({arr}, 1)", "np.vectorize({fn})({nums})", "np.errstate(all='ignore')", "np.copyto(G_ARR, {num})", "np.negative(G_ARR, out=G_ARR)", "G_ARR.fill({num})", "np.take({arr}, [0])", "G_ARR.__setitem__({num}, {num})", "np.testing.assert_allclose({arr}, {arr})",
    ],
    "views": [
        "{view}", "{view} {&/-/^} {view}", "{view} ¦ {view}", "{view} {&/-/^} {nums}", "{view} ¦ {bag}", "{bag} {&/-/^} {view}", "{fs} ¦ {view}", "{view} {==/</<=/>/>=/!=} {view}", "{view} {==/<=/>=} {bag}", "{key} in {view}", "({text}, {num}) in {view}", "len({view})", "list({view})", "list(reversed({view}))", "{view}.isdisjoint({view})", "{view}.isdisjoint({nums})", "{view}.mapping", "set({view})", "sorted({view}, key=str)", "bool({view})", "next(iter({view}), None)", "repr({view})", "dict({view})", "{view}.__and__({view})", "{view}.__rsub__({nums})", "{view}.__contains__({key})", "tuple({view})", "[*{view}]", "hash({view})", "copy.copy({view})", "{view} ¦ {num}", "{table} ¦ {table}", "{view} == {obj}", "isinstance({view}, collections.abc.{KeysView/Set/Mapping})", "max({view}, default=0)",
        "{fs}.{union/intersection/difference/issubset/isdisjoint}({view})", "{bag}.{update/difference_update/intersection_update/symmetric_difference_update}({view})", "{view}.mapping.get({text})",
    ],
}  # fmt: skip

_BLOCKS = {
    "transforms": [
        "def {f+tf}(v):|    {body}|    return v * {num}|{x+any} = None|try:|    {x} = {torch.vmap/torch.func.jacrev/torch.func.jacfwd/framejit.compile}({f})({row}.detach())|except Exception: G_LOG.append('error')",
        "def {f+tf}(v):|    {body}|    return (v ** 2).sum() * {num}|{x+row} = torch.func.grad({f})({row}.detach())", "{f+tf} = {tf}|{x+row} = {f}(R(3, {num}))",
        "{x+any}, {p+any} = torch.func.vjp({tf}, {a=row}.detach())|print(end='')|{y+any} = {p}({x})", "{f+tf} = {torch.vmap/torch.func.jacrev/torch.func.functionalize}({tf})|print(end='')|{x+any} = {f}({row}.detach())",
    ],
    "gradients": [
        "class {C+cls}(torch.autograd.Function):|    @staticmethod|    def forward(ctx, v, k):|        ctx.save_for_backward(v)|        {body}|        return v * {num}|    @staticmethod|    def backward(ctx, g):|        v, = ctx.saved_tensors|        return g * v, None|{a+row} = R(3, 1, {flag})|{x+any} = {C}.apply({a}, 2)|if {a}.requires_grad:|    {x}.sum().backward()",
        "{a+row} = {row}.detach().clone().requires_grad_()|{y+row} = {tf}({a})|{y}.sum().backward()", "{a+row} = R(3, 1, True)|{b+row} = {a} * {num}|{h+any} = {b}.register_hook({tf})|{b}.sum().backward()|{h}.remove()", "{a+row} = R(3, 1, True)|{b+row} = {a} * {num}|{h+any} = {b}.register_hook({lambda g: None/lambda g: print(end='')})|{x+any} = {h}.id is None|{body}|{b}.sum().backward()", "{a+row} = R(3, 1, True)|{b+row} = {a} * 2|{b}.register_hook(functools.partial(lambda k, g: g * k, {num}))|({b} + {a}).sum().backward()",
        "{a+row} = R(3, 1, True)|{k+num} = {num}|def {f+any}(g): return g * {k}|({a} * 1).register_hook({f})|{b+row} = {a} ** 2|{b}.register_hook({f})|{k} = {num}|{b}.sum().backward()", "{a+row} = R(3, 1, True)|{b+row} = {a} * 2|{b}.retain_grad()|{body}|{b}.sum().backward()|{x+any} = {b}.grad", "with torch.autograd.graph.saved_tensors_hooks({tf}, {tf}):|    {body}|    {a+row} = R(3, 2, True)|    G_LOG.append(({a} * {a}).sum().item())", "{k+num} = {num}|with torch.autograd.graph.saved_tensors_hooks(lambda v: v * {k}, lambda v: v + {row}.sum()):|    {y+row} = {row} ** 2|    {k} += 1",
        "with torch.autograd.graph.save_on_cpu():|    {body}", "with torch.autograd.graph.disable_saved_tensors_hooks('no'):|    {body}", "with checkpoint.__globals__['set_checkpoint_early_stop']({flag}):|    {x+row} = checkpoint({tf}, R(3, 1, True), use_reentrant=False)|    {x}.sum().backward()", "{h+any} = torch.autograd.graph.register_multi_grad_hook([{a=row}], lambda gs: G_LOG.append(len(gs))) if {a=row}.requires_grad else None", "with torch.{no_grad/enable_grad/inference_mode}(), torch.autograd.set_grad_enabled({flag}):|    {body}", "{a+row} = R(3, 1, True)|{g+any} = torch.autograd.grad(({a} ** 3).sum(), {a}, create_graph=True)[0]|{g}.sum().backward()",
    ],
    "modules": [
        "{o+any} = torch.optim.{SGD/Adam/AdamW/RMSprop/Adagrad}(G_TOWER.parameters(), lr=0.1{/, foreach=True/, foreach=False})|G_TOWER(M(2, 1)).sum().backward()|{o}.step()|{o}.zero_grad()|{x+any} = G_TOWER.layers[0].weight.detach().clone()", "{m+any} = torch.nn.Linear(3, 3)|torch.nn.init.constant_({m}.weight, 0.5)|torch.nn.init.zeros_({m}.bias)|{x+mat} = {m}({mat})|{m}.weight.data.mul_({num})|{y+mat} = {m}(M(2, 1))", "with torch.autocast('cpu', dtype=torch.bfloat16, enabled={flag}):|    {x+any} = G_TOWER.layers[0](M(2, 1))|    {body}", "{h+any} = G_TOWER.register_forward_{hook/pre_hook}(lambda m, *a: G_LOG.append(len(a)))|{x+any} = G_TOWER(M(2, 1))|{h}.remove()",
        "{h+any} = torch.nn.modules.module.register_module_forward_hook(lambda m, a, o: None)|try:|    {x+any} = G_TOWER(M(2, 1))|finally:|    {h}.remove()", "for {n+text}, {p+row} in G_TOWER.named_parameters():|    G_LOG.append(({n}, tuple({p}.shape)))|    {body}", "for {m+any} in G_TOWER.modules():|    G_LOG.append(type({m}).__name__)", "G_TOWER.scales['a'] = torch.nn.Parameter(torch.ones(3) * {num})|{x+any} = G_TOWER(M(2, 1))", "G_TOWER.layers.append(torch.nn.Tanh())|{x+any} = G_TOWER(M(2, 1))|del G_TOWER.layers[2:]", "{s+any} = copy.deepcopy(G_TOWER)|{x+any} = {s}(M(2, 1))", "G_TOWER.forward = lambda v: v * {num}|{x+any} = G_TOWER(M(2, 1))|del G_TOWER.forward",
        "class {C+cls}(torch.nn.Module):|    def forward(self, v): return v * {num}|parametrize.register_parametrization(G_TOWER.layers[0], 'bias', {C}())|{x+any} = G_TOWER(M(2, 1))|parametrize.remove_parametrizations(G_TOWER.layers[0], 'bias', leave_parametrized=False)", "{l+any} = torch.optim.SGD([G_W.clone().requires_grad_()], lr=1.0)|{s+any} = torch.optim.lr_scheduler.StepLR({l}, 1)|{l}.step()|{s}.step()|{x+any} = {s}.get_last_lr()",
    ],
    "compiled": ["def {f+tf}(v):|    {body}|    return v * {num}|{g+any} = framejit.compile({f}, backend='eager')|{x+row} = {g}(R(3, 1)) + {g}(R(3, 2))", "@framejit.disable|def {f+tf}(v):|    {body}|    return v|{x+row} = {f}({row})", "class {C+cls}(Kept):|    def fast(self, v): return super().fast(v) + 1|{x+row} = {C}({num}).fast({row})", "with framejit.optimize('eager'):|    {body}"],
    "steps": [
        "{x+seq} = {seq}|{y+any} = next({x}, None)|{body}", "{x+seq} = {seq}|{y+any} = next({x}, None), next({x}, None)|print(end='')|{z+any} = next({x}, None)", "{x+seq} = {seq}|for _ in range({num} % 4): next({x}, 0)|{y+any} = copy.copy({x})|{z+any} = list(itertools.islice({x}, 4))", "{x=seq} = itertools.chain([{num}], {x})", "G_IT = {seq}".replace("G_IT", "{x+seq}") + "|{y+any} = [next({x}, 0), {x}]", "{x+seq} = {seq}|{y+seq} = itertools.islice({x}, 2)|{z+any} = next({y}, 0)|print(end='')", "{x+seq}, {y+seq} = itertools.tee({seq})|{z+any} = next({x}, 0)|print(end='')|{w+any} = next({y}, 0)", "{x+seq} = itertools.groupby({nums}, key=lambda v: v % 2)|{k+any}, {g+seq} = next({x}, (0, iter([])))|{y+any} = next({g}, 0)|print(end='')|{z+any} = next({x}, 0)",
        "def {f+any}():|    {g+any} = yield {num}|    {body}|    try:|        yield {g}|    except {KeyError/GeneratorExit} as {e+err}:|        G_LOG.append(repr({e}))|        {raise/yield 5/return 6/pass}|    return {num}|{x+seq} = {f}()|{y+any} = next({x})|try: {z+any} = {x}.send({num})|except StopIteration as {d+err}: G_LOG.append({d}.value)|{x}.{close()/throw(KeyError, 'k')/throw(KeyError('k'))/__next__()}", "def {f+any}():|    {r+any} = yield from {seq0}|    return {r}|{x+seq} = {f}()|{y+any} = [*zip(range(3), {x})]".replace("{seq0}", "{seq}"), "def {f+any}(): yield next(iter([]))|try: {x+any} = next({f}())|except RuntimeError as {e+err}: G_LOG.append(type({e}.__cause__).__name__)",
        "def {f+any}():|    try:|        yield 1|    finally:|        G_LOG.append('closed')|        {pass/raise KeyError(1)/print(end='')}|{x+any} = {f}()|{y+any} = next({x})|del {x}", "def {f+any}():|    with scope(G_LOG, {num}) as k:|        yield k|        {body}|{x+any} = {f}()|{y+any} = next({x})|print(end='')|{x}.close()", "{x+any} = {num}|async def {f+any}():|    return {x}|{c+any} = {f}()|{c}.close()", "@contextlib.contextmanager|def {f+any}():|    try:|        yield {num}|    except {KeyError/ValueError}:|        {body}|with {f}() as {x+num}:|    if {flag}: raise KeyError(1)", "class {C+cls}:|    def __iter__(self): self.n = 0; return self|    def __next__(self):|        self.n += 1|        if self.n > 3: raise StopIteration(self.n)|        return self.n|{x+any} = list({C}())|{y+any} = [*zip({C}(), {nums})]|{z+any} = {num} in {C}()|{w+any} = list(map({fn}, {C}()))",
        "for {x+any} in {seq}:|    {body}|    if {flag}: break|    break", "while {flag}:|    {x+any} = next({seq}, None)|    break", "{x+any}, *{y+any} = itertools.islice({seq}, 3)".replace("itertools.islice({seq}, 3)", "[0, *itertools.islice({seq}, 3)]"),
    ],
    "sizes": ["for {x+num} in range({size} % 5):|    {body}", "if {size} {</>/==/>=} {size}:|    {body}", "{x+size} = {size}|{y+row} = torch.ones({x} % 6 + 1)|{body}", "while {x=size} > 4:|    {x} = {x} // 2|    {body}", "{x+num} = {size}|def {f+fn}(v): return v + {x}|{y+num} = {f}({size})", "{x+nums} = [{size}, {size}]|{y+row} = torch.zeros({x}[0] % 4 + 1)", "match {size}:|    case 2:|        {body}|    case int({x+num}) if {x} > 3:|        {body}", "G_NS.n = {size}", "{x+num} = 0|for {y+row} in {a=mat}:|    {x} += {size}|    {body}", "{x+row} = torch.cat([{row}] * ({size} % 3 + 1))|{y+num} = {x}.shape[0] // {a=row}.shape[0]"],
    "process": [
        "{t+any} = G_CTX.set({num})|{body}|{x+any} = G_CTX.get()|G_CTX.reset({t})", "{t+any} = G_CTX.set({obj})|{u+any} = G_CTX.set({num})|print(end='')|G_CTX.reset({u})|{x+any} = G_CTX.get()|G_CTX.reset({t})", "{t+any} = G_UNSET.set({num})|{x+any} = G_UNSET.get({obj})|{body}|G_UNSET.reset({t})|{y+any} = G_UNSET.get(None)", "{t+any} = G_CTX.set({num})|G_CTX.reset({t})|{x+any} = {t}|try: G_CTX.reset({t})|except RuntimeError: G_LOG.append('used')", "with G_LOCK:|    {body}", "G_LOCAL.n = {num}|{x+any} = G_LOCAL.n|{body}", "try:|    {x+any} = 1 // 0|except ZeroDivisionError:|    {y+any} = sys.exc_info()[0].__name__, str(sys.exception())|    {body}",
        "{x+any} = {obj}|{y+any} = { id({x}): {x} }|{z+any} = id({x}) in {y}, len({y})|{body}", "{x+any} = []|{w+any} = threading.Thread(target={x}.append, args=({num},), name='w')|{w}.start()|{w}.join()",
    ],
    "arrays": [
        "{x+arr} = {arr}|{body}", "{x=arr} = {arr} * 1|{x}[{0/.../None}] = {num}" , "{x+arr} = np.zeros(({num} % 3 + 1, 3))|{x}[0] = {row0}|{x} += 1|{y+any} = {x}.sum()".replace("{row0}", "[1, 2, {num}]"), "for {x+any} in {arr}[:2] if {flag} else [1.0]:|    {body}", "{x+row} = torch.from_numpy(np.arange(3.)).float() * {num}", "{x+any} = {row}.detach().numpy()|{x}[...] = {num}", "with np.errstate(divide='ignore'):|    {x+any} = G_ARR / G_ARR", "G_ARR[:] = {num}", "{x+arr} = G_ARR[1:]|{x} *= 2|{y+any} = G_ARR.sum()", "{x+any} = np.array([{row}.sum().item(), {num}])|{y+row} = torch.tensor({x}).float()",
    ],
    "views": ["{d+table} = {table}|{v+view} = {d}.{keys/items/values}()|{d}[{text}] = {num}|{x+any} = list({v}), len({v})", "{v+view} = {view}|{body}|{x+any} = list({v})", "for {k+any} in {view}:|    {body}", "{d+map} = dict({map})|for {k+any} in list({d}.keys() & [1, {key}]):|    {d}.pop({k})", "{d+table} = dict({table})|try:|    for {k+text} in {d}: {d}[{text}] = 1|except RuntimeError as {e+err}: G_LOG.append(str({e}))", "{v+view} = {view}|print(end='')|{x+any} = {v}, [*{v}]", "{d+table} = {table}|{d} ¦= {table}|{x+any} = {d} ¦ {'z': {num}}"],
}  # fmt: skip

STATEMENTS = {
    name: [
        *(_quiet(call) for call in _QUIET_CALLS.get(name, ())),
        *(attempt(call) for call in _CALLS.get(name, ())), *map(with_blocks, _BLOCKS[name]),
    ]
    for name in _BLOCKS
}  # fmt: skip
STATEMENTS["views of dicts"] = STATEMENTS.pop("views")
STATEMENTS["all sizes"] = STATEMENTS.pop("sizes")

#: Kinds whose special methods are called by name, with an object of each.
_SPECIAL: dict[str, Any] = {
    "num": 2, "text": "ab", "nums": [3, 1, 2], "table": {"a": 1}, "bag": {1, 2}, "pair": (1, 2),
    "queue": collections.deque([1, 2]), "fs": frozenset([1]), "view": {"a": 1}.keys(), "row": torch.ones(3),
    "fn": abs, "seq": iter([1]), "size": 3,
}  # fmt: skip
#: What depends on addresses or on the process, and what is not for programs.
_NOT_CALLED = "__dir__ __sizeof__ __reduce__ __reduce_ex__ __init_subclass__ __subclasshook__ __new__ __init__ __class__ __repr__ __hash__ __getstate__ __setstate__".split()


def _special_methods() -> list[str]:
    found = []
    for kind, sample in _SPECIAL.items():
        cls = type(sample)
        if kind == "row":
            names = [n for n in dir(cls) if n in dir(int) or n in dir(list)]
        else:
            names = [n for n in dir(cls) if n.startswith("__")]
        SAMPLES.setdefault(kind, sample)
        found += methods(cls, kind, [n for n in names if n not in _NOT_CALLED])
    return found


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    STATEMENTS["special methods"] = _special_methods()
