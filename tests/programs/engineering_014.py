import torch

class BeamState:
    def __init__(self, batch, beams, length, vocab):
        self.tokens = torch.zeros(batch, beams, length, dtype=torch.long)
        self.scores = torch.full((batch, beams), -1e9)
        self.scores[:, 0] = 0
        self.finished = torch.zeros(batch, beams, dtype=torch.bool)
        self.t = 0
        self.history = []

    @property
    def alive(self):
        return (~self.finished).sum().item()

    def advance(self, logp, eos):
        B, K = self.scores.shape
        V = logp.shape[-1]
        logp = logp.expand(B, K, V).clone()
        logp[self.finished] = -float('inf')
        logp[..., eos][self.finished] = 0.
        total = (self.scores[..., None] + logp).view(B, -1)
        self.scores, idx = total.topk(K, dim=1)
        src, tok = idx // V, idx % V
        self.tokens = self.tokens.gather(1, src[..., None].expand_as(self.tokens)).clone()
        self.tokens[:, :, self.t] = tok
        self.finished = self.finished.gather(1, src) | (tok == eos)
        self.history.append((src.tolist(), tok.tolist()))
        self.t += 1
        return self.finished.all()

def trace(history, b, k):
    out = []
    for src, tok in reversed(history):
        out.append(tok[b][k])
        k = src[b][k]
    return out[::-1]

def program(table, beams, length, eos=0):
    B = table.shape[0]
    state = BeamState(B, beams, length, table.shape[-1])
    for t in range(length):
        row = table[:, t % table.shape[1]].log_softmax(-1)[:, None]
        if state.advance(row, eos):
            print('all finished at', t)
            break
    paths = [trace(state.history, b, 0) for b in range(B)]
    norm = state.scores / (state.tokens != eos).sum(-1).clamp(min=1)
    return state.tokens, state.scores, norm, paths, state.alive, vars(state).keys()

CALLS = ["(torch.arange(24.).reshape(2,3,4).sin(), 2, 3)", "(torch.tensor([[[5.,0.,1.]]]), 2, 4)", "(torch.ones(1,2,3), 3, 2, 1)", "(torch.zeros(2,1,2), 1, 1)"]
