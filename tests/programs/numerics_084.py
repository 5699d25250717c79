import torch
from collections import UserDict, defaultdict

class ParamStore(UserDict):
    def __init__(self, *a, **k):
        self.version = defaultdict(int)
        super().__init__(*a, **k)
    def __setitem__(self, k, v):
        self.version[k] += 1
        super().__setitem__(k, torch.as_tensor(v, dtype=torch.float))
    def __missing__(self, k):
        if '.' not in k: raise KeyError(k)
        parent, _, leaf = k.rpartition('.')
        return self[parent][int(leaf)]

def grad_descent(store, f, lr, steps):
    for step in range(steps):
        leaves = {k: v.clone().requires_grad_() for k, v in store.items()}
        val = f(leaves)
        grads = torch.autograd.grad(val, list(leaves.values()), allow_unused=True)
        for (k, v), g in zip(leaves.items(), grads):
            if g is not None and g.abs().max() > 1e-3: store[k] = v.detach() - lr * g
        yield val.item()

def program(init, lr=0.1, steps=3):
    store = ParamStore(init)
    f = lambda p: sum((v ** 2).sum() for k, v in p.items() if not k.startswith('_'))
    vals = []
    for v in grad_descent(store, f, lr, steps):
        vals.append(v)
        if len(vals) > 1 and vals[-1] > vals[-2]: print('diverged'); break
    try:
        first = store['w.0']
    except (KeyError, IndexError) as e:
        first = type(e).__name__
    return dict(store), vals, dict(store.version), first, 'w.0' in store, store.get('zz', None) is None, len(store)

CALLS = ["({'w': [1., 2.], '_b': 1},)", "({'w': [1., 2.], '_b': 1},)", "({'w': torch.ones(2,2), 'c': torch.zeros(1)}, 1.5)", "({}, .1)", "({'_b': 1}, .1)", "({'w': torch.zeros(0)}, .1, 1)"]
