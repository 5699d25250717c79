import torch

class UnionFind:
    def __init__(self):
        self.parent, self.size, self.merges = {}, {}, 0
    def __getitem__(self, x):
        if x not in self.parent:
            self.parent[x] = x; self.size[x] = 1
            return x
        path = []
        while self.parent[x] != x:
            path.append(x)
            x = self.parent[x]
        for p in path:
            self.parent[p] = x
        return x
    def union(self, *xs):
        it = iter(xs)
        root = self[next(it)]
        for x in it:
            r = self[x]
            if r == root: continue
            if self.size[r] > self.size[root]:
                r, root = root, r
            self.parent[r] = root
            self.size[root] += self.size.pop(r)
            self.merges += 1
        return root
    def __len__(self): return len(self.size)
    def groups(self):
        out = {}
        for x in self.parent:
            out.setdefault(self[x], []).append(x)
        return out

def components(img, thresh):
    uf = UnionFind()
    mask = img > thresh
    h, w = img.shape
    for y in range(h):
        for x in range(w):
            if not mask[y, x]: continue
            uf[y, x]
            if y and mask[y - 1, x]: uf.union((y, x), (y - 1, x))
            if x and mask[y, x - 1]: uf.union((y, x), (y, x - 1))
    return uf

def program(img, thresh):
    uf = components(img, thresh)
    labels = torch.zeros(img.shape, dtype=torch.long)
    sums = []
    for i, (root, cells) in enumerate(uf.groups().items(), start=1):
        ys, xs = zip(*cells)
        labels[list(ys), list(xs)] = i
        sums.append(img[torch.tensor(ys), torch.tensor(xs)].sum())
        if len(cells) > 2:
            print('large', root, len(cells))
    try:
        uf.union()
    except StopIteration as e:
        st = repr(e)
    best = max(range(len(sums)), key=sums.__getitem__, default=-1)
    return labels, sums, uf.merges, len(uf), bool(uf), best, st

CALLS = ["(torch.tensor([[1., 0, 1], [1, 0, 1], [0, 1, 1]]), 0.5)", "(torch.zeros(2, 2), 0)", "(torch.arange(9.).reshape(3, 3), 3)", "(torch.zeros(0, 3), 0)", "(torch.tensor([[1, 0, 1]]), 0)"]
