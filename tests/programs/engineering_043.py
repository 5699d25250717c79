import torch
import numpy as np

class SumTree:
    def __init__(self, capacity):
        self.capacity = capacity
        self.tree = np.zeros(2 * capacity - 1)
        self.data = np.zeros(capacity, dtype=object)
        self.write = self.n = 0
    def _propagate(self, idx, change):
        parent = (idx - 1) // 2
        self.tree[parent] += change
        if parent != 0:
            self._propagate(parent, change)
    def update(self, idx, p):
        change = p - self.tree[idx]
        self.tree[idx] = p
        if idx: self._propagate(idx, change)
    def add(self, p, data):
        self.data[self.write] = data
        self.update(self.write + self.capacity - 1, p)
        self.write = (self.write + 1) % self.capacity
        self.n = min(self.n + 1, self.capacity)
    def get(self, s):
        idx = 0
        while (left := 2 * idx + 1) < len(self.tree):
            if s <= self.tree[left]:
                idx = left
            else:
                s -= self.tree[left]
                idx = left + 1
        return idx, self.tree[idx], self.data[idx - self.capacity + 1]
    @property
    def total(self): return self.tree[0]

def program(xs, capacity, k, alpha=0.6):
    tree = SumTree(capacity)
    for i, x in enumerate(xs):
        pr = x.abs().mean().item()
        tree.add((pr + 1e-2) ** alpha, (i, x))
    picks, probs = [], []
    for j in range(k):
        idx, p, item = tree.get(tree.total * (j + .5) / k)
        picks.append(item)
        probs.append(p / tree.total)
        if j % 2:
            tree.update(idx, p * 0.5)
            print('update', idx, round(p, 4))
    weights = torch.as_tensor(np.array(probs)).float().mul(tree.n).pow(-0.4)
    weights /= weights.max()
    batch = torch.stack([x for _, x in picks])
    return batch, weights, [i for i, _ in picks], tree.tree, tree.write

CALLS = ["([torch.full((2,), float(i)) for i in range(5)], 4, 3)", "([torch.ones(1)], 1, 2)", "([torch.zeros(2), -torch.ones(2)], 2, 4)", "([torch.arange(3.)]*3, 8, 1, 1.0)"]
