import torch
from collections import defaultdict
from contextlib import ExitStack, suppress

class Meter:
    def __init__(self, fmt='{avg:.3f}'):
        self.fmt = fmt
        self.reset()
    def reset(self):
        self.val = self.sum = 0.
        self.count = 0
    @property
    def avg(self):
        return self.sum / self.count
    def update(self, val, n=1):
        if isinstance(val, torch.Tensor):
            val = val.item()
        self.val = val
        self.sum += val * n
        self.count += n
    def __str__(self):
        return self.fmt.format(avg=self.avg, val=self.val, **{'sum': self.sum})

class MetricLogger:
    def __init__(self):
        self.meters = defaultdict(Meter)
    def update(self, n=1, **values):
        for k, v in values.items():
            self.meters[k].update(v, n)
    def __getattr__(self, name):
        if name in self.__dict__.get('meters', ()):
            return self.meters[name]
        raise AttributeError(f'{type(self).__name__!r} has no {name!r}')
    def __str__(self):
        return '  '.join(f'{k}: {m}' for k, m in self.meters.items())

def topk_acc(logits, target, ks=(1, 2)):
    _, pred = logits.topk(max(ks), 1)
    hit = pred.eq(target[:, None])
    return {f'top{k}': hit[:, :k].any(1).float().mean() for k in ks}

def program(batches):
    log = MetricLogger()
    log.meters['top1'].fmt = '{val:.2f} ({avg:.2f})'
    for logits, target in batches:
        loss = torch.nn.functional.cross_entropy(logits, target)
        log.update(len(target), loss=loss, **topk_acc(logits, target))
    with suppress(ZeroDivisionError):
        print(log)
    with ExitStack() as stack:
        stack.callback(log.meters['top1'].reset)
        try:
            avg = log.loss.avg
        except AttributeError as e:
            avg = str(e)
    return avg, {k: (m.sum, m.count) for k, m in log.meters.items()}, hasattr(log, 'foo')

CALLS = ["([(torch.eye(3), torch.tensor([0,1,1]))],)", "([(torch.eye(3), torch.tensor([0,1,1])), (torch.ones(1,3), torch.tensor([2]))],)", "([],)", "([(torch.ones(2,1), torch.tensor([0,0]))],)"]
