import torch
from torch import nn

class CharRNN(nn.Module):
    def __init__(self, v, h):
        super().__init__()
        self.emb = nn.Embedding(v, h)
        self.cell = nn.GRUCell(h, h)
        self.out = nn.Linear(h, v)
        self.out.weight = self.emb.weight
        self.hidden = None
    def reset(self): self.hidden = None
    def forward(self, ids):
        for t in ids:
            self.hidden = self.cell(self.emb(t)[None], self.hidden)
            yield self.out(self.hidden)[0]
    def detach(self):
        if self.hidden is not None: self.hidden = self.hidden.detach()

def program(text, h, chunk=2, epochs=1):
    torch.manual_seed(0)
    chars = sorted(set(text))
    ids = torch.tensor([chars.index(c) for c in text])
    net = CharRNN(len(chars), h)
    opt = torch.optim.Adam(net.parameters(), 0.05)
    losses, skipped = [], 0
    for ep in range(epochs):
        net.reset()
        for a, b in zip(ids[:-1].split(chunk), ids[1:].split(chunk)):
            logits = torch.stack(list(net(a)))
            loss = nn.functional.cross_entropy(logits, b)
            opt.zero_grad()
            loss.backward()
            total = nn.utils.clip_grad_value_(net.parameters(), 0.1)
            g = max(p.grad.abs().max().item() for p in net.parameters())
            if loss.item() < 0.5: skipped += 1
            else: opt.step()
            net.detach()
            losses.append((loss.item(), g, total))
    print(f'{len(losses)} chunks')
    cur = ids[:1]
    sample = []
    with torch.inference_mode():
        for _ in range(3):
            *_, last = net(cur)
            cur = last.argmax()[None]
            sample.append(chars[cur])
    return losses, ''.join(sample), skipped, net.hidden, len(list(net.parameters())), net.out.weight is net.emb.weight, net.hidden.is_inference()

CALLS = ["('abcab', 3)", "('abcab', 3)", "('aab', 2, 1, 2)", "('a', 2)", "('', 2)"]
