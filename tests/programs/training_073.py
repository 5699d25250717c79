import torch
from torch.optim.lr_scheduler import LRScheduler, SequentialLR, CosineAnnealingLR, ConstantLR, ReduceLROnPlateau, OneCycleLR

class Warm(LRScheduler):
    def __init__(self, opt, n, **kw):
        self.n = n
        super().__init__(opt, **kw)
    def get_lr(self):
        return [b * min(1, (self.last_epoch + 1) / self.n) for b in self.base_lrs]

class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(.9, .99), **extra):
        if not 0 <= lr: raise ValueError(f'bad lr {lr}')
        super().__init__(params, dict(lr=lr, betas=betas, **extra))
    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure:
            with torch.enable_grad(): loss = closure()
        for g in self.param_groups:
            b1, b2 = g['betas']
            for p in filter(lambda p: p.grad is not None, g['params']):
                st = self.state[p]
                if not st: st['m'] = torch.zeros_like(p); st['t'] = 0
                st['t'] += 1
                p.add_(torch.sign(st['m'] * b1 + p.grad * (1 - b1)), alpha=-g['lr'])
                st['m'].lerp_(p.grad, 1 - b2)
        return loss

def program(w, lr, kind, steps):
    a, b = torch.nn.Parameter(w.clone()), torch.nn.Parameter(torch.zeros(2))
    try:
        opt = Lion([{'params': a, 'lr': lr}, {'params': [b], 'betas': (.5, .5)}], tag=kind)
        sched = {'warm': lambda: Warm(opt, 3), 'seq': lambda: SequentialLR(opt, [ConstantLR(opt, .5, 2), CosineAnnealingLR(opt, 3)], [2]), 'plateau': lambda: ReduceLROnPlateau(opt, patience=0, factor=.1), 'one': lambda: OneCycleLR(opt, lr, total_steps=steps)}[kind]()
    except (ValueError, KeyError) as e:
        print(repr(e)); return repr(e), w * 2
    hooks = []
    opt.register_step_post_hook(lambda o, args, kw: hooks.append(len(o.state)))
    lrs = []
    for i in range(steps):
        def closure():
            opt.zero_grad()
            loss = (a ** 2).sum() + (b - 1).abs().sum() if i != 2 else (a ** 2).sum() * 2
            loss.backward()
            return loss
        loss = opt.step(closure)
        try: sched.step(*[loss.item()] if kind == 'plateau' else [])
        except ValueError as e: print(str(e)[:30])
        lrs.append([round(g['lr'], 5) for g in opt.param_groups])
    sd = opt.state_dict()
    o2 = Lion([{'params': [a]}, {'params': [b]}]); o2.load_state_dict(sd)
    return a, b, lrs, hooks, {k: sorted(v) for k, v in sd['state'].items()}, [g['tag'] for g in o2.param_groups], o2.state[a].get('m') is opt.state[a].get('m'), opt.state.get(b, {}).get('t'), repr(opt)[:30]

CALLS = ["(torch.ones(2,2), .1, 'warm', 4)", "(torch.ones(2), .1, 'seq', 5)", "(torch.tensor(2.), 1., 'plateau', 4)", "(torch.ones(2), -1, 'warm', 2)", "(torch.ones(0), .1, 'one', 3)", "(torch.ones(1), .1, 'warm', 0)"]
