import torch
from torch import nn

class Recorder(torch.overrides.TorchFunctionMode):
    def __init__(self): super().__init__(); self.ops = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.ops.append(getattr(func, '__name__', str(func)))
        return func(*args, **(kwargs or {}))

class Counter(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self): super().__init__(); self.n = {}
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        k = func.overloadpacket.__name__
        self.n[k] = self.n.get(k, 0) + 1
        return func(*args, **(kwargs or {}))

def work(x, flag):
    y = torch.relu(x - 1)
    if flag and y.sum() > 2:
        y = y * 2
    return torch.cat([y, y]).sum(0)

def program(x, flag):
    plain = work(x, flag)
    with Recorder() as r:
        a = work(x, flag)
    with Counter() as c:
        b = work(x, flag)
    print(r.ops)
    with torch.inference_mode():
        inf = work(x, flag)
        st = inf.is_inference(), torch.is_inference_mode_enabled()
    try:
        z = inf.clone() + 1
        inf.add_(1)
        err = None
    except RuntimeError as e:
        err = str(e)[:30]
    with torch.random.fork_rng():
        torch.manual_seed(1)
        d = nn.functional.dropout(torch.ones(4), .5)
    torch.manual_seed(1)
    d2 = nn.functional.dropout(torch.ones(4), .5)
    with torch.autograd.set_grad_enabled(flag), torch.device('meta'):
        m = torch.ones(3)
    return plain, torch.equal(a, plain), r.ops, c.n, torch.equal(b, plain), st, err, torch.equal(d, d2), m.device.type, torch.ones(1).device.type, inf, torch.is_grad_enabled()

CALLS = ["(torch.arange(4.), True)", "(torch.arange(4.).reshape(2,2), False)", "(torch.zeros(2), True)", "(torch.ones(0), True)", "(torch.ones(3, dtype=torch.int64)*5, True)"]
