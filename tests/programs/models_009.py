import torch, torch.nn as nn
from collections import defaultdict
class HookManager:
    def __init__(self): self.handles, self.acts, self.order = [], {}, []
    def attach(self, model, kinds):
        for name, mod in model.named_modules():
            if isinstance(mod, kinds):
                def hook(m, inp, out, name=name):
                    self.acts[name] = out.detach().abs().mean()
                    self.order.append(name)
                self.handles.append(mod.register_forward_hook(hook))
        return self
    def pre(self, mod, scale):
        self.handles.append(mod.register_forward_pre_hook(lambda m, a: tuple(x * scale for x in a)))
        return self
    def __len__(self): return len(self.handles)
    def close(self):
        while self.handles: self.handles.pop().remove()
class Res(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.f = nn.Linear(n, n); self.g = nn.Linear(n, n)
    def forward(self, x, depth=1):
        for _ in range(depth):
            x = x + self.g(torch.relu(self.f(x)))
        return x
def program(x, depth, scale):
    torch.manual_seed(3)
    m = nn.ModuleList([Res(x.shape[-1]), Res(x.shape[-1])])
    hm = HookManager().attach(m, (nn.Linear,))
    grads = {}
    for n, p in m.named_parameters():
        p.register_hook(lambda g, n=n: grads.__setitem__(n, float(g.norm()) > 0) or g * 0.5)
    if scale:
        hm.pre(m[1], scale)
    y = x
    for k, b in enumerate(m):
        y = b(y, depth=depth + k)
    y.sum().backward()
    count = len(hm)
    print('order', hm.order)
    first = dict(hm.acts)
    hm.close()
    m[0](x, depth)
    return y, first, count, len(hm), hm.order, grads, m[0].f.weight.grad
CALLS = ["(torch.ones(2,3), 1, 2.0)", "(torch.arange(4.).reshape(1,4), 2, None)", "(torch.ones(0,2), 1, 3)", "(torch.ones(2,3), 0, 2.0)"]
