import torch, string
class Template(string.Template):
    delimiter = '%'; idpattern = r'[a-z][_a-z0-9]*'
class Report:
    def __init__(self, **cols): self.cols = cols
    def __enter__(self): self.lines = []; return self.lines.append
    def __exit__(self, *e): self.text = '\n'.join(self.lines); return True
    def __str__(self):
        w = {k: max([len(k)] + [len(f'{v:g}') for v in t.tolist()]) for k, t in self.cols.items()}
        head = ' | '.join(k.center(w[k], '.') for k in w)
        rows = [' | '.join(f'{v:>{w[k]}g}' for k, v in zip(w, r)) for r in zip(*(t.tolist() for t in self.cols.values()))]
        return '\n'.join([head, '-+-'.join('-' * n for n in w.values()), *rows])
def bars(t, width=10):
    m = t.abs().max() if t.numel() else 1
    for v in t: yield ('+' if v >= 0 else '-') * int(round(float(v.abs() / m) * width))
def program(x, y, tpl):
    r = Report(x=x, diff=x - y.mean())
    with r as w:
        w(str(r)); w(Template(tpl).safe_substitute(n=len(x), mean=f'{x.mean():.3f}', t=x[:1]))
        for b in bars(x): w(b)
        w(Template(tpl).substitute(n=1)); w('unreachable')
    if x.sum() > y.sum(): print(r.text.splitlines()[0].title())
    return r.text, r.lines, x - y.mean(), '%s %r %d%%' % (x[0], x.shape, 50) if len(x) else '%5.1f|%-4s|' % (1.25, 'a'), '{0.shape} {0.dtype!s:>15} {1[0]}'.format(x, [1]), x.mean().__format__('.2f')
CALLS = ["(torch.tensor([1.,-2.5,10.]), torch.ones(2), 'n=%n mean=%mean %t %zz')", "(torch.zeros(2), torch.zeros(1), 'plain %%')", "(torch.zeros(0), torch.zeros(1), '%n')", "(torch.tensor([1e6]), torch.zeros(1), '%{n}x % bad')"]
