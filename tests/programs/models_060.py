import torch, enum
class Act(enum.Enum):
    RELU = enum.member(lambda x: x.clamp(min=0)) if hasattr(enum, 'member') else 0
    TANH = 'tanh'
    GELU = 'gelu'
    @classmethod
    def _missing_(cls, v):
        if isinstance(v, str):
            for m in cls:
                if m.name == v.upper(): return m
    def __call__(self, x):
        return self.value(x) if callable(self.value) else getattr(torch, self.value, getattr(torch.nn.functional, self.value, None))(x)
    def __len__(self): return len(self.name)
    def __lt__(self, o): return self.name < o.name if isinstance(o, Act) else NotImplemented
class Level(enum.IntEnum):
    LOW = 1; MID = 5; HIGH = 9
    @property
    def color(self): return {1: 'g', 5: 'y'}.get(self, 'r')
    @staticmethod
    def of(x): return max((l for l in Level if l <= x), default=Level.LOW)
def program(x, names):
    out = {}
    for n in names:
        try: a = Act(n)
        except ValueError as e: print(e); continue
        y = a(x); lvl = Level.of(y.sum().item() if y.numel() > 1 else y.sum())
        out[a] = y, lvl, lvl.color, lvl + 1, f'{lvl:>3}', f'{a!s}'
    try: Act.TANH < 3
    except TypeError as e: err = str(e)
    return {k.name: v for k, v in out.items()}, sorted(out), err, Level.MID == 5, Level.MID in {5: 1}, [len(a) for a in Act], Act['TANH'] is Act('tanh'), list(map(int, Level)), Level.__members__.keys()
CALLS = ["(torch.arange(-2.,4.), ['relu','tanh','GELU','nope'])", "(torch.tensor([9.5]), ['Relu'])", "(torch.zeros(0), [3, None])", "(torch.ones(2)*4, ['gelu','relu'])"]
