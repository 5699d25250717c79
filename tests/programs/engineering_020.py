import torch
import numpy as np
from collections import deque

class Speculative:
    def __init__(self, draft, target, gamma=2):
        self.draft, self.target, self.gamma = draft, target, gamma
        self.accepted = deque(maxlen=4)
    def __call__(self, tok, n, u):
        u = iter(u)
        out = [tok]
        while len(out) < n:
            proposal, cur = [], out[-1]
            for _ in range(self.gamma):
                cur = int(self.draft[cur].argmax())
                proposal.append(cur)
            prev, ok = out[-1], 0
            for t in proposal:
                p, q = self.target[prev], self.draft[prev]
                ratio = p[t] / q[t]
                if (r := next(u, None)) is None:
                    break
                if r > ratio:
                    residual = (p - q).clamp_(min=0)
                    out.append(residual.argmax().item())
                    break
                ok += 1
                out.append(t)
                prev = t
            self.accepted.append(ok)
            if r is None:
                break
        return out

def program(a, b, tok, n, u):
    draft, target = a.softmax(1), b.softmax(1)
    spec = Speculative(draft, target, gamma=3)
    out = spec(tok, n, u)
    arr = np.asarray(spec.accepted, dtype=np.float32)
    rate = torch.from_numpy(arr).mean() if arr.size else None
    arr *= 2
    joint = torch.stack([target[i, j] for i, j in zip(out, out[1:])] or [torch.zeros(())]).log().sum()
    return out, rate, arr, joint, spec.accepted

CALLS = ["(torch.eye(3), torch.eye(3).roll(1,0), 0, 6, [.1,.9,.5,.99,.2,.3])", "(torch.eye(2), torch.eye(2), 1, 4, [.5]*8)", "(torch.zeros(4,4), torch.arange(16.).view(4,4).cos(), 2, 9, [0.9, 1.0, .4])", "(torch.eye(2), torch.eye(2), 1, 1, [])"]
