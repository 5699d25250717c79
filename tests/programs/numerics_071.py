import torch
from collections import defaultdict
from contextlib import contextmanager

class Profiler:
    def __init__(self):
        self.tree = defaultdict(list)
        self.stack = []
    @contextmanager
    def scope(self, name):
        self.stack.append(name)
        path = '/'.join(self.stack)
        try:
            yield self.tree[path].append
        except Exception as e:
            self.tree[path].append(f'!{type(e).__name__}')
            raise
        finally:
            assert self.stack.pop() == name

def solve(p, a, b, depth=0):
    with p.scope(f'solve{depth}') as note:
        note(tuple(a.shape))
        if a.shape[0] == 1:
            if a[0, 0] == 0: raise ZeroDivisionError('singular')
            return b / a[0, 0]
        with p.scope('pivot') as note2:
            i = a[:, 0].abs().argmax().item()
            note2(i)
            if i: 
                perm = torch.arange(len(a)); perm[0], perm[i] = i, 0
                a, b = a[perm], b[perm]
            f = a[1:, 0] / a[0, 0]
        rest = solve(p, a[1:, 1:] - f[:, None] * a[0, 1:], b[1:] - f * b[0], depth + 1)
        return torch.cat([(b[0] - a[0, 1:] @ rest)[None] / a[0, 0], rest])

def program(a, b):
    p = Profiler()
    err = None
    try:
        x = solve(p, a, b)
    except ZeroDivisionError as e:
        x, err = None, (str(e), e.__context__ is None, e.__traceback__ is not None)
        print('singular')
    return x, p.tree, p.stack, err, list(p.tree)

CALLS = ["(torch.tensor([[0.,2],[1,1]]), torch.tensor([2.,3.]))", "(torch.tensor([[0.,2],[1,1]]), torch.tensor([2.,3.]))", "(torch.ones(2,2), torch.ones(2))", "(torch.eye(3), torch.arange(3.))", "(torch.zeros(0,0), torch.zeros(0))"]
