import torch
import torch.nn.functional as F

class Hard:
    """batch-hard triplets; remembers how often each strategy was used"""
    used = {}
    def __call__(self, emb, labels, margin):
        d = torch.cdist(emb, emb)
        same = labels[:, None] == labels[None]
        eye = torch.eye(len(labels), dtype=torch.bool)
        pos = d.masked_fill(~same | eye, -1).amax(1)
        neg = d.masked_fill(same, float('inf')).amin(1)
        valid = (pos >= 0) & neg.isfinite()
        n = valid.sum()
        if n == 0:
            self.used['none'] = self.used.get('none', 0) + 1
            return emb.sum() * 0
        self.used.setdefault('hard', []).append(n.item())
        return F.relu(pos - neg + margin)[valid].mean()

def ctc(logp, target):
    T, B, C = logp.shape
    return F.ctc_loss(logp.log_softmax(-1), target, torch.full((B,), T), torch.full((B,), target.shape[1]), zero_infinity=True)

def greedy(logp, blank=0):
    for seq in logp.argmax(-1).T.tolist():
        prev, out = None, []
        for c in seq:
            if c != prev and c != blank:
                out.append(c)
            prev = c
        yield ''.join(map(chr, (96 + c for c in out)))

def program(emb, labels, margin, T):
    Hard.used.clear()
    emb = emb.clone().requires_grad_()
    hard = Hard()
    total = 0.
    for m in margin:
        l = hard(emb, labels, m)
        total = total + l
        if l.item() == 0:
            print('zero at', m); continue
        l.backward(retain_graph=True)
    torch.manual_seed(0)
    lp = torch.randn(T, 2, 4)
    c = ctc(lp, torch.tensor([[1, 2], [3, 3]]))
    texts = list(greedy(lp))
    js = F.kl_div(lp[0].log_softmax(-1), lp[0].softmax(-1), reduction='batchmean')
    nce = F.cross_entropy(emb @ emb.T / .1, torch.arange(len(emb))) if len(emb) else None
    return total if isinstance(total, float) else total.detach(), emb.grad, hard.used, Hard.used is hard.used, c, texts, round(js.item(), 5), nce

CALLS = ["(torch.tensor([[0.,0.],[1.,0.],[0.,2.],[3.,3.]]), torch.tensor([0,0,1,1]), [.1, 2.], 6)", "(torch.ones(2,2), torch.tensor([0,1]), [.1], 3)", "(torch.ones(3,2)*torch.arange(3)[:,None], torch.tensor([0,0,1]), [0, -9], 2)", "(torch.ones(0,2), torch.ones(0), [1], 4)", "(torch.ones(2,2), torch.tensor([0,1]), [], 0)"]
