import torch
from torch import nn

class LazyNorm(nn.Module):
    def __init__(self, momentum=0.5):
        super().__init__()
        self.momentum = momentum
        self.mean = None
        self.weight = None
    def _build(self, x):
        d = x.shape[-1]
        del self.mean
        self.register_buffer('mean', torch.zeros(d, dtype=x.dtype))
        self.register_buffer('var', torch.ones(d, dtype=x.dtype), persistent=False)
        self.weight = nn.Parameter(torch.ones(d, dtype=x.dtype))
    def forward(self, x):
        if self.mean is None:
            self._build(x)
        if self.training:
            mean = x.mean(0)
            var = x.var(0, unbiased=False)
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.var += self.momentum * (var - self.var)
        else:
            mean, var = self.mean, self.var
        return (x - mean) / (var + 1e-5).sqrt() * self.weight

def program(xs, train=True):
    norm = LazyNorm()
    norm.train(train)
    outs = []
    for x in xs:
        try:
            outs.append(norm(x))
        except RuntimeError as e:
            outs.append(type(e).__name__)
            norm = LazyNorm(0.25).train(norm.training)
    total = sum(o.sum() for o in outs if isinstance(o, torch.Tensor))
    if isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()
    return outs, dict(norm.named_buffers()), list(norm.state_dict()), [p.grad for p in norm.parameters()], total

CALLS = ["([torch.arange(6.).reshape(3,2), torch.ones(2,2)],)", "([torch.arange(6.).reshape(3,2), torch.ones(2,2)], False)",
 "([torch.ones(2,2), torch.ones(2,3), torch.eye(3)],)", "([],)", "([torch.ones(2,2,dtype=torch.float64)],)"]
