import torch, torch.nn as nn, weakref
class EMA:
    def __init__(self, model, decay=.9, warmup=True):
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        self.decay, self.num, self.warmup = decay, 0, warmup
        self.ref = weakref.ref(model)
        self.backup = None
    @torch.no_grad()
    def update(self):
        self.num += 1
        d = min(self.decay, (1 + self.num) / (10 + self.num)) if self.warmup else self.decay
        for n, p in self.ref().named_parameters():
            if n in self.shadow:
                self.shadow[n].lerp_(p, 1 - d)
        return d
    def __enter__(self):
        m = self.ref()
        self.backup = {n: p.data for n, p in m.named_parameters()}
        for n, p in m.named_parameters():
            if n in self.shadow: p.data = self.shadow[n]
        return m
    def __exit__(self, *exc):
        for n, p in self.ref().named_parameters():
            p.data = self.backup.pop(n)
        return False
def program(x, steps, freeze):
    torch.manual_seed(5)
    m = nn.Sequential(nn.Linear(x.shape[1], 3), nn.ReLU(), nn.Linear(3, 1))
    for n, p in m.named_parameters():
        p.requires_grad_(not any(n.startswith(f) for f in freeze))
    ema, ds = EMA(m), []
    for _ in range(steps):
        loss = m(x).pow(2).sum()
        m.zero_grad()
        if loss.requires_grad:
            loss.backward()
            for p in filter(lambda p: p.grad is not None, m.parameters()):
                p.data.add_(p.grad, alpha=-.05)
        ds.append(ema.update())
    a = m(x).detach()
    with ema as em:
        b = em(x).detach()
        inside = m[0].weight.data_ptr() == ema.shadow.get('0.weight', a).data_ptr()
    c = m(x).detach()
    print('ema', em is m, inside)
    try:
        with ema: raise ValueError('inside')
    except ValueError as e: err = str(e)
    return a, b, torch.equal(a, c), ds, sorted(ema.shadow), ema.backup, err, ema.num
CALLS = ["(torch.ones(2,2), 3, ())", "(torch.arange(6.).reshape(2,3), 2, ('0',))", "(torch.ones(1,2), 2, ('0','2'))", "(torch.ones(0,2), 1, ())"]
