import torch
import copy
import pickle

class Ring:
    def __init__(self, n):
        self.buf = torch.zeros(n)
        self.i = 0
        self.view = self.buf[: n // 2]
        self.me = self
        self.cb = len
    def __getstate__(self):
        d = self.__dict__.copy()
        del d['cb']
        d['ver'] = 2
        return d
    def __setstate__(self, d):
        self.__dict__.update(d)
        self.cb = sorted
    def __reduce_ex__(self, proto):
        PROTOS.append(proto)
        return super().__reduce_ex__(proto)
    def push(self, *v):
        for x in v:
            self.buf[self.i % len(self.buf)] = x
            self.i += 1
        return self

PROTOS = []

class Counter:
    total = 0
    def __copy__(self):
        Counter.total += 1
        return self

def program(n, vals):
    PROTOS.clear()
    Counter.total = 0
    r = Ring(n)
    r.tags = [Counter()] * 2
    try:
        r.push(*vals)
    except ZeroDivisionError as e:
        return str(e)
    s, d = copy.copy(r), copy.deepcopy(r)
    s.push(5)
    d.push(7.)
    d.view += 1
    print('shared', s.buf is r.buf)
    res = [s.buf is r.buf, d.buf is r.buf, d.me is d, s.me is r, d.tags[0] is d.tags[1], s.tags is r.tags, d.cb is sorted, s.cb is sorted, s.ver]
    t = copy.copy(r.tags[0]) is r.tags[0]
    x = copy.deepcopy({'a': r.buf, 'b': [r.buf]})
    p = pickle.loads(pickle.dumps((vals, {1: (2, 3)})))
    l = [1, [2]]; l.append(l)
    l2 = copy.deepcopy(l)
    return r.buf, s.i, d.buf, d.view, res, t, x['a'] is x['b'][0], PROTOS, p, l2[2] is l2, l2[1] is l[1], Counter.total

CALLS = ["(4, [1, 2, 3])", "(2, [1.5] * 3)", "(0, [])", "(0, [1])", "(3, [True])"]
