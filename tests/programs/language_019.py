import torch
import struct
import bisect
from itertools import accumulate, groupby, chain, islice, pairwise, zip_longest

HEADER = struct.Struct('<4sHHI')

def pack(t, version=1):
    body = b''.join(struct.pack('<f', v) for v in t.flatten().tolist())
    return HEADER.pack(b'TNSR', version, t.dim(), len(body)) + struct.pack(f'<{t.dim()}i', *t.shape) + body

def unpack(buf):
    magic, version, nd, n = HEADER.unpack_from(buf)
    if magic != b'TNSR':
        raise ValueError(f'bad magic {magic!r}')
    shape = struct.unpack_from(f'<{nd}i', buf, HEADER.size)
    off = HEADER.size + 4 * nd
    vals = [v for (v,) in struct.iter_unpack('<f', memoryview(buf)[off:off + n])]
    return torch.tensor(vals).reshape(shape), version

def rle(bits):
    return [(k, sum(1 for _ in g)) for k, g in groupby(bits)]

def program(ts, cut):
    blobs = [pack(t, i) for i, t in enumerate(ts)]
    offsets = [0, *accumulate(map(len, blobs))]
    data = bytearray(chain.from_iterable(blobs))
    if cut is not None:
        data[cut] ^= 0xFF
    outs, errs = [], []
    for a, b in pairwise(offsets):
        try:
            t, v = unpack(bytes(data[a:b]))
            outs.append((t + v).sum(-1) if t.dim() else t)
        except (ValueError, struct.error, RuntimeError) as e:
            errs.append((type(e).__name__, str(e)[:40]))
            print('corrupt', bisect.bisect_right(offsets, cut) - 1)
    flat = torch.cat([o.flatten() for o in outs]) if outs else torch.zeros(1)
    rl = rle((flat > flat.mean()).tolist())
    return outs, errs, offsets, rl, data.hex()[:24], list(zip_longest(offsets, islice(rl, 2), fillvalue='-')), int.from_bytes(data[:4], 'big')

CALLS = ["([torch.ones(2, 2), torch.arange(3.)], None)", "([torch.ones(2), torch.ones(3)], 0)", "([torch.tensor(2.5)], 4)", "([], None)", "([torch.arange(6.).reshape(2, 3)] * 2, 28)"]
