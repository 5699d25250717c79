import torch

class Account:
    _next = 0
    def __new__(cls, *a, **k):
        obj = super().__new__(cls)
        obj.id = Account._next
        Account._next += 1
        return obj
    def __init__(self, balance): self._balance = balance
    @property
    def balance(self): return self._balance
    @balance.setter
    def balance(self, v):
        if v < 0: raise ValueError(f'account {self.id}: insufficient funds')
        self._balance = v
    def __lt__(self, o): return self.balance < o.balance

class Transfer:
    def __init__(self, a, b, amount): self.a, self.b, self.amount = a, b, amount
    def __enter__(self):
        self.old = self.a.balance, self.b.balance
        return self
    def __exit__(self, et, ev, tb):
        if et is not None:
            self.a._balance, self.b._balance = self.old
        return et is ValueError
    def run(self):
        self.b.balance += self.amount
        self.a.balance -= self.amount

def program(balances, moves):
    Account._next = 0
    accs = [Account(b) for b in balances]
    failed = []
    for i, j, amount in moves:
        done = False
        with Transfer(accs[i], accs[j], amount) as t:
            t.run()
            done = True
        if not done: failed.append((i, j))
    total = sum(a.balance for a in accs)
    if failed: print('failed', failed)
    rich = max(accs) if accs else None
    return [a.balance for a in accs], failed, total, rich and rich.id, torch.stack([a.balance for a in sorted(accs)]), balances

CALLS = ["([torch.tensor(5.), torch.tensor(1.)], [(0,1,3.), (1,0,10.)])", "([torch.tensor(5.), torch.tensor(1.)], [(0,1,3.), (1,0,10.)])", "(torch.arange(3.), [(2,0,torch.tensor(1.))])", "([], [])", "(torch.arange(2), [(1,0,1),(0,5,1)])"]
