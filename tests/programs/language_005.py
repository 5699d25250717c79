import torch
from contextlib import contextmanager, ExitStack, suppress

LOG = []

@contextmanager
def scope(name, x):
    LOG.append(f'>{name}')
    box = {'scale': 1.0}
    try:
        yield box
    except ArithmeticError as e:
        LOG.append(f'!{name}:{e}')
        if box.get('reraise'):
            raise RuntimeError(name) from e
    else:
        LOG.append(f'={name}')
    finally:
        LOG.append(f'<{name}')
        x.mul_(box['scale'])

class Resource:
    live = 0
    def __init__(self, t): self.t = t
    def __enter__(self):
        type(self).live += 1
        return self.t + type(self).live
    def __exit__(self, et, ev, tb):
        Resource.live -= 1
        return et is KeyError

def program(x, mode):
    del LOG[:]
    y = x.clone()
    with scope('outer', x) as o:
        o['scale'] = 2.0
        with scope('inner', y) as i:
            i['scale'] = 0.5
            if mode == 'zero':
                1 // 0
            if mode == 'reraise':
                i['reraise'] = True
                raise OverflowError('big')
            z = x.sum() + y.sum()
        with suppress(NameError):
            y = y + z
    with ExitStack() as st:
        a = st.enter_context(Resource(y))
        b = st.enter_context(Resource(a))
        st.callback(LOG.append, 'callback')
        st.push(lambda *e: LOG.append(e[0].__name__ if e[0] else None))
        if mode == 'key':
            {}[mode]
        w = a * b
        keep = st.pop_all() if mode == 'keep' else None
    r = Resource.live
    if keep:
        keep.close()
    return y, locals().get('z'), locals().get('w'), list(LOG), r, Resource.live

CALLS = ["(torch.ones(3), 'none')", "(torch.arange(4.), 'zero')", "(torch.ones(2), 'key')", "(torch.ones(2), 'keep')", "(torch.ones(2), 'reraise')", "(torch.empty(0), 'none')"]
