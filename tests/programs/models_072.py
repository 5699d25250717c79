import torch, torch.nn as nn
def grad_stats(model):
    for n, p in model.named_parameters():
        if p.grad is None: yield n, None
        else: yield n, {'norm': p.grad.norm().item(), 'zero': (p.grad == 0).float().mean().item(), 'snr': (p.grad.mean().abs() / p.grad.std().clamp(min=1e-8)).item() if p.numel() > 1 else None}
class Accum:
    def __init__(self, model, opt, every, clip): self.model, self.opt, self.every, self.clip, self.k = model, opt, every, clip, 0; self.log = []
    def __call__(self, loss):
        (loss / self.every).backward(); self.k += 1
        if self.k % self.every: return False
        n = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip, error_if_nonfinite=True)
        self.log.append(round(n.item(), 3)); self.opt.step(); self.opt.zero_grad(); return True
def program(x, every, clip, freeze):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(x.shape[-1], 3), nn.LayerNorm(3), nn.Linear(3, 1)); stepped = []
    if freeze is not None: m[freeze].requires_grad_(False)
    opt = torch.optim.AdamW([{'params': [p for p in m.parameters() if p.ndim > 1], 'weight_decay': .1}, {'params': [p for p in m.parameters() if p.ndim <= 1], 'lr': .01}], lr=.05)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, [lambda e: 1 / (e + 1), lambda e: .5 ** e])
    acc = Accum(m, opt, every, clip); stats = {}
    for i in range(4):
        try: stepped.append(acc((m(x * (i + 1)) ** 2).mean()))
        except RuntimeError as e: stepped.append(str(e)[:25]); print('abort', i); break
        if stepped[-1]: sched.step()
        else: stats = dict(grad_stats(m))
    return stepped, stats, acc.log, [round(g['lr'], 5) for g in opt.param_groups], m(x), sorted({k for s in opt.state.values() for k in s}), len(opt.state)
CALLS = ["(torch.arange(4.).reshape(2,2), 2, 1., None)", "(torch.ones(1,2), 1, .01, 0)", "(torch.full((1,2), float('nan')), 1, 1., None)", "(torch.ones(2,2), 3, torch.inf, 2)"]
