import torch
import io
import csv
import string
import collections

class Table:
    def __init__(self, text, sep=','):
        rd = csv.DictReader(io.StringIO(text), delimiter=sep, restkey='_extra', restval='')
        self.rows = list(rd)
        self.cols = rd.fieldnames or []
    def numeric(self, col):
        def conv(s):
            s = s.strip()
            if s in ('', 'NA', '-'): return float('nan')
            if s.endswith('%'): return float(s[:-1]) / 100
            return float(s.replace('_', ''))
        return torch.tensor([conv(r[col]) for r in self.rows])
    def kinds(self):
        for c in self.cols:
            try:
                yield c, self.numeric(c)
            except ValueError:
                cats = sorted({r[c] for r in self.rows})
                yield c, (cats, torch.tensor([cats.index(r[c]) for r in self.rows]))
    def group(self, by, col):
        v = self.numeric(col)
        g = collections.defaultdict(list)
        for r, x in zip(self.rows, v): g[r[by]].append(x)
        return {k: torch.stack(xs).nanmean() for k, xs in g.items()}
    def __str__(self):
        if not self.cols: return '(empty)'
        w = [max(len(c), *(len(r[c]) for r in self.rows), 0) for c in self.cols]
        line = '+'.join('-' * (n + 2) for n in w)
        fmt = '|'.join(f' {{:{"<>^"[i % 3]}{n}}} ' for i, n in enumerate(w))
        return '\n'.join([fmt.format(*self.cols), line, *(fmt.format(*(r[c] for c in self.cols)) for r in self.rows)])

def program(text, by, col, sep):
    t = Table(text, sep)
    try:
        g = t.group(by, col)
    except (KeyError, ValueError) as e:
        print('group:', repr(e))
        g = None
    kinds = {c: v if torch.is_tensor(v) else (v[0], v[1] + 1) for c, v in t.kinds()}
    z = {c: (v - v.nanmean()) for c, v in kinds.items() if torch.is_tensor(v)}
    out = io.StringIO()
    w = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator='\n')
    w.writerows([k, *(v.tolist() if v.dim() else [v.item()])] for k, v in z.items())
    return g, kinds, z, str(t), out.getvalue(), [r.get('_extra') for r in t.rows], string.capwords(col), string.ascii_letters[len(t.rows)]

CALLS = ["('a,b,c\\nx,1,2.5\\ny,3,NA\\nx,5,10%', 'a', 'b', ',')", "('p;q\\n1;\"two; 2\"\\n3', 'p', 'q', ';')", "('', 'a', 'b', ',')", "('a,b\\n1,2,3,4\\n', 'a', 'b', ',')", "('a\\n', 'a', 'a', ',')"]
