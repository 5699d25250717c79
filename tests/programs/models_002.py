import torch, math, bisect, itertools
class WeightedSampler:
    def __init__(self, labels, seed=0):
        self.labels = labels
        self.gen = torch.Generator().manual_seed(seed)
        counts = torch.bincount(labels) if labels.numel() else torch.zeros(1, dtype=torch.long)
        self.weights = 1.0 / counts[labels].float()
        self.cum = list(itertools.accumulate(self.weights.tolist()))
    def draw(self):
        u = torch.rand((), generator=self.gen).item() * self.cum[-1]
        return min(bisect.bisect_right(self.cum, u), len(self.cum) - 1)
    def __iter__(self):
        return self
    def __next__(self):
        if not self.cum:
            raise StopIteration
        return self.draw()

class LabelEncoder:
    def __init__(self):
        self.index, self.names = {}, []
    def __call__(self, name):
        if name not in self.index:
            self.index[name] = len(self.names)
            self.names.append(name)
        return self.index[name]
    def __missing__(self, k):
        return None
    def inverse(self, ids):
        return [self.names[i] for i in ids]

def program(names, n, x):
    enc = LabelEncoder()
    labels = torch.tensor([enc(s) for s in names], dtype=torch.long)
    sampler = WeightedSampler(labels, seed=n)
    picks = list(itertools.islice(sampler, n))
    hist = torch.zeros(len(enc.names))
    for p in picks:
        hist[labels[p]] += 1
    if picks:
        sel = x[torch.tensor(picks) % len(x)]
        print('selected', tuple(sel.shape), end=';\n')
        centered = sel - sel.mean(0, keepdim=True)
        cov = centered.T @ centered / max(1, len(picks) - 1)
    else:
        cov = None
    ent = -(hist / hist.sum().clamp(min=1)).clamp(min=1e-9).log().mean() if hist.numel() else torch.tensor(math.nan)
    return picks, hist, cov, ent.isnan().item(), enc.inverse(labels.tolist()), enc.index

CALLS = ["(['a','b','a','c'], 6, torch.arange(8.).reshape(4,2))", "([], 3, torch.ones(2,2))", "(['z'], 2, torch.ones(1,3))", "(('q','r')*4, 10, torch.eye(3))", "(['a'], 0, torch.eye(3))"]
