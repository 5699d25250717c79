import torch
from typing import Any

class RingBuffer:
    def __init__(self, capacity, **specs):
        self._cap, self._pos, self._full = capacity, 0, False
        for k, (shape, dtype) in specs.items():
            setattr(self, k, torch.zeros(capacity, *shape, dtype=dtype))
        self._keys = tuple(specs)
    def add(self, **items):
        if missing := set(self._keys) ^ set(items):
            raise KeyError(*sorted(missing))
        n = len(next(iter(items.values())))
        end = self._pos + n
        for k, v in items.items():
            buf = getattr(self, k)
            idx = torch.arange(self._pos, end) % self._cap
            buf[idx] = v.to(buf.dtype)
        self._full = self._full or end >= self._cap
        self._pos = end % self._cap
    def __len__(self):
        return self._cap if self._full else self._pos
    def __getattr__(self, name):
        if name.startswith('last_'):
            return getattr(self, name[5:])[self._pos - 1]
        raise AttributeError(name)
    def ordered(self, key):
        t = getattr(self, key)
        return torch.cat([t[self._pos:], t[:self._pos]]) if self._full else t[:self._pos]

def gae(r, v, done, gamma=.9, lam=.8):
    adv, last = torch.zeros_like(r), 0.0
    for t in reversed(range(len(r))):
        nv = v[t + 1] if t + 1 < len(v) else 0
        mask = 1 - done[t].float()
        last = adv[t] = r[t] + gamma * nv * mask - v[t] + gamma * lam * mask * last
    return adv

def program(chunks, cap):
    buf = RingBuffer(cap, obs=((2,), torch.float32), rew=((), torch.float32), done=((), torch.bool))
    errors = []
    for c in chunks:
        try:
            buf.add(**c)
        except KeyError as e:
            errors.append(e.args)
    r, d = buf.ordered('rew'), buf.ordered('done')
    adv = gae(r, r.flip(0), d)
    if adv.numel() and adv.std(unbiased=False).item() > 0.5:
        adv = (adv - adv.mean()) / adv.std(unbiased=False)
        print('normalised', len(buf))
    return adv, errors, buf.last_obs, hasattr(buf, 'nope'), buf.obs, len(buf)

CALLS = ["([dict(obs=torch.ones(2,2), rew=torch.ones(2), done=torch.tensor([0,1]))]*2, 3)", "([{'obs': torch.ones(1,2)}], 2)", "([], 2)", "([dict(obs=torch.arange(4.).view(2,2), rew=torch.tensor([5.,-5.]), done=torch.zeros(2))], 4)"]
