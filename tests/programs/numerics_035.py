import torch

def auc(scores, labels):
    order = scores.argsort(descending=True, stable=True)
    labels = labels[order]
    tps = labels.cumsum(0)
    fps = (1 - labels).cumsum(0)
    if tps[-1] == 0 or fps[-1] == 0:
        raise ValueError('need both classes')
    tpr, fpr = tps / tps[-1], fps / fps[-1]
    return torch.trapezoid(torch.cat([torch.zeros(1), tpr]), torch.cat([torch.zeros(1), fpr])).item()

def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0

def best_threshold(scores, labels):
    best = (-1.0, None)
    for th in scores.unique().tolist():
        pred = scores >= th
        tp = (pred & (labels == 1)).sum().item()
        p = tp / max(1, pred.sum().item())
        r = tp / max(1, int(labels.sum()))
        best = max(best, (f1(p, r), th))
    return best

def ece(probs, labels, bins=4):
    edges = torch.linspace(0, 1, bins + 1)
    out = torch.zeros(())
    for lo, hi in zip(edges[:-1], edges[1:]):
        m = (probs > lo) & (probs <= hi)
        if m.any():
            out += m.float().mean() * (probs[m].mean() - labels[m].float().mean()).abs()
    return out

def program(scores, labels):
    report = {}
    for name, fn in dict(auc=auc, best=best_threshold, ece=ece).items():
        try:
            report[name] = fn(scores, labels)
        except Exception as e:
            report[name] = type(e).__name__, str(e)
        finally:
            print(name, isinstance(report[name], tuple))
    return report

CALLS = ["(torch.tensor([.1,.4,.35,.8]), torch.tensor([0,0,1,1]))", "(torch.tensor([.1,.4,.35,.8]), torch.tensor([0,0,1,1]))", "(torch.tensor([.5,.5]), torch.tensor([1,1]))", "(torch.tensor([]), torch.tensor([]))", "(torch.tensor([.2,.9,.9]), torch.tensor([1,0,1]))"]
