import torch
from functools import lru_cache

class Backoff:
    @property
    @lru_cache(None)
    def table(self): return torch.tensor([1., 2., 4.])
    def __call__(self, i): return self.table[min(i, 2)].item()

def attempt(fn, tries, wait):
    slept = []
    for i in range(tries):
        try: return fn(i), slept
        except ArithmeticError as e:
            slept.append(wait(i)); last = e
    raise RuntimeError(f'gave up after {tries}') from last

def program(x, ok_at, tries):
    b = Backoff()
    def work(i):
        if i < ok_at: raise FloatingPointError(x.sum().item())
        return x * i
    try: out = attempt(work, tries, b)
    except RuntimeError as e:
        print(e)
        out = str(e), type(e.__cause__), e.__cause__ and e.__cause__.args, e.__suppress_context__
    except UnboundLocalError as e: out = str(e)
    return out, b.table is b.table, x + 1

CALLS = ["(torch.ones(2), 1, 3)", "(torch.ones(2), 1, 3)", "(torch.ones(2), 5, 4)", "(torch.ones(2), 0, 0)"]
