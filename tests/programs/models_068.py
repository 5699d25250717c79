import torch, copy
class Tree:
    def __init__(self, value, *kids): self.value, self.kids = value, list(kids)
    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self)); memo[id(self)] = new
        new.value = copy.deepcopy(self.value, memo); new.kids = [copy.deepcopy(k, memo) for k in self.kids]; new.copied = True
        return new
    def __iter__(self): yield self; [(yield_) for yield_ in ()]; yield from (n for k in self.kids for n in k)
    def map(self, f): return Tree(f(self.value), *(k.map(f) for k in self.kids))
    def __getattr__(self, n):
        if n == 'copied': return False
        raise AttributeError(f'Tree has no {n}')
    def reduce(self, f, acc=None):
        for n in self: acc = n.value if acc is None else f(acc, n.value)
        return acc
    def __reduce_ex__(self, p): return (Tree, (self.value, *self.kids))
def program(x, k):
    shared = Tree(x)
    t = Tree(x * 2, shared, Tree(x + 1, shared), *[Tree(x * i) for i in range(k)])
    d = copy.deepcopy(t); s = copy.copy(t)
    d.kids[0].value.add_(100)
    linked = d.kids[0] is d.kids[1].kids[0], d.kids[0].value is d.kids[1].kids[0].value
    s.kids.append(Tree(-x))
    total = t.reduce(torch.add)
    if total.sum() > 5: print('total', total.tolist())
    m = t.map(torch.sum).reduce(max)
    try: t.colour
    except AttributeError as e: err = str(e)
    return total, m, linked, d.copied, t.copied, s.copied, len(list(t)), len(list(s)), s.value is t.value, err, hasattr(d, 'zip'), d.reduce(lambda a, b: a + b), x
CALLS = ["(torch.ones(2), 1)", "(torch.arange(3.), 0)", "(torch.zeros(0), 2)", "(torch.tensor(-1.), 3)"]
