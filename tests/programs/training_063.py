import torch
from collections.abc import Mapping, MutableMapping, Sequence
from types import SimpleNamespace, MappingProxyType
from collections import ChainMap, OrderedDict, UserDict, UserList

class TensorDict(MutableMapping):
    """dict of tensors with a common batch size; indexing indexes all"""
    def __init__(self, data=(), **kw):
        self._d = {}
        self.update(data, **kw)
    @property
    def batch(self):
        return next(iter(self._d.values())).shape[0] if self._d else None
    def __getitem__(self, k):
        if isinstance(k, str): return self._d[k]
        return TensorDict({n: v[k] for n, v in self.items()})
    def __setitem__(self, k, v):
        if isinstance(v, Mapping): v = TensorDict(v)
        elif self._d and v.shape[0] != self.batch:
            raise ValueError(f'{k}: batch {v.shape[0]} != {self.batch}')
        self._d[k] = v
    def __delitem__(self, k): del self._d[k]
    def __iter__(self): return iter(self._d)
    def __len__(self): return len(self._d)
    @property
    def shape(self): return (self.batch,)
    def apply(self, f): return TensorDict((k, v.apply(f) if isinstance(v, TensorDict) else f(v)) for k, v in self.items())
    def __getattr__(self, n):
        if n.startswith('_'): raise AttributeError(n)
        return lambda *a, **k: self.apply(methodcall(n, *a, **k))

def methodcall(n, *a, **k): return lambda t: getattr(t, n)(*a, **k)

def program(obs, act, idx):
    td = TensorDict(obs=obs)
    try:
        td['act'] = act
    except ValueError as e:
        print(e); td['act'] = act[:td.batch] if len(act) > td.batch else torch.zeros(td.batch)
    td['info'] = {'a': obs.sum(-1), 'b': {'c': act.new_zeros(td.batch)}}
    sub = td[idx]
    dbl = sub.mul(2).float()
    layered = ChainMap({'act': 'override'}, td)
    frozen = MappingProxyType(td._d)
    try:
        frozen['x'] = 1
    except TypeError as e:
        fr = type(e).__name__
    ns = SimpleNamespace(**td); ns.obs = ns.obs + 1
    popped = td.pop('act'); default = td.setdefault('act2', popped)
    class Up(UserDict):
        def __setitem__(self, k, v): super().__setitem__(k.upper(), v)
    up = Up(td, extra=1); ul = UserList([obs]) + [act]
    first = td.popitem()
    return dict(sub), dict(dbl), layered['act'], layered['info']['b']['c'], fr, ns.obs, default is popped, sorted(up), len(ul), first[0], list(td), 'obs' in td, isinstance(td, Mapping), td == {'obs': obs, 'info': td['info']} if obs.numel() == 1 else None

CALLS = ["(torch.arange(6.).reshape(3,2), torch.ones(3), slice(0,2))", "(torch.arange(6.).reshape(3,2), torch.ones(5), torch.tensor([2,0]))", "(torch.ones(2,1), torch.ones(1), torch.tensor([True, False]))", "(torch.ones(2,1), torch.ones(2), 0)", "(torch.ones(0,1), torch.ones(0), slice(None))", "(torch.ones(1,1), torch.ones(1), [0,0])"]
