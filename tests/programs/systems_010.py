import torch, textwrap

def table(rows, headers, *, align=None, floatfmt='.2f', maxw=12):
    align = align or '<' + '>' * (len(headers) - 1)
    def cell(v):
        if isinstance(v, torch.Tensor): v = v.item() if v.numel() == 1 else f'T{tuple(v.shape)}'
        if v is None: return '—'
        if isinstance(v, bool): return 'yes' if v else 'no'
        if isinstance(v, float): return f'{v:{floatfmt}}'
        if isinstance(v, int): return f'{v:,}'
        s = str(v)
        return s if len(s) <= maxw else s[:maxw - 1] + '…'
    body = [[cell(v) for v in r] for r in rows]
    widths = [max(map(len, col)) for col in zip(headers, *body)]
    line = '+'.join('-' * (w + 2) for w in widths)
    fmt = lambda r: '|'.join(f' {c:{a}{w}} ' for c, a, w in zip(r, align, widths))
    return '\n'.join([fmt(headers), line, *map(fmt, body)])

def program(groups, floatfmt):
    rows = []
    for name, t in groups.items():
        t = t.float()
        if t.numel() == 0:
            rows.append((name, 0, None, None, True)); continue
        m = t.mean()
        rows.append((name, t.numel() * 1000, m, t.std().item() if t.numel() > 1 else None, bool(m > 0)))
        if m > 100:
            print(f'{name:*^20}')
    rows.sort(key=lambda r: (r[2] is None, -(r[2].item() if r[2] is not None else 0), r[0]))
    try:
        text = table(rows, ['name', 'n', 'mean', 'std', 'pos'], floatfmt=floatfmt)
    except ValueError as e:
        text = f'ERR {e}'
    total = sum((r[2] for r in rows if r[2] is not None), torch.zeros(()))
    tail = 'total {0:{1}{2}.{3}e} {total!r:.12} {{x}}'.format(total.item(), '>', 14, 3, total=total)
    pct = '%-8s|%+6.1f%%|%05d|%x' % (len(rows), total.item(), len(text), 255)
    return text, text.splitlines()[0], tail, pct, textwrap.wrap(text.replace('\n', ' '), 30)[:2], total

CALLS = ["({'a': torch.arange(4.), 'a very long name here': torch.ones(3)*-200, 'e': torch.zeros(0)}, '.2f')", "({}, 'g')", "({'x': torch.tensor([5])}, 'd')", "({'big': torch.full((3,), 1e6), 'b': torch.eye(2)}, '12,.1f')", "({'a': torch.tensor([True,False])}, 'e')"]
