import torch
from collections import Counter, defaultdict
from string import Template

class DecisionTree:
    def __init__(self, depth): self.depth = depth
    @staticmethod
    def gini(y):
        if not len(y): return 0.
        p = y.bincount() / len(y)
        return 1 - p.square().sum().item()
    def split(self, x, y):
        best = (self.gini(y) - 1e-6, None, None)
        for f in range(x.shape[1]):
            for th in x[:, f].unique().tolist()[:-1]:
                left = x[:, f] <= th
                score = left.float().mean().item() * self.gini(y[left]) + (~left).float().mean().item() * self.gini(y[~left])
                if score < best[0]: best = score, f, th
        return best
    def fit(self, x, y, depth=None):
        depth = self.depth if depth is None else depth
        score, f, th = self.split(x, y) if depth else (0, None, None)
        if f is None: return Counter(y.tolist()).most_common(1)[0][0]
        m = x[:, f] <= th
        return {'f': f, 'th': th, 'l': self.fit(x[m], y[m], depth - 1), 'r': self.fit(x[~m], y[~m], depth - 1)}

def predict(node, row):
    while isinstance(node, dict): node = node['l' if row[node['f']] <= node['th'] else 'r']
    return node

def render(node, indent=0):
    if not isinstance(node, dict): return f'{" " * indent}-> {node}'
    return '\n'.join([' ' * indent + Template('x$f <= $th').substitute(f=node['f'], th=f"{node['th']:.2f}"), render(node['l'], indent + 1), render(node['r'], indent + 1)])

def program(x, y, depth=2):
    tree = DecisionTree(depth).fit(x, y)
    pred = torch.tensor([predict(tree, r) for r in x])
    acc = (pred == y).float().mean()
    if acc < 1: print('imperfect', acc.item())
    return tree, pred, acc, render(tree)

CALLS = ["(torch.tensor([[0.,1],[1,1],[0,0],[1,0]]), torch.tensor([0,1,1,0]))", "(torch.tensor([[0.,1],[1,1],[2,0],[3,0]]), torch.tensor([0,0,1,2]))", "(torch.ones(3,2), torch.tensor([0,1,1]))", "(torch.eye(2), torch.tensor([0,1]), 0)", "(torch.zeros(0,1), torch.zeros(0,dtype=torch.long))"]
