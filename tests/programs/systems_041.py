import torch, math

class Module:
    def __init__(self): object.__setattr__(self, '_params', {}); object.__setattr__(self, '_subs', {})
    def __setattr__(self, k, v):
        if isinstance(v, torch.Tensor): self._params[k] = v
        elif isinstance(v, Module): self._subs[k] = v
        else: object.__setattr__(self, k, v)
    def __getattr__(self, k):
        for d in ('_params', '_subs'):
            d = self.__dict__.get(d)
            if d and k in d: return d[k]
        raise AttributeError(f'{type(self).__name__!r} object has no attribute {k!r}')
    def named(self, prefix=''):
        yield from ((f'{prefix}{k}', self, k) for k in self._params)
        for n, s in self._subs.items(): yield from s.named(f'{prefix}{n}.')
    def __call__(self, *a): return self.forward(*a)

class Dense(Module):
    def __init__(self, i, o, act=None):
        super().__init__()
        self.w = torch.linspace(-0.5, 0.5, i * o).reshape(i, o); self.b = torch.zeros(o); self.act = act
    def forward(self, x):
        self.x = x.detach() if isinstance(x, torch.Tensor) else x
        self.h = x @ self.w + self.b
        return torch.tanh(self.h) if self.act == 'tanh' else self.h
    def back(self, g):
        if self.act == 'tanh': g = g * (1 - torch.tanh(self.h) ** 2)
        self.grads = {'w': self.x.T @ g, 'b': g.sum(0)}
        return g @ self.w.T

class Net(Module):
    def __init__(self, *dims):
        super().__init__(); self.n = len(dims) - 1
        for i, (a, b) in enumerate(zip(dims, dims[1:])): setattr(self, f'l{i}', Dense(a, b, 'tanh' if i < self.n - 1 else None))
    layers = property(lambda self: [getattr(self, f'l{i}') for i in range(self.n)])
    def forward(self, x):
        for l in self.layers: x = l(x)
        return x
    def step(self, g, lr):
        for l in self.layers[::-1]:
            g = l.back(g)
        for l in self.layers:
            for k, d in l.grads.items(): l._params[k] -= lr * d

def program(dims, x, y, lr, epochs):
    net = Net(*dims)
    hist = []
    for e in range(epochs):
        p = net(x)
        err = p - y
        loss = (err ** 2).mean()
        hist.append(loss)
        if not math.isfinite(loss) or len(hist) > 1 and hist[-1] > hist[-2] * 2:
            print(f'diverged at {e}'); break
        net.step(2 * err / max(err.numel(), 1), lr)
    names = [(n, tuple(getattr(o, k).shape), type(o).__name__) for n, o, k in net.named()]
    try: net.nothing
    except AttributeError as e: msg = str(e)
    return hist, net(x), names, msg, 'w' in net.__dict__, net.l0.w is net._subs['l0']._params['w'], sorted(net.l0.__dict__)

CALLS = ["((2,3,1), torch.arange(4.).reshape(2,2), torch.ones(2,1), 0.1, 4)", "((1,1), torch.ones(3,1)*4, torch.zeros(3,1), 5.0, 6)", "((2,2), torch.zeros(0,2), torch.zeros(0,2), .1, 1)", "((3,1), torch.ones(1,2), torch.ones(1), .1, 2)"]
