import torch
from torch import nn
import copy

class DQN:
    def __init__(self, n_obs, n_act, sync_every=2):
        self.online = nn.Sequential(nn.Linear(n_obs, 8), nn.ReLU(), nn.Linear(8, n_act))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.SGD(self.online.parameters(), lr=0.1)
        self.sync_every, self.updates = sync_every, 0
    def td(self, obs, a, r, nxt, done):
        q = self.online(obs).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.online(nxt).argmax(1, keepdim=True)
            y = r + 0.9 * self.target(nxt).gather(1, best)[:, 0] * (1 - done)
        return nn.functional.smooth_l1_loss(q, y, reduction='none')
    def update(self, batch):
        err = self.td(*batch)
        self.opt.zero_grad()
        err.mean().backward()
        self.opt.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return err.detach()

def program(obs, acts, rew, n=3):
    torch.manual_seed(0)
    agent = DQN(obs.shape[1], int(acts.max()) + 1)
    done = (torch.arange(len(obs)) == len(obs) - 1).float()
    nxt = obs.roll(-1, 0)
    errs = [agent.update((obs, acts, rew, nxt, done)) for _ in range(n)]
    in_sync = all(torch.equal(a, b) for a, b in zip(agent.online.parameters(), agent.target.parameters()))
    print('in sync:', in_sync)
    polyak = copy.copy(agent.target)
    with torch.no_grad():
        for tp, p in zip(polyak.parameters(), agent.online.parameters()):
            tp.data.mul_(0.5).add_(p.data, alpha=0.5)
    return errs, in_sync, polyak(obs), agent.target(obs), polyak[0] is agent.target[0], agent.opt.state_dict()['param_groups']

CALLS = ["(torch.eye(3), torch.tensor([0,1,0]), torch.ones(3))", "(torch.eye(3), torch.tensor([0,1,0]), torch.ones(3), 2)", "(torch.ones(2,4), torch.tensor([2,2]), torch.zeros(2), 1)", "(torch.eye(3), torch.tensor([]), torch.ones(3))"]
