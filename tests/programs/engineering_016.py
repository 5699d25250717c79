import torch
from itertools import islice

def decode(step, start, eos):
    tok = start
    while True:
        override = yield tok
        tok = override if override is not None else step(tok)
        if tok == eos:
            return 'eos'

def make_step(T):
    calls = 0
    def step(tok):
        nonlocal calls
        calls += 1
        row = T[tok]
        return row.argmax().item()
    def count():
        return calls
    return step, count

def drive(gen, inputs):
    out = [next(gen)]
    try:
        for inp in inputs:
            out.append(gen.send(inp))
    except StopIteration as stop:
        return out, stop.value
    finally:
        gen.close()
    return out, None

def wrapper(step, start, eos):
    reason = yield from decode(step, start, eos)
    yield ('done', reason)
    return 'outer'

def program(T, start, inputs, eos):
    step, count = make_step(T)
    out, why = drive(wrapper(step, start, eos), inputs)
    nums = [o for o in out if isinstance(o, int)]
    t = torch.tensor(nums, dtype=torch.float32)
    y = T[nums].cumsum(0)
    if t.sum() > 3:
        y = y / t.sum()
    rest = list(islice(decode(step, start, eos), 3))
    return out, why, y, count(), rest

CALLS = ["(torch.eye(4).roll(1,1), 0, [None, None, 1, None], 3)", "(torch.eye(3), 2, [], 0)", "(torch.eye(3).roll(1,0), 2, [None]*5, 0)", "(torch.tensor([[0.,1.],[1.,0.]]), 0, [1, 1, None], 7)"]
