import torch
from functools import lru_cache, cache
import cmath

def fft(x):
    n = len(x)
    if n <= 1: return x
    if n % 2: raise ValueError(f'length {n} is not a power of two')
    even, odd = fft(x[::2]), fft(x[1::2])
    tw = torch.tensor([cmath.exp(-2j * cmath.pi * k / n) for k in range(n // 2)])
    t = tw * odd
    return torch.cat([even + t, even - t])

def karatsuba(a, b):
    if len(a) <= 2: 
        out = torch.zeros(2 * len(a), dtype=a.dtype)
        for i, v in enumerate(a.tolist()): out[i:i + len(b)] += v * b
        return out
    h = len(a) // 2
    lo, hi = karatsuba(a[:h], b[:h]), karatsuba(a[h:], b[h:])
    mid = karatsuba(a[:h] + a[h:], b[:h] + b[h:]) - lo - hi
    out = torch.zeros(2 * len(a), dtype=a.dtype)
    out[:2*h] += lo; out[h:3*h] += mid; out[2*h:] += hi
    return out

@cache
def fib_mat(n):
    if n == 0: return torch.eye(2, dtype=torch.int64)
    half = fib_mat(n // 2)
    sq = half @ half
    return sq @ torch.tensor([[1, 1], [1, 0]]) if n % 2 else sq

def program(x, n):
    fib_mat.cache_clear()
    try:
        spec = fft(x.to(torch.complex64))
        err = (spec - torch.fft.fft(x)).abs().max().item() < 1e-3
    except ValueError as e:
        spec, err = str(e), None
    prod = karatsuba(x, x) if len(x) & (len(x) - 1) == 0 and len(x) else None
    f = fib_mat(n)[0, 1].item()
    print(fib_mat.cache_info().currsize, f)
    return spec, err, prod, f, fib_mat(n) is fib_mat(n), fib_mat.cache_info()

CALLS = ["(torch.arange(8.), 10)", "(torch.arange(8.), 30)", "(torch.arange(6.), 0)", "(torch.arange(4), 5)", "(torch.zeros(0), 1)"]
