import torch
from typing import NamedTuple
import torch.utils._pytree as pytree

class State(NamedTuple):
    step: int
    params: dict
    stats: tuple = ()
    def advance(self, **kw):
        return self._replace(step=self.step + 1, **kw)

class Opt:
    def __init__(self, name, init, update):
        self.name, self.init, self.update = name, init, update
    def __or__(self, other):
        def update(g, s):
            g, a = self.update(g, s[0]); g, b = other.update(g, s[1])
            return g, (a, b)
        return Opt(f'{self.name}|{other.name}', lambda p: (self.init(p), other.init(p)), update)

tmap = pytree.tree_map
def scale(lr): return Opt(f'scale({lr})', lambda p: None, lambda g, s: (tmap(lambda x: x * -lr, g), s))
def trace(m):
    def update(g, s):
        s = tmap(lambda a, b: m * a + b, s, g)
        return s, s
    return Opt(f'trace({m})', lambda p: tmap(torch.zeros_like, p), update)
def clip(c):
    def update(g, s):
        n = torch.sqrt(sum(x.pow(2).sum() for x in pytree.tree_leaves(g)))
        return (tmap(lambda x: x * (c / n), g), s + 1) if n > c else (g, s)
    return Opt(f'clip({c})', lambda p: 0, update)

def program(params, steps, c):
    opt = clip(c) | trace(.9) | scale(.1)
    st = State(0, params, opt.init(params))
    while st.step < steps:
        g = tmap(lambda p: 2 * (p - 1), st.params)
        u, stats = opt.update(g, st.stats)
        st = st.advance(params=tmap(torch.add, st.params, u), stats=stats)
        if st.stats[0][0] and st.step == 1:
            print('clipped first')
    leaves, spec = pytree.tree_flatten(st)
    back = pytree.tree_unflatten(leaves, spec)
    return st, opt.name, len(leaves), type(back).__name__, back == st or back.step == st.step, st._fields, params is st.params, [pytree.keystr(k) for k, _ in pytree.tree_flatten_with_path(st.params)[0]]

CALLS = ["({'w': torch.zeros(2), 'b': [torch.ones(1), torch.zeros(())]}, 3, 1.)", "({'w': (torch.zeros(2,2),)}, 2, 100.)", "({}, 2, 1.)", "({'a': {'b': torch.ones(3)*4}}, 0, 1)", "({'a': {'b': torch.ones(3)*4, 'c': None}}, 1, 1)"]
