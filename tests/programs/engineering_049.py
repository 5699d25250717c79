import torch, sys, traceback, warnings, inspect

def where():
    f = sys._getframe(1)
    return f.f_code.co_name, f.f_lineno

class Checker:
    def __init__(self): self.seen = []
    def check(self, x, limit):
        self.seen.append(where())
        if x.sum() > limit:
            warnings.warn(f'limit {limit}', stacklevel=2)
            self.seen.append(inspect.currentframe().f_back.f_code.co_name)
        if x.numel() == 0:
            raise IndexError('empty')
        return x * 2

def program(x, limit):
    c = Checker()
    with warnings.catch_warnings(record=True) as rec:
        warnings.simplefilter('always')
        try:
            y = c.check(x, limit)
            y = c.check(y, limit)
            z = y[int(y.argmax()) + 1]
        except IndexError as e:
            z = [(f.name, f.lineno) for f in traceback.extract_tb(e.__traceback__)]
            y = sys.exc_info()[0] is IndexError
    c.seen.append(where())
    print([(str(w.message), w.lineno) for w in rec])
    return c.seen, y, z, sys.exc_info()

CALLS = ["(torch.arange(3.), 4)", "(torch.zeros(0), 1)", "(torch.tensor([5.,1.]), 1)", "(torch.tensor([5.,1.]), 100)"]
