import torch
class Clip:
    def __init__(self, q=0.9): self.q, self.hist = q, []
    def __call__(self, g):
        n = g.norm().item()
        self.hist.append(n)
        lim = torch.tensor(self.hist).quantile(self.q).item()
        return g * (lim / n) if n > lim else g
def program(x, y, steps):
    w = torch.zeros(x.shape[1], requires_grad=True)
    clip = Clip()
    h = w.register_hook(clip)
    for s in range(steps):
        loss = ((x @ w - y) ** 2).mean() * (s + 1)
        w.grad = None
        loss.backward()
        with torch.no_grad(): w -= .1 * w.grad
        if s == 1: h.remove(); print('unhooked', len(clip.hist))
    return w, w.grad, clip.hist, w._version
CALLS = ["(torch.eye(2), torch.ones(2), 3)", "(torch.eye(2), torch.ones(2), 4)", "(torch.ones(1,3), torch.zeros(1), 1)", "(torch.ones(1,3), torch.zeros(1), 0)"]
