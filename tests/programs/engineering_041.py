import torch

class Visitor:
    def visit(self, node, *args):
        for cls in type(node).__mro__:
            if (m := getattr(self, f'visit_{cls.__name__}', None)) is not None:
                return m(node, *args)
        raise NotImplementedError(type(node).__name__)

class Stats(Visitor):
    def __init__(self): self.depth = self.maxdepth = 0; self.leaves = []
    def visit_dict(self, d):
        with self: return {k: self.visit(v) for k, v in d.items()}
    def visit_list(self, l):
        with self: return [self.visit(v) for v in l]
    def visit_tuple(self, t):
        with self:
            vals = (self.visit(v) for v in t)
            return type(t)(vals) if type(t) is tuple else type(t)(*vals)
    def visit_Tensor(self, t):
        self.leaves.append(t.numel())
        if t.is_floating_point() and (t < 0).any():
            return t.abs()
        return t
    def visit_object(self, o):
        return o
    def __enter__(self):
        self.depth += 1
        self.maxdepth = max(self.maxdepth, self.depth)
        return self
    def __exit__(self, *exc):
        self.depth -= 1
        return False

def flatten(tree, prefix=''):
    if isinstance(tree, dict):
        for k, v in tree.items():
            yield from flatten(v, f'{prefix}.{k}' if prefix else str(k))
    elif isinstance(tree, (list, tuple)):
        for i, v in enumerate(tree):
            yield from flatten(v, f'{prefix}[{i}]')
    else:
        yield prefix, tree

def program(tree):
    v = Stats()
    new = v.visit(tree)
    flat = dict(flatten(new))
    same = [k for k, t in flatten(tree) if t is flat[k]]
    total = sum(t.sum() for t in flat.values() if torch.is_tensor(t))
    if total > 5:
        print('big', float(total))
    return new, list(flat), same, total, v.depth, v.maxdepth, v.leaves

CALLS = ["({'a': torch.ones(2), 'b': [torch.tensor(-1.), ({'c': 3},)]},)", "([],)", "(torch.arange(5),)", "(('x', (torch.full((2,), -4.), True), torch.return_types.max((torch.ones(1), torch.zeros(1)))),)"]
