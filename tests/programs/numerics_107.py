import torch
from itertools import combinations, groupby
def bucket(lens, size):
    for k, g in groupby(sorted(range(len(lens)), key=lambda i: lens[i]), key=lambda i: lens[i] // size):
        yield k, [*g]
def program(seqs, size):
    out = {}
    for k, idx in bucket([len(s) for s in seqs], size):
        batch = torch.nn.utils.rnn.pad_sequence([seqs[i] for i in idx], batch_first=True, padding_value=-1)
        mask = batch != -1
        if not mask.all(): print('padding in', k, (~mask).sum().item())
        out[k] = batch, (batch * mask).sum(1) / mask.sum(1)
    far = max(combinations(out, 2), key=lambda p: abs(p[0] - p[1]), default=None)
    return out, far, [len(v[0]) for v in out.values()]
CALLS = ["([torch.ones(2), torch.arange(3.), torch.ones(7)], 2)", "([torch.ones(2), torch.arange(3.), torch.ones(7)], 2)", "([torch.ones(0)], 3)", "([], 1)", "([torch.ones(1)], 0)"]
