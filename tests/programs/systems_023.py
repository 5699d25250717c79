import torch, hashlib, zlib, binascii

def crc_table(poly=0xEDB88320):
    t = []
    for i in range(256):
        for _ in range(8): i = poly ^ i >> 1 if i & 1 else i >> 1
        t.append(i)
    return t
TABLE = None
def crc32(data, crc=0):
    global TABLE
    if TABLE is None: TABLE = crc_table(); print('table built')
    crc ^= 0xFFFFFFFF
    for b in data: crc = TABLE[(crc ^ b) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
def adler(data):
    a, b = 1, 0
    for c in data: a = (a + c) % 65521; b = (b + a) % 65521
    return b << 16 | a
def fnv(data, h=0xcbf29ce484222325):
    for c in data: h = (h ^ c) * 0x100000001b3 % 2 ** 64
    return h
def luhn(s):
    d = [int(c) for c in reversed(s) if c.isdigit()]
    return sum(d[::2]) + sum(sum(divmod(2 * v, 10)) for v in d[1::2])

class Hasher:
    algos = {'crc': crc32, 'adler': adler, 'fnv': fnv}
    def __init__(self, *names): self.fns = {n: self.algos[n] for n in names or self.algos}; self.buf = bytearray()
    def update(self, data):
        if isinstance(data, torch.Tensor): data = data.to(torch.uint8).flatten().tolist()
        elif isinstance(data, str): data = data.encode()
        self.buf += bytes(data) if not isinstance(data, (bytes, bytearray)) else data
        return self
    def __iter__(self): return ((n, f(self.buf)) for n, f in self.fns.items())

def program(chunks, t):
    h = Hasher()
    errs = []
    for c in chunks:
        try: h.update(c)
        except (TypeError, ValueError) as e: errs.append(str(e))
    d = dict(h)
    ok = d['crc'] == zlib.crc32(h.buf), d['adler'] == zlib.adler32(bytes(h.buf))
    digest = hashlib.sha256(bytes(h.buf)).hexdigest()[:16]
    vec = torch.tensor([int(c, 16) for c in digest], dtype=t.dtype)
    mix = (vec[:, None] * t).sum(0)
    if ok[0]: mix = mix + 1
    try: Hasher('md9')
    except KeyError as e: errs.append(e)
    return {k: f'{v:#x}' for k, v in d.items()}, ok, digest, mix, errs, luhn('4539 1488 0343 6467'), binascii.hexlify(h.buf[:4]), h.update(b'') is h

CALLS = ["(['abc', torch.arange(5)], torch.ones(2))", "([b'xyz', [1,2,3], 300], torch.arange(3))", "([], torch.zeros(1))", "([[999], None, 'é'], torch.ones(2, dtype=torch.float64))"]
