import torch, asyncio, inspect

class Stage:
    def __init__(self, f, name=None):
        self.f, self.name, self.n = f, name or f.__name__, 0
        self.sig = inspect.signature(f)
    def __ror__(self, x): return self(x)
    def __call__(self, *a, **k):
        self.n += 1
        b = self.sig.bind(*a, **k); b.apply_defaults()
        return self.f(*b.args, **b.kwargs)
    def __get__(self, obj, owner): return self if obj is None else Stage(self.f.__get__(obj), self.name)
    @property
    def wants(self): return [p.name for p in self.sig.parameters.values() if p.default is p.empty]

@Stage
def center(x, *, dim=0, keep=True): return x - x.mean(dim, keepdim=keep)
@Stage
def whiten(x, eps=1e-3):
    c = x.T @ x / max(len(x), 1)
    L, V = torch.linalg.eigh(c)
    return x @ (V * (L.clamp(min=0) + eps).rsqrt()) @ V.T
class Pipe:
    k = 2
    @Stage
    def scale(self, x, /, *rest, **opts): return x * self.k + sum(rest) + len(opts)

async def worker(q, out):
    while (item := await q.get()) is not None:
        i, t = item
        await asyncio.sleep(0)
        out[i] = t | center
    return 'done'
async def fan(xs):
    q, out = asyncio.Queue(), {}
    tasks = [asyncio.ensure_future(worker(q, out)) for _ in range(2)]
    for it in enumerate(xs): await q.put(it)
    for _ in tasks: await q.put(None)
    return await asyncio.gather(*tasks), out

def drive(coro):
    try:
        while True: coro.send(None)
    except StopIteration as e: return e.value
async def simple(x):
    async def inner(y): return y + 1
    return await inner(x) * 2

def program(x, n):
    center.n = whiten.n = 0
    p = Pipe()
    y = p.scale(x, 1, 2, a=3)
    z = None
    try: z = x | center | whiten
    except (RuntimeError, IndexError) as e: print(type(e).__name__, center.n)
    r = drive(simple(x))
    if r.sum() > 10: print('big')
    try: center(x, 1)
    except TypeError as e: err = str(e)
    try: Pipe.scale(x=1)
    except TypeError as e: err2 = str(e)
    got = inspect.getfullargspec(center.f).kwonlydefaults, inspect.iscoroutinefunction(worker), str(center.sig), Pipe.scale.wants, p.scale.wants
    return y, z, r, err, err2, got, center.n, whiten.n, p.scale is p.scale, Pipe.scale is Pipe.__dict__['scale'], [x + i for i in range(n)]

CALLS = ["(torch.arange(6.).reshape(3,2), 1)", "(torch.ones(2,2)*5, 0)", "(torch.ones(0,2), 2)", "(torch.ones(3), 1)", "(torch.tensor(1.), 1)"]
