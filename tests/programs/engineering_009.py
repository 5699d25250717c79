import torch
import json
from contextlib import contextmanager

_state = {'depth': 0, 'log': []}

@contextmanager
def section(name):
    _state['depth'] += 1
    _state['log'].append(('enter', name, _state['depth']))
    try:
        yield _state['depth']
    except ValueError as e:
        _state['log'].append(('error', str(e)))
    finally:
        _state['log'].append(('exit', name))
        _state['depth'] -= 1

def tokenize(text, vocab):
    for w in text.split():
        if w not in vocab:
            raise ValueError(f'unknown {w!r}')
        yield vocab[w]

def program(text, vocab, x):
    _state['log'].clear()
    ids = []
    y = x * 2
    with section('tokenize') as d:
        y = y + d
        for i in tokenize(text, vocab):
            ids.append(i)
            y[i % len(y)] += i
            with section('inner') as d2:
                if y.sum() > 30:
                    raise ValueError('overflow %.1f' % y.sum().item())
                y += d2
        y = y.neg()
    z = y.cumsum(0)
    config = json.loads(json.dumps({'ids': ids, 'vocab': vocab}, sort_keys=True))
    return y, z, ids, list(_state['log']), config

CALLS = ["('a b c', {'a':1,'b':2,'c':3}, torch.arange(3.))", "('a z', {'a':1}, torch.arange(4.))", "('', {}, torch.zeros(2))", "('a a a a', {'a':9}, torch.ones(4))"]
