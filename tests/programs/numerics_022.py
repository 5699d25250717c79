import torch
from torch import nn
from torch.distributions import Categorical

def discounted(rewards, gamma):
    out, acc = [], 0.0
    for r in reversed(rewards):
        acc = r + gamma * acc
        out.insert(0, acc)
    return torch.tensor(out)

class Policy(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.fc = nn.Linear(n, k)
        self.saved = []
    def act(self, obs):
        dist = Categorical(logits=self.fc(obs))
        a = dist.sample()
        self.saved.append((dist.log_prob(a), dist.entropy()))
        return a.item()

def program(start, gamma=0.9, episodes=2, limit=6):
    torch.manual_seed(5)
    policy = Policy(start.numel(), 3)
    opt = torch.optim.Adam(policy.parameters(), lr=0.05)
    log = []
    for ep in range(episodes):
        x, rewards = start.clone(), []
        while len(rewards) < limit:
            a = policy.act(x)
            x = x + (a - 1) * 0.5
            rewards.append(-x.abs().sum().item())
            if rewards[-1] < -5:
                print('failed', ep)
                break
        ret = discounted(rewards, gamma)
        adv = (ret - ret.mean()) / (ret.std() + 1e-6) if len(ret) > 1 else ret
        logp, ent = map(torch.stack, zip(*policy.saved))
        loss = -(logp * adv).sum() - 0.01 * ent.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        policy.saved.clear()
        log.append((loss.item(), sum(rewards), len(rewards)))
    return log, ret, adv, policy.fc.weight, torch.rand(1)

CALLS = ["(torch.tensor([0.5,-0.5]),)", "(torch.tensor([0.5,-0.5]),)", "(torch.tensor([3.,3.]), 0.5, 3)", "(torch.zeros(1), 1.0, 1, 1)", "(torch.zeros(1), 1.0, 1, 0)"]
