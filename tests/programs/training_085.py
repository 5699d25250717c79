import torch
import warnings, logging, operator
from string import Template

class Handler(logging.Handler):
    def __init__(self): super().__init__(); self.lines = []
    def emit(self, rec): self.lines.append(f'{rec.levelname}:{rec.getMessage()}')

log = logging.getLogger('eyes.d85'); log.propagate = False; log.setLevel(logging.INFO)

class Deprecated:
    def __init__(self, new): self.new = new
    def __set_name__(self, o, n): self.n = n
    def __get__(self, obj, owner):
        warnings.warn(f'{self.n} is now {self.new}', DeprecationWarning, stacklevel=2)
        return getattr(obj if obj is not None else owner, self.new)

class Model:
    weight = torch.ones(3)
    w = Deprecated('weight')
    __slots__ = ()
    def __call__(self, x): return x * self.w
    def __getattribute__(self, n):
        if n == 'secret': return Model.weight * 100
        return super().__getattribute__(n)
    def __dir__(self): return ['weight', 'w']
    def __bool__(self): log.info('asked'); return bool((self.weight > 0).all())
    def __index__(self): return int(self.weight.sum())
    def __hash__(self): return 7
    def __eq__(self, o): return isinstance(o, int) and o == 7
    def __len__(self): raise NotImplementedError
    def __contains__(self, x): return x.shape[-1:] == self.weight.shape

def check(x):
    if x.isnan().any(): log.error('nan in %s', tuple(x.shape)); raise FloatingPointError('nan')
    if (m := x.abs().max() if x.numel() else torch.tensor(0.)) > 10: log.warning('large %.1f', m)
    return x

def program(x, w, strict):
    h = Handler(); log.addHandler(h)
    Model.weight = w
    m = Model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('error' if strict else 'always')
        try: y = check(m(x))
        except DeprecationWarning as e: y = str(e)
        except FloatingPointError as e: log.exception('bad') if False else log.critical(e); y = None
        except RuntimeError as e: y = str(e)[:20]
        finally: log.removeHandler(h)
        n = len(caught)
    log.addHandler(h)
    branch = 'yes' if m else 'no'
    log.removeHandler(h)
    try: idx = operator.index(m), [0, 1, 2, 3, 4][m]
    except (IndexError, ValueError, OverflowError) as e: idx = type(e).__name__
    d = {7: 'seven'}
    s = m.secret
    t = Template('$a/$b').safe_substitute(a=tuple(x.shape), b=n)
    try: len(m)
    except NotImplementedError as e: ln = repr(e)
    try: m.new = 1
    except AttributeError as e: sl = 'has no' in str(e)
    print(h.lines)
    return y, n, [(str(c.message), c.category.__name__) for c in caught], h.lines, branch, idx, d.get(m), s, t, ln, sl, dir(m), x in m, m == 7, 7 == m, m in d

CALLS = ["(torch.ones(2,3), torch.ones(3), False)", "(torch.ones(3)*20, torch.arange(3.), False)", "(torch.ones(3), torch.ones(3), True)", "(torch.full((3,), float('nan')), -torch.ones(3), False)", "(torch.zeros(0), torch.ones(1), False)", "(torch.ones(2), torch.ones(3), False)"]
