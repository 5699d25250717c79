import torch, inspect
from functools import wraps, update_wrapper, partial
class Pipeline:
    steps = []
    @classmethod
    def step(cls, fn=None, *, after=None, when=lambda s: True):
        if fn is None: return partial(cls.step, after=after, when=when)
        sig = inspect.signature(fn)
        @wraps(fn)
        def run(state):
            kw = {k: state[k] if k in state else p.default for k, p in sig.parameters.items()}
            if inspect.Parameter.empty in kw.values(): raise LookupError(f'{fn.__name__} misses {[k for k, v in kw.items() if v is inspect.Parameter.empty]}')
            out = fn(**kw); run.count += 1
            return out
        run.count, run.after, run.when = 0, after, when
        cls.steps.append(run)
        return run
    @classmethod
    def order(cls):
        done, out = set(), []
        while len(out) < len(cls.steps):
            ready = [s for s in cls.steps if s not in out and (s.after is None or s.after in done)]
            if not ready: raise RuntimeError('cycle')
            out += ready; done.update(s.__name__ for s in ready)
        return out
@Pipeline.step(after='center')
def scale(x, factor=2.): return {'x': x * factor}
@Pipeline.step
def center(x): return {'x': x - x.mean(), 'mean': x.mean()}
@Pipeline.step(after='scale', when=lambda s: s['x'].numel() > 2)
def whiten(x, mean, eps): return {'x': x / (x.std() + eps), 'from': mean.item()}
def program(state):
    keys = []
    try:
        for s in Pipeline.order():
            if not s.when(state): print('skip', s.__name__); continue
            out = s(state); keys.append((s.__name__, sorted(out))); state |= out
    except LookupError as e: keys.append(str(e))
    return state, keys, {s.__name__: s.count for s in Pipeline.steps}, str(inspect.signature(scale)), scale.__wrapped__ is not scale, [s.__name__ for s in Pipeline.order()]
CALLS = ["({'x': torch.arange(4.), 'eps': .1},)", "({'x': torch.ones(2), 'factor': torch.tensor(3.)},)", "({'x': torch.arange(3.)},)", "({},)", "({'x': torch.zeros(0), 'eps': 1},)"]
