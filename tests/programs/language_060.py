import torch
from functools import reduce, cmp_to_key, singledispatchmethod, partial
from locale import strcoll

class Printer:
    def __init__(self, width=4): self.width, self.depth = width, 0
    @singledispatchmethod
    def show(self, o): return f'<{type(o).__name__}>'
    @show.register
    def _(self, o: torch.Tensor):
        if o.dim() == 0: return format(o.item(), f'{self.width}.2f' if o.is_floating_point() else f'{self.width}d')
        return '[' + ' '.join(map(self.show, o)) + ']'
    @show.register(list)
    @show.register(tuple)
    def _seq(self, o):
        self.depth += 1
        try:
            if self.depth > 3: raise RecursionError('deep')
            return '\n'.join('  ' * self.depth + self.show(v) for v in o)
        finally:
            self.depth -= 1
    @show.register
    def _(self, o: bool): return 'yes' if o else 'no'
    @show.register
    def _(self, o: int | float): return f'{o:{self.width}g}'
    @show.register
    def _(self, o: None.__class__): return '-' * self.width
    @show.register
    def _d(self, o: dict):
        return self.show([*o.items()])

def version(a, b):
    pa, pb = ([int(p) if p.isdecimal() else p for p in v.split('.')] for v in (a, b))
    for x, y in zip(pa, pb):
        if type(x) is not type(y): return -1 if isinstance(x, int) else 1
        if x != y: return (x > y) - (x < y)
    return len(pa) - len(pb)

def program(o, x, versions):
    p = Printer()
    try:
        s = p.show(o)
    except (RecursionError, ValueError, TypeError) as e:
        s = str(e)
        print('depth', p.depth)
    v = sorted(versions, key=cmp_to_key(version))
    w = p.show(x * 2)
    c = cmp_to_key(version)
    return s, w, v, c('1.2') < c('1.10'), p.depth, x.sum() + len(s), max(versions, key=c, default=None), Printer.show.dispatcher.dispatch(bool).__name__ if hasattr(Printer.show, 'dispatcher') else vars(Printer)['show'].dispatcher.dispatch(bool).__name__, reduce(lambda a, b: b if version(a, b) < 0 else a, versions, '0')

CALLS = ["([1, 2.5, True, None, torch.ones(2)], torch.arange(3), ['1.10', '1.2', '1.a', '1'])", "({'a': [1, (2,)]}, torch.ones(2), [])", "('x', torch.zeros(0), ['2', '2.0'])", "([[[[1]]]], torch.tensor(3.), ['b', '1'])", "(None, torch.tensor([[1]]), ['3'])"]
