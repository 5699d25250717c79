import torch
from torch import nn
import contextlib, copy

class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}
        self.backup = None
    def update(self, model):
        for k, v in model.state_dict().items():
            s = self.shadow[k]
            if s.is_floating_point():
                s.lerp_(v, 1 - self.decay)
            else:
                self.shadow[k] = v.clone()
    @contextlib.contextmanager
    def applied(self, model):
        self.backup = copy.deepcopy(model.state_dict())
        model.load_state_dict(self.shadow)
        try:
            yield self
        finally:
            model.load_state_dict(self.backup)
            self.backup = None

def program(x, decay, fail):
    torch.manual_seed(1)
    m = nn.Sequential(nn.Linear(x.shape[1], 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    ema = EMA(m, decay)
    opt = torch.optim.Adam(m.parameters(), lr=0.05)
    for i in range(3):
        loss = m(x).abs().mean()
        opt.zero_grad(); loss.backward(); opt.step()
        ema.update(m)
    m.eval()
    before = m(x).detach()
    err = None
    try:
        with ema.applied(m) as e:
            assert e is ema
            inside = m(x).detach()
            if fail:
                raise KeyError(fail)
    except KeyError as k:
        err = repr(k)
    after = m(x).detach()
    print('same', torch.equal(before, after), ema.backup is None)
    return before, inside, err, ema.shadow['1.num_batches_tracked'], torch.equal(before, after)

CALLS = ["(torch.linspace(-1,1,12).reshape(4,3), 0.9, '')", "(torch.linspace(-1,1,12).reshape(4,3), 0.5, 'bad')", "(torch.ones(2,5), 0., None)", "(torch.ones(1,3), 0.9, '')"]
