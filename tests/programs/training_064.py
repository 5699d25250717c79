import torch
from torch import nn

class Swap(nn.Module):
    def __init__(self, **branches):
        super().__init__()
        for n, b in branches.items():
            self.add_module(n, b)
        self.active = next(iter(branches), None)
        self._register_load_state_dict_pre_hook(self._rename)
        self._register_state_dict_hook(lambda mod, sd, prefix, meta: sd.update({prefix + 'v': torch.tensor(2)}))
    def _rename(self, sd, prefix, *rest):
        for k in list(sd):
            if '.old.' in f'.{k}':
                sd[k.replace('old.', 'new.')] = sd.pop(k)
                print('renamed', k)
    def get_extra_state(self): return {'active': self.active}
    def set_extra_state(self, s): self.active = s['active'].replace('old', 'new')
    def forward(self, x):
        if self.active is None: return x
        return getattr(self, self.active)(x)

def program(x, names, to):
    torch.manual_seed(0)
    a = Swap(**{n: nn.Linear(x.shape[1], 2) for n in names})
    b = Swap(**{n.replace('old', 'new'): nn.Linear(x.shape[1], 2) for n in names})
    ya, yb = a(x), b(x)
    sd = a.state_dict()
    v = sd.pop('v')
    try:
        res = b.load_state_dict(sd, assign=to == 'assign')
    except RuntimeError as e:
        res = str(e).split('\n')[1].strip()
    yc = b(x)
    shared = [p.data_ptr() == q.data_ptr() for p, q in zip(a.parameters(), b.parameters())]
    if to in ('double', 'half', 'bfloat16'):
        b = getattr(b, to)()
        try: yd = b(x.to(next(b.parameters()).dtype))
        except StopIteration: yd = None
    elif to == 'apply':
        order = []
        yd = b.apply(lambda m: order.append(type(m).__name__) or (m.reset_parameters() if hasattr(m, 'reset_parameters') else None)) is b, order
    else: yd = b.to(to).active if to != 'assign' else None
    return ya, torch.equal(ya, yc), res, shared, yd, list(sd), v, sd.get('_extra_state'), b.active, sorted(sd._metadata)

CALLS = ["(torch.ones(1,2), ['old'], 'double')", "(torch.ones(1,2), ['a', 'old'], 'assign')", "(torch.ones(2,3), [], 'apply')", "(torch.ones(2,3), ['b', 'a'], 'apply')", "(torch.ones(0,3), ['new'], 'cpu')", "(torch.ones(1,3), ['old', 'new'], 'bfloat16')"]
