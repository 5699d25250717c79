import torch
import array
import base64
import hashlib
import zlib

class BitWriter:
    def __init__(self): self.acc, self.n, self.out = 0, 0, bytearray()
    def write(self, v, bits):
        if v >> bits: raise OverflowError(f'{v} needs more than {bits} bits')
        self.acc = self.acc << bits | v
        self.n += bits
        while self.n >= 8:
            self.n -= 8
            self.out.append(self.acc >> self.n & 0xFF)
            self.acc &= (1 << self.n) - 1
    def finish(self):
        if self.n: self.write(0, 8 - self.n)
        return bytes(self.out)

def bits_of(data):
    for b in data:
        for i in range(7, -1, -1):
            yield b >> i & 1

def quantise(x, bits):
    lo, hi = (x.min(), x.max()) if x.numel() else (torch.tensor(0.), torch.tensor(0.))
    scale = (hi - lo) / ((1 << bits) - 1)
    q = ((x - lo) / scale).round().to(torch.uint8) if scale > 0 else torch.zeros(x.shape, dtype=torch.uint8)
    return q, lo, scale

def program(x, bits, check):
    q, lo, scale = quantise(x, bits)
    w = BitWriter()
    try:
        for v in q.flatten().tolist(): w.write(v, bits - check)
    except OverflowError as e:
        print(e)
        return str(e), q, w.out, w.n
    data = w.finish()
    it = bits_of(data)
    back = [int(''.join(map(str, g)), 2) for g in zip(*[it] * bits)][:x.numel()] if bits else []
    y = torch.tensor(back, dtype=torch.float).reshape(x.shape) * scale + lo if bits else x
    a = array.array('f', x.flatten().tolist())
    mv = memoryview(data)
    buf = bytearray(data); buf[1:1] = b'--'; 
    return y, (y - x).abs().sum() <= scale * x.numel(), data, base64.b85encode(data), zlib.crc32(data), hashlib.md5(data).hexdigest()[:6], a.itemsize, a.tolist() == x.flatten().tolist(), mv[:2].hex(), mv.nbytes, buf.find(b'-'), bytes(buf).translate(None, b'-') == data, data.count(0), torch.frombuffer(bytearray(data) or bytearray(1), dtype=torch.uint8).sum(), '%s %r %x %08.3f %-4d|%+d %%' % ('s', b'\x00', 255, 3.14159, 5, 6)

CALLS = ["(torch.linspace(-1, 1, 6), 3, 0)", "(torch.ones(2, 2), 4, 0)", "(torch.arange(3.), 2, 1)", "(torch.zeros(0), 8, 0)", "(torch.arange(300.), 8, 0)"]
