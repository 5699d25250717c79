import torch
import sys

class Tracker:
    """records who called it"""
    calls = []
    def __call__(self, tag):
        f = sys._getframe(1)
        self.calls.append((tag, f.f_code.co_name, sorted(k for k in f.f_locals if not k.startswith('.'))))
        return len(self.calls)

track = Tracker()

def layer(x, w, *, bias=None):
    h = x @ w
    n = track('layer')
    if bias is not None:
        h = h + bias
    return h * n

def stack(x, ws):
    for i, w in enumerate(ws):
        try:
            x = layer(x, w, bias=i or None)
        except RuntimeError as e:
            tb = e.__traceback__
            depth = 0
            while tb.tb_next:
                tb = tb.tb_next
                depth += 1
            track('err')
            return tb.tb_frame.f_code.co_name, depth, tb.tb_lineno - tb.tb_frame.f_code.co_firstlineno
    return x

def program(x, ws):
    Tracker.calls = []
    out = stack(x, ws)
    caller = track('end')
    vals = [track(c) for c in 'ab']
    g = (track(i) for i in range(1))
    s = sum(g)
    if isinstance(out, torch.Tensor) and out.sum() > 0:
        print('pos', caller)
        out = out - 1
    return out, Tracker.calls, vals, s, program.__code__.co_varnames[:2]

CALLS = ["(torch.ones(2, 3), [torch.ones(3, 3), torch.ones(3, 1)])", "(torch.ones(2), [torch.ones(3, 3)])", "(torch.ones(2), [])", "(-torch.ones(2), [torch.eye(2)] * 3)"]
