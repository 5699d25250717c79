import torch
import math

def hann(n): return 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(n) / n)

class MelBank:
    _cache = {}
    @classmethod
    def get(cls, n_fft, n_mels):
        try:
            return cls._cache[n_fft, n_mels]
        except KeyError:
            print('new bank', n_fft)
            f = torch.linspace(0, 1, n_fft // 2 + 1)
            c = torch.linspace(0, 1, n_mels + 2)
            bank = torch.stack([torch.minimum((f - lo) / (mid - lo), (hi - f) / (hi - mid)).clamp(min=0) for lo, mid, hi in zip(c, c[1:], c[2:])])
            return cls._cache.setdefault((n_fft, n_mels), bank)

def trim(x, db):
    loud = (x.abs() > 10 ** (db / 20)).nonzero()
    if not loud.numel():
        return x[:0]
    return x[loud[0].item():loud[-1].item() + 1]

def program(x, n_fft=8, n_mels=3, db=-40):
    MelBank._cache.clear()
    x = trim(x, db)
    if (pad := -len(x) % n_fft):
        x = torch.nn.functional.pad(x, (0, pad))
    frames = x.unfold(0, n_fft, n_fft // 2) * hann(n_fft)
    spec = torch.fft.rfft(frames).abs().square()
    mel = spec @ MelBank.get(n_fft, n_mels).T
    logmel = mel.clamp(min=1e-6).log10()
    energy = [round(e, 3) for e in mel.sum(1).tolist()]
    gain = torch.empty(()).uniform_(0.5, 1, generator=torch.Generator().manual_seed(1))
    return logmel * gain, energy, MelBank.get(n_fft, n_mels) is MelBank._cache[n_fft, n_mels], len(x), frames.stride()

CALLS = ["(torch.arange(20.).sin(),)", "(torch.arange(20.).sin(), 4)", "(torch.cat([torch.zeros(5), torch.ones(9)]),)", "(torch.zeros(9),)", "(torch.arange(20.).cos(), 6, 2)"]
