import torch
import torch.nn.functional as F
from functools import partialmethod, partial, cmp_to_key

class Rnn:
    """char rnn by hand, tbptt with detach, forget gates by name"""
    def __init__(self, n, h):
        g = torch.Generator().manual_seed(1)
        mk = lambda *s: torch.randn(*s, generator=g).mul_(.5).requires_grad_()
        self.p = {'Wx': mk(n, 4 * h), 'Wh': mk(h, 4 * h), 'b': torch.zeros(4 * h, requires_grad=True), 'out': mk(h, n)}
        self.h = h
    def _gate(self, z, k, act=torch.sigmoid): return act(z[k * self.h:(k + 1) * self.h])
    i = partialmethod(_gate, k=0); f = partialmethod(_gate, k=1); o = partialmethod(_gate, k=2)
    g = partialmethod(_gate, k=3, act=torch.tanh)
    def step(self, x, s):
        h, c = s
        z = self.p['Wx'][x] + h @ self.p['Wh'] + self.p['b']
        c = self.f(z) * c + self.i(z) * self.g(z)
        return self.o(z) * c.tanh(), c
    def init(self): return (torch.zeros(self.h),) * 2

def program(text, h, span, lr):
    vocab = sorted({*text})
    ids = [vocab.index(c) for c in text]
    net = Rnn(max(len(vocab), 1), h)
    s, losses, pending, detached = net.init(), [], 0, 0
    assert s[0] is s[1]
    for t, (a, b) in enumerate(zip(ids, ids[1:])):
        s = net.step(a, s)
        pending = pending + F.cross_entropy((s[0] @ net.p['out'])[None], torch.tensor([b]))
        if (t + 1) % span: continue
        pending.backward()
        for k in net.p:
            w = net.p[k]
            if w.grad is None: continue
            with torch.no_grad():
                net.p[k] = (w - lr * w.grad / max(1., w.grad.norm().item())).requires_grad_()
        losses.append(round(pending.item(), 4)); pending = 0
        s = tuple(v.detach() for v in s); detached += 1
    else:
        if isinstance(pending, torch.Tensor): print('left over', pending.requires_grad)
    out, s = [], net.init()
    x = ids[0] if ids else 0
    for _ in range(4):
        s = net.step(x, s)
        x = int((s[0] @ net.p['out']).argmax()); out.append(vocab[x] if vocab else '')
    order = sorted(net.p, key=cmp_to_key(lambda a, b: -1 if net.p[a].abs().sum() < net.p[b].abs().sum() else 1))
    return losses, ''.join(out), s, detached, order, net.p['b'].is_leaf, Rnn.i is Rnn.i, type(net.f).__name__

CALLS = ["('hello world', 3, 2, .5)", "('aaaa', 2, 1, 1.)", "('ab', 2, 5, .1)", "('', 2, 1, .1)", "('xyxyxy', 0, 2, .1)", "('abc', 2, 0, .1)"]
