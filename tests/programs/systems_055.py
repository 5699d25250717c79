import torch
from functools import wraps

class Clock:
    def __init__(self, t=0.0): self.t = t
    def __call__(self): return self.t
    def sleep(self, s): self.t += s
    def __enter__(self): self.saved = self.t; return self
    def __exit__(self, *exc): self.t, self.elapsed = self.saved, self.t - self.saved

class RateLimited(Exception):
    def __init__(self, wait): super().__init__(f'retry in {wait:.2f}s'); self.wait = wait

class TokenBucket:
    def __init__(self, rate, cap, clock): self.rate, self.cap, self.clock, self.tokens, self.last = rate, cap, clock, cap, clock()
    def take(self, n=1):
        now = self.clock()
        self.tokens = min(self.cap, self.tokens + (now - self.last) * self.rate); self.last = now
        if n > self.tokens: raise RateLimited((n - self.tokens) / self.rate)
        self.tokens -= n
        return self.tokens
    def __call__(self, fn=None, *, cost=1):
        if fn is None: return lambda f: self(f, cost=cost)
        @wraps(fn)
        def inner(*a, **k):
            self.take(cost(*a) if callable(cost) else cost)
            return fn(*a, **k)
        return inner

class Window:
    def __init__(self, n, span, clock): self.n, self.span, self.clock, self.hits = n, span, clock, []
    def allow(self):
        now = self.clock(); self.hits = [h for h in self.hits if now - h < self.span]
        return len(self.hits) < self.n and not self.hits.append(now)

def program(xs, rate, gap):
    clock = Clock(); bucket = TokenBucket(rate, 3.0, clock); win = Window(2, 1.0, clock)
    @bucket(cost=lambda t: t.numel() / 2)
    def work(t): return t.sum() * clock()
    @bucket
    def cheap(t): return t + 1
    out, waits = [], torch.zeros(len(xs))
    with clock as c:
        for i, x in enumerate(xs):
            for attempt in range(2):
                try: out.append(work(x)); break
                except RateLimited as e:
                    waits[i] += e.wait; clock.sleep(e.wait)
                    if e.wait > 1: print(str(e))
                except ZeroDivisionError: out.append('never'); break
            else: out.append('gave up')
            out.append((win.allow(), round(clock(), 4)))
            clock.sleep(gap)
    try: last = cheap(waits)
    except (RateLimited, ZeroDivisionError) as e: last = str(e)
    return out, waits, c.elapsed, clock() == 0, bucket.tokens, last, work.__name__, win.hits

CALLS = ["([torch.ones(4), torch.arange(4.), torch.ones(2), torch.ones(9)], 2.0, .3)", "([], 1, 0)", "([torch.ones(8)], 0, 1)", "([torch.zeros(0)]*4, .5, 0.01)"]
