import torch
from torch.optim import Optimizer

class Lion(Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0 <= lr:
            raise ValueError(f'Invalid lr: {lr}')
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group['betas']
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state['m'] = torch.zeros_like(p)
                    state['step'] = 0
                state['step'] += 1
                m = state['m']
                p.mul_(1 - group['lr'] * group['weight_decay'])
                update = m.mul(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(update, alpha=-group['lr'])
                m.lerp_(p.grad, 1 - b2)
        return loss

def program(x, steps, lr, wd):
    w = torch.nn.Parameter(torch.linspace(-1, 1, x.shape[-1]))
    frozen = torch.nn.Parameter(torch.ones(2))
    try:
        opt = Lion([{'params': [w], 'weight_decay': wd}, {'params': [frozen]}], lr=lr)
    except ValueError as e:
        return str(e), w
    history = []
    def closure():
        opt.zero_grad(set_to_none=True)
        loss = (x @ w).pow(2).sum()
        history.append(loss.item())
        loss.backward()
        return loss
    for i in range(steps):
        loss = opt.step(closure)
        if len(history) > 1 and history[-1] > history[-2]:
            opt.param_groups[0]['lr'] /= 2
            print('halve', i, opt.param_groups[0]['lr'])
    sd = opt.state_dict()
    return w, history, sd['state'], sd['param_groups'], frozen in opt.state, frozen.grad

CALLS = ["(torch.eye(3), 4, 0.1, 0.0)", "(torch.ones(2,5), 5, 0.7, 0.1)", "(torch.ones(1,2), 1, -1., 0.)", "(torch.eye(3), 0, 0.1, 0.)"]
