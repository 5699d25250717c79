import torch
from operator import attrgetter, itemgetter, methodcaller

class Player:
    def __init__(self, name, skill): self.name, self.elo, self.skill, self.results = name, 1000.0, skill, []
    def expected(self, o): return 1 / (1 + 10 ** ((o.elo - self.elo) / 400))
    def beat(self, o, k=32):
        d = k * (1 - self.expected(o))
        self.elo += d; o.elo -= d
        self.results.append('W'); o.results.append('L')
    def record(self): return ''.join(self.results)

def match_up(a, b, g):
    p = torch.sigmoid(a.skill - b.skill)
    return (a, b) if torch.rand((), generator=g) < p else (b, a)

def program(skills, rounds, seed=0):
    g = torch.Generator().manual_seed(seed)
    players = [Player(f'p{i}', s) for i, s in enumerate(skills)]
    pts = dict.fromkeys(map(attrgetter('name'), players), 0)
    for r in range(rounds):
        players.sort(key=attrgetter('elo'), reverse=True)
        for a, b in zip(players[::2], players[1::2]):
            w, l = match_up(a, b, g)
            w.beat(l)
            pts[w.name] += 1
        if players and players[0].elo > 1030: print('leader', max(players, key=attrgetter('elo')).name)
    table = sorted(pts.items(), key=itemgetter(1), reverse=True)
    rec = list(map(methodcaller('record'), players))
    elo = torch.tensor([p.elo for p in players])
    top = min(players, key=lambda p: -p.elo, default=None)
    return table, rec, elo, elo.sum(), top and top.name

CALLS = ["(torch.tensor([0.,1.,2.,3.]), 2)", "(torch.tensor([0.,1.,2.,3.]), 3, 4)", "(torch.tensor([5.,0.,1.]), 3)", "([], 1)", "([1, 2], 1)"]
