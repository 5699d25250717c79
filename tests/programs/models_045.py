import torch, math
def lowpass(x, cut, order=2):
    n = x.shape[-1]; X = torch.fft.rfft(x); f = torch.fft.rfftfreq(n)
    H = 1 / (1 + (f / cut) ** (2 * order)).sqrt()
    return torch.fft.irfft(X * H, n=n), H
def peaks(x, thr=0.):
    i = 1
    while i < len(x) - 1:
        if x[i - 1] < x[i] >= x[i + 1] and x[i] > thr:
            yield i, x[i].item(); i += 2
        else: i += 1
class Window:
    KINDS = {}
    def __class_getitem__(cls, k): return cls.KINDS[k]
    @classmethod
    def kind(cls, name):
        def deco(f): cls.KINDS[name] = f; return f
        return deco
@Window.kind('hann')
def _(n): return torch.hann_window(n)
@Window.kind('tri')
def _(n): return 1 - (torch.arange(n) - (n - 1) / 2).abs() / (n / 2)
def stft(x, size, hop, kind):
    w = Window[kind](size)
    return torch.stack([torch.fft.fft(x[i:i + size] * w).abs()[:size // 2 + 1] for i in range(0, len(x) - size + 1, hop)])
def program(n, freqs, cut, kind):
    t = torch.arange(n) / max(n, 1)
    x = sum((torch.sin(2 * math.pi * f * t) for f in freqs), torch.zeros(n))
    try: y, H = lowpass(x, cut)
    except (RuntimeError, ZeroDivisionError) as e: return type(e).__name__
    pk = list(peaks(y, .1))
    try: S = stft(x, 8, 4, kind)
    except KeyError as e: S = e.args
    except RuntimeError as e: S = str(e)[:40]
    print([p for p, _ in pk][:3])
    e = (x.square().sum() - y.square().sum()) / n
    return y, H, pk, S, e, _.__name__, list(Window.KINDS)
CALLS = ["(32, [2,10], .2, 'hann')", "(16, [], .3, 'tri')", "(0, [1], .1, 'tri')", "(17, (1.5,), torch.tensor(.1), 'zz')", "(4, [1], .25, 'hann')"]
