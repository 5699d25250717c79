import torch

def rule_table(n): return {tuple(map(int, f'{k:03b}')): n >> k & 1 for k in range(8)}

class CA:
    def __init__(self, cells, rule=30, wrap=True):
        self.cells, self.rule, self.wrap, self.gen = cells, rule, wrap, 0
        self.table = torch.tensor([rule >> k & 1 for k in range(8)])
    def __iter__(self): return self
    def __next__(self):
        if self.gen >= 2 * len(self.cells): raise StopIteration
        old = self.cells
        l, r = old.roll(1), old.roll(-1)
        if not self.wrap: l[:1] = 0; r[-1:] = 0
        self.cells = self.table[l * 4 + old * 2 + r]
        self.gen += 1
        return old
    def __str__(self): return ''.join(' █'[c] for c in self.cells.tolist()).rstrip()

def program(seed, rule, wrap):
    ca = CA(torch.tensor([int(c) for c in seed], dtype=torch.long), rule, wrap)
    rows, texts = [], []
    for row in ca:
        rows.append(row); texts.append(str(ca))
        if ca.gen == 3: print(ca, row.sum().item(), sep='|')
        if len(rows) > 1 and torch.equal(rows[-1], rows[-2]): break
    else:
        texts.append(f'all {ca.gen}')
    pic = torch.stack(rows) if rows else None
    dens = pic.float().mean(1) if pic is not None else torch.zeros(0)
    bits = int(''.join(map(str, ca.cells.tolist())) or '0', 2)
    return pic, dens, texts, bits, hex(bits), bits.bit_count(), rule_table(rule), next(ca, 'over') if not rows else rows[0] is pic

CALLS = ["('0001000', 90, True)", "('0001000', 30, False)", "('', 110, True)", "('1111', 0, True)", "('10', 256 + 5, False)"]
