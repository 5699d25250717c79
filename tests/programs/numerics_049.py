import torch, numpy as np

class AudioBuffer(np.ndarray):
    def __new__(cls, data, rate=8):
        obj = np.asarray(data, dtype=np.float32).view(cls)
        obj.rate = rate
        return obj
    def __array_finalize__(self, obj):
        self.rate = getattr(obj, 'rate', 8)
    @property
    def duration(self): return len(self) / self.rate

def resample(x, factor):
    t = torch.from_numpy(np.asarray(x))[None, None]
    return torch.nn.functional.interpolate(t, scale_factor=factor, mode='linear')[0, 0]

def program(data, rate, factor):
    buf = AudioBuffer(data, rate)
    loud = buf[np.abs(buf) > 0.5]
    out = resample(buf, factor)
    peak = out.abs().max().item()
    if peak > 1:
        out /= peak
        print(f'normalised by {peak:.3f}')
    shared = torch.from_numpy(np.asarray(buf))
    shared.mul_(2)
    zc = int((np.diff(np.sign(buf)) != 0).sum())
    return out, buf.duration, loud.rate, loud.duration, np.asarray(buf).copy(), zc, out.numpy().mean(), np.float32(peak)

CALLS = ["([0.1, -0.9, 2.0, 1.0], 4, 2.0)", "([0.1, -0.9, 2.0, 1.0], 4, 2.0)", "(np.zeros(3), 2, 0.5)", "(np.ones((2,2)), 2, 1.)", "([], 2, 1.)"]
