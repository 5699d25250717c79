import torch
from collections import Counter

class ConfusionMatrix:
    def __init__(self, n, names=()):
        self.n = n
        self.names = list(names) or [str(i) for i in range(n)]
        self.mat = torch.zeros(n, n, dtype=torch.long)
    def update(self, pred, target):
        keep = (target >= 0) & (target < self.n)
        idx = self.n * target[keep] + pred[keep]
        self.mat += torch.bincount(idx, minlength=self.n ** 2).reshape(self.n, self.n)
        return self
    def __add__(self, other):
        if not isinstance(other, ConfusionMatrix) or other.n != self.n:
            return NotImplemented
        new = ConfusionMatrix(self.n, self.names)
        new.mat = self.mat + other.mat
        return new
    __radd__ = lambda self, other: self if other == 0 else NotImplemented
    @property
    def accuracy(self):
        total = self.mat.sum().item()
        return self.mat.diag().sum().item() / total if total else float('nan')
    def worst(self, k=1):
        off = self.mat - torch.diag(self.mat.diag())
        v, i = off.flatten().topk(min(k, off.numel()))
        return [(self.names[j // self.n], self.names[j % self.n], c) for c, j in zip(v.tolist(), i.tolist()) if c]
    def __format__(self, spec):
        return format(self.accuracy, spec or '.2f')

def program(batches, n, names=()):
    mats = [ConfusionMatrix(n, names).update(p, t) for p, t in batches]
    total = sum(mats)
    if not mats:
        return total
    print(f'accuracy {total} ({total:.4f})')
    recall = total.mat.diag() / total.mat.sum(1)
    support = Counter({name: c for name, c in zip(total.names, total.mat.sum(1).tolist())})
    try:
        mats[0] + 1
    except TypeError as e:
        err = str(e)
    return total.mat, recall, recall.nan_to_num(), total.worst(2), support.most_common(1), err

CALLS = ["([(torch.tensor([0,1,1]), torch.tensor([0,1,0]))], 2)", "([(torch.tensor([0,1,1]), torch.tensor([0,1,0])), (torch.tensor([1,1]), torch.tensor([-1,1]))], 2, 'ab')",
 "([(torch.tensor([0,2,1]), torch.tensor([2,2,9]))], 3)", "([], 3)", "([(torch.tensor([0]), torch.tensor([-1]))], 1)"]
