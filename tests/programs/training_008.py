import torch

class VQ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, book):
        d = torch.cdist(z, book)
        idx = d.argmin(1)
        ctx.save_for_backward(idx, book)
        ctx.mark_non_differentiable(idx)
        ctx.n = z.shape[0]
        return book[idx], idx
    @staticmethod
    def backward(ctx, g, _):
        idx, book = ctx.saved_tensors
        gb = None
        if ctx.needs_input_grad[1]:
            gb = torch.zeros_like(book).index_add(0, idx, g)
        return g * 1.5, gb

class Codebook:
    total = 0
    def __init__(self, book, gamma=0.5):
        self.book = book; self.counts = torch.zeros(book.shape[0]); self.gamma = gamma
    def ema(self, z, idx):
        one = torch.nn.functional.one_hot(idx, self.book.shape[0]).float()
        self.counts.mul_(self.gamma).add_(one.sum(0), alpha=1 - self.gamma)
        mean = one.T @ z / one.sum(0).clamp(min=1)[:, None]
        used = one.sum(0) > 0
        self.book[used] = self.book[used] * self.gamma + mean[used] * (1 - self.gamma)
        Codebook.total += int(used.sum())
        return used

def program(z, book, train):
    cb = Codebook(book.clone())
    z = z.clone().requires_grad_(True)
    b = cb.book.clone().requires_grad_(train)
    q, idx = VQ.apply(z, b)
    loss = (q * 2).sum() + ((z - q.detach()) ** 2).mean()
    loss.backward()
    dead = []
    if train:
        with torch.no_grad():
            used = cb.ema(z, idx)
        dead = (~used).nonzero().flatten().tolist()
        if dead:
            print('dead codes', dead)
    return q.detach(), idx, z.grad, b.grad, cb.book, cb.counts, dead, Codebook.total, idx.requires_grad

CALLS = ["(torch.tensor([[0.,0.],[1.,1.2],[5.,5.]]), torch.tensor([[0.,.1],[1.,1.],[9.,9.]]), True)", "(torch.ones(2,2), torch.tensor([[0.,.1],[1.,1.],[9.,9.]]), False)",
 "(torch.ones(4,1), torch.arange(2.)[:,None], True)", "(torch.ones(0,2), torch.ones(2,2), True)", "(torch.ones(2,2), torch.ones(0,2), True)"]
