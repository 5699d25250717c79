import torch
class Memory:
    def __init__(self, slots, dim): self.keys, self.vals, self.age = torch.zeros(slots, dim), [None] * slots, torch.zeros(slots, dtype=torch.long)
    def __setitem__(self, key, value):
        key = torch.as_tensor(key, dtype=torch.float)
        i = self.age.argmax().item() if None not in self.vals else self.vals.index(None)
        self.age += 1; self.age[i] = 0
        self.keys[i] = key; self.vals[i] = value
    def __getitem__(self, key):
        if isinstance(key, tuple): return [self[k] for k in key]
        if not any(v is not None for v in self.vals): raise LookupError('empty memory')
        w = (self.keys @ torch.as_tensor(key, dtype=torch.float)).softmax(0)
        return self.vals[w.argmax()], w
    def __contains__(self, key): return bool((self.keys == key).all(1).any())
    def __delitem__(self, i): self.vals[i] = None; self.keys[i].zero_()
    def __len__(self): return sum(v is not None for v in self.vals)
    def __bool__(self): return True
    def __iter__(self):
        for k, v in zip(self.keys, self.vals):
            if v is not None: yield k.sum().item(), v
def program(slots, items, q):
    mem = Memory(slots, len(q))
    try: mem[q]
    except LookupError as e: first = e.args[0]
    for k, v in items: mem[k] = v
    a = mem[q] if items else None
    two = mem[q, -q] if items else []
    has = q in mem
    if items: del mem[-1]
    print(len(mem), bool(mem), has)
    return first, a, two, has, list(mem), mem.age, mem.vals, not mem
CALLS = ["(2, [([1.,0],'a'),([0,1.],'b'),([1.,1.],'c')], torch.tensor([1.,1.]))", "(3, [], torch.ones(2))", "(1, [(torch.ones(3), 5)], torch.ones(3))", "(4, [([1],'x')], torch.tensor([2]).float())"]
