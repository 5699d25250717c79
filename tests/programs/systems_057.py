import torch, copy
from contextlib import contextmanager, nullcontext

class Abort(Exception): pass
_MISSING = object()

class Store:
    def __init__(self, **kv): self.data, self.journal, self.commits = dict(kv), [], 0
    def __setitem__(self, k, v):
        if self.journal: self.journal[-1].setdefault(k, self.data.get(k, _MISSING))
        self.data[k] = v
    def __delitem__(self, k):
        old = self.data.pop(k)
        if self.journal: self.journal[-1].setdefault(k, old)
    def __getitem__(self, k): return self.data[k]
    def rollback(self):
        for k, v in reversed(self.journal.pop().items()):
            if v is _MISSING: self.data.pop(k, None)
            else: self.data[k] = v
    @contextmanager
    def transaction(self, swallow=()):
        self.journal.append({})
        try: yield self
        except swallow as e: self.rollback(); self.last = e
        except Abort: self.rollback()
        except BaseException: self.rollback(); raise
        else:
            j = self.journal.pop(); self.commits += 1
            if self.journal:
                for k, v in j.items(): self.journal[-1].setdefault(k, v)

def transfer(s, a, b, amt):
    with s.transaction():
        s[a] = s[a] - amt
        with s.transaction() as inner:
            inner[b] = inner[b] + amt
            if s[a].min() < 0: raise Abort(a)
            if torch.isnan(amt).any(): raise ValueError('nan amount')
        s['ops'] = s.data.get('ops', 0) + 1
    return s[a].sum() + s[b].sum()

def program(x, y, moves):
    s = Store(x=x, y=y); out = []
    for a, b, m in moves:
        try:
            with s.transaction(swallow=KeyError) if a != '!' else nullcontext():
                out.append(transfer(s, a.strip('!') or 'x', b, torch.as_tensor(m)))
                if a == '!': del s['zz']
        except (ValueError, KeyError, RuntimeError) as e: out.append(f'{type(e).__name__}({str(e)[:20]})'); print(len(s.journal))
        finally: out.append(sorted(s.data))
    return out, s.data, s.commits, getattr(s, 'last', None).__class__.__name__, s['x'] is x, s['y'] is y, s.journal

CALLS = ["(torch.tensor([5., 9.]), torch.zeros(2), [('x','y',2.), ('y','x',50.), ('x','q',1.), ('!','y',1.), ('x','y',float('nan'))])", "(torch.ones(1), torch.ones(3), [])", "(torch.ones(2), torch.ones(3), [('x','y',torch.ones(2)), ('x','x',1)])", "(torch.arange(2), torch.arange(2), [('y','x',0)])"]
