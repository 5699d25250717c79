import torch
from torch import nn
import copy

class Params(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    def copy(self): return type(self)(self)
    def __or__(self, o): return type(self)({**self, **o})

def search(space):
    keys = list(space)
    def rec(i, cur):
        if i == len(keys):
            yield Params(cur)
            return
        for v in space[keys[i]]:
            yield from rec(i + 1, {**cur, keys[i]: v})
    return rec(0, {})

def evaluate(p, x, y):
    torch.manual_seed(p.seed)
    net = nn.Sequential(nn.Linear(x.shape[1], p.width), {'relu': nn.ReLU, 'tanh': nn.Tanh}[p.act](), nn.Linear(p.width, 1))
    opt = torch.optim.SGD(net.parameters(), p.lr)
    best = float('inf'), None
    for _ in range(p.steps):
        loss = (net(x)[:, 0] - y).square().mean()
        if not torch.isfinite(loss): raise OverflowError(p.lr)
        if loss.item() < best[0]: best = loss.item(), copy.deepcopy(net.state_dict())
        opt.zero_grad(); loss.backward(); opt.step()
    return best

def program(x, y, space):
    base = Params(seed=0, steps=3, lr=0.1, act='relu')
    results, failed = {}, []
    for p in search(space):
        p = base | p
        try:
            loss, sd = evaluate(p, x, y)
        except (OverflowError, KeyError) as e:
            failed.append((type(e).__name__, e.args)); continue
        results[tuple(sorted(p.items()))] = loss, sd
    if not results:
        print('nothing'); return failed, dict(base)
    key, (loss, sd) = min(results.items(), key=lambda kv: kv[1][0])
    base.best = dict(key)
    return key, loss, sd, failed, len(results), dict(base), 'best' in base

CALLS = ["(torch.eye(2), torch.ones(2), {'width': [2,3], 'lr': [.1,1.]})", "(torch.eye(2), torch.ones(2), {'width': [2], 'act': ['tanh','gelu']})", "(torch.eye(2)*1e30, torch.ones(2), {'width': [2]})", "(torch.eye(2), torch.ones(2), {})"]
