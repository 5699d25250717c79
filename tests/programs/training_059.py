import torch
from torch import nn
import operator as op

class TreeLSTM(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.iou = nn.Linear(d, 3 * d); self.f = nn.Linear(d, d)
        for p in self.parameters(): nn.init.constant_(p, .2)
    def leaf(self, tok, d):
        h = torch.full((d,), tok / 10)
        return h, torch.zeros(d)
    def forward(self, tree, d, depth=0):
        if depth > 4: raise RecursionError(depth)
        match tree:
            case int() | float() as t: return self.leaf(t, d)
            case []: return self.leaf(0, d)
            case [child]: return self(child, d, depth + 1)
            case ['neg', t]:
                h, c = self(t, d, depth + 1); return -h, c
            case {'op': name, 'args': args} if hasattr(op, name):
                hs = [self(a, d, depth + 1) for a in args]
                return getattr(op, name)(*(h for h, _ in hs)), sum(c for _, c in hs)
            case torch.Tensor(shape=(n,)) if n == d: return tree, tree
            case (l, *rest):
                hs, cs = zip(*(self(t, d, depth + 1) for t in (l, *rest)))
            case _: raise TypeError(type(tree).__name__)
        hsum = sum(hs)
        i, o, u = self.iou(hsum).chunk(3)
        c = i.sigmoid() * u.tanh() + sum(self.f(h).sigmoid() * c for h, c in zip(hs, cs))
        if c.norm() > 1:
            print('  ' * depth + 'clip'); c = c / c.norm()
        return o.sigmoid() * c.tanh(), c

def program(tree, d):
    m = TreeLSTM(d)
    try:
        h, c = m(tree, d)
    except TypeError as e:
        return 'type', str(e), m.iou.weight.detach()
    except RecursionError as e:
        return 'deep', e.args, torch.ones(d)
    (h.sum() + c.sum()).backward() if h.requires_grad else None
    return h.detach(), c.detach(), m.f.weight.grad, h.requires_grad

CALLS = ["([1, [2, 3]], 2)", "([[1], {'op': 'mul', 'args': [2, [3, 4.5]]}], 3)", "(['neg', [1, torch.ones(2)]], 2)", "([1, None], 2)", "([[[[[[[1, 2], 3], 4], 5], 6], 7]], 2)", "([], 2)", "([1, {'op': 'nope', 'args': []}], 2)", "(torch.ones(3), 2)"]
