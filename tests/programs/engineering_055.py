import torch
import numpy as np

class Stats:
    def __init__(self, shape): self.n, self.mean, self.m2 = 0, np.zeros(shape), np.zeros(shape)
    def push(self, x):
        self.n += 1
        d = x - self.mean
        self.mean += d / self.n
        self.m2 += d * (x - self.mean)
    var = property(lambda s: s.m2 / max(s.n - 1, 1))

def program(x, thresh):
    st = Stats(x.shape[1:])
    shared = x.numpy()
    view = torch.from_numpy(shared[::2])
    for row in shared:
        st.push(row)
        if st.var.max() > thresh:
            row *= np.float32(0.5)
            print('damp', st.n, float(row.sum()))
    y = x + np.float64(1) * torch.ones(1)
    z = torch.tensor(np.float32(2)) * st.mean.sum()
    idx = np.argsort(x.sum(1).numpy(), kind='stable')[::-1]
    w = x[idx.copy()]
    k = np.int64(1)
    return y, z, view, w, st.mean, st.var, x[k:], x.sum().numpy() + 1, type(x.sum().item() * k).__name__, np.float32(x.max()) == shared.max()

CALLS = ["(torch.arange(6.).view(3,2), 1.)", "(torch.ones(2,2,2), 0.)", "(torch.arange(3.)[:,None]*10, 50)", "(torch.ones(1,1), -1)"]
