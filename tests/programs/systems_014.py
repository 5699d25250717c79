import torch
import torch.nn.functional as F

RULES = {'life': ({3}, {2, 3}), 'highlife': ({3, 6}, {2, 3}), 'seeds': ({2}, set())}
KERNEL = torch.tensor([[1., 1, 1], [1, 0, 1], [1, 1, 1]])[None, None]

def parse_rule(s):
    if s in RULES: return RULES[s]
    b, sep, v = s.upper().partition('/')
    if not (sep and b[:1] == 'B' and v[:1] == 'S'): raise ValueError(f'bad rule {s!r}')
    return {int(c) for c in b[1:]}, {int(c) for c in v[1:]}

def step(board, birth, survive):
    p = F.pad(board[None, None], (1, 1, 1, 1), mode='circular')
    n = F.conv2d(p, KERNEL)[0, 0].round().long()
    alive = board > 0
    born = torch.zeros_like(alive)
    for k in birth: born |= n == k
    keep = torch.zeros_like(alive)
    for k in survive: keep |= n == k
    return ((alive & keep) | (~alive & born)).float()

def show(b): return '/'.join(''.join('.#'[int(v)] for v in row) for row in b)

def program(cells, shape, rule, gens):
    board = torch.zeros(shape)
    for r, c in cells: board[r % shape[0], c % shape[1]] = 1
    try: b, s = parse_rule(rule)
    except ValueError as e:
        return str(e), board.sum()
    seen, hist = {}, []
    for g in range(gens):
        key = tuple(board.flatten().int().tolist())
        if key in seen:
            print(f'cycle of {g - seen[key]} at {g}')
            break
        seen[key] = g
        hist.append(int(board.sum()))
        board = step(board, b, s)
        if not board.any():
            hist.append('dead'); break
    else:
        hist.append('open')
    return board, hist, show(board), sorted(b), len(seen)

CALLS = ["([(1,0),(1,1),(1,2)], (5,5), 'life', 6)", "([(0,1),(1,2),(2,0),(2,1),(2,2)], (6,6), 'life', 4)", "([], (3,3), 'seeds', 3)", "([(0,0),(0,1)], (4,4), 'b2/s', 5)", "([(0,0)], (3,3), 'x', 1)", "([(0,0)], (3,3), 'life', 0)"]
