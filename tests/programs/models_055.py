import torch, re
class Stemmer:
    RULES = [(r'sses$', 'ss'), (r'ies$', 'i'), (r'(?<=[^s])s$', ''), (r'(?<=..)ing$', ''), (r'(?<=..)ed$', '')]
    def __init__(self): self.rules = [(re.compile(p), r) for p, r in self.RULES]; self.memo = {}
    def __call__(self, w):
        if w in self.memo: return self.memo[w]
        out = w
        for p, r in self.rules:
            out, k = p.subn(r, out)
            if k: break
        return self.memo.setdefault(w, out)
def render(tpl, ctx):
    def sub(m):
        name, fmt = m['name'], m['fmt'] or ''
        try: v = ctx[name]
        except KeyError: return m.group(0)
        return format(v.item() if torch.is_tensor(v) and v.ndim == 0 else str(v), fmt)
    return re.sub(r'\{(?P<name>\w+)(?::(?P<fmt>[^}]*))?\}', sub, tpl)
def program(text, tpl, x):
    st = Stemmer(); toks = re.findall(r'\w+', text.lower())
    stems = [*map(st, toks)]
    ids = {s: i for i, s in enumerate(dict.fromkeys(stems))}
    bow = torch.zeros(max(1, len(ids))).index_add(0, torch.tensor([ids[s] for s in stems], dtype=torch.long), torch.ones(len(stems)))
    score = (bow * x).sum() if x.numel() == 1 else bow.sum()
    if score > 3: print('long', score.item())
    try: msg = render(tpl, {'score': score, 'n': len(toks), 'top': max(ids, key=lambda s: bow[ids[s]], default='-')})
    except ValueError as e: msg = 'ValueError: ' + str(e)
    return stems, ids, bow, score, msg, st.memo
CALLS = ["('Cats jumping jumped ponies classes', '{score:.2f} of {n} {zz} {top:>6}', torch.tensor(2.))", "('', '{score}', torch.ones(3))", "('a b', '{top:d}', torch.ones(1))", "('Is is IS', '{n:>4}|', torch.tensor(.5))"]
