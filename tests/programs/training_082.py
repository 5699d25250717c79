import torch
import numpy as np
from array import array
import struct, json, base64, hashlib

class Codec:
    """serialise tensors to json-able blobs"""
    codes = {torch.float32: 'f', torch.int64: 'q', torch.bool: '?', torch.float64: 'd', torch.uint8: 'B'}
    @classmethod
    def pack(cls, t):
        c = cls.codes[t.dtype]
        flat = t.detach().flatten().tolist()
        raw = struct.pack(f'<{len(flat)}{c}', *flat)
        return {'dtype': c, 'shape': list(t.shape), 'data': base64.b64encode(raw).decode(), 'sha': hashlib.sha1(raw).hexdigest()[:8]}
    @classmethod
    def unpack(cls, d):
        raw = base64.b64decode(d['data'])
        if hashlib.sha1(raw).hexdigest()[:8] != d['sha']: raise ValueError('checksum')
        vals = struct.unpack(f"<{len(raw) // struct.calcsize(d['dtype'])}{d['dtype']}", raw)
        dt = {v: k for k, v in cls.codes.items()}[d['dtype']]
        return torch.tensor(vals, dtype=dt).reshape(d['shape'])

class Enc(json.JSONEncoder):
    def default(self, o):
        if isinstance(o, torch.Tensor): return {'__t__': Codec.pack(o)}
        if isinstance(o, torch.Size): return list(o)
        if isinstance(o, (set, frozenset)): return sorted(o)
        if isinstance(o, torch.dtype): return str(o)
        return super().default(o)

def hook(d): return Codec.unpack(d['__t__']) if '__t__' in d else d

def program(x, extra, tamper):
    obj = {'w': x, 'meta': {'shape': x.shape, 'dtype': x.dtype, **extra}, 'list': [x[:1] if x.dim() else x, None]}
    try: s = json.dumps(obj, cls=Enc, sort_keys=True)
    except (TypeError, KeyError) as e:
        print(type(e).__name__); return str(e), x.sum()
    if tamper: s = s.replace('A', 'B', 1)
    try: back = json.loads(s, object_hook=hook)
    except ValueError as e: return str(e)[:20], x + 1
    same = torch.equal(back['w'], x)
    buf = bytearray(x.contiguous().view(-1).numpy().tobytes())
    y = torch.frombuffer(buf, dtype=x.dtype).clone() if buf else torch.empty(0)
    z = torch.frombuffer(buf, dtype=torch.uint8) if buf else None
    if z is not None: z[:1] = 7; buf0 = buf[0]
    else: buf0 = None
    arr = array('f', x.float().flatten().tolist()); arr.append(2.5)
    q = torch.tensor(arr); r = torch.as_tensor(np.array(arr.tolist())); mv = memoryview(x.detach().numpy())
    bits = x.float().view(torch.int32) if x.dim() else None
    h = hash((x.shape, x.dtype)) == hash((back['w'].shape, back['w'].dtype))
    return back, same, y, buf0, q, r, r.dtype, bits, h, mv.shape, mv.format, len(s) > 10, x.element_size() * x.numel() == x.nbytes, int.from_bytes(buf[:2], 'little')

CALLS = ["(torch.arange(3.), {'a': {2, 1}}, False)", "(torch.arange(4).reshape(2,2), {}, False)", "(torch.ones(2), {'f': print}, False)", "(torch.zeros(3), {}, True)", "(torch.zeros(0), {'n': None}, False)", "(torch.tensor(True), {}, False)", "(torch.ones(2).half(), {}, False)"]
