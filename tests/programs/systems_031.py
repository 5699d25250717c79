import torch, functools

def coroutine(fn):
    @functools.wraps(fn)
    def start(*a, **k):
        g = fn(*a, **k); next(g)
        return g
    return start

@coroutine
def scale(target, k):
    try:
        while True:
            x = yield
            target.send(x * k)
    except GeneratorExit:
        target.close()

@coroutine
def window(target, n):
    buf = []
    try:
        while True:
            buf.append((yield))
            if len(buf) == n:
                target.send(torch.stack(buf).mean(0)); buf.pop(0)
    finally:
        if buf and len(buf) < n: target.send(torch.stack(buf).sum(0))
        target.close()

@coroutine
def sink(out, log):
    total = 0
    while True:
        try:
            x = yield total
        except ValueError as e:
            log.append(f'sink got {e}'); total = -total; continue
        except GeneratorExit:
            log.append(f'closed at {total:.2f}'); raise
        total += float(x.sum())
        out.append(x)

@coroutine
def broadcast(*targets):
    while True:
        x = yield
        for t in targets: t.send(x)

def averager():
    n, s = 0, 0.
    while (v := (yield (s / n if n else None))) is not None: n += 1; s += v
    return n, s

def grouper(res):
    while True: res.append((yield from averager()))

def program(xs, n, k):
    out, raw, log, groups = [], [], [], []
    s = sink(out, log); r = sink(raw, log)
    p = broadcast(scale(window(s, n), k), r)
    for i, x in enumerate(xs):
        try: p.send(x)
        except StopIteration: log.append(f'stopped at {i}'); break
        except RuntimeError as e: log.append(str(e)[:30]); break
        if i == 1: print('thrown', r.throw(ValueError('twice')))
    g = grouper(groups); next(g)
    avgs = [g.send(float(x.sum()) if i % 3 else None) for i, x in enumerate(xs)]
    g.close(); p.close(); del p
    log.append((s.gi_frame is None, r.gi_frame is None))
    return out, raw, log, avgs, groups, [a is b for a, b in zip(raw, xs)]

CALLS = ["([torch.ones(2), torch.arange(2.), torch.zeros(2), torch.ones(2)*3], 2, 10)", "([torch.ones(1), torch.ones(2), torch.ones(3)], 2, 1)", "([], 2, 1)", "([torch.arange(3)], 5, .5)", "([torch.ones(2)]*5, 1, -1)"]
