import torch
from typing import Iterator
import random

class BucketSampler:
    def __init__(self, lengths, batch_size, boundaries, seed=0, drop_last=False):
        self.lengths, self.batch_size = lengths, batch_size
        self.boundaries, self.seed, self.drop_last = boundaries, seed, drop_last
        self.epoch = 0
    def bucket(self, n):
        return torch.bucketize(torch.tensor(n), torch.tensor(self.boundaries)).item()
    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        self.epoch += 1
        buckets = {}
        order = list(range(len(self.lengths)))
        rng.shuffle(order)
        for i in order:
            b = buckets.setdefault(self.bucket(self.lengths[i]), [])
            b.append(i)
            if len(b) == self.batch_size:
                yield b.copy()
                b.clear()
        if not self.drop_last:
            for k in sorted(buckets):
                if rest := buckets[k]:
                    yield rest
    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

def program(data, batch_size, boundaries, drop):
    lengths = [len(t) for t in data]
    sampler = BucketSampler(lengths, batch_size, boundaries, drop_last=drop)
    waste, batches = 0, []
    for epoch in range(2):
        for idx in sampler:
            x = torch.nn.utils.rnn.pad_sequence([data[i] for i in idx], batch_first=True, padding_value=-1)
            pad = (x == -1).sum().item()
            waste += pad
            if pad:
                print('pad', pad, x.shape)
            batches.append((idx, x.masked_fill(x == -1, 0).sum(1)))
    return batches, waste, len(sampler), sampler.epoch

CALLS = ["([torch.arange(float(n)) for n in (1,5,2,4,3,5)], 2, [2, 4], False)", "([torch.ones(3)], 2, [1], True)", "([], 1, [], False)", "([torch.arange(float(n)) for n in (3,3,1,7)], 3, [5], False)"]
