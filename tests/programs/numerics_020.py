import torch
from torch import nn

class ScaledLinear(nn.Linear):
    __constants__ = ['gain']
    def __init__(self, *args, gain=1.0, **kw):
        self._gain_default = gain
        super().__init__(*args, **kw)
        self.gain = gain
    def reset_parameters(self):
        nn.init.constant_(self.weight, 0.5 * self._gain_default)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
    def __setattr__(self, name, value):
        if name == 'gain' and not 0 < value <= 10:
            raise ValueError(f'bad gain {value}')
        super().__setattr__(name, value)
    def __getattr__(self, name):
        if name.startswith('scaled_'):
            return getattr(self, name[7:]) * self.gain
        return super().__getattr__(name)
    def extra_repr(self):
        return super().extra_repr() + f', gain={self.gain}'
    def forward(self, x):
        return nn.functional.linear(x, self.scaled_weight, self.bias)

def program(x, gains):
    layers = []
    errors = []
    for g in gains:
        try:
            layers.append(ScaledLinear(x.shape[-1], x.shape[-1], bias=len(layers) % 2 == 0, gain=g))
        except ValueError as e:
            errors.append(str(e))
    model = nn.Sequential(*layers)
    out = model(x)
    if out.mean() > 10:
        for l in model:
            l.gain = max(0.1, l.gain / 2)
        out = model(x)
    try:
        missing = model[0].nothing
    except (AttributeError, IndexError) as e:
        missing = str(e)
    return out, errors, repr(model), missing, [l.gain for l in model]

CALLS = ["(torch.ones(1,2), [1.0, 2.0])", "(torch.ones(1,2), [1.0, 2.0, -1])", "(torch.ones(1,2)*30, [4.0])", "(torch.ones(1,2), [])", "(torch.ones(2,3), [11, float('nan')])"]
