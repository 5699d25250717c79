import torch
def levinson(r, n):
    a = torch.zeros(n + 1); a[0] = 1; e = r[0].clone(); ks = []
    for i in range(1, n + 1):
        if e.abs() < 1e-9: print('degenerate', i); break
        acc = sum((a[j] * r[i - j] for j in range(i)), torch.zeros(()))
        k = -acc / e; ks.append(k.item())
        prev = a.clone()
        for j in range(1, i): a[j] = prev[j] + k * prev[i - j]
        a[i] = k; e *= 1 - k * k
    return a, e, ks
def biquad(x, b, a):
    x1 = x2 = y1 = y2 = torch.tensor(0.); out = torch.empty_like(x)
    for i, v in enumerate(x):
        y = b[0] * v + b[1] * x1 + b[2] * x2 - a[1] * y1 - a[2] * y2
        x1, x2, y1, y2 = v, x1, y, y1
        out[i] = y
    return out
class Agc:
    def __init__(self, target): self.target, self.gain, self.hits = target, 1., 0
    def __call__(self, frame):
        rms = frame.square().mean().sqrt()
        if rms > 0: self.gain += .5 * ((self.target / rms).item() - self.gain)
        out = frame * self.gain
        if out.abs().max() > 1: self.hits += 1; out.clamp_(-1, 1)
        return out
def program(x, order, target):
    r = torch.stack([(x[:len(x) - k] * x[k:]).sum() for k in range(order + 1)])
    try: a, e, ks = levinson(r, order)
    except IndexError as ex: return str(ex)[:30]
    agc = Agc(target)
    frames = [agc(f) for f in x.split(3)] if len(x) else []
    zc = ((x[1:] * x[:-1]) < 0).sum().item() if len(x) > 1 else 0
    env, lvl = [], 0.
    for v in x.abs().tolist(): lvl = max(v, lvl * .9); env.append(round(lvl, 4))
    return a, e, ks, biquad(x, (.2, .4, .2), (1, -.3, .1)), frames, agc.gain, agc.hits, zc, env
CALLS = ["(torch.arange(9.).sin(), 3, .5)", "(torch.zeros(4), 2, 1.)", "(torch.ones(5)*3, 1, 2.)", "(torch.zeros(0), 0, 1.)", "(torch.tensor([1.]), -1, torch.tensor(.3))"]
