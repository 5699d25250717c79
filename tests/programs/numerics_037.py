import torch
from collections import deque

class MovingWindow:
    def __init__(self, size):
        self._q = deque(maxlen=size)
        self._total = torch.zeros(())
    def __lshift__(self, x):
        if len(self._q) == self._q.maxlen:
            self._total = self._total - self._q[0]
        self._q.append(x)
        self._total = self._total + x
        return self
    def __bool__(self):
        return len(self._q) == self._q.maxlen
    def __float__(self):
        return float(self._total) / len(self._q)
    def __iter__(self):
        return iter(self._q)
    def __reversed__(self):
        return reversed(self._q)
    def __contains__(self, v):
        return any((x == v).item() for x in self)

def quantiles(w, qs=(0.25, 0.5, 0.75)):
    return torch.quantile(torch.stack(list(w)), torch.tensor(qs))

def program(signal, size, threshold=1.0):
    w = MovingWindow(size)
    anomalies, smooth = [], []
    for i, x in enumerate(signal):
        if w:
            dev = abs(x - float(w))
            if dev > threshold:
                anomalies.append((i, dev.item()))
                continue
        w << x
        smooth.append(float(w))
    rotated = deque(w)
    rotated.rotate(1)
    if len(anomalies) > 1:
        print('anomalies', [i for i, _ in anomalies])
    return anomalies, smooth, quantiles(w), list(reversed(w)), signal[0] in w, 99 in w, list(rotated), bool(w)

CALLS = ["(torch.tensor([1.,1.,1.,5.,1.,7.]), 2)", "(torch.tensor([1.,1.,1.,5.,1.,7.]), 2)", "(torch.arange(5.), 3, 10.)", "(torch.arange(3), 3)", "(torch.ones(2), 0)"]
