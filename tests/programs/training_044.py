import torch

def auc(scores, labels):
    pos, neg = scores[labels], scores[~labels]
    if not len(pos) or not len(neg):
        return float('nan')
    cmp = (pos[:, None] > neg[None]).double() + 0.5 * (pos[:, None] == neg[None])
    return cmp.mean().item()

class Meter:
    fields = ('tp', 'fp', 'fn')
    def __init__(self, n):
        for f in self.fields:
            self.__dict__[f] = torch.zeros(n, dtype=torch.int64)
        self.confusion = torch.zeros(n, n, dtype=torch.int64)
    def __iadd__(self, pair):
        pred, true = pair
        n = len(self.tp)
        self.confusion += torch.bincount(true * n + pred, minlength=n * n).view(n, n)
        self.tp = self.confusion.diag()
        self.fp, self.fn = (self.confusion.sum(i) - self.tp for i in (0, 1))
        return self
    def __getitem__(self, key):
        p = self.tp / (self.tp + self.fp)
        r = self.tp / (self.tp + self.fn)
        return {'precision': p, 'recall': r, 'f1': 2 * p * r / (p + r), 'iou': self.tp / (self.tp + self.fp + self.fn)}[key]
    def __format__(self, spec):
        name, _, fmt = spec.partition('/')
        return ' '.join(format(v, fmt or '.2f') for v in self[name].tolist())

def program(logits, labels, chunk):
    m = m0 = Meter(logits.shape[1])
    for l, y in zip(logits.split(chunk), labels.split(chunk)):
        m += (l.argmax(1), y)
        if m['iou'].nan_to_num().min() == 1:
            print('perfect so far')
    print(f'{m:f1} | {m:recall/.3e}')
    thr = logits[:, 0].unique()
    curve = []
    for t in thr.flip(0):
        sel = logits[:, 0] >= t
        curve.append((sel.sum().item(), ((labels == 0) & sel).sum().item()))
    x = torch.tensor(curve, dtype=torch.float).cumsum(0) if curve else torch.empty(0, 2)
    area = torch.trapezoid(x[:, 1], x[:, 0])
    try:
        m['accuracy']
    except KeyError as e:
        missing = e.args[0]
    return m is m0, m.confusion, m['precision'], auc(logits[:, 0], labels == 0), curve, area, missing, m.tp._base is m.confusion

CALLS = ["(torch.tensor([[2.,1],[0,3],[1,1]]), torch.tensor([0,1,1]), 2)", "(torch.eye(3), torch.arange(3), 1)", "(torch.ones(2,2), torch.ones(2,dtype=torch.long), 5)", "(torch.ones(0,2), torch.ones(0,dtype=torch.long), 1)", "(torch.ones(2,2), torch.tensor([0,5]), 2)"]
