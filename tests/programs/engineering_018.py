import torch
from typing import Callable
import math

class Constraint:
    registry = []
    def __init_subclass__(cls, priority=0, **kw):
        super().__init_subclass__(**kw)
        Constraint.registry.append((priority, cls.__name__, cls))
        Constraint.registry.sort()
    def apply(self, logits, prefix): return logits

class NoRepeat(Constraint, priority=2):
    def apply(self, logits, prefix):
        logits[list(set(prefix))] = -math.inf
        return logits

class MinLen(Constraint, priority=1):
    def apply(self, logits, prefix):
        if len(prefix) < 2:
            logits[0] = -math.inf
        return logits

class Boost(Constraint):
    amount = 0.5
    def apply(self, logits, prefix):
        out = logits.clone()
        out[len(prefix) % len(out)] += self.amount
        return out

def program(logits, n):
    chain = [cls() for _, _, cls in Constraint.registry]
    prefix, entropies = [], []
    for _ in range(n):
        cur = logits
        for c in chain:
            cur = c.apply(cur, prefix)
        if torch.isneginf(cur).all():
            print('dead end', prefix)
            break
        p = cur.softmax(0)
        entropies.append(-(p * p.clamp(min=1e-9).log()).sum())
        prefix += [cur.argmax().item()]
    total = sum(entropies)
    return prefix, total, logits, cur, [name for _, name, _ in Constraint.registry]

CALLS = ["(torch.tensor([3.,2.,1.]), 5)", "(torch.zeros(4), 2)", "(torch.tensor([-1.,5.,5.,0.,2.]), 3)", "(torch.ones(1), 1)"]
