import torch
from contextlib import ExitStack, suppress, closing
log = []
class Res:
    def __init__(self, n): self.n = n
    def __enter__(self): log.append(f'open {self.n}'); return self
    def __exit__(self, t, v, tb): log.append((f'close {self.n}', t and t.__name__)); return self.n == 1 and t is RuntimeError
    def close(self): log.append('closing')
def gen(x):
    try:
        for r in x: yield r.sum()
    finally:
        log.append('gen closed')
def program(x, n):
    log.clear()
    y = x
    with ExitStack() as st:
        for i in range(n):
            st.enter_context(Res(i))
            y = y + i
            if y.sum() > 6: raise RuntimeError(float(y.sum()))
        st.callback(log.append, 'cb')
    with suppress(IndexError, KeyError):
        y = y * y[5]
        log.append('unreached')
    with closing(gen(x)) as g:
        for s in g:
            if s.item() >= 1: break
    return y, s, list(log)
CALLS = ["(torch.ones(2,2), 3)", "(torch.zeros(1,2), 2)", "(torch.full((6,1), 9.), 1)", "(torch.full((6,1), .1), 2)"]
