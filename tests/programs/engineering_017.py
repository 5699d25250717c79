import torch
import torch.nn.functional as F

class StopCriteria:
    def __init__(self): self.reason = None
    def __call__(self, ids): raise NotImplementedError
    def __or__(self, other): return Either(self, other)

class MaxLen(StopCriteria):
    def __init__(self, n): super().__init__(); self.n = n
    def __call__(self, ids):
        if ids.shape[-1] >= self.n:
            self.reason = 'length'
            return True
        return False

class Repeat(StopCriteria):
    def __call__(self, ids):
        flat = ids.flatten().tolist()
        if len(flat) >= 4 and flat[-2:] == flat[-4:-2]:
            self.reason = f'repeat {flat[-2:]}'
            return True
        return False

class Either(StopCriteria):
    def __init__(self, *parts): super().__init__(); self.parts = parts
    def __call__(self, ids):
        return any(p(ids) for p in self.parts)
    def __getattribute__(self, name):
        if name == 'reason':
            parts = object.__getattribute__(self, 'parts')
            return next((p.reason for p in parts if p.reason), None)
        return object.__getattribute__(self, name)

def program(weight, ids, n):
    stop = MaxLen(n) | Repeat()
    ids = ids.clone()
    all_logits = []
    while not stop(ids):
        x = F.one_hot(ids[-1], weight.shape[0]).float()
        logits = F.linear(x, weight) - 0.1 * torch.bincount(ids, minlength=weight.shape[0])
        all_logits.append(logits)
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)])
        print(ids.tolist())
    return ids, stop.reason, torch.stack(all_logits) if all_logits else (), [type(p).__name__ for p in stop.parts]

CALLS = ["(torch.eye(3).roll(1,0), torch.tensor([0]), 6)", "(torch.eye(3), torch.tensor([1,2,1,2]), 9)", "(torch.tensor([[0.,1.],[1.,0.]]), torch.tensor([0]), 9)", "(torch.zeros(2,2), torch.tensor([1]), 1)"]
