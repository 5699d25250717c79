import torch

def isqrt(n):
    if n < 0: raise ValueError('negative')
    x = 1 << (n.bit_length() + 1) // 2
    while True:
        y = (x + n // x) >> 1 if x else 0
        if y >= x: return x
        x = y

def egcd(a, b): return (a, 1, 0) if b == 0 else (lambda g, x, y: (g, y, x - a // b * y))(*egcd(b, a % b))

class Bits(int):
    def __new__(cls, v, width=64): o = super().__new__(cls, v & (1 << width) - 1); o.width = width; return o
    def __getitem__(self, i):
        if isinstance(i, slice):
            idx = range(self.width)[i]; return Bits(sum((self >> k & 1) << j for j, k in enumerate(idx)), len(idx))
        if not -self.width <= i < self.width: raise IndexError(i)
        return self >> (i % self.width) & 1
    def rotl(self, k): k %= self.width; return Bits(self << k | self >> self.width - k, self.width)
    def __invert__(self): return Bits(int.__invert__(self), self.width)
    def gray(self): return Bits(self ^ self >> 1, self.width)

def morton(r, c):
    m = torch.zeros_like(r)
    for b in range(8): m |= (r >> b & 1) << 2 * b + 1 | (c >> b & 1) << 2 * b
    return m

def program(n, m, t):
    out = {}
    for f in (isqrt, lambda v: pow(v, -1, m), lambda v: egcd(v, m), lambda v: divmod(-v, m), lambda v: v.to_bytes(8, 'big', signed=True).hex()):
        key = f.__name__ if f.__name__ != '<lambda>' else f'l{len(out)}'
        try: out[key] = f(n)
        except (ValueError, ZeroDivisionError, OverflowError) as e: out[key] = f'{type(e).__name__}: {e}'
    b = Bits(n, 16)
    print(f'{b:#018b} {b.gray():04x}')
    out['bits'] = b[0], b[-1], b[4:8], b[::-1], b.rotl(5), ~b, (b + 1).__class__.__name__, b[4:8].width
    try: b[16]
    except IndexError as e: out['ix'] = e.args
    z = morton(t, t.flip(0))
    pc = torch.tensor([int(v).bit_count() for v in z])
    big = n ** 20 % (2 ** 89 - 1) if n else 0
    return out, z, pc, big, str(big)[::-1], float(n) * t, (t << (n & 3)), n * 2 ** 63 > 0

CALLS = ["(17, 5, torch.arange(4))", "(-3, 7, torch.arange(3))", "(2**40+1, 2**20, torch.tensor([255, 1]))", "(0, 0, torch.zeros(0, dtype=torch.long))", "(2**70, 97, torch.arange(2))"]
