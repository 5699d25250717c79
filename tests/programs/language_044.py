import torch

def coroutine(fn):
    def start(*a, **k):
        g = fn(*a, **k)
        next(g)
        return g
    start.__name__ = fn.__name__
    return start

class Reset(Exception): pass

@coroutine
def running_mean(decay=None):
    total, n, value = 0, 0, None
    while True:
        try:
            x = yield value
        except Reset as e:
            total, n, value = 0, 0, e.args[0] if e.args else None
            continue
        if x is None:
            return total
        n += 1
        if decay is None:
            total = total + x
            value = total / n
        else:
            total = value = x if value is None else decay * value + (1 - decay) * x

@coroutine
def fan_out(*targets):
    try:
        while True:
            x = yield [t.send(x) for t in targets] if 'x' in locals() else None
    finally:
        for t in targets: t.close()
        CLOSED.append(len(targets))

@coroutine
def grep(pattern, target):
    count = 0
    while True:
        line, val = yield count
        if pattern in line:
            count += 1
            target.send(val)

CLOSED = []

def program(lines, x):
    CLOSED.clear()
    m, e = running_mean(), running_mean(0.5)
    fan = fan_out(m, e)
    g = grep('a', fan)
    counts = []
    for i, l in enumerate(lines):
        counts.append(g.send((l, x * i)))
        if counts[-1] == 2:
            print('two matches at', l)
            m.throw(Reset(torch.zeros(1)))
    last = fan.send(x)
    try:
        g.throw(Reset)
    except Reset as ex:
        counts.append(repr(ex))
    try:
        m.send(None)
    except StopIteration as s:
        total = s.value
    fan.close()
    try:
        e.send(1)
    except StopIteration:
        counts.append('e closed')
    return counts, last, total, CLOSED, g.gi_frame is None, m.gi_running, running_mean.__name__

CALLS = ["(['apple', 'bcd', 'banana', 'ab'], torch.ones(2))", "([], torch.arange(3.))", "(['x', 'a'], 2.0)", "(['a', 'a', 'a'], torch.zeros(0))", "(['a'] * 3, torch.tensor(3))"]
