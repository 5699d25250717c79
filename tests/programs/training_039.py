import torch

class Tape:
    def __init__(self): self.events = []
    def hook(self, name, f=None):
        def h(g):
            self.events.append((name, g.clone()))
            return f(g) if f else None
        return h

def program(x, clip, use_inplace):
    tape = Tape()
    x = x.clone().requires_grad_()
    h = x * 2
    h.retain_grad()
    handle = h.register_hook(tape.hook('h', (lambda g: g.clamp(-clip, clip)) if clip else None))
    y = h.exp()
    y.register_hook(tape.hook('y'))
    if use_inplace:
        y.mul_(2)
    z = y.sum()
    acc = []
    ph = x.register_post_accumulate_grad_hook(lambda p: acc.append(p.grad.norm().item()))
    names = [t.grad_fn.name() if t.grad_fn else None for t in (x, h, y, z)]
    try:
        z.backward(retain_graph=True)
    except RuntimeError as e:
        print(str(e)[:40])
        return str(e)[:60], tape.events, names
    g1 = x.grad.clone()
    handle.remove(); ph.remove()
    z.backward()
    third = None
    try:
        z.backward()
    except RuntimeError as e:
        third = 'second time' in str(e)
    nxt = z.grad_fn.next_functions[0][0]
    leafs = [t.is_leaf for t in (x, h, z)]
    with torch.no_grad():
        k = x * 3
        k2 = x.view(-1)
    print(leafs, k.requires_grad, k2.requires_grad)
    return g1, x.grad, h.grad, tape.events, names, third, type(nxt).__name__, leafs, len(acc), k.is_leaf, k2._base is x

CALLS = ["(torch.arange(3.)/3, 0, False)", "(torch.arange(3.)/3, .5, False)", "(torch.ones(2,2), 1., True)", "(torch.ones(0), 1., False)", "(torch.ones(()), .1, True)"]
