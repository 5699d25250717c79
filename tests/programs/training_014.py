import torch
from torch import nn

class Delegating(nn.Module):
    """forwards unknown attributes to what it wraps, counts what was asked"""
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.asked = []
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            pass
        inner = super().__getattr__('inner')
        self.asked.append(name)
        return getattr(inner, name)
    def __len__(self):
        return sum(1 for _ in self.inner.parameters())
    def forward(self, x):
        if self.in_features > 2:
            x = x * self.gain if hasattr(self, 'gain') else x
        return self.inner(x)

def program(x, gain):
    torch.manual_seed(0)
    m = Delegating(nn.Linear(x.shape[-1], 2))
    y1 = m(x)
    if gain is not None:
        m.inner.gain = gain
    y2 = m(x)
    m.inner.gain = 0
    y3 = m(x)
    missing = None
    try:
        m.does_not_exist
    except AttributeError as e:
        missing = str(e)
    w = m.weight
    print(len(m), bool(m), m.asked)
    m.weight_copy = w
    return y1, y2, y3, m.asked, missing, w is m.inner.weight, 'weight_copy' in m._parameters, len(m), [n for n, _ in m.named_parameters(remove_duplicate=False)]

CALLS = ["(torch.ones(2,3), 2.0)", "(torch.ones(2,2), 2.0)", "(torch.ones(2,3), None)", "(torch.ones(1,4), torch.arange(4.))", "(torch.ones(0,3), 3)", "(torch.ones(1,4), 'x')"]
