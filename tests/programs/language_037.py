import torch

class Undo:
    """context manager with rollback by snapshotting attributes"""
    def __init__(self, obj, *names):
        self.obj, self.names, self.saved = obj, names, None
    def __enter__(self):
        self.saved = {n: getattr(self.obj, n, MISSING) for n in self.names}
        return self
    def commit(self): self.saved = None
    def __exit__(self, et, ev, tb):
        if self.saved is None: return False
        for n, v in self.saved.items():
            if v is MISSING:
                vars(self.obj).pop(n, None)
            else:
                setattr(self.obj, n, v)
        return et is not None and issubclass(et, Abort)

MISSING = object()
class Abort(Exception): pass
class Account: pass

def step(acc, amount, fail):
    with Undo(acc, 'balance', 'last', 'temp') as tx:
        acc.temp = True
        acc.balance = acc.balance - amount
        acc.last = amount
        if (acc.balance < 0).any():
            raise Abort('overdraft')
        if fail == 'soft':
            return 'soft'
        if fail == 'hard':
            raise KeyError('hard')
        tx.commit()
        return 'done'
    return 'aborted'

def program(start, ops):
    acc = Account()
    acc.balance = start
    orig = acc.balance
    res = []
    for amount, fail in ops:
        try:
            res.append(step(acc, amount, fail))
        except KeyError as e:
            res.append(e.args)
        except TypeError as e:
            res.append('type')
        else:
            if res[-1] != 'done':
                print(res[-1], acc.balance.tolist())
                continue
            acc.count = getattr(acc, 'count', 0) + 1
        finally:
            res.append('temp' in vars(acc))
    return acc.balance, vars(acc), res, acc.balance is orig

CALLS = ["(torch.full((2,), 10.), [(3, ''), (torch.tensor([1., 20.]), ''), (1, 'soft'), (1, 'hard'), (2, '')])", "(torch.ones(1), [(5, '')])", "(torch.ones(1), [])", "(torch.zeros(0), [(1, ''), (1, 'hard')])", "(torch.ones(1), [('x', '')])"]
