import torch, torch.nn as nn, math
class LRFinder:
    def __init__(self, model, lr_min=1e-3, lr_max=10., num=8):
        self.model, self.history = model, []
        self.saved = {k: v.detach().clone() for k, v in model.named_parameters()}
        self.lrs = [lr_min * (lr_max / lr_min) ** (i / (num - 1)) for i in range(num)]
    def __enter__(self): return self
    def __exit__(self, et, ev, tb):
        with torch.no_grad():
            for k, p in self.model.named_parameters():
                p.copy_(self.saved[k]); p.grad = None
        self.error = et and et.__name__
        return et is OverflowError
    def run(self, x, y, limit):
        best = math.inf
        for i, lr in enumerate(self.lrs):
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            with torch.no_grad():
                for p in self.model.parameters():
                    p.sub_(lr * p.grad); p.grad.zero_()
            v = float(loss)
            self.history.append((lr, v))
            if not math.isfinite(v) or v > limit * best:
                raise OverflowError(f'diverged at step {i}')
            best = min(best, v)
        return best
    def suggest(self):
        ls = [l for _, l in self.history]
        if len(ls) < 2: return None
        slopes = [b - a for a, b in zip(ls, ls[1:])]
        return self.history[min(range(len(slopes)), key=slopes.__getitem__)][0]
def program(x, y, limit):
    torch.manual_seed(1)
    m = nn.Linear(x.shape[-1], 1)
    w0 = m.weight.detach().clone()
    best = 'unset'
    with LRFinder(m) as f:
        best = f.run(x, y, limit)
        print('no divergence')
    same = torch.equal(w0, m.weight)
    return best, f.error, ['%.3g %.3g' % h for h in f.history], f.suggest(), same, m.weight.grad, m(x)
CALLS = ["(torch.arange(6.).reshape(3,2), torch.ones(3,1), 4.)", "(torch.ones(2,2)*.01, torch.ones(2,1), 1e9)", "(torch.full((1,1), float('nan')), torch.ones(1,1), 4.)", "(torch.ones(2,3), torch.ones(5,1,1), 1.5)"]
