import torch

FREE = {'a': 0}

def make(kind):
    total = 0
    cells = []
    def add(x):
        nonlocal total
        total = total + x
        return total
    def reset():
        nonlocal total
        old, total = total, 0
        return old
    for i in range(3):
        def f(x, i=i):
            cells.append(i)
            return x * i + total
        def g(x):
            return x * i + total
        cells_f = f if kind == 'default' else g
        yield cells_f
    try:
        yield add
    finally:
        del i
        yield reset, cells
    del total

def unbound(x, flag):
    if flag:
        z = x + 1
    def inner():
        return z * 2
    try:
        return inner()
    except NameError as e:
        return type(e).__name__, str(e)
    finally:
        if flag: del z
        try:
            inner()
        except NameError as e:
            FREE['a'] += 1
            FREE['msg'] = str(e)

def shadow(x):
    global COUNT
    COUNT = globals().get('COUNT', 0) + 1
    try:
        print(undefined_name)
    except NameError as undefined:
        name = undefined.name
    try:
        undefined
    except UnboundLocalError as e:
        return x + COUNT, name, str(e)

def program(x, kind, flag):
    globals().pop('COUNT', None)
    FREE['a'] = 0
    gen = make(kind)
    *fs, add = [next(gen) for _ in range(4)]
    outs = [f(x) for f in fs]
    add(x); add(1)
    outs += [f(x) for f in fs]
    reset, cells = next(gen)
    try:
        outs.append(fs[0](x))
    except NameError as e:
        outs.append(str(e))
    r = reset()
    list(gen)
    try:
        add(1)
    except NameError as e:
        last = str(e)
    s = shadow(x), shadow(x)
    u = unbound(x, flag)
    import math as m
    comp = [m.floor(v) for v in x.flatten().tolist() if (top := v) >= 0]
    return outs, cells, r, last, s, u, dict(FREE), COUNT, comp, locals().get('top'), [c.cell_contents for c in shadow.__closure__ or ()], fs[1].__closure__ is not None and len(fs[1].__closure__)

CALLS = ["(torch.arange(3.), 'default', True)", "(torch.ones(2), 'late', False)", "(torch.zeros(0), 'late', True)", "(torch.tensor(2.), 'default', False)", "(-torch.ones(1, 1), '', True)"]
