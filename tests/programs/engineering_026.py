import torch
from enum import Enum

class Phase(Enum):
    WARM = 'warm'
    HOLD = 'hold'
    DECAY = 'decay'
    def next(self):
        members = list(type(self))
        i = members.index(self)
        return members[min(i + 1, len(members) - 1)]

class WSD:
    def __init__(self, peak, spans):
        self.peak, self.spans = peak, spans
        self.phase, self.left = Phase.WARM, spans[Phase.WARM]
        self.lr = 0.0
        self.transitions = []
    def step(self):
        while self.left <= 0 and self.phase is not Phase.DECAY:
            old, self.phase = self.phase, self.phase.next()
            self.left = self.spans.get(self.phase, 0)
            self.transitions.append((old, self.phase))
        match self.phase:
            case Phase.WARM:
                self.lr += self.peak / self.spans[Phase.WARM]
            case Phase.HOLD:
                self.lr = self.peak
            case Phase.DECAY:
                self.lr *= 0.5
        self.left -= 1
        return self.lr

def program(x, peak, spans, n):
    sched = WSD(peak, {Phase(k): v for k, v in spans.items()})
    w = x.clone()
    lrs = torch.empty(n, dtype=torch.float64)
    for i in range(n):
        lr = lrs[i] = sched.step()
        grad = 2 * w
        if (gn := grad.norm()) > 1:
            grad = grad / gn
            print(f'clip {gn.item():.3f}')
        w.sub_(grad, alpha=lr)
    return w, lrs, lr, sched.transitions, sched.phase, sched.phase.value, Phase.WARM.next() is Phase.HOLD

CALLS = ["(torch.ones(3), 0.4, {'warm': 2, 'hold': 2, 'decay': 9}, 6)", "(torch.zeros(2,2), 1.0, {'warm': 1}, 3)", "(torch.tensor([-9.]), .1, {'warm': 3, 'hold': 0}, 5)"]
