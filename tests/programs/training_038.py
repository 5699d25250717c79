import torch

def program(x, mode):
    log = []
    x0 = x.clone()
    a = x.contiguous(); log.append(('contig', a is x))
    b = x.to(x.dtype); log.append(('to', b is x))
    c = x.view(-1) if x.is_contiguous() else x.reshape(-1)
    d = x.expand_as(x); log.append(('expand', d is x, d._base is x))
    e = x.t() if x.dim() == 2 else x[...]
    log.append((e.is_contiguous(), e.stride(), e._base is x, c.data_ptr() == x.data_ptr()))
    f = torch.broadcast_tensors(x, x)[0]
    v0 = x._version
    if mode == 'add':
        x += 1
    elif mode == 'slice':
        x[..., :1] = 7
    elif mode == 'view':
        c.mul_(3)
    elif mode == 'transpose':
        e.copy_(e.flip(0))
    elif mode == 'data':
        x.data = torch.zeros(2)
    elif mode == 'set':
        x.set_(torch.ones(3))
    elif mode == 'resize':
        x.resize_(2).zero_()
    elif mode == 'out':
        r = torch.add(x, x, out=x); log.append(r is x)
    elif mode == 'diag' and x.dim() == 2:
        x.diagonal().fill_(-1); x.fill_diagonal_(4, wrap=True)
    else:
        print('nothing')
    log.append((x._version - v0, tuple(x.shape), a is x))
    c2 = c.clone()
    if c.sum() > 5:
        c -= c.mean().to(c.dtype)
    g = x.unsqueeze(0).squeeze(0)
    log.append((g is x, g.shape == x.shape))
    s = x.split(1)
    if len(s) > 1:
        s[0].zero_()
    h = x.ravel(); log.append(h is x)
    i, j = x.chunk(2) if x.shape[:1] and x.shape[0] > 1 else (x, x)
    j.add_(i.sum().to(x.dtype))
    return log, x, c, c2, e, f, g, x0, [t.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for t in (c, e, g, j)]

CALLS = [f"(torch.arange(6.).reshape(2,3), {m!r})" for m in ('add','slice','view','transpose','data','set','resize','out','diag')] + ["(torch.arange(3), 'add')", "(torch.ones(3,2).t(), 'view')", "(torch.ones(()), 'slice')", "(torch.ones(0,2), 'diag')"]
