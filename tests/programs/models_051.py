import torch, math
from collections import deque
def bfs_distance(mask, metric='l1'):
    h, w = mask.shape; d = torch.full((h, w), math.inf); q = deque()
    for i, j in mask.nonzero().tolist(): d[i, j] = 0.; q.append((i, j))
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)] + ([(a, b) for a in (-1, 1) for b in (-1, 1)] if metric == 'linf' else [])
    while q:
        i, j = q.popleft()
        for a, b in steps:
            y, x = i + a, j + b
            if 0 <= y < h and 0 <= x < w and d[y, x] > d[i, j] + 1: d[y, x] = d[i, j] + 1; q.append((y, x))
    return d
def exact(mask):
    pts = mask.nonzero().float()
    grid = torch.stack(torch.meshgrid(*[torch.arange(s).float() for s in mask.shape], indexing='ij'), -1)
    return torch.cdist(grid.view(-1, 2), pts).min(1).values.view(mask.shape)
class Result(dict):
    def __setitem__(self, k, v):
        if k in self: raise KeyError(f'{k} again')
        super().__setitem__(k, v); self.last = k
def program(mask, metrics):
    res = Result()
    for m in metrics:
        try: res[m] = bfs_distance(mask, m) if m.startswith('l') else globals()[m](mask)
        except (RuntimeError, IndexError) as e: res[m] = type(e).__name__; print('failed', m)
        except KeyError as e: print('key', e)
    medial = None
    if isinstance(res.get('l1'), torch.Tensor) and res['l1'].numel():
        d = res['l1']; medial = (d == d.max()).nonzero().tolist()
    return dict(res), getattr(res, 'last', None), medial
CALLS = ["(torch.eye(4).bool(), ['l1','linf','exact'])", "(torch.zeros(2,3), ['l1','exact','l1'])", "(torch.tensor([[0,0,1,0,0]]), ['l1','nosuch'])", "(torch.zeros(0,0), ['exact'])", "(torch.ones(1,1), [])"]
