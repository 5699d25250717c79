import torch
from types import SimpleNamespace
import random

def center(img): return img - img.mean()
def gamma(img, *, g=2.0): return img.clamp(min=0) ** g
def noise(img, std=0.1): return img + std * torch.randn_like(img)
def rot(img, k=None):
    k = random.randint(0, 3) if k is None else k
    return torch.rot90(img, k, (-2, -1))
OPS = {f.__name__: f for f in (center, gamma, noise, rot)}

def parse(spec):
    for part in filter(None, spec.split('|')):
        name, _, args = part.strip().partition(':')
        kw = {}
        for kv in args.split(',') if args else ():
            k, v = kv.split('=')
            kw[k] = int(v) if v.isdigit() else float(v)
        yield name, kw

def program(img, spec, prob=1.0):
    random.seed(4); torch.manual_seed(4)
    ns = SimpleNamespace(applied=[], skipped=0)
    for name, kw in parse(spec):
        if random.random() > prob:
            ns.skipped += 1
            continue
        try:
            img = OPS[name](img, **kw)
        except KeyError as e:
            ns.error = f'unknown op {e}'
            break
        ns.applied.append((name, kw, img.std().item()))
        if img.std() > 3: print('wide after', name)
    else:
        ns.error = None
    return img, ns, vars(ns).keys(), random.random()

CALLS = ["(torch.arange(6.).reshape(2,3), 'center | gamma:g=3|rot')", "(torch.arange(6.).reshape(2,3), 'center | gamma:g=3|rot')", "(torch.arange(4.).reshape(2,2), 'noise:std=0.5|rot:k=1|blur|center', .9)", "(torch.ones(2,2), '')", "(torch.ones(2,2), 'gamma:x=1')"]
