import torch

def alibi(n, heads):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])
    rel = torch.arange(n)[None] - torch.arange(n)[:, None]
    return slopes[:, None, None] * rel

MASKS = {
    'causal': lambda i, j, **_: j <= i,
    'window': lambda i, j, *, w=2, **_: (i - j).abs() < w,
    'prefix': lambda i, j, *, p=1, **_: (j < p) | (j <= i),
    'dilated': lambda i, j, *, d=2, **_: (i - j) % d == 0,
}

def combine(spec, n, **kw):
    i, j = torch.arange(n)[:, None], torch.arange(n)[None]
    mask = torch.ones(n, n, dtype=torch.bool)
    for term in spec.split('&'):
        alt = torch.zeros_like(mask)
        for name in term.split('|'):
            neg = (name := name.strip()).startswith('~')
            m = MASKS[name.lstrip('~')](i, j, **kw)
            alt |= ~m if neg else m
        mask &= alt
    return mask

def program(q, spec, kw):
    n, heads = q.shape[-2], q.shape[0]
    try:
        mask = combine(spec, n, **kw)
    except KeyError as e:
        print('no mask', e)
        raise ValueError(spec) from e
    bias = alibi(n, heads)
    scores = (q @ q.transpose(-1, -2)) / q.shape[-1] ** .5 + bias
    scores = scores.masked_fill(~mask, -torch.inf)
    dead = mask.logical_not().all(-1)
    att = scores.softmax(-1)
    if dead.any():
        print('dead rows', dead.nonzero().flatten().tolist())
        att = torch.nan_to_num(att)
    ref = torch.nn.functional.scaled_dot_product_attention(q[None], q[None], q[None], attn_mask=bias.masked_fill(~mask, -torch.inf)[None])[0]
    out = att @ q
    return out, mask.int(), dead.sum().item(), torch.allclose(torch.nan_to_num(ref), out, atol=1e-4), att.count_nonzero().item()

CALLS = ["(torch.arange(16.).reshape(2,4,2)/16, 'causal', {})", "(torch.arange(20.).reshape(1,5,4)/16, 'causal & window|prefix', {'w': 2, 'p': 1})", "(torch.ones(2,3,2), '~causal', {})",
 "(torch.ones(2,3,2), 'causal&nope', {})", "(torch.ones(1,4,2), 'dilated & ~window', {'d': 3})", "(torch.ones(1,0,2), 'causal', {})", "(torch.ones(1,4,2), 'dilated', {'d': 0})"]
