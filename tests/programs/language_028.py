import torch
from contextlib import contextmanager, nullcontext, redirect_stdout, closing
import io
import sys

class Tee(io.StringIO):
    def write(self, s):
        super().write(s.upper())
        return len(s)

@contextmanager
def eval_mode(m):
    was = m.training
    m.eval()
    try:
        yield m
    finally:
        m.train(was)

@contextmanager
def hooks(m, store):
    hs = []
    for n, c in m.named_children():
        hs.append(c.register_forward_hook(lambda mod, inp, out, n=n: store.setdefault(n, []).append(out.mean().item())))
    try:
        yield
    finally:
        for h in hs: h.remove()

def make(d, p):
    torch.manual_seed(d)
    return torch.nn.Sequential(torch.nn.Linear(d, d), torch.nn.ReLU(), torch.nn.Dropout(p))

def program(x, p, quiet):
    m = make(x.shape[-1], p)
    store = {}
    buf = Tee()
    with redirect_stdout(buf) if quiet else nullcontext():
        print('start', x.shape[0])
        with eval_mode(m) as e, hooks(m, store):
            y = m(x)
            print(f'{y.sum().item():.3f}')
        with torch.no_grad() if quiet else torch.enable_grad():
            z = m(x)
            sys.stdout.write('z\n')
    try:
        with eval_mode(m):
            m(x[:, :-1])
    except RuntimeError as err:
        msg = 'shapes' in str(err)
    else:
        msg = None
    return y.detach(), z.requires_grad, z.detach(), store, buf.getvalue(), m.training, msg, e is m, len(m[0]._forward_hooks)

CALLS = ["(torch.ones(2, 3), 0.0, True)", "(torch.ones(2, 3), 0.5, False)", "(torch.ones(1, 1), 0.0, True)", "(torch.ones(0, 2), 0.0, False)", "(torch.arange(4.).reshape(1, 4), 1.0, True)"]
