import torch, torch.nn as nn
class SpectralNorm:
    def __init__(self, mod, name='weight', n=2):
        self.name, self.n = name, n
        w = getattr(mod, name); del mod._parameters[name]
        mod.register_parameter(name + '_orig', w)
        mod.register_buffer(name + '_u', nn.functional.normalize(torch.ones(w.shape[0]), dim=0))
        setattr(mod, name, w.data)
        self.handle = mod.register_forward_pre_hook(self)
        self.sig = []
    def __call__(self, mod, inputs):
        w, u = getattr(mod, self.name + '_orig'), getattr(mod, self.name + '_u')
        with torch.no_grad():
            for _ in range(self.n):
                v = nn.functional.normalize(w.T @ u, dim=0); u.copy_(nn.functional.normalize(w @ v, dim=0))
        s = u @ (w @ v)
        self.sig.append(s.item())
        setattr(mod, self.name, w / s)
def program(x, n, rounds):
    torch.manual_seed(9)
    l = nn.Linear(x.shape[-1], 3)
    try: sn = SpectralNorm(l, n=n)
    except KeyError as e: return e.args
    outs = []
    for _ in range(rounds):
        try: outs.append(l(x))
        except UnboundLocalError as e: outs.append(str(e)[:60]); break
    if rounds and n:
        outs[-1].sum().backward(); true = torch.linalg.matrix_norm(l.weight_orig, 2)
        print('err', abs(true.item() - sn.sig[-1]) < .5)
    sn.handle.remove()
    return outs, sn.sig, sorted(dict(l.named_parameters())), l.weight_u, type(l.weight).__name__, l.weight_orig.grad, list(l.state_dict())
CALLS = ["(torch.ones(2,2), 1, 3)", "(torch.ones(2,4), 0, 1)", "(torch.zeros(0,2), 2, 1)", "(torch.ones(2), 3, 0)"]
