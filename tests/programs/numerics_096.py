import torch
from functools import lru_cache

@lru_cache(maxsize=16)
def causal_mask(n):
    return torch.full((n, n), float('-inf')).triu(1)

@lru_cache(maxsize=16)
def alibi(heads, n):
    slopes = 2 ** (-8 * torch.arange(1, heads + 1) / heads)
    rel = torch.arange(n)[None] - torch.arange(n)[:, None]
    return slopes[:, None, None] * rel

def attend(q, k, v, bias):
    s = q @ k.mT / q.shape[-1] ** 0.5 + bias
    return s.softmax(-1) @ v

def program(x, heads, layers=2):
    n, d = x.shape
    first = causal_mask(n)
    h = x.view(n, heads, d // heads).transpose(0, 1)
    for layer in range(layers):
        h = attend(h, h, h, causal_mask(n) + alibi(heads, n))
        norm = h.norm().item()
        if norm > 3:
            print('rescale', layer)
            h = h / norm
    same = first is causal_mask(n)
    scratch = causal_mask(n)
    return h.transpose(0, 1).reshape(n, d), same, alibi(heads, n) is alibi(heads, n), scratch.data_ptr() == first.data_ptr()

CALLS = ["(torch.arange(8.).reshape(2,4), 2)", "(torch.arange(8.).reshape(2,4), 2)", "(torch.arange(12.).reshape(3,4)/9, 2)", "(torch.ones(5,2), 1, 1)", "(torch.ones(1,3), 2)"]
