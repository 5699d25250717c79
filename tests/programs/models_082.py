import torch
class Sym(type):
    def __new__(m, name, bases, ns, **k):
        ns['ops'] = tuple(n for n in ns if n.startswith('op_')); return super().__new__(m, name, bases, ns)
    def __call__(cls, *a, **k):
        key = (cls, a[:1] if a and isinstance(a[0], str) else None)
        if key[1] and key in m_cache: return m_cache[key]
        obj = super().__call__(*a, **k)
        if key[1]: m_cache[key] = obj
        return obj
    def __getitem__(cls, n): return cls(n)
    def __iter__(cls): return iter(cls.ops)
    def __len__(cls): return len(cls.ops)
m_cache = {}
class Unit(metaclass=Sym):
    def __init__(self, name, scale=1.): self.name, self.scale = name, scale
    def op_to(self, x): return x * self.scale
    def op_from(self, x): return x / self.scale
    def __call__(self, op, x): return getattr(self, 'op_' + op)(x)
class Temp(Unit, kind='offset'):
    off = 32.
    def op_to(self, x): return super().op_to(x) + self.off
    def op_from(self, x): return super().op_from(x - self.off)
def program(x, names, op):
    res = {}
    for n in names:
        cls = Temp if n.startswith('t') else Unit
        u = cls(n, len(n) / 2)
        try: res[n] = u(op, x)
        except AttributeError as e: print(e); res[n] = [*cls]
        if torch.is_tensor(res[n]) and (res[n] > 30).all(): u.scale *= 2
    return res, Unit['km'] is Unit('km'), len(Temp), bool(Unit), sorted(k[1][0] for k in m_cache), {k[1][0]: u.scale for k, u in m_cache.items()}, type(Temp).__name__
CALLS = ["(torch.ones(2), ['km','tC','m'], 'to')", "(torch.ones(2), ['km','tC'], 'to')", "(torch.arange(3.), ['tC','tC'], 'from')", "(torch.zeros(0), ['km'], 'mul')", "(torch.ones(1), [], 'to')"]
