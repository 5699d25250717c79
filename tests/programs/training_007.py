import torch
import torch.nn.functional as F
from collections import defaultdict, namedtuple

Routing = namedtuple('Routing', 'experts weights load dropped')

def route(logits, k, capacity):
    probs = logits.softmax(-1)
    w, idx = probs.topk(k, dim=-1)
    w = w / w.sum(-1, keepdim=True)
    load = torch.zeros(logits.shape[-1], dtype=torch.long)
    load.scatter_add_(0, idx.flatten(), torch.ones(idx.numel(), dtype=torch.long))
    dropped = (load - capacity).clamp(min=0).sum().item()
    return Routing(idx, w, load, dropped)

def program(x, gates, k, capacity):
    r = route(x @ gates, k, capacity)
    experts = [torch.tanh, lambda t: t * 2, F.relu, torch.neg]
    out = torch.zeros_like(x)
    used = defaultdict(list)
    for e in range(gates.shape[1]):
        rows, slot = (r.experts == e).nonzero(as_tuple=True)
        if rows.numel() == 0:
            continue
        if len(rows) > capacity:
            print(f'expert {e} over capacity: {len(rows)} > {capacity}')
            rows, slot = rows[:capacity], slot[:capacity]
        used[e].extend(rows.tolist())
        out.index_add_(0, rows, experts[e](x[rows]) * r.weights[rows, slot, None])
    aux = (r.load.float() / max(r.load.sum().item(), 1)).pow(2).sum()
    return out, dict(used), aux, r._asdict(), r._replace(dropped=-1).dropped

CALLS = ["(torch.arange(12.).reshape(4,3)/4, torch.eye(3), 2, 3)", "(torch.arange(12.).reshape(4,3)/4 - 1, torch.ones(3,2), 1, 1)",
 "(torch.ones(0,3), torch.eye(3), 1, 2)", "(torch.ones(2,3), torch.eye(3), 4, 2)", "(torch.ones(2,3), torch.ones(3,5), 5, 10)"]
