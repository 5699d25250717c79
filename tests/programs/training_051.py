import torch

class History(dict):
    """dict of lists; attribute access; merges"""
    def __missing__(self, k):
        self[k] = v = []
        return v
    __getattr__ = dict.__getitem__
    def __ior__(self, o):
        for k, v in o.items():
            self[k] += v if isinstance(v, list) else [v]
        return self
    def best(self, k, mode='min'):
        vals = self[k]
        f = min if mode == 'min' else max
        return f(range(len(vals)), key=vals.__getitem__) if vals else None

class EarlyStop(Exception):
    def __init__(self, epoch, **info):
        super().__init__(epoch)
        self.info = info
    def __str__(self): return f'stopped at {self.args[0]}: {self.info}'

def fit(x, y, cbs, epochs, lr):
    w = torch.zeros(x.shape[1])
    h = History()
    for e in range(epochs):
        err = x @ w - y
        loss = (err ** 2).mean()
        grad = 2 * x.T @ err / len(x)
        w -= lr * grad
        h |= {'loss': loss, 'gnorm': grad.norm().item()}
        for cb in cbs:
            if (r := cb(e, h, w)) is not None:
                w = r
    return w, h

def patience(n):
    def cb(e, h, w):
        nonlocal bad, best
        cur = h.loss[-1]
        if best is None or cur < best:
            best, bad = cur, 0
        else:
            bad += 1
            if bad > n:
                raise EarlyStop(e, best=round(best.item(), 3), bad=bad)
    bad, best = 0, None
    return cb

def program(x, y, n, lr, extra):
    cbs = [patience(n)]
    if extra:
        cbs.append(lambda e, h, w: w.clamp(-extra, extra) if (w.abs() > extra).any() else None)
        cbs.insert(0, lambda *a: print('epoch', a[0]) if a[0] % 3 == 0 else None)
    try:
        w, h = fit(x, y, cbs, 7, lr)
        msg = None
    except EarlyStop as s:
        msg = str(s); w = h = None
        cells = [c.cell_contents for c in cbs[-1 if not extra else 1].__closure__]
        return msg, s.info, cells, s.args
    return w, h, h.best('loss'), h.best('nothing', 'max'), sorted(h), h.unknown, 'unknown' in h

CALLS = ["(torch.eye(3), torch.arange(3.), 1, .3, None)", "(torch.eye(3), torch.arange(3.), 1, .9, 1.5)", "(torch.ones(2,2), torch.ones(2), 0, 5., None)", "(torch.ones(0,2), torch.ones(0), 2, .1, 1)", "(torch.eye(2)*3, torch.tensor([1., float('nan')]), 2, .1, None)"]
