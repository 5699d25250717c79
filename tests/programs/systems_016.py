import torch

class Contradiction(Exception): pass

class Sudoku:
    def __init__(self, text, n=2):
        self.n, self.N = n, n * n
        self.cand = [set(range(1, self.N + 1)) for _ in range(self.N ** 2)]
        self.steps = 0
        for i, ch in enumerate(text):
            if ch.isdigit() and ch != '0': self.assign(i, int(ch))
    def peers(self, i):
        N, n = self.N, self.n
        r, c = divmod(i, N)
        yield from (r * N + k for k in range(N) if k != c)
        yield from (k * N + c for k in range(N) if k != r)
        br, bc = r // n * n, c // n * n
        for a in range(br, br + n):
            for b in range(bc, bc + n):
                if a != r and b != c: yield a * N + b
    def assign(self, i, v):
        if v not in self.cand[i]: raise Contradiction(f'{v} at {divmod(i, self.N)}')
        for o in self.cand[i] - {v}: self.drop(i, o)
    def drop(self, i, v):
        if v not in self.cand[i]: return
        self.cand[i].discard(v); self.steps += 1
        if not self.cand[i]: raise Contradiction(f'empty {i}')
        if len(self.cand[i]) == 1:
            only, = self.cand[i]
            for p in self.peers(i): self.drop(p, only)
    def solve(self):
        open_ = [(len(c), i) for i, c in enumerate(self.cand) if len(c) > 1]
        if not open_: return True
        _, i = min(open_)
        for v in sorted(self.cand[i]):
            saved = [c.copy() for c in self.cand]
            try:
                self.assign(i, v)
                if self.solve(): return True
            except Contradiction: pass
            self.cand = saved
        return False

def program(text, weights):
    try:
        s = Sudoku(text)
    except Contradiction as e:
        print('contradiction', e)
        return str(e), weights.sum()
    before = [len(c) for c in s.cand]
    ok = s.solve()
    t = torch.tensor([min(c) if c else 0 for c in s.cand]).view(s.N, s.N)
    checks = [(t.sum(d) == 10).all() for d in (0, 1)] + [(t.unfold(0, 2, 2).unfold(1, 2, 2).sum((-1, -2)) == 10).all()]
    score = (t * weights).sum()
    if all(checks): score = score + 100
    return t, ok, before, score, s.steps, [c.item() for c in checks]

CALLS = ["('1...' '..3.' '.4..' '...2', torch.ones(4))", "('11', torch.ones(4))", "('', torch.arange(4.))", "('1234' '3412' '2143' '4321', torch.eye(4))"]
