import torch
from typing import Generator

class HMM:
    def __init__(self, pi, a, b):
        self.log = {n: t.log() for n, t in dict(pi=pi, a=a, b=b).items()}
    def forward(self, obs):
        alpha = None
        for o in obs:
            e = self.log['b'][:, o]
            alpha = self.log['pi'] + e if alpha is None else (alpha[:, None] + self.log['a']).logsumexp(0) + e
            yield alpha
    def viterbi(self, obs):
        delta = self.log['pi'] + self.log['b'][:, obs[0]]
        back = []
        for o in obs[1:]:
            scores, arg = (delta[:, None] + self.log['a']).max(0)
            delta = scores + self.log['b'][:, o]
            back.append(arg)
        path = [delta.argmax().item()]
        for arg in reversed(back): path.append(arg[path[-1]].item())
        return path[::-1], delta.max().item()

def program(pi, a, b, obs):
    hmm = HMM(pi, a, b)
    alphas = list(hmm.forward(obs))
    ll = alphas[-1].logsumexp(0) if alphas else torch.tensor(0.)
    if ll == -torch.inf:
        print('impossible')
        return None, alphas
    try:
        path, score = hmm.viterbi(obs)
    except IndexError as e:
        path, score = type(e), 0
    switches = sum(x != y for x, y in zip(path, path[1:])) if isinstance(path, list) else None
    return ll, path, score, switches, torch.stack(alphas).softmax(1) if alphas else []

CALLS = ["(torch.tensor([.5,.5]), torch.tensor([[.9,.1],[.2,.8]]), torch.tensor([[.8,.2],[.1,.9]]), [0,0,1,1])", "(torch.tensor([.5,.5]), torch.tensor([[.9,.1],[.2,.8]]), torch.tensor([[.8,.2],[.1,.9]]), torch.tensor([1,0,1]))",
 "(torch.tensor([1.,0]), torch.eye(2), torch.eye(2), [0,1])", "(torch.ones(1), torch.ones(1,1), torch.ones(1,1), [])", "(torch.ones(1), torch.ones(1,1), torch.ones(1,1), [3])"]
