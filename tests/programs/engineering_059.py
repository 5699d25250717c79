import torch
def moving(it, k):
    it = iter(it)
    window = [x for _, x in zip(range(k), it)]
    yield sum(window)
    for x in it:
        window.pop(0); window.append(x)
        yield sum(window)

def take_until(it, pred):
    for x in it:
        if pred(x): return
        yield x

def program(x, k, stop):
    it = iter(x)
    head = next(it)
    en = enumerate(it, start=10)
    i, second = next(en, (None, None))
    if head.sum() > 0:
        print('positive head')
        rest = [(j, v * 2) for j, v in en]
    else:
        rest = list(take_until(en, lambda jv: jv[1].sum() > stop))
    left = list(it)
    vals = x.flatten().tolist()
    avg = list(moving(vals, k))
    pairs = list(zip(*[iter(vals)] * 2))
    s = iter(lambda: vals.pop() if vals else None, None)
    drained = [next(s, 'end') for _ in range(2)]
    z = map(torch.add, x, x.flip(0))
    m = next(z)
    if m.max() < 5: z = filter(lambda t: t.sum() > 1, z)
    return i, second, rest, left, avg, pairs, drained, m, list(z), vals, next(it, 'spent')

CALLS = ["(torch.arange(6.).view(3,2), 2, 3.)", "(-torch.arange(8.).view(4,2), 3, -6.)", "(torch.zeros(1,2), 1, 0.)", "(torch.tensor([[-1.],[1.],[5.],[2.],[9.]]), 2, 4.)"]
