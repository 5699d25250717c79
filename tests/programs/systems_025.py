import torch, re
from types import SimpleNamespace

def parse_csv(text, sep=','):
    rows, row, cur, quoted, i = [], [], [], False, 0
    while i < len(text):
        c = text[i]
        if quoted:
            if c == '"':
                if text[i + 1:i + 2] == '"': cur.append('"'); i += 1
                else: quoted = False
            else: cur.append(c)
        elif c == '"' and not cur: quoted = True
        elif c == sep: row.append(''.join(cur)); cur = []
        elif c == '\n':
            row.append(''.join(cur)); cur = []; rows.append(row); row = []
        else: cur.append(c)
        i += 1
    if quoted: raise SyntaxError('unterminated quote', ('<csv>', len(rows) + 1, i, text[-5:]))
    if cur or row: rows.append(row + [''.join(cur)])
    return rows

def guess(v):
    for conv in int, float, {'true': True, 'false': False, '': None}.__getitem__:
        try: return conv(v)
        except (ValueError, KeyError): pass
    return v

class Frame:
    def __init__(self, rows):
        head, *body = rows
        self.cols = dict.fromkeys(head)
        for j, h in enumerate(head): self.cols[h] = [guess(r[j]) if j < len(r) else None for r in body]
    def __getattr__(self, n):
        if n.startswith('_') or n not in self.__dict__.get('cols', ()): raise AttributeError(n)
        return self.cols[n]
    def numeric(self):
        return {k: torch.tensor(v, dtype=torch.float64) for k, v in self.cols.items() if v and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in v)}

def program(text, sep, w):
    try: f = Frame(parse_csv(text, sep))
    except SyntaxError as e: print(e.msg, e.lineno); return e.msg, e.args, w + 1
    except ValueError as e: return str(e), w - 1
    nums = f.numeric()
    tot = {k: (v * w[: len(v)]).sum() if len(v) <= len(w) else v.mean() for k, v in nums.items()}
    if nums and max(v.max() for v in nums.values()) > 3: tot['big'] = True
    try: f.zzz
    except AttributeError as e: missing = e.args
    types = {k: sorted({type(x).__name__ for x in v}) for k, v in f.cols.items()}
    return f.cols, tot, types, missing, getattr(f, 'a', 'no a') is f.cols.get('a')

CALLS = ["('a,b,c\\n1,x,2.5\\n3,\"y,\"\"z\"\"\",true\\n', ',', torch.tensor([1.,2.]))", "('', ',', torch.ones(1))", "('a;b\\n1;2\\n3;4\\n5;', ';', torch.ones(2))", "('a,\"b', ',', torch.zeros(2))", "('a,n\\n1,nan\\n2,1e3', ',', torch.ones(9))"]
