import torch
import random

def top_k(logits, k):
    if k <= 0:
        return logits
    kth = logits.topk(min(k, logits.size(-1))).values[..., -1, None]
    return logits.masked_fill(logits < kth, -float('inf'))

def top_p(logits, p):
    s, idx = logits.sort(descending=True)
    cum = s.softmax(-1).cumsum(-1)
    remove = cum - s.softmax(-1) > p
    s = s.masked_fill(remove, -float('inf'))
    return torch.empty_like(logits).scatter_(-1, idx, s)

def temperature(logits, t):
    if t == 0:
        raise ZeroDivisionError('greedy')
    return logits / t

WARPERS = {'k': top_k, 'p': top_p, 't': temperature}

def sample(probs, rng):
    r, acc = rng.random(), 0.0
    for i, p in enumerate(probs.tolist()):
        acc += p
        if r < acc:
            return i
    return len(probs) - 1

def program(logits, steps, seed, **warp):
    rng = random.Random(seed)
    tokens, seen = [], {}
    for _ in range(steps):
        x = logits
        try:
            for name, arg in warp.items():
                x = WARPERS[name](x, arg)
        except ZeroDivisionError as e:
            tok = int(x.argmax())
            seen.setdefault(str(e), []).append(tok)
        else:
            probs = x.softmax(-1)
            tok = sample(probs, rng)
            seen[tok] = seen.get(tok, 0) + 1
        finally:
            tokens.append(tok)
        logits = logits.clone()
        logits[tok] -= 1.0 if logits[tok] > 0 else 0.5
    return tokens, seen, logits, x

CALLS = ["(torch.tensor([1.,2.,3.,0.]), 5, 7)", "(torch.linspace(-1,1,5), 3, 1)", "(torch.zeros(1), 2, 0)"]
