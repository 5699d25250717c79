import torch

def describe(t):
    return (str(t.dtype).split('.')[-1], tuple(t.shape), t.is_complex())

def program(sig, kind, cut):
    if kind == 'rfft':
        S = torch.fft.rfft(sig)
        freqs = torch.fft.rfftfreq(sig.shape[-1])
    elif kind == 'fft':
        S = torch.fft.fft(sig)
        freqs = torch.fft.fftfreq(sig.shape[-1])
    else:
        S = torch.view_as_complex(torch.stack([sig, sig.flip(-1)], -1).contiguous())
        freqs = torch.linspace(0, 1, sig.shape[-1])
    power = (S * S.conj()).real
    peak = power.argmax(-1)
    if peak.numel() == 1 and peak.item() == 0:
        print('dc')
        S = S.clone(); S[..., 0] = 0
    keep = freqs.abs() <= cut
    filt = S * keep
    ph = torch.where(filt.abs() > 1e-6, filt.angle(), torch.zeros(()))
    back = torch.fft.irfft(filt, n=sig.shape[-1]) if kind == 'rfft' else torch.fft.ifft(filt)
    z = complex(filt.flatten()[0].item()) * 2 + 1j
    ri = torch.view_as_real(filt)
    ri[..., 0] *= 2
    same = torch.equal(filt.real, ri[..., 0])
    c = S.conj()
    return back, ph, describe(S), describe(back), (round(z.real, 3), round(z.imag, 3)), same, c.is_conj(), c.resolve_conj().is_conj(), S.imag.abs().max(), torch.polar(power.sqrt(), S.angle()), peak

CALLS = ["(torch.sin(torch.arange(8.)), 'rfft', .3)", "(torch.sin(torch.arange(8.)), 'fft', .3)", "(torch.ones(6), 'rfft', .2)", "(torch.ones(2,4, dtype=torch.float64), 'view', .5)", "(torch.arange(5), 'fft', 1)", "(torch.ones(0), 'rfft', 1)", "(torch.ones(3, dtype=torch.complex64), 'fft', .1)"]
