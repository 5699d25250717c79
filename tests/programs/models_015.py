import torch, math
class Scaler:
    def __init__(self, scale=2.**4, growth=2., every=2):
        self.scale, self.growth, self.every = scale, growth, every
        self._good = 0
        self.skipped = []
    def step(self, params, grads, lr, tag):
        inf = False
        for g in grads:
            if not torch.isfinite(g).all():
                inf = True; break
        else:
            for p, g in zip(params, grads): p -= lr * g / self.scale
        if inf:
            self.scale /= self.growth; self._good = 0
            self.skipped.append(tag)
        else:
            self._good += 1
            if self._good % self.every == 0: self.scale *= self.growth
        return not inf
def program(w, xs, lr):
    w = [w.clone(), w.new_zeros(())]
    s, scales = Scaler(), []
    for i, x in enumerate(xs):
        ps = [p.detach().requires_grad_() for p in w]
        loss = ((ps[0] * x).sum() + ps[1]).exp() * s.scale
        gs = torch.autograd.grad(loss, ps)
        ok = s.step(w, gs, lr, tag=f's{i}')
        scales.append((s.scale, ok))
        if not ok: print('skip', i, s.scale)
    return w, scales, s.skipped, vars(s), math.log2(s.scale)
CALLS = ["(torch.ones(2), torch.tensor([[.1,.2],[100.,1.],[.1,-.5],[0.,0.]]), .1)", "(torch.zeros(1), [], .1)", "(torch.ones(1), [torch.ones(1), torch.tensor([float('nan')])]*3, 1)", "(torch.ones(2,dtype=torch.float64), torch.ones(5,2)*-1, .5)"]
