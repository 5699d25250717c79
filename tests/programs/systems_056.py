import torch, functools

class Open(Exception): pass
class Breaker:
    def __init__(self, limit=2, cool=3): self.limit, self.cool, self.fails, self.opened, self.tick, self.log = limit, cool, 0, None, 0, []
    @property
    def state(self):
        if self.opened is None: return 'closed'
        return 'half' if self.tick - self.opened >= self.cool else 'open'
    def __enter__(self):
        self.tick += 1
        if self.state == 'open': raise Open(self.tick)
        return self
    def __exit__(self, et, ev, tb):
        if et is None: self.fails = 0; self.opened = None
        elif issubclass(et, (ArithmeticError, RuntimeError)):
            self.fails += 1; self.log.append((self.tick, et.__name__, self.state))
            if self.fails >= self.limit or self.state == 'half': self.opened = self.tick
        return False

def retry(times, on=Exception, backoff=lambda k: 2 ** k):
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k):
            errs = []
            for n in range(times):
                try: return f(*a, **k)
                except on as e: e.add_note(f'try {n}'); errs.append(e); inner.waited += backoff(n)
            if errs: raise ExceptionGroup(f'{f.__name__} failed', errs)
            raise ValueError('no tries')
        inner.waited = 0
        return inner
    return deco

class Service:
    def __init__(self, fail_at): self.fail_at, self.n = set(fail_at), 0
    def call(self, x):
        self.n += 1
        if self.n in self.fail_at: raise ConnectionError(f'#{self.n}') if self.n % 2 else FloatingPointError(self.n)
        if x.sum() < 0: raise RuntimeError('negative')
        return x * self.n

def program(xs, fail_at, times):
    svc, br, out = Service(fail_at), Breaker(), []
    @retry(times, (ConnectionError, ArithmeticError))
    def go(x):
        with br: return svc.call(x)
    for x in xs:
        try: out.append(go(x))
        except Open as e: out.append(('open', e.args))
        except ExceptionGroup as g: out.append((g.message, [(repr(e), e.__notes__) for e in g.exceptions])); print(g)
        except (RuntimeError, ValueError) as e: out.append(str(e))
    return out, go.waited, svc.n, br.state, br.log, sum((o.sum() for o in out if isinstance(o, torch.Tensor)), torch.zeros(()))

CALLS = ["([torch.ones(2)]*5, [1,2,4], 3)", "([torch.ones(2), -torch.ones(2), -torch.ones(1), torch.ones(1)], [], 1)", "([torch.arange(3)]*3, [2,3,4,5,6], 2)", "([torch.ones(1)], [], 0)", "([], [1], 1)"]
